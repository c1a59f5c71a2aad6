//===- Footprint.h - Groups, rings and bytes of a decision ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one place that turns a decision into groups, slots, rings and bytes per
// tier. The planner calls it to decide; plan-group, plan-schedule-prefetch and
// plan-allocate call it (or must agree with it) to build, so that the bound
// that was planned with is the bound that is enforced. Ring sizes come from
// runtime/core/RingLayout.h.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_COSTMODEL_FOOTPRINT_H
#define TERRACE_LIB_COSTMODEL_FOOTPRINT_H

#include "CostModel/Problem.h"
#include "runtime/core/RingLayout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace terrace::planner {

struct CacheDecision {
  int tier = 0;
  int64_t retained = 0; // rows kept beyond the batches in flight
};

struct TableDecision {
  int worker = 0;
  int home = 0;
  std::vector<CacheDecision> caches; // fastest first; empty: home is memory
};

struct Decision {
  int64_t lookahead = 0;
  std::string policy = "lfu";        // of every cache
  std::vector<TableDecision> tables; // as Problem::tables
};

/// Shards of one record class, home and caches: one directory, one cache.
struct Group {
  std::string name; // "g16", "g16_1", ...
  std::vector<int> tables;
  int worker = 0;
  int64_t rows = 0, dim = 0;
  int64_t weightsBytes = 0, stateBytes = 0, slotBytes = 0, storeBytes = 0;
  int home = 0;
  std::vector<int> caches;       // tiers; empty: rows are used where they live
  std::vector<int64_t> retained; // per cache
  int64_t slots = 0;             // of the first cache: retained + overflow
  int64_t maxOccurrences = 0, maxUnique = 0, maxMiss = 0;
  bool direct = false; ///< look-ups read rows by id (plan-direct-lookup)
  bool cached() const { return !caches.empty(); }
};

struct Ring {
  trc::RingRole role = trc::RingRole::ingest;
  int group = -1; // of its worker; -1: of the whole batch
  int worker = 0;
  int64_t depth = 1;
  int64_t bytes = 0; // of one slot of the ring
};

/// Bytes of one tier at a worker, or of the node.
struct TierUse {
  int64_t rings = 0, slots = 0, index = 0, rows = 0;
  int64_t total() const { return rings + slots + index + rows; }
};

struct Footprint {
  std::vector<Group> groups;
  std::vector<Ring> rings;
  /// [tier][worker]; what is declared per node is the sum over its workers.
  std::vector<std::vector<TierUse>> use;
  /// What must fit the tier's capacity: the largest worker, or the node's sum.
  TierUse charged(const Problem &problem, int tier) const;
};

/// Slots that the batches in flight may pin: max(1, lookahead) * max_unique, at
/// most the rows. The static rule's lower bound.
int64_t overflowSlots(int64_t lookahead, int64_t maxUnique, int64_t rows);

/// Groups in order of their first table: equal worker, dim, optimizer with all
/// its parameters (a kernel call has one set of scalars), home and caches.
std::vector<Group> formGroups(const Problem &problem, const Decision &decision);

/// Features that a worker gathers, in the model's order.
std::vector<int> featuresOf(const Problem &problem, const Decision &decision,
                            int worker);

/// What RingLayout.h sizes the rings of one worker from. Its groups are the
/// worker's, in order; its features are featuresOf().
trc::ModelShape modelShape(const Problem &problem, const Decision &decision,
                           const std::vector<Group> &groups, int worker);

/// The rings of a worker at a lookahead, in the order of the plan.
std::vector<Ring> formRings(const trc::ModelShape &shape, int64_t lookahead);

/// All rings one after the other, each from a page border.
inline constexpr int64_t ringAlignment = 4096;
int64_t arenaBytes(const std::vector<Ring> &rings);

/// What the emitted executable's reader holds at most: decoded batches that
/// wait, are being filled, or are in flight (an error names their lines). About
/// the ingest ring's bytes each. A shuffle buffer (a run-time key) comes on
/// top.
int64_t readerBytes(int64_t ingestBytes, int64_t ingestDepth);

/// Rows and slots of one group in a tier.
TierUse groupUse(const Group &group, const Problem &problem, int tier);

Footprint computeFootprint(const Problem &problem, const Decision &decision);

} // namespace terrace::planner

#endif // TERRACE_LIB_COSTMODEL_FOOTPRINT_H
