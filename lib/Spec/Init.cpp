//===- Init.cpp - The commented spec that `terrace init` writes -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A spec that compiles as it is, with every key that runs today either set or
// in a comment beside its default.
//
//===----------------------------------------------------------------------===//
#include "Spec/Spec.h"

namespace terrace::spec {

static const char text[] =
    R"yaml(# A model for `terrace compile`. Every key is explained where it stands; what is commented out shows its default.
#   terrace explain FILE               says where each table goes and what a step costs
#   terrace compile FILE -o model      makes an executable
#   ./model train                      trains it
terrace: 1                     # version of this format
model: @MODEL@
# seed: 0                      # of the rows' initial values
# numerics: strict             # same bits whatever the plan
# on_bad_id: error             # or drop: count the id and go on without it
# on_bad_grad: error           # or skip: count the step and do not apply it
# batch: {size: 2048}          # samples of a step; max_ids bounds the ids of a batch over all features

# What tables and features have in common. A template is the same under a name: table: {use: big}
defaults:
  table: {dim: 16, optimizer: {kind: rowwise_adagrad, lr: 0.02, eps: 1e-8}}
  # optimizer kinds: sgd (momentum), adagrad, rowwise_adagrad, adam, partial_rowwise_adam, lamb (beta1, beta2), ftrl (beta, l1, l2);
  # all but ftrl take weight_decay, all take clip_norm
  # init: {kind: uniform, low: -0.01, high: 0.01}     # or normal (mean, std), constant (value)
  # feature: {max_ids: 1}
# templates:
#   big: {rows: 100000000, ids: hash}

# A table of its own is shared by the features that name it; a feature may also declare its table inline.
tables:
- {name: item, rows: 1000000}  # ids: index (0 <= id < rows, else an error); hash takes any 64-bit id

# One feature is one column of the data: a bag of ids for each sample.
features:
- {name: user, table: {rows: 100000}}
- {name: item, table: item}
- {name: history, table: item, pooling: mean, max_ids: 20, mean_ids: 8, overflow: keep_last}
  # column: NAME               # of the data; default: the feature's name
  # type: int                  # or string, with ids: hash
  # pooling: sum               # mean, weighted_mean, sqrtn, max, none (a model without head)
  # weights: COLUMN            # one weight for each id
  # max_ids: 1                 # of one bag; longer bags: overflow error, keep_first or keep_last
  # dedup: GROUP               # features whose bags repeat together, as in a session
  # count: 10                  # repeats the item; {i} in its texts counts from 0

# Without a head the model compiles to a library for your own trainer (--emit=lib).
head: {kind: fm, label: click} # or logistic

train:
  epochs: 1
  # eval_every: 5%             # steps, or a share of the rows; default: at the end
  metrics: [auc, logloss, ne]
  checkpoint: {every: 30min, keep: 3}    # steps or a duration
  # lr_schedule: {warmup_steps: 100, decay_start: 1000, decay_steps: 5000, decay_power: 1, end_scale: 0}   # default: none
  # stop: {auc: 0.8}

data:
  path: clicks.tsv             # TSV or CSV with a header, plain or gzip; a list, or a glob
  list_sep: ","                # between the ids of one bag
  # session: COLUMN            # rows of a session share it
  # on_bad_row: error          # or skip
  # shuffle: {buffer: 100000, seed: 0}   # default: file order
  eval: {last: 10%}            # held out: rows, a share, or {path: FILES}

# Where rows may live. A tier's capacity holds rows, index, cache and staging. Relative paths lie in the state folder.
# These keys may be in a second file, given with --node.
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 128MiB}
  - {name: disk, kind: nvme, capacity: 2GiB, path: @MODEL@.store}
# workers: 1
# target: {device: cpu, arch: [x86-64-v3, x86-64-v4]}
# plan:                        # your pins; the planner decides the rest
#   lookahead: auto            # 0 to 8 batches
#   place: [{tables: "item*", home: disk, cache: {dram: 32MiB}}]
)yaml";

std::string initText(llvm::StringRef model) {
  std::string out = text;
  const llvm::StringRef mark = "@MODEL@";
  for (size_t at = 0; (at = out.find(mark.data(), at)) != std::string::npos;
       at += model.size())
    out.replace(at, mark.size(), model.str());
  return out;
}

} // namespace terrace::spec
