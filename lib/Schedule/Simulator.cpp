//===- Simulator.cpp - Runs a schedule in random legal order --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Half of the runs choose among all enabled events alike; the others give each
// lane a random weight that changes now and then, so that one lane runs far
// ahead of another as a slow device or a busy core makes it.
//
//===----------------------------------------------------------------------===//
#include "Schedule/Simulator.h"

#include "Schedule/ToyStore.h"

#include <algorithm>

namespace terrace::schedule {

namespace {

class Simulator {
public:
  Simulator(const Graph &graph, const SimulationOptions &options)
      : graph(graph), options(options), random(options.seed * 2654435761u + 1),
        store(graph, options.batches, random) {
    int n = int(graph.ops.size());
    state.assign(size_t(n) * size_t(options.batches), Waiting);
    queues.resize(graph.lanes.size());
    heads.assign(graph.lanes.size(), 0);
    for (int i = 0; i < n; ++i)
      for (int t = 0; t < options.batches; ++t)
        queues[graph.ops[i].lane].push_back({i, t});
    for (auto &queue : queues)
      std::sort(queue.begin(), queue.end(),
                [&](const Instance &a, const Instance &b) {
                  return graph.runsBefore(a.op, a.batch, b.op, b.batch);
                });
    left = size_t(n) * size_t(options.batches);
    weighted = options.seed % 2;
    reweigh();
  }

  SimulationResult run() {
    for (const Instance &i : options.prefix) {
      if (!mayStart(i)) {
        result.failure = "not legal: " + graph.ops[i.op].name + " (batch " +
                         std::to_string(i.batch) + ")";
        return std::move(result);
      }
      start(i);
      complete(i);
    }
    while (left && store.failure.empty()) {
      if (random() % 32 == 0)
        reweigh();
      if (!step()) {
        result.failure = "deadlock";
        return std::move(result);
      }
    }
    if (store.failure.empty())
      store.finish();
    result.failure = store.failure;
    return std::move(result);
  }

private:
  enum InstanceState : char { Waiting, Running, Done };

  char &at(const Instance &i) {
    return state[size_t(i.op) * size_t(options.batches) + size_t(i.batch)];
  }

  bool waitsDone(const Instance &i) {
    for (const Wait &w : graph.ops[i.op].waits) {
      int64_t batch = i.batch - w.distance;
      if (batch >= 0 && at({w.op, batch}) != Done)
        return false;
    }
    // What spill awaits by itself.
    const Op &op = graph.ops[i.op];
    if (op.kind == OpKind::Spill)
      if (int fetch = graph.find(OpKind::Fetch, op.group); fetch >= 0)
        for (int64_t t = i.batch - 1; t >= 0; --t)
          if (at({fetch, t}) != Done &&
              store.copiesFrom(op.group, int(t), int(i.batch)))
            return false;
    return true;
  }

  bool mayStart(const Instance &i) {
    int lane = graph.ops[i.op].lane;
    if (at(i) != Waiting || !waitsDone(i))
      return false;
    if (!graph.lanes[lane].inOrder())
      return true;
    const Instance &next = queues[lane][heads[lane]];
    return next.op == i.op && next.batch == i.batch;
  }

  void start(const Instance &i) {
    at(i) = Running;
    store.begin(i.op, int(i.batch));
  }

  void complete(const Instance &i) {
    store.end(i.op, int(i.batch));
    at(i) = Done;
    int lane = graph.ops[i.op].lane;
    auto &queue = queues[lane];
    while (heads[lane] < queue.size() && at(queue[heads[lane]]) == Done)
      ++heads[lane];
    result.run.push_back(i);
    --left;
  }

  void reweigh() {
    weights.clear();
    for (size_t l = 0; l < graph.lanes.size(); ++l)
      weights.push_back(weighted ? 1 + random() % 64 * (random() % 4) : 1);
  }

  /// One event: an instance of an in-order lane runs, one on io starts or
  /// ends. False where nothing can happen.
  bool step() {
    struct Event {
      Instance instance;
      bool end;
    };
    std::vector<Event> events;
    std::vector<uint64_t> weight;
    auto add = [&](const Instance &i, bool end, uint64_t w) {
      events.push_back({i, end});
      weight.push_back(w);
    };
    for (size_t l = 0; l < queues.size(); ++l) {
      bool inOrder = graph.lanes[l].inOrder();
      for (size_t k = heads[l]; k < queues[l].size(); ++k) {
        const Instance &i = queues[l][k];
        if (at(i) == Running)
          add(i, true, weights[l]);
        else if (at(i) == Waiting && waitsDone(i))
          add(i, false, weights[l]);
        // Far instances of io have unmet waits; look a few batches ahead.
        if (inOrder || k > heads[l] + 64)
          break;
      }
    }
    if (events.empty())
      return false;
    uint64_t total = 0;
    for (uint64_t w : weight)
      total += w;
    uint64_t pick = random() % total;
    size_t chosen = 0;
    while (pick >= weight[chosen])
      pick -= weight[chosen++];
    Event e = events[chosen];
    if (e.end) {
      complete(e.instance);
    } else {
      start(e.instance);
      if (graph.lanes[graph.ops[e.instance.op].lane].inOrder())
        complete(e.instance);
    }
    return true;
  }

  const Graph &graph;
  const SimulationOptions &options;
  std::mt19937_64 random;
  ToyStore store;
  SimulationResult result;
  std::vector<char> state;
  std::vector<std::vector<Instance>> queues; ///< by lane, in its order
  std::vector<size_t> heads;
  std::vector<uint64_t> weights;
  size_t left = 0;
  bool weighted = false;
};

} // namespace

SimulationResult simulate(const Graph &graph,
                          const SimulationOptions &options) {
  return Simulator(graph, options).run();
}

} // namespace terrace::schedule
