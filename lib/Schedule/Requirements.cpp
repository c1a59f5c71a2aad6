//===- Requirements.cpp - Which instances must be ordered -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two effects on the same thing conflict where one writes and their row sets
// can meet. Row sets meet only so: misses and pins with the pins of this and
// later batches; victims with the misses of the same batch through the slot,
// and with the misses of later batches through write buffer and home. All else
// is kept apart by pins: a row that a batch in flight uses is no victim, which
// holds since every user of a pin set runs between its probe and its unpin,
// and both run on one lane.
//
//===----------------------------------------------------------------------===//
#include "Schedule/HappensBefore.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace terrace::schedule {

namespace {

/// In which order one batch uses rows of two sets; pins follow program order.
int rank(RowSet rows) {
  switch (rows) {
  case RowSet::Victim:
    return 0;
  case RowSet::Miss:
    return 1;
  default:
    return 2;
  }
}

/// Can rows of `a` at batch t be rows of `b` at the same batch (in role)?
bool meetNow(Role role, RowSet a, RowSet b) {
  if (role == Role::Head || role == Role::Cut)
    return true;
  auto in = [&](RowSet x, RowSet y) {
    return (a == x && b == y) || (a == y && b == x);
  };
  if (in(RowSet::Pin, RowSet::Pin) || in(RowSet::Miss, RowSet::Pin) ||
      in(RowSet::Miss, RowSet::Miss))
    return role != Role::Directory;
  return in(RowSet::Victim, RowSet::Miss) && role == Role::Slots;
}

/// Can rows of `a` at batch t be rows of `b` at a later batch?
bool meetLater(Role role, RowSet a, RowSet b) {
  if (role == Role::Head || role == Role::Cut)
    return true;
  if ((a == RowSet::Pin || a == RowSet::Miss) && b == RowSet::Pin)
    return role != Role::Directory;
  return a == RowSet::Victim && b == RowSet::Miss && role == Role::Home;
}

std::string thing(const Graph &graph, const Effect &effect) {
  switch (effect.role) {
  case Role::Directory:
    return "the directory of " + graph.groups[effect.target].name;
  case Role::Slots:
    return "rows in slots of " + graph.groups[effect.target].name;
  case Role::Home:
    return "rows at home of " + graph.groups[effect.target].name;
  case Role::Ring:
    return "ring " + graph.rings[effect.target].name;
  case Role::Head:
    return "the head's parameters";
  case Role::Cut:
    return "the cut of a checkpoint";
  }
  return "";
}

class Collector {
public:
  explicit Collector(const Graph &graph) : graph(graph) {}

  void add(int before, int after, int distance, std::string reason) {
    if (before == after && distance == 0)
      return;
    if (seen.insert({before, after, distance}).second)
      found.push_back({before, after, distance, std::move(reason)});
  }

  void conflict(int a, const Effect &ea, int b, const Effect &eb) {
    if (ea.role != eb.role || ea.target != eb.target ||
        (!ea.write && !eb.write))
      return;
    auto why = [&](bool aFirst) {
      const Effect &first = aFirst ? ea : eb, &second = aFirst ? eb : ea;
      return std::string(first.write ? "writes" : "reads") + " " +
             thing(graph, ea) + " that " + graph.ops[aFirst ? b : a].name +
             (second.write ? " overwrites" : " reads");
    };
    if (ea.role == Role::Ring &&
        (ea.rows == RowSet::Miss || eb.rows == RowSet::Miss)) {
      // A read of earlier slots comes after the write of the batch before. The
      // write that recycles the oldest of them awaits it (see verify).
      bool aWrites = ea.write;
      if (graph.rings[ea.target].depth > 1)
        add(aWrites ? a : b, aWrites ? b : a, 1, why(aWrites));
      return;
    }
    if (ea.role == Role::Ring) {
      // Within a batch by program order; across batches the slot comes back
      // after `depth` batches.
      int depth = graph.rings[ea.target].depth;
      if (a < b)
        add(a, b, 0, why(true));
      if (eb.write)
        add(a, b, depth, why(true));
      if (a != b && ea.write)
        add(b, a, depth, why(false));
      return;
    }
    if (a != b && meetNow(ea.role, ea.rows, eb.rows)) {
      int ra = rank(ea.rows), rb = rank(eb.rows);
      bool aFirst = ra != rb ? ra < rb : a < b;
      add(aFirst ? a : b, aFirst ? b : a, 0, why(aFirst));
    }
    if (meetLater(ea.role, ea.rows, eb.rows))
      add(a, b, later(ea), why(true));
    if (a != b && meetLater(ea.role, eb.rows, ea.rows))
      add(b, a, later(eb), why(false));
  }

  /// From which distance on do the rows of an effect meet those of later
  /// batches outside rings? Victims are read from the write buffer as long as
  /// it holds them; one batch more follows from the reuse of the ring slot.
  int later(const Effect &first) const {
    return first.rows == RowSet::Victim && first.role == Role::Home
               ? graph.writeSlots(first.target)
               : 1;
  }

  /// Users of a pin set run between its probe and its unpin.
  void pins(int group) {
    int probe = graph.find(OpKind::Probe, group);
    int unpin = graph.find(OpKind::Unpin, group);
    if (probe < 0 || unpin < 0)
      return; // reported by verify
    for (int i = 0; i < int(graph.ops.size()); ++i)
      for (const Effect &e : graph.ops[i].effects) {
        bool user = (e.role == Role::Slots || e.role == Role::Home) &&
                    e.target == group;
        if (!user || i == probe || i == unpin)
          continue;
        add(probe, i, 0, "pins the rows that " + graph.ops[i].name + " uses");
        // Device completion of a store is no use of the slots.
        if (e.role == Role::Slots || !e.write)
          add(i, unpin, 0,
              "uses the rows that " + graph.ops[unpin].name + " releases");
      }
    add(probe, unpin, 0, "pins the rows that are released");
  }

  std::vector<Requirement> take() { return std::move(found); }

private:
  const Graph &graph;
  std::vector<Requirement> found;
  std::set<std::tuple<int, int, int>> seen;
};

} // namespace

std::vector<Requirement> requirements(const Graph &graph) {
  Collector collector(graph);
  int n = int(graph.ops.size());
  // By target, so that a thousand ops of many groups do not meet pairwise.
  std::map<std::pair<int, int>, std::vector<std::pair<int, const Effect *>>>
      users;
  for (int i = 0; i < n; ++i)
    for (const Effect &e : graph.ops[i].effects)
      users[{int(e.role), e.target}].push_back({i, &e});
  for (auto &[key, list] : users)
    for (size_t i = 0; i < list.size(); ++i)
      for (size_t j = i; j < list.size(); ++j)
        collector.conflict(list[i].first, *list[i].second, list[j].first,
                           *list[j].second);
  for (size_t g = 0; g < graph.groups.size(); ++g)
    if (graph.groups[g].cached)
      collector.pins(int(g));
  return collector.take();
}

} // namespace terrace::schedule
