//===- HappensBefore.cpp - Proves the order of a schedule -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks over the instances of a window of batches, filled in one pass:
// a program has few lanes, so a thousand groups cost no more than their ops.
//
//===----------------------------------------------------------------------===//
#include "Schedule/HappensBefore.h"

#include <algorithm>

namespace terrace::schedule {

Order::Window &Order::window(int distance) const {
  auto [it, fresh] = windows.try_emplace(distance);
  Window &w = it->second;
  if (!fresh)
    return w;
  w.span = distance + 1;
  int nodes = int(graph.ops.size()) * w.span;
  int lanes = int(graph.lanes.size());
  // The order by (tick, batch, position) satisfies lanes and legal waits.
  std::vector<int> order;
  for (int node = 0; node < nodes; ++node)
    order.push_back(node);
  auto runsBefore = [&](int a, int b) {
    return graph.runsBefore(a / w.span, a % w.span, b / w.span, b % w.span);
  };
  std::sort(order.begin(), order.end(), runsBefore);
  w.position.assign(size_t(nodes), -1);
  w.previous.assign(size_t(nodes), -1);
  w.clock.assign(size_t(nodes) * size_t(lanes), -1);
  w.released.resize(size_t(nodes));
  std::vector<int> last(size_t(lanes), -1), count(size_t(lanes), 0);
  for (int node : order) {
    const Op &op = graph.ops[node / w.span];
    int *clock = &w.clock[size_t(node) * size_t(lanes)];
    auto join = [&](int from) {
      const int *other = &w.clock[size_t(from) * size_t(lanes)];
      for (int l = 0; l < lanes; ++l)
        clock[l] = std::max(clock[l], other[l]);
      int lane = graph.ops[from / w.span].lane;
      if (graph.lanes[lane].inOrder())
        clock[lane] = std::max(clock[lane], w.position[from]);
    };
    if (graph.lanes[op.lane].inOrder()) {
      w.position[node] = count[op.lane]++;
      w.previous[node] = last[op.lane];
      if (last[op.lane] >= 0)
        join(last[op.lane]);
      last[op.lane] = node;
    }
    for (const Wait &wait : op.waits) {
      int batch = node % w.span - wait.distance;
      int from = wait.op * w.span + batch;
      if (batch < 0 || !runsBefore(from, node))
        continue;
      join(from);
      if (!graph.lanes[graph.ops[wait.op].lane].inOrder())
        w.released[from].push_back(node);
    }
  }
  return w;
}

bool Order::before(const Window &w, int a, int b) const {
  int lane = graph.ops[a / w.span].lane;
  if (graph.lanes[lane].inOrder())
    return w.clock[size_t(b) * graph.lanes.size() + size_t(lane)] >=
           w.position[a];
  for (int next : w.released[a])
    if (next == b || before(w, next, b))
      return true;
  return false;
}

bool Order::before(int a, int b, int distance) const {
  const Window &w = window(distance);
  return before(w, a * w.span, b * w.span + distance);
}

bool Order::beforeOtherwise(int a, int b, int distance) const {
  const Window &w = window(distance);
  int source = a * w.span, target = b * w.span + distance;
  auto through = [&](int middle) {
    return middle >= 0 && (middle == source || before(w, source, middle));
  };
  if (through(w.previous[target]))
    return true;
  for (const Wait &wait : graph.ops[b].waits) {
    int batch = distance - wait.distance;
    if (batch < 0 || (wait.op == a && wait.distance == distance) ||
        !graph.runsBefore(wait.op, batch, b, distance))
      continue;
    if (through(wait.op * w.span + batch))
      return true;
  }
  return false;
}

std::vector<Instance> Order::ancestors(int b, int distance) const {
  const Window &w = window(distance);
  std::vector<char> seen(w.previous.size(), 0);
  std::vector<int> stack{b * w.span + distance};
  seen[stack.front()] = 1;
  std::vector<Instance> found;
  auto visit = [&](int node) {
    if (node >= 0 && !seen[node]) {
      seen[node] = 1;
      stack.push_back(node);
    }
  };
  while (!stack.empty()) {
    int node = stack.back();
    stack.pop_back();
    found.push_back({node / w.span, node % w.span});
    visit(w.previous[node]);
    for (const Wait &wait : graph.ops[node / w.span].waits)
      if (int batch = node % w.span - wait.distance; batch >= 0)
        visit(wait.op * w.span + batch);
  }
  // Waits obey the inequality (verify checks it first), so this order is legal.
  std::sort(found.begin(), found.end(),
            [&](const Instance &x, const Instance &y) {
              return graph.runsBefore(x.op, x.batch, y.op, y.batch);
            });
  return found;
}

std::string format(const Graph &graph, const std::vector<Instance> &run) {
  // The end of the run is what the reader needs; the start is set-up.
  constexpr size_t shown = 14;
  std::string text;
  size_t first = run.size() > shown ? run.size() - shown : 0;
  if (first)
    text = std::to_string(first) + " earlier instances, ";
  for (size_t i = first; i < run.size(); ++i)
    text += (i == first ? "" : ", ") + graph.ops[run[i].op].name + " (batch " +
            std::to_string(run[i].batch) + ")";
  return text;
}

} // namespace terrace::schedule
