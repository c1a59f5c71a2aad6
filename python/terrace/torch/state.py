"""state.py - Tables as tensors, in TorchRec's names; a piece at a time.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

A table is `PREFIX.embedding_bags.TABLE.weight` (`embeddings` in an EmbeddingCollection), as in a TorchRec model's state_dict. Rows stream
through a buffer of a few MiB into tensors that are files, or into a safetensors file; so tables may be larger than memory.
"""
import json
import os
import struct
import tempfile

import numpy as np
import torch

from ..errors import BadArgument, Corrupt, NotFound

_chunk_bytes = 4 << 20
_element = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


class LoadReport:
    """What load_state_dict found. Printing it tells all."""

    def __init__(self):
        self.matched, self.missing, self.unexpected, self.mismatched, self.converted = [], [], [], [], []

    @property
    def ok(self):
        """Whether every table was found, in its shape."""
        return not self.missing and not self.mismatched

    def __str__(self):
        lines = [f"{len(self.matched)} matched"] + [f"  {m}" for m in self.matched]
        for title, names in (("missing (rows stay as they are)", self.missing), ("not of this model", self.unexpected),
                             ("in another shape (not loaded)", self.mismatched), ("of another type (converted)", self.converted)):
            if names:
                lines += [f"{len(names)} {title}"] + [f"  {n}" for n in names]
        return "\n".join(lines)

    def __repr__(self):
        return f"<LoadReport: {len(self.matched)} matched, {len(self.missing)} missing, {len(self.unexpected)} unexpected, " \
               f"{len(self.mismatched)} in another shape>"


def _collections(model):
    """(prefix, collection) for each in the model."""
    from .modules import _Collection
    found = [(name, m) for name, m in model.named_modules() if isinstance(m, _Collection)]
    if not found:
        raise BadArgument(f"{type(model).__name__} has no collection of terrace.torch")
    return [(name + "." if name else "", m) for name, m in found]


def _key(collection, table):
    return f"{collection._group}.{table}.weight"


def chunks(session, table):
    """(first row, float32 array) for consecutive parts of a table. The array is used again."""
    info = session.tables[table]
    count = max(1, min(info.rows, _chunk_bytes // (4 * info.dim)))
    buffer = np.empty((count, info.dim), np.float32)
    for begin in range(0, info.rows, count):
        part = buffer[:min(count, info.rows - begin)]
        yield begin, session.read_rows(table, np.arange(begin, begin + len(part)), part)


def _pieces(session, table, element):
    for _, part in chunks(session, table):
        yield torch.from_numpy(part).to(element).view(torch.uint8).numpy()


def state_dict(model, folder=None):
    """The model's state_dict with the tables in it, as a TorchRec model has it. With no batch in flight.

    Tables are tensors over files without a name in `folder` (default: beside the session's state), so they need disk, not memory.
    """
    result = {}
    for prefix, collection in _collections(model):
        session = collection.session
        session.recall()
        for table, info in session.tables.items():
            element = _element[info.dtype]  # what a row holds fits exactly
            with tempfile.TemporaryFile(dir=folder or session.state) as file:
                size = info.rows * info.dim * (4 if info.dtype == "f32" else 2)
                file.truncate(size)
                whole = torch.from_numpy(np.memmap(file, np.uint8, "r+", shape=(size, ))).view(element).reshape(info.rows, info.dim)
                for begin, part in chunks(session, table):
                    whole[begin:begin + len(part)] = torch.from_numpy(part)
            result[prefix + _key(collection, table)] = whole
    dense = torch.nn.Module.state_dict(model)
    marks = {prefix + "_extra_state" for prefix, _ in _collections(model)}
    result.update((k, v) for k, v in dense.items() if k not in marks)
    return result


def save_state_dict(model, path):
    """Writes the same to a safetensors file, a piece at a time. The file appears whole or not at all."""
    dense = torch.nn.Module.state_dict(model)
    marks = {prefix + "_extra_state" for prefix, _ in _collections(model)}
    names = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
             torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
    parts, header, at = [], {"__metadata__": {"format": "pt"}}, 0

    def add(name, kind, shape, size, pieces):
        nonlocal at
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        parts.append(pieces)
        at += size

    for prefix, collection in _collections(model):
        session = collection.session
        session.recall()
        for table, info in session.tables.items():
            element = _element[info.dtype]
            add(prefix + _key(collection, table), names[element], (info.rows, info.dim), info.rows * info.dim * (4 if info.dtype == "f32" else 2),
                _pieces(session, table, element))
    for name, value in dense.items():
        if name in marks:
            continue
        if not isinstance(value, torch.Tensor) or value.dtype not in names:
            raise BadArgument(f"'{name}' is not a tensor that safetensors can hold; store it with Session.checkpoint")
        flat = value.detach().cpu().contiguous().reshape(-1)
        data = flat.view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)
        add(name, names[value.dtype], value.shape, data.nbytes, iter([data]))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for pieces in parts:
                for piece in pieces:
                    file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _safetensors(path):
    """Names to tensors over the mapped file."""
    types = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32,
             "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
        if length > size - 8:
            raise Corrupt(f"'{path}' is no safetensors file: its header would end behind the file")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise Corrupt(f"'{path}' is no safetensors file: {error}")
    base, result = 8 + length, {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        if entry["dtype"] not in types:
            raise BadArgument(f"'{path}': '{name}' has type {entry['dtype']}, which is not known")
        if not 0 <= begin <= end <= size - base:
            raise Corrupt(f"'{path}': '{name}' lies outside the file")
        if begin == end:
            result[name] = torch.empty(entry["shape"], dtype=types[entry["dtype"]])
            continue
        raw = torch.from_numpy(np.memmap(path, np.uint8, "c", base + begin, (end - begin, )))
        try:
            result[name] = raw.view(types[entry["dtype"]]).reshape(entry["shape"])
        except RuntimeError:  # not aligned for its type: this one is copied
            result[name] = raw.clone().view(types[entry["dtype"]]).reshape(entry["shape"])
    return result


def _source(source):
    if isinstance(source, dict):
        return source
    path = os.fspath(source)
    if not os.path.exists(path):
        raise NotFound(f"no file '{path}'")
    if path.endswith(".safetensors"):
        return _safetensors(path)
    options = {"weights_only": True, "map_location": "cpu"}
    try:
        found = torch.load(path, mmap=True, **options)
    except (RuntimeError, TypeError):  # written in the old format, or by an old torch
        found = torch.load(path, **options)
    for key in ("state_dict", "model_state_dict", "model"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            return found[key]
    return found


def _shards(value):
    """(first row, tensor) of a tensor or of a sharded one's local shards."""
    local = getattr(value, "local_shards", None)
    if local is None:
        return [(0, value)]
    shards = []
    for shard in local():
        row, column = (list(shard.metadata.shard_offsets) + [0, 0])[:2]
        if column or shard.tensor.shape[1] != value.size()[1]:
            raise BadArgument("the tensor is sharded by columns; gather it first")
        shards.append((row, shard.tensor))
    return shards


def load_into(collection, found):
    """Sets the tables of a collection from `found`; keys are TorchRec's names, under any prefix."""
    report, session, used = LoadReport(), collection.session, set()
    session.recall()
    for table, info in session.tables.items():
        endings = [f"embedding_bags.{table}.weight", f"embeddings.{table}.weight", f"{table}.weight", table]
        keys = next((k for k in ([n for n in found if n == e or n.endswith("." + e)] for e in endings) if k), [])
        if not keys:
            report.missing.append(_key(collection, table))
            continue
        key = keys[0]
        value = found[key]
        shape = tuple(value.size()) if hasattr(value, "size") and callable(value.size) else tuple(np.shape(value))
        used.add(key)
        if len(keys) > 1:
            report.mismatched.append(f"{table}: {len(keys)} tensors have its name ({', '.join(keys)}); pass those of one collection")
            continue
        if shape != (info.rows, info.dim):
            report.mismatched.append(f"{key}: {list(shape)}, the table has [{info.rows}, {info.dim}]")
            continue
        count, done, kind = max(1, _chunk_bytes // (4 * info.dim)), 0, None
        for first, tensor in _shards(value):
            tensor = torch.as_tensor(tensor)
            kind = tensor.dtype
            for begin in range(0, tensor.shape[0], count):
                part = tensor[begin:begin + count].detach().to("cpu", torch.float32).contiguous()
                session.write_rows(table, np.arange(first + begin, first + begin + len(part)), part)
                done += len(part)
        if kind is not None and kind is not _element[info.dtype]:
            report.converted.append(f"{key} from {kind} to {info.dtype}")
        report.matched.append(key if done == info.rows else f"{key} ({done} of {info.rows} rows)")
    report.unexpected = [k for k in found if k not in used and not k.endswith("_extra_state")]
    return report


def load_state_dict(model, source, *, dense=True):
    """Loads tables, and with `dense` the other parameters, from a TorchRec model's state_dict, a .safetensors file or a file of torch.save.

    Optimizer state of the rows stays as it is: load_optimizer_state sets it. Returns a LoadReport; what is missing or has another shape does not stop the rest.
    """
    found, total, used = _source(source), LoadReport(), set()
    for prefix, collection in _collections(model):
        own = {k: v for k, v in found.items() if k.startswith(prefix)} if prefix else found
        report = load_into(collection, own if any(k.startswith(prefix) for k in found) else found)
        total.matched += report.matched
        total.missing += [prefix + k for k in report.missing]
        total.mismatched += report.mismatched
        total.converted += report.converted
        used.update(k.split(" (")[0] for k in report.matched)
        used.update(k.split(": ")[0] for k in report.mismatched)
    marks = {prefix + "_extra_state" for prefix, _ in _collections(model)}
    own = {k: v for k, v in torch.nn.Module.state_dict(model, keep_vars=True).items() if k not in marks} if dense else {}
    for name, parameter in own.items():
        if name not in found:
            total.missing.append(name)
        elif tuple(found[name].shape) != tuple(parameter.shape):
            total.mismatched.append(f"{name}: {list(found[name].shape)}, the parameter has {list(parameter.shape)}")
        else:
            with torch.no_grad():
                parameter.copy_(found[name])
            total.matched.append(name)
        used.add(name)
    total.unexpected = [k for k in found if k not in used and not k.endswith("_extra_state")]
    return total
