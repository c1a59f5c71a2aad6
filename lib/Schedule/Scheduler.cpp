//===- Scheduler.cpp - Chooses lanes, batches ahead and depths ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The prediction is a deterministic run of some batches in the one order that
// all waits and lanes allow (tick, batch, position): every instance starts when
// its lane is free and its waits have completed.
//
//===----------------------------------------------------------------------===//
#include "Schedule/Scheduler.h"

#include "Schedule/HappensBefore.h"
#include "Schedule/Stages.h"
#include "Schedule/Waits.h"

#include <algorithm>

namespace terrace::schedule {

bool applyLookahead(Graph &graph, int lookahead) {
  for (Op &op : graph.ops) {
    if (op.kind == OpKind::Other)
      continue;
    int lane = graph.lane(laneOf(op.kind));
    if (lane < 0)
      return false;
    op.lane = lane;
    op.ahead = aheadOf(op.kind, lookahead);
  }
  std::vector<int> least = smallestDepths(graph);
  for (size_t r = 0; r < graph.rings.size(); ++r)
    graph.rings[r].depth =
        std::max(depthOf(graph.rings[r].role, lookahead), least[r]);
  deriveWaits(graph);
  return true;
}

double predict(const Graph &graph, const std::vector<Cost> &costs) {
  constexpr int batches = 48, warm = 16;
  int n = int(graph.ops.size());
  std::vector<Instance> order;
  for (int i = 0; i < n; ++i)
    for (int t = 0; t < batches; ++t)
      order.push_back({i, t});
  std::sort(order.begin(), order.end(),
            [&](const Instance &a, const Instance &b) {
              return graph.runsBefore(a.op, a.batch, b.op, b.batch);
            });
  std::vector<double> laneFree(graph.lanes.size(), 0);
  std::vector<double> done(size_t(n) * batches, 0);
  std::vector<double> batchEnd(batches, 0);
  for (const Instance &instance : order) {
    const Op &op = graph.ops[instance.op];
    double start = 0;
    for (const Wait &w : op.waits)
      if (instance.batch >= w.distance)
        start = std::max(
            start,
            done[size_t(w.op) * batches + size_t(instance.batch - w.distance)]);
    const Cost &cost = costs[instance.op];
    double &lane = laneFree[op.lane];
    lane = std::max(lane, start) + cost.busy;
    double end = lane + cost.latency;
    if (graph.lanes[op.lane].inOrder())
      lane = end;
    done[size_t(instance.op) * batches + size_t(instance.batch)] = end;
    batchEnd[instance.batch] = std::max(batchEnd[instance.batch], end);
  }
  return (batchEnd[batches - 1] - batchEnd[warm - 1]) / (batches - warm);
}

LaneLoad busiestLane(const Graph &graph, const std::vector<Cost> &costs) {
  std::vector<double> seconds(graph.lanes.size(), 0);
  for (size_t i = 0; i < graph.ops.size(); ++i)
    seconds[graph.ops[i].lane] += costs[i].busy;
  auto most = std::max_element(seconds.begin(), seconds.end());
  if (most == seconds.end())
    return {};
  return {int(most - seconds.begin()), *most};
}

Choice chooseLookahead(const Graph &graph, const std::vector<Cost> &costs,
                       bool (*fits)(const Graph &, void *), void *context) {
  Choice choice;
  double best = -1;
  for (int lookahead = 0; lookahead <= maxLookahead; ++lookahead) {
    Graph candidate = graph;
    choice.tried.push_back(-1);
    if (!applyLookahead(candidate, lookahead) ||
        (fits && !fits(candidate, context)))
      continue;
    bool slotsFit = true;
    for (int g = 0; g < int(candidate.groups.size()); ++g)
      slotsFit &= candidate.groups[g].slots >= smallestSlots(candidate, g);
    if (!slotsFit)
      continue;
    double seconds = predict(candidate, costs);
    choice.tried.back() = seconds;
    if (best < 0 || seconds < best)
      best = seconds;
  }
  for (int lookahead = 0; lookahead < int(choice.tried.size()); ++lookahead)
    if (double s = choice.tried[lookahead]; s >= 0 && s <= best * 1.05) {
      choice.lookahead = lookahead;
      choice.seconds = s;
      break;
    }
  return choice;
}

} // namespace terrace::schedule
