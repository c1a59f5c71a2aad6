"""Random models against nn.EmbeddingBag and nn.Embedding with torch's optimizers.

Forward is compared with torch on the same rows, within 1e-6 of the magnitude of a bag; the tables after 20 steps within a bound per
optimizer, in units of its learning rate. Usage: test_differential.py [--count N] [--seed S]; one seed reproduces one model.
"""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile

import torch
from torch import nn

import support
from support import bags, np, terrace
from terrace.torch import EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection, EmbeddingConfig

DIMS = [1, 1, 2, 3, 4, 7, 9, 9, 16, 33, 64, 1025]
FORWARD = 1e-6  # of the sum of |weight * value| of a bag
# Largest difference of a table's value after 20 steps, in units of lr, besides one rounding of the value per step. All but sgd divide gradients by
# their own size, so that what rounding leaves of sums that cancel counts more.
BOUNDS = {"sgd": 1e-4, "adagrad": 1e-4, "rowwise_adagrad": 1e-4, "adam": 1e-4}
STEPS = 20


class RowWiseAdagrad:
    """By the formula of docs/numerics.md, in f64, on sparse or dense gradients."""

    def __init__(self, weight, lr):
        self.weight, self.lr = weight, lr
        self.sums = torch.zeros(len(weight), 1, dtype=torch.float64)

    def zero_grad(self):
        self.weight.grad = None

    @torch.no_grad()
    def step(self):
        gradient = self.weight.grad
        gradient = (gradient.to_dense() if gradient.is_sparse else gradient).double()
        self.sums += gradient.square().mean(1, keepdim=True)
        self.weight -= (self.lr * gradient / (self.sums.sqrt() + 1e-8)).float()


def optimizer_of(kind, lr, weight):
    if kind == "sgd":
        return torch.optim.SGD([weight], lr)
    if kind == "adagrad":
        return torch.optim.Adagrad([weight], lr, eps=1e-8)
    if kind == "adam":
        return torch.optim.SparseAdam([weight], lr)
    return RowWiseAdagrad(weight, lr)


class Case:
    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.seed, self.pooled = seed, rng.random() < 0.8
        self.weighted = self.pooled and rng.random() < 0.3
        self.batch = rng.choice([1, 2, 7, 16, 40])
        self.most = rng.choice([1, 2, 5, 12])
        self.tables, self.optimizers = [], {}
        for t in range(rng.randint(1, 4)):
            name, rows = f"t{t}", rng.choice([1, 2, 5, 50, 300, 1000])
            pooling = rng.choice(["SUM", "MEAN", "MAX"] if not self.weighted else ["SUM"]) if self.pooled else None
            kinds = ["sgd", "adagrad", "rowwise_adagrad"] + (["adam"] if pooling != "MAX" else [])
            self.optimizers[name] = {"kind": rng.choice(kinds), "lr": rng.choice([0.01, 0.1, 0.5])}
            features = [f"f{t}.{i}" for i in range(rng.choice([1, 1, 2, 3]))]
            common = dict(num_embeddings=rows, embedding_dim=rng.choice(DIMS), name=name, feature_names=features, weight_init_min=-1.0,
                          weight_init_max=1.0)
            self.tables.append(EmbeddingBagConfig(pooling=pooling, **common) if self.pooled else EmbeddingConfig(**common))
        place = [{"tables": t.name, "home": "disk", "cache": {"dram": rng.choice(["0B", "1KiB", "64KiB"])}} for t in self.tables
                 if rng.random() < 0.5]
        self.plan = {"lookahead": rng.choice([0, 1, 2, 3]), "place": place}

    def collection(self, folder):
        options = {"is_weighted": self.weighted} if self.pooled else {}
        kind = EmbeddingBagCollection if self.pooled else EmbeddingCollection
        return kind(self.tables, optimizer=self.optimizers, batch_size=self.batch, max_ids=self.most, memory=support.memory("1GiB"),
                    plan=self.plan, state=os.path.join(folder, "state"), model="m", seed=self.seed, **options)


def compare(case, folder):
    rng = np.random.default_rng(case.seed)
    ours = case.collection(folder)
    session = ours.session
    twins, optimizers, readers = {}, [], []
    for table in case.tables:
        rows = torch.from_numpy(session.read_rows(table.name, range(table.num_embeddings)))
        kind = case.optimizers[table.name]
        if case.pooled:
            sparse = table.pooling != "MAX"  # which torch only does densely
            twin = nn.EmbeddingBag(*rows.shape, mode=table.pooling.lower(), include_last_offset=True, sparse=sparse, _weight=rows.clone())
        else:
            twin = nn.Embedding(*rows.shape, sparse=True, _weight=rows.clone())
        twins[table.name] = twin
        optimizers.append(optimizer_of(kind["kind"], kind["lr"], twin.weight))
        readers += [(feature, table) for feature in table.feature_names]

    def lookup(twin, bag):
        if not case.pooled:
            return twin(bag[0])
        return twin(bag[0], bag[1], bag[2] if case.weighted else None)

    for step in range(STEPS):
        samples = case.batch if step % 3 else int(rng.integers(1, case.batch + 1))
        data = {}
        for feature, table in readers:
            dtype = np.int32 if rng.random() < 0.3 else np.int64
            values, offsets = bags(rng, samples, table.num_embeddings, case.most, dtype)
            data[feature] = (torch.from_numpy(values), torch.from_numpy(offsets))
            if case.weighted:
                data[feature] += (torch.from_numpy(rng.standard_normal(values.size, dtype=np.float32)), )
        same = {t.name: torch.from_numpy(session.read_rows(t.name, range(t.num_embeddings))) for t in case.tables}
        out = ours(data)
        losses = [torch.zeros(()), torch.zeros(())]
        for feature, table in readers:
            bag = data[feature]
            if case.pooled:
                mode, weights = table.pooling.lower(), (bag[2] if case.weighted else None)
                expected = nn.functional.embedding_bag(bag[0], same[table.name], bag[1], mode=mode, per_sample_weights=weights,
                                                       include_last_offset=True)
                size = nn.functional.embedding_bag(bag[0], same[table.name].abs(), bag[1], mode=mode, include_last_offset=True,
                                                   per_sample_weights=weights.abs() if weights is not None else None)
            else:
                expected = size = nn.functional.embedding(bag[0], same[table.name])
            excess = ((out[feature].detach() - expected).abs() - FORWARD * size.abs()).max() if expected.numel() else 0
            if excess > 0:
                raise AssertionError(f"forward of {feature} at step {step} is off by {float(excess)} more than allowed")
            factor = torch.from_numpy(rng.standard_normal(tuple(out[feature].shape), dtype=np.float32))
            for i, value in enumerate((out[feature], lookup(twins[table.name], bag))):
                losses[i] = losses[i] + (value * factor).sum() + 0.005 * value.square().sum()
        for optimizer in optimizers:
            optimizer.zero_grad()
        for loss in losses:
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    worst = []
    for table in case.tables:
        kind = case.optimizers[table.name]
        rows = torch.from_numpy(session.read_rows(table.name, range(table.num_embeddings)))
        error = float((rows - twins[table.name].weight.detach()).abs().max())
        error = max(0.0, error - STEPS * 2**-23 * float(rows.abs().max())) / kind["lr"]
        worst.append((kind["kind"], error))
        if not error <= BOUNDS[kind["kind"]]:
            raise AssertionError(f"table {table.name} ({kind}) is off by {error:.3g} lr after {STEPS} steps")
    ours.close()
    return worst


def one(seed):
    folder = tempfile.mkdtemp(prefix="terrace-python-")
    try:
        return compare(Case(seed), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=int(os.environ.get("TERRACE_PYTHON_COUNT", 200)))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    try:
        terrace.find_compiler()
    except terrace.NotFound as error:
        print(f"skipped: {error}")
        sys.exit(77)
    failed, worst = [], {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = {seed: pool.submit(one, seed) for seed in range(options.seed, options.seed + options.count)}
        for seed, job in jobs.items():
            try:
                for kind, error in job.result():
                    worst[kind] = max(worst.get(kind, 0), error)
            except Exception as error:  # noqa: BLE001 - report every seed
                failed.append(seed)
                print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"torch {torch.__version__}: {options.count - len(failed)} of {options.count} models agree; largest difference of a table, in lr: "
          + ", ".join(f"{k} {v:.1e}" for k, v in sorted(worst.items())))
    if failed:
        sys.exit(f"failed seeds: {failed}")


if __name__ == "__main__":
    main()
