//===- HappensBefore.cpp - Proves the order of a schedule -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reachability over the instances of a window of batches. Lane edges join an
// instance with the next one of its lane in the window, so a window has few
// edges; answers are kept per source.
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
  int n = int(graph.ops.size());
  w.span = distance + 1;
  int nodes = n * w.span;
  w.laneNext.resize(nodes);
  w.waitNext.resize(nodes);
  w.waitOf.resize(nodes);
  std::vector<std::vector<int>> perLane(graph.lanes.size());
  for (int i = 0; i < n; ++i) {
    const Op &op = graph.ops[i];
    for (int t = 0; t < w.span; ++t) {
      int node = i * w.span + t;
      if (graph.lanes[op.lane].inOrder())
        perLane[op.lane].push_back(node);
      for (size_t k = 0; k < op.waits.size(); ++k) {
        int from = t - op.waits[k].distance;
        if (from < 0 || from >= w.span || ignored(i, int(k)))
          continue;
        int source = op.waits[k].op * w.span + from;
        w.waitNext[source].push_back(node);
        w.waitOf[source].push_back({i, int(k)});
      }
    }
  }
  for (std::vector<int> &lane : perLane) {
    std::sort(lane.begin(), lane.end(), [&](int a, int b) {
      return graph.runsBefore(a / w.span, a % w.span, b / w.span, b % w.span);
    });
    for (size_t i = 1; i < lane.size(); ++i)
      w.laneNext[lane[i - 1]].push_back(lane[i]);
  }
  return w;
}

bool Order::before(int a, int b, int distance) const {
  Window &w = window(distance);
  auto [it, fresh] = w.reached.try_emplace(a);
  std::vector<char> &reached = it->second;
  if (fresh) {
    reached.assign(w.laneNext.size(), 0);
    std::vector<int> stack{a * w.span};
    while (!stack.empty()) {
      int node = stack.back();
      stack.pop_back();
      for (const auto *next : {&w.laneNext[node], &w.waitNext[node]})
        for (int to : *next)
          if (!reached[to]) {
            reached[to] = 1;
            stack.push_back(to);
          }
    }
  }
  return reached[b * w.span + distance];
}

void Order::ignore(int op, int wait) {
  dropped.insert({op, wait});
  for (auto &[distance, w] : windows) {
    w.reached.clear();
    const Wait &gone = graph.ops[op].waits[wait];
    for (int t = 0; t + gone.distance < w.span; ++t) {
      int source = gone.op * w.span + t;
      for (size_t i = 0; i < w.waitOf[source].size(); ++i)
        if (w.waitOf[source][i] == std::make_pair(op, wait)) {
          w.waitOf[source].erase(w.waitOf[source].begin() + long(i));
          w.waitNext[source].erase(w.waitNext[source].begin() + long(i));
          break;
        }
    }
  }
}

bool Order::beforeWithout(int a, int b, int distance, int op, int wait) const {
  Window &w = window(distance);
  std::vector<char> reached(w.laneNext.size(), 0);
  std::vector<int> stack{a * w.span};
  int target = b * w.span + distance;
  while (!stack.empty()) {
    int node = stack.back();
    stack.pop_back();
    if (node == target && !(a == b && distance == 0))
      return true;
    for (int to : w.laneNext[node])
      if (!reached[to]) {
        reached[to] = 1;
        stack.push_back(to);
      }
    for (size_t i = 0; i < w.waitNext[node].size(); ++i) {
      int to = w.waitNext[node][i];
      if (reached[to] || w.waitOf[node][i] == std::make_pair(op, wait))
        continue;
      reached[to] = 1;
      stack.push_back(to);
    }
  }
  return false;
}

std::vector<Instance> Order::ancestors(int b, int distance) const {
  Window &w = window(distance);
  std::vector<std::vector<int>> previous(w.laneNext.size());
  for (size_t node = 0; node < w.laneNext.size(); ++node)
    for (const auto *next : {&w.laneNext[node], &w.waitNext[node]})
      for (int to : *next)
        previous[to].push_back(int(node));
  std::vector<char> seen(previous.size(), 0);
  int target = b * w.span + distance;
  std::vector<int> stack{target};
  seen[target] = 1;
  std::vector<Instance> found;
  while (!stack.empty()) {
    int node = stack.back();
    stack.pop_back();
    found.push_back({node / w.span, node % w.span});
    for (int from : previous[node])
      if (!seen[from]) {
        seen[from] = 1;
        stack.push_back(from);
      }
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
