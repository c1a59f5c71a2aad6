//===- Planner.h - Decides shards, homes, caches and lookahead --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The decision is joint: staging, pins in flight and retained rows compete for
// the same bytes. Feasibility is decided first, on the assignment that needs
// least of the fast tiers, so that the smallest legal budget named in an error
// is exact: one byte less fails, that number passes. Pins are obeyed or named.
// Deterministic; no MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_PLANNER_PLANNER_H
#define TERRACE_LIB_PLANNER_PLANNER_H

#include "CostModel/CostModel.h"

#include <optional>
#include <string>
#include <variant>

namespace terrace::planner {

/// Why there is no plan.
struct PlanError {
  std::string message; // one line: what, the numbers, the smallest change
  int tier = -1;       // that does not fit
  int pin = -1;        // that makes it infeasible, into Problem::pins
  int table = -1;
  bool lookaheadPin = false;
  int64_t smallest = 0; // legal capacity of `tier`; 0: none helps
};

/// A decision that was not taken, and what it would have cost.
struct RunnerUp {
  std::string what; // "lookahead 1", "customer in dram"
  double stepSeconds = 0;
};

struct Plan {
  Decision decision;
  Footprint footprint;
  StepCost cost;
  /// Whole-plan alternative; none where everything was pinned.
  std::optional<RunnerUp> runnerUp;
  /// Per table: the best plan with another home; none where it cannot differ.
  std::vector<std::optional<RunnerUp>> tableRunnerUp;
  /// Per table: what decided its home: "pinned", "capacity of dram", "cost".
  std::vector<std::string> why;
  /// What keeps the plan from being faster: "io", "capacity of dram", ...
  std::string binding;
  /// Largest over mean predicted cost of the workers; 1 where there is one.
  double balance = 1;
};

using PlanResult = std::variant<Plan, PlanError>;

PlanResult plan(const Problem &problem);

/// Checks and completes a decision from `--plan FILE`; it is not improved.
PlanResult planFrom(const Problem &problem, const Decision &decision);

} // namespace terrace::planner

#endif // TERRACE_LIB_PLANNER_PLANNER_H
