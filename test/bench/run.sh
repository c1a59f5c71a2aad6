#!/usr/bin/env bash
# Benchmarks: prints tables, judges nothing. Usage: run.sh [steps|compile|store]; TERRACE_BUILD names the build folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TERRACE_BUILD=${TERRACE_BUILD:-$here/../../build}
case ${1:-steps} in
  compile) exec python3 "$here/compile.py" "${@:2}" ;;
  steps) exec python3 "$here/steps.py" "${@:2}" ;;
  store)
    # In the build folder, since /tmp is memory on many machines; gone also when it is interrupted.
    folder=$(mktemp -d "$TERRACE_BUILD/bench-XXXXXX")
    trap 'rm -rf "$folder"' EXIT
    "$TERRACE_BUILD/bin/StoreBench" --folder "$folder" "${@:2}"
    ;;
  *) echo "usage: tools/dev bench [steps|compile|store]" >&2; exit 2 ;;
esac
