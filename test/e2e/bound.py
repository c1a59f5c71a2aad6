"""A 4 GiB table behind a 256 MiB cache: the process stays under the bound that explain prints, and the bound is tight."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import random

from harness import Folder, TERRACE, expect, run

ROWS = 16 << 20  # x 64 f32 = 4 GiB
SPEC = {
    "terrace": 1, "model": "wide", "batch": {"size": 4096},
    "features": [{"name": "item", "pooling": "sum", "max_ids": 10,
                  "table": {"rows": ROWS, "dim": 64, "optimizer": {"kind": "rowwise_adagrad", "lr": 0.02}}}],
    "head": {"kind": "logistic", "label": "y"},
    # As many as are kept: what they hold is part of the bound.
    "train": {"checkpoint": {"every": 8, "keep": 3}},
    "data": {"path": "ids.tsv", "list_sep": ","},
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "640MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "16GiB", "path": "rows.store"}]},
    "plan": {"lookahead": 2, "place": [{"tables": "*", "home": "disk", "cache": {"dram": "256MiB"}}]}}


def main():
    steps = 40
    with Folder() as folder:
        if os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize < 12 << 30:
            print("skipped: less than 12 GiB free")
            raise SystemExit(77)
        rng = random.Random(1)
        with open(folder / "ids.tsv", "w") as out:
            out.write("item\ty\n")
            for _ in range(4096 * steps):
                out.write(",".join(str(rng.randrange(ROWS)) for _ in range(10)) + f"\t{rng.randrange(2)}\n")
        (folder / "model.yaml").write_text(json.dumps(SPEC))
        bound = json.loads(run(TERRACE, "explain", "model.yaml", "--json", cwd=folder).stdout)["total_bytes"]
        run(TERRACE, "compile", "model.yaml", "-o", "model", cwd=folder)
        pid = os.posix_spawn(str(folder / "model"), ["model", "train", "--fresh", "--state", str(folder / "s"), "--data",
                                                     str(folder / "ids.tsv"), "--epochs", "4", "--json"], os.environ,
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, str(folder / "log"), os.O_CREAT | os.O_WRONLY, 0o644)])
        _, status, usage = os.wait4(pid, 0)
        expect(status == 0, f"training failed: {(folder / 'log').read_text()[-800:]}")
        peak = usage.ru_maxrss * 1024
        print(f"bound {bound / 2**20:.1f} MiB, peak {peak / 2**20:.1f} MiB, bound/peak {bound / peak:.3f}")
        expect(peak <= bound, "the process grew beyond its bound")
        expect(bound <= 1.15 * peak, "the bound is more than 1.15x the peak")


if __name__ == "__main__":
    main()
