#!/usr/bin/env bash
# DLRM in PyTorch with its tables on NVMe; half of it, then the rest from the checkpoint. Usage: run.sh [FOLDER].
# TERRACE_PYTHON names a Python with torch (default: that of tools/dev test --torch, else python3). Without the data a generated twin stands in.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
export TERRACE_BUILD=${TERRACE_BUILD:-$root/build}
export PYTHONPATH=$root/python${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
python=${TERRACE_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/terrace/torch-2.14.1/bin/python}
command -v "$python" >/dev/null || python=python3
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: $python has no torch; TERRACE_PYTHON names one that has, tools/dev test --torch makes one"
  exit 0
fi
out=${1:-$(mktemp -d)}
mkdir -p "$out"
data=${TERRACE_SHARED_DATA:-$root/../shared/data}/online_retail.tsv.gz
if [ ! -f "$data" ]; then
  echo "online_retail.tsv.gz is not here; training on a generated twin"
  "$TERRACE_BUILD/bin/terrace" data generate retail --seed 7 -o "$out"
  data=$out/online_retail.tsv.gz
fi
data=$(realpath "$data")
cd "$out"

rm -rf dlrm.state
"$python" "$here/dlrm.py" "$data" --steps 100
"$python" "$here/dlrm.py" "$data" --steps 200      # goes on at step 100: tables and dense layers of one moment
