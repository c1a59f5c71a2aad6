#!/usr/bin/env bash
# Ten lines of YAML to a trained model. Usage: run.sh [FOLDER], where the generated data and the state go.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
terrace=${TERRACE:-$here/../../build/bin/terrace}
out=${1:-$(mktemp -d)}
mkdir -p "$out" && cd "$out"

"$terrace" data generate clicks --scale 0.05 --seed 1 -o .      # clicks.tsv, with its statistics beside it
"$terrace" compile "$here/model.yaml" -o hello
./hello train --fresh
./hello eval
./hello verify --steps 20
