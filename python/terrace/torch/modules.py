"""modules.py - EmbeddingBagCollection and EmbeddingCollection on a session.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

The rows live in the session, not in parameters: forward fetches pooled outputs, backward hands their gradients over and the rows are
updated there, by the optimizer that was compiled in. So a batch has exactly one backward; the modules tell when it has none or two.
"""
import os
import sys
import warnings
import weakref

import numpy as np
import torch
from torch import nn

from .. import compiler, session as sessions
from ..errors import BadArgument, OutOfOrder, Unsupported
from . import configs, tensors


class FusedOptimizer(torch.optim.Optimizer):
    """Stands for the optimizer inside the session: schedulers drive its learning rate. step and zero_grad have nothing to do.

    lr is that of the tables where they share one, else a factor that starts at 1.
    """

    def __init__(self, anchor, rates):
        rates = list(rates)
        self._base = rates[0] if len(set(rates)) == 1 and rates[0] else 1.0
        super().__init__([anchor], {"lr": self._base})

    def scale(self):
        return float(self.param_groups[0]["lr"]) / self._base

    def step(self, closure=None):
        return closure() if closure is not None else None

    def zero_grad(self, set_to_none=True):
        pass


class _Call:
    """One batch between forward and backward. Dies with the graph."""

    def __init__(self, module, ticket, out):
        self.module, self.ticket, self.out, self.over = module, ticket, out, False
        self.weights = []  # by weighted feature: (its place, count, which of its ids remain); those whose weights want a gradient

    def backward(self, gradients):
        if torch.is_grad_enabled():
            raise Unsupported("backward with create_graph=True: the rows are updated in backward, and the update has no derivative")
        if self.over:
            raise OutOfOrder("a second backward through the same batch (retain_graph=True): its rows were updated by the first; add the losses "
                             "and call backward once, or run forward again")
        of_weights = self.module._backward(self, gradients)
        self.over = True
        return of_weights


_uses = getattr(torch._C, "_storage_Use_Count", None)


class _Spare:
    """Memory for outputs that is used again once nobody holds them: megabytes of new pages a step cost more than all the rest of the layer.

    A storage whose only user is this object has no tensor, array or graph over it; that it has no other name in Python, and does not lie in
    memory that another process may have open, is looked at besides. Where torch does not tell, every step has new memory.
    """

    def __init__(self):
        self._storage = None

    def tensor(self, shape, dtype):
        storage, size = self._storage, dtype.itemsize * shape[0] * shape[1]
        # Its names here: the attribute, the variable, the argument.
        if (storage is not None and storage.nbytes() == size and _uses(storage._cdata) == 1 and sys.getrefcount(storage) == 3
                and not storage.is_shared()):
            return torch.empty(0, dtype=dtype).set_(storage, 0, shape)
        made = torch.empty(shape, dtype=dtype)
        if _uses and size:
            self._storage = made.untyped_storage()
        return made


class _Batch:
    scale = None  # the factor that the session has
    live = None  # (ticket, weak reference to its call) of the forward that had no backward yet


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, anchor, *weights):
        ctx.call = call
        out = tuple(call.out)
        call.out = None  # the graph holds the call: no circle
        return out

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, *ctx.call.backward(gradients))


class _Collection(nn.Module):
    _pooled = True
    _group = "embedding_bags"

    def __init__(self, tables=None, is_weighted=False, device=None, *, spec=None, library=None, optimizer="rowwise_adagrad", batch_size=2048,
                 max_ids=64, ids_per_batch=None, memory=None, plan=None, model=None, state=None, mode="train",
                 fresh=False, warm=False, from_checkpoint=None, init_from=None, threads=0, log=None, output_dtype=torch.float32, **set):
        """tables: TorchRec's configs or ours; or a spec (dict, path or text) without a head; or a library that is compiled already.

        batch_size, max_ids (of one bag; a dict by feature), ids_per_batch: bounds that the pipeline is sized for. optimizer: its name, a dict with lr
        and eps, or one of these by table. memory, plan: these parts of the spec. model: names library and state. output_dtype: of the outputs
        and their gradients, float32, float16 or bfloat16; rows are pooled and updated in float32 all the same. Other keywords change keys of
        the spec, as in terrace.compile.
        """
        super().__init__()
        if output_dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise BadArgument(f"output_dtype is {output_dtype}; torch.float32, torch.float16 or torch.bfloat16 is needed")
        self._dtype = output_dtype
        if device is not None and torch.device(device).type not in ("cpu", "meta"):
            raise BadArgument(f"device {device}: the tables live in the session, on the CPU and its tiers; move the outputs instead")
        if sum(x is not None for x in (tables, spec, library)) != 1:
            raise BadArgument("give one of tables, spec and library")
        model = model or ("ebc" if self._pooled else "ec")
        self._configs, self._is_weighted, self.notes = list(tables or []), is_weighted, []
        outputs = None
        if tables is not None:
            made = configs.convert(self._configs, weighted=is_weighted, pooled=self._pooled, optimizer=optimizer, max_ids=max_ids)
            self.notes, outputs = made.notes, made.outputs
            for note in self.notes:
                warnings.warn(f"not carried over from the configs: {note}")
            spec = {"model": model, "batch": {"size": batch_size}, "tables": made.tables, "features": made.features}
            if ids_per_batch is not None:
                spec["batch"]["max_ids"] = ids_per_batch
            for key, value in (("memory", memory), ("plan", plan)):
                if value is not None:
                    spec[key] = value
            folder = os.path.dirname(os.path.abspath(os.fspath(state))) if state is not None else os.getcwd()
            os.makedirs(folder, exist_ok=True)
            library = compiler.compile(spec, os.path.join(folder, model + ".so"), **set)
        elif spec is not None:
            library = compiler.compile(spec, **set)
        elif set:
            raise BadArgument(f"{', '.join(set)}: a library is compiled already")
        self.session = sessions.load(library, state, mode, fresh=fresh, warm=warm, from_checkpoint=from_checkpoint, init_from=init_from,
                                     threads=threads, log=log)
        try:
            self._match(outputs)
        except BaseException:
            self.session.close()
            raise
        # Not a parameter: state_dict and optimizers of the dense part must not see it.
        self._anchor = torch.zeros(0, requires_grad=True)
        self.fused_optimizer = FusedOptimizer(self._anchor, [t.optimizer.get("lr", 1.0) for t in self.session.tables.values()])
        #: Gradients are multiplied by it before they are applied: 1 / scale where the loss was scaled.
        self.grad_scale = 1.0
        # Changes with each batch; nn.Module's own attributes are slow to set.
        self._batch = _Batch()
        self._spare = _Spare()
        self._made = {}  # keys of a batch -> which are the outputs'
        self.session._owners.add(self)

    def _match(self, outputs):
        """Which of the model's features are whose outputs."""
        if self.session.head is not None:
            raise BadArgument(f"model '{self.session.model}' has a head of its own ({self.session.head}); a collection takes one without")
        if outputs is None:
            outputs = [configs.Output(f.name, f.column, f.name) for f in self.session.features]
        self._outputs = outputs
        infos = self.session.features
        if any((f.pooling == "none") == self._pooled for f in infos):
            raise BadArgument("pooling none goes with EmbeddingCollection, every other with EmbeddingBagCollection: this model mixes them"
                              if len({f.pooling == "none" for f in infos}) > 1 else
                              f"this model has {'no pooling' if self._pooled else 'pooling'}; use "
                              f"{'EmbeddingCollection' if self._pooled else 'EmbeddingBagCollection'}")
        self._dims = [f.dim for f in infos]
        self._total = sum(self._dims)
        self._names = [o.name for o in outputs]
        self._weighted = [(o, f) for o, f in zip(outputs, infos) if f.weights is not None]

    # -- TorchRec's view ----------------------------------------------------------------------------------------------------------------

    def is_weighted(self):
        return self._is_weighted

    @property
    def device(self):
        return torch.device("cpu")

    def extra_repr(self):
        return f"{self.session!r}, tables={list(self.session.tables)}"

    def _apply(self, fn, recurse=True):
        return self  # .to() and .half() of a parent: the rows stay where they are

    # -- batches ------------------------------------------------------------------------------------------------------------------------

    def submit(self, batch):
        """Queues a batch ahead of its forward; returns the ticket for forward(batch, ticket=...)."""
        return self._submit(tensors.Bags(batch, self._is_weighted))

    def _submit(self, bags, forward_only=False):
        keyed = bags.keyed
        if keyed is not None and (keyed.weights is not None or not self._weighted):
            places = self._places(tuple(keyed.keys))
            if places is not None:
                # As TorchRec: weights of an unweighted collection are left alone.
                weights = keyed.weights if self._weighted else None
                return self.session.submit_keyed(keyed.values, keyed.offsets, weights, samples=keyed.samples, keys=places,
                                                 forward_only=forward_only)
        given = []
        for output, feature in zip(self._outputs, self.session.features):
            values, offsets, weights = bags.of(output.feature)
            if feature.weights is None:
                weights = None  # as TorchRec: weights of an unweighted collection are left alone
            elif weights is None:
                raise BadArgument(f"feature '{output.feature}' is weighted, but the batch has no weights for it")
            given.append((values, offsets, weights))
        return self.session.submit(given, forward_only=forward_only)

    def _places(self, keys):
        """By output, which of the keys is its feature; None where one is missing."""
        places = self._made.get(keys)
        if places is None:
            index = {key: k for k, key in enumerate(keys)}
            if any(o.feature not in index for o in self._outputs):
                return None
            if len(self._made) == 16:  # keys in any order
                self._made.clear()
            places = self._made[keys] = np.array([index[o.feature] for o in self._outputs], np.int32)
        return places

    def settle(self):
        """Lets go of a batch whose outputs nobody holds any more."""
        if self._batch.live is not None:
            ticket, call = self._batch.live
            if call() is None:
                self.session.abandon(ticket)
                self._batch.live = None
            elif call().over:
                self._batch.live = None

    def skip(self):
        """Ends the batch whose forward came last without a step."""
        if self._batch.live is not None:
            ticket, call = self._batch.live
            if call() is not None:
                call().over = True
            self._batch.live = None
            self.session.abandon(ticket)

    def _run(self, batch, ticket):
        self.settle()
        if self._batch.live is not None:
            raise OutOfOrder(f"forward again before backward of the batch before (ticket {self._batch.live[0]}): call backward on its loss, or skip() "
                             "where it is not to be applied. Two lookups of one step go into one batch")
        bags = tensors.Bags(batch, self._is_weighted)
        session, own = self.session, ticket is None
        trains = torch.is_grad_enabled() and self.training and session.mode == "train"
        if own:
            ticket = self._submit(bags, forward_only=not trains)
        samples, rows, _ = session._ticket(ticket, "forward")
        out, views = self._allocate(samples, rows)
        try:
            session.forward(ticket, views)
        except BaseException:
            if own:  # nobody else knows the ticket
                session.abandon(ticket)
            raise
        if not trains:
            session.release(ticket)
            return bags, out
        call = _Call(self, ticket, out)
        inputs = []
        for output, feature in self._weighted:
            values, offsets, weight = bags.of(output.feature)
            if isinstance(weight, torch.Tensor) and weight.requires_grad:
                call.weights.append((feature.name, len(weight), session.kept(feature.name, values, offsets)))
                inputs.append(weight)
        self._batch.live = (ticket, weakref.ref(call))
        return bags, list(_Lookup.apply(call, self._anchor, *inputs))

    def _backward(self, call, gradients):
        """Applies the step; the gradients of the weights that want one."""
        session, ticket = self.session, call.ticket
        scale = self.fused_optimizer.scale()
        if scale != self._batch.scale:
            session.set_lr(scale)
            self._batch.scale = scale
        found = {name: torch.zeros(count if kept is None else int(kept.sum())) for name, count, kept in call.weights}
        try:
            session.backward(ticket, self._split(gradients), grad_scale=self.grad_scale, weight_gradients=found)
        finally:
            if self._batch.live is not None and self._batch.live[0] == ticket:
                self._batch.live = None
            session.abandon(ticket)  # where it failed
        result = []
        for name, count, kept in call.weights:
            gradient = found[name]
            if self.grad_scale != 1.0:  # that of the rows alone: this one goes on to parameters whose loss is still scaled
                gradient = gradient / self.grad_scale
            if kept is not None:  # ids that were left out have no part in the loss
                gradient, some = torch.zeros(count), gradient
                gradient[torch.from_numpy(kept)] = some
            result.append(gradient)
        return result

    # -- state --------------------------------------------------------------------------------------------------------------------------

    def get_extra_state(self):
        """In a parent's state_dict: which moment of the tables it goes with. The rows are in the session's checkpoints."""
        return {"terrace": 1, "model": self.session.model, "step": self.session.step}

    def set_extra_state(self, state):
        if isinstance(state, dict) and state.get("step") != self.session.step:
            raise OutOfOrder(f"this state_dict goes with step {state.get('step')} of the tables of '{self.session.model}', which are at step "
                             f"{self.session.step}; open the session at that checkpoint (from_checkpoint='ckpt-{state.get('step')}')")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        from . import state
        extra = prefix + "_extra_state"
        if extra in state_dict:
            self.set_extra_state(state_dict[extra])
            return
        report = state.load_into(self, {k[len(prefix):]: v for k, v in state_dict.items() if k.startswith(prefix)})
        missing_keys += [prefix + k for k in report.missing]
        unexpected_keys += [prefix + k for k in report.unexpected]
        error_msgs += report.mismatched

    def checkpoint(self, dense=None, optimizer=None, extra=None, *, keep=3, wait=True):
        """Session.checkpoint."""
        return self.session.checkpoint(dense, optimizer, extra, keep=keep, wait=wait)

    def close(self):
        self.session.close()


class EmbeddingBagCollection(_Collection):
    """forward(KeyedJaggedTensor) -> KeyedTensor, or forward(dict of (values, offsets[, weights])) -> dict, as TorchRec's."""

    def embedding_bag_configs(self):
        return self._configs

    def _allocate(self, samples, rows):
        whole = self._spare.tensor((samples, self._total), self._dtype)
        return [whole], whole

    def _split(self, gradients):
        return gradients[0]

    def forward(self, features, ticket=None):
        bags, (whole, ) = self._run(features, ticket)
        names = self._names
        if isinstance(features, dict):
            return dict(zip(names, torch.split(whole, self._dims, dim=1)))
        return tensors.keyed(bags.source, names, self._dims, whole)


class EmbeddingCollection(_Collection):
    """forward(KeyedJaggedTensor) -> dict of JaggedTensors, or forward(dict of (values, offsets)) -> dict of [ids, dim], as TorchRec's."""

    _pooled = False
    _group = "embeddings"

    def __init__(self, tables=None, device=None, need_indices=False, **options):
        if options.get("is_weighted"):
            raise BadArgument("an EmbeddingCollection has no weights: nothing is pooled")
        super().__init__(tables, device=device, **options)
        self._need_indices = need_indices

    def embedding_configs(self):
        return self._configs

    def embedding_dim(self):
        return self._dims[0]

    def need_indices(self):
        return self._need_indices

    def _allocate(self, samples, rows):
        views = [torch.empty((n, d), dtype=self._dtype) for n, d in zip(rows, self._dims)]
        return views, views

    def _split(self, gradients):
        return list(gradients)

    def forward(self, features, ticket=None):
        bags, outs = self._run(features, ticket)
        result = {}
        for output, values in zip(self._outputs, outs):
            ids, offsets, _ = bags.of(output.feature)
            lengths = offsets[1:] - offsets[:-1]
            result[output.name] = tensors.jagged(bags.source, values, lengths, ids if self._need_indices else None)
        return result
