"""One artifact and one wheel under every torch at hand, and without any: no rebuild, the same bytes."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import pathlib
import subprocess
import sys
import unittest
import zipfile

import support
from support import Scratch, terrace

TRAIN = """
import hashlib, json, sys
import numpy as np, terrace
try:
    import torch
except ImportError:
    torch = None
rng, hand_over = np.random.default_rng(1), (lambda array: torch.from_numpy(array) if torch else array)
with terrace.load(sys.argv[1]) as session:
    for _ in range(10):
        ids = hand_over(rng.integers(0, 1000, 64))
        ticket = session.submit({"a": ids[:32], "b": (ids, hand_over(np.arange(0, 65, 2)))})
        out = session.forward(ticket, {k: hand_over(np.empty((32, 9), np.float32)) for k in "ab"})
        session.backward(ticket, out)
    rows = session.read_rows("t", range(1000))
print(json.dumps({"python": sys.version.split()[0], "torch": torch and torch.__version__, "file": terrace.__file__,
                  "rows": hashlib.sha256(rows.tobytes()).hexdigest()}))
"""


class VersionsTest(Scratch):
    def test_one_wheel_for_all(self):
        support.need_compiler()
        artifact = terrace.compile({"model": "m", "batch": {"size": 32}, "tables": [{"name": "t", "rows": 1000, "dim": 9}],
                                    "features": [{"name": "a", "table": "t"}, {"name": "b", "table": "t", "max_ids": 2}]})
        made = subprocess.run([sys.executable, support.ROOT / "python" / "build_backend.py", "dist"], text=True, capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        name = made.stdout.strip()
        self.assertTrue(name.endswith("-py3-none-linux_x86_64.whl"), name)
        again = subprocess.run([sys.executable, support.ROOT / "python" / "build_backend.py", "again"], text=True, capture_output=True)
        self.assertEqual(pathlib.Path(name).read_bytes(), pathlib.Path(again.stdout.strip()).read_bytes())
        with zipfile.ZipFile(name) as wheel:
            wheel.extractall("site")
        pathlib.Path("train.py").write_text(TRAIN)
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "terrace"
        pythons = [sys.executable, "/usr/bin/python3"] + [str(p) for p in sorted(cache.glob("torch-*/bin/python"))]
        # What surrounds this test must not help the package to find its library.
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TERRACE")}
        reports = []
        for python in dict.fromkeys(pythons):
            if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode:
                continue
            done = subprocess.run([python, "train.py", os.path.abspath(artifact)], text=True, capture_output=True,
                                  env={**clean, "PYTHONPATH": os.path.abspath("site")})
            self.assertEqual(done.returncode, 0, done.stderr)
            reports.append(json.loads(done.stdout))
            subprocess.run(["rm", "-rf", "m.state"], check=True)
        for report in reports:
            print(f"Python {report['python']}, torch {report['torch']}: {report['rows'][:16]}")
            self.assertIn("/site/terrace/", report["file"])
        self.assertEqual(len({r["rows"] for r in reports}), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
