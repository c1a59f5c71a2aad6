"""calibrate --quick, then compile and explain with its file; what it leaves behind; damaged files and folders that cannot be used."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import subprocess
import time

from harness import Folder, TERRACE, expect, run

SPEC = {"terrace": 1, "model": "m", "batch": {"size": 256},
        "features": [{"name": "user", "table": {"rows": 20000, "dim": 16}, "max_ids": 10},
                     {"name": "item", "table": {"rows": 50000, "dim": 16, "optimizer": {"kind": "adam", "lr": 0.01}}}],
        "head": {"kind": "fm", "label": "click"}, "data": {"path": "none.tsv"},
        "memory": {"tiers": [{"name": "dram", "kind": "dram", "capacity": "8MiB"},
                             {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "m.store"}]},
        "plan": {"lookahead": 2, "place": [{"tables": "*", "home": "disk", "cache": {"dram": "400KiB"}}]}}
STAGES = ("ingest", "unique", "probe", "fetch", "store", "copy", "gather", "head", "update", "sync")


def numbers(value, path=""):
    """Every number of a JSON value, with its path."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from numbers(part, f"{path}.{key}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from numbers(part, f"{path}[{i}]")
    elif isinstance(value, (int, float)):
        yield path, value


def measure(folder):
    begin = time.monotonic()
    done = run(TERRACE, "calibrate", "--quick", "--folder", "disk", "-o", "machine.json", cwd=folder)
    seconds = time.monotonic() - begin
    expect(seconds < 120, f"--quick took {seconds:.0f} s")  # a third of that on an idle machine, many times on a busy one
    expect("machine.json: " in done.stdout and "--machine" in done.stdout, done.stdout)
    expect(done.stderr.count("calibrate: ") == 9 and "9 of 9" in done.stderr, f"progress:\n{done.stderr}")
    expect(not os.listdir(folder / "disk"), f"left behind: {os.listdir(folder / 'disk')}")
    machine = json.loads((folder / "machine.json").read_text())
    expect(machine["measured"]["by"].startswith("terrace ") and machine["measured"]["at"].endswith("Z"), machine["measured"])
    expect(set(machine["tiers"]) == {"dram", "nvme"}, machine["tiers"].keys())
    expect(len(machine["cpu"]["update"]) == 8, machine["cpu"]["update"].keys())
    for path, value in numbers(machine):
        expect(value > 0, f"{path} is {value}")
    for refused, code in ((["-o", "machine.json"], 2), (["--folder", "nowhere", "-o", "b.json"], 3)):
        again = run(TERRACE, "calibrate", "--quick", *refused, cwd=folder, ok=False)
        expect(again.returncode == code and refused[1] in again.stderr, f"{refused}: {again.returncode}\n{again.stderr}")
    stopped = subprocess.Popen([TERRACE, "calibrate", "--quick", "--folder", "disk", "-o", "c.json"], cwd=folder, stderr=subprocess.PIPE, text=True)
    while "3 of 9" not in stopped.stderr.readline():
        expect(stopped.poll() is None, "it ended before it was interrupted")
    stopped.terminate()
    said = stopped.communicate(timeout=300)[1]
    expect(stopped.returncode == 3 and "interrupted" in said, f"{stopped.returncode}\n{said}")
    expect(not os.listdir(folder / "disk") and not (folder / "c.json").exists(), "an interrupted calibration leaves files behind")
    print(f"measured in {seconds:.0f} s; nothing is left in the folder")
    return machine


def use(folder, machine):
    (folder / "m.yaml").write_text(json.dumps(SPEC))
    shipped = run(TERRACE, "explain", "m.yaml", cwd=folder).stdout
    expect("machine: conservative defaults, not measured" in shipped, shipped)
    text = run(TERRACE, "explain", "m.yaml", "--machine", "machine.json", cwd=folder).stdout
    expect(f"machine: machine.json, measured {machine['measured']['at']} on {machine['measured']['on']}" in text, text)
    plan = json.loads(run(TERRACE, "explain", "m.yaml", "--machine", "machine.json", "--json", cwd=folder).stdout)
    for stage in STAGES:
        expect(plan["stages"][stage] > 0, f"{stage} costs nothing: {plan['stages']}")
    # As a key of the spec, it is the same.
    (folder / "k.yaml").write_text(json.dumps({**SPEC, "machine": "machine.json"}))
    by_key = json.loads(run(TERRACE, "explain", "k.yaml", "--json", cwd=folder).stdout)
    expect(by_key["stages"] == plan["stages"], "the key and the option differ")
    # A disk that is ten times slower fetches ten times longer.
    slow = json.loads(json.dumps(machine))
    slow["tiers"]["nvme"]["latency_us"] *= 10
    slow["tiers"]["nvme"]["read"]["iops"] = [[v / 10 for v in line] for line in slow["tiers"]["nvme"]["read"]["iops"]]
    (folder / "slow.json").write_text(json.dumps(slow))
    late = json.loads(run(TERRACE, "explain", "m.yaml", "--machine", "slow.json", "--json", cwd=folder).stdout)
    ratio = late["stages"]["fetch"] / plan["stages"]["fetch"]
    expect(9.9 < ratio < 10.1, f"fetch is {ratio:.2f} times as long")
    run(TERRACE, "compile", "m.yaml", "--machine", "machine.json", "-o", "m", cwd=folder)
    run("./m", "bench", "--steps", "3", cwd=folder)
    print("explain and compile use it")


def damage(folder):
    text = (folder / "machine.json").read_text()
    (folder / "cut.json").write_text(text[:len(text) // 2])
    (folder / "other.json").write_text(text.replace('"terrace_machine": 1', '"terrace_machine": 2'))
    (folder / "wrong.json").write_text(text.replace('"ns_per_row"', '"ns_per_raw"', 1))
    for name, words in (("cut.json", ("cut.json:", )), ("other.json", ("terrace_machine", "found 2", "terrace calibrate")),
                        ("wrong.json", ("ns_per_raw: unknown key", ))):
        done = run(TERRACE, "explain", "m.yaml", "--machine", name, cwd=folder, ok=False)
        expect(done.returncode == 1, f"{name}: {done.returncode}\n{done.stderr}")
        for word in words:
            expect(word in done.stderr, f"'{word}' is not in: {done.stderr}")
    missing = run(TERRACE, "explain", "m.yaml", "--machine", "gone.json", cwd=folder, ok=False)
    expect(missing.returncode == 2 and "gone.json" in missing.stderr, missing.stderr)
    print("damaged files are named")


def main():
    with Folder() as folder:
        (folder / "disk").mkdir()
        machine = measure(folder)
        use(folder, machine)
        damage(folder)


if __name__ == "__main__":
    main()
