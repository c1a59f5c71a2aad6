"""train 200 steps = train 100, stop, resume 100, bit for bit; also after kill -9, from the last checkpoint."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import signal
import subprocess
import time

from harness import Folder, TERRACE, expect, run

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


def rows_of(state):
    """The payload of every stored record: the 8-byte headers are sealed with a key of each store."""
    records = {}
    for group in json.loads((state / "closed.json").read_text())["groups"]:
        expect(len(group["extents"]) == 1, "one path, one extent")
        extent = group["extents"][0]
        with open(state / extent["path"], "rb") as file:
            file.seek(extent["base"])
            data = file.read(group["rows"] * group["store_bytes"])
        name = str(group["tables"])
        records[name] = [data[at + 8:at + 8 + group["payload_bytes"]] for at in range(0, len(data), group["store_bytes"])]
    return records


def same_state(folder, a, b, what):
    left, right = rows_of(folder / a), rows_of(folder / b)
    expect(left.keys() == right.keys(), f"{what}: files differ: {sorted(left)} and {sorted(right)}")
    expect(left, f"{what}: no row files in {a}")
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
        print("train 200 = train 100 + resume 100: every row file equal")

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
        print(f"killed three times, resumed from step {info['step']}: every row file equal")


if __name__ == "__main__":
    main()
