"""Distinct rows and inverse of W1's and W2's batches: the runtime's beside torch.unique and absl::flat_hash_map, one thread, interleaved, in CPU time.

Ids are drawn as `terrace data generate` draws them: W1 with Zipf 1.05 (and uniform) first ids that fix the rest of their bag, W2 with the
reuse of rows that was measured in 2022. Nanoseconds per id, medians. An answer that differs from torch's is an error.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import ctypes
import os
import pathlib
import platform
import statistics
import time

W1_ROWS = (40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209, 11938, 155, 4, 976, 14, 40000000,
           40000000, 40000000, 590152, 12973, 108, 36)
W1_HOT = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)
# Of W2's window of 131,072 samples: reuse of a row, and the part of all accesses.
W2_REUSE = ((1, .027), (2, .023), (3.5, .040), (6.5, .068), (12, .105), (24, .120), (48, .099), (96, .070), (360, .153), (5800, .221), (50000, .076))


def w1(np, rng, uniform):
    for total, hot in zip(W1_ROWS, W1_HOT):
        rows = min(total, 400000)
        if uniform or total <= 10000:
            first = rng.integers(0, rows, 2048)
        else:
            weights = np.arange(1, rows + 1) ** -1.05
            first = np.searchsorted(weights.cumsum() / weights.sum(), rng.random(2048))
            first = rng.permutation(rows)[np.minimum(first, rows - 1)]
        rest = rng.integers(0, rows, (rows, hot - 1)) if hot > 1 else np.empty((rows, 0), np.int64)
        yield np.concatenate([first[:, None], rest[first]], 1).ravel(), rows


def w2(np, rng):
    for table in range(48):
        rows = 131072 if table < 32 else 524288 if table < 44 else 1048576
        count = int(8192 * min(120, max(1, rng.lognormal(1.8, 1.28))))
        window, streams = count * 16, []  # 16 batches make the window
        for reuse, part in W2_REUSE:
            distinct = max(1, min(rows, int(window * part / reuse)))
            streams.append(rng.choice(rows, distinct, replace=False)[rng.integers(0, distinct, int(count * part))])
        yield rng.permutation(np.concatenate(streams)), rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    import numpy as np
    try:
        import torch
        torch.set_num_threads(1)
    except ImportError:
        torch = None
    library = ctypes.CDLL(str(pathlib.Path(os.environ["TERRACE_BUILD"]) / "lib" / "TerraceBenchLimit.so"))
    library.unique_runtime.restype = library.unique_absl.restype = ctypes.c_int64
    p, i64 = ctypes.c_void_p, ctypes.c_int64
    print(f"{platform.machine()}, CPU time of one thread; ns per id, median of {options.rounds} +- half the quartile distance")
    print(f"{'':12} {'ids':>9} {'distinct':>9} | {'terrace':>8} {'':5} {'torch':>8} {'absl':>8} | {'/torch':>7} {'/absl':>7}")
    for name, make in (("W1", lambda rng: w1(np, rng, False)), ("W1 uniform", lambda rng: w1(np, rng, True)), ("W2", lambda rng: w2(np, rng))):
        parts = list(make(np.random.default_rng(1)))
        ids = np.ascontiguousarray(np.concatenate([part for part, _ in parts]), np.int64)
        begins = np.cumsum([0] + [len(part) for part, _ in parts]).astype(np.int64)
        rows = np.array([r for _, r in parts], np.int64)
        joined = ids + np.repeat(np.cumsum(rows) - rows, np.diff(begins))
        out, x, places = np.zeros(len(ids) + 1, np.uint32), np.zeros(len(ids), np.uint32), np.zeros(2 * len(ids) + 1, np.uint32)
        own = [a.ctypes.data for a in (ids, begins, rows)]

        def runtime():
            return library.unique_runtime(*map(p, own), i64(len(rows)), p(out.ctypes.data), p(x.ctypes.data), p(places.ctypes.data))

        def absl(together):
            return library.unique_absl(*map(p, own), i64(len(rows)), p(out.ctypes.data), p(x.ctypes.data), i64(together))

        distinct = runtime()
        if distinct != len(np.unique(joined)) or not np.array_equal(out[x], joined):
            raise SystemExit(f"{name}: the runtime's rows are wrong")
        calls = {"terrace": runtime}
        if torch:
            tensors = [torch.from_numpy(np.ascontiguousarray(part, np.int64)) for part, _ in parts]
            whole = torch.from_numpy(joined)
            calls["torch"] = lambda: [torch.unique(t, sorted=False, return_inverse=True) for t in tensors]
            calls["torch, joined"] = lambda: torch.unique(whole, sorted=False, return_inverse=True)
        if absl(0) >= 0:
            calls["absl"] = lambda: absl(0)
            calls["absl, joined"] = lambda: absl(1)
        taken = {key: [] for key in calls}
        for _ in range(options.rounds + 1):
            for key, call in calls.items():
                begin = time.thread_time()
                call()
                taken[key].append((time.thread_time() - begin) * 1e9 / len(ids))
        times = {key: statistics.quantiles(values[1:], n=4) for key, values in taken.items()}
        mine = times["terrace"]

        def best(peer):
            return min((t[1] for key, t in times.items() if key.startswith(peer)), default=float("nan"))

        print(f"{name:12} {len(ids):9,} {distinct:9,} | {mine[1]:8.2f} +-{(mine[2] - mine[0]) / 2 / mine[1] * 100:2.0f}% {best('torch'):8.2f} "
              f"{best('absl'):8.2f} | {best('torch') / mine[1]:6.1f}x {best('absl') / mine[1]:6.1f}x", flush=True)


if __name__ == "__main__":
    main()
