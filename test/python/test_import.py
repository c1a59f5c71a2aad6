"""terrace import-torchrec: the spec of a model's collections, what it lists, and that the spec compiles."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import unittest

import support
from support import Scratch, terrace
from terrace import importer

MODEL = """
import functools
import torch
from torch import nn
from terrace.torch import EmbeddingBagConfig, EmbeddingConfig

class Bags(nn.Module):  # what TorchRec's collections look like from outside
    def __init__(self, weighted, *configs):
        super().__init__()
        self.weighted, self.configs = weighted, configs
    def embedding_bag_configs(self):
        return self.configs
    def is_weighted(self):
        return self.weighted

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.sparse = Bags(False,
            EmbeddingBagConfig(name="user", num_embeddings=1000, embedding_dim=16, feature_names=["user", "friend"], pooling="MEAN",
                               init_fn=functools.partial(nn.init.normal_, std=0.5)),
            EmbeddingBagConfig(name="item", num_embeddings=500, embedding_dim=8, feature_names=["cart", "friend"], weight_init_max=0.25,
                               init_fn=lambda t: t.fill_(3)))
        self.other = Bags(True, EmbeddingBagConfig(name="tag", num_embeddings=30, embedding_dim=4, feature_names=["tag"]))
        self.plain = nn.EmbeddingBag(70, 3, mode="max", padding_idx=0)
        self.top = nn.Linear(4, 1)

def make():
    print("noise of the model's own")
    return Model()

def half():
    return Bags(False, EmbeddingBagConfig(name="h", num_embeddings=7, embedding_dim=3, data_type="FP16"),
                EmbeddingBagConfig(name="e", num_embeddings=7, embedding_dim=3, data_type="INT8"))

def none():
    return nn.Linear(1, 1)
"""


class ImportTest(Scratch):
    def setUp(self):
        super().setUp()
        support.need_compiler()
        pathlib.Path("module.py").write_text(MODEL)

    def run_verb(self, *arguments):
        return subprocess.run([terrace.find_compiler(), "import-torchrec", *arguments], text=True, capture_output=True,
                              env={**os.environ, "TERRACE_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})

    def run_here(self, *arguments):
        """The same without a process, which would import torch again."""
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            code = importer.main(list(arguments))
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), said.getvalue())

    def test_a_model(self):
        done = self.run_verb("module.py:make", "-o", "spec.yaml", "--optimizer", "adagrad", "--max-ids", "20", "--batch", "128")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = pathlib.Path("spec.yaml").read_text()
        for line in ("model: make", "batch: {size: 128}",
                     "- {name: user, rows: 1000, dim: 16, init: {kind: normal, mean: 0.0, std: 0.5}, optimizer: {kind: adagrad}}",
                     "init: {kind: uniform, low: -0.044721359549995794, high: 0.25}",
                     "- {name: user, table: user, pooling: mean, max_ids: 20}",
                     "- {name: friend.user, table: user, pooling: mean, max_ids: 20, column: friend}",
                     "- {name: friend.item, table: item, pooling: sum, max_ids: 20, column: friend}",
                     "- {name: tag, table: tag, pooling: sum, max_ids: 20, weights: tag.weight}",
                     "- {name: plain, table: plain, pooling: max, max_ids: 20}"):
            self.assertIn(line, text)
        for note in ("init_fn is a function of its own", "padding_idx 0", "dense layers", "max_ids"):
            self.assertIn(note, text)
            self.assertIn(note, done.stderr)
        self.assertEqual(done.stdout, "")
        with terrace.load(terrace.compile("spec.yaml")) as session:
            self.assertEqual([f.name for f in session.features], ["user", "friend.user", "cart", "friend.item", "tag", "plain"])
            self.assertEqual((session.batch, session.features[0].max_ids, session.tables["item"].dim), (128, 20, 8))

    def test_what_is_refused(self):
        for arguments, words in ((["module.py"], "FILE.py:FUNCTION"), (["gone.py:make"], "no file 'gone.py'"), (["module.py:nope"], "no 'nope'"),
                                 (["module.py:none"], "has no EmbeddingBagCollection")):
            done = self.run_here(*arguments)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(words, done.stderr)
        done = self.run_here("module.py:half")
        self.assertIn("dtype: f16", done.stdout)
        self.assertNotIn("FP16", done.stderr)
        self.assertIn("INT8 tables are for serving only", done.stderr)
        done = subprocess.run([terrace.find_compiler(), "import-torchrec", "module.py:make"], text=True, capture_output=True,
                              env={**os.environ, "TERRACE_PYTHON": "/bin/false"})
        self.assertEqual(done.returncode, 3)
        self.assertIn("TERRACE_PYTHON", done.stderr)

    def test_torchrec_itself(self):
        try:
            import torchrec  # noqa: F401
        except ImportError:
            self.skipTest("torchrec is not here")
        pathlib.Path("real.py").write_text("""
import torch, torchrec
def make():
    return torchrec.EmbeddingBagCollection(device=torch.device("meta"), tables=[
        torchrec.EmbeddingBagConfig(name="t", embedding_dim=8, num_embeddings=40000000, feature_names=["a"])])
""")
        done = self.run_here("real.py:make")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("- {name: t, rows: 40000000, dim: 8, init: {kind: uniform, low: -0.000158", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
