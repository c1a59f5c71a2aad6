"""tensors.py - Jagged inputs and keyed outputs, TorchRec's or plain.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Inputs are told apart by their methods, so that TorchRec is not imported for them. Where the input is TorchRec's, so is the output.
"""
import itertools
import sys

import torch

from ..errors import BadArgument


class KeyedTensor:
    """Outputs of several features side by side; the part of TorchRec's KeyedTensor that models use."""

    def __init__(self, keys, length_per_key, values):
        self._keys, self._lengths, self._values = keys, length_per_key, values

    def keys(self):
        return self._keys

    def values(self):
        return self._values

    def length_per_key(self):
        return self._lengths

    def offset_per_key(self):
        return list(itertools.accumulate(self._lengths, initial=0))

    def key_dim(self):
        return 1

    def __getitem__(self, key):
        i = self._keys.index(key)
        begin = sum(self._lengths[:i])
        return self._values[:, begin:begin + self._lengths[i]]

    def to_dict(self):
        return dict(zip(self._keys, torch.split(self._values, self._lengths, dim=1)))


def keyed(source, keys, lengths, values):
    """A KeyedTensor of the kind that goes with the input `source`."""
    if type(source).__module__.startswith("torchrec."):
        return sys.modules["torchrec.sparse.jagged_tensor"].KeyedTensor(keys=list(keys), length_per_key=list(lengths), values=values)
    return KeyedTensor(list(keys), list(lengths), values)


def jagged(source, values, lengths, weights=None):
    """A JaggedTensor where the input is TorchRec's, else the values alone."""
    if type(source).__module__.startswith("torchrec."):
        return sys.modules["torchrec.sparse.jagged_tensor"].JaggedTensor(values=values, lengths=lengths, weights=weights)
    return values


def is_keyed_jagged(batch):
    return all(hasattr(batch, name) for name in ("keys", "values", "offsets", "weights_or_none", "stride"))


def is_jagged(bag):
    return all(hasattr(bag, name) for name in ("values", "offsets", "weights_or_none")) and callable(bag.values)


class Keyed:
    """What a KeyedJaggedTensor holds: bag s of key k is values[offsets[k * samples + s]:offsets[k * samples + s + 1]]."""

    __slots__ = ("keys", "samples", "values", "offsets", "weights")

    def __init__(self, batch):
        if getattr(batch, "variable_stride_per_key", lambda: False)():
            raise BadArgument("the KeyedJaggedTensor has another number of samples per key (variable stride); expand it first")
        if getattr(batch, "inverse_indices_or_none", lambda: None)() is not None:
            raise BadArgument("the KeyedJaggedTensor has inverse indices; expand it first (`dedup` in the spec finds equal bags itself)")
        self.keys, self.samples, self.values = batch.keys(), batch.stride(), batch.values()
        self.offsets, self.weights = batch.offsets(), batch.weights_or_none()
        if len(self.offsets) != len(self.keys) * self.samples + 1:
            raise BadArgument(f"the KeyedJaggedTensor has {len(self.offsets)} offsets for {len(self.keys)} keys and {self.samples} samples; "
                              "keys * samples + 1 are needed")

    def apart(self):
        """By key: values, offsets from 0, weights or None."""
        samples, offsets = self.samples, self.offsets
        if not self.keys:
            return {}
        rows = offsets.unfold(0, samples + 1, samples) if samples else offsets[:1].expand(len(self.keys), 1)
        own = rows - rows[:, :1]
        sizes = [int(n) for n in (rows[:, -1] - rows[:, 0]).tolist()]
        if sum(sizes) != self.values.shape[0] or min(sizes, default=0) < 0:
            raise BadArgument(f"the KeyedJaggedTensor's offsets hold {sum(sizes)} values, it has {self.values.shape[0]}")
        values, weights = self.values.split(sizes), [None] * len(sizes)
        if self.weights is not None:
            weights = self.weights.split(sizes)
        return {key: (values[k], own[k], weights[k]) for k, key in enumerate(self.keys)}


class Bags:
    """A batch by input feature: values, offsets from 0, weights or None."""

    def __init__(self, batch, weighted):
        self.source, self.weighted = batch, weighted
        self.bags, self.keyed = {}, None
        if is_keyed_jagged(batch):
            self.keyed = Keyed(batch)
        elif isinstance(batch, dict):
            for name, bag in batch.items():
                self.bags[name] = self._one(name, bag)
        else:
            raise BadArgument(f"the batch is a {type(batch).__name__}; a KeyedJaggedTensor, or a dict of (values, offsets[, weights]), is needed")

    @staticmethod
    def _one(name, bag):
        if is_jagged(bag):
            return bag.values(), bag.offsets(), bag.weights_or_none()
        if isinstance(bag, torch.Tensor):
            if bag.dim() > 2 or bag.dim() == 0:
                raise BadArgument(f"feature '{name}' has shape {list(bag.shape)}; [samples] or [samples, ids] is needed where there are no offsets")
            width = bag.shape[1] if bag.dim() == 2 else 1
            return bag.reshape(-1), torch.arange(bag.shape[0] + 1) * width, None
        if isinstance(bag, (tuple, list)) and len(bag) in (2, 3):
            values, offsets = (t if isinstance(t, torch.Tensor) else torch.as_tensor(t, dtype=torch.int64) for t in bag[:2])
            return values, offsets, bag[2] if len(bag) == 3 else None
        raise BadArgument(f"feature '{name}' is a {type(bag).__name__}; a tensor of ids, (values, offsets[, weights]) or a JaggedTensor is needed")

    def of(self, feature):
        if self.keyed is not None and not self.bags:  # apart only where they are asked for one by one
            self.bags = self.keyed.apart()
        bag = self.bags.get(feature)
        if bag is None:
            raise BadArgument(f"the batch has no feature '{feature}'; it has {', '.join(map(str, self.bags))}")
        return bag
