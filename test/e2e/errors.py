"""What goes wrong in a user's hands: each a one-line error, exit code not 0, and nothing damaged."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import gzip
import json
import pathlib
import subprocess
import sys

from harness import Folder, TERRACE, expect, run, tree_bytes

SPEC = {
    "terrace": 1, "model": "errors", "batch": {"size": 32},
    "features": [{"name": "user", "table": {"rows": 1000, "dim": 8}},
                 {"name": "item", "table": {"rows": 5000, "dim": 8}}],
    "head": {"kind": "fm", "label": "click"},
    "data": {"path": "clicks.tsv"},
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "16MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]},
    "plan": {"lookahead": 2, "place": [{"tables": "item", "home": "disk", "cache": {"dram": "4KiB"}}]}}


def rows(count, bad=None):
    lines = ["user\titem\tclick"] + [f"{i * 7 % 1000}\t{i * 13 % 5000}\t{i % 2}" for i in range(count)]
    for line, text in (bad or {}).items():
        lines[line] = text
    return "\n".join(lines) + "\n"


def refused(done, *words):
    """A clear refusal: an error exit, one line that holds the words, no trace of a crash."""
    text = done.stderr.strip()
    expect(done.returncode not in (0, 77) and done.returncode > 0, f"exit {done.returncode}: {done.stdout}{done.stderr}")
    for crash in ("terminate called", "Assertion", "Stack dump", "Traceback", "core dumped"):
        expect(crash not in text, text)
    lines = [line for line in text.splitlines() if "error" in line.lower()]
    expect(len(lines) >= 1, f"no error line in: {text}")
    for word in words:
        expect(word.lower() in text.lower(), f"'{word}' is not in: {text}")
    print("  " + lines[0][:200])


def main():
    with Folder() as folder:
        spec = folder / "model.yaml"
        spec.write_text(json.dumps(SPEC))
        (folder / "clicks.tsv").write_text(rows(3200))
        run(TERRACE, "compile", spec, "-o", "model", cwd=folder)

        print("bad specs")
        (folder / "bad.yaml").write_text("terrace: 1\nfeatures:\n- {name: a, table: {rows: 10, dmi: 4}}\n- {name: b, pooling: avg}\n")
        done = run(TERRACE, "compile", "bad.yaml", "-o", "x", cwd=folder, ok=False)
        refused(done, "bad.yaml:3", "dim", "bad.yaml:4", "avg")
        refused(run(TERRACE, "compile", "missing.yaml", "-o", "x", cwd=folder, ok=False), "missing.yaml")
        refused(run(TERRACE, "compile", spec, "--set", "workers=4", "-o", "x", cwd=folder, ok=False), "workers")

        print("bad data")
        run("./model", "train", "--fresh", "--state", "s", cwd=folder)
        before = tree_bytes(folder / "s")
        for name, bad, words in (
                ("id", {40: "5\t5000\t1"}, ["item", "5000"]), ("negative", {40: "-3\t1\t1"}, ["user", "-3"]),
                ("text", {40: "5\tabc\t1"}, ["41", "abc"]), ("columns", {40: "5\t1"}, ["41"]),
                ("label", {40: "5\t1\t2"}, ["41", "2"])):
            (folder / f"{name}.tsv").write_text(rows(3200, bad))
            refused(run("./model", "train", "--fresh", "--state", f"s-{name}", "--data", f"{name}.tsv", cwd=folder, ok=False), *words)
        whole = gzip.compress(rows(3200).encode())
        (folder / "cut.tsv.gz").write_bytes(whole[:len(whole) // 2])
        refused(run("./model", "train", "--fresh", "--state", "s-cut", "--data", "cut.tsv.gz", cwd=folder, ok=False), "cut.tsv.gz", "truncated")
        (folder / "other.tsv").write_text("a\tb\n1\t2\n")
        refused(run("./model", "train", "--state", "s", "--data", "other.tsv", cwd=folder, ok=False), "user")
        refused(run("./model", "train", "--state", "s", "--data", "nowhere.tsv", cwd=folder, ok=False), "nowhere.tsv")

        print("bad states")
        refused(run("./model", "train", "--state", "/dev/null/s", cwd=folder, ok=False), "/dev/null/s")
        refused(run("./model", "eval", "--state", "nothing", cwd=folder, ok=False), "nothing")
        run(TERRACE, "compile", spec, "--set", "features.item.table.dim=4", "--set", "features.user.table.dim=4", "-o", "other", cwd=folder)
        refused(run("./other", "train", "--state", "s", cwd=folder, ok=False), "init-from")
        refused(run("./model", "train", "--state", "s", "--set", "batch.size=8", cwd=folder, ok=False), "batch.size")
        after = tree_bytes(folder / "s")
        for name in before:
            if not name.endswith((".json", "lock")):
                expect(after.get(name) == before[name], f"{name} of the state changed")

        print("full disk")
        small = folder / "small"
        small.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(small)], capture_output=True).returncode == 0
        if mounted:
            try:
                refused(run("./model", "train", "--fresh", "--state", small / "s", cwd=folder, ok=False), "space")
            finally:
                subprocess.run(["umount", "-l", str(small)], check=True)
        else:
            print("  skipped: cannot mount a small tmpfs here")
        run("./model", "eval", "--state", "s", cwd=folder)
        print("the good state still evaluates")


if __name__ == "__main__":
    main()
