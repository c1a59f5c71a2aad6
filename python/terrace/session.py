"""session.py - A compiled model over a state, from Python.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The calls of include/terrace-rt/session.h. One thread at a time submits, one at a time runs forward and then backward or release, in ticket
order; stats and cancel go from any thread. Arrays are handed to the runtime where they lie: outputs are written to them and gradients
read from them in place. Every call gives the interpreter lock back while it runs.
"""
import atexit
import ctypes
import json
import os
import threading
import time
import warnings
import weakref
from ctypes import byref, c_char_p, c_uint64, c_void_p

import numpy as np

from . import _abi, _tensor, artifact, blob
from .errors import BadArgument, Error, OutOfOrder, WouldBlock

_open_sessions = weakref.WeakSet()


def _close_all():
    for session in list(_open_sessions):
        try:
            session.close()
        except Exception as error:  # the interpreter is going away: say it, and close the others
            warnings.warn(f"terrace: {error}")


atexit.register(_close_all)


def load(path, state=None, mode="train", *, fresh=False, warm=False, from_checkpoint=None, init_from=None, threads=0, cpu=None, log=None):
    """Opens the library at `path` (made by terrace.compile or --emit=lib) over the folder `state`.

    state: default MODEL.state in the current folder. mode: "train", "eval" or "serve"; the last two change no byte.
    fresh: removes an existing state first. warm: fills the caches with the rows that they held when the state was closed. from_checkpoint: the name of a checkpoint of this state ("ckpt-100"), or "newest" for the
    newest whose dense state is of its own moment, even if the state was trained on and closed later. init_from: another state's folder, whose rows are taken by table name.
    threads: work threads, 0 for one per CPU. cpu: "x86-64-v3" or "x86-64-v4" to force an image. log: called with (level, line).
    """
    return Session(path, state, mode, fresh=fresh, warm=warm, from_checkpoint=from_checkpoint, init_from=init_from, threads=threads, cpu=cpu, log=log)


def checkpoints(state):
    """Names of the checkpoints in a state's folder, oldest first."""
    try:
        names = os.listdir(os.path.join(os.fspath(state), "checkpoints"))
    except FileNotFoundError:
        return []
    return sorted((n for n in names if n.startswith("ckpt-") and n[5:].isdigit()), key=lambda n: int(n[5:]))


def _newest_of_one_moment(state):
    """A root may hold a dense state that is older than its tables, where training went on without a checkpoint before the state was closed."""
    names = checkpoints(state)
    for name in reversed(names):
        if blob.peek_step(os.path.join(state, "checkpoints", name, "blob.bin")) == int(name[5:]):
            return name
    return names[-1] if names else None


class Session:
    """See load(). A context manager: leaving it closes the state, which saves it."""

    _handle = None

    def __init__(self, path, state=None, mode="train", *, fresh=False, warm=False, from_checkpoint=None, init_from=None, threads=0,
                 cpu=None, log=None):
        if mode not in _abi.MODES:
            raise BadArgument(f"mode is {mode!r}; 'train', 'eval' or 'serve'")
        self._library = _abi.library()
        path = artifact.find(path)
        self._plan = artifact.read_plan(path)
        self.mode = mode
        self.features = self._plan.features  #: in the model's order
        self.tables = self._plan.tables  #: by name
        self.model = self._plan.model
        self.head = self._plan.head  #: None: the trainer is the head
        self.state = os.path.abspath(os.fspath(state) if state is not None else self.model + ".state")
        self._index = {f.name: i for i, f in enumerate(self.features)}
        self._weighted = [i for i, f in enumerate(self.features) if f.weights is not None]
        self._unpooled = [i for i, f in enumerate(self.features) if f.pooling == "none"]
        self._process = os.getpid()
        self._inside = {}  # threads in a call
        self._closing = False
        self._abandoned = set()  # tickets to release when their turn comes
        self._open, self._last = {}, 0  # ticket -> (samples, rows of each output, ids of each weighted feature); the newest ticket
        self._recalls = weakref.WeakSet()  # prefetchers, which may hold submitted batches
        self._owners = weakref.WeakSet()  # collections, which may hold a batch that nobody wants any more
        self._stats_lock = threading.Lock()
        self._mine = threading.local()  # structs that a thread's calls use again
        if from_checkpoint == "newest":
            from_checkpoint = _newest_of_one_moment(self.state)

        def text(value, what):
            data = None if value is None else os.fsencode(value)
            if data and b"\0" in data:  # C would take what stands before it
                raise BadArgument(f"{what} has a zero byte in it: {value!r}")
            return data

        self._log = _abi.LogFunction(_logger(log)) if log else _abi.LogFunction()
        options = _abi.OpenOptions(
            struct_size=ctypes.sizeof(_abi.OpenOptions), mode=_abi.MODES[mode], artifact_path=text(path, "path"),
            state_dir=text(self.state, "state"), flags=(_abi.OPEN_FRESH if fresh else 0) | (_abi.OPEN_WARM if warm else 0),
            threads=_tensor.integer(threads, "threads", 0, 2**31 - 1), from_=text(from_checkpoint, "from_checkpoint"),
            init_from=text(init_from, "init_from"), cpu=text(cpu, "cpu"), log=self._log)
        handle, error = c_void_p(), _abi.error_struct()
        status = self._library.trc_open(byref(options), byref(handle), byref(error))
        if status:
            _abi.raise_error(status, error)
        self._handle = handle
        info = self._describe()
        self.batch, self.max_ids, self.lookahead = info.batch, info.max_ids, info.lookahead
        self.parameters, self.hash = info.parameters, info.hash.decode()
        _open_sessions.add(self)

    # -- life ---------------------------------------------------------------------------------------------------------------------

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.close()
            return
        try:  # the steps whose backward returned are applied; the first error is the one to see
            self.close()
        except Exception as error:
            warnings.warn(f"while closing after {kind.__name__}: {error}")

    def __del__(self):
        if self._handle is not None and os.getpid() == self._process:
            warnings.warn(f"the session of '{self.model}' was not closed; use `with` or close()", ResourceWarning)
            try:
                self.close()
            except Exception as error:
                warnings.warn(f"terrace: {error}")
                if self._handle is not None:
                    self.discard()

    def __repr__(self):
        return f"<terrace.Session '{self.model}' ({self.mode}{', closed' if self._handle is None else ''}) state={self.state!r}>"

    def __getstate__(self):
        raise TypeError("a terrace.Session cannot be pickled or sent to a worker process; load and collate there, submit in the main process")

    def close(self):
        """Writes the tables back (train mode) and ends the session. Batches in flight are released, not applied.

        Where the state cannot be stored (NoSpace, DeviceError, NoMemory), all of it is still here, and locked: mend what the message names and
        call close again, or give the steps since the last checkpoint up with discard().
        """
        if self._handle is None:
            return
        if os.getpid() != self._process:  # the parent's: left alone
            self._handle = None
            return
        self._closing = True
        if self._others():
            self._library.trc_cancel(self._handle)
            while self._others():
                time.sleep(0.001)
        self._open.clear()
        self._end_with(self._library.trc_close)

    def discard(self):
        """Ends the session and saves nothing: the state stays that of its last checkpoint or close."""
        if self._handle is None:
            return
        if os.getpid() != self._process:
            self._handle = None
            return
        self._closing = True
        while self._others():
            self._library.trc_cancel(self._handle)
            time.sleep(0.001)
        self._end_with(self._library.trc_discard)

    def _end_with(self, function):
        error = _abi.error_struct()
        status = function(self._handle, byref(error))
        if status not in _abi.NOT_STORED:
            self._handle = None
            _open_sessions.discard(self)
        if status:
            _abi.raise_error(status, error)

    def _others(self):
        me = threading.get_ident()
        return [t for t in list(self._inside) if t != me]

    def _call(self, function, *arguments):
        me = threading.get_ident()
        self._inside[me] = True  # close waits for whoever is inside
        try:
            handle = self._handle
            if handle is None or self._closing:
                raise OutOfOrder(f"the session of '{self.model}' is closed; open it again with terrace.load" if handle is None or self._others() else
                                 f"the session of '{self.model}' could not be stored: close() it again, or discard() the steps since its last checkpoint")
            error = _abi.error_struct()
            status = function(handle, *arguments, byref(error))
            if status:
                _abi.raise_error(status, error)
        finally:
            self._inside.pop(me, None)

    # -- about ----------------------------------------------------------------------------------------------------------------------

    def _describe(self):
        info = _abi.ModelInfo(struct_size=ctypes.sizeof(_abi.ModelInfo))
        self._call(self._library.trc_describe, byref(info))
        return info

    def describe(self):
        """The model and where its state stands, as a dict."""
        info = self._describe()
        return {
            "model": self.model, "hash": self.hash, "head": self.head, "batch": self.batch, "max_ids": self.max_ids,
            "lookahead": self.lookahead, "step": info.step, "samples": info.samples, "parameters": self.parameters,
            "features": [f._asdict() for f in self.features], "tables": [t._asdict() for t in self.tables.values()]
        }

    @property
    def step(self):
        """Optimizer steps in the state."""
        return self._describe().step

    @property
    def samples(self):
        """Samples applied in the state."""
        return self._describe().samples

    def stats(self):
        """Counters: hits, stalls, bytes used and bound per tier."""
        text = c_char_p()
        with self._stats_lock:  # the text lives until the next call
            self._call(self._library.trc_stats, byref(text))
            return json.loads(text.value)

    def cancel(self):
        """Wakes every waiting call, which then raises Cancelled; only close may follow. From any thread."""
        if self._handle is not None and os.getpid() == self._process:
            self._library.trc_cancel(self._handle)

    # -- batches ----------------------------------------------------------------------------------------------------------------------

    def submit(self, features, labels=None, *, forward_only=False):
        """Copies a batch and queues it; returns its ticket.

        features: a dict by name, or a list in the model's order. Each is (values, offsets) or (values, offsets, weights), where bag s
        is values[offsets[s]:offsets[s + 1]]; or values alone: one id per sample, or [samples, k] for bags of k ids. labels: for models
        with a head, one 0 or 1 per sample. forward_only: release follows forward, never backward, and what only an update needs is
        left out. Raises WouldBlock where the pipeline is full.
        """
        given = self._ordered(features, "features")
        bags = (_abi.Bags * len(given))()
        keep, samples = [], None
        for feature, bag, slot in zip(self.features, given, bags):
            values, offsets, weights = self._bag(feature, bag)
            count = offsets.shape[0] - 1
            if samples is None:
                samples, first = count, feature.name
            elif count != samples:
                raise BadArgument(f"feature '{feature.name}' has {count} samples, '{first}' has {samples}")
            slot.values, slot.value_bits, slot.value_count = values.address, values.bits, values.shape[0]
            slot.offsets, slot.offset_bits = offsets.address, offsets.bits
            if weights is not None:
                if weights.shape != values.shape:
                    raise BadArgument(f"feature '{feature.name}' has {values.shape[0]} ids, but {weights.shape[0]} weights")
                slot.weights = weights.address
            keep.append((values, offsets, weights))
        if labels is not None:
            if self.head is None:
                raise BadArgument("labels were given, but the model has no head; the loss is the trainer's")
            labels = _tensor.floats(labels, "labels")
            if labels.shape[0] != samples:
                raise BadArgument(f"{labels.shape[0]} labels for {samples} samples")
        batch = _abi.Batch(struct_size=ctypes.sizeof(_abi.Batch), feature_count=len(bags), features=bags, samples=samples or 0,
                           labels=labels.address if labels is not None else None, flags=_abi.FORWARD_ONLY if forward_only else 0)
        return self._queue(self._library.trc_submit, batch, samples, lambda i: keep[i][:2])

    def submit_keyed(self, values, offsets, weights=None, *, samples, keys, forward_only=False):
        """submit for all bags in one array, key by key: bag s of key k is values[offsets[k * samples + s]:offsets[k * samples + s + 1]].

        keys: by feature of the model, which key has its bags. weights: one per id; None where no feature is weighted. What
        KeyedJaggedTensors have; the cost does not grow with the number of features. forward_only: as submit's.
        """
        values, offsets = _tensor.ids(values, "values"), _tensor.ids(offsets, "offsets")
        mine = self._mine.__dict__
        batch, known = mine.get("keyed") or (_abi.KeyedBatch(struct_size=ctypes.sizeof(_abi.KeyedBatch)), mine)
        if keys is not known:
            keys = _tensor.integers(keys, "keys", np.int32)
            if keys.shape != (len(self.features), ):
                raise BadArgument(f"keys has shape {list(keys.shape)}; model '{self.model}' has {len(self.features)} features")
            batch.keys = keys.ctypes.data
            mine["keyed"] = batch, keys
        ends, = offsets.shape
        samples = _tensor.integer(samples, "samples")
        if ends < 1 or ((ends - 1) % samples if samples else ends != 1):
            raise BadArgument(f"{ends} offsets for {samples} samples; keys * samples + 1 are needed")
        batch.key_count = (ends - 1) // samples if samples else int(keys.max(initial=-1)) + 1
        batch.values, batch.value_bits, (batch.value_count, ) = values.address, values.bits, values.shape
        batch.offsets, batch.offset_bits, batch.samples = offsets.address, offsets.bits, samples
        batch.flags = _abi.FORWARD_ONLY if forward_only else 0
        if self._weighted:
            seen = _tensor.floats(weights, "weights")
            if seen.shape != values.shape:
                raise BadArgument(f"{values.shape[0]} ids, but {seen.shape[0]} weights")
            batch.weights = seen.address
        elif weights is not None:
            raise BadArgument(f"weights were given, but no feature of model '{self.model}' is weighted; `weights: COLUMN` in the spec makes one so")

        def bag(i):
            ids, ends = _as_numpy(values), _as_numpy(offsets)[keys[i] * samples:(keys[i] + 1) * samples + 1]
            return _tensor.view(ids[ends[0]:ends[-1]], "values"), _tensor.view(ends - ends[0], "offsets")

        return self._queue(self._library.trc_submit_keyed, batch, samples, bag)

    def _queue(self, function, batch, samples, bag):
        """bag(i): views of values and offsets of a feature, for those whose ids are counted."""
        ticket = c_uint64()
        self._call(function, byref(batch), byref(ticket))
        rows, weighted = [samples] * len(self.features), {}
        self._open[ticket.value], self._last = (samples, rows, weighted), ticket.value
        try:
            for i in self._unpooled:
                rows[i] = self._remaining(self.features[i], *bag(i))
            for i in self._weighted:
                weighted[self.features[i].name] = self._remaining(self.features[i], *bag(i))
        except BaseException:  # nobody else knows the ticket
            self.abandon(ticket.value)
            raise
        return ticket.value

    def forward(self, ticket, out=None, *, logits=False):
        """Waits for the batch and writes its outputs into `out`; returns them.

        Without a head: one tensor per feature, [samples, dim] ([ids, dim] for pooling none), any strides; out is a dict by name or a list in
        the model's order, default new numpy arrays in a dict; or one array [samples, sum of dims] for all, where all features are pooled.
        With a head: the predictions, or with `logits` a pair with them. float32, or float16 or bfloat16, to which results are rounded.
        """
        samples, rows, _ = self._ticket(ticket, "forward")
        if self.head is not None:
            made = out if out is not None else (np.empty(samples, np.float32), np.empty(samples, np.float32))[:2 if logits else 1]
            made = (made, ) if _tensor.is_array(made) else made
            if not isinstance(made, (list, tuple)) or not 1 <= len(made) <= 2:
                raise BadArgument("out of a model with a head is the array of predictions, or a pair with that of logits")
            views = [_tensor.view(t, name, writable=True) for t, name in zip(made, ("predictions", "logits"))]
        elif _tensor.is_array(out):
            made, views = out, _tensor.view(out, "output of all features", writable=True)
        else:
            made = out
            if made is None:
                made = {f.name: np.empty((n, f.dim), np.float32) for f, n in zip(self.features, rows)}
            views = [
                _tensor.view(t, f"output of feature '{f.name}'", writable=True)
                for t, f in zip(self._ordered(made, "outputs"), self.features)
            ]
        arguments = self._pointers("output", views)
        try:
            self._call(self._library.trc_forward, ticket, arguments.pointers, len(arguments))
        except BaseException as error:
            if getattr(error, "status", None) == _abi.BAD_INPUT:
                self._end(ticket)
            raise
        if self.head is None:
            return made
        return out if out is not None else made if logits else made[0]

    def _pointers(self, role, views):
        """views: a list of them, or one, for which the thread in the role has a struct of its own."""
        if isinstance(views, list) or len(views.shape) > 2:
            return _tensor.Pointers(views if isinstance(views, list) else [views])
        mine = self._mine.__dict__
        pointer = mine.get(role)
        if pointer is None:
            pointer = mine[role] = _tensor.Pointer()
        return pointer.to(views)

    def backward(self, ticket, gradients=None, *, grad_scale=1.0, weight_gradients=None):
        """Applies the step. Without a head: one gradient per feature, shaped as its output; a dict by name or a list; or one for all, as out.

        weight_gradients: names of weighted features, or a dict of float32 arrays by name, one number for each id that remains after overflow
        and on_bad_id. The gradients of those features' weights are written there, and returned as a dict.
        """
        known = self._ticket(ticket, "backward")
        if gradients is None:
            arguments, count = None, 0
            if self.head is None:
                raise BadArgument("the model has no head: pass the gradient of each feature's output")
        elif _tensor.is_array(gradients):
            view = _tensor.view(gradients, "gradient of all features")
            arguments, count = self._pointers("gradient", view), 1
        else:
            views = [
                _tensor.view(t, f"gradient of feature '{f.name}'")
                for t, f in zip(self._ordered(gradients, "gradients"), self.features)
            ]
            arguments, count = _tensor.Pointers(views), len(views)
        wanted, pointers = self._weight_gradients(weight_gradients, known[2]) if weight_gradients else (None, None)
        options = _abi.BackwardOptions(struct_size=ctypes.sizeof(_abi.BackwardOptions), grad_scale=grad_scale,
                                       weight_gradients=ctypes.addressof(pointers) if pointers else None)
        try:
            self._call(self._library.trc_backward, ticket, arguments.pointers if arguments else None, count, byref(options))
        except BaseException as error:
            if getattr(error, "status", None) == _abi.BAD_INPUT:  # over, and not applied
                self._end(ticket)
            raise
        self._end(ticket)
        return wanted

    def _weight_gradients(self, given, counts):
        """(arrays by name, their addresses in the model's order)."""
        given = given if isinstance(given, dict) else dict.fromkeys(given)
        unknown = [str(name) for name in given if name not in counts]
        if unknown:
            raise BadArgument(f"weight_gradients of {', '.join(unknown)}: no weighted feature of this model; it has {', '.join(counts) or 'none'}")
        # Zeros: a step that on_bad_grad skips writes nothing.
        wanted = {name: np.zeros(counts[name], np.float32) if array is None else array for name, array in given.items()}
        pointers = (c_void_p * len(self.features))()
        for name, array in wanted.items():
            what = f"weight gradient of feature '{name}'"
            self._room(array, (counts[name], ), what)
            pointers[self._index[name]] = _tensor.view(array, what, writable=True).address
        return wanted, pointers

    def release(self, ticket):
        """Ends a batch that is not to be applied, before or after its forward."""
        self._ticket(ticket, "release")
        self._call(self._library.trc_release, ticket)
        self._end(ticket)

    def abandon(self, ticket):
        """Releases a batch, as soon as those before it have ended. A ticket that is over is left alone."""
        if ticket in self._open and self._handle is not None and os.getpid() == self._process:
            self._abandoned.add(ticket)
            self._sweep()

    def _end(self, ticket):
        self._open.pop(ticket, None)
        self._abandoned.discard(ticket)
        self._sweep()

    def _sweep(self):
        while self._abandoned and self._open:
            oldest = min(self._open)
            if oldest not in self._abandoned:
                return
            try:
                self._call(self._library.trc_release, oldest)
            except Error:  # another thread is in a call, or the session has ended: later, or with close
                return
            self._abandoned.discard(oldest)
            self._open.pop(oldest, None)

    def set_lr(self, scale):
        """Multiplies every table's learning rate from the next backward on."""
        try:
            scale = float(scale)
        except (TypeError, ValueError):
            raise BadArgument(f"the scale of the learning rate is {scale!r}; a number is needed") from None
        self._call(self._library.trc_set_lr, scale)

    @property
    def in_flight(self):
        """Tickets that are open, oldest first."""
        return sorted(self._open)

    # -- rows -------------------------------------------------------------------------------------------------------------------------

    def read_rows(self, table, rows, out=None):
        """Weights of rows of a table, as [count, dim] float32. With no batch in flight."""
        info, rows = self._rows(table, rows)
        out = self._room(out, (rows.size, info.dim), "out")
        self._call(self._library.trc_read_rows, info.name.encode(), rows.ctypes.data, rows.size, _tensor.view(out, "out", True).address)
        return out

    def read_state(self, table, slot, rows, out=None):
        """One optimizer state of rows (docs/numerics.md), as [count, width] float32."""
        info, rows = self._rows(table, rows)
        out = self._room(out, (rows.size, self._state_width(info, slot)), "out")
        self._call(self._library.trc_read_state, info.name.encode(), slot, rows.ctypes.data, rows.size,
                   _tensor.view(out, "out", True).address)
        return out

    def write_rows(self, table, rows, values):
        """Sets the weights of rows; optimizer state is kept. With no batch in flight."""
        info, rows = self._rows(table, rows)
        values = self._given(values, (rows.size, info.dim), "values")
        self._call(self._library.trc_write_rows, info.name.encode(), rows.ctypes.data, rows.size, _tensor.view(values, "values").address)

    def write_state(self, table, slot, rows, values):
        """Sets one optimizer state of rows; weights and other states are kept. With no batch in flight."""
        info, rows = self._rows(table, rows)
        values = self._given(values, (rows.size, self._state_width(info, slot)), "values")
        self._call(self._library.trc_write_state, info.name.encode(), slot, rows.ctypes.data, rows.size, _tensor.view(values, "values").address)

    @staticmethod
    def _state_width(info, slot):
        widths = info.state_widths
        if slot not in range(len(widths)):
            raise BadArgument(f"table '{info.name}' with optimizer {info.optimizer['kind']} has {len(widths)} states, not one with number {slot!r}")
        return widths[slot]

    # -- checkpoints --------------------------------------------------------------------------------------------------------------------

    def checkpoint(self, dense=None, optimizer=None, extra=None, *, keep=3, wait=True):
        """A state between two steps, of one moment; returns its name. By the thread of forward and backward, not between the two.

        dense, optimizer, extra: the trainer's own state, of the same moment: nested dicts, lists and tuples of numpy arrays, torch tensors,
        numbers, strings and bytes (a module's and an optimizer's state_dict() are such). restore() gives them back. keep: the newest
        that stay, 0 for all. With wait it is durable on return; else training goes on while it is written, and wait_checkpoint tells how it ended.
        """
        for owner in list(self._owners):
            owner.settle()
        step, keep = self.step, _tensor.integer(keep, "keep", 0, 2**32 - 1)
        data = blob.pack({"dense": dense, "optimizer": optimizer, "extra": extra, "step": step})
        self._call(self._library.trc_checkpoint if wait else self._library.trc_checkpoint_begin, data, len(data), keep)
        return f"ckpt-{step}"

    def wait_checkpoint(self, block=True):
        """Whether the checkpoint that was begun without wait is durable; with block, waits for it. Raises what went wrong with it."""
        try:
            self._call(self._library.trc_checkpoint_wait, int(block))
        except WouldBlock:
            return False
        return True

    def restore(self):
        """What the last checkpoint() put beside the tables: a dict with dense, optimizer, extra and step; None where there is nothing.

        Raises OutOfOrder where the tables are of another step, because the state was closed after training on without a checkpoint.
        """
        size = c_uint64(0)
        self._call(self._library.trc_get_blob, None, byref(size))
        if not size.value:
            return None
        data = ctypes.create_string_buffer(size.value)
        self._call(self._library.trc_get_blob, data, byref(size))
        found = blob.unpack(memoryview(data)[:size.value])
        if not isinstance(found, dict) or "step" not in found:
            raise BadArgument("the blob of this state was not written by Session.checkpoint of this package")
        if found["step"] != self.step:
            raise OutOfOrder(
                f"the dense state is that of step {found['step']}, the tables are at step {self.step}: the state was closed after training on "
                "without a checkpoint. Load with from_checkpoint='newest' to go back to the moment of both")
        return found

    def recall(self):
        """Takes back batches that a prefetcher has submitted and not yet handed out; it submits them again when it goes on."""
        for owner in list(self._owners):
            owner.settle()
        for prefetcher in list(self._recalls):
            prefetcher.recall()

    # -- helpers ------------------------------------------------------------------------------------------------------------------------

    def _ordered(self, given, what):
        """A dict by feature, or a list, as a list in the model's order."""
        if isinstance(given, dict):
            if len(given) != len(self.features) or any(name not in given for name in self._index):
                missing = [n for n in self._index if n not in given]
                extra = [str(n) for n in given if n not in self._index]
                raise BadArgument(f"{what}: " + "; ".join(
                    ([f"missing: {', '.join(missing)}"] if missing else []) + ([f"not of this model: {', '.join(extra)}"] if extra else [])))
            return [given[name] for name in self._index]
        if not isinstance(given, (list, tuple)):
            raise BadArgument(f"{what} is a {type(given).__name__}; a dict by feature name, or a list in the model's order, is needed")
        if len(given) != len(self.features):
            raise BadArgument(f"{len(given)} {what}; model '{self.model}' has {len(self.features)} features: {', '.join(self._index)}")
        return given

    def _bag(self, feature, bag):
        name = f"feature '{feature.name}'"
        weights = None
        if isinstance(bag, (tuple, list)) and len(bag) in (2, 3) and hasattr(bag[1], "__len__"):
            values, offsets = _tensor.ids(bag[0], name + ": values"), _tensor.ids(bag[1], name + ": offsets")
            if offsets.shape[0] == 0:
                raise BadArgument(f"{name}: offsets is empty; it has one entry more than there are samples")
            if len(bag) == 3 and bag[2] is not None:
                weights = _tensor.floats(bag[2], name + ": weights")
        else:
            shape = getattr(bag, "shape", None)
            width = 1
            if shape is not None and len(shape) == 2:
                width, bag = int(shape[1]), bag.reshape(-1)
            values = _tensor.ids(bag, name + ": values")
            count = int(shape[0]) if shape is not None else values.shape[0]
            offsets = _tensor.ids(np.arange(0, (count + 1) * width, width, dtype=np.int64)[:count + 1] if width else
                                  np.zeros(count + 1, np.int64), name)
        if feature.weights is not None and weights is None:
            raise BadArgument(f"{name} is weighted: pass (values, offsets, weights)")
        if feature.weights is None and weights is not None:
            raise BadArgument(f"{name} is not weighted, but weights were given; `weights: COLUMN` in the spec makes it so")
        return values, offsets, weights

    def kept(self, feature, values, offsets):
        """Which of the ids of a feature's bags remain after overflow and on_bad_id, as a mask; None: all."""
        feature = self.features[self._index[feature]]
        return self._kept(feature, _tensor.ids(values, "values"), _tensor.ids(offsets, "offsets"))

    def _remaining(self, feature, values, offsets):
        """How many ids remain after overflow and on_bad_id."""
        kept = self._kept(feature, values, offsets)
        return values.shape[0] if kept is None else int(kept.sum())

    def _kept(self, feature, values, offsets):
        """Which ids remain after overflow and on_bad_id; None: all."""
        if feature.overflow == "error" and (feature.hashed or not self._plan.drops_bad_ids):
            return None
        ids, ends = _as_numpy(values), _as_numpy(offsets)
        lengths = np.diff(ends)
        place = np.arange(ids.size) - np.repeat(ends[:-1], lengths)
        keep = np.ones(ids.size, bool)
        if feature.overflow == "keep_first":
            keep &= place < feature.max_ids
        elif feature.overflow == "keep_last":
            keep &= place >= np.repeat(lengths - feature.max_ids, lengths)
        if self._plan.drops_bad_ids and not feature.hashed:
            keep &= (ids >= 0) & (ids < feature.rows)
        return keep

    def _ticket(self, ticket, call):
        known = self._open.get(ticket)
        if known is None:
            state = "is over" if isinstance(ticket, int) and 0 < ticket <= self._last else "was never handed out"
            first = f"; the oldest open ticket is {min(self._open)}" if self._open else "; no batch is in flight: submit one"
            raise OutOfOrder(f"{call} of ticket {ticket!r}, which {state}{first}")
        return known

    def _rows(self, table, rows):
        info = self.tables.get(table) if isinstance(table, str) else None
        if info is None:
            raise BadArgument(f"no table {table!r} in model '{self.model}'; it has {', '.join(self.tables)}")
        rows = _tensor.integers(rows, "rows")
        if rows.ndim != 1:
            raise BadArgument(f"rows has shape {list(rows.shape)}; one dimension is needed")
        return info, rows

    @staticmethod
    def _room(array, shape, what):
        """Where an output goes."""
        return np.empty(shape, np.float32) if array is None else Session._given(array, shape, what)

    @staticmethod
    def _given(array, shape, what):
        seen = _tensor.view(array, what)
        if (seen.code, seen.bits) != (_abi.FLOAT, 32) or tuple(seen.shape) != shape or not seen.compact:
            raise BadArgument(f"{what} is {seen.type_name()} {list(seen.shape)}; contiguous float32 {list(shape)} is needed")
        return array


def _as_numpy(seen):
    kind = ctypes.c_int64 if seen.bits == 64 else ctypes.c_int32
    if not seen.shape[0]:
        return np.zeros(0, np.int64)
    return np.ctypeslib.as_array(ctypes.cast(seen.address, ctypes.POINTER(kind)), shape=tuple(seen.shape))


def _logger(log):
    def call(_, level, line):
        log("warning" if level else "info", line.decode("utf-8", "replace"))

    return call
