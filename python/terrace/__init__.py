"""Terrace: train embedding tables that are larger than memory, from Python.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    import terrace
    path = terrace.compile({"model": "m", "features": [{"name": "user", "table": {"rows": 1000, "dim": 8}}]})
    with terrace.load(path) as session:
        ticket = session.submit({"user": (values, offsets)})
        outputs = session.forward(ticket)                      # numpy arrays, or your own tensors
        session.backward(ticket, gradients)                    # the rows are updated here

Needs numpy only. terrace.torch has modules for PyTorch; it is imported by itself.
"""
from .compiler import compile, find_compiler  # noqa: A004 - the verb's name
from .errors import (BadArgument, BadInput, Cancelled, CompileError, Corrupt, DeviceError, Error, Forked, Locked, Mismatch, NoMemory,
                     NoSpace, NotFound, OutOfOrder, Poisoned, Unsupported, WouldBlock)
from .session import Session, checkpoints, load

__version__ = "0.1.0"


def hash_string(text):
    """The 64-bit id of a string feature's value."""
    from . import _abi
    data = text.encode() if isinstance(text, str) else bytes(text)
    return _abi.library().trc_hash_string(data, len(data))


__all__ = [
    "BadArgument", "BadInput", "Cancelled", "CompileError", "Corrupt", "DeviceError", "Error", "Forked", "Locked", "Mismatch", "NoMemory",
    "NoSpace", "NotFound", "OutOfOrder", "Poisoned", "Session", "Unsupported", "WouldBlock", "checkpoints", "compile", "find_compiler",
    "hash_string", "load"
]
