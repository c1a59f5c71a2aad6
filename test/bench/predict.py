"""Predicted stage times beside measured ones, for the shapes of W1, W2, W4 and W6.

First `terrace calibrate` measures this machine, unless a file is given. Then each model is compiled for that machine; its ids are drawn as the
workload says and their statistics go to the planner as a profile. Steps run without lookahead, so that stages do not overlap, and the runtime's
clock around each op is read between steps that come to rest. Times are medians of nine; the spread is half the distance of the quartiles;
`off` is the prediction's distance from the median, `beyond` what of that the spread does not cover, and `fastest` the least of the nine, which says
more where other work shares the machine. Lanes of a model with several groups overlap even so: its hand-off cannot be told apart.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test" / "e2e")]
from harness import TERRACE, run  # noqa: E402

STAGES = {"unique": ["unique"], "gather": ["gather_pool"], "update": ["segment_update"]}
W1_ROWS = [40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209, 11938, 155, 4, 976, 14, 40000000, 40000000,
           40000000, 590152, 12973, 108, 36]
W1_BAGS = [3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1]
W2_ROWS = [131072] * 32 + [524288] * 12 + [1048576] * 4


class Feature:
    """One table and its bags. bag: exactly so many ids, or (mean, most) of a drawn length. skew 0: uniform; else ranks fall as a power."""

    def __init__(self, rows, dim, bag, skew=0.0, weighted=False, dtype="f32"):
        self.rows, self.dim, self.skew, self.weighted, self.dtype = rows, dim, skew, weighted, dtype
        self.mean, self.most = bag if isinstance(bag, tuple) else (bag, bag)

    def draw(self, np, random, samples):
        if self.mean == self.most:
            lengths = np.full(samples, self.most)
        else:
            lengths = np.minimum(random.geometric(1 / self.mean, samples), self.most)
        offsets = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
        n = int(offsets[-1])
        if self.skew:
            ranks = np.floor(self.rows ** random.random(n) ** (1 / self.skew)).astype(np.int64) - 1
            ids = ranks * 0x9e3779b1 % self.rows
        else:
            ids = random.integers(0, self.rows, n, np.int64)
        return (ids, offsets) + ((random.random(n, np.float32), ) if self.weighted else ())


def workloads(scale):
    def rows(n):
        return max(3, int(n * scale))

    return {
        "w1": (1024, [Feature(min(r, rows(400000)), 128, b, 1.0 if r > 10000 else 0) for r, b in zip(W1_ROWS, W1_BAGS)]),
        "w2": (2048, [Feature(rows(r), 32, (2 + i * 31 % 24, 120), 1.0) for i, r in enumerate(W2_ROWS)]),
        "w4": (512, [Feature(rows(100000), 128, 20) for _ in range(32)]),
        "w6": (512, [Feature(rows(100000), d, (30, 60), 0, i % 2 == 1) for i, d in enumerate([256] * 8 + [128] * 6 + [64] * 3)] +
               [Feature(rows(100000), 512, (30, 60), 0, False, "f16"), Feature(rows(100000), 2048, 4)]),
    }


def model(name, samples, features):
    return {
        "terrace": 1, "model": name, "batch": {"size": samples, "max_ids": int(sum(samples * min(f.most, 1.5 * f.mean + 2) for f in features))},
        "features": [{"name": f"f{i}", "table": {"name": f"t{i}", "rows": f.rows, "dim": f.dim, "dtype": f.dtype}, "max_ids": f.most,
                      "mean_ids": f.mean, **({"weights": f"w{i}"} if f.weighted else {})} for i, f in enumerate(features)],
        "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "14GiB"}]}, "plan": {"lookahead": 0}}


def profile(np, batches, samples, count):
    tables = []
    for f in range(count):
        ids = [b[f][0] for b in batches]
        sets = [np.unique(i) for i in ids]
        fresh = [1 - float(np.isin(ids[i], sets[i - 1]).mean()) for i in range(1, len(ids))]
        unique = sum(map(len, sets)) / len(sets)
        tables.append({"name": f"t{f}", "batches": len(ids), "batch": samples, "ids": sum(map(len, ids)) / len(ids), "unique_ids": unique,
                       "cache_rows": [max(1, int(unique))], "miss_ratio": [min(1.0, max(1e-9, statistics.mean(fresh)))]})
    return {"terrace_profile": 1, "tables": tables}


def measure(np, terrace, library, folder, name, batches, features, rounds):
    def busy(session):
        session.read_rows("t0", [0])  # comes back when all lanes rest
        return session.stats()["busy_ms"]

    times = []
    with terrace.load(library, state=os.path.join(folder, name + ".state"), fresh=True) as session:
        samples = len(batches[0][0][1]) - 1
        for f, feature in enumerate(features):  # so that no step has to make a row
            for begin in range(0, feature.rows, samples * feature.most):
                ids = np.arange(begin, min(feature.rows, begin + samples * feature.most), dtype=np.int64)
                bags = [(np.zeros(0, np.int64), np.zeros(samples + 1, np.int64)) + ((np.zeros(0, np.float32), ) if g.weighted else ()) for g in features]
                ends = np.minimum(np.arange(samples + 1, dtype=np.int64) * feature.most, len(ids))
                bags[f] = (ids, ends) + ((np.ones(len(ids), np.float32), ) if feature.weighted else ())
                session.release(session.submit(bags))
        outputs = [np.zeros((samples, f.dim), np.float32) for f in features]
        gradients = [np.full((samples, f.dim), 1 / 1024, np.float32) for f in features]
        # What Python takes to name the arrays is no part of a step.
        empty = [(np.zeros(0, np.int64), np.zeros(1, np.int64)) + ((np.zeros(0, np.float32), ) if f.weighted else ()) for f in features]
        ours = []
        for _ in range(9):
            begin = time.perf_counter()
            ticket = session.submit(empty)
            ours.append((time.perf_counter() - begin) * 1e3)
            session.release(ticket)
        ours = statistics.median(ours)
        before = busy(session)
        for i in range(rounds + 2):
            batch = batches[i % len(batches)]
            begin = time.perf_counter()
            ticket = session.submit(batch)
            submitted = time.perf_counter()
            session.forward(ticket, outputs)
            session.backward(ticket, gradients)
            session.read_rows("t0", [0])
            end = time.perf_counter()
            after = busy(session)
            spent = {op: after[op] - before[op] for op in after}
            before = after
            found = {stage: sum(spent.get(op, 0) for op in ops) for stage, ops in STAGES.items()}
            found["ingest"] = (submitted - begin) * 1e3 - ours + spent.get("check", 0) + spent.get("translate", 0)
            found["step"] = (end - begin) * 1e3 - ours
            found["handoff"] = (end - submitted) * 1e3 - sum(spent.values())
            if i >= 2:
                times.append(found)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=["w1", "w2", "w4", "w6"], help="which (default: all)")
    parser.add_argument("--scale", type=float, default=0.25, help="of the tables' rows")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--machine", help="a machine file (default: calibrate now)")
    parser.add_argument("--quick", action="store_true", help="calibrate --quick")
    options = parser.parse_args()
    try:
        import numpy as np
    except ImportError:
        sys.exit("numpy is needed: apt install python3-numpy")
    import terrace
    with tempfile.TemporaryDirectory(prefix="bench-predict-", dir=os.environ.get("TERRACE_BUILD", ".")) as folder:
        machine = options.machine and os.path.abspath(options.machine)
        if not machine:
            machine = os.path.join(folder, "machine.json")
            begin = time.perf_counter()
            run(TERRACE, "calibrate", *(["--quick"] if options.quick else []), "--folder", folder, "-o", machine)
            print(f"calibrate took {time.perf_counter() - begin:.0f} s")
        load = os.getloadavg()[0]
        print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {load:.1f}; tables at {options.scale} of their rows; median of {options.rounds}")
        print(f"{'workload':9} {'ids':>8} {'rows':>8} {'stage':8} {'predicted':>10} {'measured':>10} {'fastest':>10} {'spread':>7} {'off':>6} {'beyond':>7}")
        for name in options.workloads:
            samples, features = workloads(options.scale)[name]
            random = np.random.default_rng(1)
            batches = [[f.draw(np, random, samples) for f in features] for _ in range(4)]
            spec = {**model(name, samples, features), "machine": machine}
            stats = profile(np, batches, samples, len(features))
            path = os.path.join(folder, name)
            pathlib.Path(path + ".yaml").write_text(json.dumps(spec))
            pathlib.Path(path + ".profile").write_text(json.dumps(stats))
            predicted = json.loads(run(TERRACE, "explain", path + ".yaml", "--profile", path + ".profile", "--json").stdout)
            library = terrace.compile(path + ".yaml", path + ".so", profile=path + ".profile")
            times = measure(np, terrace, library, folder, name, batches, features, options.rounds)
            guess = {stage: seconds * 1e3 for stage, seconds in predicted["stages"].items()}
            guess["handoff"] = guess.get("handoff", 0) + guess.get("sync", 0)
            guess["step"] = predicted["serial_seconds"] * 1e3
            ids = sum(t["ids"] for t in stats["tables"])
            rows = sum(t["unique_ids"] for t in stats["tables"])
            for stage in ("ingest", "unique", "gather", "update", "handoff", "step"):
                values = [t[stage] for t in times]
                if stage == "handoff" and len(predicted["groups"]) > 1:
                    continue
                low, middle, high = statistics.quantiles(values, n=4)
                spread, off = (high - low) / 2 / middle, guess[stage] / middle - 1
                beyond = max(0.0, abs(off) - spread)
                print(f"{name:9} {ids:8.0f} {rows:8.0f} {stage:8} {guess[stage]:10.2f} {middle:10.2f} {min(values):10.2f} {spread:6.0%} {off:+6.0%} {beyond:6.0%}"
                      f"{'' if beyond <= 0.15 else ' *'}", flush=True)


if __name__ == "__main__":
    main()
