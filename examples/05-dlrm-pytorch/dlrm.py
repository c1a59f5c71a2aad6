"""DLRM with torch MLPs; the tables lie on NVMe behind a DRAM cache of a fifth of their rows. Compare with dlrm_torchrec.py."""
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import numpy as np
import torch
from torch import nn

from common import DIM, FEATURES, ROWS, Data, Dense, arguments, auc, digest
from terrace.torch import EmbeddingBagCollection, EmbeddingBagConfig, prefetch, state_dict


def main():
    options = arguments()
    torch.manual_seed(options.seed)
    data = Data(options.data, options.batch)

    tables = [EmbeddingBagConfig(name=f, embedding_dim=DIM, num_embeddings=ROWS[f], feature_names=[f]) for f in FEATURES]
    ebc = EmbeddingBagCollection(
        tables=tables, optimizer={"kind": "adagrad", "lr": 0.1, "eps": 1e-10}, batch_size=options.batch, max_ids=1, state=options.state,
        model="dlrm", from_checkpoint="newest", seed=options.seed,
        memory={"tiers": [{"name": "dram", "kind": "dram", "capacity": "32MiB"},
                          {"name": "disk", "kind": "nvme", "capacity": "1GiB", "path": "dlrm.store"}]},
        plan={"lookahead": 2, "place": [{"tables": "*", "home": "disk", "cache": {"dram": "212KiB"}}]})
    dense = Dense()
    optimizer = torch.optim.Adam(dense.parameters(), 1e-3)
    found = ebc.session.restore()
    if found:
        dense.load_state_dict(found["dense"])
        optimizer.load_state_dict(found["optimizer"])
    first = ebc.session.step
    print(f"from step {first}", flush=True)

    loss_of = nn.BCEWithLogitsLoss()
    for (x, ids, labels), ticket in prefetch(data.batches(first, options.steps), ebc, key=lambda batch: batch[1]):
        vectors = torch.cat(list(ebc(ids, ticket=ticket).values()), 1)
        loss = loss_of(dense(x, vectors), labels)
        optimizer.zero_grad()
        loss.backward()  # the tables' step as well
        optimizer.step()
        step = ebc.session.step
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
        if step % options.every == 0 and step < options.steps:
            print(f"checkpoint {ebc.checkpoint(dense.state_dict(), optimizer.state_dict())}", flush=True)
    ebc.checkpoint(dense.state_dict(), optimizer.state_dict())

    ebc.eval()
    scores, labels = [], []
    with torch.no_grad():
        for x, ids, y in data.held_out():
            scores.append(dense(x, torch.cat(list(ebc(ids).values()), 1)).numpy())
            labels.append(y.numpy())
    print(f"AUC {auc(np.concatenate(scores), np.concatenate(labels)):.4f}")
    caches = ebc.session.stats()
    print(f"state {digest(*state_dict(ebc).values(), *dense.state_dict().values())} at step {caches['step']}")
    ebc.close()


if __name__ == "__main__":
    main()
