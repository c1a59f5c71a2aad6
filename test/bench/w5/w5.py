"""W5: tables larger than memory, with a full store and a warm cache, against the roofline of the device.

Writes all rows first. For each id stream it simulates the steps that warm the cache (W5Tool, with the runtime's own cache), leaves that cache
for `train --warm`, and measures the next steps: README.md says what the columns mean.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "e2e"))
from harness import BUILD, TERRACE, json_lines, run  # noqa: E402

TOOL = pathlib.Path(os.environ.get("W5_TOOL", HERE.parents[3] / "build-runtime" / "bin" / "W5Tool"))
STREAMS = ["kvcache", "follower", "leader", "uniform"]
MODEL_IOPS, MODEL_BYTES = 1e6, 4e9
RECORD = 272  # bytes of a row in the store


class Size:
    def __init__(self, small):
        self.rows, self.batch = (80_000, 64) if small else (8_000_000, 4096)
        self.dram, self.disk = (30, 1024) if small else (3072, 33 * 1024)  # MiB
        self.memory_rows = 80_000 if small else 800_000
        self.written = 64 << 20 if small else 1 << 30
        self.seconds = 0.5 if small else 4.0
        self.lookaheads = (2, 1, 0)
        self.needed = 1 << 30 if small else 38 << 30


def spec(size, rows, dram, place, lookahead, disk=True):
    tiers = [{"name": "dram", "kind": "dram", "capacity": f"{dram}MiB"}]
    if disk:
        tiers.append({"name": "disk", "kind": "nvme", "capacity": f"{size.disk}MiB", "path": "w5.store"})
    return {
        "terrace": 1, "model": "w5", "batch": {"size": size.batch},
        "defaults": {"table": {"dim": 64, "rows": rows, "optimizer": {"kind": "sgd", "lr": 0.05}}, "feature": {"max_ids": 10, "mean_ids": 10}},
        "features": [{"name": "f{i}", "count": 8, "table": {}}],
        "head": {"kind": "logistic", "label": "label"},
        "train": {"checkpoint": {"keep": 1}}, "data": {"path": "data.tsv"},
        "memory": {"tiers": tiers}, "plan": {"lookahead": lookahead, "place": [place]}}


def fits(folder, what):
    (folder / "try.yaml").write_text(json.dumps(what))
    return run(TERRACE, "explain", "try.yaml", cwd=folder, ok=False).returncode == 0


def largest_cache(folder, size):
    """The spec with the deepest lookahead whose plan fits at all, and as many MiB of cache as it then can have."""
    def make(lookahead, cache):
        return spec(size, size.rows, size.dram, {"tables": "*", "home": "disk", "cache": {"dram": f"{cache}MiB"}}, lookahead)
    for lookahead in size.lookaheads:
        low, high = max(1, size.dram // 8), size.dram
        if not fits(folder, make(lookahead, low)):
            continue
        step = max(1, size.dram // 128)
        while high - low > step:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(folder, make(lookahead, middle)) else (low, middle)
        return make(lookahead, low), lookahead, low
    sys.exit("no plan of W5 fits the memory")


def tool(*args):
    return json.loads(run(TOOL, *args, timeout=7200).stdout)


def groups_sum(stats, key):
    return sum(g.get(key, 0) for g in stats["groups"])


class Trace:
    """The stages of a run: when each batch's update ended, and how long each op took."""

    def __init__(self, path):
        events = json.loads(path.read_text())
        self.lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.ops, ends = [], {}
        for e in events:
            if e["ph"] != "X":
                continue
            self.ops.append((e["name"].split()[0], self.lanes[e["tid"]], e["args"]["batch"], e["dur"] / 1e3))
            if e["name"].startswith("segment_update"):
                ends[e["args"]["batch"]] = max(ends.get(e["args"]["batch"], 0), (e["ts"] + e["dur"]) / 1e3)
        self.ends = [ends[t] for t in sorted(ends)]

    def steps(self, first):
        """ms from update to update, of the batches from `first` on."""
        return [b - a for a, b in zip(self.ends[first - 1:], self.ends[first:])]

    def stages(self, first):
        """By op: its lane, its mean ms a batch, and the lower quartile, which has less of the waits inside."""
        times = {}
        for name, lane, batch, ms in self.ops:
            if batch >= first:
                by_batch = times.setdefault(name, (lane, {}))[1]
                by_batch[batch] = by_batch.get(batch, 0.0) + ms
        return {name: (lane, statistics.mean(ms.values()), sorted(ms.values())[len(ms) // 4]) for name, (lane, ms) in times.items()}


def train(folder, model, name, *args):
    trace = folder / f"{name}.trace"
    done = run(f"./{model}", "train", "--json", *args, cwd=folder, timeout=7200, env={"TERRACE_TRACE": str(trace)})
    lines = json_lines(done.stdout)
    start = next(e for e in lines if e["event"] == "start")
    end = next(e for e in lines if e["event"] == "end")
    result = Trace(trace)
    trace.unlink()
    return start["stats"], end["stats"], result


def device_rates(store, size, read_bytes, reads):
    return (tool("reads", store, "--bytes", read_bytes, "--count", max(64, int(reads)), "--seconds", size.seconds),
            tool("writes", store.with_name("beside"), "--bytes", size.written))


def measure(folder, size, options, stream, cores):
    state, store = folder / "state", folder / "state" / "w5.store"
    simulated = tool("warm", "--lib", folder / "libw5.so", "--state", state, "--stream", stream, "--data", folder / "data.tsv",
                     "--memory-data", folder / "memory.tsv", "--memory-rows", size.memory_rows,
                     "--warmup", options.warmup, "--steps", options.steps)
    skip = min(4, options.steps - 1)  # the pipeline fills
    dram = train(folder, "memory", "memory", "--state", "memory.state", "--fresh", "--data", "memory.tsv", "--epochs", 2)
    dram_steps = dram[2].steps(options.steps + skip)
    before = device_rates(store, size, 1024, simulated["misses"])
    start, end, trace = train(folder, "w5", "w5", "--state", "state", "--warm", "--data", "data.tsv", "--steps", options.steps)
    if groups_sum(start, "warmed") == 0:
        sys.exit(f"{stream}: the caches did not start warm")

    def per_step(key):
        return (groups_sum(end, key) - groups_sum(start, key)) / options.steps

    reads, read = per_step("reads"), per_step("bytes_read")
    after = device_rates(store, size, max(512, int(read / max(1, reads))), reads)
    iops, cpu = (statistics.mean((before[0][key], after[0][key])) for key in ("per_second", "cpu_us"))
    bandwidth = statistics.mean((before[1]["bytes_per_second"], after[1]["bytes_per_second"]))
    steps = trace.steps(skip)
    written = per_step("bytes_written")
    r = {
        "stream": stream, "simulated": simulated, "unique": per_step("unique_rows"), "misses": per_step("misses"),
        "first_touches": per_step("first_touches"), "from_buffer": per_step("buffer_fetches"), "rows_read": per_step("rows_read"),
        "reads": reads, "bytes_read": read, "rows_written": per_step("rows_written"), "bytes_written": written,
        "warmed": groups_sum(start, "warmed"), "steps": steps, "dram_steps": dram_steps, "iops": iops,
        "iops_runs": [before[0]["per_second"], after[0]["per_second"]], "read_cpu_us": cpu, "bandwidth": bandwidth,
        "stages": trace.stages(skip), "dram_stages": dram[2].stages(options.steps + skip)}
    r["step"], r["dram"] = statistics.median(steps), statistics.median(dram_steps)
    compute = r["dram"] + reads * cpu / 1e3 / cores
    r["cpu_bound"], r["io_bound"] = compute, 1e3 * (reads / iops + written / bandwidth)
    r["roofline"] = max(r["cpu_bound"], r["io_bound"])
    lanes = {}
    for name, (lane, _, quartile) in r["stages"].items():
        if name != "fetch":
            lanes[lane] = lanes.get(lane, 0.0) + quartile
    r["lanes"] = lanes
    r["model_io"] = 1e3 * (reads / MODEL_IOPS + written / MODEL_BYTES)
    r["model_roofline"] = max(compute, r["model_io"])
    r["model_step"] = max(r["model_roofline"], max(lanes.values()))
    return r


def ends(values, digits=1):
    return f"{min(values):.{digits}f}..{max(values):.{digits}f}"


def show(results, cores):
    print("\nMisses a step; buffer: those that the write buffer answered. Goal: measured / simulated <= 1.05")
    print(f"{'stream':10}{'unique':>9}{'measured':>10}{'simulated':>10}{'ratio':>7}{'LRU':>9}{'Belady':>9}{'first':>7}{'buffer':>8}")
    for r in results:
        s = r["simulated"]
        print(f"{r['stream']:10}{r['unique']:9.0f}{r['misses']:10.0f}{s['misses']:10.0f}{r['misses'] / max(1, s['misses']):7.3f}{s['lru']:9.0f}"
              f"{s['belady']:9.0f}{r['first_touches']:7.0f}{r['from_buffer']:8.0f}")
    print("\nThe device, by a bare loop before and after the steps: reads of that size in written extents, writes beside "
          "them. (no stop): what would be written if the rows that were there at the start were dirty, as without a restart")
    print(f"{'stream':10}{'reads':>9}{'rows read':>10}{'MB read':>9}{'MB written':>11}{'(no stop)':>10}{'k IOPS':>8}{'(runs)':>15}{'MB/s write':>11}{'us CPU/read':>12}")
    for r in results:
        print(f"{r['stream']:10}{r['reads']:9.0f}{r['rows_read']:10.0f}{r['bytes_read'] / 1e6:9.2f}{r['bytes_written'] / 1e6:11.2f}"
              f"{r['simulated']['writes'] * RECORD / 1e6:10.2f}"
              f"{r['iops'] / 1e3:8.1f}{ends([x / 1e3 for x in r['iops_runs']]):>15}{r['bandwidth'] / 1e6:11.0f}{r['read_cpu_us']:12.2f}")
    print(f"\nms a step, median and ends. roofline = max(all-DRAM + reads x CPU / {cores} cores, reads / IOPS + written / bandwidth). Goal: x <= 1.1")
    print(f"{'stream':10}{'step':>9}{'(ends)':>18}{'all-DRAM':>10}{'(ends)':>16}{'+ I/O CPU':>10}{'device':>9}{'roofline':>9}{'x':>6}")
    for r in results:
        print(f"{r['stream']:10}{r['step']:9.2f}{ends(r['steps']):>18}{r['dram']:10.2f}{ends(r['dram_steps']):>16}{r['cpu_bound']:10.2f}"
              f"{r['io_bound']:9.2f}{r['roofline']:9.2f}{r['step'] / r['roofline']:6.2f}")
    print("\nms a step by stage (all-DRAM in brackets). sum: these and the device's time, one after the other; what the step is below it, lanes and "
          "prefetch hide. fetch ends when its reads are queued; spill and fill may hold waits for the device")
    for r in results:
        total = r["io_bound"] + sum(ms for _, ms, _ in r["stages"].values())
        parts = [f"{name} {ms:.2f}" + (f" ({r['dram_stages'][name][1]:.2f})" if name in r["dram_stages"] else "")
                 for name, (_, ms, _) in r["stages"].items() if ms >= 0.005]
        print(f"{r['stream']:10} sum {total:.2f}, hidden {100 * max(0.0, 1 - r['step'] / total):.0f} %: " + ", ".join(parts))
    print(f"\nCalculated, not run: the same reads on a device of {MODEL_IOPS / 1e6:.0f} M IOPS and {MODEL_BYTES / 1e9:.0f} GB/s. step: the slowest of the "
          "roofline and the lanes as measured (lower quartiles), without fetch")
    print(f"{'stream':10}{'device':>9}{'roofline':>9}{'step':>9}{'x':>6}{'x all-DRAM':>11}")
    for r in results:
        print(f"{r['stream']:10}{r['model_io']:9.2f}{r['model_roofline']:9.2f}{r['model_step']:9.2f}{r['model_step'] / r['model_roofline']:6.2f}"
              f"{r['model_step'] / r['dram']:11.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="8 x 80,000 rows in 30 MiB: seconds, to see that it works")
    parser.add_argument("--streams", nargs="+", default=STREAMS, choices=[*STREAMS, "shift"])
    parser.add_argument("--warmup", type=int, default=300, help="steps that are simulated")
    parser.add_argument("--steps", type=int, default=50, help="steps that are measured")
    parser.add_argument("--folder", type=pathlib.Path, default=BUILD, help="on the device to measure; a scratch folder is made in it")
    parser.add_argument("--json", type=pathlib.Path, help="all figures")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps must be 2 or more")
    size, cores = Size(options.small), len(os.sched_getaffinity(0))
    if (free := shutil.disk_usage(options.folder).free) < size.needed:
        sys.exit(f"{options.folder} has {free / 1e9:.0f} GB free; W5 takes up to {size.needed / 1e9:.0f} GB, --folder names another place")
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"note: the load is {load:.1f}; figures to keep need an idle machine")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-w5-", dir=options.folder.resolve()))
    try:
        model, lookahead, cache = largest_cache(folder, size)
        (folder / "w5.yaml").write_text(json.dumps(model))
        memory = spec(size, size.memory_rows, 1024 if options.small else 4096, {"tables": "*", "home": "dram"}, lookahead, disk=False)
        (folder / "memory.yaml").write_text(json.dumps(memory))
        run(TERRACE, "compile", "w5.yaml", "-o", "w5", cwd=folder)
        run(TERRACE, "compile", "w5.yaml", "--emit=lib", "-o", "libw5.so", cwd=folder)
        run(TERRACE, "compile", "memory.yaml", "-o", "memory", cwd=folder)
        print(f"8 tables x {size.rows} rows x 64 f32, SGD, batch {size.batch}, bag 10, {size.dram} MiB of DRAM of which {cache} MiB cache, lookahead "
              f"{lookahead}; {platform.machine()}, {cores} CPUs\nall-DRAM: the same program with 8 x {size.memory_rows} rows in memory, ids modulo "
              f"that; {options.warmup} steps simulated, {options.steps} measured", flush=True)
        tool("fill", "--lib", folder / "libw5.so", "--state", folder / "state")
        results = []
        for stream in options.streams:
            results.append(measure(folder, size, options, stream, cores))
            print(f"{stream}: {results[-1]['step']:.2f} ms a step", flush=True)
        show(results, cores)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
