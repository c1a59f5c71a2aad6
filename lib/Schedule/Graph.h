//===- Graph.h - The schedule of a program, as plain data -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One batch of a plan program in program order: ops with lane and batches
// ahead, the waits between them, the rings they share, and the effects from
// which the rules of order follow. Free of MLIR and LLVM, so that the plan
// passes, the planner, tests and fuzzers use one implementation.
//
// An instance is (op, batch). It runs at tick batch - ahead. Lanes that run in
// order do so by tick, then oldest batch, then program order. An instance
// starts once the instance (w.op, batch - w.distance) of each of its waits has
// completed; instances of batches that do not exist count as completed.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SCHEDULE_GRAPH_H
#define TERRACE_SCHEDULE_GRAPH_H

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::schedule {

/// The largest lookahead that a schedule may ask for.
constexpr int maxLookahead = 8;

enum class LaneKind { Cpu, Stream, Io, Caller };

/// Program order of a step is the order of this list; `Other` is any op that
/// only declares effects.
enum class OpKind {
  Ingest,
  Check,
  Translate,
  Dedup,
  Unique,
  Touch,
  Probe,
  Spill,
  Store,
  Fetch,
  Fill,
  GatherPool,
  Expand,
  Call,
  Handoff,
  Resume,
  Preserve,
  SegmentUpdate,
  Unpin,
  Other
};

/// What an effect touches. Directory, Slots and Home belong to a group, Ring to
/// a ring; Head is the state of the model's head; Cut is whether the trainer
/// has cut for a checkpoint, which it may do until its word to go on.
enum class Role { Directory, Slots, Home, Ring, Head, Cut };

/// Which rows of the group batch t touches: those it pins, those of them that
/// were missing, those that left to make room, or all. On a ring, `Miss` is a
/// read of the slots of the batches before, as far as the ring holds them.
enum class RowSet { Pin, Miss, Victim, All };

struct Effect {
  Role role = Role::Ring;
  int target = 0; ///< group or ring, by role
  RowSet rows = RowSet::All;
  bool write = false;
};

/// (op, t) waits for (this->op, t - distance).
struct Wait {
  int op = 0;
  int distance = 0;
};
inline bool operator==(const Wait &a, const Wait &b) {
  return a.op == b.op && a.distance == b.distance;
}

struct Lane {
  std::string name;
  LaneKind kind = LaneKind::Cpu;
  int depth = 0; ///< io: instances in flight

  bool inOrder() const { return kind != LaneKind::Io; }
};

struct Op {
  std::string name; ///< for messages, e.g. "fetch @g64"
  OpKind kind = OpKind::Other;
  int group = -1;
  int lane = 0;
  int ahead = 0;
  std::vector<Effect> effects;
  std::vector<Wait> waits;
};

enum class RingRole {
  Ingest,
  Dedup,
  Unique,
  Probe,
  Staging,
  Writebuf,
  Pooled,
  Expanded,
  Grads,
  Other
};

struct Ring {
  std::string name;
  RingRole role = RingRole::Ingest;
  int group = -1;
  int depth = 1;
};

struct Group {
  std::string name;
  bool cached = false; ///< the home is not memory: directory, pins, slots
  int64_t rows = 0;
  int64_t slots = 0;
  int64_t maxUnique = 0;
};

struct Graph {
  std::vector<Lane> lanes;
  std::vector<Group> groups;
  std::vector<Ring> rings;
  std::vector<Op> ops;

  /// Index of a lane by name, or -1.
  int lane(const std::string &name) const;
  /// The first op of a kind in a group, or -1.
  int find(OpKind kind, int group = -1) const;
  /// Depth of a group's write buffer; 1 where it has none.
  int writeSlots(int group) const;
  /// Order of instances on an in-order lane, and of the whole program.
  bool runsBefore(int a, int64_t batchA, int b, int64_t batchB) const;
};

const char *name(OpKind kind);
const char *name(LaneKind kind);
const char *name(RingRole role);
/// The inverse; false where there is no such name.
bool parse(const std::string &text, OpKind &kind);
bool parse(const std::string &text, RingRole &role);

/// May an op of this kind run on such a lane?
bool canRunOn(OpKind kind, LaneKind lane);
/// The lane kinds it may run on, for messages: "cpu or stream".
std::string lanesOf(OpKind kind);

/// The effects that an op of a kind has on the state of its group and on the
/// head, without those on rings.
std::vector<Effect> stateEffects(OpKind kind, int group, bool cached,
                                 bool head);
/// May an op of this kind read or write a ring of this role? Reads and writes
/// are declared by role, so that every user of a ring is known.
bool readsRing(OpKind kind, RingRole role);
bool writesRing(OpKind kind, RingRole role);

/// Sets the effects of all ops whose kind is known, from kind, group and the
/// rings that the graph has.
void declareEffects(Graph &graph);

} // namespace terrace::schedule

#endif // TERRACE_SCHEDULE_GRAPH_H
