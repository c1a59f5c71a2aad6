//===- Graph.cpp - The schedule of a program, as plain data ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names, lane capabilities and the declared effects of every op. The table of
// effects is the single source of the ordering rules: HappensBefore derives
// them from it and never asks for an op by name.
//
//===----------------------------------------------------------------------===//
#include "Schedule/Graph.h"

#include <iterator>
#include <tuple>

namespace terrace::schedule {

namespace {
const char *const opNames[] = {
    "ingest", "check",       "translate",      "dedup", "unique",
    "touch",  "probe",       "spill",          "store", "fetch",
    "fill",   "gather_pool", "expand",         "call",  "handoff",
    "resume", "preserve",    "segment_update", "unpin", "other"};
const char *const laneNames[] = {"cpu", "stream", "io", "caller"};
const char *const ringNames[] = {"ingest",  "dedup",    "unique", "probe",
                                 "staging", "writebuf", "pooled", "expanded",
                                 "grads",   "other"};
static_assert(std::size(opNames) == size_t(OpKind::Other) + 1, "one per kind");
static_assert(std::size(ringNames) == size_t(RingRole::Other) + 1,
              "one per role");

/// A group's ring is used by the ops of that group; pooled rings also by the
/// ops that take all groups together.
bool ringOfOp(const Ring &ring, const Op &op) {
  return ring.group < 0 || op.group < 0 || ring.group == op.group;
}
} // namespace

const char *name(OpKind kind) { return opNames[size_t(kind)]; }
const char *name(LaneKind kind) { return laneNames[size_t(kind)]; }
const char *name(RingRole role) { return ringNames[size_t(role)]; }

bool parse(const std::string &text, OpKind &kind) {
  for (size_t i = 0; i < std::size(opNames); ++i)
    if (text == opNames[i]) {
      kind = OpKind(i);
      return true;
    }
  return false;
}

bool parse(const std::string &text, RingRole &role) {
  for (size_t i = 0; i < std::size(ringNames); ++i)
    if (text == ringNames[i]) {
      role = RingRole(i);
      return true;
    }
  return false;
}

bool canRunOn(OpKind kind, LaneKind lane) {
  switch (kind) {
  case OpKind::Ingest:
  case OpKind::Check:
  case OpKind::Translate:
  case OpKind::Dedup:
  case OpKind::Unique:
  case OpKind::Touch:
  case OpKind::Probe:
  case OpKind::Unpin:
    return lane == LaneKind::Cpu;
  case OpKind::Spill:
  case OpKind::Fill:
  case OpKind::GatherPool:
  case OpKind::Expand:
  case OpKind::Call:
  case OpKind::Preserve:
  case OpKind::SegmentUpdate:
    return lane == LaneKind::Cpu || lane == LaneKind::Stream;
  case OpKind::Store:
  case OpKind::Fetch:
    return lane == LaneKind::Io;
  case OpKind::Handoff:
  case OpKind::Resume:
    return lane == LaneKind::Caller;
  case OpKind::Other:
    return true;
  }
  return false;
}

std::string lanesOf(OpKind kind) {
  std::string text;
  for (LaneKind lane :
       {LaneKind::Cpu, LaneKind::Stream, LaneKind::Io, LaneKind::Caller})
    if (canRunOn(kind, lane))
      text += (text.empty() ? "" : " or ") + std::string(name(lane));
  return text;
}

std::vector<Effect> stateEffects(OpKind kind, int group, bool cached,
                                 bool head) {
  // Rows of a group in memory live in their home; no directory stands before.
  Role rows = cached ? Role::Slots : Role::Home;
  switch (kind) {
  case OpKind::Unique:
  case OpKind::Touch:
    // A memory row that was never touched gets its initial value here.
    if (!cached)
      return {{Role::Home, group, RowSet::Miss, true}};
    return {};
  case OpKind::Probe:
    return {{Role::Directory, group, RowSet::All, true}};
  case OpKind::Spill:
    return {{Role::Slots, group, RowSet::Victim, false}};
  case OpKind::Store:
    return {{Role::Home, group, RowSet::Victim, true}};
  case OpKind::Fetch:
    return {{Role::Home, group, RowSet::Miss, false}};
  case OpKind::Fill:
    return {{Role::Slots, group, RowSet::Miss, true}};
  case OpKind::GatherPool:
    return {{rows, group, RowSet::Pin, false}};
  case OpKind::Preserve:
    return {{rows, group, RowSet::Pin, false},
            {Role::Cut, 0, RowSet::All, false}};
  case OpKind::SegmentUpdate:
    return {{rows, group, RowSet::Pin, true}};
  case OpKind::Unpin:
    return {{Role::Directory, group, RowSet::Pin, true}};
  case OpKind::Call:
    return {{Role::Head, 0, RowSet::All, false}};
  case OpKind::Resume:
    // The head's own parameters step with the word to go on.
    if (head)
      return {{Role::Cut, 0, RowSet::All, true},
              {Role::Head, 0, RowSet::All, true}};
    return {{Role::Cut, 0, RowSet::All, true}};
  default:
    return {};
  }
}

bool writesRing(OpKind kind, RingRole role) {
  switch (role) {
  case RingRole::Ingest:
    return kind == OpKind::Ingest || kind == OpKind::Check ||
           kind == OpKind::Translate;
  case RingRole::Dedup:
    return kind == OpKind::Dedup;
  case RingRole::Unique:
    return kind == OpKind::Unique;
  case RingRole::Probe:
    return kind == OpKind::Probe;
  case RingRole::Staging:
    return kind == OpKind::Fetch;
  case RingRole::Writebuf:
    return kind == OpKind::Spill;
  case RingRole::Pooled:
    return kind == OpKind::GatherPool;
  case RingRole::Expanded:
    return kind == OpKind::Expand;
  case RingRole::Grads:
    return kind == OpKind::Call || kind == OpKind::Resume;
  case RingRole::Other:
    return false;
  }
  return false;
}

bool readsRing(OpKind kind, RingRole role) {
  auto in = [&](std::initializer_list<OpKind> kinds) {
    for (OpKind k : kinds)
      if (k == kind)
        return true;
    return false;
  };
  switch (role) {
  case RingRole::Ingest:
    return in({OpKind::Check, OpKind::Translate, OpKind::Dedup, OpKind::Unique,
               OpKind::Touch, OpKind::GatherPool, OpKind::Expand, OpKind::Call,
               OpKind::Handoff, OpKind::Resume, OpKind::SegmentUpdate});
  case RingRole::Dedup:
    return in({OpKind::Unique, OpKind::GatherPool, OpKind::Expand, OpKind::Call,
               OpKind::Resume, OpKind::SegmentUpdate});
  case RingRole::Unique:
    return in({OpKind::Probe, OpKind::Fetch, OpKind::Fill, OpKind::GatherPool,
               OpKind::Preserve, OpKind::SegmentUpdate});
  case RingRole::Probe:
    return in({OpKind::Spill, OpKind::Fetch, OpKind::Fill, OpKind::GatherPool,
               OpKind::Preserve, OpKind::SegmentUpdate, OpKind::Unpin});
  case RingRole::Staging:
    return kind == OpKind::Fill;
  case RingRole::Writebuf:
    return kind == OpKind::Store;
  case RingRole::Pooled:
    return in({OpKind::Expand, OpKind::Call, OpKind::Handoff, OpKind::Resume});
  case RingRole::Expanded:
    return in({OpKind::Call, OpKind::Handoff});
  case RingRole::Grads:
    return in({OpKind::Handoff, OpKind::Resume, OpKind::SegmentUpdate});
  case RingRole::Other:
    return false;
  }
  return false;
}

int Graph::lane(const std::string &name) const {
  for (size_t i = 0; i < lanes.size(); ++i)
    if (lanes[i].name == name)
      return int(i);
  return -1;
}

int Graph::find(OpKind kind, int group) const {
  for (size_t i = 0; i < ops.size(); ++i)
    if (ops[i].kind == kind && (group < 0 || ops[i].group == group))
      return int(i);
  return -1;
}

int Graph::writeSlots(int group) const {
  for (const Ring &ring : rings)
    if (ring.role == RingRole::Writebuf && ring.group == group)
      return ring.depth;
  return 1;
}

bool Graph::runsBefore(int a, int64_t batchA, int b, int64_t batchB) const {
  return std::make_tuple(batchA - ops[a].ahead, batchA, a) <
         std::make_tuple(batchB - ops[b].ahead, batchB, b);
}

void declareEffects(Graph &graph) {
  bool head = graph.find(OpKind::Call) >= 0;
  // Where nothing is updated, the head is not either.
  bool headSteps = head && graph.find(OpKind::SegmentUpdate) >= 0;
  for (Op &op : graph.ops) {
    if (op.kind == OpKind::Other)
      continue;
    bool cached = op.group >= 0 && graph.groups[op.group].cached;
    op.effects = stateEffects(op.kind, op.group, cached, headSteps);
    for (size_t r = 0; r < graph.rings.size(); ++r) {
      const Ring &ring = graph.rings[r];
      if (!ringOfOp(ring, op))
        continue;
      // Rows that left a few batches ago are copied from the write buffer.
      if (op.kind == OpKind::Fetch && ring.role == RingRole::Writebuf)
        op.effects.push_back({Role::Ring, int(r), RowSet::Miss, false});
      else if (writesRing(op.kind, ring.role))
        op.effects.push_back({Role::Ring, int(r), RowSet::All, true});
      else if (readsRing(op.kind, ring.role) &&
               // The trainer gets pooled rows; only a head predicts.
               (head || op.kind != OpKind::Handoff ||
                ring.role != RingRole::Grads))
        op.effects.push_back({Role::Ring, int(r), RowSet::All, false});
    }
  }
}

} // namespace terrace::schedule
