#!/usr/bin/env bash
# Benchmarks: prints tables, judges nothing. Usage: run.sh [steps|compile|io|pytorch]; TERRACE_BUILD names the build folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TERRACE_BUILD=${TERRACE_BUILD:-$here/../../build}
case ${1:-steps} in
  io) exec "$TERRACE_BUILD/bin/IoBench" "${@:2}" ;;
  compile) exec python3 "$here/compile.py" "${@:2}" ;;
  pytorch)
    python=${TERRACE_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/terrace/torch-2.14.1/bin/python}
    command -v "$python" >/dev/null || python=python3
    exec "$python" -W ignore "$here/pytorch.py" "${@:2}"
    ;;
  steps) exec python3 "$here/steps.py" "${@:2}" ;;
  *) echo "usage: tools/dev bench [steps|compile|io|pytorch]" >&2; exit 2 ;;
esac
