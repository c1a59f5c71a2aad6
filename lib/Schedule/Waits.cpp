//===- Waits.cpp - The waits that a program needs -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transitive reduction: start from all required pairs, drop those that lanes
// order anyway, then drop each that the others imply. A path that proves a wait
// stays inside the batches that the wait spans, so a wait that was dropped
// because of another one stays proven when that one is replaced by a path.
//
//===----------------------------------------------------------------------===//
#include "Schedule/Waits.h"

#include "Schedule/HappensBefore.h"

#include <algorithm>
#include <optional>

namespace terrace::schedule {

namespace {

void addWait(Op &op, Wait wait) {
  if (std::find(op.waits.begin(), op.waits.end(), wait) == op.waits.end())
    op.waits.push_back(wait);
}

/// Ordered by their lane alone?
bool laneOrders(const Graph &graph, const Requirement &r) {
  const Op &a = graph.ops[r.before], &b = graph.ops[r.after];
  return a.lane == b.lane && graph.lanes[a.lane].inOrder() &&
         graph.runsBefore(r.before, 0, r.after, r.distance);
}

} // namespace

void deriveWaits(Graph &graph) {
  for (Op &op : graph.ops)
    op.waits.clear();
  std::vector<Requirement> pairs = requirements(graph);
  for (const Requirement &r : pairs)
    if (!laneOrders(graph, r))
      addWait(graph.ops[r.after], {r.before, r.distance});

  // Far waits first, then those whose ends lie far apart in the step: both are
  // likely implied by shorter ones.
  struct Candidate {
    int op;
    Wait wait;
  };
  std::vector<Candidate> candidates;
  for (int i = 0; i < int(graph.ops.size()); ++i)
    for (const Wait &w : graph.ops[i].waits)
      candidates.push_back({i, w});
  auto reach = [](const Candidate &c) { return std::abs(c.op - c.wait.op); };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate &a, const Candidate &b) {
                     if (a.wait.distance != b.wait.distance)
                       return a.wait.distance > b.wait.distance;
                     return reach(a) > reach(b);
                   });
  // One Order serves all: dropped waits are marked, not removed, until the end.
  Order order(graph);
  for (const Candidate &c : candidates) {
    std::vector<Wait> &waits = graph.ops[c.op].waits;
    int index =
        int(std::find(waits.begin(), waits.end(), c.wait) - waits.begin());
    if (order.beforeWithout(c.wait.op, c.op, c.wait.distance, c.op, index))
      order.ignore(c.op, index);
  }
  for (int i = 0; i < int(graph.ops.size()); ++i) {
    std::vector<Wait> kept;
    for (size_t k = 0; k < graph.ops[i].waits.size(); ++k)
      if (!order.ignored(i, int(k)))
        kept.push_back(graph.ops[i].waits[k]);
    std::sort(kept.begin(), kept.end(), [](const Wait &a, const Wait &b) {
      return std::make_pair(a.distance, a.op) <
             std::make_pair(b.distance, b.op);
    });
    graph.ops[i].waits = std::move(kept);
  }
}

void addRingWaits(Graph &graph) {
  for (int r = 0; r < int(graph.rings.size()); ++r)
    for (Op &writer : graph.ops)
      for (const Effect &w : writer.effects) {
        if (w.role != Role::Ring || w.target != r || !w.write)
          continue;
        for (int u = 0; u < int(graph.ops.size()); ++u)
          for (const Effect &e : graph.ops[u].effects)
            if (e.role == Role::Ring && e.target == r && e.rows == RowSet::All)
              addWait(writer, {u, graph.rings[r].depth});
      }
}

} // namespace terrace::schedule
