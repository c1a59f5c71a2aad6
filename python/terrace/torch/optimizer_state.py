"""optimizer_state.py - The rows' optimizer state out of a checkpoint of torch or TorchRec.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Such a checkpoint is {"state": {parameter: {name: tensor}}, "param_groups": [...]}. Parameters are told by the table's name; TorchRec's fused
optimizers put it before the name of a state as well ("t1.momentum1"), those of torch do not ("sum").
"""
import os

import numpy as np
import torch

from ..errors import BadArgument, NotFound
from .state import LoadReport, _chunk_bytes, _collections

# By optimizer, the names of each state, in the order of docs/numerics.md.
_moments = [("exp_avg", "momentum1"), ("exp_avg_sq", "momentum2")]
_states = {
    "sgd": [], "momentum_sgd": [("momentum_buffer", "momentum1")], "adagrad": [("sum", "momentum1")], "rowwise_adagrad": [("sum", "momentum1")],
    "adam": _moments, "partial_rowwise_adam": _moments, "lamb": _moments, "ftrl": [("z", ), ("n", )]
}
_counters = {"step", "iter", "prev_iter", "row_counter"}


def _source(source):
    if not isinstance(source, dict):
        path = os.fspath(source)
        if not os.path.exists(path):
            raise NotFound(f"no file '{path}'")
        source = torch.load(path, weights_only=True, map_location="cpu")
    for key in ("optimizer", "optimizer_state_dict", "optim"):
        if isinstance(source, dict) and "state" not in source and isinstance(source.get(key), dict):
            source = source[key]
    if not isinstance(source, dict) or not isinstance(source.get("state"), dict):
        raise BadArgument("this is no state_dict of an optimizer: it has no dict 'state' by parameter")
    names = {}  # numbers of parameters -> their names, where torch kept them
    for group in source.get("param_groups") or []:
        if isinstance(group, dict) and group.get("param_names"):
            names.update(zip(group["params"], group["param_names"]))
    return {names.get(key, key): value for key, value in source["state"].items()}


def _parts(value):
    """(first row, tensor) of a tensor, or of a sharded one's local shards."""
    local = getattr(value, "local_shards", None)
    if local is None:
        return [(0, value)]
    return [(shard.metadata.shard_offsets[0], shard.tensor) for shard in local()]


def _load(session, table, slot, value, key, report):
    info = session.tables[table]
    width, done = info.state_widths[slot], 0
    count = max(1, _chunk_bytes // (4 * width))
    parts = [(first, torch.as_tensor(tensor)) for first, tensor in _parts(value)]
    for first, tensor in parts:
        if tensor.numel() != len(tensor) * width or first + len(tensor) > info.rows or (len(parts) == 1 and not first and len(tensor) != info.rows):
            report.mismatched.append(f"{key}: {list(tensor.shape)}, {info.optimizer['kind']} of table '{table}' has [{info.rows}, {width}]")
            return
    for first, tensor in parts:
        for begin in range(0, len(tensor), count):
            part = tensor[begin:begin + count].detach().to("cpu", torch.float32).reshape(-1, width).contiguous()
            session.write_state(table, slot, np.arange(first + begin, first + begin + len(part)), part)
            done += len(part)
    report.matched.append(key if done == info.rows else f"{key} ({done} of {info.rows} rows)")


def load_optimizer_state(model, source):
    """Sets the optimizer state of the rows from an optimizer's state_dict, or a file of torch.save; with no batch in flight.

    Returns a LoadReport. Steps are not carried over: Adam's correction counts those of this session.
    """
    found, report, used = _source(source), LoadReport(), set()
    for prefix, collection in _collections(model):
        session = collection.session
        session.recall()
        for table, info in session.tables.items():
            slots = _states[info.optimizer["kind"]]
            group = f"{collection._group}.{table}"
            endings = [prefix + group + ".weight", group + ".weight", f"{table}.weight", table]
            keys = next((k for k in ([n for n in found if isinstance(n, str) and (n == e or n.endswith("." + e))] for e in endings) if k), [])
            if len(keys) > 1:
                report.mismatched.append(f"{table}: {len(keys)} parameters have its name ({', '.join(keys)}); pass those of one collection")
                used.update(keys)
                continue
            states = {str(name).rpartition(".")[2]: value for name, value in found[keys[0]].items()} if keys else {}
            used.update(keys)
            taken = set(_counters)
            for slot, names in enumerate(slots):
                name = next((n for n in names if n in states), None)
                if name is None:
                    report.missing.append(f"{prefix}{group}: {names[0]}")
                    continue
                taken.add(name)
                _load(session, table, slot, states[name], f"{keys[0]}: {name}", report)
            report.unexpected += [f"{keys[0]}: {name}" for name in states if name not in taken]
    report.unexpected += [f"{key!r} has no name; save with KeyedOptimizer, or named_parameters" if isinstance(key, int) else str(key)
                          for key in found if key not in used]
    return report
