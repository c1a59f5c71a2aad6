//===- Caches.cpp - How many rows each cache keeps ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Retained rows only: the slots of batches in flight are not a choice.
//
//===----------------------------------------------------------------------===//
#include "CostModel/IndexBytes.h"
#include "Planner/Search.h"

#include <algorithm>
#include <map>

using namespace terrace;
using namespace terrace::planner;

std::vector<int64_t>
planner::splitRetained(int64_t bytes, const std::vector<int64_t> &rowBytes,
                       const std::vector<int64_t> &rows,
                       const std::vector<double> &weights) {
  std::vector<int64_t> result(rows.size(), 0);
  int64_t left = bytes;
  // A table that is full hands its share on; at most one table fills a round.
  for (size_t round = 0; round <= rows.size() && left > 0; ++round) {
    double sum = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      if (result[i] < rows[i])
        sum += weights[i];
    if (sum <= 0)
      break;
    int64_t budget = left;
    bool any = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (result[i] >= rows[i])
        continue;
      int64_t share =
          int64_t(double(budget) * (weights[i] / sum)) / rowBytes[i];
      int64_t take = std::min({share, rows[i] - result[i], left / rowBytes[i]});
      result[i] += take;
      left -= take * rowBytes[i];
      any |= take > 0;
    }
    if (!any)
      break;
  }
  // What rounding left goes to the first tables that can still use it.
  for (size_t i = 0; i < rows.size() && left > 0; ++i) {
    int64_t take = std::min(rows[i] - result[i], left / rowBytes[i]);
    result[i] += take;
    left -= take * rowBytes[i];
  }
  return result;
}

void Search::fillCaches(Decision &d, const Footprint &fp) const {
  // Tables whose single cache the planner sizes, by the memory they share: a
  // tier of the node, or of one worker.
  std::map<std::pair<int, int>, std::vector<int>> pools;
  for (size_t t = 0; t < p.tables.size(); ++t) {
    const TableDecision &td = d.tables[t];
    bool pinned = pinOf[t] >= 0 && p.pins[pinOf[t]].cacheGiven;
    if (pinned || td.caches.empty())
      continue;
    int tier = td.caches.front().tier;
    int worker = p.tiers[tier].perWorker ? td.worker : -1;
    pools[{tier, worker}].push_back(static_cast<int>(t));
  }
  double inFlight = double(std::max<int64_t>(1, d.lookahead));
  for (const auto &pool : pools) {
    int tier = pool.first.first, worker = pool.first.second;
    const std::vector<int> &tables = pool.second;
    int64_t used = worker >= 0 ? fp.use[tier][worker].total()
                               : fp.charged(p, tier).total();
    int64_t left = p.tiers[tier].implied ? 0 : p.tiers[tier].capacity - used;
    if (left <= 0)
      continue;
    // A slot also has its entries in the directory.
    int64_t entry = indexBytes({2, 16}, 2, 1, 1) - indexBytes({2, 16}, 1, 1, 1);
    auto pitch = [&, tier = tier](int t) {
      return p.tables[t].slotBytes() + (tier == p.ringTier() ? entry : 0);
    };
    int64_t chunk =
        std::max<int64_t>(left / (tables.size() > 100 ? 32 : 64), 1);
    auto misses = [&](int t, int64_t retained) {
      const Table &table = p.tables[t];
      return profile::missesPerBatch(table.stats.missCurve, table.rows,
                                     double(retained) +
                                         inFlight * loads[t].unique,
                                     loads[t].gradIds, loads[t].unique);
    };
    std::vector<int64_t> retained(tables.size(), 0);
    std::vector<double> now, gain(tables.size(), -1);
    for (size_t i = 0; i < tables.size(); ++i)
      now.push_back(misses(tables[i], 0));
    auto step = [&](size_t i) {
      return std::min({p.tables[tables[i]].rows - retained[i],
                       std::max<int64_t>(1, chunk / pitch(tables[i])),
                       left / pitch(tables[i])});
    };
    while (left > 0) {
      size_t best = tables.size();
      double bestGain = 0;
      for (size_t i = 0; i < tables.size(); ++i) {
        int64_t rows = step(i);
        if (rows <= 0)
          continue;
        if (gain[i] < 0)
          gain[i] = (now[i] - misses(tables[i], retained[i] + rows)) /
                    double(rows * pitch(tables[i]));
        if (gain[i] > bestGain) {
          bestGain = gain[i];
          best = i;
        }
      }
      if (best == tables.size())
        break; // more rows would not save a miss
      int64_t rows = step(best);
      retained[best] += rows;
      left -= rows * pitch(tables[best]);
      now[best] = misses(tables[best], retained[best]);
      gain[best] = -1;
    }
    for (size_t i = 0; i < tables.size(); ++i)
      d.tables[tables[i]].caches.front().retained = retained[i];
  }
}
