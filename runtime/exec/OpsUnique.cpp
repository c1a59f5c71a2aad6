//===- OpsUnique.cpp - unique: rows, segments, coefficients ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Unique rows in order of first appearance, then, for training, the
// contributions to each row's gradient in the order of docs/numerics.md:
// feature, sample, position. That order is over samples also where the forward
// pass works on unique bags.
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
  uint32_t *table = at<uint32_t>(g.uniqueRing, b.t, layout.table);

  int64_t occurrences = 0;
  for (int f : g.plan->features) {
    Bags bags = forwardBags(b.t, static_cast<size_t>(f));
    xBase[f] = occurrences;
    occurrences += bags.offsets[bags.count];
  }
  // At most half full; never more entries than the layout has.
  uint64_t entries =
      static_cast<uint64_t>(std::max<int64_t>(1, 2 * occurrences));
  std::memset(table, 0xff, entries * 4);
  uint32_t count = 0;
  for (size_t position = 0; position < g.plan->features.size(); ++position) {
    size_t f = static_cast<size_t>(g.plan->features[position]);
    const TablePlan &model = plan.tables[plan.features[f].table];
    uint64_t rowBase = static_cast<uint64_t>(model.rowBase);
    size_t tablePosition = g.cache ? 0 : g.tableOf(plan, rowBase);
    const int32_t *offsets = offsetsOf(b.t, f);
    const int64_t *ids = idsOf(b.t, f);
    uint32_t *out = x + xBase[f];
    auto take = [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        uint32_t row =
            static_cast<uint32_t>(rowBase + static_cast<uint64_t>(ids[j]));
        uint64_t h = (row * 0x9e3779b97f4a7c15ull) >> 32;
        uint64_t e = h * entries >> 32;
        while (table[e] != ~0u && rows[table[e]] != row)
          e = e + 1 == entries ? 0 : e + 1;
        if (table[e] == ~0u) {
          if (!g.cache && !g.present.test(row)) {
            g.present.set(row);
            g.initRow(plan, tablePosition, row, g.row(row));
          }
          rows[count] = row;
          table[e] = count++;
        }
        *out++ = table[e];
      }
    };
    int d = plan.features[f].dedup;
    if (d < 0) {
      take(0, offsets[b.samples]);
      continue;
    }
    const int32_t *first =
        at<int32_t>(dedupRing, b.t, dedupLayout.groups[d].first);
    int64_t bags = *at<int64_t>(dedupRing, b.t, dedupLayout.groups[d].count);
    for (int64_t u = 0; u < bags; ++u)
      take(offsets[first[u]], offsets[first[u] + 1]);
  }
  header->unique = count;
  header->contributions = 0;
  if (training)
    segments(b, g, count);
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
