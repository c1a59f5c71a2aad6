//===- Step.h - The graph of a training step --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the ops, rings and effects of one step from a few facts about a model,
// in the program order that emb-to-plan gives. Tests, fuzzers and the planner
// get the graph without any IR.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SCHEDULE_STEP_H
#define TERRACE_SCHEDULE_STEP_H

#include "Schedule/Graph.h"

namespace terrace::schedule {

struct StepShape {
  std::vector<Group> groups;
  bool translate = false; ///< hashed ids
  bool dedup = false;     ///< bag-level: dedup and expand
  bool head = false;      ///< call
};

/// Lanes host, io, copy, work, caller; everything at 0 ahead, depth 1, without
/// waits.
Graph makeStep(const StepShape &shape);

/// The five lanes of every CPU plan.
std::vector<Lane> standardLanes();

} // namespace terrace::schedule

#endif // TERRACE_SCHEDULE_STEP_H
