"""A training step from PyTorch: ours, FBGEMM's TBE, and EmbeddingBag with a sparse optimizer, in one process, interleaved.

`bare calls` are the same steps of the same session through the C ABI, with all structs made before: what Python adds is the difference. `stalls` trains tables on NVMe with and without
prefetch: how long forward waits for rows. Everything is f32; each step is forward, and backward with a gradient that is at hand.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

W1_ROWS = [40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209, 11938, 155, 4, 976, 14, 40000000,
           40000000, 40000000, 590152, 12973, 108, 36]
W1_BAGS = [3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1]
LR, EPS = 0.02, 1e-8


class Keyed:
    """The outside of a KeyedJaggedTensor."""

    def __init__(self, keys, values, lengths, offsets, samples):
        self.parts = keys, values, offsets, samples
        self.lengths = lengths

    def keys(self):
        return self.parts[0]

    def values(self):
        return self.parts[1]

    def offsets(self):
        return self.parts[2]

    def stride(self):
        return self.parts[3]

    def weights_or_none(self):
        return None


def workload(name, scale):
    """(rows, bag sizes, dim, samples) by table."""
    if name == "w4":
        return [int(100000 * scale)] * 32, [20] * 32, 128, 512
    return [max(3, int(min(r, 400000) * scale)) for r in W1_ROWS], W1_BAGS, 128, 2048


def batches(torch, rows, bags, samples, count, seed=1):
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(count):
        values = torch.cat([torch.randint(0, r, (samples * b, ), generator=generator) for r, b in zip(rows, bags)])
        lengths = torch.cat([torch.full((samples, ), b, dtype=torch.int64) for b in bags])
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        made.append(Keyed([f"t{i}" for i in range(len(rows))], values, lengths, offsets, samples))
    return made


def fbgemm_step(torch, rows, dim):
    try:
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen
    except (ImportError, OSError) as error:
        print(f"FBGEMM is not here: {error}")
        return None
    table = SplitTableBatchedEmbeddingBagsCodegen([(r, dim, EmbeddingLocation.HOST, ComputeDevice.CPU) for r in rows],
                                                  optimizer=EmbOptimType.EXACT_ROWWISE_ADAGRAD, learning_rate=LR, eps=EPS,
                                                  pooling_mode=PoolingMode.SUM)

    def step(batch, gradient):
        table(batch.values(), batch.offsets()).backward(gradient)

    return step


def torch_step(torch, rows, dim):
    bags = [torch.nn.EmbeddingBag(r, dim, mode="sum", include_last_offset=True, sparse=True) for r in rows]
    optimizer = torch.optim.Adagrad([b.weight for b in bags], LR, eps=EPS)

    def step(batch, gradient):
        optimizer.zero_grad()
        values, offsets, samples = batch.values(), batch.offsets(), batch.stride()
        outs = []
        for i, bag in enumerate(bags):
            own = offsets[i * samples:(i + 1) * samples + 1]
            outs.append(bag(values[own[0]:own[-1]], own - own[0]))
        torch.cat(outs, 1).backward(gradient)
        optimizer.step()

    return step


class Clock:
    """Time in forward, which waits for rows."""

    def __init__(self, session):
        self.waiting = 0.0
        call, forward = session._call, session._library.trc_forward

        def timed(function, *arguments):
            begin = time.perf_counter()
            try:
                return call(function, *arguments)
            finally:
                if function is forward:
                    self.waiting += time.perf_counter() - begin

        session._call = timed


def collection(rows, bags, dim, samples, place, state, lookahead):
    from terrace.torch import EmbeddingBagCollection, EmbeddingBagConfig
    tables = [EmbeddingBagConfig(num_embeddings=r, embedding_dim=dim, name=f"t{i}") for i, r in enumerate(rows)]
    memory = {"tiers": [{"name": "dram", "kind": "dram", "capacity": "12GiB"},
                        {"name": "disk", "kind": "nvme", "capacity": "16GiB", "path": "rows.store"}]}
    return EmbeddingBagCollection(tables, optimizer={"kind": "rowwise_adagrad", "lr": LR, "eps": EPS}, batch_size=samples,
                                  max_ids={f"t{i}": b for i, b in enumerate(bags)}, memory=memory, state=state, model=os.path.basename(state),
                                  plan={"lookahead": lookahead, "place": [{"tables": "*", **place}]})


def bare_step(torch, session, data, gradient):
    """The calls alone; what they take and give lies ready."""
    import ctypes

    from terrace import _abi, _tensor
    library, handle, error, ticket = session._library, session._handle, _abi.error_struct(), ctypes.c_uint64()
    keys = (ctypes.c_int32 * len(session.features))(*range(len(session.features)))
    batches, keep = {}, []
    for batch in data:
        values, offsets = batch.values(), batch.offsets()
        batches[id(batch)] = _abi.KeyedBatch(struct_size=ctypes.sizeof(_abi.KeyedBatch), key_count=len(keys), keys=ctypes.addressof(keys),
                                             values=values.data_ptr(), offsets=offsets.data_ptr(), value_count=len(values), value_bits=64,
                                             offset_bits=64, samples=batch.stride())
        keep.append((values, offsets))
    out = torch.empty_like(gradient)
    to, of = _tensor.Pointers([_tensor.view(out, "out")]), _tensor.Pointers([_tensor.view(gradient, "gradient")])
    options = _abi.BackwardOptions(struct_size=ctypes.sizeof(_abi.BackwardOptions), grad_scale=1.0)
    keep.append((keys, out))

    def step(batch, _):
        if (library.trc_submit_keyed(handle, ctypes.byref(batches[id(batch)]), ctypes.byref(ticket), ctypes.byref(error))
                or library.trc_forward(handle, ticket.value, to.pointers, 1, ctypes.byref(error))
                or library.trc_backward(handle, ticket.value, of.pointers, 1, ctypes.byref(options), ctypes.byref(error))):
            _abi.raise_error(-1, error)

    step.keep = keep
    return step


def steps(torch, name, options, folder):
    rows, bags, dim, samples = workload(name, options.scale)
    data = batches(torch, rows, bags, samples, 4)
    gradient = torch.randn(samples, dim * len(rows)) / 100
    ebc = collection(rows, bags, dim, samples, {"home": "dram"}, os.path.join(folder, name), 0)

    def ours(batch, gradient):
        ebc(batch).values().backward(gradient)

    bare = bare_step(torch, ebc.session, data, gradient)
    variants = {"terrace": ours, "FBGEMM TBE": fbgemm_step(torch, rows, dim), "EmbeddingBag + Adagrad": torch_step(torch, rows, dim)}
    times = {}
    for round_ in range(options.rounds + 1):  # the first one warms up
        for variant, step in variants.items():
            for batch in data if step else ():
                if sum(times.get(variant, ())) > options.seconds * 1e3:
                    break  # slow: fewer steps tell as much
                begin = time.perf_counter()
                step(batch, gradient)
                spent = time.perf_counter() - begin
                if not round_ and spent > options.seconds / 4:
                    break
                if round_:
                    times.setdefault(variant, []).append(spent * 1e3)
    ids = samples * sum(bags)
    print(f"\n{name}: {len(rows)} tables, {sum(rows):,} rows x {dim}, batch {samples}, {ids:,} ids; median of up to {options.rounds * len(data)} steps")
    print(f"{'':24} {'ms/step':>9} {'spread':>19} {'M ids/s':>9}")
    for variant, taken in times.items():
        median = statistics.median(taken)
        print(f"{variant:24} {median:9.2f} {min(taken):9.2f}..{max(taken):8.2f} {ids / median / 1e3:9.2f}")
    layer(options, ours, bare, data, gradient)


def layer(options, ours, bare, data, gradient):
    """What Python adds: blocks of steps in the order A B B A, since the update goes on after backward and a step pays for the one before it.

    Medians of the blocks' steps, and of the difference of neighbours; the time of the calling thread alone beside them.
    """
    count, found = 8, {ours: [], bare: []}

    def block(step):
        begin, own = time.perf_counter(), time.thread_time()
        for i in range(count):
            step(data[i % len(data)], gradient)
        found[step].append(((time.perf_counter() - begin) / count * 1e3, (time.thread_time() - own) / count * 1e3))

    for round_ in range(4 * options.rounds + 1):
        for step in (ours, bare, bare, ours):
            block(step)
        if not round_:
            found[ours].clear(), found[bare].clear()
    shares = sorted((a - b) / a * 100 for (a, _), (b, _) in zip(found[ours], found[bare]))
    (mine, own), (calls, own_calls) = ([statistics.median(x) for x in zip(*found[step])] for step in (ours, bare))
    print(f"the layer of Python, {len(shares)} pairs of {count} steps: {mine:.2f} ms a step, bare calls {calls:.2f} ms; "
          f"the layer is {statistics.median(shares):.1f}% (quartiles {shares[len(shares) // 4]:.1f}..{shares[len(shares) * 3 // 4]:.1f}); "
          f"CPU of the calling thread {own:.2f} and {own_calls:.2f} ms")


def stalls(torch, options, folder):
    from terrace.torch import prefetch
    rows, bags, dim, samples = [int(200000 * options.scale)] * 4, [2] * 4, 64, 512
    count = 40

    def epoch(seed):  # three of four ids are from the first thirtieth of their table, which the cache holds; the others are new
        data = batches(torch, rows, bags, samples, count, seed)
        for batch in data:
            hot = torch.rand(len(batch.values())) < 0.75
            batch.values()[hot] //= 30
        return data

    gradient = torch.randn(samples, dim * len(rows)) / 100
    mlp = torch.nn.Sequential(torch.nn.Linear(dim * len(rows), 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024))
    found = {}
    for name in ("plain", "prefetch"):
        ebc = collection(rows, bags, dim, samples, {"home": "disk", "cache": {"dram": "10MiB"}}, os.path.join(folder, name), 3)
        ids = samples * bags[0]
        for begin in range(0, rows[0], ids):  # rows that were never written are not read: each once
            part = torch.arange(begin, begin + ids).remainder(rows[0])
            bag = part, torch.arange(samples + 1) * bags[0]
            whole = ebc({f"t{i}": bag for i in range(len(rows))})
            sum(out.sum() for out in whole.values()).backward()
        found[name] = ebc, Clock(ebc.session), []
    for round_ in range(options.rounds):
        data = epoch(round_)
        for name, (ebc, clock, taken) in found.items():
            loop = prefetch(data, ebc) if name == "prefetch" else ((b, None) for b in data)
            clock.waiting, begin = 0.0, time.perf_counter()
            for batch, ticket in loop:
                out = ebc(batch, ticket=ticket).values()
                mlp(out.detach()).sum().backward()  # what the dense part takes meanwhile
                out.backward(gradient)
            taken.append(((time.perf_counter() - begin) / count * 1e3, clock.waiting / count * 1e3))
    print(f"\nstalls: {len(rows)} tables x {rows[0]:,} rows x {dim} on NVMe, cache 10 MiB, batch {samples}; median of {options.rounds} epochs")
    print(f"{'':24} {'ms/step':>9} {'waiting in forward':>20}")
    for name, (_, _, taken) in found.items():
        print(f"{name:24} {statistics.median(t for t, _ in taken):9.2f} {statistics.median(w for _, w in taken):16.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["w4", "w1", "stalls"], help="w4, w1, stalls (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20, help="of one variant, at most")
    parser.add_argument("--scale", type=float, default=1.0, help="of the tables' rows")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is None:
        # The work runs in a child that is not closed: saving gigabytes of random rows is not what is measured.
        folder = tempfile.mkdtemp(prefix="terrace-bench-")
        try:
            sys.exit(subprocess.run([sys.executable, __file__, *sys.argv[1:], "--folder", folder]).returncode)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    import torch
    print(f"torch {torch.__version__}, {platform.machine()}, {os.cpu_count()} CPUs, {torch.get_num_threads()} threads of torch")
    for what in options.what:
        stalls(torch, options, options.folder) if what == "stalls" else steps(torch, what, options, options.folder)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
