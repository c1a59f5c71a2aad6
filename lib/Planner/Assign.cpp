//===- Assign.cpp - Tables to workers -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Planner/Search.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace terrace;
using namespace terrace::planner;

std::vector<int>
planner::assignWorkers(const Problem &problem,
                       const std::vector<TableLoad> &loads,
                       const std::vector<std::vector<int>> &homes,
                       std::vector<double> &workerLoad) {
  size_t n = problem.tables.size();
  workerLoad.assign(problem.workers, 0);
  std::vector<int> result(n, 0);
  if (problem.workers == 1) {
    for (size_t t = 0; t < n; ++t)
      workerLoad[0] += tableSeconds(problem, static_cast<int>(t), loads[t]);
    return result;
  }
  // Units: tables that were pinned together.
  std::vector<int> unitOf(n);
  std::iota(unitOf.begin(), unitOf.end(), 0);
  auto find = [&](int t) {
    while (unitOf[t] != t)
      t = unitOf[t] = unitOf[unitOf[t]];
    return t;
  };
  for (const auto &set : problem.together)
    for (int t : set)
      unitOf[find(t)] = find(set.front());
  struct Unit {
    std::vector<int> tables;
    double cost = 0;
    std::vector<int64_t> bytes; // per tier, of tables with one possible home
  };
  std::map<int, Unit> byRoot;
  for (size_t t = 0; t < n; ++t) {
    Unit &u = byRoot[find(static_cast<int>(t))];
    u.bytes.resize(problem.tiers.size());
    u.tables.push_back(static_cast<int>(t));
    u.cost += tableSeconds(problem, static_cast<int>(t), loads[t]);
    if (homes[t].size() == 1)
      u.bytes[homes[t][0]] +=
          problem.tables[t].rows * problem.tables[t].slotBytes();
  }
  std::vector<Unit> units;
  for (auto &entry : byRoot)
    units.push_back(std::move(entry.second));
  std::stable_sort(
      units.begin(), units.end(),
      [](const Unit &a, const Unit &b) { return a.cost > b.cost; });
  std::vector<std::vector<int64_t>> used(
      problem.workers, std::vector<int64_t>(problem.tiers.size(), 0));
  for (const Unit &u : units) {
    int best = -1, fallback = 0;
    for (int w = 0; w < problem.workers; ++w) {
      if (workerLoad[w] < workerLoad[fallback])
        fallback = w;
      bool room = true;
      for (size_t tier = 0; tier < problem.tiers.size(); ++tier)
        if (problem.tiers[tier].perWorker && u.bytes[tier] > 0 &&
            used[w][tier] + u.bytes[tier] > problem.tiers[tier].capacity)
          room = false;
      if (room && (best < 0 || workerLoad[w] < workerLoad[best]))
        best = w;
    }
    // Without room anywhere the capacity check reports it, with numbers.
    int w = best >= 0 ? best : fallback;
    workerLoad[w] += u.cost;
    for (size_t tier = 0; tier < problem.tiers.size(); ++tier)
      used[w][tier] += u.bytes[tier];
    for (int t : u.tables)
      result[t] = w;
  }
  return result;
}
