//===- Simulator.h - Runs a schedule in random legal order ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executes any schedule, proven or not, on a toy store with homes, slots,
// directory, write buffer and rings, taking one of the orders that waits and
// lanes allow. It knows nothing of the verifier's rules: it looks at the values
// of rows and at whose data a ring slot holds. Rows are few, so that batches
// collide all the time. Some batches are released without an update.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SCHEDULE_SIMULATOR_H
#define TERRACE_SCHEDULE_SIMULATOR_H

#include "Schedule/HappensBefore.h"

namespace terrace::schedule {

struct SimulationOptions {
  uint64_t seed = 0;
  int batches = 8;
  /// Runs these first, in this order; an instance that may not run yet is a
  /// failure "not legal".
  std::vector<Instance> prefix;
};

struct SimulationResult {
  /// Empty: every read saw what it had to see, and all updates are there at the
  /// end. Else what went wrong first: "gather_pool @g: stale row", "deadlock".
  std::string failure;
  std::vector<Instance> run; ///< in order of completion
};

SimulationResult simulate(const Graph &graph, const SimulationOptions &options);

} // namespace terrace::schedule

#endif // TERRACE_SCHEDULE_SIMULATOR_H
