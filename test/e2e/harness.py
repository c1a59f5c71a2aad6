"""Shared by the end-to-end tests: where the binaries are, how a command is run, how a spec is written."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TERRACE_BUILD", ROOT / "build"))
TERRACE = BUILD / "bin" / "terrace"
TERRACE_OPT = BUILD / "bin" / "terrace-opt"
DATA = pathlib.Path(os.environ.get("TERRACE_SHARED_DATA", ROOT.parent / "shared" / "data"))
RETAIL = DATA / "online_retail.tsv.gz"


def run(*args, cwd=None, ok=True, timeout=600, env=None):
    """Runs a command; returns the finished process. With ok, a failure ends the test and prints all output."""
    done = subprocess.run([str(a) for a in args], cwd=cwd, timeout=timeout, text=True, capture_output=True,
                          env={**os.environ, **(env or {})})
    if ok and done.returncode != 0:
        sys.exit(f"FAILED ({done.returncode}): {' '.join(map(str, args))}\n{done.stdout}\n{done.stderr}")
    return done


def compile_spec(spec, out, *options, cwd=None, ok=True):
    return run(TERRACE, "compile", spec, "-o", out, *options, cwd=cwd, ok=ok)


def need_retail():
    if not RETAIL.exists():
        print(f"skipped: {RETAIL} is not there")
        sys.exit(77)


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Folder:
    """A scratch folder that is removed at the end unless the test fails."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="terrace-e2e-"))
        return self.path

    def __exit__(self, kind, value, trace):
        if kind is None or (kind is SystemExit and value.code in (0, 77)):
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            print(f"left behind: {self.path}")


def tree_bytes(path):
    """Every file below path with its bytes, to show that nothing changed."""
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}


def expect(condition, message):
    if not condition:
        raise AssertionError(message)
