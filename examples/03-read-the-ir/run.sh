#!/usr/bin/env bash
# Dumps the IR after every pass and reads it back with terrace-opt. Usage: run.sh [FOLDER].
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${TERRACE_BIN:-$here/../../build/bin}
out=${1:-$(mktemp -d)}
mkdir -p "$out"

"$bin/terrace" compile "$here/../02-retail/model.yaml" --dump-dir "$out/ir" -o "$out/retail"
for file in "$out"/ir/*.mlir; do
  "$bin/terrace-opt" "$file" -o /dev/null
  echo "$(basename "$file"): $(wc -l <"$file") lines, parsed and verified"
done
