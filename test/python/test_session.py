"""The package without torch: batches, errors, memory, checkpoints, processes and signals."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest
import warnings

import support
from support import Scratch, bags, memory, np, terrace

SPEC = {
    "model": "small", "seed": 3, "batch": {"size": 8},
    "tables": [{"name": "users", "rows": 100, "dim": 4, "optimizer": {"kind": "sgd", "lr": 0.5}},
               {"name": "items", "rows": 500, "dim": 3, "optimizer": {"kind": "adagrad", "lr": 0.1}}],
    "features": [{"name": "user", "table": "users"},
                 {"name": "cart", "table": "items", "max_ids": 6, "pooling": "mean"},
                 {"name": "seen", "table": "items", "max_ids": 6, "pooling": "none"},
                 {"name": "paid", "table": "items", "max_ids": 6, "weights": "w"}],
    "memory": memory(), "plan": {"lookahead": 2, "place": [{"tables": "items", "home": "disk", "cache": {"dram": "1KiB"}}]}}


def batch(rng, samples=8):
    cart, paid = bags(rng, samples, 500, 6), bags(rng, samples, 500, 6, np.int32)
    return {"user": rng.integers(0, 100, samples), "cart": cart, "seen": bags(rng, samples, 500, 6),
            "paid": (*paid, rng.random(paid[0].size, dtype=np.float32))}


class Foreign:
    """An array that is known by DLPack only."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class SessionTest(Scratch):
    @classmethod
    def setUpClass(cls):
        support.need_compiler()
        cls.library = os.path.join(support.tempfile.mkdtemp(prefix="terrace-python-"), "small.so")
        terrace.compile(SPEC, cls.library)

    @classmethod
    def tearDownClass(cls):
        support.shutil.rmtree(os.path.dirname(cls.library))

    def load(self, **options):
        return terrace.load(self.library, **options)

    def test_a_loop_against_numpy(self):
        rng = np.random.default_rng(1)
        with self.load() as session:
            users = session.read_rows("users", range(100)).astype(np.float64)
            items = session.read_rows("items", range(500)).astype(np.float64)
            squares = np.zeros_like(items)
            for _ in range(20):
                data = batch(rng, int(rng.integers(1, 9)))
                out = session.forward(session.submit(data))
                np.testing.assert_allclose(out["user"], users[data["user"]], rtol=1e-6)
                grads = {k: rng.standard_normal(v.shape, dtype=np.float32) for k, v in out.items()}
                np.add.at(users, data["user"], -0.5 * grads["user"])
                total = np.zeros_like(items)
                for name in ("cart", "seen", "paid"):
                    values, offsets = data[name][:2]
                    bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
                    if name == "seen":
                        np.testing.assert_allclose(out[name], items[values], rtol=1e-5, atol=1e-7)
                        np.add.at(total, values, grads[name])
                        continue
                    weight = data[name][2] if name == "paid" else (1 / np.maximum(np.diff(offsets), 1))[bag]
                    pooled = np.zeros_like(out[name], np.float64)
                    np.add.at(pooled, bag, items[values] * weight[:, None])
                    np.testing.assert_allclose(out[name], pooled, rtol=1e-5, atol=1e-7)
                    np.add.at(total, values, grads[name][bag] * weight[:, None])
                of_weights = session.backward(max(session.in_flight), grads, weight_gradients=["paid"])
                values, offsets = data["paid"][:2]
                bag = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
                np.testing.assert_allclose(of_weights["paid"], (items[values] * grads["paid"][bag]).sum(1), rtol=1e-4, atol=1e-6)
                squares += total**2
                items -= 0.1 * total / (np.sqrt(squares) + 1e-8)
            np.testing.assert_allclose(session.read_rows("users", range(100)), users, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(session.read_rows("items", range(500)), items, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(session.read_state("items", 0, range(500)), squares, rtol=1e-4, atol=1e-6)
            session.write_state("items", 0, [3, 499], np.float32([[1, 2, 3], [4, 5, 6]]))
            self.assertEqual(session.read_state("items", 0, [499, 3]).tolist(), [[4, 5, 6], [1, 2, 3]])
            self.assertEqual(session.step, 20)
        with self.load(mode="eval") as session:
            np.testing.assert_allclose(session.read_rows("items", range(500)), items, rtol=1e-4, atol=1e-5)
            ticket = session.submit(batch(rng))
            out = session.forward(ticket)
            with self.raises(terrace.BadArgument, "not opened to train"):
                session.backward(ticket, out)
            session.release(ticket)

    def test_batches_that_are_only_looked_up(self):
        rng = np.random.default_rng(30)
        with self.load() as session:
            data = batch(rng)
            ticket = session.submit(data)
            want = {name: np.array(out) for name, out in session.forward(ticket).items()}
            session.release(ticket)
            ticket = session.submit(data, forward_only=True)
            out = session.forward(ticket)
            for name, values in want.items():
                np.testing.assert_array_equal(out[name], values)
            with self.raises(terrace.BadArgument, "looked up only"):
                session.backward(ticket, out)
            session.release(ticket)
            self.assertEqual(session.step, 0)

    def test_outputs_and_gradients_are_not_copied(self):
        rng = np.random.default_rng(2)
        with self.load() as session:
            data = batch(rng)
            wide = np.full((8, 16), 7, np.float32)  # the user's output goes into a part of it
            out = {"user": wide[:, 4:8], "cart": np.empty((8, 3), np.float32), "paid": Foreign(np.empty((8, 3), np.float32)),
                   "seen": np.empty((data["seen"][0].size, 3), np.float32)}
            seen = []
            before = terrace._tensor.Pointers

            class Spy(before):
                def __init__(self, views):
                    super().__init__(views)
                    seen.append([t.data for t in self.tensors])

            terrace._tensor.Pointers = Spy
            try:
                ticket = session.submit(data)
                self.assertIs(session.forward(ticket, out), out)
                session.backward(ticket, out)
            finally:
                terrace._tensor.Pointers = before
            at = [a.__array_interface__["data"][0] for a in (out["user"], out["cart"], out["seen"], out["paid"].array)]
            self.assertEqual(seen, [at, at])
            self.assertTrue((wide[:, :4] == 7).all() and (wide[:, 8:] == 7).all())

    def test_outputs_of_half_the_size(self):
        rng = np.random.default_rng(31)
        with self.load(state="a") as wide, self.load(state="b") as half:
            for _ in range(3):
                data = batch(rng)
                ticket, other = wide.submit(data), half.submit(data)
                want = wide.forward(ticket)
                out = half.forward(other, {name: np.empty(values.shape, np.float16) for name, values in want.items()})
                for name, values in want.items():
                    np.testing.assert_array_equal(out[name], values.astype(np.float16))
                wide.backward(ticket, {name: values.astype(np.float32) for name, values in out.items()})
                half.backward(other, out)
            for name, table in wide.tables.items():
                np.testing.assert_array_equal(*(s.read_rows(name, np.arange(table.rows)) for s in (wide, half)))
            with self.raises(terrace.BadArgument, "none of f32, f16 and bf16"):
                half.forward(half.submit(data), {name: np.empty(values.shape) for name, values in want.items()})

    def test_keyed_batches_and_one_array_for_all(self):
        spec = {**SPEC, "model": "keyed", "features": [f for f in SPEC["features"] if f["name"] != "seen"]}
        rng = np.random.default_rng(21)
        library = terrace.compile(spec, "keyed.so")
        with terrace.load(library, state="a") as plain, terrace.load(library, state="b") as keyed:
            for step in range(6):
                data = batch(rng, samples := int(rng.integers(0 if step else 8, 9)))
                data = {k: (v, np.arange(samples + 1)) if k == "user" else v for k, v in data.items() if k != "seen"}
                order = ["paid", "user", "cart"]
                values = np.concatenate([data[k][0] for k in order]).astype(np.int64)
                ends = [data[k][1][1:] + sum(data[x][0].size for x in order[:i]) for i, k in enumerate(order)]
                weights = np.ones(values.size, np.float32)
                weights[:data["paid"][0].size] = data["paid"][2]
                ticket, other = plain.submit(data), keyed.submit_keyed(values, np.concatenate([[0], *ends]), weights, samples=samples,
                                                                       keys=[order.index(f.name) for f in keyed.features])
                whole = np.empty((samples, 10), np.float32)
                self.assertIs(keyed.forward(other, whole), whole)
                out = plain.forward(ticket)
                np.testing.assert_array_equal(np.concatenate([out["user"], out["cart"], out["paid"]], 1), whole)
                grads = rng.standard_normal(whole.shape, dtype=np.float32)
                plain.backward(ticket, {"user": grads[:, :4], "cart": grads[:, 4:7], "paid": grads[:, 7:]})
                keyed.backward(other, grads)
            np.testing.assert_array_equal(plain.read_rows("items", range(500)), keyed.read_rows("items", range(500)))
            for wrong, words in (({"keys": [0, 1]}, ["3 features"]), ({"samples": 3}, ["samples"]), ({"keys": [0, 0, 9]}, ["key 9"]),
                                 ({"weights": None}, ["weights"]), ({"keys": ["a", "b", "c"]}, ["keys"]), ({"keys": [0, 0, 2**40]}, ["int32"]),
                                 ({"keys": [0, 0.5, 0]}, ["whole"]), ({"keys": None}, ["whole"]), ({"samples": None}, ["samples is None"]),
                                 ({"samples": 8.0}, ["samples is 8.0"]), ({"samples": -8}, ["samples is -8"]), ({"samples": 0}, ["9 offsets"])):
                given = {"weights": np.ones(8, np.float32), "samples": 8, "keys": [0, 0, 0], **wrong}
                with self.raises(terrace.BadArgument, *words):
                    keyed.submit_keyed(np.zeros(8, np.int64), np.arange(9), **given)
            for samples in (0, 1, 8):
                with self.raises(terrace.BadArgument, "0 offsets"):
                    keyed.submit_keyed(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32), samples=samples, keys=[0, 0, 0])
            self.assertEqual(keyed.in_flight, [])
            ticket = keyed.submit_keyed(np.zeros(8, np.int32), np.arange(9, dtype=np.int32), np.ones(8, np.float32), samples=8, keys=[0, 0, 0])
            with self.raises(terrace.BadArgument, "[8, 10] is needed"):
                keyed.forward(ticket, np.empty((8, 9), np.float32))
            keyed.release(ticket)

    def test_gradients_of_weights_go_where_they_are_wanted(self):
        rng = np.random.default_rng(20)
        with self.load() as session:
            data = batch(rng)
            count = data["paid"][0].size
            ticket = session.submit(data)
            out = session.forward(ticket)
            for wrong, words in (({"cart": None}, ["cart", "weighted", "paid"]), ({"paid": np.empty(count + 1, np.float32)}, [f"[{count}]"]),
                                 ({"paid": np.empty(count)}, ["float64", "float32"])):
                with self.raises(terrace.BadArgument, *words):
                    session.backward(ticket, out, weight_gradients=wrong)
            mine = np.full(count + 2, 7, np.float32)
            found = session.backward(ticket, out, weight_gradients={"paid": mine[1:-1]})
            self.assertTrue(found["paid"].base is mine and (mine[[0, -1]] == 7).all() and (mine[1:-1] != 7).all())

    def test_bad_input_names_the_place(self):
        rng = np.random.default_rng(3)
        with self.load() as session:
            before = session.read_rows("items", range(500))
            data = batch(rng)
            data["cart"] = (np.array([1, 2, 777]), np.array([0, 0, 0, 1, 1, 1, 1, 1, 3]))
            ticket = session.submit(data)
            with self.raises(terrace.BadInput, "cart", "777") as seen:
                session.forward(ticket)
            error = pickle.loads(pickle.dumps(seen.error))
            self.assertEqual((error.feature, error.sample, error.position, error.value, error.status), ("cart", 7, 1, 777, 3))
            data["cart"] = ([-1], [0, 1, 1, 1, 1, 1, 1, 1, 1])
            with self.raises(terrace.BadInput, "-1") as seen:
                session.forward(session.submit(data))
            self.assertEqual((seen.error.sample, seen.error.value), (0, -1))
            data["cart"] = ([1, 2], [0, 2, 1, 2, 2, 2, 2, 2, 2])
            with self.raises(terrace.BadInput, "below the one before"):
                session.submit(data)
            good = batch(rng)
            ticket = session.submit(good)
            out = session.forward(ticket)
            out["user"][2, 3] = np.nan
            with self.raises(terrace.BadInput, "gradient", "user") as seen:
                session.backward(ticket, out)
            self.assertEqual((seen.error.sample, seen.error.position), (2, 3))
            self.assertEqual(session.step, 0)
            np.testing.assert_array_equal(session.read_rows("items", range(500)), before)

    def test_wrong_calls_say_what_to_do(self):
        rng = np.random.default_rng(4)
        session = self.load()
        data = batch(rng)
        with self.raises(terrace.BadArgument, "missing: user", "not of this model: usr"):
            session.submit({"usr": data["user"], **{k: v for k, v in data.items() if k != "user"}})
        with self.raises(terrace.BadArgument, "3 features; model 'small' has 4"[2:10]):
            session.submit([data["user"]])
        with self.raises(terrace.BadArgument, "feature 'user'", "float64", "int32 or int64"):
            session.submit({**data, "user": np.zeros(8)})
        with self.raises(terrace.BadArgument, "feature 'user'", "uint64"):
            session.submit({**data, "user": np.zeros(8, np.uint64)})
        with self.raises(terrace.BadArgument, "is weighted"):
            session.submit({**data, "paid": data["paid"][:2]})
        with self.raises(terrace.BadArgument, "not weighted"):
            session.submit({**data, "cart": data["paid"]})
        with self.raises(terrace.BadArgument, "5 samples", "8"):
            session.submit({**data, "cart": ([], [0] * 6)})
        with self.raises(terrace.BadArgument, "9 samples"):
            session.submit(batch(rng, 9))
        with self.raises(terrace.BadArgument, "labels", "no head"):
            session.submit(data, labels=np.zeros(8, np.float32))
        with self.raises(terrace.OutOfOrder, "never handed out"):
            session.forward(1)
        ticket, second = session.submit(data), session.submit(data)
        out = {f.name: np.empty((8, f.dim), np.float32) for f in session.features}
        out["seen"] = np.empty((data["seen"][0].size, 3), np.float32)
        with self.raises(terrace.OutOfOrder, "comes first"):
            session.forward(second)
        with self.raises(terrace.OutOfOrder, "before its forward"):
            session.backward(ticket, out)
        with self.raises(terrace.BadArgument, "output of feature 'cart'", "[8, 4]", "[8, 3]"):
            session.forward(ticket, {**out, "cart": np.empty((8, 4), np.float32)})
        with self.raises(terrace.BadArgument, "output of feature 'cart'", "f32"):
            session.forward(ticket, {**out, "cart": np.empty((8, 3))})
        locked = np.empty((8, 3), np.float32)
        locked.flags.writeable = False
        with self.raises(terrace.BadArgument, "read-only"):
            session.forward(ticket, {**out, "cart": locked})
        with self.raises(terrace.BadArgument, "CUDA device 0", ".cpu()"):
            session.forward(ticket, {**out, "cart": Foreign(out["cart"], (2, 0))})
        session.forward(ticket, out)
        with self.raises(terrace.OutOfOrder, "in flight"):
            session.read_rows("users", [1])
        with self.raises(terrace.OutOfOrder, "between forward and backward"):
            session.checkpoint()
        session.backward(ticket, {k: np.zeros_like(v) for k, v in out.items()})
        with self.raises(terrace.OutOfOrder, "is over"):
            session.backward(ticket, out)
        session.release(second)
        with self.raises(terrace.BadArgument, "no table 'user'", "users, items"):
            session.read_rows("user", [1])
        with self.raises(terrace.NotFound, "0 .. 99", "100"):
            session.read_rows("users", [100])
        with self.raises(terrace.BadArgument, "[1, 4]"):
            session.write_rows("users", [1], np.zeros((2, 4), np.float32))
        session.close()
        session.close()
        with self.raises(terrace.OutOfOrder, "is closed"):
            session.stats()
        with self.raises(terrace.BadArgument, "mode"):
            self.load(mode="training")
        with self.raises(terrace.NotFound, "no artifact"):
            terrace.load("nothing.so")
        (support.pathlib.Path("text.so")).write_text("no library")
        with self.raises(terrace.Mismatch, "cannot load"):
            terrace.load("text.so")
        with self.raises(TypeError, "submit in the main process"):
            pickle.dumps(session)

    def test_what_would_be_rounded_or_cut_is_refused(self):
        rng = np.random.default_rng(22)
        with self.load() as session:
            data = batch(rng)
            for name, bag in (("user", [1, 2.9, 3]), ("user", [1, 2**64]), ("cart", ([1.5], [0] + [1] * 8)),
                              ("paid", ([1], [0] + [1] * 8, ["x"]))):
                with self.raises(terrace.BadArgument, f"feature '{name}'"):
                    session.submit({**data, name: bag})
            before = session.read_rows("users", range(100))
            for rows, words in (([1.5], "whole"), (["a"], "whole"), ([2**64], "whole"), ([[1]], "one dimension")):
                with self.raises(terrace.BadArgument, "rows", words):
                    session.read_rows("users", rows)
            for table in (None, ["users"], 0):
                with self.raises(terrace.BadArgument, "no table", "users, items"):
                    session.read_rows(table, [1])
            for slot in (-1, 1, "x", None, 0.5):
                with self.raises(terrace.BadArgument, "has 1 states"):
                    session.read_state("items", slot, [1])
            with self.raises(terrace.BadArgument, "values is a NoneType"):
                session.write_rows("users", [1], None)
            with self.raises(terrace.BadArgument, "values is a NoneType"):
                session.write_state("items", 0, [1], None)
            np.testing.assert_array_equal(session.read_rows("users", range(100)), before)
            for keep in (-1, 2**32, 1.5, "3"):
                with self.raises(terrace.BadArgument, "keep is"):
                    session.checkpoint(keep=keep)
            for scale, words in (("x", "'x'"), (None, "None"), (float("nan"), "finite")):
                with self.raises(terrace.BadArgument, words):
                    session.set_lr(scale)
            circle = {}
            circle["self"] = circle
            with self.raises(terrace.BadArgument, "holds itself"):
                session.checkpoint(dense=circle)
            self.assertEqual((session.step, session.in_flight, terrace.checkpoints(session.state)), (0, [], []))
        for option in ("state", "from_checkpoint", "init_from", "cpu"):
            with self.raises(terrace.BadArgument, option, "zero byte"):
                self.load(**{option: "k\0x"})
        with self.raises(terrace.BadArgument, "threads"):
            self.load(threads=-1)
        with self.raises(terrace.BadArgument, "spec"):
            terrace.compile({**SPEC, "features": {1, 2}})

    def test_keys_are_needed_and_no_ticket_is_lost(self):
        rng = np.random.default_rng(23)
        with self.load() as session:  # one of its features has no pooling: its ids are counted after submit
            ids = np.zeros(8, np.int64), np.arange(9), np.ones(8, np.float32)
            with self.raises(terrace.BadArgument, "keys"):
                session.submit_keyed(*ids, samples=8, keys=None)
            session._remaining, counted = lambda *_: 1 / 0, session._remaining
            with self.assertRaises(ZeroDivisionError):
                session.submit_keyed(*ids, samples=8, keys=[0] * 4)
            session._remaining = counted
            self.assertEqual(session.in_flight, [])
            session.release(session.submit(batch(rng)))

    def test_one_state_one_trainer(self):
        with self.load():
            with self.raises(terrace.Locked):
                self.load()

    def test_pipeline_full(self):
        rng = np.random.default_rng(5)
        with self.load() as session:
            tickets = []
            with self.raises(terrace.WouldBlock, "in flight"):
                for _ in range(20):
                    tickets.append(session.submit(batch(rng)))
            self.assertGreater(len(tickets), session.lookahead - 1)
            for ticket in tickets:
                session.release(ticket)
            self.assertEqual(session.in_flight, [])

    def test_two_threads_in_one_role(self):
        rng = np.random.default_rng(6)
        with self.load() as session:
            errors, stop = [], time.monotonic() + 0.5
            data = batch(rng)

            def trainer():
                while time.monotonic() < stop:
                    try:
                        session.release(session.submit(data))
                    except terrace.OutOfOrder as error:
                        errors.append(str(error))
                    except terrace.WouldBlock:
                        pass
                    session.stats()  # from any thread

            threads = [threading.Thread(target=trainer) for _ in range(3)]
            [t.start() for t in threads]
            [t.join(20) for t in threads]
            self.assertFalse(any(t.is_alive() for t in threads))
            for ticket in session.in_flight:
                session.release(ticket)
            for text in errors:
                self.assertRegex(text, "another thread|comes first|is over|never handed out")

    def test_waiting_calls_let_other_threads_run_and_close_waits(self):
        rng = np.random.default_rng(7)
        session = self.load()
        seen = []

        def producer():
            try:
                while True:
                    try:
                        session.submit(batch(rng))
                    except terrace.WouldBlock:
                        time.sleep(0.001)
            except terrace.Error as error:
                seen.append(error)

        thread = threading.Thread(target=producer)
        thread.start()
        time.sleep(0.1)
        session.close()
        thread.join(10)
        self.assertFalse(thread.is_alive())
        self.assertIsInstance(seen[0], (terrace.Cancelled, terrace.OutOfOrder))

    def test_fork_is_an_error(self):
        rng = np.random.default_rng(8)
        with self.load() as session:
            ticket = session.submit(batch(rng))
            read, write = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:  # what a DataLoader's worker does
                try:
                    session.submit(batch(rng))
                    answer = "no error"
                except terrace.Forked as error:
                    answer = str(error)
                session.close()
                os.write(write, answer.encode())
                os._exit(0)
            os.close(write)
            text = os.read(read, 4096).decode()
            os.waitpid(child, 0)
            self.assertIn("parent process", text)
            self.assertIn("submit in the main process", text)
            session.forward(ticket)  # the parent goes on
            session.release(ticket)

    def test_checkpoint_holds_the_dense_state_of_the_moment(self):
        rng = np.random.default_rng(9)
        dense = {"w": rng.standard_normal((3, 2)), 0: [1, (2.5, None, True)], "b": b"\0\1", "nan": float("nan"), "e": np.zeros((0, 3), np.int8),
                 "s": np.float32(0.1)}
        with self.load() as session:
            self.assertIsNone(session.restore())
            self.train(session, rng, 3)
            rows = session.read_rows("items", range(500))
            self.assertEqual(session.checkpoint(dense=dense, extra={"epoch": 2}), "ckpt-3")
            self.train(session, rng, 2)
        self.assertEqual(terrace.checkpoints("small.state"), ["ckpt-3"])
        with self.load() as session:
            self.assertEqual(session.step, 5)
            with self.raises(terrace.OutOfOrder, "step 3", "step 5", "from_checkpoint"):
                session.restore()
        with self.load(from_checkpoint="newest") as session:
            found = session.restore()
            self.assertEqual((session.step, found["step"], found["extra"]), (3, 3, {"epoch": 2}))
            self.assertEqual(str(found["dense"]), str(dense))
            self.assertEqual(found["dense"]["w"].tobytes(), dense["w"].tobytes())
            self.assertEqual(found["dense"]["s"].dtype, np.float32)
            np.testing.assert_array_equal(session.read_rows("items", range(500)), rows)
            with self.raises(terrace.BadArgument, "dense", "'f'", "function"):
                session.checkpoint(dense={"f": lambda: 0})

    def test_training_goes_on_while_a_checkpoint_is_written(self):
        rng = np.random.default_rng(13)
        with self.load() as session:
            self.train(session, rng, 3)
            rows = session.read_rows("items", range(500))
            ahead = session.submit(batch(rng))  # a batch may be in flight
            self.assertEqual(session.checkpoint(dense={"w": 3}, wait=False), "ckpt-3")
            session.backward(ahead, session.forward(ahead))
            self.train(session, rng, 5)
            self.assertIn(session.wait_checkpoint(block=False), (False, True))
            self.assertTrue(session.wait_checkpoint())
            self.assertEqual(session.step, 9)
        with self.load(mode="eval", from_checkpoint="ckpt-3") as session:
            self.assertEqual(session.restore()["dense"], {"w": 3})
            np.testing.assert_array_equal(session.read_rows("items", range(500)), rows)

    def train(self, session, rng, steps):
        for _ in range(steps):
            ticket = session.submit(batch(rng))
            session.backward(ticket, session.forward(ticket))

    def test_killed_after_a_checkpoint_equals_never_killed(self):
        program = textwrap.dedent("""
            import os, signal, sys
            sys.path[:0] = sys.argv[4:]
            import test_session
            from support import np, terrace
            library, steps, kill = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
            with terrace.load(library) as session:
                w = (session.restore() or {"dense": np.full(4, 0.5, np.float32)})["dense"]
                for t in range(session.step, steps):
                    ticket = session.submit(test_session.batch(np.random.default_rng(t)))
                    out = session.forward(ticket)
                    grads = {k: v + w.mean() for k, v in out.items()}
                    session.backward(ticket, grads)
                    w = w - np.float32(0.01) * out["user"].sum(0)
                    if t + 1 == 10:
                        session.checkpoint(dense=w)
                    if t + 1 == kill:
                        os.kill(os.getpid(), signal.SIGKILL)
                rows = np.concatenate([session.read_rows("users", range(100)).ravel(), session.read_rows("items", range(500)).ravel(), w])
            print(rows.tobytes().hex())
        """)
        support.pathlib.Path("train.py").write_text(program)

        def run(folder, steps, kill):
            os.makedirs(folder, exist_ok=True)
            return subprocess.run([sys.executable, "../train.py", self.library, str(steps), str(kill), *sys.path], cwd=folder, text=True,
                                  capture_output=True, timeout=120)

        whole = run("whole", 20, 0)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        killed = run("killed", 20, 13)
        self.assertEqual(killed.returncode, -signal.SIGKILL, killed.stderr)
        resumed = run("killed", 20, 0)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(whole.stdout, resumed.stdout)

    def test_interrupted_in_a_call_leaves_a_sound_state(self):
        program = textwrap.dedent("""
            import sys
            sys.path[:0] = sys.argv[2:]
            import test_session
            from support import np, terrace
            try:
                with terrace.load(sys.argv[1]) as session:
                    rng, steps = np.random.default_rng(1), 0
                    print("ready", flush=True)
                    while True:
                        ticket = session.submit(test_session.batch(rng))
                        out = session.forward(ticket)
                        session.backward(ticket, out)
                        steps += 1
            except KeyboardInterrupt:
                print(steps)
        """)
        support.pathlib.Path("loop.py").write_text(program)
        for delay in (0.05, 0.21, 0.4):
            done = subprocess.Popen([sys.executable, "loop.py", self.library, *sys.path], text=True, stdout=subprocess.PIPE)
            done.stdout.readline()
            time.sleep(delay)
            before = terrace.checkpoints("small.state")
            done.send_signal(signal.SIGINT)
            out, _ = done.communicate(timeout=60)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(before, terrace.checkpoints("small.state")[:len(before)])
            with self.load(mode="eval") as session:  # closed, so every record passed its check
                self.assertGreaterEqual(session.step, int(out))
                self.assertTrue(np.isfinite(session.read_rows("items", range(500))).all())

    def test_a_close_that_cannot_store_can_be_called_again(self):
        rng = np.random.default_rng(24)
        for end in ("close", "discard"):
            session = self.load(fresh=True)
            ticket = session.submit(batch(rng))
            out = session.forward(ticket)
            session.backward(ticket, out)
            os.rename(session.state, "away")
            with self.raises(terrace.Error, "step 1 is not stored yet"):
                session.close()
            with self.raises(terrace.OutOfOrder, "close() it again", "discard()"):
                session.submit(batch(rng))
            os.rename("away", session.state)
            getattr(session, end)()
            session.close()  # over: nothing to do
            with self.load() as again:
                self.assertEqual(again.step, 1 if end == "close" else 0)

    def test_not_closing_is_a_warning(self):
        session = self.load()
        with self.assertWarns(ResourceWarning):
            del session
            gc.collect()
        self.load().close()

    def test_learning_rate(self):
        with self.load() as session:
            rows = session.read_rows("users", [5])
            empty = ([], [0, 0])
            data = {"user": np.array([5]), "cart": empty, "seen": empty, "paid": (*empty, [])}
            for scale in (1, 0.25, 0):
                session.set_lr(scale)
                ticket = session.submit(data)
                out = session.forward(ticket)
                session.backward(ticket, {**out, "user": np.ones((1, 4), np.float32)}, grad_scale=2)
                rows = rows - 0.5 * scale * 2
            np.testing.assert_allclose(session.read_rows("users", [5]), rows, rtol=1e-6)

    def test_outputs_of_what_remains(self):
        terrace.compile({**SPEC, "on_bad_id": "drop"}, "drop.so",
                        **{"features.seen.overflow": "keep_last", "features.seen.max_ids": 2, "model": "drop"})
        with terrace.load("drop.so") as session:
            data = batch(np.random.default_rng(11), 2)
            data["seen"] = ([1, 2, 3, 999, 4, 5], [0, 5, 6])
            ticket = session.submit(data)
            out = session.forward(ticket)
            np.testing.assert_array_equal(out["seen"], np.stack([out["seen"][0], out["seen"][1]]))
            session.release(ticket)
            np.testing.assert_array_equal(out["seen"], session.read_rows("items", [4, 5]))

    def test_head_models(self):
        spec = {"model": "head", "batch": {"size": 4}, "head": {"kind": "logistic", "label": "y"},
                "features": [{"name": "a", "table": {"rows": 50, "dim": 2}}]}
        with terrace.load(terrace.compile(spec)) as session:
            ticket = session.submit({"a": np.array([1, 2, 3])}, labels=np.array([0, 1, 1], np.float32))
            predictions, logits = session.forward(ticket, logits=True)
            np.testing.assert_allclose(predictions, 1 / (1 + np.exp(-logits)), rtol=1e-5)
            session.backward(ticket)
            ticket = session.submit([np.array([1, 2])])
            self.assertEqual(session.forward(ticket).shape, (2,))
            with self.raises(terrace.BadArgument, "without labels"):
                session.backward(ticket)
            session.release(ticket)


class CompileTest(Scratch):
    def setUp(self):
        super().setUp()
        support.need_compiler()

    def test_errors_have_places(self):
        with self.raises(terrace.CompileError, "did you mean 'rows'") as seen:
            terrace.compile("terrace: 1\nmodel: m\nfeatures:\n- {name: a, table: {row: 5, dim: 2}}\n")
        self.assertEqual(seen.error.diagnostics[-1]["line"], 4)
        with self.raises(terrace.NotFound, "no spec 'gone.yaml'"):
            terrace.compile("gone.yaml")

    def test_a_model_compiled_again_is_the_new_one(self):
        spec = {"model": "m", "features": [{"name": "a", "table": {"rows": 5, "dim": 2}}]}
        for dim in (2, 3, 4):
            path = terrace.compile(spec, **{"tables.a.dim": dim})
            with terrace.load(path, fresh=True) as session:
                self.assertEqual(session.read_rows("a", [0]).shape, (1, dim))
                self.assertEqual(session.forward(session.submit({"a": [1]}))["a"].shape, (1, dim))

    def test_forms_of_a_spec(self):
        text = "terrace: 1\nmodel: m\nfeatures:\n- {name: a, table: {rows: 5, dim: 2}}\n"
        support.pathlib.Path("m.yaml").write_text(text)
        self.assertEqual(os.path.basename(terrace.compile("m.yaml")), "m.so")
        with terrace.load(terrace.compile(text, "n.so", batch__size=3, **{"tables.a.rows": 7})) as session:
            self.assertEqual((session.batch, session.tables["a"].rows), (3, 7))
            self.assertEqual(session.describe()["features"][0]["dim"], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
