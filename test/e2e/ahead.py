"""A trainer in C that submits as far ahead as it may computes what one does that submits one batch at a time."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json

from harness import BUILD, expect, Folder, ROOT, TERRACE, run

SPEC = {
    "terrace": 1, "model": "ahead", "batch": {"size": 8},
    "tables": [{"name": "users", "rows": 100, "dim": 4, "optimizer": {"kind": "sgd", "lr": 0.5}},
               {"name": "items", "rows": 500, "dim": 4}],
    "features": [{"name": "a", "table": "users"},
                 {"name": "b", "table": "items", "pooling": "weighted_mean", "weights": "w", "max_ids": 3},
                 {"name": "c", "table": "items", "pooling": "none", "max_ids": 3},
                 {"name": "d", "table": "items", "pooling": "max", "max_ids": 3},
                 {"name": "e", "table": "items", "pooling": "sqrtn", "weights": "w", "max_ids": 3}],
    "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "16MiB"},
                         {"name": "disk", "kind": "nvme", "capacity": "256MiB", "path": "rows.store"}]}}


def main():
    with Folder() as folder:
        (folder / "model.yaml").write_text(json.dumps(SPEC))
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", ROOT / "test" / "e2e" / "ahead.c", f"-I{ROOT / 'include'}",
            f"-L{BUILD / 'lib'}", "-lterrace-rt", f"-Wl,-rpath,{BUILD / 'lib'}", "-o", "ahead", cwd=folder)
        for lookahead in (0, 2, 5, 8):
            for home in ("disk", "dram"):
                place = {"tables": "items", "home": home, **({"cache": {"dram": "1KiB"}} if home == "disk" else {})}
                (folder / "model.yaml").write_text(json.dumps({**SPEC, "plan": {"lookahead": lookahead, "place": [place]}}))
                run(TERRACE, "compile", "model.yaml", "--emit=lib", "-o", "ahead.so", cwd=folder)
                said = run("./ahead", "./ahead.so", cwd=folder).stdout.strip()
                print(f"lookahead {lookahead}, {home}: {said}")
                if lookahead:
                    expect(f"up to {lookahead + 1}" in said or f"up to {lookahead + 2}" in said, "too few or too many in flight")


if __name__ == "__main__":
    main()
