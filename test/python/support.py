"""Shared by the tests of the Python package: where things are, specs, reference arithmetic, batches."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.setdefault("TERRACE_BUILD", str(ROOT / "build")))
DATA = pathlib.Path(os.environ.get("TERRACE_SHARED_DATA", ROOT.parent / "shared" / "data"))
if not os.environ.get("TERRACE_INSTALLED"):  # else the installed package is under test
    sys.path.insert(0, str(ROOT / "python"))

import numpy as np  # noqa: E402
import terrace  # noqa: E402


def memory(dram="64MiB"):
    return {"tiers": [{"name": "dram", "kind": "dram", "capacity": dram},
                      {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "rows.store"}]}


class Scratch(unittest.TestCase):
    """Runs in a folder of its own, which is removed at the end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="terrace-python-")
        self.before = os.getcwd()
        os.chdir(self.folder)
        # Cleanups run last in, first out: whatever a test opens is closed before.
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(os.chdir, self.before)

    def raises(self, kind, *words):
        """assertRaises that also looks for words in the message."""
        test = self

        class Context:
            def __enter__(self):
                return self

            def __exit__(self, got, value, trace):
                test.assertIsNotNone(got, f"no {kind.__name__} was raised")
                if not issubclass(got, kind):
                    return False
                for word in words:
                    test.assertIn(word, str(value))
                self.error = value
                return True

        return Context()


def bags(rng, samples, rows, most, dtype=np.int64, skew=True):
    """Random bags, some of them empty, with ids that repeat: (values, offsets)."""
    lengths = rng.integers(0, most + 1, samples)
    offsets = np.zeros(samples + 1, dtype)
    np.cumsum(lengths, out=offsets[1:])
    ids = rng.integers(0, rows, offsets[-1])
    if skew:
        hot = rng.random(ids.size) < 0.5
        ids[hot] = rng.integers(0, max(1, rows // 10), int(hot.sum()))
    return ids.astype(dtype), offsets


def need_compiler():
    try:
        terrace.find_compiler()
    except terrace.NotFound as error:
        raise unittest.SkipTest(str(error))
