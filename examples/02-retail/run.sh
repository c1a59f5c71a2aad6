#!/usr/bin/env bash
# Trains on Online Retail: rows on NVMe, a small DRAM cache, two batches of lookahead. Usage: run.sh [FOLDER].
# Without the data file a generated twin with the same columns stands in; the AUC is then another.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
terrace=${TERRACE:-$root/build/bin/terrace}
out=${1:-$(mktemp -d)}
mkdir -p "$out"
data=${TERRACE_SHARED_DATA:-$root/../shared/data}/online_retail.tsv.gz
if [ ! -f "$data" ]; then
  echo "online_retail.tsv.gz is not here; training on a generated twin"
  "$terrace" data generate retail --seed 7 -o "$out"
  data=$out/online_retail.tsv.gz
fi
cd "$out"

"$terrace" explain "$here/model.yaml"
"$terrace" compile "$here/model.yaml" -o retail
./retail train --fresh --data "$data"
