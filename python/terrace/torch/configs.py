"""configs.py - TorchRec's configurations as a spec.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Looks at attributes, not classes, so that TorchRec's own configs and those below are the same to it. What a spec cannot say is a note: the
collections keep it in `notes`, import-torchrec lists it.
"""
import dataclasses
import functools
import math
import re
from typing import Callable, List, NamedTuple, Optional

from ..errors import BadArgument, Unsupported


@dataclasses.dataclass
class EmbeddingBagConfig:
    """As torchrec.modules.embedding_configs.EmbeddingBagConfig. pooling: a word of the spec or TorchRec's PoolingType."""

    num_embeddings: int
    embedding_dim: int
    name: str = ""
    feature_names: List[str] = dataclasses.field(default_factory=list)
    pooling: object = "SUM"
    data_type: object = "FP32"
    weight_init_min: Optional[float] = None
    weight_init_max: Optional[float] = None
    init_fn: Optional[Callable] = None


@dataclasses.dataclass
class EmbeddingConfig:
    """As torchrec.modules.embedding_configs.EmbeddingConfig: one output per id."""

    num_embeddings: int
    embedding_dim: int
    name: str = ""
    feature_names: List[str] = dataclasses.field(default_factory=list)
    data_type: object = "FP32"
    weight_init_min: Optional[float] = None
    weight_init_max: Optional[float] = None
    init_fn: Optional[Callable] = None


class Output(NamedTuple):
    """One feature of the spec: which input it reads, and the name of what comes out."""

    name: str  # in TorchRec's terms: FEATURE, or FEATURE@TABLE where several tables read it
    feature: str  # key of the KeyedJaggedTensor
    spec: str  # name in the spec


class Converted(NamedTuple):
    tables: list  # of the spec
    features: list
    outputs: List[Output]
    notes: List[str]  # what is not carried over


_types = {"FP32": "f32", "FP16": "f16", "BF16": "bf16", "INT8": "int8", "INT4": "int4"}
_poolings = {"SUM": "sum", "MEAN": "mean", "NONE": "none", "WEIGHTED_MEAN": "weighted_mean", "SQRTN": "sqrtn", "MAX": "max"}
# TorchRec's, FBGEMM's and torch's names of what the spec has; classes go by their name.
_optimizers = {
    "sgd": "sgd", "exactsgd": "sgd", "adagrad": "adagrad", "exactadagrad": "adagrad", "rowwiseadagrad": "rowwise_adagrad",
    "exactrowwiseadagrad": "rowwise_adagrad", "adam": "adam", "sparseadam": "adam", "adamw": "adam", "momentumsgd": "sgd",
    "partialrowwiseadam": "partial_rowwise_adam", "lamb": "lamb", "ftrl": "ftrl"
}
_hypers = ("lr", "eps", "beta1", "beta2", "beta", "l1", "l2", "momentum", "weight_decay", "weight_decay_mode", "clip_norm")
# Word of a class -> what it does that a spec must say.
_decoupled = {"adamw": 0.01, "partialrowwiseadam": 0}
_hyper = {"learning_rate": "lr"}


def _word(value):
    """A name of an enumeration, or the text itself."""
    return str(getattr(value, "name", value)).upper().split(".")[-1]


def spec_name(text, taken):
    """`text` as a name that the spec takes, and that is not taken yet."""
    name = re.sub(r"[^A-Za-z0-9_.-]", ".", text).strip(".-") or "x"
    base, count = name, 1
    while name in taken:
        count += 1
        name = f"{base}.{count}"
    taken.add(name)
    return name


def optimizer_spec(optimizer, **hyper):
    """A spec's optimizer from a name, a dict, or the class of an optimizer of torch, TorchRec or FBGEMM with its keywords."""
    if isinstance(optimizer, dict):
        kind, hyper = optimizer.get("kind"), {**{k: v for k, v in optimizer.items() if k != "kind"}, **hyper}
    else:
        kind = optimizer
    words = isinstance(kind, str)
    if not words:
        kind = getattr(kind, "name", None) or getattr(kind, "__name__", type(kind).__name__)
    word = re.sub(r"[^a-z]", "", str(kind).lower())
    known = _optimizers.get(word)
    if known is None:
        raise BadArgument(f"optimizer {kind!r} is not known; {', '.join(dict.fromkeys(_optimizers.values()))} are")
    result = {"kind": known}
    # torch's AdamW, and FBGEMM's class of that name; the spec's own word means the spec's own default.
    if word in _decoupled and not (words and word == "partialrowwiseadam"):
        decay = hyper.get("weight_decay", _decoupled[word])
        if decay:
            result.update(weight_decay=decay, weight_decay_mode="decoupled")
    for key, value in hyper.items():
        key = _hyper.get(key, key)
        if key == "betas":
            result["beta1"], result["beta2"] = value
        elif key in _hypers:
            result[key] = value
        elif value:
            raise Unsupported(f"optimizer {known} has no {key}; betas, {', '.join(_hypers)} are known")
    return result


def _init(config, notes):
    """The spec's init. TorchRec draws from +-1/sqrt(rows) where nothing is said."""
    rows = config.num_embeddings
    low, high = getattr(config, "weight_init_min", None), getattr(config, "weight_init_max", None)
    bound = math.sqrt(1 / max(rows, 1))
    kind = {"kind": "uniform", "low": -bound if low is None else low, "high": bound if high is None else high}
    function = getattr(config, "init_fn", None)
    if function is None:
        return kind
    keywords = dict(function.keywords) if isinstance(function, functools.partial) else {}
    arguments = list(function.args) if isinstance(function, functools.partial) else []
    name = getattr(getattr(function, "func", function), "__name__", "")
    if name == "uniform_" and isinstance(function, functools.partial) and not arguments:
        return {"kind": "uniform", "low": keywords.get("a", 0.0), "high": keywords.get("b", 1.0)}
    if name == "normal_" and not arguments:
        return {"kind": "normal", "mean": keywords.get("mean", 0.0), "std": keywords.get("std", 1.0)}
    if name in ("zeros_", "ones_"):
        return {"kind": "constant", "value": float(name == "ones_")}
    if name == "constant_" and "val" in keywords:
        return {"kind": "constant", "value": keywords["val"]}
    notes.append(f"table '{config.name}': init_fn is a function of its own; rows start uniform in {kind['low']:.3g} .. {kind['high']:.3g} "
                 "instead (write_rows or load_state_dict sets them)")
    return kind


def convert(configs, *, weighted=False, pooled=True, optimizer="rowwise_adagrad", max_ids=64):
    """Tables and features of a spec from a list of configs. optimizer, max_ids: one for all, or a dict by table, by feature."""
    configs, notes = list(configs), []
    if not configs:
        raise BadArgument("tables is empty")
    taken_tables, taken_features = set(), set()
    tables, features, outputs = [], [], []
    readers = {}
    for config in configs:
        for feature in config.feature_names or [config.name]:
            readers.setdefault(feature, []).append(config.name)
    for config in configs:
        if config.name in taken_tables:
            raise BadArgument(f"two tables have the name '{config.name}'")
        if spec_name(config.name, set()) != config.name:
            raise BadArgument(f"table '{config.name}': names have letters, digits, '_', '-' and '.'")
        taken_tables.add(config.name)
        if getattr(config, "use_virtual_table", False):
            notes.append(f"table '{config.name}': virtual (dynamic) tables are not there yet; its ids are taken as rows 0 .. "
                         f"{config.num_embeddings - 1}")
        word = _word(getattr(config, "data_type", "FP32"))
        if word not in _types:
            notes.append(f"table '{config.name}': data type {word} has no counterpart; f32 is taken")
        chosen = optimizer
        if isinstance(optimizer, dict) and "kind" not in optimizer:
            if config.name not in optimizer:
                raise BadArgument(f"optimizer has no entry for table '{config.name}'")
            chosen = optimizer[config.name]
        table = {"name": config.name, "rows": int(config.num_embeddings), "dim": int(config.embedding_dim), "init": _init(config, notes),
                 "optimizer": optimizer_spec(chosen)}
        if _types.get(word, "f32") != "f32":
            table["dtype"] = _types[word]
            if word.startswith("INT"):
                notes.append(f"table '{config.name}': {word} tables are for serving only: train in f32, f16 or bf16, then compile with --serve and serve.dtype")
        tables.append(table)
        pooling = _poolings.get(_word(getattr(config, "pooling", "SUM")) if pooled else "NONE")
        if pooling is None:
            raise BadArgument(f"table '{config.name}': pooling {config.pooling!r}; {', '.join(_poolings)} are known")
        if pooled and pooling == "none":
            raise BadArgument(f"table '{config.name}': pooling NONE is for EmbeddingCollection")
        for feature in config.feature_names or [config.name]:
            shared = len(readers[feature]) > 1
            name = f"{feature}@{config.name}" if shared else feature
            bound = max_ids.get(feature, 64) if isinstance(max_ids, dict) else max_ids
            made = {"name": spec_name(name, taken_features), "table": config.name, "pooling": pooling, "max_ids": int(bound)}
            if weighted or pooling == "weighted_mean":
                made["weights"] = spec_name(f"{feature}.weight", set())
            if spec_name(feature, set()) != made["name"]:
                made["column"] = spec_name(feature, set())
            features.append(made)
            outputs.append(Output(name, feature, made["name"]))
    return Converted(tables, features, outputs, notes)
