"""Space for retained checkpoints when all rows change between two; what is said where there is none, and with --fresh."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import copy
import json
import signal
import subprocess
import time

from harness import Folder, TERRACE, compile_spec, expect, run

ROWS, BATCH, EVERY = 1200, 64, 20  # a checkpoint's steps touch every row
SPEC = {
    "terrace": 1, "model": "keep", "seed": 3, "batch": {"size": BATCH},
    "features": [{"name": "user", "table": {"rows": ROWS, "dim": 16, "optimizer": {"kind": "adam", "lr": 0.01}}}],
    "head": {"kind": "fm", "label": "click"},
    "train": {"epochs": 4, "checkpoint": {"every": EVERY, "keep": 2}},
    "data": {"path": "clicks.tsv"}}
DISK = {
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "16MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]},
    "plan": {"place": [{"tables": "user", "home": "disk", "cache": {"dram": "64KiB"}}]}}


def compile_model(folder, name, on_disk=False, **checkpoint):
    spec = copy.deepcopy(SPEC)
    spec["train"]["checkpoint"].update(checkpoint)
    if on_disk:
        spec.update(DISK)
    (folder / f"{name}.yaml").write_text(json.dumps(spec))
    compile_spec(f"{name}.yaml", name, cwd=folder)


def checkpoints(folder, state):
    return sorted(f.name for f in (folder / state / "checkpoints").glob("ckpt-*"))


def train(folder, model, state, *options, steps=55, ok=True):
    return run(f"./{model}", "train", "--state", state, "--steps", steps, *options, cwd=folder, ok=ok)


def in_memory(folder):
    """A small table: room for whole copies, also beside the closed state that each run begins with."""
    for keep in (1, 2, 3):
        compile_model(folder, f"memory{keep}", keep=keep)
        for part in range(1, 5):
            done = train(folder, f"memory{keep}", f"m{keep}")
            expect("full" not in done.stderr, f"keep {keep}, run {part}: {done.stderr}")
            have = checkpoints(folder, f"m{keep}")
            expect(len(have) == min(keep, part * 55 // EVERY), f"keep {keep}, run {part}: {have}")


def on_disk(folder):
    """A tier has what churn says: too little of it is told, with the key, and the ways from there work."""
    compile_model(folder, "tier", on_disk=True, keep=3, churn=0.6)
    done = train(folder, "tier", "d", steps=200, ok=False)
    expect(done.returncode != 0, "rows of a full tier went somewhere")
    for part in ("is full", "train.checkpoint.churn", "--init-from", "on_full: drop_oldest"):
        expect(part in done.stderr, f"'{part}' is missing: {done.stderr}")
    expect(checkpoints(folder, "d"), "no checkpoint before the store was full")

    compile_model(folder, "larger", on_disk=True, keep=3, churn=1)
    train(folder, "larger", "e", "--init-from", "d", steps=EVERY)
    for _ in range(5):  # each from the closed state of the one before
        done = train(folder, "larger", "e", steps=EVERY)
        expect("full" not in done.stderr, done.stderr)
    expect(len(checkpoints(folder, "e")) == 3, "three are kept")

    compile_model(folder, "dropping", on_disk=True, keep=3, churn=0.6, on_full="drop_oldest")
    done = train(folder, "dropping", "d", steps=200)
    expect("a store is full: giving" in done.stderr, done.stderr)


def fresh(folder):
    """A state without a checkpoint is news, but not to who asks for it to be removed."""
    news = "was not closed and has no checkpoint"
    compile_model(folder, "plain", every=1000000)
    done = train(folder, "plain", "f", "--fresh")
    expect(news not in done.stderr, f"no state was there: {done.stderr}")
    for options in (["--fresh"], []):
        (folder / "f.json").unlink(missing_ok=True)
        child = subprocess.Popen(["./plain", "train", "--state", "f", "--fresh", "--epochs", "1000000"], cwd=folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and (folder / "f" / "closed.json").exists():
            time.sleep(0.02)
        time.sleep(0.3)
        child.send_signal(signal.SIGKILL)
        child.wait()
        done = train(folder, "plain", "f", *options)
        expect((news in done.stderr) == (not options), f"{options}: {done.stderr}")


def main():
    with Folder() as folder:
        with open(folder / "clicks.tsv", "w") as out:
            out.write("user\tclick\n")
            for i in range(BATCH * 250):
                out.write(f"{i * 7 % ROWS}\t{i % 3 // 2}\n")
        in_memory(folder)
        on_disk(folder)
        fresh(folder)


if __name__ == "__main__":
    main()
