"""The verbs over states, on a state that a compiled model trained: what they say is what the model would read."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import random
import shutil
import signal
import subprocess
import time

import arrays
from harness import Folder, TERRACE, expect, run, tree_bytes

BATCH = 32
SPEC = {
    "terrace": 1, "model": "shop", "seed": 11, "batch": {"size": BATCH}, "defaults": {"table": {"dim": 12}},
    "features": [
        {"name": "user", "table": {"rows": 2000, "optimizer": {"kind": "adam", "lr": 0.01}}},
        {"name": "item", "table": {"rows": 30000, "optimizer": {"kind": "adagrad", "lr": 0.1}}},
        {"name": "word", "type": "string", "table": {"rows": 500, "ids": "hash"}}],
    "head": {"kind": "fm", "label": "click"},
    "train": {"checkpoint": {"every": 20, "keep": 3}},
    "data": {"path": "clicks.tsv"},
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "32MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]},
    "plan": {"lookahead": 3, "place": [{"tables": "item", "home": "disk", "cache": {"dram": "16KiB"}}]}}
STATES = {"user": {"exp_avg": 12, "exp_avg_sq": 12}, "item": {"sum": 12}, "word": {"sum": 1}}


def write_data(path):
    rng = random.Random(8)
    with open(path, "w") as out:
        out.write("user\titem\tword\tclick\n")
        for _ in range(BATCH * 200):
            item = int(rng.paretovariate(0.3)) % 30000
            out.write(f"{int(rng.paretovariate(0.5)) % 2000}\t{item}\tw{rng.randrange(90)}\t{int(rng.random() < 0.3 + 0.4 * (item % 2))}\n")


class States:
    def __init__(self, folder):
        self.folder = folder

    def terrace(self, *args, code=0):
        done = run(TERRACE, *args, cwd=self.folder, ok=False)
        expect(done.returncode == code, f"terrace {' '.join(map(str, args))}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def json(self, *args, code=0):
        return json.loads(self.terrace(*args, "--json", code=code).stdout)

    def error(self, *args, code=1):
        done = self.terrace(*args, code=code)
        expect(not done.stdout and done.stderr.startswith("error: "), f"{args}: {done.stdout}{done.stderr}")
        return done.stderr

    def model(self, *args):
        return run("./model", *args, cwd=self.folder)

    def export(self, name, *options):
        self.terrace("export", "shop.state", "--format", "npy", "-o", name, *options)
        return arrays.npy_folder(self.folder / name)


def exports(s):
    before = tree_bytes(s.folder / "shop.state")
    at = {step: s.export(f"at{step}", "--at", step) for step in (20, 40)}
    names = set(STATES) | {f"{t}.{n}" for t, slots in STATES.items() for n in slots}
    expect(set(at[40]) == names, f"arrays: {sorted(at[40])}")
    s.terrace("export", "shop.state", "--at", "ckpt-40", "-o", "at40.safetensors")
    expect(arrays.safetensors(s.folder / "at40.safetensors") == at[40], "safetensors and npy differ")
    rng = random.Random(1)
    for table in ("user", "item"):
        rows = [rng.randrange(len(at[40][table])) for _ in range(40)] + [0, 1, len(at[40][table]) - 1]
        shown = s.json("rows", "shop.state", table, *rows, "--at", 40, "--state")
        expect(shown["step"] == 40 and [r["row"] for r in shown["rows"]] == rows, "rows in another order")
        written = 0
        for r in shown["rows"]:
            written += r["written"]
            expect(r["weights"] == arrays.floats(at[40][table][r["row"]]), f"{table} {r['row']}: rows and export differ")
            for slot in STATES[table]:
                expect(r[slot] == arrays.floats(at[40][f"{table}.{slot}"][r["row"]]), f"{table}.{slot} {r['row']}")
        expect(0 < written < len(rows), f"{table}: {written} of {len(rows)} written")
    word = s.json("rows", "shop.state", "word", "w7", "--strings", "--at", "40")["rows"][0]
    expect(word["id"] == "w7" and word["written"], f"a word by its text: {word}")
    expect(word["weights"] == arrays.floats(at[40]["word"][word["row"]]), "a word's row")

    delta = s.export("delta", "--at", 40, "--since", 20)
    for table, slots in STATES.items():
        ids = delta[f"{table}.ids"]
        parts = [table] + [f"{table}.{n}" for n in slots]
        changed = [i for i in range(len(at[40][table])) if any(at[20][p][i] != at[40][p][i] for p in parts)]
        expect(ids == changed and 0 < len(ids) < len(at[40][table]), f"{table}: {len(ids)} ids, {len(changed)} rows changed")
        for p in parts:
            expect(delta[p] == [at[40][p][i] for i in ids], f"{p}: values since")
    diff = s.json("checkpoint", "diff", "shop.state", 20, 40)
    expect(not diff["same"] and diff["before"]["step"] == 20 and diff["after"]["step"] == 40, f"diff: {diff}")
    for t in diff["tables"]:
        pairs = zip(at[20][t["table"]], at[40][t["table"]])
        most = max(abs(x - y) for a, b in pairs if a != b for x, y in zip(arrays.floats(a), arrays.floats(b)))
        expect(t["max_abs_weights"] == most and t["only_before"] == 0, f"diff: {t}, {most}")
        expect(t["changed"] + t["only_after"] >= len(delta[f"{t['table']}.ids"]), f"diff: {t}")
    expect(s.json("checkpoint", "diff", "shop.state", 40, 40)["same"], "a checkpoint differs from itself")
    expect("step    20 -> 40" in s.terrace("checkpoint", "diff", "shop.state", 20, 40).stdout, "diff as text")
    expect(tree_bytes(s.folder / "shop.state") == before, "looking at a state changed it")
    print("export, since, rows and diff agree with each other")


def listing(s):
    roots = s.json("checkpoint", "ls", "shop.state")["roots"]
    expect([r["name"] for r in roots] == ["ckpt-20", "ckpt-40", "ckpt-60", "closed"], f"ls: {roots}")
    expect([r["step"] for r in roots] == [20, 40, 60, 70], f"ls: {roots}")
    expect(all(r["new_bytes"] > 0 and r["rows"] > 0 and r["date"].startswith("20") for r in roots), f"ls: {roots}")
    expect(roots[0]["new_bytes"] > roots[3]["new_bytes"], f"ls: {roots}")
    expect("ckpt-60" in s.terrace("checkpoint", "ls", "shop.state").stdout, "ls as text")
    for root in ("20", "ckpt-60", "closed"):
        s.terrace("checkpoint", "verify", "shop.state", root)
    clean = s.json("checkpoint", "scrub", "shop.state")
    expect(clean["ok"] and len(clean["roots"]) == 4 and clean["newest_sound"] == "closed", f"scrub: {clean}")
    print("ls, verify and scrub of a sound state")


def damage(s):
    shutil.copytree(s.folder / "shop.state", s.folder / "hurt")
    stores = sorted((s.folder / "hurt").glob("rows.store*"))
    expect(len(stores) == 1, f"stores: {stores}")
    data = bytearray(stores[0].read_bytes())
    used = [at for at in range(8192, len(data), 4096) if any(data[at:at + 4096])]
    for at in random.Random(2).sample(used, min(16, len(used))):
        data[at + 100] ^= 16
    stores[0].write_bytes(data)
    scrub = s.json("checkpoint", "scrub", "hurt", code=1)
    lost = [p for p in scrub["problems"] if "row" in p]
    expect(not scrub["ok"] and lost and all(p["table"] == "item" for p in lost), f"scrub: {scrub}")
    first = lost[0]
    text = s.terrace("checkpoint", "verify", "hurt", first["root"], code=1).stdout
    expect(f"table 'item', row {first['row']}: " in text, f"verify: {text}")
    expect("check" in s.error("rows", "hurt", "item", first["row"], "--at", first["root"]), "rows of a lost row")
    s.error("export", "hurt", "--at", first["root"], "--format", "npy", "-o", "hurt-out")
    expect(not (s.folder / "hurt-out").exists(), "a failed export left something behind")
    s.terrace("rows", "hurt", "user", 1, "--at", first["root"])  # what is sound is read
    (s.folder / "hurt/checkpoints/ckpt-40/manifest.json").write_text("{\"crc32c\": 1}")
    bad = [r for r in s.json("checkpoint", "ls", "hurt")["roots"] if "damaged" in r]
    expect([r["name"] for r in bad] == ["ckpt-40"], f"ls: {bad}")
    # Every file of a state, cut and zeroed: messages, never crashes.
    for file in sorted(f.relative_to(s.folder / "shop.state") for f in (s.folder / "shop.state").rglob("*") if f.is_file()):
        for how in ("cut", "zero", "gone"):
            shutil.rmtree(s.folder / "hurt")
            shutil.copytree(s.folder / "shop.state", s.folder / "hurt")
            path = s.folder / "hurt" / file
            size = path.stat().st_size
            path.unlink() if how == "gone" else path.write_bytes(b"\0" * (size // 2 if how == "cut" else size))
            done = run(TERRACE, "checkpoint", "scrub", "hurt", "--json", cwd=s.folder, ok=False)
            expect(done.returncode in (0, 1, 3) and "ok" in json.loads(done.stdout), f"{file} {how}: {done.stderr}")
            # Which rows a cache had is no part of the state: without it the next open starts cold.
            if (str(file) != "manifest.json" or how != "gone") and file.suffix != ".resident":
                expect(done.returncode != 0 or how == "gone", f"{file} {how}: not noticed")
    print(f"{len(lost)} lost rows found; every file cut, zeroed and gone")


def portable(s):
    s.terrace("export", "shop.state", "--format", "rows", "-o", "portable")
    s.terrace("checkpoint", "import", "portable", "copy.state")
    diff = s.json("checkpoint", "diff", "shop.state", "copy.state")
    expect(diff["same"], f"the imported state differs: {diff}")
    for state in ("shop.state", "copy.state"):
        s.model("predict", "--state", state, "--out", f"{state}.txt")
    expect((s.folder / "shop.state.txt").read_text() == (s.folder / "copy.state.txt").read_text(), "predictions differ")
    for state in ("shop.state", "copy.state"):
        s.model("train", "--state", state, "--steps", 15)
    expect(s.json("checkpoint", "diff", "shop.state", "copy.state")["same"], "trained on, they differ")
    expect("holds a state" in s.error("checkpoint", "import", "portable", "copy.state"), "import over a state")
    expect("checkpoint.json" in s.error("checkpoint", "import", "at20", "x.state"), "import of arrays")
    print("a portable checkpoint becomes a state that predicts and trains on, bit for bit")


def compact(s):
    whole = s.export("before")
    done = s.json("checkpoint", "compact", "copy.state")
    expect(done["kept"] == "closed" and done["bytes_after"] <= done["bytes_before"], f"compact: {done}")
    expect([r["name"] for r in s.json("checkpoint", "ls", "copy.state")["roots"]] == ["closed"], "compact keeps one")
    s.terrace("export", "copy.state", "--format", "npy", "-o", "after")
    expect(arrays.npy_folder(s.folder / "after") == whole, "compact changed rows")
    s.model("train", "--state", "copy.state", "--steps", 3)
    print("compact keeps the newest")


def errors(s):
    expect("there is no state at 'nowhere'" in s.error("checkpoint", "ls", "nowhere"), "no state")
    for verb in (("checkpoint", "ls"), ("checkpoint", "scrub"), ("checkpoint", "verify")):
        expect("is no state" in s.error(*verb, "at20"), f"{verb} of a folder that is no state")
    expect("there are: ckpt-" in s.error("checkpoint", "verify", "shop.state", "ckpt-7"), "no checkpoint")
    expect("there are: " in s.error("rows", "shop.state", "usr", 1), "no table")
    expect("rows 0 .. 1999, not 2000" in s.error("rows", "shop.state", "user", 2000), "no row")
    expect("is no id" in s.error("rows", "shop.state", "user", "x"), "no number")
    expect("did you mean 'npy'" in s.error("export", "shop.state", "--format", "npi", "-o", "x", code=2), "no format")
    expect("--since" in s.error("export", "shop.state", "--format", "rows", "--since", 20, "-o", "x", code=2), "since of rows")
    expect("folder of a state" in s.error("export", "shop.state", "--format", "npy", "-o", "shop.state", code=2), "into the state")
    refused = s.json("rows", "shop.state", "user", 5000, code=1)
    expect(not refused["ok"] and "not 5000" in refused["diagnostics"][0]["message"], f"as JSON: {refused}")
    trainer = subprocess.Popen(["./model", "train", "--state", "busy.state", "--set", "train.epochs=1000"], cwd=s.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            if (s.folder / "busy.state" / "rows.store").exists():
                break
            time.sleep(0.1)
        expect("open in another process" in s.error("checkpoint", "ls", "busy.state", code=3), "a trainer excludes")
    finally:
        trainer.send_signal(signal.SIGKILL)
        trainer.wait()
    small = s.folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80k", "tmpfs", str(small)], capture_output=True).returncode:
        print("skipped: cannot mount a small tmpfs here")
        return
    try:
        for form, out in (("npy", "small/x"), ("safetensors", "small/x.safetensors"), ("rows", "small/y")):
            expect("space" in s.error("export", "shop.state", "--format", form, "-o", out, code=3), f"{form}: full disk")
            expect(not list(small.iterdir()), f"{form}: half files on a full disk: {list(small.rglob('*'))}")
    finally:
        run("umount", small)
    print("errors say what there is; a full disk keeps no half file")


def main():
    with Folder() as folder:
        (folder / "model.yaml").write_text(json.dumps(SPEC))
        write_data(folder / "clicks.tsv")
        run(TERRACE, "compile", "model.yaml", "-o", "model", cwd=folder)
        s = States(folder)
        s.model("train", "--steps", 70)
        listing(s)
        exports(s)
        damage(s)
        errors(s)
        portable(s)
        compact(s)


if __name__ == "__main__":
    main()
