"""Training steps per second of one model under several plans, in one run, interleaved.

The same random batches train tables that lie in DRAM, and tables on NVMe behind a DRAM cache with 0, 1, 2 and 4 batches of
lookahead. The in-DRAM rate is the limit; what is left of the gap at lookahead 2 is I/O that could not be hidden.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import json
import os
import pathlib
import platform
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from harness import Folder, TERRACE, json_lines, run  # noqa: E402


def spec(tables, rows, dim, bag, batch, home, cache, lookahead):
    place = {"tables": "*", "home": home}
    if home == "disk":
        place["cache"] = {"dram": cache}
    return {
        "terrace": 1, "model": "steps", "batch": {"size": batch},
        "defaults": {"table": {"dim": dim, "rows": rows, "optimizer": {"kind": "rowwise_adagrad", "lr": 0.02}}},
        "features": [{"name": "f{i}", "count": tables, "table": {}, "pooling": "sum", "max_ids": bag, "mean_ids": bag}],
        "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "12GiB"},
                             {"name": "disk", "kind": "nvme", "capacity": "32GiB", "path": "rows.store"}]},
        "plan": {"lookahead": lookahead, "place": [place]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=8)
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--bag", type=int, default=20)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cache", default="80MiB", help="DRAM cache of the NVMe variants")
    options = parser.parse_args()
    variants = [("dram", "dram", 2)] + [(f"nvme, lookahead {d}", "disk", d) for d in (0, 1, 2, 4)]
    times = {name: [] for name, _, _ in variants}
    with Folder() as folder:
        for i, (_, home, lookahead) in enumerate(variants):
            text = json.dumps(spec(options.tables, options.rows, options.dim, options.bag, options.batch, home,
                                   options.cache, lookahead))
            (folder / f"{i}.yaml").write_text(text)
            run(TERRACE, "compile", f"{i}.yaml", "-o", f"m{i}", cwd=folder)
        for _ in range(options.rounds):
            for i, (name, _, _) in enumerate(variants):
                out = run(f"./m{i}", "bench", "--steps", options.steps, "--json", cwd=folder).stdout
                times[name].append([line for line in json_lines(out) if line.get("event") == "bench"][-1]["step_ms_p50"])
    ids = options.tables * options.bag * options.batch
    print(f"{options.tables} tables x {options.rows} rows x {options.dim} f32, batch {options.batch}, bag {options.bag}, "
          f"cache {options.cache}; {platform.machine()}, {os.cpu_count()} CPUs; median of {options.rounds} rounds (min..max)")
    limit = statistics.median(times["dram"])
    print(f"{'plan':20} {'ms/step':>9} {'spread':>17} {'M ids/s':>9} {'x dram':>7}")
    for name, _, _ in variants:
        median = statistics.median(times[name])
        print(f"{name:20} {median:9.2f} {min(times[name]):8.2f}..{max(times[name]):7.2f} {ids / median / 1e3:9.2f} "
              f"{median / limit:7.2f}")


if __name__ == "__main__":
    main()
