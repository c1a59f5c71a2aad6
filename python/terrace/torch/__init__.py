"""Terrace in PyTorch: TorchRec's embedding collections over tables that may be larger than memory.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    from terrace.torch import EmbeddingBagCollection, prefetch          # instead of torchrec.modules.embedding_modules
    ebc = EmbeddingBagCollection(tables=configs, batch_size=4096, optimizer={"kind": "adagrad", "lr": 0.02})

Any version of torch from 2.0 on; torchrec is not needed, but its configs, KeyedJaggedTensors and KeyedTensors are understood.
docs/torchrec.md tells the differences.
"""
from .configs import EmbeddingBagConfig, EmbeddingConfig
from .loader import prefetch
from .modules import EmbeddingBagCollection, EmbeddingCollection, FusedOptimizer
from .optimizer_state import load_optimizer_state
from .state import LoadReport, load_state_dict, save_state_dict, state_dict
from .tensors import KeyedTensor

__all__ = [
    "EmbeddingBagCollection", "EmbeddingBagConfig", "EmbeddingCollection", "EmbeddingConfig", "FusedOptimizer", "KeyedTensor", "LoadReport",
    "load_optimizer_state", "load_state_dict", "prefetch", "save_state_dict", "state_dict"
]
