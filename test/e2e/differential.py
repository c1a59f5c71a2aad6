"""Random specs, compiled and run against the reference interpreter, bit for bit.

Each seed makes a spec (tables shared by features, odd dims, all poolings, weights, types, optimizers, tiers, caches smaller than a
batch, budgets at the smallest legal one, lookahead 0..8), compiles it and runs `verify --synthetic` for 20 steps with each CPU
image. One in three is compiled to serve as well, in a type of its own, and verified over its initial rows. The seed is printed; `--seed S --count 1 --keep` reproduces one.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import concurrent.futures
import json
import random
import re
import sys

from harness import Folder, TERRACE, run

DIMS = [1, 1, 2, 3, 4, 7, 8, 9, 16, 17, 25, 32, 33, 63, 64, 100, 128, 130]
OPTIMIZERS = ["sgd", "adagrad", "rowwise_adagrad", "adam", "partial_rowwise_adam", "lamb", "ftrl"]


def make_optimizer(rng):
    kind = rng.choice(OPTIMIZERS)
    optimizer = {"kind": kind, "lr": rng.choice([0.001, 0.02, 0.1, 0.5])}
    if kind == "sgd" and rng.random() < 0.5:
        optimizer["momentum"] = rng.choice([0.5, 0.9])
    if kind not in ("sgd", "ftrl") and rng.random() < 0.5:
        optimizer["eps"] = rng.choice([1e-8, 1e-5])
    if kind == "ftrl":
        optimizer.update(beta=rng.choice([0, 1]), l1=rng.choice([0, 1e-3, 0.1]), l2=rng.choice([0, 0.1]))
    elif rng.random() < 0.4:
        optimizer["weight_decay"] = 0.01
        if kind != "lamb":
            optimizer["weight_decay_mode"] = rng.choice(["l2", "decoupled"])
    if rng.random() < 0.25:
        optimizer["clip_norm"] = rng.choice([1e-3, 0.1, 10])
    return optimizer


def make_storage(rng):
    dtype = rng.choice(["f32", "f32", "f16", "bf16"])
    return {"dtype": dtype, "rounding": rng.choice(["nearest", "stochastic"])} if dtype != "f32" else {}


def make_init(rng):
    return rng.choice([
        {"kind": "uniform", "low": -0.01, "high": 0.01}, {"kind": "uniform", "low": -1, "high": 2},
        {"kind": "normal", "mean": 0, "std": 0.1}, {"kind": "constant", "value": rng.choice([0, 0.5])}])


def make_spec(seed):
    rng = random.Random(seed)
    head = rng.choice([None, None, "fm", "logistic"])
    head_dim = rng.choice(DIMS)
    batch = rng.choice([1, 2, 7, 16, 33, 64])
    tables, features = [], []
    for t in range(rng.randint(1, 6)):
        rows = rng.choice([1, 2, 5, 50, 300, 1000, 5000])
        tables.append({
            "name": f"t{t}", "rows": rows, "dim": head_dim if head == "fm" else rng.choice(DIMS),
            "optimizer": make_optimizer(rng), "init": make_init(rng), "ids": rng.choice(["index", "index", "hash"]),
            **make_storage(rng)})
    if rng.random() < 0.3:  # one record class for all, so that tables meet in a group
        for table in tables[1:]:
            table.update(dim=tables[0]["dim"], optimizer=tables[0]["optimizer"])
            for key in ("dtype", "rounding"):
                table.pop(key, None)
                if key in tables[0]:
                    table[key] = tables[0][key]
    for f in range(rng.randint(len(tables), len(tables) + 3)):
        table = tables[f] if f < len(tables) else rng.choice(tables)
        poolings = ["sum", "mean", "weighted_mean", "sqrtn", "max"] + ([] if head else ["none"])
        pooling = rng.choice(poolings)
        max_ids = rng.choice([1, 1, 2, 5, 20])
        feature = {"name": f"f{f}", "table": table["name"], "pooling": pooling, "max_ids": max_ids}
        if pooling not in ("max", "none") and rng.random() < 0.4:
            feature["weights"] = f"w{f}"
        if pooling == "weighted_mean":
            feature["weights"] = f"w{f}"
        if rng.random() < 0.3:
            feature["dedup"] = rng.choice(["a", "b"])
        if rng.random() < 0.2:
            feature["overflow"] = rng.choice(["keep_first", "keep_last"])
        features.append(feature)
    place = []
    for table in tables:
        if rng.random() < 0.6:
            pin = {"tables": table["name"], "home": "disk"}
            if rng.random() < 0.8:
                pin["cache"] = {"dram": rng.choice(["0B", "1KiB", "64KiB", "1MiB"])}
            place.append(pin)
        else:
            place.append({"tables": table["name"], "home": "dram"})
    spec = {
        "terrace": 1, "model": f"random{seed}", "seed": rng.randint(0, 2**31), "batch": {"size": batch},
        "on_bad_id": rng.choice(["error", "drop"]), "tables": tables, "features": features,
        "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "1GiB"},
                             {"name": "disk", "kind": "nvme", "capacity": "4GiB", "path": "rows.store"}]},
        "plan": {"lookahead": rng.choice([0, 1, 2, 3, 5, 8]), "place": place}}
    if head:
        spec["head"] = {"kind": head, "label": "y"}
    return spec, rng.random() < 0.25  # the second: squeeze the budget to the smallest legal one


def smallest_budget(folder, *options):
    """The capacity that the compiler names when asked for an impossible one; one byte less must fail, it must pass."""
    done = run(TERRACE, "compile", "model.yaml", "-o", "x", "--set", "memory.tiers.dram.capacity=1KiB", *options,
               cwd=folder, ok=False)
    if done.returncode == 0:
        return 1024
    match = re.search(r"smallest[^0-9]*([0-9]+) bytes", done.stderr)
    if not match:
        raise AssertionError(f"no smallest budget in the message: {done.stderr}")
    return int(match.group(1))


def build(folder, exe, squeeze, *options):
    """Compiles; with `squeeze` within the smallest budget that its own options allow."""
    if squeeze:
        budget = smallest_budget(folder, *options)
        if budget > 1024:
            less = run(TERRACE, "compile", "model.yaml", "-o", "x", "--set", f"memory.tiers.dram.capacity={budget - 1}B",
                       *options, cwd=folder, ok=False)
            if less.returncode == 0:
                raise AssertionError(f"{budget - 1} bytes were said to be too few and passed")
        options = (*options, "--set", f"memory.tiers.dram.capacity={budget}B")
    run(TERRACE, "compile", "model.yaml", "-o", exe, *options, cwd=folder)


def one(seed, steps, keep):
    spec, squeeze = make_spec(seed)
    with Folder() as folder:
        (folder / "model.yaml").write_text(json.dumps(spec))
        build(folder, "model", squeeze)
        reports = []
        exes = ["./model"]
        rng = random.Random(f"serve {seed}")  # of its own: the specs of seeds stay what they were
        if rng.random() < 1 / 3:
            dtype = rng.choice(["int8", "int8", "int4", "int4", "f16", "bf16", "f32"])
            build(folder, "served", squeeze, "--serve", "--set", f"serve.dtype={dtype}")
            exes.append("./served")
        for exe, cpu in ((exe, cpu) for exe in exes for cpu in ("x86-64-v3", "x86-64-v4")):
            done = run(exe, "verify", "--synthetic", seed, "--steps", steps, "--cpu", cpu, cwd=folder, ok=False)
            if "cannot run" in done.stderr and cpu == "x86-64-v4":
                continue
            if done.returncode != 0:
                if keep:
                    print((folder / "model.yaml").read_text())
                raise AssertionError(f"{exe} {cpu}: {done.stdout}{done.stderr}")
            reports.append(done.stdout.strip().splitlines()[-1])
        return reports


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="print the spec of a failure")
    options = parser.parse_args()
    failed, images = [], 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        seeds = range(options.seed, options.seed + options.count)
        jobs = {seed: pool.submit(one, seed, options.steps, options.keep) for seed in seeds}
        for seed, job in jobs.items():
            try:
                images += len(job.result())
            except (AssertionError, SystemExit, Exception) as error:  # noqa: BLE001 - report every seed
                failed.append(seed)
                print(f"seed {seed}: {error}", flush=True)
    print(f"seeds {seeds.start}..{seeds.stop - 1}: {options.count - len(failed)} of {options.count} specs equal, "
          f"{images} runs over the CPU images")
    if failed:
        sys.exit(f"failed seeds: {failed}")


if __name__ == "__main__":
    main()
