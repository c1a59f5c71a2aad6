"""kill -9 at 80 chosen moments: at system calls of checkpoints and closes (before and after each kind), and at any time.

After each kill the state must open at the step of a checkpoint or close that was reported, or a later one, predict what an
uninterrupted run predicts at that step, and end where an uninterrupted run ends. Seeds are fixed; a shim counts the calls.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from harness import Folder, TERRACE, expect, json_lines, run

BATCH, LAST = 16, 60
SPEC = {
    "terrace": 1, "model": "kill", "seed": 3, "batch": {"size": BATCH}, "defaults": {"table": {"dim": 6}},
    "features": [
        {"name": "user", "table": {"rows": 3000, "optimizer": {"kind": "adam", "lr": 0.01}}},
        {"name": "item", "table": {"rows": 8000, "optimizer": {"kind": "adagrad", "lr": 0.1}}},
        {"name": "shop", "table": {"rows": 500, "optimizer": {"kind": "rowwise_adagrad", "lr": 0.1}}}],
    "head": {"kind": "fm", "label": "click"},
    "train": {"checkpoint": {"every": 7, "keep": 2}, "lr_schedule": {"warmup_steps": 50}},
    "data": {"path": "clicks.tsv"},
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "16MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]},
    "plan": {"lookahead": 3, "place": [{"tables": "item", "home": "disk", "cache": {"dram": "2KiB"}},
                                       {"tables": "user", "home": "disk", "cache": {"dram": "4KiB"}}]}}

# Ends the process at the n-th call that changes files: KILL_AT = n (before the call), -n (after it). KILL_COUNT = file: how many.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static atomic_long calls;
static long at;
static const char *count_file;
static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }
__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("KILL_AT");
  at = text ? atol(text) : 0;
  count_file = getenv("KILL_COUNT");
}
__attribute__((destructor)) static void end(void) {
  FILE *file = count_file ? fopen(count_file, "w") : NULL;
  if (file) { fprintf(file, "%ld\n", atomic_load(&calls)); fclose(file); }
}
#define WRAP(type, name, params, args)                       \
  type name params {                                         \
    static type(*real) params;                               \
    if (!real) real = (type(*) params)dlsym(RTLD_NEXT, #name); \
    long call = atomic_fetch_add(&calls, 1) + 1;                \
    if (call == at) die();                                   \
    type result = real args;                                 \
    if (call == -at) die();                                  \
    return result;                                           \
  }
WRAP(int, rename, (const char *a, const char *b), (a, b))
WRAP(int, renameat2, (int a, const char *b, int c, const char *d, unsigned e), (a, b, c, d, e))
WRAP(int, unlink, (const char *a), (a))
WRAP(int, rmdir, (const char *a), (a))
WRAP(int, mkdir, (const char *a, mode_t m), (a, m))
WRAP(int, fsync, (int a), (a))
WRAP(int, fdatasync, (int a), (a))
WRAP(int, ftruncate, (int a, off_t n), (a, n))
WRAP(int, posix_fallocate, (int a, off_t b, off_t c), (a, b, c))
WRAP(int, fallocate, (int a, int m, off_t b, off_t c), (a, m, b, c))
WRAP(ssize_t, write, (int a, const void *b, size_t n), (a, b, n))
WRAP(ssize_t, pwrite, (int a, const void *b, size_t n, off_t o), (a, b, n, o))
"""


def write_data(path):
    rng = random.Random(5)
    with open(path, "w") as out:
        out.write("user\titem\tshop\tclick\n")
        for _ in range(BATCH * 100 + 5):
            user, item = int(rng.paretovariate(0.5)) % 3000, int(rng.paretovariate(0.3)) % 8000
            out.write(f"{user}\t{item}\t{rng.randrange(500)}\t{int(rng.random() < 0.3 + 0.4 * (item % 2))}\n")


class Kills:
    def __init__(self, folder):
        self.folder, self.known = folder, {}

    def train(self, state, steps, env=None, delay=None):
        """One run, perhaps ended early; returns the exit code and the last step that a checkpoint or the end reported."""
        log = self.folder / "log"
        with open(log, "wb") as out:
            process = subprocess.Popen(["./model", "train", "--state", state, "--steps", str(steps), "--json"], cwd=self.folder,
                                       stdout=out, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
            if delay is not None:
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
            errors = process.communicate()[1].decode()
        # The last line may be half of one.
        lines = [line for line in log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
        reported = [e["step"] for e in json_lines("\n".join(lines)) if e["event"] in ("checkpoint", "end")]
        return process.returncode, max(reported, default=0), errors

    def step(self, state):
        return json_lines(run("./model", "info", "--state", state, "--json", cwd=self.folder).stdout)[-1]["step"]

    def predictions(self, state):
        done = run("./model", "predict", "--state", state, cwd=self.folder)
        return done.stdout

    def uninterrupted(self, step):
        if step not in self.known:
            shutil.rmtree(self.folder / "whole", ignore_errors=True)
            run("./model", "train", "--state", "whole", "--steps", step, cwd=self.folder)
            self.known[step] = self.predictions("whole")
        return self.known[step]

    def check(self, state, least, what):
        """The state after a kill: its step, and its values."""
        clean = run("./model", "predict", "--state", state, cwd=self.folder, ok=False)
        if clean.returncode != 0:
            expect(least == 0 and "train" in clean.stderr, f"{what}: at least step {least} was reported: {clean.stderr}")
            return 0
        step = self.step(state)
        expect(least <= step <= LAST, f"{what}: step {step}, but {least} was reported")
        expect(clean.stdout == self.uninterrupted(step), f"{what}: predictions differ at step {step}")
        return step

    def finish(self, state, step, what):
        if step < LAST:
            code, _, errors = self.train(state, LAST - step)
            expect(code == 0, f"{what}: cannot go on: {errors}")
        expect(self.predictions(state) == self.uninterrupted(LAST), f"{what}: the end differs from an uninterrupted run")


def main():
    with Folder() as folder:
        (folder / "model.yaml").write_text(json.dumps(SPEC))
        write_data(folder / "clicks.tsv")
        (folder / "shim.c").write_text(SHIM)
        run("cc", "-O1", "-shared", "-fPIC", "shim.c", "-o", "shim.so", "-ldl", cwd=folder)
        run(TERRACE, "compile", "model.yaml", "-o", "model", cwd=folder)
        kills = Kills(folder)
        rng = random.Random(11)
        shim = {"LD_PRELOAD": str(folder / "shim.so")}

        # From nothing, from a closed state, from checkpoints alone: the calls of each, then a kill at a spread of them.
        made = 0
        for begin, count in (("nothing", 30), ("closed", 30), ("checkpoint", 14)):
            base = folder / "base"
            shutil.rmtree(base, ignore_errors=True)
            at = 0
            if begin != "nothing":
                kills.train("base", 24)
                at = 24
            if begin == "checkpoint":
                (base / "closed.json").unlink()
                at = 21
            steps = 24
            state = folder / "state"
            for copy in ("count",):
                shutil.rmtree(state, ignore_errors=True)
                if base.exists():
                    shutil.copytree(base, state)
                kills.train("state", steps, {**shim, "KILL_COUNT": str(folder / copy)})
            calls = int((folder / "count").read_text())
            expect(calls > 40, f"the shim saw only {calls} calls")
            # The end of a run is its close: every second kill goes there.
            late = sorted(rng.sample(range(max(1, calls - 40), calls + 1), count // 2))
            for call in sorted(rng.sample(range(1, calls - 40 if calls > 80 else calls), count - len(late))) + late:
                shutil.rmtree(state, ignore_errors=True)
                if base.exists():
                    shutil.copytree(base, state)
                side = rng.choice([1, -1])
                what = f"from {begin}, killed {'before' if side > 0 else 'after'} call {call} of {calls}"
                code, reported, errors = kills.train("state", steps, {**shim, "KILL_AT": str(side * call)})
                expect(code in (-signal.SIGKILL, 0), f"{what}: exit {code}: {errors}")
                made += code != 0
                step = kills.check("state", max(reported, at), what)
                if rng.random() < 0.4:
                    kills.finish("state", step, what)
        print(f"{made} kills at system calls")

        # At any time, again and again on one state, with what the last kill left.
        begin = time.monotonic()
        kills.train("timed", 8)
        whole, least, hits = time.monotonic() - begin, 8, 0
        for n in range(24):
            delay = rng.uniform(0, 1.2 * whole)
            code, reported, errors = kills.train("timed", 8, delay=delay)
            expect(code in (-signal.SIGKILL, 0), f"timed kill {n}: exit {code}: {errors}")
            hits += code != 0
            least = max(least, reported)
            least = kills.check("timed", least, f"timed kill {n} after {delay:.3f} s")
            if least + 8 > LAST:
                kills.finish("timed", least, f"timed kill {n}")
                shutil.rmtree(folder / "timed")
                least = 0
        print(f"{hits} of 24 kills at any time")
        expect(made + hits >= 60, f"only {made + hits} kills")


if __name__ == "__main__":
    sys.exit(main())
