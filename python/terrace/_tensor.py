"""_tensor.py - Other packages' arrays as pointers, without a copy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

numpy arrays, torch tensors and everything with __dlpack__ are looked at in place: address, shape, strides and type. A DLPack capsule is only
peeked at, never consumed; the view keeps it, and so the memory, alive for as long as the call needs it.
"""
import ctypes
import operator
from ctypes import c_char_p, c_int64, c_void_p, py_object

import numpy as np

from . import _abi
from .errors import BadArgument

_kinds = {"i": _abi.INT, "u": _abi.UINT, "f": _abi.FLOAT}
_devices = {1: "the CPU", 2: "CUDA device", 3: "pinned host memory", 4: "OpenCL device", 7: "Vulkan device", 8: "Metal device",
            10: "ROCm device", 13: "CUDA managed memory", 14: "oneAPI device"}
# Host memory under another name is as good as the CPU's own.
_host = {1, 3, 11, 13}

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [py_object, c_char_p], c_void_p
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = [py_object, c_char_p], ctypes.c_int


class View:
    """Where an array lies. strides count elements; None: compact, row-major."""

    __slots__ = ("address", "shape", "strides", "code", "bits", "keep")

    def __init__(self, address, shape, strides, code, bits, keep):
        self.address, self.shape, self.strides = address, shape, strides
        self.code, self.bits, self.keep = code, bits, keep

    @property
    def compact(self):
        if self.strides is None:
            return True
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size > 1 and stride != expected:
                return False
            expected *= max(size, 1)
        return True

    def type_name(self):
        return {_abi.INT: "int", _abi.UINT: "uint", _abi.FLOAT: "float", _abi.BFLOAT: "bfloat"}.get(self.code, f"type {self.code} of ") + str(self.bits)


def _refuse_device(what, device, number):
    name = _devices.get(device, f"device type {device}")
    name = name if device == 3 else f"{name} {number}"
    raise BadArgument(f"{what} is on {name}; this artifact runs on the CPU: pass .cpu(), or compute the dense part there")


def _of_numpy(array, what, writable):
    interface = array.__array_interface__
    kind = array.dtype.kind
    if kind not in _kinds or not array.dtype.isnative:
        raise BadArgument(f"{what} has dtype {array.dtype}; integers or floats in native byte order are needed")
    address, read_only = interface["data"]
    if writable and read_only:
        raise BadArgument(f"{what} is read-only; outputs are written to it")
    strides, size = None, array.itemsize
    if interface["strides"] is not None:
        if any(s % size for s in array.strides):
            raise BadArgument(f"{what} has strides {array.strides} that are no multiple of its items' {size} bytes")
        strides = tuple(s // size for s in array.strides)
    return View(address, array.shape, strides, _kinds[kind], size * 8, array)


_torch_types = {}  # dtype -> (code, bits), as they are met: this file does not import torch


def _torch_type(tensor, what):
    name = str(tensor.dtype)[6:]  # "torch.float32"
    kind, bits = name.rstrip("0123456789"), name.lstrip("abcdefghijklmnopqrstuvwxyz_")
    codes = {"float": _abi.FLOAT, "bfloat": _abi.BFLOAT, "int": _abi.INT, "uint": _abi.UINT}
    if kind not in codes or not bits:
        raise BadArgument(f"{what} has dtype {tensor.dtype}; integers or floats are needed: convert with .to()")
    return _torch_types.setdefault(tensor.dtype, (codes[kind], int(bits)))


def _of_torch(tensor, what):
    # A step has a hundred of these and more.
    if not tensor.is_cpu:
        place = "a meta device, without data" if tensor.device.type == "meta" else str(tensor.device)
        raise BadArgument(f"{what} is on {place}; this artifact runs on the CPU: pass .cpu(), or compute the dense part there")
    code, bits = _torch_types.get(tensor.dtype) or _torch_type(tensor, what)
    try:
        return View(tensor.data_ptr(), tensor.shape, None if tensor.is_contiguous() else tensor.stride(), code, bits, tensor)
    except RuntimeError as error:  # sparse, or without storage
        raise BadArgument(f"{what} is a {tensor.layout} tensor whose elements do not lie in memory one by one; pass a dense one") from error


def _of_dlpack(array, what):
    if hasattr(array, "__dlpack_device__"):
        device, number = array.__dlpack_device__()
        if int(device) not in _host:
            _refuse_device(what, int(device), number)
    capsule = array.__dlpack__()
    if not _is_valid(capsule, b"dltensor"):
        raise BadArgument(f"{what}: its __dlpack__ gave no capsule named 'dltensor'")
    tensor = ctypes.cast(_pointer(capsule, b"dltensor"), ctypes.POINTER(_abi.DLTensor)).contents
    if tensor.device_type not in _host:
        _refuse_device(what, tensor.device_type, tensor.device_id)
    if tensor.lanes != 1:
        raise BadArgument(f"{what} has vector elements; plain integers or floats are needed")
    shape = tuple((c_int64 * tensor.ndim).from_address(tensor.shape)) if tensor.ndim else ()
    strides = tuple((c_int64 * tensor.ndim).from_address(tensor.strides)) if tensor.ndim and tensor.strides else None
    # The array itself as well: the capsule's owner may only borrow.
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, tensor.code, tensor.bits, (capsule, array))


def is_array(given):
    return hasattr(given, "__dlpack__") or isinstance(given, np.ndarray)


def view(array, what, writable=False):
    """`array` in place, or BadArgument that names `what`."""
    if isinstance(array, np.ndarray):
        return _of_numpy(array, what, writable)
    if hasattr(array, "data_ptr") and hasattr(array, "is_contiguous"):
        return _of_torch(array, what)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array, what)
    raise BadArgument(f"{what} is a {type(array).__name__}; a numpy array or a tensor with __dlpack__ is needed")


def integers(values, what, dtype=np.int64):
    """`values` as a contiguous array of whole numbers; BadArgument for anything that would have to be rounded or cut."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadArgument(f"{what}: {error}") from None
    if not array.size and array.dtype.kind == "f":  # an empty list
        array = array.astype(dtype)
    if array.dtype.kind not in "iu":
        raise BadArgument(f"{what} has dtype {array.dtype}; whole numbers are needed")
    limits = np.iinfo(dtype)
    if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        worst = array.max() if int(array.max()) > limits.max else array.min()
        raise BadArgument(f"{what} holds {worst}, which {np.dtype(dtype)} does not")
    return np.ascontiguousarray(array, dtype)


def integer(value, what, low=0, high=2**63 - 1):
    """`value` as an int within bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise BadArgument(f"{what} is {value!r}; a whole number, {low} .. {high}, is needed")
    return number


def ids(values, what):
    """Ids or offsets: one dimension, int32 or int64, contiguous. Lists and other layouts are copied, as submit copies anyway."""
    if isinstance(values, (list, tuple, range)):
        values = integers(values, what)
    seen = view(values, what)
    if seen.code != _abi.INT or seen.bits not in (32, 64):
        raise BadArgument(f"{what} has dtype {seen.type_name()}; int32 or int64 is needed")
    if seen.strides is None and len(seen.shape) == 1:
        return seen
    return _flat(values, seen, what)


def floats(values, what):
    if isinstance(values, (list, tuple)):
        try:
            values = np.asarray(values, dtype=np.float32)
        except (ValueError, TypeError) as error:
            raise BadArgument(f"{what}: {error}") from None
    seen = view(values, what)
    if seen.code != _abi.FLOAT or seen.bits != 32:
        raise BadArgument(f"{what} has dtype {seen.type_name()}; float32 is needed")
    return _flat(values, seen, what)


def _flat(values, seen, what):
    if len(seen.shape) != 1:
        raise BadArgument(f"{what} has shape {list(seen.shape)}; one dimension is needed")
    if seen.compact:
        return seen
    if isinstance(values, np.ndarray):
        return view(np.ascontiguousarray(values), what)
    if hasattr(values, "contiguous"):
        return view(values.contiguous(), what)
    raise BadArgument(f"{what} is not contiguous")


class Pointers:
    """DLTensors of one call, and what they point to."""

    def __len__(self):
        return len(self.tensors)

    def __init__(self, views):
        count = len(views)
        self.views = views  # keeps the memory
        self.tensors = (_abi.DLTensor * count)()
        self.pointers = (ctypes.POINTER(_abi.DLTensor) * max(1, count))()
        numbers = []
        for seen in views:
            numbers += seen.shape
            numbers += seen.strides or ()
        self.numbers = (c_int64 * max(1, len(numbers)))(*numbers)
        numbers_at, tensors_at = ctypes.addressof(self.numbers), ctypes.addressof(self.tensors)
        # The array of pointers, by address: as a pointer object each would cost more than all the rest.
        addresses = (c_void_p * max(1, count)).from_buffer(self.pointers)
        size = ctypes.sizeof(_abi.DLTensor)
        for i, (seen, tensor) in enumerate(zip(views, self.tensors)):
            tensor.data = seen.address
            tensor.device_type = _abi.CPU
            tensor.ndim = ndim = len(seen.shape)
            tensor.code, tensor.bits, tensor.lanes = seen.code, seen.bits, 1
            tensor.shape = numbers_at
            numbers_at += ndim * 8
            if seen.strides is not None:
                tensor.strides = numbers_at
                numbers_at += ndim * 8
            addresses[i] = tensors_at + i * size


class Pointer:
    """The DLTensor of one array of at most two dimensions, used again by each call: most of what a call would cost is making one."""

    def __init__(self):
        self._tensor, self._numbers = _abi.DLTensor(device_type=_abi.CPU, lanes=1), (c_int64 * 4)()
        self._shape_at = ctypes.addressof(self._numbers)
        self._at = (c_void_p * 1)(ctypes.addressof(self._tensor))
        self.pointers = ctypes.addressof(self._at)

    def __len__(self):
        return 1

    def to(self, seen):
        """At a view of at most two dimensions; the caller keeps it while the call lasts."""
        tensor, numbers, ndim = self._tensor, self._numbers, len(seen.shape)
        tensor.data, tensor.ndim, tensor.code, tensor.bits = seen.address, ndim, seen.code, seen.bits
        numbers[0:ndim] = seen.shape
        tensor.shape, tensor.strides = self._shape_at, None
        if seen.strides is not None:
            numbers[2:2 + ndim] = seen.strides
            tensor.strides = self._shape_at + 16
        return self
