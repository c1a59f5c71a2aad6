"""Runs one test file with an interpreter that has what it needs; exit 77 where there is none. Usage: run.py FILE [MODULE...].

Interpreters: TERRACE_PYTHON, that of `tools/dev test --torch`, this one, the system's.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import pathlib
import subprocess
import sys


def interpreters():
    if os.environ.get("TERRACE_PYTHON"):
        yield os.environ["TERRACE_PYTHON"]
        return
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    yield str(cache / "terrace" / "torch-2.14.1" / "bin" / "python")
    yield sys.executable
    yield "/usr/bin/python3"


def main():
    test, needed = pathlib.Path(__file__).parent / sys.argv[1], sys.argv[2:]
    for python in interpreters():
        try:
            found = subprocess.run([python, "-c", "import " + ", ".join(["sys"] + needed)], capture_output=True).returncode == 0
        except OSError:
            continue
        if found:
            print(f"with {python}", flush=True)
            os.execv(python, [python, str(test)])
    print(f"skipped: no interpreter has {', '.join(needed)}; `tools/dev setup` brings numpy, `tools/dev test --torch` torch")
    sys.exit(77)


if __name__ == "__main__":
    main()
