"""Reads .npy and safetensors files into lists of rows; with numpy where it is installed, to be sure that it agrees."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import array
import ast
import json
import struct

from harness import expect

try:
    import numpy
except ImportError:
    numpy = None

CODES = {"<f4": "f", "<i8": "q", "F32": "f", "I64": "q"}


def rows_of(data, code, shape):
    """The bytes of each row (of all columns): what is equal is equal bit for bit."""
    flat = array.array(code)
    flat.frombytes(data)
    count = 1
    for d in shape:
        count *= d
    expect(len(flat) == count, f"{len(flat)} values for shape {shape}")
    if code == "q":
        return flat.tolist()
    width = (count // shape[0] if shape[0] else 0) * 4
    return [data[i * width:(i + 1) * width] for i in range(shape[0])]


def npy(path):
    data = path.read_bytes()
    expect(data[:8] == b"\x93NUMPY\x01\x00", f"{path} is no npy file")
    length, = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + length].decode("latin1"))
    expect((10 + length) % 64 == 0 and not header["fortran_order"], f"{path}: {header}")
    body = data[10 + length:]
    if numpy:
        loaded = numpy.load(path)
        expect(loaded.shape == header["shape"] and loaded.tobytes() == body, f"{path}: numpy reads something else")
    return rows_of(body, CODES[header["descr"]], header["shape"])


def npy_folder(folder):
    return {f.name[:-len(".npy")]: npy(f) for f in folder.glob("*.npy")}


def safetensors(path):
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    out = {}
    for name, about in header.items():
        begin, end = about["data_offsets"]
        out[name] = rows_of(data[8 + length + begin:8 + length + end], CODES[about["dtype"]], about["shape"])
    return out


def floats(row):
    return list(struct.unpack(f"<{len(row) // 4}f", row))
