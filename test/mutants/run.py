#!/usr/bin/env python3
"""run.py - Breaks the protocol on purpose and sees that a test notices.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

For each entry of mutants.py, one source file of the runtime is copied, edited
and compiled with the command of the build folder; the object goes in front of
the libraries on the link line of the test, so neither the tree nor the build
folder changes. The test must fail, within its time, where it passes as built.
A mutant that survives wants a test. See README.md.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

from mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fail(message):
    print(f"mutants: {message}", file=sys.stderr)
    sys.exit(2)


class Build:
    """The commands of an up-to-date build folder."""

    def __init__(self, folder):
        self.folder = folder
        if not (folder / "build.ninja").exists():
            fail(f"'{folder}' is no build folder; run tools/dev runtime")
        db = subprocess.run(["ninja", "-C", str(folder), "-t", "compdb"],
                            capture_output=True, text=True, check=True).stdout
        self.compiles = {}
        for entry in json.loads(db):
            if " -c " in entry["command"]:
                self.compiles.setdefault(os.path.realpath(os.path.join(entry["directory"], entry["file"])), entry)

    def compile(self, source, mutated, output):
        entry = self.compiles.get(str(source))
        if not entry:
            fail(f"nothing in '{self.folder}' compiles {source}")
        # Without the launcher and the dependency file: it is built once.
        words = shlex.split(entry["command"])
        words = words[next(i for i, w in enumerate(words) if re.search(r"(\+\+|cc|clang)(-\d+)?$", w)
                           and not w.endswith("ccache")):]
        out = []
        skip = 0
        for i, w in enumerate(words):
            if skip:
                skip -= 1
            elif w in ("-MF", "-MT"):
                skip = 1
            elif w == "-MD":
                continue
            elif w == "-o":
                out += ["-o", str(output)]
                skip = 1
            elif w == "-c":
                out += ["-c", str(mutated)]
                skip = 1
            else:
                out.append(w)
        # A mutant may leave something unused.
        out += ["-Wno-error", "-w", "-I", str(source.parent)]
        return subprocess.run(out, cwd=entry["directory"], capture_output=True, text=True)

    def link(self, program, objects, output):
        lines = subprocess.run(["ninja", "-C", str(self.folder), "-t", "commands", program],
                               capture_output=True, text=True, check=True).stdout.splitlines()
        command = next(l for l in reversed(lines) if f"-o bin/{program} " in l)
        command = command.replace(f"-o bin/{program} ",
                                  " ".join(shlex.quote(str(o)) for o in objects) + f" -o {shlex.quote(str(output))} ")
        return subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True)


def edited(mutant):
    text = (ROOT / mutant.file).read_text()
    for find, replace in mutant.edits:
        if text.count(find) != mutant.count:
            fail(f"'{mutant.name}': {mutant.file} has {text.count(find)} of the text to replace, "
                 f"not {mutant.count}; bring mutants.py up to date:\n{find}")
        text = text.replace(find, replace)
    return text


def run_test(program, mutant, limit):
    """How the test ended: None where it passed."""
    env = dict(os.environ, **mutant.env)
    try:
        done = subprocess.run([str(program), f"--gtest_filter={mutant.test}", "--gtest_fail_fast"],
                              capture_output=True, text=True, errors="replace", timeout=limit, env=env,
                              cwd=program.parent)
    except subprocess.TimeoutExpired:
        return f"hangs (over {limit} s)"
    if done.returncode == 0:
        if "[  PASSED  ] 0 tests" in done.stdout:
            fail(f"'{mutant.name}': {mutant.program} has no test {mutant.test}")
        return None
    failed = re.findall(r"^\[  FAILED  \] (\S+?)(?:,| \()", done.stdout, re.M)
    if failed:
        return failed[0]
    return f"ends with {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-runtime",
                        help="an up-to-date build folder (default: build-runtime)")
    parser.add_argument("--only", default="*", help="a pattern of names")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one test (default: 300)")
    parser.add_argument("--list", action="store_true", help="print the names and check that they apply")
    args = parser.parse_args()
    chosen = [m for m in MUTANTS if fnmatch.fnmatch(m.name, args.only)]
    if not chosen:
        fail(f"no mutant is called '{args.only}'; --list prints them")
    texts = [edited(m) for m in chosen]
    if args.list:
        for m in chosen:
            print(f"{m.name}: {m.file}; {m.program} {m.test}")
        return 0
    build = Build(args.build.resolve())
    survivors = []
    baseline = {}
    with tempfile.TemporaryDirectory(prefix="terrace-mutants-") as scratch:
        scratch = pathlib.Path(scratch)
        for number, (m, text) in enumerate(zip(chosen, texts)):
            begin = time.monotonic()
            original = build.folder / "bin" / m.program
            if not original.exists():
                fail(f"'{original}' is not built; run tools/dev runtime {m.program}")
            key = (m.program, m.test)
            if key not in baseline:
                baseline[key] = run_test(original, m, args.timeout)
            if baseline[key]:
                fail(f"{m.program} {m.test} fails without a mutant: {baseline[key]}")
            source = ROOT / m.file
            mutated = scratch / source.name
            mutated.write_text(text)
            obj, program = scratch / f"{number}.o", scratch / f"mutant-{number}"
            for step in (lambda: build.compile(source, mutated, obj), lambda: build.link(m.program, [obj], program)):
                done = step()
                if done.returncode:
                    fail(f"'{m.name}' cannot be built:\n{done.stderr[-2000:]}")
            found = run_test(program, m, args.timeout)
            program.unlink()
            if not found:
                survivors.append(m)
            print(f"{'caught  ' if found else 'SURVIVED'}  {m.name}: {found or m.program + ' ' + m.test + ' passes'}"
                  f"  ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
