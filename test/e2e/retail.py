"""Online Retail, as the README's demo trains it: AUC as measured with numpy, exactness, and a read-only eval."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import hashlib

from harness import Folder, RETAIL, ROOT, TERRACE, expect, json_lines, need_retail, run, tree_bytes

LOGISTIC = ["--set", "head.kind=logistic", "--set", "defaults.table.dim=1",
            "--set", "defaults.table.init={kind: constant, value: 0}",
            "--set", "defaults.table.optimizer={kind: adagrad, lr: 0.1}"]


def digest(state):
    return {name: hashlib.sha256(data).hexdigest() for name, data in tree_bytes(state).items()
            if not name.endswith("lock")}


def final(text):
    lines = [line for line in json_lines(text) if line.get("event") == "end"]
    expect(lines, f"no closing line in {text[-500:]}")
    return lines[-1]


def main():
    need_retail()
    spec = ROOT / "examples" / "02-retail" / "model.yaml"
    with Folder() as folder:
        for name, options, progressive, held_out in (("fm", [], 0.695, 0.803), ("logistic", LOGISTIC, 0.616, 0.775)):
            run(TERRACE, "compile", spec, "-o", name, *options, cwd=folder)
            end = final(run(f"./{name}", "train", "--fresh", "--state", f"{name}.state", "--data", RETAIL, "--json",
                            cwd=folder).stdout)
            print(f"{name}: AUC progressive {end['progressive']['auc']:.4f} (numpy {progressive}), "
                  f"held out {end['held_out']['auc']:.4f} (numpy {held_out})")
            expect(abs(end["progressive"]["auc"] - progressive) <= 0.005, "progressive AUC is off")
            expect(abs(end["held_out"]["auc"] - held_out) <= 0.005, "held-out AUC is off")

        before = digest(folder / "fm.state")
        run("./fm", "eval", "--state", "fm.state", "--data", RETAIL, cwd=folder)
        run("./fm", "predict", "--state", "fm.state", "--data", RETAIL, "--out", "p.txt", cwd=folder)
        expect(before == digest(folder / "fm.state"), "eval or predict changed the state")
        print(run("./fm", "verify", "--data", RETAIL, "--steps", 200, cwd=folder).stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
