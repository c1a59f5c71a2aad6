"""How long compiling takes, and how soon an executable works.

A thousand tables that share a few kernels, a thousand tables of a thousand dims (each kernel is its own), and one step of a
freshly compiled model: until it starts (a fresh state is made and opened), and until the tables are written back and the state closed.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from ads1000 import SPEC as ADS  # noqa: E402
from harness import Folder, TERRACE, run  # noqa: E402

SMALL = {
    "terrace": 1, "model": "small", "batch": {"size": 512},
    "features": [{"name": name, "table": {"rows": 100000, "dim": 16}} for name in ("user", "item")],
    "head": {"kind": "fm", "label": "click"}, "data": {"path": "clicks.tsv"},
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "64MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]},
    "plan": {"lookahead": 2, "place": [{"tables": "*", "home": "disk"}]}}


def dims(count):
    return {"terrace": 1, "model": "dims", "batch": {"size": 256},
            "features": [{"name": f"f{d}", "table": {"rows": 100, "dim": d}} for d in range(1, count + 1)]}


def compiled(folder, text, rounds):
    """Median seconds, and what the compiler said of the last round."""
    (folder / "model.yaml").write_text(text)
    times = []
    for _ in range(rounds):
        start = time.monotonic()
        said = run(TERRACE, "compile", "model.yaml", "-o", "model", "--json", cwd=folder, timeout=1800).stdout
        times.append(time.monotonic() - start)
    return statistics.median(times), json.loads(said)


def report(what, figure):
    print(f"{what:28}{figure}")


def main():
    print(f"{platform.machine()}, {os.cpu_count()} CPUs; both CPU images; medians")
    with Folder() as folder:
        seconds, said = compiled(folder, ADS, 3)
        report(f"1,000 tables, {said['kernels']} kernels", f"{seconds:8.2f} s")
        count = 1000
        seconds, said = compiled(folder, json.dumps(dims(count)), 1)
        report(f"{count:,} dims, {said['kernels']:,} kernels", f"{seconds:8.2f} s")
        compiled(folder, json.dumps(SMALL), 1)
        (folder / "clicks.tsv").write_text("user\titem\tclick\n" + "".join(
            f"{i * 7919 % 100000}\t{i * 104729 % 100000}\t{i % 2}\n" for i in range(512)))
        ready, whole = [], []
        for _ in range(9):
            start = time.monotonic()
            process = subprocess.Popen(["./model", "train", "--fresh", "--steps", "1", "--json"], cwd=folder, text=True,
                                       stdout=subprocess.PIPE)
            process.stdout.readline()  # the start event: the state is open, the first step is next
            ready.append((time.monotonic() - start) * 1e3)
            process.communicate()
            whole.append((time.monotonic() - start) * 1e3)
        for name, times in (("launch to the first step", ready), ("launch to the clean end", whole)):
            report(name, f"{statistics.median(times):8.1f} ms ({min(times):.1f} .. {max(times):.1f})")


if __name__ == "__main__":
    main()
