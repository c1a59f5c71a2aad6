"""Files and streams that a command writes: never one of its inputs, whole or not there, and an error where they are lost.

Full disks are small tmpfs mounts, skipped where nothing can be mounted; `ulimit -f` needs no rights."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import resource
import signal
import subprocess
import sys
import time

from errors import SPEC, refused, rows
from harness import Folder, TERRACE, expect, run, tree_bytes


def limited(*args, cwd, blocks=100):
    """Under `ulimit -f`: files end at so many blocks of 1 KiB."""
    return subprocess.run([str(a) for a in args], cwd=cwd, text=True, capture_output=True, timeout=300,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (blocks * 1024, resource.RLIM_INFINITY)))


def ended(args, number, cwd, seen, times=1):
    """Starts a command, waits until seen() says that it is at work, sends the signal so often; the finished process."""
    child = subprocess.Popen([str(a) for a in args], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not seen() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    expect(child.poll() is None, f"ended before the signal: {child.returncode}, {args}")
    for _ in range(times):
        child.send_signal(number)
        time.sleep(0.001)  # or two are one
    out, err = child.communicate(timeout=120)
    return subprocess.CompletedProcess(args, child.returncode, out, err)


def names(folder):
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}


def same_tree(folder, before, *new):
    after = tree_bytes(folder)
    for name in new:
        after.pop(name, None)
    expect(set(after) == set(before), f"files came or went: {sorted(set(after) ^ set(before))}")
    for name in before:
        expect(after[name] == before[name], f"{name} changed")


def inputs(folder):
    print("no output is an input")
    os.link(folder / "model.yaml", folder / "hard.yaml")
    (folder / "soft.yaml").symlink_to("model.yaml")
    run(TERRACE, "compile", "model.yaml", "--emit=decision", "-o", "dec.yaml", cwd=folder)
    run(TERRACE, "data", "profile", "model.yaml", "-o", "prof.yaml", cwd=folder)
    (folder / "node.yaml").write_text(json.dumps({"terrace": 1, "memory": SPEC["memory"]}))
    (folder / "errors").write_text((folder / "model.yaml").read_text())  # the default output's name
    before = tree_bytes(folder)
    for out in ("model.yaml", "hard.yaml", "soft.yaml", f"../{folder.name}/model.yaml"):
        for emit in ("exe", "lib", "obj", "spec", "mlir", "decision", "plan", "artifact", "llvm"):
            done = run(TERRACE, "compile", "model.yaml", f"--emit={emit}", "-o", out, cwd=folder, ok=False)
            expect(done.returncode == 2, f"{emit} {out}: {done.returncode} {done.stderr}")
            refused(done, out, "model.yaml")
    for args in (("compile", "model.yaml", "--plan", "dec.yaml", "-o", "dec.yaml"),
                 ("compile", "model.yaml", "--profile", "prof.yaml", "--emit=plan", "-o", "prof.yaml"),
                 ("compile", "model.yaml", "--node", "node.yaml", "--emit=lib", "-o", "node.yaml"),
                 ("compile", "model.yaml", "-o", "clicks.tsv"), ("compile", "errors", "--set", "model=errors"),
                 ("data", "profile", "model.yaml", "-o", "model.yaml"),
                 ("data", "profile", "model.yaml", "-o", "clicks.tsv"),
                 ("import-torchrec", "prog.py:make", "-o", "prog.py"),
                 ("export", "s", "-o", "s/x.safetensors"), ("export", "s", "-o", "s/rows.store"),
                 ("export", "s", "--format", "npy", "-o", "s"), ("export", "s", "--format", "rows", "-o", "s/out"),
                 ("export", "s", "-o", ""), ("export", "s", "--format", "npy", "-o", ""),
                 ("compile", "model.yaml", "-o", ""), ("data", "generate", "retail", "--scale", "0.001", "-o", "")):
        done = run(TERRACE, *args, cwd=folder, ok=False)
        expect(done.returncode == 2, f"{args}: {done.returncode} {done.stderr}")
        refused(done)
    for args in (("--data", "clicks.tsv", "--out", "clicks.tsv"), ("--out", "./model"), ("--out", "s/p.txt"),
                 ("--out", "s/rows.store"), ("--out", "")):
        done = run("./model", "predict", "--state", "s", *args, cwd=folder, ok=False)
        expect(done.returncode == 2, f"{args}: {done.returncode} {done.stderr}")
        refused(done)
    same_tree(folder, before)


def streams(folder):
    print("lost output is an error, a reader that left is none")
    with open("/dev/full", "w") as full:
        for args in (("info",), ("eval",), ("predict",), ("verify", "--steps", "2"), ("bench", "--steps", "2"),
                     ("train", "--epochs", "2", "--state", "s2"), ("--help",)):
            for extra in ((), ("--json",)) if args[0] != "--help" else ((),):
                args += ("--state", "s") if "--state" not in args and args[0] != "--help" else ()
                done = subprocess.run(["./model", *args, *extra], cwd=folder, text=True, stdout=full, stderr=subprocess.PIPE)
                expect(done.returncode == 1, f"{args}: {done.returncode} {done.stderr}")
                expect(done.stderr.count("No space left") == 1, done.stderr)
        for args in (("explain", "model.yaml"), ("explain", "model.yaml", "--json"), ("compile", "model.yaml", "--emit=plan"),
                     ("rows", "s", "item", "3"), ("checkpoint", "ls", "s"), ("data", "head", "clicks.tsv"), ("--help",),
                     ("compile", "--help"), ("--version",)):
            done = subprocess.run([TERRACE, *args], cwd=folder, text=True, stdout=full, stderr=subprocess.PIPE)
            expect(done.returncode == 3, f"{args}: {done.returncode} {done.stderr}")
            expect("No space left" in done.stderr and "Stack dump" not in done.stderr, done.stderr)
    # The state was closed all the same.
    expect(json.loads(run("./model", "info", "--state", "s2", "--json", cwd=folder).stdout)["step"] == 200, "not closed")
    for args, state in ((("train", "--epochs", "1000000", "--state", "s3"), True), (("predict", "--state", "s"), False)):
        child = subprocess.Popen(["./model", *args], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.readline()
        child.stdout.close()
        expect(child.wait(timeout=60) == 141, f"{args}: {child.returncode}")
        expect("error" not in child.stderr.read(), f"{args} complains")
        if state:
            expect((folder / "s3" / "closed.json").exists(), "train left no closed state")
    done = subprocess.run(f"{TERRACE} explain model.yaml | true", shell=True, cwd=folder, text=True, capture_output=True)
    expect("Stack dump" not in done.stderr, done.stderr)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        state = folder / f"s-{number}"
        done = ended(["./model", "train", "--epochs", "1000000", "--state", state.name], number, folder,
                     (state / "rows.store").exists)
        expect(done.returncode == 128 + number, f"{number}: {done.returncode} {done.stderr}")
        expect((state / "closed.json").exists(), f"{number}: no closed state")


def small_files(folder):
    print("a limit of file sizes is an error")
    before = tree_bytes(folder)
    for args in ((TERRACE, "compile", "model.yaml", "-o", "new"), (TERRACE, "compile", "wide.yaml", "--emit=lib", "-o", "new.so"),
                 (TERRACE, "compile", "wide.yaml", "--emit=spec", "-o", "new.yaml"),
                 (TERRACE, "export", "s", "-o", "new.safetensors"), (TERRACE, "export", "s", "--format", "npy", "-o", "new"),
                 (TERRACE, "export", "s", "--format", "rows", "-o", "new"), (TERRACE, "checkpoint", "import", "portable", "new"),
                 (TERRACE, "data", "generate", "retail", "--scale", "0.1", "-o", "new"),
                 ("./model", "train", "--state", "new"), ("./model", "verify", "--state", "s"), ("./model", "bench", "--state", "s")):
        done = limited(*args, cwd=folder, blocks=40)
        expect(done.returncode in (1, 3), f"{args}: {done.returncode} {done.stderr}")
        refused(done)
        if args[1] not in ("train", "checkpoint"):
            same_tree(folder, before, *[n for n in names(folder) if n.startswith("new/") and args[1] == "export" and
                                        not n.endswith((".part", ".npy", "checkpoint.json"))])
        subprocess.run(["rm", "-rf", str(folder / "new")], check=True)
    done = limited("./model", "predict", "--state", "s", "--out", "new.txt", cwd=folder, blocks=8)
    refused(done)
    same_tree(folder, before)


def full_disk(folder):
    print("a full disk leaves nothing half-written")
    small = folder / "disk"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)], capture_output=True).returncode:
        print("  skipped: cannot mount a small tmpfs here")
        return
    try:
        (small / "old").write_text("as it was")
        (small / "fill").write_bytes(bytes(220 * 1024))
        for emit in ("exe", "lib", "obj", "mlir", "plan", "artifact", "spec"):
            done = run(TERRACE, "compile", "wide.yaml", f"--emit={emit}", "-o", small / "old", cwd=folder, ok=False)
            expect(done.returncode == 3, f"{emit}: {done.returncode} {done.stderr}")
            refused(done, "space")
            expect(names(small) == {"old", "fill"} and (small / "old").read_text() == "as it was", f"{emit}: {names(small)}")
        for args in ((TERRACE, "export", "s", "-o", small / "old"),
                     (TERRACE, "data", "generate", "retail", "--scale", "0.1", "-o", small),
                     ("./model", "predict", "--state", "s", "--out", small / "old")):
            refused(run(*args, cwd=folder, ok=False), "space")
            expect(names(small) == {"old", "fill"}, f"{args}: {names(small)}")
        with open("/dev/zero", "rb") as zeros:
            subprocess.run(["dd", f"of={small / 'fill'}", "bs=4k"], stdin=zeros, capture_output=True)  # to the brim
        refused(run(TERRACE, "init", "-o", small / "new.yaml", cwd=folder, ok=False), "space")
        expect(names(small) == {"old", "fill"}, f"init: {names(small)}")
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def interrupted(folder):
    print("an interrupted command takes its unfinished files away")
    new = folder / "made"
    new.mkdir()

    def begun():
        return any(f.suffix in (".part", ".tmp") for f in new.iterdir())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        done = ended([TERRACE, "data", "generate", "retail", "-o", new], number, folder, begun)
        expect(done.returncode == -number, f"{done.returncode} {done.stderr}")
        expect(names(new) == set(), f"left: {names(new)}")
    # A program that saves its state at a signal ends at once at the second.
    header, lines = rows(3200).split("\n", 1)
    (folder / "long.tsv").write_text(header + "\n" + lines * 300)
    for times in (1, 2, 2, 2):
        done = ended(["./model", "predict", "--state", "s", "--data", "long.tsv", "--out", new / "p.txt"], signal.SIGINT, folder, begun, times)
        expect(done.returncode in (128 + signal.SIGINT, -signal.SIGINT), f"{done.returncode} {done.stderr}")
        expect(names(new) == set(), f"left: {names(new)}")


def scratch(folder):
    print("scratch runs leave absolute tier paths alone")
    store = folder / "outside" / "big.store"
    store.parent.mkdir()
    run(TERRACE, "compile", "model.yaml", "--set", f"memory.tiers.disk.path={store}", "-o", "abs", cwd=folder)
    for verb in ("verify", "bench"):
        run("./abs", verb, "--steps", "5", "--state", "t", cwd=folder)
        expect(not store.exists() and not (folder / "t").exists(), f"{verb} touched {store}")
    run("./abs", "train", "--state", "t", cwd=folder)
    before = store.read_bytes()
    for verb in ("verify", "bench"):
        run("./abs", verb, "--steps", "5", "--state", "t", cwd=folder)
    expect(store.read_bytes() == before, "a scratch run changed the state's rows")
    refused(run("./abs", "predict", "--state", "t", "--out", store, cwd=folder, ok=False), "big.store")
    refused(run(TERRACE, "export", "t", "-o", store, cwd=folder, ok=False), "big.store")
    run("./abs", "eval", "--state", "t", cwd=folder)
    expect(not list(folder.glob("*scratch*")), "a scratch folder is left")


def main():
    with Folder() as folder:
        (folder / "model.yaml").write_text(json.dumps(SPEC))
        (folder / "wide.yaml").write_text(json.dumps(
            {**SPEC, "features": [{"name": f"f{i}", "table": {"rows": 1000, "dim": 8}} for i in range(400)],
             "plan": {}, "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "1GiB"}]}}))
        (folder / "clicks.tsv").write_text(rows(3200))
        (folder / "prog.py").write_text("def make():\n    raise SystemExit(3)\n")
        run(TERRACE, "compile", "model.yaml", "-o", "model", cwd=folder)
        run("./model", "train", "--state", "s", cwd=folder)
        run("./model", "train", "--state", "s2", cwd=folder)
        run(TERRACE, "export", "s", "--format", "rows", "-o", "portable", cwd=folder)
        wanted = sys.argv[1:]
        for part in (inputs, streams, small_files, full_disk, interrupted, scratch):
            if not wanted or part.__name__ in wanted:
                part(folder)


if __name__ == "__main__":
    main()
