"""The same script with TorchRec's collections and with ours, line by line; inputs and outputs are TorchRec's own."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import unittest

import torch

import support
from support import Scratch, np, terrace

import torchrec
from torchrec import EmbeddingBagConfig, EmbeddingConfig, JaggedTensor, KeyedJaggedTensor, KeyedTensor, PoolingType

from terrace.torch import EmbeddingBagCollection, EmbeddingCollection, load_optimizer_state, load_state_dict, prefetch, state_dict


def tables(pooling=PoolingType.SUM):
    return [EmbeddingBagConfig(name="t1", embedding_dim=8, num_embeddings=100, feature_names=["a", "b"], pooling=pooling),
            EmbeddingBagConfig(name="t2", embedding_dim=3, num_embeddings=60, feature_names=["b"], pooling=pooling)]


def batch(rng, samples=6, weighted=False, keys=("b", "a")):
    lengths = torch.from_numpy(rng.integers(0, 5, samples * len(keys)))
    values = torch.from_numpy(rng.integers(0, 60, int(lengths.sum())))
    weights = torch.from_numpy(rng.random(len(values), dtype=np.float32)) if weighted else None
    return KeyedJaggedTensor(keys=list(keys), values=values, lengths=lengths, weights=weights)


class TorchRecTest(Scratch):
    def setUp(self):
        super().setUp()
        support.need_compiler()

    def test_bags(self):
        for pooling, weighted in ((PoolingType.SUM, False), (PoolingType.MEAN, False), (PoolingType.SUM, True)):
            rng = np.random.default_rng(1)
            theirs = torchrec.EmbeddingBagCollection(tables=tables(pooling), is_weighted=weighted)
            ours = EmbeddingBagCollection(tables=tables(pooling), is_weighted=weighted, optimizer=torch.optim.SGD, fresh=True, batch_size=8,
                                          **{"tables.t1.optimizer.lr": 0.1, "tables.t2.optimizer.lr": 0.1})
            report = load_state_dict(ours, theirs.state_dict())
            self.assertTrue(report.ok, str(report))
            optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
            for _ in range(20):
                data = batch(rng, int(rng.integers(1, 9)), weighted)
                a, b = theirs(data), ours(data)
                self.assertIsInstance(b, KeyedTensor)
                self.assertEqual((a.keys(), a.length_per_key(), a.offset_per_key()), (b.keys(), b.length_per_key(), b.offset_per_key()))
                torch.testing.assert_close(a.values(), b.values(), rtol=1e-6, atol=1e-6)
                torch.testing.assert_close(a["b@t2"], b["b@t2"], rtol=1e-6, atol=1e-6)
                optimizer.zero_grad()
                a.values().square().sum().backward()
                b.values().square().sum().backward()
                optimizer.step()
            mine = state_dict(ours)
            for name, value in theirs.state_dict().items():
                torch.testing.assert_close(mine[name], value, rtol=1e-5, atol=1e-6)
            ours.close()
            theirs.load_state_dict(mine)

    def test_sequences(self):
        rng = np.random.default_rng(2)
        configs = [EmbeddingConfig(name="t", embedding_dim=4, num_embeddings=60, feature_names=["a", "b"])]
        theirs, ours = torchrec.EmbeddingCollection(tables=configs), EmbeddingCollection(tables=configs, batch_size=8)
        self.addCleanup(ours.close)
        load_state_dict(ours, theirs.state_dict())
        data = batch(rng)
        a, b = theirs(data), ours(data)
        self.assertEqual(list(a), list(b))
        for name in a:
            self.assertIsInstance(b[name], JaggedTensor)
            torch.testing.assert_close(a[name].values(), b[name].values(), rtol=0, atol=0)
            self.assertTrue(torch.equal(a[name].lengths(), b[name].lengths()))
            self.assertTrue(torch.equal(a[name].offsets(), b[name].offsets()))

    def test_optimizer_state_of_a_checkpoint(self):
        """Row-wise Adagrad: ten steps of TorchRec's, ten of ours from its checkpoint, against twenty of TorchRec's."""
        from torchrec.optim.keyed import KeyedOptimizerWrapper
        from torchrec.optim.rowwise_adagrad import RowWiseAdagrad
        rng = np.random.default_rng(4)
        theirs = torchrec.EmbeddingBagCollection(tables=tables())
        optimizer = KeyedOptimizerWrapper(dict(theirs.named_parameters()), lambda parameters: RowWiseAdagrad(parameters, lr=0.1, eps=1e-8))
        ours = EmbeddingBagCollection(tables=tables(), optimizer={"kind": RowWiseAdagrad, "lr": 0.1}, batch_size=8)
        self.addCleanup(ours.close)

        def step(data):
            optimizer.zero_grad()
            theirs(data).values().square().sum().backward()
            optimizer.step()

        for _ in range(10):
            step(batch(rng))
        torch.save({"model": theirs.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
        self.assertTrue(load_state_dict(ours, "checkpoint.pt").ok)
        report = load_optimizer_state(ours, "checkpoint.pt")
        self.assertEqual((report.ok, len(report.matched), report.unexpected), (True, 2, []), str(report))
        for _ in range(10):
            data = batch(rng)
            ours(data).values().square().sum().backward()
            step(data)
        mine = state_dict(ours)
        for name, value in theirs.state_dict().items():
            torch.testing.assert_close(mine[name], value, rtol=1e-4, atol=1e-5)

    def test_configs_start_alike(self):
        ours = EmbeddingBagCollection(tables=tables(), batch_size=8)
        self.addCleanup(ours.close)
        rows = ours.session.read_rows("t1", range(100))
        self.assertEqual(ours.notes, [])
        self.assertLess(np.abs(rows).max(), 0.1)
        self.assertGreater(np.abs(rows).max(), 0.09)  # uniform within 1 / sqrt(rows), as TorchRec

    def test_prefetched_batches(self):
        rng = np.random.default_rng(3)
        ours = EmbeddingBagCollection(tables=tables(), batch_size=8)
        self.addCleanup(ours.close)
        data = [batch(rng) for _ in range(5)]
        for kjt, ticket in prefetch(data, ours):
            ours(kjt, ticket=ticket).values().sum().backward()
        self.assertEqual(ours.session.step, 5)

    def test_what_is_refused(self):
        ours = EmbeddingBagCollection(tables=tables(), batch_size=8)
        self.addCleanup(ours.close)
        with self.raises(terrace.BadArgument, "variable stride"):
            ours(KeyedJaggedTensor(keys=["a", "b"], values=torch.arange(4), lengths=torch.tensor([1, 1, 2]),
                                   stride_per_key_per_rank=[[2], [1]]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
