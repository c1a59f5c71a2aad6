//===- GroupCache.h - Directory and slots of one group ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Says for every row of a group where its one current copy is: nowhere yet,
// at home, in the write buffer, or in a slot. Decides which slot a missing row
// gets and which row leaves for it. Moves no data: the executor does, from the
// lists that probe() makes.
//
// One row, one copy. A row that several batches in flight use keeps one slot
// and is pinned once per batch; pinned rows are never evicted. A row that left
// dirty lies in the write buffer of the batch that evicted it; later batches
// fetch it from there until that ring slot is used again, from then on from
// home (RowStore orders that read behind the write).
//
// Threads: all functions belong to the host lane (one thread at a time), but
//  - markDirty, from the work lane: the executor's tokens order it after
//    fill(t) and before unpin(t), and marks of one batch touch disjoint slots
//    when split over threads. A victim is unpinned, so its marks happened
//    before the probe that reads them: plain bytes, no atomics.
//  - counters(), from any thread.
//  - the cut's functions (below) and probe() exclude each other by a lock of
//  the
//    caller's; so does markDirty before the first cut of a batch's rows.
// Lifetime: the arrays of a Probe belong to the caller (the probe ring) and
// stay untouched until unpin or undo of that batch.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CACHE_GROUPCACHE_H
#define TERRACE_RUNTIME_CACHE_GROUPCACHE_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace trc {

struct GroupCacheOptions {
  std::string group; // for messages
  uint32_t rows = 0;
  uint32_t slots = 0;     // retained + overflow
  uint32_t retained = 0;  // rows kept while nothing pins them
  uint32_t maxUnique = 0; // rows of one batch
  uint32_t maxMiss = 0; // misses of one batch = records in a write-buffer slot
  uint32_t writeSlots = 1;    // depth of the write-buffer ring
  std::string policy = "lfu"; // "lru", "clock" or "lfu"
};

/// A place in the write buffer: record `index` of ring slot `slot`.
struct BufferPlace {
  uint32_t slot;
  uint32_t index;
};

/// One batch's probe: what the caller gives, and what it gets. The miss arrays
/// are ordered by source: first [0, fromHome) to read from the store, then
/// fromBuffer misses to copy from the write buffer (missPlace says where), then
/// fromInit rows that were never written. Staging needs place for the first
/// two kinds only: staging[k] belongs to miss k.
struct Probe {
  // In.
  const uint32_t *rows = nullptr; // unique rows of the batch
  uint32_t unique = 0;
  const int32_t *seg = nullptr; // [unique + 1]: accesses by row, for counters;
                                // null: one each
  uint32_t writeSlot = 0;       // of the write-buffer ring: t % writeSlots
  // Out: the caller's arrays.
  uint32_t *slots = nullptr;        // [maxUnique] slot of unique row u
  uint32_t *missRow = nullptr;      // [maxMiss]
  uint32_t *missSlot = nullptr;     // [maxMiss]
  BufferPlace *missPlace = nullptr; // [maxMiss], valid for fromBuffer misses
  uint32_t *victimRow = nullptr;  // [maxMiss] dirty rows to write back; victim
  uint32_t *victimSlot = nullptr; // [maxMiss] v becomes record v of writeSlot
  // Out: counts.
  uint32_t misses = 0, fromHome = 0, fromBuffer = 0, fromInit = 0;
  uint32_t victims = 0;
};

struct CacheCounters {
  uint64_t accesses = 0, hitAccesses = 0; // ids
  uint64_t lookups = 0, hits = 0;         // unique rows per batch
  uint64_t misses = 0;
  uint64_t firstTouches = 0;         // misses of rows never written
  uint64_t bufferFetches = 0;        // misses served by the write buffer
  uint64_t evictions = 0;            // rows that left, clean or dirty
  uint64_t writes = 0;               // of these, written back
  uint64_t resident = 0, pinned = 0; // now
  uint64_t peakResident = 0;
  uint64_t warmed = 0; // rows that restore() put into slots
};

/// A row in a slot, and what the policy knows of it.
struct ResidentRow {
  uint32_t row;
  uint16_t heat;
};

class GroupCache {
public:
  static Result<std::unique_ptr<GroupCache>>
  create(const GroupCacheOptions &options);
  ~GroupCache();

  /// Memory of directory and bookkeeping (the slots themselves are the
  /// executor's): what the bound calls `index`.
  static uint64_t memoryBytes(uint64_t rows, uint64_t slots, uint64_t maxMiss,
                              uint64_t writeSlots);

  //--- A batch --------------------------------------------------------------
  /// Pins the rows of a batch and gives each a slot. Uses ring slot writeSlot
  /// of the write buffer anew: rows still said to be there count as at home
  /// from now on, so their write must have been queued before (store of batch
  /// t - writeSlots comes before fetch of t). On failure nothing has changed.
  Status probe(Probe &probe);

  /// Work lane: the update of these slots' rows has begun or is done; their
  /// copies at home are stale. Evaluated and released batches mark nothing.
  void markDirty(const uint32_t *slots, uint32_t begin, uint32_t end);

  /// Ends a batch whose misses were filled.
  void unpin(const Probe &probe);

  /// Ends a batch whose misses were not filled: they leave their slots again.
  /// `spilled`: its victims are in the write buffer (and store() will be
  /// called); else they return to their slots, which still hold them. If
  /// several batches are undone, the latest first.
  void undo(const Probe &probe, bool spilled);

  //--- A cut ----------------------------------------------------------------
  // While a checkpoint is written, rows whose value at the cut is not in the
  // store yet are pending; they leave this state when the caller has taken
  // their value: before their update (preserve), by eviction, or in passing.

  /// Marks every dirty row and lists it, between two updates. Rows in the write
  /// buffer are listed where their ring slot is not `stored` [writeSlots].
  void beginCut(const bool *stored, const std::function<void(uint32_t)> &take);
  /// Whether the slot's row is pending; it is not any more.
  bool takePending(uint32_t slot);
  /// Up to `max` pending rows from slot `*cursor` on, which it moves; 0 at the
  /// end. They are not pending any more, and to be marked clean once the values
  /// that were taken are home's.
  uint32_t drainPending(uint32_t *cursor, uint32_t *rows, uint32_t *slots,
                        uint32_t max);
  /// No row is pending any more, whether it was taken or not.
  void endCut();

  //--- Looking at single rows (nothing in flight) ---------------------------
  enum class Place : uint8_t { Never, Home, Buffer, Slot };
  struct Location {
    Place place;
    uint32_t slot = 0;    // Slot
    bool dirty = false;   // Slot: the copy at home, if any, is stale
    bool atHome = false;  // Slot: home has the same copy
    BufferPlace buffer{}; // Buffer
  };
  Location locate(uint32_t row) const;

  /// At open: the row has a copy at home.
  void setHome(uint32_t row);
  /// Drained and all writes completed: every row said to lie in the write
  /// buffer is at home.
  void recycleAll();
  /// Lists up to `max` dirty resident rows from slot `*cursor` on and moves it;
  /// 0 at the end. For the write-back at close or at a checkpoint.
  uint32_t collectDirty(uint32_t *cursor, uint32_t *rows, uint32_t *slots,
                        uint32_t max) const;
  /// The rows in these slots are the same at home now.
  void markClean(const uint32_t *slots, uint32_t count);
  /// An outside write of this resident row (write_rows): same as an update.
  void markDirtyRow(uint32_t row);
  //--- A warm restart (nothing pinned) --------------------------------------
  /// Every row in a slot, the one to evict first first.
  void forEachResident(const std::function<void(ResidentRow)> &take) const;
  /// What the policy counts for all of them together.
  uint64_t policyAge() const;
  void setPolicyAge(uint64_t age);
  /// Gives each row a slot, coldest first, after setHome() of those that have a
  /// copy at home; the caller fills the slots. Stops at a row that cannot be
  /// (no such row, a second time, no room below `retained`); returns how many
  /// were taken.
  uint32_t restore(const ResidentRow *rows, uint32_t count);
  const GroupCacheOptions &options() const;

  /// Forgets everything (another state is loaded). Nothing may be pinned.
  void clear();

  CacheCounters counters() const;

private:
  struct Impl;
  explicit GroupCache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace trc

#endif // TERRACE_RUNTIME_CACHE_GROUPCACHE_H
