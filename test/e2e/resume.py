"""train 200 steps = train 100, stop, resume 100, bit for bit; also after kill -9, from the last checkpoint."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import signal
import subprocess
import time

from harness import Folder, TERRACE, expect, json_lines, run

SPEC = {
    "terrace": 1, "model": "resume", "seed": 3, "batch": {"size": 64},
    "defaults": {"table": {"dim": 12}},
    "features": [
        {"name": "user", "table": {"rows": 20000, "optimizer": {"kind": "adam", "lr": 0.01}}},
        {"name": "item", "table": {"rows": 50000, "optimizer": {"kind": "adagrad", "lr": 0.1}}}],
    "head": {"kind": "fm", "label": "click"},
    "train": {"checkpoint": {"every": 50, "keep": 2}, "lr_schedule": {"warmup_steps": 150}},
    "data": {"path": "clicks.tsv.gz"},
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "16MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]},
    "plan": {"lookahead": 3, "place": [{"tables": "item", "home": "disk", "cache": {"dram": "16KiB"}}]}}


def write_data(path, samples):
    import gzip
    import random
    rng = random.Random(5)
    with gzip.open(path, "wt") as out:
        out.write("user\titem\tclick\n")
        for _ in range(samples):
            user, item = int(rng.paretovariate(0.5)) % 20000, int(rng.paretovariate(0.3)) % 50000
            out.write(f"{user}\t{item}\t{int(rng.random() < 0.3 + 0.4 * (item % 2))}\n")


def rows_of(folder, state):
    """Every row and optimizer state of every table, as `terrace export` writes them."""
    run(TERRACE, "export", state, "--format", "npy", "-o", f"{state}.npy", cwd=folder)
    # export.json names the root: a run that was killed after its last step has a checkpoint where others are closed.
    return {f.name: f.read_bytes() for f in sorted((folder / f"{state}.npy").glob("*.npy"))}


def same_state(folder, a, b, what):
    left, right = rows_of(folder, a), rows_of(folder, b)
    expect(left.keys() == right.keys(), f"{what}: files differ: {sorted(left)} and {sorted(right)}")
    expect(left, f"{what}: no tables in {a}")
    for name in left:
        expect(left[name] == right[name], f"{what}: {name} differs")
    for state in (a, b):
        run("./model", "predict", "--state", state, "--out", f"{state}.txt", cwd=folder)
    expect((folder / f"{a}.txt").read_text() == (folder / f"{b}.txt").read_text(), f"{what}: predictions differ")


def main():
    with Folder() as folder:
        (folder / "model.yaml").write_text(json.dumps(SPEC))
        write_data(folder / "clicks.tsv.gz", 64 * 200 + 17)
        run(TERRACE, "compile", "model.yaml", "-o", "model", cwd=folder)
        run("./model", "train", "--state", "whole", "--steps", 200, cwd=folder)
        run("./model", "train", "--state", "parts", "--steps", 100, cwd=folder)
        run("./model", "train", "--state", "parts", "--steps", 100, cwd=folder)
        same_state(folder, "whole", "parts", "stop and resume")
        print("train 200 = train 100 + resume 100: every row of every table equal")

        run("./model", "train", "--state", "warm", "--steps", 100, cwd=folder)
        out = run("./model", "train", "--state", "warm", "--warm", "--steps", 100, "--json", cwd=folder).stdout
        start = next(line for line in json_lines(out) if line["event"] == "start")
        expect(sum(g.get("warmed", 0) for g in start["stats"]["groups"]) > 0, "the cache did not start warm")
        same_state(folder, "whole", "warm", "stop and warm resume")
        print("the same with a warm cache")

        run("./model", "train", "--state", "killed", "--steps", 100, cwd=folder)
        for delay in (0.0, 0.02, 0.05):
            process = subprocess.Popen(["./model", "train", "--state", "killed", "--steps", "100"], cwd=folder,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
        info = json.loads(run("./model", "info", "--state", "killed", "--json", cwd=folder).stdout.splitlines()[-1])
        expect(0 < info["step"] <= 200, f"step after the kills: {info['step']}")
        if info["step"] < 200:
            run("./model", "train", "--state", "killed", "--steps", 200 - info["step"], cwd=folder)
        same_state(folder, "whole", "killed", "kill and resume")
        print(f"killed three times, resumed from step {info['step']}: every row of every table equal")


if __name__ == "__main__":
    main()
