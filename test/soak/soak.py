#!/usr/bin/env python3
"""soak.py - Hours in minutes: training, checkpoints, cleaning and faults, with every bound watched.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A model whose tables lie on a full log behind small caches trains in lives that end by kill -9 or SIGTERM and go on from what is there; in between
the disk of its checkpoints is full for a while. After each life the state must be a checkpoint that was begun, verify, and equal, row for row, a
shadow that trains the same steps in memory and is never interrupted. See README.md for what is judged.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TERRACE_BUILD", ROOT / "build"))
TERRACE = BUILD / "bin" / "terrace"

ITEMS, USERS, BATCH, KEEP = 300000, 100000, 256, 2
MIB = 2**20
SLOPE = 1.0  # MiB a minute


def spec(rows_file, home):
    place = ([{"tables": "item", "home": "disk", "cache": {"dram": "4MiB"}},
              {"tables": "user", "home": "disk", "cache": {"dram": "2MiB"}}] if home == "disk"
             else [{"tables": "*", "home": "dram"}])
    return {
        "terrace": 1, "model": "soak", "seed": 7, "batch": {"size": BATCH},
        "features": [
            {"name": "item", "pooling": "sum", "max_ids": 12,
             "table": {"rows": ITEMS, "dim": 16, "optimizer": {"kind": "adagrad", "lr": 0.05}}},
            {"name": "user", "table": {"rows": USERS, "dim": 16, "optimizer": {"kind": "rowwise_adagrad", "lr": 0.05}}},
            {"name": "shop", "table": {"rows": 3000, "dim": 16, "optimizer": {"kind": "adam", "lr": 0.001}}}],
        "head": {"kind": "fm", "label": "click"},
        "train": {"checkpoint": {"every": "3s", "keep": KEEP, "on_full": "drop_oldest"}},
        "data": {"path": "clicks.tsv", "list_sep": ","},
        "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "1GiB"},
                             {"name": "disk", "kind": "nvme", "capacity": "4GiB", "path": str(rows_file)}]},
        "plan": {"lookahead": 3, "place": place}}


def write_data(path, seed):
    rng = random.Random(seed)
    with open(path, "w") as out:
        out.write("item\tuser\tshop\tclick\n")
        for _ in range(40000):
            ids = ",".join(str(int(ITEMS * rng.random() ** 3)) for _ in range(rng.randrange(4, 13)))
            out.write(f"{ids}\t{rng.randrange(USERS)}\t{rng.randrange(3000)}\t{rng.randrange(2)}\n")


# Writes and syncs of small files of the state fail with ENOSPC or EIO (FULL_ERROR) while the file FULL_WHEN is there.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int hit(int fd) {
  const char *when = getenv("FULL_WHEN");
  if (!when || access(when, F_OK) != 0) return 0;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  if (!strstr(path, "/index-") && !strstr(path, "/checkpoints/")) return 0;
  errno = ENOSPC;
  return 1;
}
ssize_t write(int fd, const void *data, size_t bytes) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  return hit(fd) ? -1 : real(fd, data, bytes);
}
int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return hit(fd) ? -1 : real(fd);
}
int fdatasync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return hit(fd) ? -1 : real(fd);
}
"""


class Broken(Exception):
    """A promise that was not kept."""


def run(*args, cwd, ok=True):
    done = subprocess.run([str(a) for a in args], cwd=cwd, text=True, capture_output=True, timeout=1800)
    if ok and done.returncode != 0:
        raise Broken(f"{' '.join(map(str, args))} ends with {done.returncode}: {done.stderr[-800:]}{done.stdout[-800:]}")
    return done


class Disk:
    """The folder of the state, and how it gets full: a file system of its own where one can be mounted, else a shim before the calls."""

    def __init__(self, folder):
        self.folder, self.mounted, self.env = folder, False, {}
        self.state, self.ballast = folder / "small" / "state", folder / "small" / "ballast"
        self.when = folder / "full"
        (folder / "small").mkdir()
        image = folder / "small.img"
        with open(image, "wb") as out:
            out.truncate(192 * MIB)
        made = shutil.which("mkfs.ext4") and subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], capture_output=True).returncode == 0
        if made and subprocess.run(["mount", "-o", "loop", str(image), str(folder / "small")], capture_output=True).returncode == 0:
            self.mounted = True
        else:
            image.unlink()
            (folder / "shim.c").write_text(SHIM)
            run("cc", "-O1", "-shared", "-fPIC", "shim.c", "-o", "shim.so", "-ldl", cwd=folder)
            self.env = {"LD_PRELOAD": str(folder / "shim.so"), "FULL_WHEN": str(self.when)}

    def how(self):
        return "a full file system" if self.mounted else "a shim that says ENOSPC (no file system can be mounted)"

    def fill(self):
        if not self.mounted:
            self.when.touch()
            return
        with open(self.ballast, "wb", buffering=0) as out:
            try:
                while True:
                    out.write(b"\0" * 65536)
            except OSError:
                pass

    def empty(self):
        (self.ballast if self.mounted else self.when).unlink(missing_ok=True)

    def close(self):
        if self.mounted:
            subprocess.run(["umount", str(self.folder / "small")], capture_output=True)


class Group:
    """A control group with the declared bound as its limit, where one can be made: the kernel keeps the books then."""

    def __init__(self, bound):
        self.path = self.peak_file = None
        name = f"terrace-soak-{os.getpid()}"
        for base, limit, peak in ((pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
                                  (pathlib.Path("/sys/fs/cgroup"), "memory.max", "memory.peak")):
            path = base / name
            try:
                path.mkdir()
                (path / limit).write_text(str(bound))
                if not (path / peak).exists():
                    raise OSError("no peak")
                self.path, self.peak_file = path, path / peak
                return
            except OSError:
                try:
                    path.rmdir()
                except OSError:
                    pass

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        return int(self.peak_file.read_text()) if self.path else 0

    def close(self):
        if self.path:
            try:
                self.path.rmdir()
            except OSError:
                pass


def slope(samples):
    """MiB a minute, by least squares over the later two thirds; None where that is too short to say."""
    if not samples:
        return None
    begin = samples[0][0] + max(20.0, (samples[-1][0] - samples[0][0]) / 3)
    late = [(t, m) for t, m in samples if t >= begin]
    if len(late) < 30 or late[-1][0] - late[0][0] < 40:
        return None
    n = len(late)
    mt, mm = sum(t for t, _ in late) / n, sum(m for _, m in late) / n
    return 60 * sum((t - mt) * (m - mm) for t, m in late) / sum((t - mt) ** 2 for t, _ in late) / MIB


class Life:
    """One process, watched once a second."""

    def __init__(self, soak):
        self.soak, self.samples, self.peak, self.checkpoints = soak, [], 0, []
        self.cleaned = self.failed_checkpoints = 0
        self.log = open(soak.folder / "log", "w")
        self.process = subprocess.Popen(
            ["./model", "train", "--state", str(soak.disk.state), "--epochs", "1000000", "--threads", "2", "--json"], cwd=soak.folder,
            stdout=subprocess.PIPE, stderr=self.log, text=True, env={**os.environ, **soak.disk.env}, preexec_fn=soak.group.enter)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # half a line before a kill
            if event["event"] == "checkpoint":
                self.checkpoints.append(event["step"])
            if "stats" in event:
                self.cleaned = sum(g.get("store", {}).get("segments_cleaned", 0) for g in event["stats"]["groups"])

    def look(self):
        try:
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "VmRSS" in fields:
            self.samples.append((time.monotonic(), int(fields["VmRSS"].split()[0]) * 1024))
            self.peak = max(self.peak, int(fields["VmHWM"].split()[0]) * 1024)

    def end(self, how):
        if how and self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout=600)
        self.reader.join()
        self.log.close()
        return code


class Soak:
    def __init__(self, args, folder):
        self.args, self.folder, self.rng = args, folder, random.Random(args.seed)
        self.disk = Disk(folder)
        self.rows = folder / "rows.store"
        write_data(folder / "clicks.tsv", args.seed)
        (folder / "model.yaml").write_text(json.dumps(spec(self.rows, "disk")))
        (folder / "shadow.yaml").write_text(json.dumps(spec(folder / "unused.store", "dram")))
        explained = json.loads(run(TERRACE, "explain", "model.yaml", "--json", cwd=folder).stdout)
        self.bound = explained["total_bytes"]
        self.space = next(t["bytes"] for t in explained["tiers"] if t["name"] == "disk")
        self.group = Group(self.bound)
        for name in ("model", "shadow"):
            run(TERRACE, "compile", f"{name}.yaml", "-o", name, cwd=folder)
        self.step = self.shadow = 0
        self.lives, self.slopes, self.index_bytes = [], [], []
        self.kills = self.stops = self.full = self.full_ends = self.checked = self.checkpoints = self.cleaned = self.failed = 0
        self.begin = time.monotonic()
        self.said = 0

    def elapsed(self):
        return time.monotonic() - self.begin

    def small_bytes(self):
        """What the state keeps beside rows: indices, moves, blobs, roots."""
        total = 0
        for folder, _, files in os.walk(self.disk.state):
            for name in files:
                if not name.endswith(".store"):
                    try:
                        total += os.stat(os.path.join(folder, name)).st_size
                    except OSError:
                        pass  # gone meanwhile
        return total

    def watch(self, life, until):
        while life.process.poll() is None and time.monotonic() < until:
            time.sleep(1)
            life.look()
            self.index_bytes.append((self.elapsed(), self.small_bytes()))
            if self.elapsed() >= 60 * (self.said + 1):
                self.said = int(self.elapsed() / 60)
                rss = life.samples[-1][1] if life.samples else 0
                print(f"minute {self.said}: step {max([self.step] + life.checkpoints)}, {self.checkpoints + len(life.checkpoints)} checkpoints, "
                      f"{self.kills} kills, {self.stops} stops, {self.full} times full, {self.checked} states equal; rss {rss / MIB:.1f} of "
                      f"{self.bound / MIB:.1f} MiB, beside the rows {self.index_bytes[-1][1] / MIB:.1f} MiB", flush=True)

    def live(self):
        short = self.args.minutes < 10
        life = Life(self)
        now = time.monotonic()
        end = min(now + self.rng.uniform(*((15, 30) if short else (90, 240))), self.begin + 60 * self.args.minutes)
        full = self.rng.random() < 0.5
        how = signal.SIGTERM if self.rng.random() < 0.25 else signal.SIGKILL
        if full:
            self.watch(life, now + (end - now) * self.rng.uniform(0.2, 0.5))
            if life.process.poll() is None:
                self.full += 1
                self.disk.fill()
                self.watch(life, min(end, time.monotonic() + self.rng.uniform(3, 8)))
                self.disk.empty()
        self.watch(life, end)
        ended = life.process.poll() is not None
        code = life.end(None if ended else how)
        errors = (self.folder / "log").read_text()
        life.failed_checkpoints = sum("the checkpoint of step" in line and "failed" in line for line in errors.splitlines())
        self.disk.empty()
        if ended:
            # Rows that met the full disk may end a run, with an error that says so.
            if not (full and "No space left" in errors):
                raise Broken(f"training ended by itself with {code}: {errors[-800:]}")
            self.full_ends += 1
        elif how == signal.SIGTERM:
            if code != 128 + signal.SIGTERM:
                raise Broken(f"SIGTERM ends training with {code}: {errors[-800:]}")
            self.stops += 1
        else:
            self.kills += 1
        self.account(life)

    def account(self, life):
        self.lives.append(life)
        self.checkpoints += len(life.checkpoints)
        self.cleaned += life.cleaned
        self.failed += life.failed_checkpoints
        if life.peak > self.bound:
            raise Broken(f"a process took {life.peak / MIB:.1f} MiB, declared are {self.bound / MIB:.1f} MiB")
        grown = slope(life.samples)
        if grown is not None:
            self.slopes.append(grown)
        size = self.rows.stat().st_size
        if size > self.space:
            raise Broken(f"'{self.rows}' has {size} bytes, declared are {self.space}")
        self.check(max(life.checkpoints, default=0))

    def check(self, reported):
        state = self.disk.state
        if not state.exists() or run("./model", "predict", "--state", state, "--out", "/dev/null", cwd=self.folder, ok=False).returncode != 0:
            if reported or self.step:
                raise Broken(f"step {max(reported, self.step)} was reported, but the state cannot be opened")
            return
        info = [json.loads(l) for l in run("./model", "info", "--state", state, "--json", cwd=self.folder).stdout.splitlines() if l.startswith("{")]
        step = info[-1]["step"]
        if step < max(reported, self.step):
            raise Broken(f"the state is at step {step}, but {max(reported, self.step)} was reported")
        self.step = step
        run(TERRACE, "checkpoint", "verify", state, cwd=self.folder)
        if step > self.shadow:
            run("./shadow", "train", "--state", "shadow.state", "--epochs", "1000000", "--steps", step - self.shadow, "--set",
                "train.checkpoint.every=1000000000", "--json", cwd=self.folder)
            self.shadow = step
        if self.shadow == step:
            same = json.loads(run(TERRACE, "checkpoint", "diff", "shadow.state", state, "--json", cwd=self.folder).stdout)
            if not same["same"]:
                raise Broken(f"at step {step} the state differs from an uninterrupted run in memory: {json.dumps(same)[:800]}")
            self.checked += 1

    def judge(self):
        """The table, and what is wrong."""
        half = self.elapsed() / 2
        early = max((b for t, b in self.index_bytes if t < half), default=0)
        late = max((b for t, b in self.index_bytes if t >= half), default=0)
        peak = max((l.peak for l in self.lives), default=0)
        group = self.group.peak()
        worst = max(self.slopes, default=None)
        limit = 1.5 * early + 8 * MIB
        rows = [("steps", self.step, "", True),
                ("lives: killed, stopped, ended by a full disk", f"{self.kills}, {self.stops}, {self.full_ends}", "", self.kills > 0),
                ("times that the disk was full", self.full, self.disk.how(), True),
                ("checkpoints; failed ones that training outlived", f"{self.checkpoints}; {self.failed}", "", self.checkpoints > 0),
                ("segments cleaned", self.cleaned, "> 0", self.cleaned > 0),
                ("states equal to the shadow's", self.checked, f"of {len(self.lives)} lives", self.checked > 0),
                ("peak of a process (VmHWM), MiB", f"{peak / MIB:.1f}", f"<= {self.bound / MIB:.1f}", peak <= self.bound),
                ("peak of the control group, MiB", f"{group / MIB:.1f}" if group else "none can be made",
                 f"<= {self.bound / MIB:.1f} (its limit)", group <= self.bound),
                ("memory slope, MiB/min", f"{worst:.3f}" if worst is not None else "lives too short to say",
                 f"< {SLOPE}, worst of {len(self.slopes)}", worst is None or worst < SLOPE),
                ("rows on disk, MiB", f"{self.rows.stat().st_size / MIB:.1f}", f"<= {self.space / MIB:.1f}", True),
                ("beside the rows, MiB: first half, second", f"{early / MIB:.1f}, {late / MIB:.1f}", f"second <= {limit / MIB:.1f}",
                 late <= limit)]
        print(f"\n{self.elapsed() / 60:.1f} minutes, seed {self.args.seed}")
        for what, value, bound, good in rows:
            print(f"{'ok    ' if good else 'BROKEN'}  {what:48}  {value!s:28}  {bound}")
        return all(good for _, _, _, good in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("minutes", nargs="?", type=float, default=30, help="how long (default: 30)")
    parser.add_argument("--seed", type=int, default=1, help="of data, lives and faults (default: 1)")
    parser.add_argument("--folder", default=None, help="where to work (default: the system's temporary folder); 2 GiB")
    args = parser.parse_args()
    if not TERRACE.exists():
        print(f"'{TERRACE}' is not there; run tools/dev build, or set TERRACE_BUILD", file=sys.stderr)
        return 2
    folder = pathlib.Path(tempfile.mkdtemp(prefix="terrace-soak-", dir=args.folder))
    soak, good = None, False
    try:
        soak = Soak(args, folder)
        print(f"soaking in {folder}: the disk gets full by {soak.disk.how()}; "
              f"memory {'by a control group and ' if soak.group.path else 'by '}VmHWM", flush=True)
        while soak.elapsed() < 60 * args.minutes:
            soak.live()
        good = soak.judge()
    except Broken as broken:
        print(f"BROKEN after {soak.elapsed() / 60 if soak else 0:.1f} minutes: {broken}")
        if soak:
            soak.judge()
    finally:
        if soak:
            for life in soak.lives:
                if life.process.poll() is None:
                    life.end(signal.SIGKILL)
            soak.group.close()
            if good:
                soak.disk.close()
    if good:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"left behind: {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
