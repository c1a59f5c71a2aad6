//===- Verify.cpp - Everything that can be wrong with a schedule ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First the rules that make the graph well formed and free of deadlock (lanes,
// rings, the inequality), then bounds (pins, slots, write buffer), then a proof
// of every requirement. Later stages only run where earlier ones passed.
//
//===----------------------------------------------------------------------===//
#include "Schedule/HappensBefore.h"

#include <algorithm>
#include <climits>

namespace terrace::schedule {

namespace {

std::string at(const Op &op) {
  return op.name + " (" + std::to_string(op.ahead) + " ahead)";
}

class Verifier {
public:
  explicit Verifier(const Graph &graph) : graph(graph) {}

  std::vector<Finding> run() {
    structure();
    if (!findings.empty())
      return findings;
    inequality();
    rings();
    for (size_t g = 0; g < graph.groups.size(); ++g)
      if (graph.groups[g].cached)
        pins(int(g));
    if (findings.empty())
      order();
    return findings;
  }

private:
  void report(std::string rule, int op, std::string message, int other = -1) {
    Finding f;
    f.rule = std::move(rule);
    f.message = std::move(message);
    f.op = op;
    f.other = other;
    findings.push_back(std::move(f));
  }

  void structure() {
    int n = int(graph.ops.size());
    for (int i = 0; i < n; ++i) {
      const Op &op = graph.ops[i];
      if (op.lane < 0 || op.lane >= int(graph.lanes.size())) {
        report("lane", i, op.name + " has no lane");
        continue;
      }
      const Lane &lane = graph.lanes[op.lane];
      if (!canRunOn(op.kind, lane.kind))
        report("lane", i,
               op.name + " cannot run on lane " + lane.name + " of kind " +
                   name(lane.kind) + "; it needs " + lanesOf(op.kind));
      if (op.ahead < 0)
        report("ahead", i,
               op.name + " runs " + std::to_string(op.ahead) +
                   " batches ahead; at least 0");
      if (lane.kind == LaneKind::Caller && op.ahead != 0)
        report("ahead", i,
               op.name + " runs in the trainer's thread and cannot run ahead");
      for (const Wait &w : op.waits)
        if (w.op < 0 || w.op >= n || w.distance < 0)
          report("wait", i, op.name + " waits for an op that does not exist");
    }
    for (const Lane &lane : graph.lanes)
      if (lane.kind == LaneKind::Io && lane.depth < 1)
        report("lane", -1,
               "lane " + lane.name + " has depth " +
                   std::to_string(lane.depth) + "; at least 1");
    for (const Ring &ring : graph.rings)
      if (ring.depth < 1)
        report("ring-depth", -1,
               "ring " + ring.name + " has depth " +
                   std::to_string(ring.depth) + "; at least 1");
  }

  /// ahead(producer) + distance >= ahead(consumer), and program order within a
  /// batch: with it the order by (tick, batch, position) satisfies every wait,
  /// so nothing can deadlock.
  void inequality() {
    for (int i = 0; i < int(graph.ops.size()); ++i)
      for (const Wait &w : graph.ops[i].waits) {
        const Op &producer = graph.ops[w.op], &consumer = graph.ops[i];
        if (graph.runsBefore(w.op, 0, i, w.distance))
          continue;
        if (w.distance == 0 && producer.ahead >= consumer.ahead)
          report("inequality", i,
                 at(consumer) + " waits for " + producer.name +
                     ", which comes later in program order",
                 w.op);
        else
          report("inequality", i,
                 at(consumer) + " waits for " + at(producer) + " at distance " +
                     std::to_string(w.distance) + ": " +
                     std::to_string(producer.ahead) + " + " +
                     std::to_string(w.distance) + " < " +
                     std::to_string(consumer.ahead),
                 w.op);
      }
  }

  void rings() {
    std::vector<char> written(graph.rings.size(), 0);
    std::vector<int> firstUser(graph.rings.size(), -1);
    for (int i = 0; i < int(graph.ops.size()); ++i)
      for (const Effect &e : graph.ops[i].effects) {
        if (e.role != Role::Ring)
          continue;
        if (firstUser[e.target] < 0)
          firstUser[e.target] = i;
        if (!e.write && !written[e.target])
          report("ring", i,
                 graph.ops[i].name + " reads ring " +
                     graph.rings[e.target].name +
                     ", which no earlier op writes");
        written[e.target] |= e.write;
      }
    std::vector<int> least = smallestDepths(graph);
    for (size_t r = 0; r < graph.rings.size(); ++r) {
      const Ring &ring = graph.rings[r];
      if (ring.depth < least[r])
        report("ring-depth", firstUser[r],
               "ring " + ring.name + " has depth " +
                   std::to_string(ring.depth) + "; it needs " +
                   std::to_string(least[r]) +
                   ", since its slots are written that many batches before "
                   "the last reader is done");
    }
  }

  int count(OpKind kind, int group) const {
    return int(
        std::count_if(graph.ops.begin(), graph.ops.end(), [&](const Op &op) {
          return op.kind == kind && op.group == group;
        }));
  }

  void pins(int g) {
    const Group &group = graph.groups[g];
    bool whole = true;
    for (OpKind kind : {OpKind::Probe, OpKind::Fill, OpKind::Unpin})
      if (int n = count(kind, g); n != 1) {
        report("pins", graph.find(OpKind::Probe, g),
               "group " + group.name + " has " + std::to_string(n) + " " +
                   name(kind) + " ops; a pin set has exactly one");
        whole = false;
      }
    if (!whole)
      return;
    int probe = graph.find(OpKind::Probe, g);
    int unpin = graph.find(OpKind::Unpin, g);
    const Op &p = graph.ops[probe], &u = graph.ops[unpin];
    if (p.lane != u.lane)
      report("pins", unpin,
             "probe and unpin of " + group.name + " are on lanes " +
                 graph.lanes[p.lane].name + " and " + graph.lanes[u.lane].name +
                 "; one lane keeps the number of live pin sets bounded",
             probe);
    int64_t least = smallestSlots(graph, g);
    if (group.slots < least)
      report("slots", probe,
             "group " + group.name + " has " + std::to_string(group.slots) +
                 " slots; " + std::to_string(livePinSets(graph, g)) +
                 " batches in flight pin up to " +
                 std::to_string(group.maxUnique) + " rows each: it needs " +
                 std::to_string(least));
    // Before it recycles a slot of the write buffer, a spill awaits earlier
    // fetches that copy from it: these must not come later on the lanes.
    int fetch = graph.find(OpKind::Fetch, g);
    int spill = graph.find(OpKind::Spill, g);
    if (fetch >= 0 && spill >= 0 && graph.writeSlots(g) > 1 &&
        !graph.runsBefore(fetch, 0, spill, 1))
      report("write-buffer", spill,
             at(graph.ops[spill]) +
                 " awaits the fetch of the batch before, but " +
                 at(graph.ops[fetch]) + " comes later",
             fetch);
    // A row may leave, come back and leave again; its second write must not
    // overtake the first, which is awaited when the ring slot comes back.
    int most = livePinSets(graph, g) + 1;
    for (const Ring &ring : graph.rings) {
      if (ring.role == RingRole::Writebuf && ring.group == g &&
          ring.depth > most)
        report("write-buffer", spill,
               "ring " + ring.name + " has depth " +
                   std::to_string(ring.depth) + "; at most " +
                   std::to_string(most) +
                   ", or two writes of one row could be in flight");
    }
  }

  void order() {
    Order order(graph);
    for (const Requirement &r : requirements(graph)) {
      // What holds at this distance holds at larger ones if one of the two is
      // on a lane that runs in order.
      if (order.before(r.before, r.after, r.distance))
        continue;
      Finding f;
      f.rule = "order";
      f.op = r.after;
      f.other = r.before;
      f.distance = r.distance;
      f.interleaving = order.ancestors(r.after, r.distance);
      f.message = graph.ops[r.before].name + " (batch t) " + r.reason +
                  " (batch t" +
                  (r.distance ? " + " + std::to_string(r.distance) : "") +
                  "), but nothing orders them; with t = 0 this may run: " +
                  format(graph, f.interleaving) + " while " +
                  graph.ops[r.before].name + " (batch 0) has not";
      findings.push_back(std::move(f));
    }
  }

  const Graph &graph;
  std::vector<Finding> findings;
};

} // namespace

int livePinSets(const Graph &graph, int group) {
  int probe = graph.find(OpKind::Probe, group);
  int unpin = graph.find(OpKind::Unpin, group);
  if (probe < 0 || unpin < 0)
    return 1;
  return std::max(1, graph.ops[probe].ahead - graph.ops[unpin].ahead);
}

int64_t smallestSlots(const Graph &graph, int group) {
  const Group &g = graph.groups[group];
  if (!g.cached)
    return 0;
  return std::min(g.rows, livePinSets(graph, group) * g.maxUnique);
}

std::vector<int> smallestDepths(const Graph &graph) {
  // The reuse of a slot is a wait with distance = depth: the inequality.
  std::vector<int> depths(graph.rings.size(), 1);
  std::vector<int> mostAhead(graph.rings.size(), 0);        // of the writers
  std::vector<int> leastAhead(graph.rings.size(), INT_MAX); // of all users
  for (const Op &op : graph.ops)
    for (const Effect &e : op.effects) {
      if (e.role != Role::Ring || e.rows != RowSet::All)
        continue;
      if (e.write)
        mostAhead[e.target] = std::max(mostAhead[e.target], op.ahead);
      leastAhead[e.target] = std::min(leastAhead[e.target], op.ahead);
    }
  for (size_t r = 0; r < depths.size(); ++r)
    if (leastAhead[r] != INT_MAX)
      depths[r] = std::max(1, mostAhead[r] - leastAhead[r]);
  return depths;
}

std::vector<Finding> verify(const Graph &graph) {
  return Verifier(graph).run();
}

} // namespace terrace::schedule
