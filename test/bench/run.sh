#!/usr/bin/env bash
# Benchmarks: prints tables, judges nothing. Usage: run.sh [steps|compile|store|w5|pytorch|kernels|unique|predict]; TERRACE_BUILD names the build folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TERRACE_BUILD=${TERRACE_BUILD:-$here/../../build}
case ${1:-steps} in
  compile) exec python3 "$here/compile.py" "${@:2}" ;;
  pytorch | kernels | unique | predict) # all need numpy, the first three torch
    python=${TERRACE_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/terrace/torch-2.14.1/bin/python}
    command -v "$python" >/dev/null || python=python3
    script=$1.py
    [ -e "$here/$script" ] || script=kernels/$script
    exec "$python" -W ignore "$here/$script" "${@:2}"
    ;;
  w5) exec python3 "$here/w5/w5.py" "${@:2}" ;;
  steps) exec python3 "$here/steps.py" "${@:2}" ;;
  store)
    # In the build folder, since /tmp is memory on many machines; gone also when it is interrupted.
    folder=$(mktemp -d "$TERRACE_BUILD/bench-XXXXXX")
    trap 'rm -rf "$folder"' EXIT
    "$TERRACE_BUILD/bin/StoreBench" --folder "$folder" "${@:2}"
    ;;
  *) echo "usage: tools/dev bench [steps|compile|store|w5|pytorch|kernels|unique|predict]" >&2; exit 2 ;;
esac
