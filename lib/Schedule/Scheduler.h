//===- Scheduler.h - Chooses lanes, batches ahead and depths ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Applies the stages of a lookahead to a graph, predicts its steady-state step
// time from stage costs by running the lanes, and picks the lookahead that is
// fastest among those that fit. Legality is HappensBefore's business.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SCHEDULE_SCHEDULER_H
#define TERRACE_SCHEDULE_SCHEDULER_H

#include "Schedule/Graph.h"

namespace terrace::schedule {

/// Seconds of an op: `busy` occupies its lane (for io: the device), `latency`
/// passes before it has completed but lets others go on.
struct Cost {
  double busy = 0;
  double latency = 0;
};

/// Lanes by name, batches ahead, ring depths and essential waits for a
/// lookahead of 0 .. maxLookahead. False where a lane is missing.
bool applyLookahead(Graph &graph, int lookahead);

/// Seconds per batch once the pipeline is full; costs are by op.
double predict(const Graph &graph, const std::vector<Cost> &costs);

/// Why a schedule is not faster: the lane that is busy longest, per batch.
struct LaneLoad {
  int lane = 0;
  double seconds = 0;
};
LaneLoad busiestLane(const Graph &graph, const std::vector<Cost> &costs);

struct Choice {
  int lookahead = 0;
  double seconds = 0; ///< per batch
  /// By lookahead; negative: does not fit the groups' slots.
  std::vector<double> tried;
};

/// The smallest lookahead within 5 % of the fastest legal one. `fits` may
/// refuse one (for example over a budget); null accepts all.
Choice chooseLookahead(const Graph &graph, const std::vector<Cost> &costs,
                       bool (*fits)(const Graph &, void *) = nullptr,
                       void *context = nullptr);

} // namespace terrace::schedule

#endif // TERRACE_SCHEDULE_SCHEDULER_H
