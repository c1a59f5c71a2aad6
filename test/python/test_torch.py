"""terrace.torch: autograd, learning rates, prefetch, weights, state_dicts, and how each misuse is told."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import unittest
import warnings

import torch
from torch import nn

import support
from support import Scratch, bags, np, terrace
from terrace.torch import EmbeddingBagCollection, EmbeddingBagConfig, EmbeddingCollection, EmbeddingConfig, FusedOptimizer
from terrace.torch import load_optimizer_state, load_state_dict, prefetch, save_state_dict, state_dict

TABLES = [EmbeddingBagConfig(name="users", num_embeddings=50, embedding_dim=4, feature_names=["user"]),
          EmbeddingBagConfig(name="items", num_embeddings=300, embedding_dim=9, feature_names=["cart", "seen"], pooling="MEAN")]
SGD = {"kind": "sgd", "lr": 0.5}


def batch(rng, samples=8, weighted=False):
    result = {}
    for name, rows in (("user", 50), ("cart", 300), ("seen", 300)):
        values, offsets = bags(rng, samples, rows, 5)
        result[name] = (torch.from_numpy(values), torch.from_numpy(offsets))
        if weighted:
            result[name] += (torch.from_numpy(rng.random(values.size, dtype=np.float32)), )
    return result


class TorchTest(Scratch):
    def setUp(self):
        super().setUp()
        support.need_compiler()

    def collection(self, tables=TABLES, **options):
        made = EmbeddingBagCollection(tables, **{"batch_size": 8, "max_ids": 8, "optimizer": SGD, **options})
        self.addCleanup(made.close)
        return made

    def rows(self, ebc, table):
        return torch.from_numpy(ebc.session.read_rows(table, range(ebc.session.tables[table].rows)))

    def twin(self, ebc):
        return nn.ModuleDict({"t_" + t: nn.EmbeddingBag(*self.rows(ebc, t).shape, mode="mean" if t == "items" else "sum",
                                                        include_last_offset=True, _weight=self.rows(ebc, t)) for t in ("users", "items")})

    def lookup(self, twin, data):
        return {f: twin["t_users" if f == "user" else "t_items"](*data[f]) for f in data}

    def test_trains_as_embedding_bag(self):
        rng = np.random.default_rng(1)
        ebc = self.collection()
        twin = self.twin(ebc)
        torch.manual_seed(1)
        dense, other = nn.Linear(22, 1), nn.Linear(22, 1)
        other.load_state_dict(dense.state_dict())
        optimizers = [torch.optim.SGD(dense.parameters(), 0.1), torch.optim.SGD([*other.parameters(), *twin.parameters()], 0.1)]
        optimizers[1].param_groups[0]["lr"] = 0.1
        optimizers[1] = torch.optim.SGD([{"params": other.parameters(), "lr": 0.1}, {"params": twin.parameters(), "lr": 0.5}])
        for _ in range(20):
            data = batch(rng, int(rng.integers(1, 9)))
            for optimizer, model, outputs in zip(optimizers, (dense, other), (ebc(data), self.lookup(twin, data))):
                optimizer.zero_grad()
                model(torch.cat([outputs[f] for f in data], 1)).sigmoid().mean().backward()
                optimizer.step()
        for table in ("users", "items"):
            torch.testing.assert_close(self.rows(ebc, table), twin["t_" + table].weight.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(dense.weight, other.weight, rtol=1e-5, atol=1e-6)
        self.assertEqual(ebc.session.step, 20)

    def test_outputs_and_gradients_stay_where_they_are(self):
        ebc = self.collection()
        seen = {}
        session = ebc.session
        forward, backward = session.forward, session.backward
        session.forward = lambda ticket, out: (seen.update(out=out), forward(ticket, out))[1]
        session.backward = lambda ticket, grads, **more: (seen.update(grad=grads), backward(ticket, grads, **more))[1]
        out = ebc(batch(np.random.default_rng(2)))
        whole = next(iter(out.values()))._base
        self.assertEqual([t.data_ptr() for t in torch.split(seen["out"], [4, 9, 9], 1)], [t.data_ptr() for t in out.values()])
        gradient = torch.randn(8, 22)
        whole.backward(gradient)
        self.assertEqual((seen["grad"].data_ptr(), seen["grad"].shape), (gradient.data_ptr(), gradient.shape))
        ebc(batch(np.random.default_rng(2)))["cart"]._base.sum().backward()  # one number, expanded
        self.assertEqual(seen["grad"].stride(), (0, 0))

    def test_outputs_of_half_the_size(self):
        rng = np.random.default_rng(13)
        for dtype in (torch.float16, torch.bfloat16):
            name = str(dtype)[6:]
            wide, half = self.collection(state="wide-" + name), self.collection(state="half-" + name, output_dtype=dtype)
            for _ in range(4):
                data = batch(rng)
                outs, halves = wide(data), half(data)
                for name, out in outs.items():
                    self.assertEqual(halves[name].dtype, dtype)
                    self.assertTrue(torch.equal(halves[name], out.to(dtype)))
                gradients = {name: torch.randn(out.shape).to(dtype) for name, out in outs.items()}
                torch.autograd.backward(list(halves.values()), list(gradients.values()))
                torch.autograd.backward(list(outs.values()), [g.float() for g in gradients.values()])
            for table in ("users", "items"):
                self.assertTrue(torch.equal(self.rows(wide, table), self.rows(half, table)))
        with self.assertRaisesRegex(terrace.BadArgument, "output_dtype is torch.float64"):
            self.collection(output_dtype=torch.float64)

    def test_outputs_that_are_held_are_left_alone(self):
        ebc = self.collection()
        rng = np.random.default_rng(12)
        ebc.eval()

        def look(hold):
            out = ebc(batch(rng))["cart"]
            return hold(out), out.clone()

        held = [look(hold) for hold in (lambda t: t, lambda t: t[1:], lambda t: t.numpy(), lambda t: t.untyped_storage(), lambda t: t.detach())]
        for _ in range(3):
            ebc(batch(rng))
        for what, copy in held:
            if isinstance(what, torch.UntypedStorage):
                what = torch.empty(0).set_(what, 0, (8, 22))[:, 4:13]
            what = torch.as_tensor(what)
            self.assertTrue(torch.equal(what, copy[-len(what):]))
        del held, what, copy
        out = ebc(batch(rng))["cart"].share_memory_()  # as a queue to another process does, whose names nobody here can count
        seen = torch.empty(0).set_(type(out.untyped_storage())._new_shared_filename_cpu(*out.untyped_storage()._share_filename_cpu_()),
                                   out.storage_offset(), out.shape, out.stride())
        copy = out.clone()
        del out
        for _ in range(3):
            ebc(batch(rng))
        self.assertTrue(torch.equal(seen, copy))
        first = ebc(batch(rng))["cart"].data_ptr()
        self.assertEqual(first, ebc(batch(rng))["cart"].data_ptr())  # nobody held it
        ebc.train()
        a, b = ebc(batch(rng))["cart"], None
        kept, loss = a.detach().clone(), a.square().sum()  # the graph holds it
        del a
        loss.backward(retain_graph=False)
        b = ebc(batch(rng))["cart"]
        self.assertEqual(kept.shape, b.shape)
        b.sum().backward()

    def test_evaluation_changes_nothing(self):
        ebc = self.collection()
        data = batch(np.random.default_rng(3))
        before = self.rows(ebc, "items")
        with torch.no_grad():
            a = ebc(data)["cart"]
        ebc.eval()
        b = ebc(data)["cart"]
        self.assertFalse(a.requires_grad or b.requires_grad)
        self.assertTrue(torch.equal(a, b))
        self.assertEqual((ebc.session.step, ebc.session.in_flight), (0, []))
        self.assertTrue(torch.equal(before, self.rows(ebc, "items")))

    def test_misuse_of_autograd_is_told(self):
        ebc = self.collection()
        rng = np.random.default_rng(4)
        loss = ebc(batch(rng))["cart"].square().sum()
        loss.backward(retain_graph=True)
        with self.raises(terrace.OutOfOrder, "second backward", "retain_graph"):
            loss.backward()
        loss = ebc(batch(rng))["cart"].square().sum()
        with self.raises(terrace.Unsupported, "create_graph"):
            loss.backward(create_graph=True)
        with self.raises(terrace.OutOfOrder, "before backward", "skip()"):
            ebc(batch(rng))
        ebc.skip()
        with self.raises(terrace.OutOfOrder, "second backward"):
            loss.backward()
        out = ebc(batch(rng))
        del out  # a batch whose outputs are gone is released by itself
        ebc(batch(rng))["user"].sum().backward()
        out = ebc(batch(rng))["user"]
        with self.raises(terrace.BadInput, "gradient of feature 'user'", "nan"):
            (out * float("nan")).sum().backward()
        ebc(batch(rng))["user"].sum().backward()
        self.assertEqual(ebc.session.step, 3)

    def test_wrong_inputs_are_told(self):
        ebc = self.collection()
        data = batch(np.random.default_rng(5))
        with self.raises(terrace.BadArgument, "no feature 'user'"):
            ebc({"cart": data["cart"], "seen": data["seen"]})
        with self.raises(terrace.BadArgument, "int32 or int64"):
            ebc({**data, "user": (torch.zeros(3), data["user"][1])})
        with self.raises(terrace.BadArgument, "meta"):
            ebc({**data, "user": (data["user"][0].to("meta"), data["user"][1])})
        with self.raises(terrace.BadInput, "feature 'cart'", "id 300") as seen:
            ebc({**data, "cart": torch.tensor([1, 2, 3, 4, 300, 5, 6, 7])})
        self.assertEqual(seen.error.sample, 4)
        with self.raises(terrace.BadArgument, "device cuda"):
            EmbeddingBagCollection(TABLES, device="cuda")
        with self.raises(terrace.BadArgument, "EmbeddingCollection"):
            EmbeddingBagCollection([EmbeddingBagConfig(5, 2, "t", pooling="NONE")])
        ebc(data)["user"].sum().backward()
        self.assertIs(ebc.to(torch.float16), ebc)

    def test_shared_features_and_names(self):
        tables = [EmbeddingBagConfig(20, 2, "a", ["x", "y z"]), EmbeddingBagConfig(30, 3, "b", ["x"])]
        ebc = self.collection(tables)
        self.assertEqual(list(ebc({"x": torch.tensor([1, 2]), "y z": torch.tensor([[1, 3], [4, 5]])})), ["x@a", "y z", "x@b"])

    def test_schedulers_drive_the_rate(self):
        ebc = self.collection()
        twin = self.twin(ebc)
        rng = np.random.default_rng(6)
        optimizers = [ebc.fused_optimizer, torch.optim.SGD(twin.parameters(), 0.5)]
        schedulers = [torch.optim.lr_scheduler.StepLR(o, 2, 0.1) for o in optimizers]
        for _ in range(6):
            data = batch(rng)
            for outputs, optimizer, scheduler in zip((ebc(data), self.lookup(twin, data)), optimizers, schedulers):
                optimizer.zero_grad()
                sum(o.sum() for o in outputs.values()).backward()
                optimizer.step()
                scheduler.step()
        self.assertAlmostEqual(ebc.session.stats()["lr_scale"], 0.01)
        torch.testing.assert_close(self.rows(ebc, "items"), twin["t_items"].weight.detach(), rtol=1e-5, atol=1e-6)
        self.assertIsInstance(ebc.fused_optimizer, FusedOptimizer)
        self.assertEqual(ebc.fused_optimizer.state_dict()["param_groups"][0]["lr"], optimizers[1].param_groups[0]["lr"])

    def test_a_scaled_loss(self):
        plain, scaled = self.collection(model="plain"), self.collection(model="scaled", **{"seed": 1})
        scaled.session.write_rows("items", range(300), self.rows(plain, "items"))
        data = batch(np.random.default_rng(12))
        plain(data)["cart"].sum().backward()
        scaled.grad_scale = 1 / 1024
        (scaled(data)["cart"].sum() * 1024).backward()
        self.assertTrue(torch.equal(self.rows(plain, "items"), self.rows(scaled, "items")))

    def test_weight_gradients(self):
        def pooled(pooling, rows, weights, offsets):
            bags = []
            for begin, end in zip(offsets[:-1], offsets[1:]):
                w = weights[begin:end]
                whole = (w[:, None] * rows[begin:end]).sum(0)
                divisor = {"SUM": 1, "MEAN": max(1, end - begin), "WEIGHTED_MEAN": w.sum(), "SQRTN": w.square().sum().sqrt()}[pooling]
                bags.append(whole / divisor if end > begin else whole)
            return torch.stack(bags)

        for pooling in ("SUM", "MEAN", "WEIGHTED_MEAN", "SQRTN"):
            rng = np.random.default_rng(7)
            tables = [EmbeddingBagConfig(50, 4, "users", ["user"], pooling=pooling), EmbeddingBagConfig(300, 9, "items", ["cart", "seen"],
                                                                                                     pooling=pooling)]
            ebc = self.collection(tables, is_weighted=True, model=pooling.lower())
            ebc.grad_scale = 0.25
            twin = self.rows(ebc, "items").requires_grad_()
            for _ in range(5):
                data = batch(rng, weighted=True)
                for feature in ("cart", "user"):
                    data[feature][2].requires_grad_()  # those of "seen" want none
                weights = {f: data[f][2].detach().clone().requires_grad_() for f in data}
                out = ebc(data)
                ((out["cart"].square() + 3 * out["seen"]).sum() + out["user"].square().sum()).backward()
                looked = {f: pooled(pooling, twin[data[f][0]], weights[f], data[f][1]) for f in ("cart", "seen")}
                (looked["cart"].square() + 3 * looked["seen"]).sum().backward()
                with torch.no_grad():
                    twin -= 0.25 * 0.5 * twin.grad
                    twin.grad = None
                torch.testing.assert_close(data["cart"][2].grad, weights["cart"].grad, rtol=1e-5, atol=1e-6)
                self.assertEqual(data["user"][2].grad.shape, data["user"][2].shape)
                self.assertIsNone(data["seen"][2].grad)
            torch.testing.assert_close(self.rows(ebc, "items"), twin.detach(), rtol=1e-5, atol=1e-6)
            self.assertGreater(float(data["cart"][2].grad.abs().max()), 0)

    def test_weights_of_ids_that_are_left_out(self):
        ebc = self.collection([EmbeddingBagConfig(10, 2, "t", ["f"])], is_weighted=True, on_bad_id="drop")
        weights = torch.ones(5, requires_grad=True)
        rows = self.rows(ebc, "t")
        ebc({"f": (torch.tensor([1, 99, 2, -5, 3]), torch.tensor([0, 3, 5]), weights)})["f"].sum().backward()
        torch.testing.assert_close(weights.grad, torch.stack([rows[1].sum(), torch.tensor(0.), rows[2].sum(), torch.tensor(0.), rows[3].sum()]))

    def test_types_and_optimizers(self):
        """Each data type and optimizer of TorchRec's that there is, against the formula where torch has it."""
        def made(optimizer, word="FP32", **more):
            return self.collection([EmbeddingBagConfig(30, 5, "t", ["f"], data_type=word)], optimizer=optimizer,
                                   model=f"m{len(os.listdir())}", **more)

        ids, offsets = torch.tensor([1, 2, 2, 29]), torch.tensor([0, 1, 2, 4])
        twins = [({"kind": torch.optim.SGD, "lr": 0.1, "momentum": 0.9}, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
                 ({"kind": torch.optim.AdamW, "lr": 0.1}, lambda p: torch.optim.AdamW(p, 0.1)),
                 ({"kind": torch.optim.AdamW, "lr": 0.1, "weight_decay": 0}, lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0)),
                 ({"kind": "adagrad", "lr": 0.1, "weight_decay": 0.1}, lambda p: torch.optim.Adagrad(p, 0.1, eps=1e-8, weight_decay=0.1))]
        for optimizer, twin in twins:
            ebc = made(optimizer)
            weight = self.rows(ebc, "t")[[1, 2, 29]].clone().requires_grad_()  # those that occur: torch moves the others as well
            theirs = twin([weight])
            for _ in range(10):
                theirs.zero_grad()
                ebc({"f": (ids, offsets)})["f"].square().sum().backward()
                nn.functional.embedding_bag(torch.tensor([0, 1, 1, 2]), weight, offsets, mode="sum", include_last_offset=True).square().sum().backward()
                theirs.step()
            torch.testing.assert_close(self.rows(ebc, "t")[[1, 2, 29]], weight.detach(), rtol=1e-4, atol=1e-5)
        for kind in ("PARTIAL_ROWWISE_ADAM", "LAMB", "ftrl", "EXACT_SGD"):
            ebc = made({"kind": kind, "lr": 0.1})
            before = self.rows(ebc, "t")
            ebc({"f": (ids, offsets)})["f"].sum().backward()
            self.assertEqual((self.rows(ebc, "t") != before).any(1).nonzero().flatten().tolist(), [1, 2, 29])
        with self.raises(terrace.BadArgument, "LARS_SGD", "partial_rowwise_adam"):
            made("LARS_SGD")
        with self.raises(terrace.Unsupported, "nesterov"):
            made({"kind": torch.optim.SGD, "lr": 1, "nesterov": True})
        for word, element in (("FP16", torch.float16), ("BF16", torch.bfloat16)):
            ebc = made({"kind": "sgd", "lr": 0.1}, word)
            self.assertEqual(ebc.notes, [])
            rows = self.rows(ebc, "t")
            self.assertTrue(torch.equal(rows, rows.to(element).float()))
            ebc({"f": (ids, offsets)})["f"].sum().backward()
            expected = rows.clone()
            expected[[1, 2, 29]] -= torch.tensor([[0.1], [0.2], [0.1]])
            self.assertTrue(torch.equal(self.rows(ebc, "t"), expected.to(element).float()))
            found = state_dict(ebc)["embedding_bags.t.weight"]
            self.assertEqual(found.dtype, element)
            self.assertTrue(torch.equal(found, expected.to(element)))
            save_state_dict(ebc, "half.safetensors")
            ebc.session.write_rows("t", range(30), torch.zeros(30, 5))
            report = load_state_dict(ebc, "half.safetensors")
            self.assertEqual((report.ok, report.converted), (True, []))
            self.assertTrue(torch.equal(self.rows(ebc, "t"), expected.to(element).float()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.raises(terrace.CompileError, "int8"):
                made("sgd", "INT8")

    def test_optimizer_state_goes_on(self):
        """Ten steps in torch, ten here from its tables and sums, against twenty in torch."""
        rng = np.random.default_rng(13)
        ebc = self.collection(optimizer={"kind": "adagrad", "lr": 0.1})
        twin = self.twin(ebc)
        theirs = torch.optim.Adagrad(twin.parameters(), 0.1, eps=1e-8)

        def step(data):
            theirs.zero_grad()
            sum(o.square().sum() for o in self.lookup(twin, data).values()).backward()
            theirs.step()

        for _ in range(10):
            step(batch(rng))
        names = {0: "embedding_bags.users.weight", 1: "embedding_bags.items.weight"}
        keyed = {"state": {names[k]: v for k, v in theirs.state_dict()["state"].items()}, "param_groups": []}
        torch.save(keyed, "optimizer.pt")
        load_state_dict(ebc, {names[i]: p.detach() for i, p in enumerate(twin.parameters())})
        report = load_optimizer_state(ebc, "optimizer.pt")
        self.assertTrue(report.ok, str(report))
        self.assertEqual((len(report.matched), report.unexpected), (2, []))
        for _ in range(10):
            data = batch(rng)
            sum(o.square().sum() for o in ebc(data).values()).backward()
            step(data)
        for table in ("users", "items"):
            torch.testing.assert_close(self.rows(ebc, table), twin["t_" + table].weight.detach(), rtol=1e-5, atol=1e-6)
        fused = {"state": {"dmp.ebc.embedding_bags.users.weight": {"users.momentum1": torch.ones(50, 4), "users.extra": torch.ones(1)},
                           "embedding_bags.items.weight": {"items.momentum1": torch.ones(300)}, 7: {}}}
        report = load_optimizer_state(ebc, fused)
        self.assertTrue((ebc.session.read_state("users", 0, range(50)) == 1).all())
        self.assertIn("[300]", str(report))
        self.assertEqual(len(report.unexpected), 2)
        with self.raises(terrace.BadInput, "row 0", "not negative"):
            ebc.session.write_state("users", 0, [0], -torch.ones(1, 4))
        with self.raises(terrace.BadArgument, "no dict 'state'"):
            load_optimizer_state(ebc, {"a": 1})

    def test_prefetch_computes_the_same(self):
        rng = np.random.default_rng(8)
        data = [batch(rng, int(rng.integers(1, 9))) for _ in range(12)]
        data[5] = {**batch(rng, 3), "cart": (torch.tensor([1, 2]), torch.tensor([0, 2, 1, 2]))}  # its offsets decrease
        place = {"memory": support.memory(), "plan": {"lookahead": 3, "place": [{"tables": "*", "home": "disk", "cache": {"dram": "1KiB"}}]}}
        plain, ahead = self.collection(model="plain", **place), self.collection(model="ahead", **place)
        ahead.session.write_rows("items", range(300), self.rows(plain, "items"))
        ahead.session.write_rows("users", range(50), self.rows(plain, "users"))
        for i, one in enumerate(data):
            if i != 5:
                plain(one)["cart"].square().sum().backward()
        loop, deepest, steps = prefetch([(d, i) for i, d in enumerate(data)], ahead, key=lambda pair: pair[0]), 0, []
        while True:
            try:
                (one, i), ticket = next(loop)
            except StopIteration:
                break
            except terrace.BadInput as error:  # in its turn, and the loop goes on
                self.assertIn("'cart'", str(error))
                steps.append("bad")
                continue
            deepest = max(deepest, len(ahead.session.in_flight))
            ahead(one, ticket=ticket)["cart"].square().sum().backward()
            steps.append(i)
            if i == 3:
                ahead.checkpoint(extra="with batches submitted ahead")
        self.assertEqual(steps, [0, 1, 2, 3, 4, "bad", *range(6, 12)])
        self.assertGreater(deepest, 2)
        self.assertTrue(torch.equal(self.rows(plain, "items"), self.rows(ahead, "items")))
        for _ in prefetch(data[:5], ahead):  # left early: what was submitted is given back
            break
        ahead.session.abandon(ahead.session.in_flight[0])
        self.assertEqual(ahead.session.in_flight, [])
        ahead(data[0])["user"].sum().backward()
        with self.raises(terrace.WouldBlock, "must end before the next"):
            for _ in prefetch(data[:5] * 4, ahead):
                pass

    def test_one_state_dict_of_all(self):
        rng = np.random.default_rng(9)

        class Model(nn.Module):
            def __init__(self, ebc):
                super().__init__()
                self.ebc, self.top = ebc, nn.Linear(22, 1)

        model = Model(self.collection())
        ebc = model.ebc
        ebc(batch(rng))["cart"].sum().backward()
        small = model.state_dict()
        self.assertEqual(sorted(small), ["ebc._extra_state", "top.bias", "top.weight"])
        whole = state_dict(model)
        self.assertEqual(sorted(whole), ["ebc.embedding_bags.items.weight", "ebc.embedding_bags.users.weight", "top.bias", "top.weight"])
        self.assertTrue(torch.equal(whole["ebc.embedding_bags.items.weight"], self.rows(ebc, "items")))
        save_state_dict(model, "m.safetensors")
        torch.save(whole, "m.pt")
        for source in (whole, "m.safetensors", "m.pt"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = Model(self.collection(model="other", fresh=True))
            report = load_state_dict(other, source)
            self.assertTrue(report.ok, str(report))
            self.assertEqual(len(report.matched), 4)
            self.assertTrue(torch.equal(self.rows(other.ebc, "items"), self.rows(ebc, "items")))
            self.assertTrue(torch.equal(other.top.weight, model.top.weight))
            other.ebc.close()
        other = Model(self.collection(model="other", fresh=True))
        other.load_state_dict({k: v for k, v in whole.items()})
        self.assertTrue(torch.equal(self.rows(other.ebc, "users"), self.rows(ebc, "users")))
        with self.raises(RuntimeError, "Missing key", "items"):
            other.load_state_dict({k: v for k, v in whole.items() if "items" not in k})
        report = load_state_dict(other, {"dmp.ebc.embedding_bags.users.weight": whole["ebc.embedding_bags.users.weight"].half(),
                                         "x.items.weight": torch.zeros(2, 2), "y": torch.zeros(1)})
        self.assertFalse(report.ok)
        self.assertIn("1 matched", str(report))
        self.assertIn("[2, 2]", str(report))
        self.assertEqual((report.unexpected, len(report.converted)), (["y"], 1))
        with self.raises(terrace.OutOfOrder, "goes with step 1", "ckpt-1"):
            other.load_state_dict(small)

    def test_checkpoint_and_restore(self):
        rng = np.random.default_rng(10)
        ebc = self.collection(state="s/state")
        dense = nn.Linear(22, 1)
        adam = torch.optim.Adam(dense.parameters(), 0.1)
        for _ in range(3):
            out = ebc(batch(rng))
            dense(torch.cat(list(out.values()), 1)).sum().backward()
            adam.step()
        random = torch.get_rng_state()
        ebc.checkpoint(dense.state_dict(), adam.state_dict(), {"rng": random, "half": torch.ones(3, dtype=torch.bfloat16)})
        before = dense.weight.detach().clone()
        ebc.close()
        ebc = self.collection(state="s/state")
        found = ebc.session.restore()
        other = nn.Linear(22, 1)
        other.load_state_dict(found["dense"])
        self.assertTrue(torch.equal(other.weight, before))
        again = torch.optim.Adam(other.parameters(), 0.1)
        again.load_state_dict(found["optimizer"])
        self.assertEqual(str(again.state_dict()), str(adam.state_dict()))
        self.assertTrue(torch.equal(found["extra"]["rng"], random))
        self.assertEqual(found["extra"]["half"].dtype, torch.bfloat16)

    def test_embedding_collection(self):
        rng = np.random.default_rng(11)
        ec = EmbeddingCollection([EmbeddingConfig(40, 3, "t", ["a", "b"])], batch_size=8, max_ids=6, optimizer=SGD)
        self.addCleanup(ec.close)
        twin = nn.Embedding(40, 3, _weight=self.rows(ec, "t"))
        for _ in range(5):
            data = {f: tuple(map(torch.from_numpy, bags(rng, 8, 40, 6))) for f in ("a", "b")}
            out = ec(data)
            other = {f: twin(data[f][0]) for f in data}
            for f in data:
                torch.testing.assert_close(out[f], other[f], rtol=1e-6, atol=1e-7)
            sum(o.square().sum() for o in out.values()).backward()
            sum(o.square().sum() for o in other.values()).backward()
            with torch.no_grad():
                twin.weight -= 0.5 * twin.weight.grad
                twin.weight.grad = None
        torch.testing.assert_close(self.rows(ec, "t"), twin.weight.detach(), rtol=1e-5, atol=1e-6)

    def test_a_spec_or_a_library(self):
        spec = {"model": "own", "batch": {"size": 4}, "features": [{"name": "f", "table": {"rows": 9, "dim": 2}, "pooling": "max", "max_ids": 3}]}
        path = terrace.compile(spec)
        for options in ({"spec": spec}, {"library": path}):
            ebc = EmbeddingBagCollection(**options)
            self.assertEqual(tuple(ebc({"f": ([1, 2], [0, 1, 2])})["f"].shape), (2, 2))
            ebc.close()
        with self.raises(terrace.BadArgument, "compiled already"):
            EmbeddingBagCollection(library=path, batch__size=3)
        with self.raises(terrace.BadArgument, "use EmbeddingBagCollection"):
            EmbeddingCollection(library=path)
        self.assertTrue(os.path.exists("own.state"))

    def test_a_worker_of_a_loader(self):
        ebc = self.collection()

        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 2

            def __getitem__(self, i):
                return ebc.submit(batch(np.random.default_rng(i)))

        loader = torch.utils.data.DataLoader(Data(), num_workers=1, batch_size=1, multiprocessing_context="fork", timeout=20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.raises(Exception, "parent process", "submit in the main process"):
                next(iter(loader))
        ebc(batch(np.random.default_rng(0)))["user"].sum().backward()


if __name__ == "__main__":
    unittest.main(verbosity=2)
