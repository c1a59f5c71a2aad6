//===- TestProblem.h - Small problems for the planner's tests ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_LIB_PLANNER_TESTPROBLEM_H
#define TERRACE_TEST_LIB_PLANNER_TESTPROBLEM_H

#include "Planner/Planner.h"

namespace terrace::planner {

inline Table makeTable(std::string name, int64_t rows, int64_t dim) {
  Table t;
  t.name = std::move(name);
  t.rows = rows;
  t.dim = dim;
  return t;
}

inline Feature makeFeature(std::string name, int table, int64_t maxIds = 1) {
  Feature f;
  f.name = std::move(name);
  f.table = table;
  f.maxIds = maxIds;
  f.meanIds = double(maxIds);
  return f;
}

/// Tables t0.. with one feature each, dram and disk.
inline Problem makeProblem(std::vector<std::pair<int64_t, int64_t>> rowsAndDim,
                           int64_t batch, int64_t dram) {
  Problem p;
  p.model = "test";
  p.batch = batch;
  p.head = Head::Fm;
  for (auto [rows, dim] : rowsAndDim) {
    int t = static_cast<int>(p.tables.size());
    p.tables.push_back(makeTable("t" + std::to_string(t), rows, dim));
    p.features.push_back(makeFeature("f" + std::to_string(t), t));
    p.maxIds += batch;
  }
  Tier d;
  d.name = "dram";
  d.kind = machine::TierKind::DRAM;
  d.capacity = dram;
  Tier n;
  n.name = "disk";
  n.kind = machine::TierKind::NVMe;
  n.capacity = int64_t(1) << 40;
  p.tiers = {d, n};
  return p;
}

inline Pin pinAll(const Problem &p, int home) {
  Pin pin;
  for (size_t t = 0; t < p.tables.size(); ++t)
    pin.tables.push_back(static_cast<int>(t));
  pin.home = home;
  pin.text = "{tables: \"*\", home: " + p.tiers[home].name + "}";
  return pin;
}

inline Pin pinAll(const Problem &p, int home, int cache, int64_t bytes) {
  Pin pin = pinAll(p, home);
  pin.cacheGiven = true;
  pin.caches = {{cache, bytes}};
  return pin;
}

} // namespace terrace::planner

#endif // TERRACE_TEST_LIB_PLANNER_TESTPROBLEM_H
