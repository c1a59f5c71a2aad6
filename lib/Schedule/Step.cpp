//===- Step.cpp - The graph of a training step ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Program order as in docs/artifact.md; per-group ops stand group by group
// within their stage.
//
//===----------------------------------------------------------------------===//
#include "Schedule/Step.h"

#include "Schedule/Stages.h"

namespace terrace::schedule {

std::vector<Lane> standardLanes() {
  return {{"host", LaneKind::Cpu, 0},
          {"io", LaneKind::Io, 128},
          {"copy", LaneKind::Cpu, 0},
          {"work", LaneKind::Cpu, 0},
          {"caller", LaneKind::Caller, 0}};
}

Graph makeStep(const StepShape &shape) {
  Graph graph;
  graph.lanes = standardLanes();
  graph.groups = shape.groups;
  auto addRing = [&](RingRole role, int group = -1) {
    std::string ring = name(role);
    if (group >= 0)
      ring += "_" + graph.groups[group].name;
    graph.rings.push_back({ring, role, group, 1});
  };
  addRing(RingRole::Ingest);
  if (shape.dedup)
    addRing(RingRole::Dedup);
  for (int g = 0; g < int(graph.groups.size()); ++g) {
    addRing(RingRole::Unique, g);
    if (graph.groups[g].cached) {
      addRing(RingRole::Probe, g);
      addRing(RingRole::Staging, g);
      addRing(RingRole::Writebuf, g);
    }
    addRing(RingRole::Pooled, g);
  }
  if (shape.dedup)
    addRing(RingRole::Expanded);
  addRing(RingRole::Grads);

  auto add = [&](OpKind kind, int group = -1) {
    Op op;
    op.kind = kind;
    op.group = group;
    op.name = name(kind);
    if (group >= 0)
      op.name += " @" + graph.groups[group].name;
    op.lane = graph.lane(laneOf(kind));
    graph.ops.push_back(std::move(op));
  };
  auto addAll = [&](OpKind kind, bool onlyCached) {
    for (int g = 0; g < int(graph.groups.size()); ++g)
      if (!onlyCached || graph.groups[g].cached)
        add(kind, g);
  };
  add(OpKind::Ingest);
  add(OpKind::Check);
  if (shape.translate)
    add(OpKind::Translate);
  if (shape.dedup)
    add(OpKind::Dedup);
  addAll(OpKind::Unique, false);
  addAll(OpKind::Probe, true);
  addAll(OpKind::Spill, true);
  addAll(OpKind::Store, true);
  addAll(OpKind::Fetch, true);
  addAll(OpKind::Fill, true);
  addAll(OpKind::GatherPool, false);
  if (shape.dedup)
    add(OpKind::Expand);
  if (shape.head)
    add(OpKind::Call);
  add(OpKind::Handoff);
  add(OpKind::Resume);
  addAll(OpKind::Preserve, false);
  addAll(OpKind::SegmentUpdate, false);
  addAll(OpKind::Unpin, true);
  declareEffects(graph);
  return graph;
}

} // namespace terrace::schedule
