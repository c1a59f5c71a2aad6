//===- OpsUnique.cpp - unique: rows, segments, coefficients ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that were never seen get their initial value. Unique rows in order of
// first appearance, then, for batches that train, the contributions to each
// row's gradient in the order of docs/numerics.md: feature, sample, position.
// That order is over samples also where the forward pass works on unique bags.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Pipeline.h"

#include <cmath>
#include <cstring>

using namespace trc;

void Pipeline::unique(Batch &b, GroupRuntime &g) {
  const UniqueLayout &layout = uniqueLayouts[g.index];
  uint32_t *rows = at<uint32_t>(g.uniqueRing, b.t, layout.rows);
  uint32_t *x = at<uint32_t>(g.uniqueRing, b.t, layout.x);
  int64_t *xBase = at<int64_t>(g.uniqueRing, b.t, layout.xBase);
  auto *header = at<UniqueHeader>(g.uniqueRing, b.t, layout.header);
  uint32_t *places = at<uint32_t>(g.uniqueRing, b.t, layout.table);

  int64_t occurrences = 0;
  g.tableIds.assign(g.plan->tables.size(), 0);
  g.numbers.assign(g.plan->tables.size(), RowNumbers());
  for (size_t i = 0; i < g.plan->features.size(); ++i) {
    int f = g.plan->features[i];
    Bags bags = forwardBags(b.t, static_cast<size_t>(f));
    xBase[f] = occurrences;
    occurrences += bags.offsets[bags.count];
    g.tableIds[g.featureTable[i]] += bags.offsets[bags.count];
  }
  uint32_t count = 0;
  for (size_t i = 0; i < g.plan->features.size(); ++i) {
    size_t f = static_cast<size_t>(g.plan->features[i]);
    const size_t table = g.featureTable[i];
    const TablePlan &model = plan.tables[g.plan->tables[table]];
    const uint64_t rowBase = static_cast<uint64_t>(model.rowBase);
    const int32_t *offsets = offsetsOf(b.t, f);
    const int64_t *ids = idsOf(b.t, f);
    RowNumbers &numbers = g.numbers[table];
    if (!numbers.begun()) {
      uint64_t most = static_cast<uint64_t>(g.tableIds[table]);
      uint64_t tableRows = static_cast<uint64_t>(model.rows);
      numbers = RowNumbers(places, most, tableRows);
      places += RowNumbers::placesFor(most, tableRows);
    }
    const uint32_t known = count;
    uint32_t *out = x + xBase[f];
    auto take = [&](int64_t begin, int64_t end) {
      count =
          numbers.number(ids + begin, end - begin, rowBase, rows, count, out);
      out += end - begin;
    };
    if (int d = plan.features[f].dedup; d < 0) {
      take(0, offsets[b.samples]);
    } else {
      const int32_t *first =
          at<int32_t>(dedupRing, b.t, dedupLayout.groups[d].first);
      int64_t bags = *at<int64_t>(dedupRing, b.t, dedupLayout.groups[d].count);
      for (int64_t u = 0; u < bags; ++u)
        take(offsets[first[u]], offsets[first[u] + 1]);
    }
    for (uint32_t u = known; !g.cache && u < count; ++u) {
      if (g.present.test(rows[u]))
        continue;
      g.present.set(rows[u]);
      g.initRow(plan, table, rows[u], g.row(rows[u]));
    }
  }
  header->unique = count;
  header->contributions = 0;
  if (!b.forwardOnly)
    segments(b, g, count);
}

/// Rows that were never seen get their value; there is nothing else to do for
/// look-ups by id. After a while there are none, or few: a bit per id is looked
/// at, without a branch.
void Pipeline::touch(Batch &b, GroupRuntime &g) {
  if (g.allPresent)
    return;
  bool found = false;
  for (size_t i = 0; i < g.plan->features.size(); ++i) {
    const size_t f = static_cast<size_t>(g.plan->features[i]);
    const size_t table = g.featureTable[i];
    const uint64_t rowBase =
        static_cast<uint64_t>(plan.tables[g.plan->tables[table]].rowBase);
    const int64_t *ids = idsOf(b.t, f);
    std::atomic<bool> missing{false};
    pool.parallelFor(0, offsetsOf(b.t, f)[b.samples], 32768,
                     [&](int64_t begin, int64_t end) {
                       uint64_t absent = 0;
                       for (int64_t j = begin; j < end; ++j)
                         absent |= !g.present.test(
                             rowBase + static_cast<uint64_t>(ids[j]));
                       if (absent)
                         missing = true;
                     });
    if (!missing)
      continue;
    found = true;
    for (int64_t j = 0; j < offsetsOf(b.t, f)[b.samples]; ++j) {
      uint64_t row = rowBase + static_cast<uint64_t>(ids[j]);
      if (g.present.test(row))
        continue;
      g.present.set(row);
      g.initRow(plan, table, row, g.row(row));
    }
  }
  if (found) {
    g.countPresent = true;
  } else if (g.countPresent) {
    g.allPresent = g.present.count() == static_cast<uint64_t>(g.plan->rows);
    g.countPresent = false;
  }
}

/// The coefficient of every position of one bag.
template <typename Take>
static void forCoefficients(Pooling pooling, const float *weights, int64_t n,
                            const Take &take) {
  if (n == 0)
    return;
  float divisor = 1.0f;
  bool divide = false;
  switch (pooling) {
  case Pooling::sum:
  case Pooling::max:
  case Pooling::none:
    break;
  case Pooling::mean:
    divisor = static_cast<float>(n);
    divide = true;
    break;
  case Pooling::weightedMean:
    divisor = static_cast<float>(n);
    if (weights) {
      divisor = 0.0f;
      for (int64_t j = 0; j < n; ++j)
        divisor = divisor + weights[j];
    }
    divide = true;
    break;
  case Pooling::sqrtn: {
    float q = static_cast<float>(n);
    if (weights) {
      q = 0.0f;
      for (int64_t j = 0; j < n; ++j)
        q = std::fma(weights[j], weights[j], q);
    }
    divisor = std::sqrt(q);
    divide = true;
    break;
  }
  }
  for (int64_t j = 0; j < n; ++j) {
    float w = weights ? weights[j] : 1.0f;
    take(j, divide ? w / divisor : w);
  }
}

void Pipeline::segments(Batch &b, GroupRuntime &g, int64_t uniqueRows) {
  const UniqueLayout &layout = uniqueLayouts[g.index];
  int32_t *seg = at<int32_t>(g.uniqueRing, b.t, layout.seg);
  uint32_t *occ = at<uint32_t>(g.uniqueRing, b.t, layout.occ);
  float *coef = at<float>(g.uniqueRing, b.t, layout.coef);
  std::memset(seg, 0, static_cast<size_t>(uniqueRows + 2) * 4);

  // Counts, two places ahead, so that filling leaves the begins in place.
  for (int f : g.plan->features) {
    Bags bags = forwardBags(b.t, static_cast<size_t>(f));
    const uint32_t *x = forwardX(b.t, static_cast<size_t>(f));
    const int32_t *inverse = inverseOf(b.t, static_cast<size_t>(f));
    if (!inverse) {
      for (int64_t j = 0; j < bags.offsets[bags.count]; ++j)
        ++seg[x[j] + 2];
      continue;
    }
    for (int64_t s = 0; s < b.samples; ++s)
      for (int64_t j = bags.offsets[inverse[s]];
           j < bags.offsets[inverse[s] + 1]; ++j)
        ++seg[x[j] + 2];
  }
  for (int64_t u = 1; u <= uniqueRows; ++u)
    seg[u + 1] += seg[u];
  for (int f : g.plan->features) {
    Bags bags = forwardBags(b.t, static_cast<size_t>(f));
    const uint32_t *x = forwardX(b.t, static_cast<size_t>(f));
    const int32_t *inverse = inverseOf(b.t, static_cast<size_t>(f));
    Pooling pooling = plan.features[f].pooling;
    bool perId = pooling == Pooling::none || pooling == Pooling::max;
    int64_t gradRow = gradsLayout.rowBase[f];
    for (int64_t s = 0; s < b.samples; ++s) {
      int64_t bag = inverse ? inverse[s] : s;
      int64_t begin = bags.offsets[bag];
      int64_t n = bags.offsets[bag + 1] - begin;
      forCoefficients(pooling, bags.weights ? bags.weights + begin : nullptr, n,
                      [&](int64_t j, float a) {
                        int32_t k = seg[x[begin + j] + 1]++;
                        occ[k] = static_cast<uint32_t>(perId ? gradRow + j
                                                             : gradRow);
                        coef[k] = a;
                      });
      gradRow += perId ? n : 1;
    }
  }
  at<UniqueHeader>(g.uniqueRing, b.t, layout.header)->contributions =
      seg[uniqueRows];
}
