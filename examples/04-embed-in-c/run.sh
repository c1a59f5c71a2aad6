#!/usr/bin/env bash
# A C program trains through the C ABI. Usage: run.sh [FOLDER].
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
build=${TERRACE_BUILD:-$root/build}
out=${1:-$(mktemp -d)}
mkdir -p "$out" && cd "$out"

"$build/bin/terrace" compile "$here/model.yaml" --emit=lib -o embed.so
${CC:-cc} -std=c11 -Wall -Wextra -Werror -O2 "$here/trainer.c" -I"$root/include" -L"$build/lib" -lterrace-rt \
  -Wl,-rpath,"$build/lib" -lm -o trainer
rm -rf embed.state
./trainer ./embed.so 100      # 100 steps, a checkpoint, and the tables stay on disk
./trainer ./embed.so 100      # resumes at step 100
