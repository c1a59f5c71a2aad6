"""What both scripts share: Online Retail as batches, the dense layers of a small DLRM, AUC."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import csv
import gzip
import hashlib

import numpy as np
import torch
from torch import nn

FEATURES = ["stock", "customer", "country"]
ROWS = {"stock": 4070, "customer": 4373, "country": 38}
DIM, DENSE = 16, 4


def arguments():
    parser = argparse.ArgumentParser(description="Predicts which lines of an online shop's invoices are cancelled.")
    parser.add_argument("data", help="online_retail.tsv.gz, or a twin of terrace data generate retail")
    parser.add_argument("--steps", type=int, default=200, help="optimizer steps in all (default: 200)")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", default="dlrm.state", help="where tables and checkpoints lie")
    parser.add_argument("--every", type=int, default=100, help="steps between checkpoints (default: 100)")
    return parser.parse_args()


class Data:
    """Rows in time order; the last tenth is held out."""

    def __init__(self, path, batch):
        with gzip.open(path, "rt") as file:
            columns = list(zip(*csv.reader(file, delimiter="\t")))
        columns = {c[0]: np.array(c[1:], dtype=np.int64) for c in columns}
        self.batch, rows = batch, len(columns["cancel"])
        self.train = rows - rows // 10
        self.rows = rows
        self.ids = {f: torch.from_numpy(columns[f]) for f in FEATURES}
        self.labels = torch.from_numpy(columns["cancel"].astype(np.float32))

        def column(name, otherwise):  # the generated twin has the ids and the label only
            return columns.get(name, np.full(rows, otherwise))

        hour = column("unix_s", 0) // 3600 % 24
        dense = [np.log1p(np.abs(column("qty", 1))), np.log1p(np.abs(column("price_cents", 100))), np.cos(hour / 12 * np.pi), np.sin(hour / 12 * np.pi)]
        self.dense = torch.from_numpy(np.stack(dense, 1).astype(np.float32))

    def cut(self, begin, end):
        """(dense, ids by feature, labels) of rows begin .. end - 1."""
        return self.dense[begin:end], {f: ids[begin:end] for f, ids in self.ids.items()}, self.labels[begin:end]

    def batches(self, first, last):
        """Batches of steps first .. last - 1; where the rows end, they begin again."""
        steps = self.train // self.batch
        for step in range(first, last):
            begin = step % steps * self.batch
            yield self.cut(begin, begin + self.batch)

    def held_out(self):
        for begin in range(self.train, self.rows, self.batch):
            yield self.cut(begin, min(begin + self.batch, self.rows))


class Dense(nn.Module):
    """Bottom MLP, dot products of all pairs of vectors, top MLP."""

    def __init__(self):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(DENSE, 64), nn.ReLU(), nn.Linear(64, DIM), nn.ReLU())
        vectors = len(FEATURES) + 1
        self.pairs = torch.triu_indices(vectors, vectors, 1)
        self.top = nn.Sequential(nn.Linear(DIM + self.pairs.shape[1], 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense, vectors):
        x = self.bottom(dense)
        all_vectors = torch.cat([x.unsqueeze(1), vectors.reshape(len(x), -1, DIM)], 1)
        products = all_vectors @ all_vectors.transpose(1, 2)
        return self.top(torch.cat([x, products[:, self.pairs[0], self.pairs[1]]], 1)).squeeze(1)


def auc(scores, labels):
    """Area under the ROC curve; ties count half."""
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive = labels > 0
    n = positive.sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(labels) - n)))


def digest(*tensors):
    """A short name for the exact bits of tensors."""
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(tensor.detach().contiguous().numpy().tobytes())
    return total.hexdigest()[:16]
