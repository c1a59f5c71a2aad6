//===- Stages.h - Where ops run and how deep rings are ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule of a step as a function of the lookahead alone: batches ahead of
// each op, its lane, the depth of each ring. The planner sizes memory with it
// before there is a plan, the scheduler applies it. Header-only, pure.
//
// Why so: probe(t + d) follows unpin(t), so d pin sets are alive and the fetch
// of t + d hides behind the compute of t + 1 .. t + d - 1. Fill runs one batch
// ahead where it can: the copy lane would otherwise hold the rows of the next
// batch back until the spill of batch t + d, hence the update of batch t.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SCHEDULE_STAGES_H
#define TERRACE_SCHEDULE_STAGES_H

#include "Schedule/Graph.h"

#include <algorithm>

namespace terrace::schedule {

inline int aheadOf(OpKind kind, int lookahead) {
  switch (kind) {
  case OpKind::Ingest:
  case OpKind::Check:
  case OpKind::Translate:
    return lookahead ? lookahead + 1 : 0;
  case OpKind::Dedup:
  case OpKind::Unique:
  case OpKind::Touch:
  case OpKind::Probe:
  case OpKind::Spill:
  case OpKind::Store:
  case OpKind::Fetch:
    return lookahead;
  case OpKind::Fill:
    return lookahead >= 2 ? 1 : 0;
  default:
    return 0;
  }
}

inline const char *laneOf(OpKind kind) {
  switch (kind) {
  case OpKind::Spill:
  case OpKind::Fill:
    return "copy";
  case OpKind::Store:
  case OpKind::Fetch:
    return "io";
  case OpKind::GatherPool:
  case OpKind::Expand:
  case OpKind::Call:
  case OpKind::Preserve:
  case OpKind::SegmentUpdate:
    return "work";
  case OpKind::Handoff:
  case OpKind::Resume:
    return "caller";
  default:
    return "host";
  }
}

/// Batches from the first writer of a ring to its last reader, plus one, so
/// that the writer of the next batch need not wait for that reader. Rings of
/// the compute stage have one slot: their users alternate anyway.
inline int depthOf(RingRole role, int lookahead) {
  if (lookahead == 0)
    return 1; // one batch at a time
  switch (role) {
  case RingRole::Ingest:
    return aheadOf(OpKind::Ingest, lookahead) + 1;
  case RingRole::Dedup:
  case RingRole::Unique:
  case RingRole::Probe:
    return aheadOf(OpKind::Probe, lookahead) + 1;
  case RingRole::Staging:
    return aheadOf(OpKind::Fetch, lookahead) -
           aheadOf(OpKind::Fill, lookahead) + 1;
  case RingRole::Writebuf:
    return 2; // writes of one batch while the next fills its slot
  default:
    return 1;
  }
}

/// Rows of one group, at most: 32-bit names with room for the directory's
/// codes.
constexpr int64_t maxGroupRows = (int64_t(1) << 31) - 1;

/// Pin sets alive at once.
inline int pinSetsOf(int lookahead) { return std::max(1, lookahead); }

} // namespace terrace::schedule

#endif // TERRACE_SCHEDULE_STAGES_H
