"""importer.py - Writes the spec of a torch model's embedding collections: `terrace import-torchrec module.py:make_model`.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Calls the function, walks the model's modules, and takes TorchRec's collections by their configs, nn.EmbeddingBag and nn.Embedding by their
attributes. Values are not read: build the model on the meta device where it is large. What a spec cannot say is listed, in the file too.
"""
import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import sys

from . import compiler
from .errors import BadArgument, Error, NotFound
from .torch import configs


def load_function(where):
    """The function named by FILE.py:NAME or MODULE:NAME."""
    file, colon, name = where.rpartition(":")
    if not colon or not file or not name:
        raise BadArgument(f"'{where}' does not name a function; write FILE.py:FUNCTION or MODULE:FUNCTION")
    if file.endswith(".py"):
        if not os.path.exists(file):
            raise NotFound(f"no file '{file}'")
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
        described = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(file))[0], file)
        module = importlib.util.module_from_spec(described)
        sys.modules[described.name] = module
        described.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(file)
    found = getattr(module, name, None)
    if found is None:
        raise NotFound(f"'{file}' has no '{name}'")
    return found


class _Plain:
    """The config of an nn.EmbeddingBag or nn.Embedding; its name is its place in the model."""

    def __init__(self, path, module, notes):
        self.name = configs.spec_name(path, set())
        self.num_embeddings, self.embedding_dim = module.num_embeddings, module.embedding_dim
        self.feature_names = [self.name]
        self.pooling = getattr(module, "mode", "NONE")
        self.data_type = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16"}.get(str(module.weight.dtype)[6:], str(module.weight.dtype))
        self.init_fn = self.weight_init_min = self.weight_init_max = None
        notes.append(f"'{path}': the input's name is not known to the module; the feature is called '{self.name}'")
        notes.append(f"'{path}': torch starts its rows normal; here they start uniform within 1 / sqrt(rows)")
        if module.padding_idx is not None:
            notes.append(f"'{path}': padding_idx {module.padding_idx} is not carried over; leave such ids out of the bags")
        if module.max_norm is not None:
            notes.append(f"'{path}': max_norm {module.max_norm} is not carried over; rows are not renormalised")
        if module.scale_grad_by_freq:
            notes.append(f"'{path}': scale_grad_by_freq is not carried over; gradients of a row are summed")


def collect(model, optimizer="rowwise_adagrad", max_ids=64):
    """(tables, features, notes) of all collections in the model."""
    tables, features, notes, inside, found = [], [], [], set(), 0
    for path, module in model.named_modules():
        where = path or type(model).__name__
        if any(path == p or path.startswith(p + ".") for p in inside):
            continue
        pooled = True
        if callable(getattr(module, "embedding_bag_configs", None)):
            made = list(module.embedding_bag_configs())
        elif callable(getattr(module, "embedding_configs", None)):
            made, pooled = list(module.embedding_configs()), False
            if getattr(module, "need_indices", lambda: False)():
                notes.append(f"'{where}': need_indices has no counterpart in a spec; the trainer has the ids anyway")
        elif all(hasattr(module, n) for n in ("num_embeddings", "embedding_dim", "weight")):
            made = [_Plain(where, module, notes)]
            pooled = hasattr(module, "mode")
        else:
            continue
        inside.add(path)
        found += 1
        weighted = pooled and bool(getattr(module, "is_weighted", lambda: False)())
        converted = configs.convert(made, weighted=weighted, pooled=pooled, optimizer=optimizer, max_ids=max_ids)
        notes += [f"'{where}': {n}" for n in converted.notes]
        names = {t["name"] for t in tables}
        for table in converted.tables:
            if table["name"] in names:
                raise BadArgument(f"two collections have a table '{table['name']}' ('{where}' is the second); rename one, or import them one by one")
        taken = {f["name"] for f in features}
        for feature in converted.features:
            before = feature["name"]
            if before in taken:
                feature["name"] = configs.spec_name(f"{before}.{feature['table']}", taken)
                feature.setdefault("column", before)
                notes.append(f"'{where}': feature '{before}' is read by two collections; here it is '{feature['name']}' with the same column")
            taken.add(feature["name"])
        tables += converted.tables
        features += converted.features
    if not found:
        raise BadArgument(f"{type(model).__name__} has no EmbeddingBagCollection, EmbeddingCollection, nn.EmbeddingBag or nn.Embedding")
    pooled = {f["pooling"] == "none" for f in features}
    if len(pooled) > 1:
        notes.append("pooled and unpooled features are in one spec; terrace.torch needs a spec for each kind")
    notes.append("dense layers, their optimizers and the sharding plan stay in the trainer; data and memory are for you to fill in")
    notes.append(f"the optimizer of the rows is not part of the modules; {configs.optimizer_spec(optimizer)['kind']} is taken (--optimizer)")
    notes.append("max_ids, the longest bag, is a bound of the pipeline that TorchRec does not have (--max-ids)")
    return tables, features, notes


def _flow(value):
    """A value in YAML's flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(v) for v in value) + "]"
    if isinstance(value, str) and value.replace("_", "").replace(".", "").replace("-", "").isalnum() and value[0].isalpha():
        return value if value not in ("true", "false", "null", "yes", "no", "on", "off") else json.dumps(value)
    return json.dumps(value)


def spec_text(model, tables, features, notes, batch_size):
    """The spec as YAML, with what is not carried over as comments."""
    lines = ["# Written by terrace import-torchrec. Not carried over, or to be looked at:"]
    lines += [f"# - {n}" for n in notes]
    lines += ["terrace: 1", f"model: {_flow(model)}", f"batch: {{size: {batch_size}}}", "tables:"]
    lines += [f"- {_flow(t)}" for t in tables]
    lines += ["features:"] + [f"- {_flow(f)}" for f in features]
    return "\n".join(lines) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="terrace import-torchrec", description="Writes the spec of a torch model's embedding collections.")
    parser.add_argument("function", metavar="FILE.py:FUNCTION", help="makes the model; called without arguments")
    parser.add_argument("-o", "--output", metavar="FILE", help="the spec (default: stdout)")
    parser.add_argument("--optimizer", default="rowwise_adagrad", help="of the rows, a kind of the spec: sgd, adagrad, rowwise_adagrad, adam, ... (default: rowwise_adagrad)")
    parser.add_argument("--max-ids", type=int, default=64, help="ids of one bag, at most (default: 64)")
    parser.add_argument("--batch", type=int, default=2048, help="samples of a step, at most (default: 2048)")
    parser.add_argument("--model", help="its name (default: the function's)")
    options = parser.parse_args(arguments)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what the model's code prints is not part of the spec
            model = load_function(options.function)
            model = model() if not hasattr(model, "named_modules") else model
        if not hasattr(model, "named_modules"):
            raise BadArgument(f"{options.function} gave a {type(model).__name__}, not a torch module")
        tables, features, notes = collect(model, options.optimizer, options.max_ids)
    except Error as error:
        print(f"terrace import-torchrec: error: {error}", file=sys.stderr)
        return 1
    name = options.model or configs.spec_name(options.function.rpartition(":")[2], set())
    text = spec_text(name, tables, features, notes, options.batch)
    if options.output and options.output != "-":
        temporary = options.output + ".tmp"
        with open(temporary, "w") as file:
            file.write(text)
        os.replace(temporary, options.output)
    else:
        sys.stdout.write(text)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
