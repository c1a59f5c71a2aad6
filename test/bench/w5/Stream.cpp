//===- Stream.cpp - The batches of one id stream --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/bench/w5/Stream.h"

using namespace trc;
using namespace trc::w5;

Stream::Stream(const Plan &plan, const std::string &curve)
    : plan(plan), bagSize(plan.features[0].maxIds),
      source(curve, plan.tables[0].rows, static_cast<int>(plan.tables.size()),
             plan.batch, seed),
      random(mix64(seed ^ 0x7735ull)), values(plan.features.size()),
      unique(plan.groups.size()) {
  for (auto &v : values)
    v.resize(static_cast<size_t>(plan.batch * bagSize));
  for (const GroupPlan &g : plan.groups)
    lastSeen.emplace_back(static_cast<size_t>(g.rows));
}

void Stream::next() {
  ++batch;
  for (int64_t s = 0; s < plan.batch; ++s, ++sample)
    for (size_t f = 0; f < plan.features.size(); ++f)
      for (int64_t k = 0; k < bagSize; ++k)
        values[f][static_cast<size_t>(s * bagSize + k)] =
            source.draw(random, sample, plan.features[f].table);
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    unique[g].clear();
    for (int f : plan.groups[g].features) {
      int64_t base =
          plan.tables[static_cast<size_t>(plan.features[f].table)].rowBase;
      for (int64_t id : values[static_cast<size_t>(f)]) {
        uint32_t row = static_cast<uint32_t>(base + id);
        if (lastSeen[g][row] == batch)
          continue;
        lastSeen[g][row] = batch;
        unique[g].push_back(row);
      }
    }
  }
}
