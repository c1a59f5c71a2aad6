"""Lookups and training steps in memory: ours, FBGEMM's TBE, EmbeddingBag, and what gathering the same rows costs at least.

One process, interleaved. Each line is one shape: the limit is the best of the loops in Limit.cpp (prefetch 0, 8, 32, 128 rows ahead) and of all
peers; `forward` is a lookup without gradient, `adagrad` and `sgd` are forward, backward and the fused update. Ours and the peers are given the
same ids and the same gradient. A name that stands alone is missing or refuses the shape. Times are medians in ms; +- is half the distance of
the quartiles, in percent.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import ctypes
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test" / "bench")]
from pytorch import Keyed, LR, EPS  # noqa: E402

TABLES, IDS = 8, 10240  # ids of a table and batch
DIMS, POOLINGS = (9, 16, 32, 64, 100, 128, 256, 512, 1024), (1, 5, 20, 100)
QUICK = [(16, 1), (16, 20), (64, 1), (64, 20), (100, 5), (128, 20), (128, 100), (512, 5), (1024, 20)]
NATIVE = {  # (tables, rows, dim, pooling, samples)
    "w4": (32, 100000, 128, 20, 512),
    "w7": (271, 3690, 9, 4, 512),
    "small": (1000, 1000, 64, 1, 512),
}


class Shape:
    def __init__(self, tables, rows, dim, pooling, samples):
        self.tables, self.rows, self.dim, self.pooling, self.samples = tables, rows, dim, pooling, samples
        self.ids = tables * pooling * samples

    def batches(self, torch, count=3):
        generator = torch.Generator().manual_seed(1)
        keys = [f"t{i}" for i in range(self.tables)]
        lengths = torch.full((self.tables * self.samples, ), self.pooling, dtype=torch.int64)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        return [Keyed(keys, torch.randint(0, self.rows, (self.ids, ), generator=generator), lengths, offsets, self.samples) for _ in range(count)]


class Ours:
    name = "terrace"

    def __init__(self, torch, shape, kind, optimizer, threads, folder):
        from terrace.torch import EmbeddingBagCollection, EmbeddingBagConfig
        tables = [EmbeddingBagConfig(num_embeddings=shape.rows, embedding_dim=shape.dim, name=f"t{i}", data_type=kind) for i in range(shape.tables)]
        memory = {"tiers": [{"name": "dram", "kind": "dram", "capacity": "14GiB"}]}
        state = os.path.join(folder, f"m{shape.tables}x{shape.dim}x{shape.pooling}{kind}{optimizer}{threads}")
        fused = {"kind": "rowwise_adagrad", "lr": LR, "eps": EPS} if optimizer == "adagrad" else {"kind": "sgd", "lr": LR}
        self.module = EmbeddingBagCollection(tables, optimizer=fused, batch_size=shape.samples, max_ids={t.name: shape.pooling for t in tables},
                                             memory=memory, state=state, model=os.path.basename(state), threads=threads, plan={"lookahead": 0})

    def forward(self, batch):
        self.module(batch)

    def step(self, batch, gradient):
        self.module(batch).values().backward(gradient)

    def end(self, folder):
        pass


class Fbgemm:
    name = "FBGEMM"

    def __init__(self, torch, shape, kind, optimizer, threads, folder):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType, SparseType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen
        if shape.dim % 4:
            raise ValueError("its dims are multiples of 4")
        precision = {"FP32": SparseType.FP32, "FP16": SparseType.FP16}[kind]
        optimizers = {"adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD, "sgd": EmbOptimType.EXACT_SGD}
        self.table = SplitTableBatchedEmbeddingBagsCodegen([(shape.rows, shape.dim, EmbeddingLocation.HOST, ComputeDevice.CPU)] * shape.tables,
                                                           optimizer=optimizers[optimizer], learning_rate=LR, eps=EPS,
                                                           weights_precision=precision, pooling_mode=PoolingMode.SUM)

    def forward(self, batch):
        self.table(batch.values(), batch.offsets())

    def step(self, batch, gradient):
        self.table(batch.values(), batch.offsets()).backward(gradient)


class Bags:
    name = "EmbeddingBag"

    def __init__(self, torch, shape, kind, optimizer, threads, folder):
        dtype = {"FP32": torch.float32, "FP16": torch.float16}[kind]
        self.torch, self.shape = torch, shape
        self.bags = [torch.nn.EmbeddingBag(shape.rows, shape.dim, mode="sum", include_last_offset=True, sparse=True, dtype=dtype)
                     for _ in range(shape.tables)]
        weights = [b.weight for b in self.bags]
        self.optimizer = torch.optim.Adagrad(weights, LR, eps=EPS) if optimizer == "adagrad" else torch.optim.SGD(weights, LR)

    def look(self, batch):
        values, offsets, samples = batch.values(), batch.offsets(), batch.stride()
        outs = []
        for i, bag in enumerate(self.bags):
            own = offsets[i * samples:(i + 1) * samples + 1]
            outs.append(bag(values[own[0]:own[-1]], own - own[0]))
        return self.torch.cat(outs, 1)

    def forward(self, batch):
        self.look(batch)

    def step(self, batch, gradient):
        self.optimizer.zero_grad()
        self.look(batch).float().backward(gradient)
        self.optimizer.step()


class Limit:
    """Loops by hand; every table is its own array."""

    def __init__(self, torch, shape, kind, threads, ahead):
        self.library = ctypes.CDLL(str(pathlib.Path(os.environ["TERRACE_BUILD"]) / "lib" / "TerraceBenchLimit.so"))
        self.shape, self.threads, self.ahead, self.bytes = shape, threads, ahead, 4 if kind == "FP32" else 2
        dtype = torch.float32 if kind == "FP32" else torch.float16
        self.tables = Limit.tables if getattr(Limit, "of", None) == (shape, kind) else [
            torch.rand(shape.rows, shape.dim, dtype=torch.float32).to(dtype) for _ in range(shape.tables)]
        Limit.tables, Limit.of = self.tables, (shape, kind)
        self.out = torch.empty(shape.samples, shape.dim)
        self.own = torch.arange(shape.samples + 1) * shape.pooling
        self.name = f"loop, {ahead} ahead"

    def forward(self, batch):
        call, p = self.library.limit_gather, ctypes.c_void_p
        n = self.shape.samples * self.shape.pooling
        for i, table in enumerate(self.tables):
            call(p(table.data_ptr()), ctypes.c_int64(self.shape.dim), ctypes.c_int64(self.bytes), p(batch.values().data_ptr() + 8 * n * i),
                 p(self.own.data_ptr()), ctypes.c_int64(self.shape.samples), p(self.out.data_ptr()), ctypes.c_int64(self.ahead),
                 ctypes.c_int64(self.threads))


def measure(variants, batches, call, options):
    """Median and relative half quartile distance by name; interleaved; the first round warms up."""
    taken = {v.name: [] for v in variants}
    for round_ in range(options.rounds + 1):
        for variant in variants:
            for batch in batches:
                if sum(taken[variant.name]) > options.seconds * 1e3 and len(taken[variant.name]) >= 3:
                    break
                begin = time.perf_counter()
                call(variant, batch)
                spent = (time.perf_counter() - begin) * 1e3
                if round_:
                    taken[variant.name].append(spent)
                elif spent > options.seconds * 250:
                    break
    found = {}
    for name, times in taken.items():
        low, _, high = statistics.quantiles(times, n=4) if len(times) > 1 else (times[0], ) * 3
        middle = statistics.median(times)
        found[name] = middle, (high - low) / 2 / middle * 100
    return found


def make(kinds, torch, *arguments):
    made = []
    for kind in kinds:
        try:
            made.append(kind(torch, *arguments))
        except (ImportError, OSError, ValueError, RuntimeError):
            pass
    return made


def line(torch, name, shape, kind, threads, options, folder):
    torch.set_num_threads(threads)
    batches = shape.batches(torch)
    gradient = torch.randn(shape.samples, shape.tables * shape.dim) / 100
    cells = []
    with torch.no_grad():
        variants = make((Ours, Fbgemm, Bags), torch, shape, kind, "adagrad", threads, folder)
        loops = [Limit(torch, shape, kind, threads, ahead) for ahead in (0, 8, 32, 128)]
        found = measure(variants + loops, batches, lambda v, b: v.forward(b), options)
    limit = min(m for m, _ in found.values())
    mine = found.pop(Ours.name)
    peers = {n: f for n, f in found.items() if n in (Fbgemm.name, Bags.name)}
    best = min((m for m, _ in peers.values()), default=float("nan"))
    cells.append(f"{mine[0]:8.2f} +-{mine[1]:2.0f}% {cell(peers, Fbgemm)} {cell(peers, Bags)} {limit:8.2f} {best / mine[0]:6.2f}x {limit / mine[0]:5.2f}")
    for optimizer in ("adagrad", "sgd"):
        if kind != "FP32" and optimizer == "sgd":
            continue
        if optimizer == "sgd":
            variants = make((Ours, Fbgemm, Bags), torch, shape, kind, optimizer, threads, folder)
        found = measure(variants, batches, lambda v, b: v.step(b, gradient), options)
        mine = found.pop(Ours.name)
        best = min((m for m, _ in found.values()), default=float("nan"))
        cells.append(f"{mine[0]:8.2f} +-{mine[1]:2.0f}% {cell(found, Fbgemm)} {cell(found, Bags)} {best / mine[0]:6.2f}x")
    print(f"{name:22} {kind[2:]:>3} {threads:2} | " + " | ".join(cells), flush=True)


def cell(found, kind):
    return f"{found[kind.name][0]:8.2f}" if kind.name in found else f"{'-':>8}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", help=f"grid, {', '.join(NATIVE)} (default: all)")
    parser.add_argument("--full", action="store_true", help="the whole grid: an hour and more")
    parser.add_argument("--types", default="FP32,FP16")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of one variant, at most")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        import torch
        folder = tempfile.mkdtemp(prefix="terrace-bench-")
        name, kind, threads, *shape = options.one.split(",")
        try:
            line(torch, name, Shape(*map(int, shape)), kind, int(threads), options, folder)
            sys.stdout.flush()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # without saving what nobody wants
    what = options.what or ["grid", *NATIVE]
    shapes = []
    if "grid" in what:
        for dim, pooling in [(d, p) for d in DIMS for p in POOLINGS] if options.full else QUICK:
            shapes.append((f"dim {dim} pooling {pooling}", (TABLES, (4 << 20) // dim, dim, pooling, max(1, IDS // pooling))))
    shapes += [(name, NATIVE[name]) for name in NATIVE if name in what]
    print(f"{platform.machine()}, {os.cpu_count()} CPUs; grid: {TABLES} tables of 4 Mi elements, {IDS:,} ids each; ms")
    print(f"{'':22} {'typ':>3} {'th':>2} | {'forward':>8} {'':5} {'FBGEMM':>8} {'EmbBag':>8} {'limit':>8} {'/peer':>7} {'/lim':>5} | "
          f"{'adagrad':>8} {'':5} {'FBGEMM':>8} {'EmbBag':>8} {'/peer':>7} | {'sgd':>8} {'':5} {'FBGEMM':>8} {'EmbBag':>8} {'/peer':>7}")
    sys.stdout.flush()
    for name, shape in shapes:
        for kind in options.types.split(","):
            for threads in options.threads.split(","):
                one = ",".join(map(str, (name, kind, threads, *shape)))
                # A process each: what one leaves behind is not in the next one's way.
                command = [sys.executable, "-W", "ignore", __file__, "--one", one, "--rounds", str(options.rounds), "--seconds", str(options.seconds)]
                if subprocess.run(command).returncode:
                    print(f"{name:22} {kind[2:]:>3} {threads:>2} | failed", flush=True)


if __name__ == "__main__":
    main()
