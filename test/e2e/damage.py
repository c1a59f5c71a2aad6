"""Damaged, stale, full and read-only states: refused, or exactly what an undamaged run has; never a crash, never other values.

Every file of a state is deleted, cut, emptied, zeroed, lengthened and hit by flipped bits, and replaced by the same file of an
earlier moment. Then a disk that fills up and grows again, and a state on read-only media.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import random
import re
import shutil
import stat
import subprocess
import threading

from harness import Folder, TERRACE, expect, run, tree_bytes

BATCH = 16
SPEC = {
    "terrace": 1, "model": "damage", "seed": 5, "batch": {"size": BATCH}, "defaults": {"table": {"dim": 6}},
    "features": [
        {"name": "user", "table": {"rows": 300, "optimizer": {"kind": "adam", "lr": 0.01}}},
        {"name": "item", "table": {"rows": 900, "optimizer": {"kind": "adagrad", "lr": 0.1}}},
        {"name": "shop", "table": {"rows": 50}}],
    "head": {"kind": "fm", "label": "click"},
    "train": {"checkpoint": {"every": 10, "keep": 3}},
    "data": {"path": "clicks.tsv"},
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "16MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]},
    "plan": {"lookahead": 3, "place": [{"tables": "item", "home": "disk", "cache": {"dram": "2KiB"}},
                                       {"tables": "user", "home": "disk", "cache": {"dram": "2KiB"}}]}}


class Damage:
    def __init__(self, folder):
        self.folder, self.known, self.checked, self.refused = folder, {}, 0, 0

    def model(self, verb, state, *options, ok=True):
        return run("./model", verb, "--state", state, *options, cwd=self.folder, ok=ok)

    def step(self, state):
        return json.loads(self.model("info", state, "--json").stdout.splitlines()[-1])["step"]

    def undamaged(self, step):
        if step not in self.known:
            shutil.rmtree(self.folder / "whole", ignore_errors=True)
            self.model("train", "whole", "--steps", step)
            self.known[step] = self.model("predict", "whole").stdout
        return self.known[step]

    def check(self, what):
        """Reads the state, then trains on it: each refused in one line, or right."""
        self.checked += 1
        for train in (False, True):
            if train:
                done = self.model("train", "state", "--steps", 2, ok=False)
                done = done if done.returncode else self.model("predict", "state", ok=False)
            else:
                done = self.model("predict", "state", ok=False)
            if done.returncode == 0:
                expect(done.stdout == self.undamaged(self.step("state")), f"{what}: other values{' after training' if train else ''}")
            else:
                self.refused += 1
                expect(done.returncode == 1 and "error:" in done.stderr, f"{what}: exit {done.returncode}: {done.stderr}")


def write_data(path):
    rng = random.Random(5)
    with open(path, "w") as out:
        out.write("user\titem\tshop\tclick\n")
        for _ in range(BATCH * 100):
            user, item = int(rng.paretovariate(0.5)) % 300, int(rng.paretovariate(0.3)) % 900
            out.write(f"{user}\t{item}\t{rng.randrange(50)}\t{int(rng.random() < 0.3 + 0.4 * (item % 2))}\n")


def damage_files(d, rng):
    good, state = d.folder / "good", d.folder / "state"
    files = [f.relative_to(good) for f in sorted(good.rglob("*")) if f.is_file()]
    expect(len(files) >= 9, f"too few files: {files}")
    for file in files:
        data = (good / file).read_bytes()
        ways = {"empty": b"", "cut": data[:len(data) // 2], "zero": bytes(len(data)), "longer": data + b"xyz" * 1000, "gone": None}
        used = [at for at, byte in enumerate(data) if byte]
        for n in range(3):
            at = rng.choice(used)
            ways[f"bit {n} at {at}"] = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
        for what, text in ways.items():
            shutil.rmtree(state, ignore_errors=True)
            shutil.copytree(good, state)
            (state / file).unlink()
            if text is not None:
                (state / file).write_bytes(text)
            d.check(f"{file}: {what}")
            if "ckpt-" in str(file):  # not what a run takes by itself
                shutil.rmtree(state)
                shutil.copytree(good, state)
                (state / "closed.json").unlink()
                (state / file).unlink()
                if text is not None:
                    (state / file).write_bytes(text)
                d.check(f"{file}, no closed state: {what}")


def other_moments(d):
    """Each file as it was ten steps earlier, under the name that it has now."""
    good, state, old = d.folder / "good", d.folder / "state", d.folder / "old"
    shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(good, old)
    d.model("train", "good", "--steps", 10)

    def plain(name):  # without the number of the checkpoint
        return re.sub(r"-[0-9]+(\.|$)", r"\1", name)

    before = {plain(f.name): f for f in old.glob("*") if f.is_file()}
    pairs = [(f.relative_to(good), before[plain(f.name)]) for f in good.glob("*") if f.is_file() and plain(f.name) in before]
    names = sorted(p.name for p in good.glob("checkpoints/ckpt-*"))
    pairs.append((f"checkpoints/{names[-1]}/manifest.json", good / "checkpoints" / names[-2] / "manifest.json"))
    expect(len(pairs) >= 6, f"too few: {pairs}")
    for now, then in pairs:
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(good, state)
        shutil.copy(then, state / now)
        if "ckpt-" in str(now):
            (state / "closed.json").unlink()
        d.check(f"{now} as of ten steps before")


def mounted(path, *options):
    path.mkdir(exist_ok=True)
    return subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(path)], capture_output=True).returncode == 0


def full_disk(d):
    small = d.folder / "small"
    for size in (24, 60, 100, 150, 200, 260):
        if not mounted(small, "-o", f"size={size}k"):
            print("skipped: cannot mount a small tmpfs here")
            return
        try:
            failed, reported = 0, 0
            for _ in range(4):
                done = d.model("train", small / "s", "--steps", 12, "--json", ok=False)
                events = [json.loads(line) for line in done.stdout.splitlines()]
                reported = max([reported] + [e["step"] for e in events if e["event"] in ("checkpoint", "end") and not done.returncode])
                failed += done.returncode != 0
                expect(done.returncode == 0 or "space" in done.stderr, f"{size} KiB: {done.stderr}")
            run("mount", "-o", "remount,size=64m", small)
            step = d.step(small / "s") if d.model("predict", small / "s", ok=False).returncode == 0 else 0
            expect(step >= reported, f"{size} KiB: step {step} after {reported} was reported")
            d.model("train", small / "s", "--steps", 60 - step)
            expect(d.model("predict", small / "s").stdout == d.undamaged(60), f"{size} KiB: other values at the end")
            print(f"full disk of {size} KiB: {failed} of 4 runs ended; went on from step {step} with more space")
        finally:
            subprocess.run(["umount", "-l", str(small)], check=True)


def read_only(d):
    place = d.folder / "readonly"
    if not mounted(place):
        return
    try:
        shutil.copytree(d.folder / "good", place / "s")
        run("mount", "-o", "remount,ro", place)
        expect(d.model("predict", place / "s").stdout == d.undamaged(d.step(place / "s")), "read-only: other values")
        d.model("eval", place / "s")
        done = d.model("train", place / "s", "--steps", 1, ok=False)
        expect(done.returncode == 1 and "Read-only" in done.stderr, f"read-only: {done.stderr}")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def what_is_no_file(d):
    """predict --out writes into a pipe or through a link, and leaves them what they are."""
    pipe, link, target = d.folder / "pipe", d.folder / "link", d.folder / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    d.model("predict", "good", "--out", pipe)
    reader.join(10)
    expect(got == [d.undamaged(d.step("good"))] and stat.S_ISFIFO(pipe.stat().st_mode), "predict --out PIPE")
    d.model("predict", "good", "--out", link)
    expect(link.is_symlink() and target.read_text() == got[0], "predict --out LINK")


def main():
    with Folder() as folder:
        (folder / "model.yaml").write_text(json.dumps(SPEC))
        write_data(folder / "clicks.tsv")
        run(TERRACE, "compile", "model.yaml", "-o", "model", cwd=folder)
        d = Damage(folder)
        d.model("train", "good", "--steps", 25)
        damage_files(d, random.Random(1))
        other_moments(d)
        print(f"{d.checked} damaged states: {d.refused} of {2 * d.checked} looks refused, the others right")
        before = tree_bytes(folder / "good")
        read_only(d)
        what_is_no_file(d)
        expect(tree_bytes(folder / "good") == before, "reading changed the state")
        full_disk(d)


if __name__ == "__main__":
    main()
