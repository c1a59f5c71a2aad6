"""_abi.py - The C ABI as ctypes sees it, and where its library is found.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Mirrors include/terrace-rt/. Nothing is built against any other package, so one copy serves every version of torch. ctypes gives
the interpreter lock back during each call.
"""
import ctypes
import os
import pathlib
import threading
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from ctypes import c_void_p

from . import errors

OK, WOULD_BLOCK, BAD_ARGUMENT, BAD_INPUT, FORKED = 0, 1, 2, 3, 15
NOT_STORED = 9, 10, 11  # IO, NO_SPACE, NO_MEMORY: a close that can be called again
MODES = {"train": 0, "eval": 1, "serve": 2}
OPEN_FRESH, OPEN_WARM = 1, 2
ARTIFACT_MAGIC, ARTIFACT_ABI = 0x31435254, 4

FORWARD_ONLY = 1  # of trc_batch_flags
CPU = 1  # DLDeviceType
INT, UINT, FLOAT, BFLOAT = 0, 1, 2, 4  # DLDataTypeCode


class ErrorStruct(Structure):
    _fields_ = [("struct_size", c_uint32), ("status", c_int32), ("sample", c_int64), ("position", c_int64), ("value", c_int64),
                ("feature", c_char * 128), ("message", c_char * 1024)]


class DLTensor(Structure):
    """DLPack's, with its inner structs spread out and pointers as addresses, which ctypes sets faster."""

    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", c_void_p), ("strides", c_void_p), ("byte_offset", c_uint64)]


LogFunction = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class OpenOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("mode", c_int32), ("artifact_path", c_char_p), ("artifact", c_void_p),
                ("state_dir", c_char_p), ("flags", c_uint32), ("threads", c_uint32), ("from_", c_char_p), ("init_from", c_char_p),
                ("cpu", c_char_p), ("log", LogFunction), ("log_user", c_void_p)]


class FeatureInfo(Structure):
    _fields_ = [("name", c_char_p), ("column", c_char_p), ("weights", c_char_p), ("pooling", c_char_p), ("table", c_char_p),
                ("table_rows", c_int64), ("dim", c_int64), ("max_ids", c_int64), ("ids", c_int32), ("strings", c_int32)]


class ModelInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("feature_count", c_uint32), ("features", POINTER(FeatureInfo)), ("model", c_char_p),
                ("hash", c_char_p), ("head", c_char_p), ("batch", c_int64), ("max_ids", c_int64), ("lookahead", c_int64),
                ("step", c_int64), ("samples", c_int64), ("parameters", c_int64)]


class Bags(Structure):
    _fields_ = [("values", c_void_p), ("offsets", c_void_p), ("weights", c_void_p), ("value_count", c_int64), ("value_bits", c_int32),
                ("offset_bits", c_int32)]


class Batch(Structure):
    _fields_ = [("struct_size", c_uint32), ("feature_count", c_uint32), ("features", POINTER(Bags)), ("samples", c_int64),
                ("labels", c_void_p), ("flags", c_uint32), ("reserved", c_uint32)]


class KeyedBatch(Structure):
    _fields_ = [("struct_size", c_uint32), ("key_count", c_uint32), ("keys", c_void_p), ("values", c_void_p), ("offsets", c_void_p),
                ("weights", c_void_p), ("value_count", c_int64), ("value_bits", c_int32), ("offset_bits", c_int32), ("samples", c_int64),
                ("labels", c_void_p), ("flags", c_uint32), ("reserved", c_uint32)]


class BackwardOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("grad_scale", c_float), ("weight_gradients", c_void_p)]


class Artifact(Structure):
    _fields_ = [("magic", c_uint32), ("abi", c_uint32), ("plan_bytes", c_uint64), ("plan", c_void_p), ("kernel_count", c_uint64),
                ("kernels", c_void_p)]


_signatures = {
    "trc_open": [POINTER(OpenOptions), POINTER(c_void_p)],
    "trc_close": [c_void_p],
    "trc_discard": [c_void_p],
    "trc_describe": [c_void_p, POINTER(ModelInfo)],
    "trc_submit": [c_void_p, POINTER(Batch), POINTER(c_uint64)],
    "trc_submit_keyed": [c_void_p, POINTER(KeyedBatch), POINTER(c_uint64)],
    "trc_forward": [c_void_p, c_uint64, c_void_p, c_uint32],
    "trc_backward": [c_void_p, c_uint64, c_void_p, c_uint32, POINTER(BackwardOptions)],
    "trc_release": [c_void_p, c_uint64],
    "trc_set_lr": [c_void_p, c_double],
    "trc_read_rows": [c_void_p, c_char_p, c_void_p, c_int64, c_void_p],
    "trc_write_rows": [c_void_p, c_char_p, c_void_p, c_int64, c_void_p],
    "trc_read_state": [c_void_p, c_char_p, c_int32, c_void_p, c_int64, c_void_p],
    "trc_write_state": [c_void_p, c_char_p, c_int32, c_void_p, c_int64, c_void_p],
    "trc_checkpoint": [c_void_p, c_void_p, c_uint64, c_uint32],
    "trc_checkpoint_begin": [c_void_p, c_void_p, c_uint64, c_uint32],
    "trc_checkpoint_wait": [c_void_p, c_int32],
    "trc_get_blob": [c_void_p, c_void_p, POINTER(c_uint64)],
    "trc_stats": [c_void_p, POINTER(c_char_p)],
}


def build_folders():
    """Where a build of Terrace may lie: TERRACE_BUILD, then that of the checkout which this file is part of."""
    named = os.environ.get("TERRACE_BUILD")
    if named:
        yield pathlib.Path(named)
    root = pathlib.Path(__file__).resolve().parents[2]
    if (root / "include" / "terrace-rt" / "session.h").exists():
        yield root / "build"
        yield root / "build-runtime"


def _candidates():
    named = os.environ.get("TERRACE_RT")
    if named:
        yield pathlib.Path(named)
        return  # what the user names is taken, or an error
    yield pathlib.Path(__file__).resolve().parent / "lib" / "libterrace-rt.so"
    for build in build_folders():
        yield build / "lib" / "libterrace-rt.so"


def _open_library():
    tried = []
    for path in _candidates():
        tried.append(str(path))
        if path.exists():
            return ctypes.CDLL(str(path)), str(path)
    try:
        return ctypes.CDLL("libterrace-rt.so"), "libterrace-rt.so"
    except OSError:
        raise errors.NotFound("the runtime library libterrace-rt.so was not found (looked at " + ", ".join(tried) +
                              " and the loader's path); install the wheel of `tools/dev wheel`, or name the library in TERRACE_RT")


_lock = threading.Lock()
_library = None
library_path = None


def library():
    """The runtime, loaded once."""
    global _library, library_path
    with _lock:
        if _library is None:
            loaded, path = _open_library()
            for name, arguments in _signatures.items():
                function = getattr(loaded, name, None)
                if function is None:
                    raise errors.Mismatch(f"{path} has no function {name}; it is of an older Terrace than this package")
                function.argtypes = arguments + [POINTER(ErrorStruct)]
                function.restype = c_int32
            loaded.trc_cancel.argtypes, loaded.trc_cancel.restype = [c_void_p], c_int32
            loaded.trc_hash_string.argtypes, loaded.trc_hash_string.restype = [c_char_p, c_uint64], c_int64
            _library, library_path = loaded, path
    return _library


_threads = threading.local()


def error_struct():
    """This thread's error struct, ready for a call."""
    struct = getattr(_threads, "error", None)
    if struct is None:
        struct = _threads.error = ErrorStruct()
        struct.struct_size = ctypes.sizeof(ErrorStruct)
    return struct


def raise_error(status, struct):
    def known(number):
        return None if number == -1 else number

    feature = struct.feature.decode("utf-8", "replace") or None
    # A negative id is a value like any other; -1 means "none" only where no place is given.
    value = struct.value if struct.sample != -1 or struct.position != -1 else known(struct.value)
    message = struct.message.decode("utf-8", "replace")
    if status == FORKED:
        message += " (in a DataLoader worker: load and collate there, submit in the main process)"
    raise errors.of_status(status, message, feature=feature, sample=known(struct.sample), position=known(struct.position), value=value)
