//===- Wear.cpp - What training writes to a drive -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CostModel/Wear.h"

#include "llvm/Support/FormatVariadic.h"

using namespace terrace;
using namespace terrace::planner;

std::vector<TierWear> planner::tierWear(const Problem &problem,
                                        const Decision &decision,
                                        const StepCost &cost) {
  constexpr double day = 24 * 60 * 60;
  std::vector<TierWear> wear(problem.tiers.size());
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const TableDecision &d = decision.tables[t];
    if (d.caches.empty() || problem.serve)
      continue;
    TierWear &w = wear[d.home];
    double share = problem.tiers[d.home].perWorker ? problem.workers : 1;
    w.readsPerStep += cost.tables[t].misses / share;
    w.writesPerStep += cost.tables[t].misses / share; // trained rows are dirty
    w.bytesPerStep += cost.tables[t].misses / share *
                      double(problem.tables[t].storeBytes()) *
                      writeAmplification;
  }
  for (size_t i = 0; i < wear.size(); ++i)
    if (!problem.tiers[i].implied && problem.tiers[i].capacity > 0 &&
        cost.step > 0)
      wear[i].driveWritesPerDay = wear[i].bytesPerStep * day / cost.step /
                                  double(problem.tiers[i].capacity);
  return wear;
}

std::vector<WearFault> planner::wearFaults(const Problem &problem,
                                           const Decision &decision,
                                           const StepCost &cost) {
  std::vector<WearFault> faults;
  std::vector<TierWear> wear = tierWear(problem, decision, cost);
  for (size_t i = 0; i < wear.size(); ++i) {
    const Tier &tier = problem.tiers[i];
    if (tier.driveWritesPerDay <= 0 ||
        wear[i].driveWritesPerDay <= tier.driveWritesPerDay)
      continue;
    faults.push_back(
        {static_cast<int>(i),
         llvm::formatv("tier '{0}' would be written {1:f2} times a day ({2:f1} "
                       "MB a step of {3:f2} ms), more than "
                       "drive_writes_per_day: {4}; give its tables a larger "
                       "cache or another home, or say on_wear: warn",
                       tier.name, wear[i].driveWritesPerDay,
                       wear[i].bytesPerStep / 1e6, cost.step * 1e3,
                       tier.driveWritesPerDay)
             .str()});
  }
  return faults;
}
