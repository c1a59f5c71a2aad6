//===- Plan.h - The plan of an artifact, parsed -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/artifact.md as structs. parsePlan checks everything that the executor
// relies on (indices, sizes, ring bytes against RingLayout.h, waits that point
// at an op), so that a damaged or foreign artifact is a clear error and not a
// crash. `train`, `data` and `reference` belong to the executable's main, which
// reads them from the same text.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_PLAN_H
#define TERRACE_RUNTIME_CORE_PLAN_H

#include "runtime/core/Element.h"
#include "runtime/core/Head.h"
#include "runtime/core/RingLayout.h"
#include "runtime/core/RowInit.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trc {

enum class OptimizerKind {
  Sgd,
  Adagrad,
  RowwiseAdagrad,
  Adam,
  MomentumSgd,
  PartialRowwiseAdam,
  Lamb,
  Ftrl
};

struct OptimizerPlan {
  OptimizerKind kind = OptimizerKind::RowwiseAdagrad;
  std::string name;
  double lr = 0, eps = 0, weightDecay = 0, beta1 = 0, beta2 = 0;
  double momentum = 0, beta = 0, l1 = 0, l2 = 0;
  double decoupledDecay = 0, clipNorm = 0;

  /// One update serves both.
  bool operator==(const OptimizerPlan &other) const;
  /// Floats of optimizer state per row and, per state, its width.
  int stateCount() const;
  int64_t stateWidth(int slot, int64_t dim) const;
};

struct InitPlan {
  std::string kind; // uniform, normal, constant
  double first = 0, second = 0;
  uint64_t key = 0;

  RowInit make() const;
};

struct TablePlan {
  std::string name;
  int64_t rows = 0, dim = 0;
  Element element = Element::f32;
  bool stochastic = false; // rounding of updates
  bool hash = false;
  InitPlan init;
  uint64_t roundingKey = 0; // init.key of this plan, whatever a state says
  OptimizerPlan optimizer;
  int group = 0;
  int64_t rowBase = 0;
};

enum class Overflow { error, keepFirst, keepLast };

struct FeaturePlan {
  std::string name, column, weights; // weights empty: not weighted
  bool strings = false;
  int table = 0;
  Pooling pooling = Pooling::sum;
  int64_t maxIds = 1;
  Overflow overflow = Overflow::error;
  int dedup = -1;
  std::string gather; // kernel

  bool weighted() const { return !weights.empty(); }
};

struct DedupPlan {
  std::string name;
  std::vector<int> features;
};

struct TierPlan {
  std::string name, kind;
  int64_t capacity = 0;
  std::vector<std::string> paths;

  bool memory() const { return kind == "dram"; }
};

struct GroupPlan {
  std::string name;
  std::vector<int> tables, features; // features that read its tables, in order
  int64_t rows = 0, dim = 0;
  Element element = Element::f32;
  bool stochastic = false;
  int64_t weightsBytes = 0, stateBytes = 0, slotBytes = 0, storeBytes = 0;
  int home = 0, cache = -1; // tiers; cache -1 where home is memory
  int64_t retained = 0, slots = 0;
  std::string policy;
  int64_t maxOccurrences = 0, maxUnique = 0, maxMiss = 0;
  std::string update;  // kernel
  bool direct = false; // look-ups read rows by id, without unique rows

  bool cached() const { return cache >= 0; }
  /// Weights, then state: what of a slot is the row's.
  int64_t recordBytes() const { return stateOffset(element, dim) + stateBytes; }
};

enum class LaneKind { cpu, io, caller };
struct LanePlan {
  std::string name;
  LaneKind kind = LaneKind::cpu;
  int depth = 1;
};

struct RingPlan {
  std::string name;
  RingRole role = RingRole::ingest;
  int group = -1;
  int64_t depth = 1, bytes = 0, offset = 0;
};

enum class OpKind {
  ingest,
  check,
  translate,
  dedup,
  unique,
  touch,
  probe,
  spill,
  store,
  fetch,
  fill,
  gatherPool,
  expand,
  call,
  handoff,
  resume,
  preserve,
  segmentUpdate,
  unpin
};
const char *opName(OpKind kind);
bool parseOpKind(const std::string &name, OpKind &kind);

struct WaitPlan {
  int op = 0;
  int64_t distance = 0;
};
struct OpPlan {
  OpKind kind = OpKind::ingest;
  int lane = 0;
  int64_t ahead = 0;
  int group = -1, ring = -1;
  std::vector<WaitPlan> waits;
};

/// How stores of rows are sized, and what happens when one is full.
struct StorePlan {
  double space = 2;        // multiple of the logical bytes
  int64_t retained = 1;    // checkpoints at once
  bool dropOldest = false; // full: give the oldest checkpoint up
};

struct BoundPlan {
  std::string tier;
  int64_t capacity = 0, bytes = 0;
};

struct Plan {
  std::string model, hash, version, numerics;
  int64_t batch = 0, maxIds = 0, lookahead = 0;
  uint64_t seed = 0;
  bool dropBadIds = false, skipBadGrads = false;
  bool serve = false; // forward only: no updates, no optimizer state
  std::vector<TablePlan> tables;
  std::vector<FeaturePlan> features;
  std::vector<DedupPlan> dedup;
  bool hasHead = false;
  HeadKind head = HeadKind::Fm;
  std::string headName, labelName;
  std::vector<TierPlan> tiers;
  std::vector<GroupPlan> groups;
  std::vector<LanePlan> lanes;
  std::vector<RingPlan> rings;
  int64_t arena = 0;
  std::vector<OpPlan> ops;
  StorePlan store;
  std::vector<BoundPlan> bounds;
  int64_t processBytes = 0;
  ModelShape shape;

  int findTable(const std::string &name) const;
  /// The first ring of that role and group, or -1.
  int findRing(RingRole role, int group) const;
  int findOp(OpKind kind, int group = -1) const;
};

Result<Plan> parsePlan(const char *text, uint64_t bytes);

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_PLAN_H
