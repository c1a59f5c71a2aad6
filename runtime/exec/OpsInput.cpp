//===- OpsInput.cpp - ingest, check, translate, dedup ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bad-input contract. submit checks what it needs to copy safely (shapes,
// offsets, overflow, labels); check, which runs ahead on the host lane, judges
// ids and weights. Overflow is applied before ids are judged: an id that was
// cut off is neither bad nor counted as dropped. Positions in errors are those
// of the caller's bag. The caller's buffers are only read.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/FloatBits.h"
#include "runtime/core/Hash.h"
#include "runtime/exec/Ints.h"
#include "runtime/exec/Pipeline.h"

#include <cmath>
#include <cstring>

using namespace trc;

namespace {

Ints offsetsIn(const trc_bags &bags) {
  return {bags.offsets, bags.offset_bits == 64};
}
Ints valuesIn(const trc_bags &bags) {
  return {bags.values, bags.value_bits == 64};
}

std::string place(const FeaturePlan &f, int64_t sample) {
  return "feature '" + f.name + "', sample " + std::to_string(sample);
}

Status badOffset(const FeaturePlan &f, int64_t sample, int64_t value,
                 const std::string &why) {
  return Status::badInput(place(f, sample) + ": offset " +
                              std::to_string(value) + " " + why,
                          f.name, sample, -1, value);
}

} // namespace

static Status checkFeature(const FeaturePlan &f, const trc_bags &bags,
                           int64_t samples, bool slices, int64_t &kept) {
  auto bad = [&](const std::string &what) {
    return Status(TRC_BAD_ARGUMENT, "feature '" + f.name + "': " + what);
  };
  if (!isWidth(bags.value_bits))
    return bad(badWidth("value_bits", bags.value_bits));
  if (!isWidth(bags.offset_bits))
    return bad(badWidth("offset_bits", bags.offset_bits));
  if (!bags.offsets)
    return bad("offsets is null; an array of samples + 1 is needed");
  if (bags.value_count < 0 || (bags.value_count > 0 && !bags.values))
    return bad("values is null or value_count negative");
  if (f.weighted() ? (bags.value_count > 0 && !bags.weights)
                   : bags.weights != nullptr)
    return bad(f.weighted() ? "is weighted, but weights is null"
                            : "is not weighted, but weights were given");
  Ints offsets = offsetsIn(bags);
  const int64_t base = offsets[0];
  if (base != 0 && !slices)
    return badOffset(f, 0, offsets[0], "should be 0: offsets start there");
  for (int64_t s = 0; s < samples; ++s) {
    int64_t begin = offsets[s], end = offsets[s + 1];
    if (end < begin)
      return badOffset(f, s, end,
                       "is below the one before it, " + std::to_string(begin));
    if (end - base > bags.value_count)
      return badOffset(f, s, end,
                       slices
                           ? "ends behind the feature's bags, which end at "
                             "offset " +
                                 std::to_string(base + bags.value_count)
                           : "ends behind the " +
                                 std::to_string(bags.value_count) + " values");
    int64_t n = end - begin;
    if (n > f.maxIds && f.overflow == Overflow::error)
      return Status::badInput(
          place(f, s) + ": a bag of " + std::to_string(n) +
              " ids, more than max_ids " + std::to_string(f.maxIds) +
              "; raise max_ids or set overflow to keep_first or keep_last",
          f.name, s, f.maxIds, valuesIn(bags)[begin - base + f.maxIds]);
    kept += std::min(n, f.maxIds);
  }
  if (offsets[samples] - base != bags.value_count)
    return badOffset(f, samples, offsets[samples],
                     "ends before the " + std::to_string(bags.value_count) +
                         " values do");
  return Status();
}

Status Pipeline::checkShape(const trc_batch &batch, bool slices) const {
  if (batch.feature_count != plan.features.size() ||
      (batch.feature_count && !batch.features))
    return Status(TRC_BAD_ARGUMENT,
                  "the batch has " + std::to_string(batch.feature_count) +
                      " features; model '" + plan.model + "' has " +
                      std::to_string(plan.features.size()));
  if (batch.samples < 0 || batch.samples > plan.batch)
    return Status(TRC_BAD_ARGUMENT,
                  "a batch of " + std::to_string(batch.samples) +
                      " samples; 0 .. " + std::to_string(plan.batch) +
                      " were compiled for");
  if ((batch.flags & ~uint32_t(TRC_BATCH_FORWARD_ONLY)) || batch.reserved)
    return Status(TRC_BAD_ARGUMENT,
                  "the batch's flags are " + std::to_string(batch.flags) +
                      ", of which this runtime knows " +
                      std::to_string(TRC_BATCH_FORWARD_ONLY) +
                      "; reserved is " + std::to_string(batch.reserved) +
                      " and must be 0");
  int64_t ids = 0;
  for (size_t f = 0; f < plan.features.size(); ++f)
    TRC_RETURN_IF_ERROR(checkFeature(plan.features[f], batch.features[f],
                                     batch.samples, slices, ids));
  if (ids > plan.maxIds)
    return Status::badInput("the batch holds " + std::to_string(ids) +
                                " ids, more than batch.max_ids " +
                                std::to_string(plan.maxIds) +
                                "; submit fewer samples or raise it",
                            "", -1, -1, ids);
  if (batch.labels && plan.hasHead)
    for (int64_t s = 0; s < batch.samples; ++s)
      if (batch.labels[s] != 0.0f && batch.labels[s] != 1.0f)
        return Status::badInput("sample " + std::to_string(s) + ": label " +
                                    std::to_string(batch.labels[s]) +
                                    "; labels are 0 or 1",
                                plan.labelName, s, -1, bitsOf(batch.labels[s]));
  return Status();
}

Status Pipeline::ingest(int64_t t, const trc_batch &in) {
  Batch &b = batch(t);
  b.t = t;
  b.samples = in.samples;
  b.hasLabels = in.labels != nullptr;
  b.forwardOnly = !training || (in.flags & TRC_BATCH_FORWARD_ONLY);
  b.failed = b.applied = false;
  b.error = Status();
  b.gradError = Status();
  b.lrScale = 1;
  b.step = 0;
  b.dropped = 0;
  auto *header = at<IngestHeader>(inRing, t, inLayout.header);
  header->samples = in.samples;
  header->hasLabels = b.hasLabels;
  int64_t *base = at<int64_t>(inRing, t, inLayout.base);
  int64_t next = 0;
  uint64_t cutIds = 0;
  for (size_t f = 0; f < plan.features.size(); ++f) {
    const FeaturePlan &feature = plan.features[f];
    const trc_bags &bags = in.features[f];
    Ints from = offsetsIn(bags), values = valuesIn(bags);
    base[f] = next;
    int32_t *offsets = offsetsOf(t, f);
    int64_t *ids = idsOf(t, f);
    float *weights = feature.weighted() ? weightsOf(t, f) : nullptr;
    int32_t *skipped = inLayout.skippedAt[f] < 0
                           ? nullptr
                           : at<int32_t>(inRing, t, inLayout.skippedAt[f]);
    bool mayCut = feature.overflow != Overflow::error;
    const int64_t first = from[0];
    int64_t n = 0;
    offsets[0] = 0;
    if (!mayCut) {
      for (int64_t s = 0; s < in.samples; ++s)
        offsets[s + 1] = static_cast<int32_t>(from[s + 1] - first);
      n = bags.value_count;
      if (values.wide && n)
        std::memcpy(ids, bags.values, static_cast<size_t>(n) * 8);
      else
        for (int64_t j = 0; j < n; ++j)
          ids[j] = values[j];
      if (weights && n)
        std::memcpy(weights, bags.weights, static_cast<size_t>(n) * 4);
    }
    for (int64_t s = 0; mayCut && s < in.samples; ++s) {
      int64_t begin = from[s] - first, count = from[s + 1] - from[s];
      int64_t keep = std::min(count, feature.maxIds);
      if (skipped) {
        skipped[s] = static_cast<int32_t>(count - keep);
        begin += count - keep;
      }
      cutIds += static_cast<uint64_t>(count - keep);
      for (int64_t j = 0; j < keep; ++j) {
        ids[n + j] = values[begin + j];
        if (weights)
          weights[n + j] = bags.weights[begin + j];
      }
      n += keep;
      offsets[s + 1] = static_cast<int32_t>(n);
    }
    next += n;
  }
  base[plan.features.size()] = next;
  counters.cutIds += cutIds;
  if (plan.hasHead && in.labels && in.samples)
    std::memcpy(at<float>(inRing, t, inLayout.labels), in.labels,
                static_cast<size_t>(in.samples) * 4);
  return Status();
}

void Pipeline::check(Batch &b) {
  for (size_t f = 0; f < plan.features.size(); ++f)
    if (!clean(b, f) && !judge(b, f)) {
      b.failed = true;
      ++counters.badBatches;
      return;
    }
  counters.droppedIds += static_cast<uint64_t>(b.dropped);
}

/// Whether nothing of the feature needs a second look: the usual case, without
/// a branch per id.
bool Pipeline::clean(const Batch &b, size_t f) const {
  const FeaturePlan &feature = plan.features[f];
  const TablePlan &table = plan.tables[feature.table];
  const int64_t *ids = idsOf(b.t, f);
  int64_t n = offsetsOf(b.t, f)[b.samples];
  if (feature.weighted())
    return false;
  uint64_t rows = table.hash ? ~0ull : static_cast<uint64_t>(table.rows);
  int64_t bad = 0;
  for (int64_t j = 0; j < n; ++j)
    bad += static_cast<uint64_t>(ids[j]) >= rows;
  return table.hash || bad == 0;
}

/// Position by position: the weight, then the id; then the sum of the bag.
/// Drops bad ids where asked to.
bool Pipeline::judge(Batch &b, size_t f) {
  const FeaturePlan &feature = plan.features[f];
  const TablePlan &table = plan.tables[feature.table];
  int32_t *offsets = offsetsOf(b.t, f);
  int64_t *ids = idsOf(b.t, f);
  float *weights = feature.weighted() ? weightsOf(b.t, f) : nullptr;
  const int32_t *skipped =
      inLayout.skippedAt[f] < 0
          ? nullptr
          : at<int32_t>(inRing, b.t, inLayout.skippedAt[f]);
  int64_t to = 0, begin = 0;
  for (int64_t s = 0; s < b.samples; ++s) {
    int64_t end = offsets[s + 1], first = to;
    float sum = 0.0f, squares = 0.0f;
    for (int64_t j = begin; j < end; ++j) {
      int64_t position = j - begin + (skipped ? skipped[s] : 0);
      if (weights && !std::isfinite(weights[j])) {
        b.error = Status::badInput(
            place(feature, s) + ", position " + std::to_string(position) +
                ": weight is " + std::to_string(weights[j]) +
                "; weights must be finite; the step was not applied",
            feature.name, s, position, bitsOf(weights[j]));
        return false;
      }
      if (!table.hash &&
          static_cast<uint64_t>(ids[j]) >= static_cast<uint64_t>(table.rows)) {
        if (plan.dropBadIds) {
          ++b.dropped;
          continue;
        }
        b.error = Status::badInput(
            place(feature, s) + ", position " + std::to_string(position) +
                ": id " + std::to_string(ids[j]) + " is outside 0 .. " +
                std::to_string(table.rows - 1) + " of table '" + table.name +
                "'; the step was not applied (on_bad_id: drop skips such ids)",
            feature.name, s, position, ids[j]);
        return false;
      }
      ids[to] = ids[j];
      if (weights) {
        weights[to] = weights[j];
        sum = sum + weights[j];
        squares = std::fma(weights[j], weights[j], squares);
      }
      ++to;
    }
    begin = end;
    offsets[s + 1] = static_cast<int32_t>(to);
    if (!weights || to == first)
      continue;
    bool mean = feature.pooling == Pooling::weightedMean;
    float divisor = mean ? sum : squares;
    if ((mean || feature.pooling == Pooling::sqrtn) &&
        (divisor == 0.0f || !std::isfinite(divisor))) {
      b.error =
          Status::badInput(place(feature, s) + ": the weights of the bag " +
                               (mean ? "" : "squared ") + "sum to " +
                               (divisor == 0.0f ? "0" : "more than f32 holds") +
                               ", and " + (mean ? "weighted_mean" : "sqrtn") +
                               " divides by it; the step was not applied",
                           feature.name, s, 0, bitsOf(divisor));
      return false;
    }
  }
  return true;
}

void Pipeline::translate(Batch &b) {
  for (size_t f = 0; f < plan.features.size(); ++f) {
    const TablePlan &table = plan.tables[plan.features[f].table];
    if (!table.hash)
      continue;
    int64_t *ids = idsOf(b.t, f);
    int64_t n = offsetsOf(b.t, f)[b.samples];
    for (int64_t j = 0; j < n; ++j)
      ids[j] = hashRow(ids[j], table.rows);
  }
}

/// Bags of all features of a group are compared as one; the first sample with
/// that content stands for the others.
void Pipeline::dedup(Batch &b) {
  for (size_t d = 0; d < plan.dedup.size(); ++d) {
    const DedupLayout::Group &layout = dedupLayout.groups[d];
    const std::vector<int> &members = plan.dedup[d].features;
    int64_t *count = at<int64_t>(dedupRing, b.t, layout.count);
    int32_t *inverse = at<int32_t>(dedupRing, b.t, layout.inverse);
    int32_t *first = at<int32_t>(dedupRing, b.t, layout.first);
    uint64_t *hashes = at<uint64_t>(dedupRing, b.t, layout.hashes);
    int32_t *table = at<int32_t>(dedupRing, b.t, layout.table);
    int64_t entries = std::max<int64_t>(1, 2 * b.samples);
    std::memset(table, 0xff, static_cast<size_t>(entries) * 4);
    for (int64_t s = 0; s < b.samples; ++s)
      hashes[s] = 0x9e3779b97f4a7c15ull;
    for (int f : members) {
      const int32_t *offsets = offsetsOf(b.t, f);
      const int64_t *ids = idsOf(b.t, f);
      const float *weights =
          plan.features[f].weighted() ? weightsOf(b.t, f) : nullptr;
      for (int64_t s = 0; s < b.samples; ++s) {
        uint64_t h =
            hashes[s] ^ static_cast<uint64_t>(offsets[s + 1] - offsets[s]);
        for (int64_t j = offsets[s]; j < offsets[s + 1]; ++j) {
          h = mix64(h ^ static_cast<uint64_t>(ids[j]));
          if (weights)
            h = mix64(h ^ static_cast<uint64_t>(bitsOf(weights[j])));
        }
        hashes[s] = mix64(h + 1);
      }
    }
    auto equal = [&](int64_t x, int64_t y) {
      for (int f : members) {
        const int32_t *offsets = offsetsOf(b.t, f);
        int64_t n = offsets[x + 1] - offsets[x];
        if (n != offsets[y + 1] - offsets[y])
          return false;
        const int64_t *ids = idsOf(b.t, f);
        if (std::memcmp(ids + offsets[x], ids + offsets[y],
                        static_cast<size_t>(n) * 8) != 0)
          return false;
        if (plan.features[f].weighted() &&
            std::memcmp(weightsOf(b.t, f) + offsets[x],
                        weightsOf(b.t, f) + offsets[y],
                        static_cast<size_t>(n) * 4) != 0)
          return false;
      }
      return true;
    };
    int32_t bags = 0;
    for (int64_t s = 0; s < b.samples; ++s) {
      int64_t e =
          static_cast<int64_t>(static_cast<unsigned __int128>(hashes[s]) *
                                   static_cast<uint64_t>(entries) >>
                               64);
      while (table[e] >= 0 && !(hashes[first[table[e]]] == hashes[s] &&
                                equal(first[table[e]], s)))
        e = e + 1 == entries ? 0 : e + 1;
      if (table[e] < 0) {
        first[bags] = static_cast<int32_t>(s);
        table[e] = bags++;
      }
      inverse[s] = table[e];
    }
    *count = bags;
    for (int f : members) {
      const int32_t *offsets = offsetsOf(b.t, f);
      int32_t *to = at<int32_t>(dedupRing, b.t, dedupLayout.offsetsAt[f]);
      bool weighted = plan.features[f].weighted();
      float *weights = weighted
                           ? at<float>(dedupRing, b.t, dedupLayout.weightsAt[f])
                           : nullptr;
      to[0] = 0;
      for (int32_t u = 0; u < bags; ++u) {
        int32_t from = offsets[first[u]], n = offsets[first[u] + 1] - from;
        to[u + 1] = to[u] + n;
        if (weighted)
          std::memcpy(weights + to[u], weightsOf(b.t, f) + from,
                      static_cast<size_t>(n) * 4);
      }
    }
  }
}
