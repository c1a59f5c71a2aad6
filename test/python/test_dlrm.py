"""examples/05-dlrm-pytorch: killed and resumed it ends in the same bits, and it is as good as with all tables in torch."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

import support
from support import Scratch, np, terrace

EXAMPLE = support.ROOT / "examples" / "05-dlrm-pytorch"
RETAIL = support.DATA / "online_retail.tsv.gz"
SEEDS = range(5)

# What dlrm_torchrec.py uses of TorchRec, with torch alone.
TWIN = """
import math
import torch
from torch import nn
from terrace.torch import EmbeddingBagConfig, KeyedTensor

class KeyedJaggedTensor:
    def __init__(self, keys, values, lengths):
        self.bags = dict(zip(keys, values.chunk(len(keys))))

class EmbeddingBagCollection(nn.Module):
    def __init__(self, tables):
        super().__init__()
        self.embedding_bags = nn.ModuleDict({t.name: nn.EmbeddingBag(t.num_embeddings, t.embedding_dim, mode="sum") for t in tables})
        for bag in self.embedding_bags.values():
            bound = math.sqrt(1 / bag.num_embeddings)
            nn.init.uniform_(bag.weight, -bound, bound)
    def forward(self, kjt):
        out = [self.embedding_bags[f](ids.unsqueeze(1)) for f, ids in kjt.bags.items()]
        return KeyedTensor(list(kjt.bags), [o.shape[1] for o in out], torch.cat(out, 1))
"""


class DlrmTest(Scratch):
    def setUp(self):
        super().setUp()
        support.need_compiler()
        if not RETAIL.exists():
            self.skipTest(f"{RETAIL} is not there")

    def start(self, script, *options, twin=False):
        paths = ([os.path.abspath("twin")] if twin else []) + [str(support.ROOT / "python")]
        return subprocess.Popen([sys.executable, str(EXAMPLE / script), str(RETAIL), *map(str, options)], text=True, stdout=subprocess.PIPE,
                                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore",
                                     "OMP_NUM_THREADS": "1"})

    def run_script(self, *arguments, **options):
        process = self.start(*arguments, **options)
        out, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, out)
        return out

    def state(self, text):
        return re.search(r"^state (\w+) at step 200$", text, re.M).group(1)

    def test_killed_and_resumed(self):
        whole = self.run_script("dlrm.py", "--state", "whole/state")
        killed = self.start("dlrm.py", "--state", "killed/state")
        seen = []
        for line in killed.stdout:
            seen.append(line)
            if line.startswith("step 150"):
                killed.send_signal(signal.SIGKILL)
        self.assertEqual(killed.wait(), -signal.SIGKILL)
        self.assertIn("checkpoint ckpt-100\n", seen)
        resumed = self.run_script("dlrm.py", "--state", "killed/state")
        self.assertIn("from step 100\n", resumed)
        self.assertEqual(self.state(whole), self.state(resumed))

    def test_as_good_as_torch(self):
        pathlib.Path("twin").mkdir()
        pathlib.Path("twin/torchrec.py").write_text(TWIN)
        values = {}
        for script, twin in (("dlrm.py", False), ("dlrm_torchrec.py", True)):
            values[script] = np.array([
                float(re.search(r"AUC ([0-9.]+)", self.run_script(script, "--seed", s, "--state", f"{script}{s}/state", twin=twin)).group(1))
                for s in SEEDS if os.makedirs(f"{script}{s}") is None])
        ours, theirs = values.values()
        print(f"AUC over {len(SEEDS)} seeds: ours {ours.mean():.4f} ({ours.min():.4f} .. {ours.max():.4f}), torch alone {theirs.mean():.4f} "
              f"({theirs.min():.4f} .. {theirs.max():.4f})")
        spread = max(np.ptp(ours), np.ptp(theirs))
        self.assertLessEqual(abs(ours.mean() - theirs.mean()), spread)
        self.assertGreater(ours.min(), 0.7)


if __name__ == "__main__":
    unittest.main(verbosity=2)
