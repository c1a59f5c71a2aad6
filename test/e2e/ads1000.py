"""A thousand tables at 1/1000 rows: compile time, number of kernels, two steps. Times are reported, never asserted on."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import time

from harness import Folder, TERRACE, expect, run

SPEC = """terrace: 1
model: ads1000
batch: {size: 256, max_ids: 400000}
defaults:
  table: {optimizer: {kind: rowwise_adagrad, lr: 0.02, eps: 1e-8}}
  feature: {max_ids: 64, mean_ids: 12}
templates:
  huge: {dim: 128, rows: 200000, ids: hash}
  mid: {dim: 64, rows: 5000, ids: hash}
  tiny: {dim: 16, rows: 20}
features:
- {name: "ad{i}", count: 40, table: {use: huge}}
- {name: "user{i}", count: 260, table: {use: mid}, dedup: request}
- {name: "ctx{i}", count: 700, table: {use: tiny}, max_ids: 1, mean_ids: 1}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 12GiB}
  - {name: disk, kind: nvme, capacity: 64GiB, path: ads.store}
plan: {lookahead: 2}
"""


def main():
    with Folder() as folder:
        (folder / "model.yaml").write_text(SPEC)
        start = time.monotonic()
        run(TERRACE, "compile", "model.yaml", "-o", "model", cwd=folder)
        seconds = time.monotonic() - start
        info = json.loads(run("./model", "info", "--json", cwd=folder).stdout.splitlines()[-1])
        expect(info["tables"] == 1000, f"tables: {info['tables']}")
        expect(info["kernels"] <= 16, f"kernel configurations: {info['kernels']}")
        print(f"1,000 tables, {info['kernels']} kernel configurations, both CPU images: compiled in {seconds:.2f} s")
        print(run("./model", "verify", "--synthetic", 1, "--steps", 2, cwd=folder).stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
