//===- Search.h - The pieces of the planner ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Internal to lib/Planner: resolved pins, choices per table, and the steps that
// plan() is made of. Unit tests go through plan().
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_PLANNER_SEARCH_H
#define TERRACE_LIB_PLANNER_SEARCH_H

#include "Planner/Planner.h"

namespace terrace::planner {

/// One home per table.
using Homes = std::vector<int>;

struct Search {
  explicit Search(const Problem &problem);

  const Problem &p;
  std::vector<TableLoad> loads;
  std::vector<int> pinOf;                         // per table, -1: none
  std::vector<std::vector<int>> homes;            // allowed, slowest tier first
  std::vector<std::vector<int64_t>> retainedPins; // [table][cache]
  std::vector<int> workers;                       // per table
  std::vector<double> workerLoad;

  /// Pins that contradict each other or the machine.
  std::optional<PlanError> checkPins() const;
  int cacheTier() const; // of caches that the planner places, -1: none
  bool isFree(int table) const { return homes[table].size() > 1; }

  Decision decision(const Homes &h, int64_t lookahead) const;
  /// Slowest tier that the footprint overflows, or -1.
  int overflow(const Footprint &fp) const;

  /// The assignment that needs least of the ring tier, then repaired so that
  /// slower tiers fit where that is possible at all.
  Homes leastHomes(int64_t lookahead) const;
  /// Why the least assignment does not fit; none where it does.
  std::optional<PlanError> checkFeasible(int64_t lookahead) const;

  /// Spends what is left of the cache tiers on retained rows.
  void fillCaches(Decision &d, const Footprint &fp) const;

  struct Candidate {
    Decision decision;
    Footprint footprint;
    StepCost cost;
  };
  std::optional<Candidate> evaluate(const Homes &h, int64_t lookahead) const;
  /// Homes worth evaluating, most promising tables in memory first.
  std::vector<Homes> candidateHomes(int64_t lookahead) const;
};

/// Splits `bytes` over tables, whole rows, by weight; never more than `bytes`.
std::vector<int64_t> splitRetained(int64_t bytes,
                                   const std::vector<int64_t> &rowBytes,
                                   const std::vector<int64_t> &rows,
                                   const std::vector<double> &weights);

/// The error that names the smallest capacity of an overflowing tier.
PlanError overflowError(const Problem &problem, const Footprint &footprint,
                        int tier);

/// Greedy and cost-balanced: the dearest unit to the least loaded worker with
/// room. Tables that must stay together are one unit.
std::vector<int> assignWorkers(const Problem &problem,
                               const std::vector<TableLoad> &loads,
                               const std::vector<std::vector<int>> &homes,
                               std::vector<double> &workerLoad);

} // namespace terrace::planner

#endif // TERRACE_LIB_PLANNER_SEARCH_H
