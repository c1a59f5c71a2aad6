//===- Synthetic.cpp - Random batches that honour a model's bounds
//---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Synthetic.h"

#include <algorithm>

namespace trc::model {

SyntheticBatches::SyntheticBatches(const ModelConfig &config, uint64_t seed,
                                   bool full)
    : full(full), seed(seed) {
  const nlohmann::json &plan = config.plan;
  data::ReaderOptions options = config.reader(false);
  columns = options.format.features;
  batch = plan.at("batch");
  maxIds = plan.at("max_ids");
  dropBadIds = plan.value("on_bad_id", "error") == "drop" && !full;
  labels = config.hasHead();
  for (const auto &f : plan.at("features")) {
    const auto &table = plan.at("tables").at(f.at("table").get<size_t>());
    Feature x;
    x.rows = table.at("rows");
    x.maxIds = f.at("max_ids");
    x.hash = table.at("ids") == "hash";
    x.weighted = f.contains("weights") && f.at("weights").is_string();
    x.mayOverflow = f.at("overflow") != "error" && !full;
    x.weightedMean = f.at("pooling") == "weighted_mean";
    x.dedup = f.value("dedup", -1);
    features.push_back(x);
  }
}

int64_t SyntheticBatches::makeId(const Feature &f, SplitMix &random) const {
  // The fourth power of a uniform number: a hot head and a long tail.
  double u = random.unit();
  uint64_t rank =
      static_cast<uint64_t>(u * u * u * u * static_cast<double>(f.rows));
  if (f.hash)
    return static_cast<int64_t>(mix64(rank));
  if (dropBadIds && random.below(50) == 0)
    return random.below(2) ? -1 - static_cast<int64_t>(random.below(100))
                           : f.rows + static_cast<int64_t>(random.below(100));
  // Hot rows lie all over the table, as they do where ids are not sorted.
  return static_cast<int64_t>((rank * 0x9e3779b1ull + 7) %
                              static_cast<uint64_t>(f.rows));
}

void SyntheticBatches::makeBag(const Feature &f, int64_t budget,
                               SplitMix &random, std::vector<int64_t> &ids,
                               std::vector<float> &weights) const {
  ids.clear();
  weights.clear();
  int64_t bound = std::min(f.maxIds, budget);
  int64_t length = 0;
  switch (full ? 3 : random.below(8)) {
  case 0: // empty
    break;
  case 1: // as long as allowed
    length = bound;
    break;
  case 2: // longer, where the policy cuts
    length = f.mayOverflow ? std::min(f.maxIds + 3, budget) : bound;
    break;
  default:
    length = full ? bound
                  : static_cast<int64_t>(
                        random.below(static_cast<uint64_t>(bound) + 1));
  }
  for (int64_t i = 0; i < length; ++i)
    ids.push_back(i > 0 && random.below(6) == 0
                      ? ids[random.below(static_cast<uint64_t>(i))]
                      : makeId(f, random));
  if (!f.weighted)
    return;
  for (int64_t i = 0; i < length; ++i) {
    // Multiples of 1/64 in [-2, 2], without 0. Bags of weighted_mean must not
    // sum to 0 whatever is cut or dropped, so their weights have one sign.
    float w = static_cast<float>(1 + random.below(128)) / 64.0f;
    weights.push_back(f.weightedMean || random.below(3) ? w : -w);
  }
}

void SyntheticBatches::make(int64_t t, int64_t samples,
                            data::BatchData &out) const {
  out.reset(columns);
  SplitMix random(mix64(seed) +
                  static_cast<uint64_t>(t) * 0x632be59bd9b4e019ull);
  std::vector<std::vector<int64_t>> ids(features.size());
  std::vector<std::vector<float>> weights(features.size());
  int64_t left = maxIds;
  data::Row row;
  row.session = 0;
  for (int64_t s = 0; s < samples; ++s) {
    row.ids.clear();
    row.weights.clear();
    row.counts.clear();
    // All members of a dedup group repeat their bags together.
    uint64_t repeats = s > 0 ? random.next() : 0;
    for (size_t f = 0; f < features.size(); ++f) {
      const Feature &x = features[f];
      bool repeat = x.dedup >= 0 && (repeats >> (x.dedup % 64) & 1) &&
                    static_cast<int64_t>(ids[f].size()) <= left;
      if (!repeat) {
        makeBag(x, left, random, ids[f], weights[f]);
      }
      left -= static_cast<int64_t>(ids[f].size());
      row.ids.insert(row.ids.end(), ids[f].begin(), ids[f].end());
      row.weights.insert(row.weights.end(), weights[f].begin(),
                         weights[f].end());
      row.counts.push_back(static_cast<int32_t>(ids[f].size()));
    }
    row.label = static_cast<float>(random.below(4) == 0);
    row.file = 0;
    row.line = s;
    out.append(row, labels);
  }
}

} // namespace trc::model
