//===- Pipeline.h - The ops of a plan over its memory -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Owns what one session computes with: the arena of rings, the groups' rows,
// slots, caches and stores, the head, and one record per batch in flight. The
// op bodies are spread over OpsInput, OpsRows, OpsCompute and OpsCaller.
//
// A batch that fails its check runs no further op; its tokens complete all the
// same, so later batches go on. A failure of the device or of the plan poisons
// the pipeline: nothing runs any more, and the state is the last checkpoint's.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_EXEC_PIPELINE_H
#define TERRACE_RUNTIME_EXEC_PIPELINE_H

#include "runtime/cache/GroupCache.h"
#include "runtime/core/Plan.h"
#include "runtime/exec/Executor.h"
#include "runtime/exec/ThreadPool.h"
#include "runtime/exec/UniqueRows.h"
#include "runtime/io/Device.h"
#include "runtime/store/RowStore.h"
#include "terrace-rt/artifact.h"
#include "terrace-rt/session.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace trc {

/// Anonymous memory, zero until touched, given back at the end.
class Mapping {
public:
  Mapping() = default;
  ~Mapping();
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  Status map(uint64_t bytes, const std::string &what);
  char *data() const { return base; }
  uint64_t size() const { return bytes; }

private:
  char *base = nullptr;
  uint64_t bytes = 0;
};

/// One bit per row.
class RowBits {
public:
  void resize(uint64_t rows) { words.assign((rows + 63) / 64, 0); }
  bool test(uint64_t row) const { return words[row / 64] >> (row % 64) & 1; }
  void set(uint64_t row) { words[row / 64] |= 1ull << (row % 64); }
  void reset(uint64_t row) { words[row / 64] &= ~(1ull << (row % 64)); }
  void clear() { std::fill(words.begin(), words.end(), 0); }
  const uint64_t *data() const { return words.data(); }
  /// Sets what is set there.
  void add(const RowBits &other) {
    for (size_t w = 0; w < words.size(); ++w)
      words[w] |= other.words[w];
  }
  /// The first set bit at or after `row`; `rows` where there is none.
  uint64_t next(uint64_t row, uint64_t rows) const;
  uint64_t count() const;

private:
  std::vector<uint64_t> words;
};

/// The rows of one group. Home in memory: `memory` holds every row and `slots`
/// are rows. Otherwise `memory` holds the cache's slots.
struct GroupRuntime {
  const GroupPlan *plan = nullptr;
  int index = 0;
  Mapping memory;
  RowBits present;          // memory home: the row has a value (host lane)
  bool allPresent = false;  // all of them (host lane)
  bool countPresent = true; // whether they may be since they were counted
  RowBits dirty; // memory home: updated since it was stored (work lane)
  std::unique_ptr<GroupCache> cache;
  std::unique_ptr<RowStore> store;
  std::vector<RowInit> inits; // by position in plan->tables
  // By position in plan->features; of a direct group the second.
  std::vector<trc_gather_pool_fn> gathers;
  std::vector<trc_gather_rows_fn> directGathers;
  trc_segment_update_fn update = nullptr;
  std::vector<size_t> featureTable; // of the features: position in plan->tables
  std::vector<int64_t> tableIds;    // scratch of unique, by position
  std::vector<RowNumbers> numbers;  // the same
  std::vector<uint32_t> victimRows; // scratch of store
  // A cut: orders probe, store, preserve and drain (Cut.cpp).
  std::mutex cutMutex;
  bool cutting = false;
  std::unique_ptr<bool[]> storedSlots; // write-buffer slots that are stored
  RowBits cutRows;                     // memory home: pending rows
  // Rings, and ops that others await.
  int uniqueRing = -1, probeRing = -1, stagingRing = -1, writeRing = -1,
      pooledRing = -1, fetchOp = -1, storeOp = -1;

  char *row(uint64_t slot) const {
    return memory.data() + slot * static_cast<uint64_t>(plan->slotBytes);
  }
  Status beginCut(uint64_t id);
  Status drainCut();
  void endCut();
  Status preserve(const uint32_t *slots, const uint32_t *rows, uint32_t unique);

  /// Position in plan->tables of the table that the group's row belongs to.
  size_t tableOf(const Plan &model, uint64_t groupRow) const;
  uint64_t roundingSeedOf(const Plan &model, uint64_t groupRow,
                          int64_t step) const {
    const TablePlan &table =
        model.tables[plan->tables[tableOf(model, groupRow)]];
    return roundingSeed(table.roundingKey, step,
                        static_cast<int64_t>(groupRow) - table.rowBase);
  }
  /// Writes the row's initial value: weights, then zero state.
  void initRow(const Plan &model, size_t tablePosition, uint64_t groupRow,
               char *out) const;

private:
  struct Piece;
  Status storePiece(Piece &p, uint32_t n);
};

/// A batch in flight. Fields are written by one op and read by ops that wait
/// for it.
struct Batch {
  int64_t t = -1;
  int64_t samples = 0;
  bool hasLabels = false;
  bool forwardOnly = false; // is never applied: nothing is made ready for it
  bool failed = false;      // did not pass its check
  bool applied = false;     // backward came: the updates run
  Status error;             // why it failed
  Status gradError;         // head models: a gradient that is not finite
  double lrScale = 1;
  int64_t step = 0; // of the update, 1 for the first
  int64_t dropped = 0;
  std::vector<Probe> probes;                     // per group
  std::vector<std::unique_ptr<ReadBatch>> reads; // per group
};

struct PipelineCounters {
  std::atomic<uint64_t> badBatches{0}, droppedIds{0}, cutIds{0},
      skippedGrads{0}, released{0};
};

class Pipeline : public OpRunner {
public:
  Pipeline(const Plan &plan, unsigned threads, bool training);
  ~Pipeline() override;

  /// Maps memory, creates caches and takes the kernels of the image. Stores are
  /// set up by the owner (GroupRuntime::store) before start().
  Status prepare(const trc_artifact &artifact, int cpu);
  void start() { executor.start(); }

  //--- Producer -------------------------------------------------------------
  /// Checks the shape of the batch, applies overflow and copies it into the
  /// slot of batch t. The caller asked Executor::mayAdmit before.
  Status ingest(int64_t t, const trc_batch &batch);
  /// The checks of ingest that need no slot. Offsets may start at another
  /// number than 0 where they are `slices`.
  Status checkShape(const trc_batch &batch, bool slices = false) const;

  //--- Caller ---------------------------------------------------------------
  /// Samples; ids of a feature that is not pooled.
  int64_t outputRows(int64_t t, size_t f) const;
  Status copyOutputs(int64_t t, DLTensor *const *outputs, uint32_t count);
  Status takeGradients(int64_t t, const DLTensor *const *gradients,
                       uint32_t count, float scale);
  /// Of trc_backward_options: one pointer per feature, or null.
  Status checkWeightGradients(float *const *to) const;
  /// After takeGradients and before resume is complete.
  void weightGradients(int64_t t, size_t f, float *to);
  /// The head's own step, when backward has come.
  void updateHead(const Batch &b);
  Batch &batch(int64_t t) { return batches[t % batches.size()]; }

  //--- Checkpoints ----------------------------------------------------------
  /// Cuts all stores, when no update runs and none can begin.
  Status beginCut(uint64_t id);
  /// Stores what is still pending, while training goes on.
  Status drainCut();
  /// Nothing is preserved any more.
  void endCut();

  bool run(int op, int64_t t) override;

  /// First failure that ends the session; also interrupts the executor.
  void poison(Status status);
  Status poisonStatus() const;
  bool poisoned() const { return poisonedFlag.load(); }

  const Plan &plan;
  const bool training;
  ThreadPool pool;
  Executor executor;
  std::vector<std::unique_ptr<GroupRuntime>> groups;
  HeadState headState;
  PipelineCounters counters;
  uint64_t memoryBytes() const;

private:
  // Addresses inside ring slots.
  char *slot(int ring, int64_t t) const {
    const RingPlan &r = plan.rings[ring];
    return arena.data() + r.offset + t % r.depth * r.bytes;
  }
  template <typename T> T *at(int ring, int64_t t, int64_t offset) const {
    return reinterpret_cast<T *>(slot(ring, t) + offset);
  }
  int32_t *offsetsOf(int64_t t, size_t f) const {
    return at<int32_t>(inRing, t,
                       inLayout.offsets +
                           static_cast<int64_t>(f) * inLayout.offsetsPitch);
  }
  int64_t *idsOf(int64_t t, size_t f) const;
  float *weightsOf(int64_t t, size_t f) const;

  // One feature as the forward pass sees it: per sample, or per unique bag.
  struct Bags {
    int64_t count;
    const int32_t *offsets;
    const float *weights; // of the occurrences from offsets[0] on, or null
  };
  Bags forwardBags(int64_t t, size_t f) const;
  const uint32_t *forwardX(int64_t t, size_t f) const;
  const int32_t *inverseOf(int64_t t, size_t f) const; // null: none
  const float *outputOf(int64_t t, size_t f) const;

  // OpsInput.cpp
  void check(Batch &b);
  bool clean(const Batch &b, size_t f) const;
  bool judge(Batch &b, size_t f);
  void translate(Batch &b);
  void dedup(Batch &b);
  // OpsUnique.cpp
  void unique(Batch &b, GroupRuntime &g);
  void touch(Batch &b, GroupRuntime &g);
  void segments(Batch &b, GroupRuntime &g, int64_t uniqueRows);
  // OpsRows.cpp
  void probe(Batch &b, GroupRuntime &g);
  void spill(Batch &b, GroupRuntime &g);
  void storeVictims(Batch &b, GroupRuntime &g);
  bool fetch(int op, Batch &b, GroupRuntime &g);
  void fill(Batch &b, GroupRuntime &g);
  void unpin(Batch &b, GroupRuntime &g);
  // OpsCompute.cpp
  void gatherPool(Batch &b, GroupRuntime &g);
  void gatherOf(const Batch &b, GroupRuntime &g, size_t i, int64_t begin,
                int64_t end);
  void expand(Batch &b);
  void call(Batch &b);
  void preserve(Batch &b, GroupRuntime &g);
  void segmentUpdate(Batch &b, GroupRuntime &g);
  void scatterMax(int64_t t, size_t f);
  const uint32_t *slotsOf(int64_t t, const GroupRuntime &g) const;

  Mapping arena;
  std::vector<Batch> batches;
  IngestLayout inLayout;
  DedupLayout dedupLayout;
  ExpandedLayout expandedLayout;
  GradsLayout gradsLayout;
  std::vector<UniqueLayout> uniqueLayouts;
  std::vector<ProbeLayout> probeLayouts;
  std::vector<PooledLayout> pooledLayouts;
  int inRing = -1, dedupRing = -1, expandedRing = -1, gradsRing = -1;
  mutable std::mutex poisonMutex;
  Status poisonReason;
  std::atomic<bool> poisonedFlag{false};
};

/// The scalars of segment_update (docs/artifact.md, hp).
constexpr int kUpdateScalars = 10;
void updateScalars(const OptimizerPlan &optimizer, int64_t dim, double lrScale,
                   int64_t step, float hp[kUpdateScalars]);

} // namespace trc

#endif // TERRACE_RUNTIME_EXEC_PIPELINE_H
