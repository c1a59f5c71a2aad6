"""blob.py - A trainer's dense state as bytes, and back, bit for bit.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Layout: "TRCB1\\0\\0\\0", u64 length of a JSON text, that text, then the arrays, each at a multiple of 64 bytes from the start of the arrays.
The text describes a tree of dicts, lists, tuples, numbers, strings, bytes, None, numpy arrays and torch tensors. No pickle: reading a
state runs no code. Keys of dicts keep their type, as optimizers count parameters by integers.
"""
import collections
import json
import struct

import numpy as np

from .errors import BadArgument, Corrupt

_magic = b"TRCB1\0\0\0"
_align = 64


def _is_torch(value):
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "data_ptr")


class _Writer:
    def __init__(self):
        self.parts, self.size = [], 0

    def array(self, data):
        pad = -self.size % _align
        at = self.size + pad
        self.parts += [b"\0" * pad, data]
        self.size = at + len(data)
        return at

    def tree(self, value, where):
        # bool is an int, and numpy's float64 a float: exact types first.
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return {"f": value.hex()}
        if isinstance(value, dict):
            pairs = [[self.tree(k, where), self.tree(v, f"{where}[{k!r}]")] for k, v in value.items()]
            return {"d": pairs, "o": 1} if isinstance(value, collections.OrderedDict) else {"d": pairs}
        if type(value) in (list, tuple):
            items = [self.tree(v, f"{where}[{i}]") for i, v in enumerate(value)]
            return {"l" if type(value) is list else "t": items}
        if isinstance(value, (bytes, bytearray)):
            return {"b": [self.array(bytes(value)), len(value)]}
        if isinstance(value, (np.ndarray, np.generic)):
            if value.dtype.kind not in "biufc":
                raise BadArgument(f"{where} is an array of {value.dtype}; only arrays of numbers can be stored")
            array = np.ascontiguousarray(value)
            return {"n": [array.dtype.str, list(value.shape), self.array(array.tobytes())], "g": int(isinstance(value, np.generic))}
        if _is_torch(value):
            return self.torch(value, where)
        raise BadArgument(f"{where} is a {type(value).__name__}; dicts, lists, tuples, numbers, strings, bytes, numpy arrays and torch "
                          "tensors can be stored")

    def torch(self, tensor, where):
        import torch
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise BadArgument(f"{where} is a {tensor.layout} tensor; only dense ones can be stored")
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        # By bytes, as numpy has no bfloat16.
        data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        device = None if tensor.device.type == "cpu" else str(tensor.device)
        return {"T": [str(tensor.dtype)[6:], list(tensor.shape), self.array(data), len(data)], "p": int(isinstance(tensor, torch.nn.Parameter)),
                "v": device}


def pack(value):
    """`value` as bytes."""
    writer = _Writer()
    try:
        text = json.dumps(writer.tree(value, "the state")).encode()
    except RecursionError:
        raise BadArgument("the state is nested too deep, or holds itself") from None
    text += b" " * (-(len(text) + 16) % _align)
    return b"".join([_magic, struct.pack("<Q", len(text)), text] + writer.parts)


def unpack(data):
    """The value of pack's bytes."""
    if bytes(data[:8]) != _magic or len(data) < 16:
        raise Corrupt("the blob is not one of this package: it does not begin with TRCB1")
    length, = struct.unpack("<Q", data[8:16])
    if 16 + length > len(data):
        raise Corrupt("the blob ends before its description does")
    arrays = memoryview(data)[16 + length:]

    def cut(at, size):
        if at + size > len(arrays):
            raise Corrupt("the blob ends before its arrays do")
        return arrays[at:at + size]

    def read(node):
        if not isinstance(node, dict):
            return node
        if "f" in node:
            return float.fromhex(node["f"])
        if "d" in node:
            kind = collections.OrderedDict if node.get("o") else dict
            return kind((read(k), read(v)) for k, v in node["d"])
        if "l" in node:
            return [read(v) for v in node["l"]]
        if "t" in node:
            return tuple(read(v) for v in node["t"])
        if "b" in node:
            return bytes(cut(*node["b"]))
        if "n" in node:
            name, shape, at = node["n"]
            dtype = np.dtype(name)
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(cut(at, count * dtype.itemsize), dtype, count).reshape(shape).copy()
            return array[()] if node["g"] else array
        if "T" in node:
            return read_torch(node)
        raise Corrupt(f"the blob has a part of an unknown kind: {sorted(node)}")

    def read_torch(node):
        try:
            import torch
        except ImportError:
            raise BadArgument("this checkpoint holds torch tensors; install torch to restore its dense state (the tables need none)")
        name, shape, at, size = node["T"]
        flat = torch.frombuffer(bytearray(cut(at, size)), dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
        tensor = flat.view(getattr(torch, name)).reshape(shape)
        return torch.nn.Parameter(tensor) if node["p"] else tensor

    return read(json.loads(bytes(data[16:16 + length])))


def peek_step(path):
    """The step in the blob file at `path`, without its arrays; None where there is no such file or number."""
    try:
        with open(path, "rb") as file:
            head = file.read(16)
            if len(head) < 16 or head[:8] != _magic:
                return None
            pairs = json.loads(file.read(struct.unpack("<Q", head[8:])[0])).get("d", [])
    except (OSError, ValueError, AttributeError):
        return None
    return next((value for key, value in pairs if key == "step"), None)
