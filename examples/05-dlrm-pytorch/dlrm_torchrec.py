"""The same with TorchRec's collection and all tables in memory. `diff dlrm.py dlrm_torchrec.py` shows what a swap takes."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import numpy as np
import torch
from torch import nn

from common import DIM, FEATURES, ROWS, Data, Dense, arguments, auc, digest
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor


def keyed(ids):
    values = torch.cat([ids[f] for f in FEATURES])
    return KeyedJaggedTensor(keys=FEATURES, values=values, lengths=torch.ones(len(values), dtype=torch.int64))


def main():
    options = arguments()
    torch.manual_seed(options.seed)
    data = Data(options.data, options.batch)

    tables = [EmbeddingBagConfig(name=f, embedding_dim=DIM, num_embeddings=ROWS[f], feature_names=[f]) for f in FEATURES]
    ebc = EmbeddingBagCollection(tables=tables)
    dense = Dense()
    optimizer = torch.optim.Adam(dense.parameters(), 1e-3)
    rows = torch.optim.Adagrad(ebc.parameters(), 0.1)

    loss_of = nn.BCEWithLogitsLoss()
    for step, (x, ids, labels) in enumerate(data.batches(0, options.steps), 1):
        vectors = ebc(keyed(ids)).values()
        loss = loss_of(dense(x, vectors), labels)
        optimizer.zero_grad()
        rows.zero_grad()
        loss.backward()
        optimizer.step()
        rows.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
    torch.save({"dense": dense.state_dict(), "ebc": ebc.state_dict()}, options.state + ".pt")

    ebc.eval()
    scores, labels = [], []
    with torch.no_grad():
        for x, ids, y in data.held_out():
            scores.append(dense(x, ebc(keyed(ids)).values()).numpy())
            labels.append(y.numpy())
    print(f"AUC {auc(np.concatenate(scores), np.concatenate(labels)):.4f}")
    print(f"state {digest(*ebc.state_dict().values(), *dense.state_dict().values())} at step {options.steps}")


if __name__ == "__main__":
    main()
