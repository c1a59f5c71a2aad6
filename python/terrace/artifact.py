"""artifact.py - What a compiled model says about itself.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Reads the plan (docs/artifact.md) out of a library made by `terrace compile --emit=lib`: tables with their optimizers, features with
poolings. The C ABI describes features only.
"""
import ctypes
import json
import os
from typing import NamedTuple, Optional

from . import _abi
from .errors import Mismatch, NotFound


class Table(NamedTuple):
    name: str
    rows: int
    dim: int
    hashed: bool  #: any 64-bit id is valid
    optimizer: dict
    dtype: str = "f32"  #: of the rows at rest; what is read and written is float32

    #: floats of each optimizer state of a row (docs/numerics.md)
    @property
    def state_widths(self):
        dim = self.dim
        return {"sgd": [], "momentum_sgd": [dim], "adagrad": [dim], "rowwise_adagrad": [1], "adam": [dim, dim], "partial_rowwise_adam": [dim, 1],
                "lamb": [dim, dim], "ftrl": [dim, dim]}[self.optimizer["kind"]]


class Feature(NamedTuple):
    name: str
    column: str
    weights: Optional[str]  #: column of the weights; None: not weighted
    pooling: str
    table: str
    rows: int  #: of the table
    dim: int
    max_ids: int
    hashed: bool
    strings: bool  #: the data holds strings, hashed by terrace.hash_string
    overflow: str


class Plan:
    """The parts of a plan that a trainer needs."""

    def __init__(self, text):
        raw = json.loads(text)
        self.model = raw["model"]
        self.head = raw["head"]["kind"] if raw.get("head") else None
        self.drops_bad_ids = raw["on_bad_id"] == "drop"
        self.tables = {
            t["name"]: Table(t["name"], t["rows"], t["dim"], t["ids"] == "hash", t["optimizer"], t.get("dtype", "f32"))
            for t in raw["tables"]
        }
        names = list(self.tables)
        self.features = []
        for f in raw["features"]:
            table = self.tables[names[f["table"]]]
            self.features.append(
                Feature(f["name"], f["column"], f["weights"], f["pooling"], table.name, table.rows, table.dim, f["max_ids"], table.hashed,
                        f["type"] == "string", f["overflow"]))


_versions = {}  # path -> identities of the files that were loaded from it


def find(path):
    """An absolute name of the library, by which the loader does not mix it up with an older one of that name in this process.

    dlopen compares names before it looks at files, so a model that was compiled again would be the old one. Another spelling of the path helps.
    """
    path = os.path.abspath(os.fspath(path))
    try:
        status = os.stat(path)
    except OSError:
        raise NotFound(f"no artifact '{path}'; make one with terrace.compile or `terrace compile MODEL.yaml --emit=lib`")
    seen = _versions.setdefault(path, [])
    identity = (status.st_dev, status.st_ino, status.st_mtime_ns)
    if identity not in seen:
        seen.append(identity)
    folder, name = os.path.split(path)
    return os.path.join(folder, "./" * seen.index(identity) + name)


def read_plan(path):
    """The plan of the library at `path`, as find() names it."""
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise Mismatch(f"cannot load the artifact '{path}': {error}; it must be a library made by --emit=lib")
    try:
        artifact = _abi.Artifact.in_dll(library, "terrace_artifact")
    except ValueError:
        raise Mismatch(f"'{path}' is not a Terrace artifact: it has no symbol 'terrace_artifact'; make it with --emit=lib")
    if artifact.magic != _abi.ARTIFACT_MAGIC or artifact.abi != _abi.ARTIFACT_ABI:
        raise Mismatch(f"'{path}' was made for ABI {artifact.abi}; this package has {_abi.ARTIFACT_ABI}; compile the model again")
    return Plan(ctypes.string_at(artifact.plan, artifact.plan_bytes))
