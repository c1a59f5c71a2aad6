//===- Waits.cpp - The waits that a program needs -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transitive reduction: start from all required pairs, drop those that lanes
// order anyway, then drop each that the others imply. A path that proves a wait
// stays inside the batches that the wait spans, so a wait that was dropped
// because of another one stays proven when that one is replaced by a path.
// Both steps are linear in the waits, whatever the number of groups.
//
//===----------------------------------------------------------------------===//
#include "Schedule/Waits.h"

#include "Schedule/HappensBefore.h"

#include <algorithm>
#include <map>
#include <tuple>

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
  // Of the ops of one lane that are awaited at one distance, the last will do:
  // keyed by who waits, distance and lane. Io lanes order nothing.
  std::map<std::tuple<int, int, int>, int> last;
  for (const Requirement &r : requirements(graph)) {
    if (laneOrders(graph, r))
      continue;
    int lane = graph.ops[r.before].lane;
    if (!graph.lanes[lane].inOrder()) {
      addWait(graph.ops[r.after], {r.before, r.distance});
      continue;
    }
    auto [it, fresh] = last.try_emplace({r.after, r.distance, lane}, r.before);
    if (!fresh && graph.runsBefore(it->second, 0, r.before, 0))
      it->second = r.before;
  }
  for (auto &[key, before] : last)
    addWait(graph.ops[std::get<0>(key)], {before, std::get<1>(key)});

  // What other waits and lanes imply goes; that changes no clock, since the
  // transitive reduction of an acyclic order keeps the order.
  Order order(graph);
  std::vector<std::vector<Wait>> kept(graph.ops.size());
  for (int i = 0; i < int(graph.ops.size()); ++i) {
    for (const Wait &w : graph.ops[i].waits)
      if (!order.beforeOtherwise(w.op, i, w.distance))
        kept[i].push_back(w);
    std::sort(kept[i].begin(), kept[i].end(), [](const Wait &a, const Wait &b) {
      return std::make_pair(a.distance, a.op) <
             std::make_pair(b.distance, b.op);
    });
  }
  for (size_t i = 0; i < kept.size(); ++i)
    graph.ops[i].waits = std::move(kept[i]);
}

void addRingWaits(Graph &graph) {
  std::vector<std::vector<int>> writers(graph.rings.size());
  std::vector<std::vector<int>> users(graph.rings.size());
  for (int i = 0; i < int(graph.ops.size()); ++i)
    for (const Effect &e : graph.ops[i].effects) {
      if (e.role != Role::Ring || e.rows != RowSet::All)
        continue;
      users[e.target].push_back(i);
      if (e.write)
        writers[e.target].push_back(i);
    }
  for (size_t r = 0; r < graph.rings.size(); ++r)
    for (int writer : writers[r])
      for (int user : users[r])
        // A ring that is too shallow is one finding, not one per user.
        if (graph.runsBefore(user, 0, writer, graph.rings[r].depth))
          graph.ops[writer].waits.push_back({user, graph.rings[r].depth});
}

} // namespace terrace::schedule
