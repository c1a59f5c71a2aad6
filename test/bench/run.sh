#!/usr/bin/env bash
# Benchmarks: prints tables, judges nothing. Usage: run.sh [steps|compile|io]; TERRACE_BUILD names the build folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TERRACE_BUILD=${TERRACE_BUILD:-$here/../../build}
case ${1:-steps} in
  io) exec "$TERRACE_BUILD/bin/IoBench" "${@:2}" ;;
  compile) exec python3 "$here/compile.py" "${@:2}" ;;
  steps) exec python3 "$here/steps.py" "${@:2}" ;;
  *) echo "usage: tools/dev bench [steps|compile|io]" >&2; exit 2 ;;
esac
