//===- HappensBefore.h - Proves the order of a schedule ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Derives from the declared effects which instances must be ordered, and
// proves each pair from waits and lane order. A proof may pass only through
// batches t .. t + distance: later ones do not exist while the pipeline
// drains. What cannot be proven is a finding with the shortest interleaving
// that breaks it.
//
// What store and fetch promise: a store has completed once its writes are
// queued, and a home read sees every write queued before it; the slot of the
// write buffer is free after device completion and after the last fetch that
// copies from it; spill awaits both before it recycles one. A probe decides
// where a missing row lies: in the write buffer if it left less than depth
// batches ago, else at home.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SCHEDULE_HAPPENSBEFORE_H
#define TERRACE_SCHEDULE_HAPPENSBEFORE_H

#include "Schedule/Graph.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace terrace::schedule {

struct Instance {
  int op = 0;
  int64_t batch = 0;
};

/// (before, t) must have completed before (after, t + distance) starts.
struct Requirement {
  int before = 0;
  int after = 0;
  int distance = 0;
  std::string reason; ///< e.g. "pooled rows must be filled first"
};

/// All pairs that the effects demand, each once, in a stable order.
std::vector<Requirement> requirements(const Graph &graph);

/// Answers happens-before between instances, from vector clocks: for each
/// instance the last one of every in-order lane that has completed before. The
/// graph must outlive it and not change meanwhile. Waits against the program's
/// order (which verify refuses) prove nothing.
class Order {
public:
  explicit Order(const Graph &graph) : graph(graph) {}

  /// Is (a, t) before (b, t + distance) in every run?
  bool before(int a, int b, int distance) const;
  /// Would it be, were the wait of b for (a, -distance) not there?
  bool beforeOtherwise(int a, int b, int distance) const;
  /// The instances that must complete before (b, distance) starts, (b,
  /// distance) included, in an order in which they may run.
  std::vector<Instance> ancestors(int b, int distance) const;

private:
  /// The instances of batches 0 .. distance: op * span + batch.
  struct Window {
    int span = 0;
    std::vector<int> position; ///< in its lane
    std::vector<int> previous; ///< in its lane, or -1
    std::vector<int> clock;    ///< instance * lanes + lane: position, or -1
    std::vector<std::vector<int>> released; ///< of io instances: who waits
  };
  Window &window(int distance) const;
  bool before(const Window &window, int a, int b) const;

  const Graph &graph;
  mutable std::map<int, Window> windows;
};

struct Finding {
  std::string rule; ///< kebab-case, stable: "order", "inequality", "lane", ...
  std::string message;
  int op = -1;    ///< where to report
  int other = -1; ///< the other op of the pair
  int distance = 0;
  /// For "order": runs to the end of (op, batch distance) while (other, 0) has
  /// not run.
  std::vector<Instance> interleaving;
};

/// Everything that is wrong with a schedule; empty: proven.
std::vector<Finding> verify(const Graph &graph);

/// Pin sets of a group that are alive at once: slots must hold so many times
/// maxUnique rows. At least 1.
int livePinSets(const Graph &graph, int group);
/// The smallest number of slots that a group can run with.
int64_t smallestSlots(const Graph &graph, int group);
/// The smallest depth that each ring can run with.
std::vector<int> smallestDepths(const Graph &graph);

/// "probe @g64 (batch 1), fetch @g64 (batch 1)".
std::string format(const Graph &graph, const std::vector<Instance> &run);

} // namespace terrace::schedule

#endif // TERRACE_SCHEDULE_HAPPENSBEFORE_H
