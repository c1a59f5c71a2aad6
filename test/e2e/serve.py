"""`terrace compile --serve`: one trained state, served in each type, with the AUC that each loses; rows as docs/numerics.md has them.

The serving model reads the trained state as it is and changes none of its bytes. In f32 it predicts what the training model does,
bit for bit. Rows that no scale and bias of f16 can hold are an error that names them; training is one that says what to do.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import json
import os
import random
import struct
import sys

from abi import Error, OpenOptions
from harness import BUILD, Folder, RETAIL, ROOT, TERRACE, expect, json_lines, run, tree_bytes

TYPES = ["f32", "f16", "bf16", "int8", "int4"]
MOST_LOST = {"f32": 0, "f16": 2e-4, "bf16": 2e-3, "int8": 2e-3, "int4": 2e-2}
SERVE = 2


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def f16(x):
    return struct.unpack("e", struct.pack("e", x))[0]


def quantized(row, bits):
    """docs/numerics.md, op for op: f64 rounds a sum, product or quotient of f32 once more without changing it."""
    most = (1 << bits) - 1
    bias = f16(min(row))
    scale = f16(f32(f32(max(row) - bias) / most)) or 1.0
    inverse = f32(1 / scale)
    numbers = [round(min(max(f32(f32(x - bias) * inverse), 0), most)) for x in row]  # to even
    return [f32(scale * n + bias) for n in numbers]


class Library:
    """A session over the C ABI."""

    def __init__(self, library, state, mode, ok=True):
        self.rt = ctypes.CDLL(str(BUILD / "lib" / "libterrace-rt.so"))
        self.error = Error(struct_size=ctypes.sizeof(Error))
        options = OpenOptions(struct_size=ctypes.sizeof(OpenOptions), artifact_path=os.fsencode(library),
                              state_dir=os.fsencode(state), threads=1, mode=mode)
        self.session = ctypes.c_void_p()
        self.call("trc_open", ctypes.byref(options), ctypes.byref(self.session), ok=ok)

    def call(self, name, *args, ok=True):
        status = getattr(self.rt, name)(*args, ctypes.byref(self.error))
        expect((status == 0) == ok, f"{name}: {self.error.message}")
        return self.error.message.decode()

    def rows(self, table, ids, dim, write=None):
        """Rows as lists; those of `write` are written."""
        flat = [x for row in write or [[0.0] * dim] * len(ids) for x in row]
        values, ids = (ctypes.c_float * len(flat))(*flat), (ctypes.c_int64 * len(ids))(*ids)
        self.call("trc_write_rows" if write else "trc_read_rows", self.session, table.encode(), ids,
                  ctypes.c_int64(len(ids)), values)
        return [list(values[i * dim:(i + 1) * dim]) for i in range(len(ids))]

    def close(self):
        self.call("trc_close", self.session)


def small_spec():
    """Two homes, an odd dim."""
    return {
        "terrace": 1, "model": "small", "seed": 3, "batch": {"size": 64},
        "defaults": {"table": {"dim": 13, "init": {"kind": "normal", "std": 0.3}}},
        "features": [{"name": "user", "table": {"rows": 300}}, {"name": "item", "table": {"rows": 500}}],
        "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "16MiB"},
                             {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]},
        "plan": {"lookahead": 2, "place": [{"tables": "item", "home": "disk", "cache": {"dram": "4KiB"}}]}}


def rows_by_definition(folder):
    (folder / "small.yaml").write_text(json.dumps(small_spec()))
    run(TERRACE, "compile", "small.yaml", "--emit=lib", "-o", "small.so", cwd=folder)
    rng = random.Random(5)
    written = {"user": rng.sample(range(300), 200), "item": rng.sample(range(500), 333)}
    trained = Library(folder / "small.so", folder / "small.state", 0)
    for table, ids in written.items():
        values = [[0.1] * 13, [0.0] * 13, [-7.25] * 13]  # rows of equal columns
        for _ in ids[3:]:
            spread, offset = 10.0 ** rng.randint(-4, 3), rng.gauss(0, 1)
            values.append([rng.gauss(0, spread) + offset for _ in range(13)])
        trained.rows(table, ids, 13, values)
    weights = {"user": trained.rows("user", range(300), 13), "item": trained.rows("item", range(500), 13)}
    trained.close()
    for dtype, bits in (("int8", 8), ("int4", 4)):
        run(TERRACE, "compile", "small.yaml", "--serve", "--set", f"serve.dtype={dtype}", "--emit=lib", "-o", f"{dtype}.so",
            cwd=folder)
        served = Library(folder / f"{dtype}.so", folder / "small.state", SERVE)
        for table, before in weights.items():
            got, want = served.rows(table, range(len(before)), 13), [quantized(row, bits) for row in before]
            for row, (a, b) in enumerate(zip(got, want)):
                expect(a == b, f"{dtype} {table}, row {row}: {a} is not {b}, made of {before[row]}")
        served.close()
        message = Library(folder / f"{dtype}.so", folder / "small.state", 0, ok=False).error.message.decode()
        expect("compiled with --serve" in message, message)
    trained = Library(folder / "small.so", folder / "small.state", 0)
    trained.rows("item", [77], 13, [[1e9] + [0.0] * 12])
    trained.close()
    message = Library(folder / "int8.so", folder / "small.state", SERVE, ok=False).error.message.decode()
    expect("table 'item', row 77" in message and "too far for a scale and a bias of f16" in message, message)
    print("rows in int8 and int4 are those of the definition, bit for bit; a row that does not fit is named")


def rows_in_place(folder):
    """Of a state whose rows lie as the served plan wants them, stores are read where they are."""
    sgd = ["--emit=lib", "--set", "defaults.table.optimizer.kind=sgd"]
    run(TERRACE, "compile", "small.yaml", "-o", "sgd.so", *sgd, cwd=folder)
    run(TERRACE, "compile", "small.yaml", "-o", "sgd-served.so", "--serve", *sgd, cwd=folder)
    trained = Library(folder / "sgd.so", folder / "sgd.state", 0)
    want = [[float(13 * row + c) for c in range(13)] for row in range(300)]
    trained.rows("item", range(300), 13, want)
    trained.close()
    before = tree_bytes(folder / "sgd.state")
    served = Library(folder / "sgd-served.so", folder / "sgd.state", SERVE)
    expect(served.rows("item", range(300), 13) == want, "rows differ")
    served.close()
    expect(tree_bytes(folder / "sgd.state") == before, "serving changed the state")


def evaluated(folder, exe, state):
    done = run(f"./{exe}", "eval", "--state", state, "--data", RETAIL, "--json", cwd=folder)
    return [line for line in json_lines(done.stdout) if line.get("event") == "eval"][-1]


def retail(folder):
    spec = ROOT / "examples" / "02-retail" / "model.yaml"
    run(TERRACE, "compile", spec, "-o", "retail", cwd=folder)
    run("./retail", "train", "--fresh", "--state", "s", "--data", RETAIL, cwd=folder)
    trained = evaluated(folder, "retail", "s")["auc"]
    run("./retail", "predict", "--state", "s", "--data", RETAIL, "--out", "trained.txt", cwd=folder)
    before = tree_bytes(folder / "s")
    print(f"held-out AUC of Online Retail, trained in f32: {trained:.5f}\n"
          f"{'served in':<10} {'AUC':>8} {'lost':>9}  bytes a row")
    for dtype in TYPES:
        run(TERRACE, "compile", spec, "--serve", "--set", f"serve.dtype={dtype}", "-o", dtype, cwd=folder)
        auc = evaluated(folder, dtype, "s")["auc"]
        plan = json.loads(run(TERRACE, "compile", spec, "--serve", "--set", f"serve.dtype={dtype}", "--emit=artifact",
                              cwd=folder).stdout)
        group = plan["groups"][0]
        expect(plan["serve"] and group["state_bytes"] == 0 and not group["update"], f"{dtype}: not a plan that serves")
        expect(not {op["op"] for op in plan["ops"]} & {"segment_update", "spill", "store"}, f"{dtype}: rows would change")
        print(f"{dtype:<10} {auc:8.5f} {trained - auc:9.5f}  {group['slot_bytes']}")
        expect(trained - auc <= MOST_LOST[dtype], f"{dtype} loses {trained - auc}")
        print(run(f"./{dtype}", "verify", "--synthetic", 3, "--steps", 30, cwd=folder).stdout.strip().splitlines()[-1])
    run("./f32", "predict", "--state", "s", "--data", RETAIL, "--out", "served.txt", cwd=folder)
    expect((folder / "served.txt").read_bytes() == (folder / "trained.txt").read_bytes(), "f32 predicts otherwise")
    expect(tree_bytes(folder / "s") == before, "serving changed the state")
    done = run("./int8", "train", "--data", RETAIL, cwd=folder, ok=False)
    expect(done.returncode == 1 and "compiled with --serve" in done.stderr, done.stderr)
    run("./int8", "bench", "--steps", 20, cwd=folder)


def main():
    with Folder() as folder:
        rows_by_definition(folder)
        rows_in_place(folder)
        done = run(TERRACE, "compile", "small.yaml", "-o", "x", "--set", "defaults.table.dtype=int8", cwd=folder, ok=False)
        expect(done.returncode == 1 and "is for serving only: compile with --serve" in done.stderr, done.stderr)
        done = run(TERRACE, "compile", "small.yaml", "-o", "x", "--cpu=aarch64", cwd=folder, ok=False)
        expect(done.returncode == 2 and "object code only" in done.stderr, done.stderr)
        if RETAIL.exists():
            retail(folder)
        else:
            print(f"the AUC by type is skipped: {RETAIL} is not there")


if __name__ == "__main__":
    sys.exit(main())
