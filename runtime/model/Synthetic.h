//===- Synthetic.h - Random batches that honour a model's bounds -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches for `verify --synthetic` and `bench`: skewed ids, duplicates, empty
// bags, weights of both signs, bags that repeat inside dedup groups, bags above
// max_ids where the overflow policy cuts them and bad ids where they are
// dropped. Batch t of a seed is always the same.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_SYNTHETIC_H
#define TERRACE_RUNTIME_MODEL_SYNTHETIC_H

#include "runtime/core/Hash.h"
#include "runtime/data/BatchReader.h"
#include "runtime/model/Config.h"

namespace trc::model {

class SyntheticBatches {
public:
  /// `full`: bags as long as their mean allows and no rarities, for timing.
  SyntheticBatches(const ModelConfig &config, uint64_t seed, bool full);

  /// Batch `t` with `samples` samples.
  void make(int64_t t, int64_t samples, data::BatchData &batch) const;
  int64_t batchSize() const { return batch; }

private:
  struct Feature {
    int64_t rows, maxIds;
    bool hash, weighted, mayOverflow, weightedMean;
    int dedup;
  };
  void makeBag(const Feature &f, int64_t budget, SplitMix &random,
               std::vector<int64_t> &ids, std::vector<float> &weights) const;
  int64_t makeId(const Feature &f, SplitMix &random) const;

  std::vector<Feature> features;
  std::vector<data::FeatureColumn> columns;
  int64_t batch = 0, maxIds = 0;
  bool dropBadIds = false, labels = false, full;
  uint64_t seed;
};

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_SYNTHETIC_H
