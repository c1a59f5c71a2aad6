//===- Cut.cpp - A consistent cut while training goes on ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between two updates every row has one value. Those whose value is not in its
// store yet are pending: a batch that is about to update some of them stores
// their value first (preserve), eviction stores them in any case, and the
// thread that writes the checkpoint stores the rest in passing (drain). So the
// first append of a pending row after the cut is its value at the cut, which is
// all that the store has to know.
//
// A group's cutMutex orders these appends: whoever holds it takes rows from the
// pending ones, copies their values and queues them before letting it go.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Pipeline.h"

#include <cstring>

using namespace trc;

/// Rows on their way to a store: copied and queued at once, with the lock held.
struct GroupRuntime::Piece {
  explicit Piece(const RowStore &store)
      : rows(store.appendRows()), slots(store.appendRows()),
        payloads(store.appendRows()) {}
  uint32_t most() const { return static_cast<uint32_t>(rows.size()); }
  std::vector<uint32_t> rows, slots;
  std::vector<const char *> payloads;
};

/// Training goes on where a store was full: what was not stored stays pending,
/// as the cut after this one is to store it. (A cache's rows are dirty still.)
Status GroupRuntime::storePiece(Piece &p, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i)
    p.payloads[i] = row(p.slots[i]);
  Status s = store->append(p.rows.data(), n, p.payloads.data());
  for (uint32_t i = 0; !s.ok() && !cache && i < n; ++i)
    cutRows.set(p.rows[i]);
  return s;
}

/// Between two updates.
Status GroupRuntime::beginCut(uint64_t id) {
  std::lock_guard<std::mutex> lock(cutMutex);
  if (cache) {
    std::vector<uint32_t> pending;
    cache->beginCut(storedSlots.get(),
                    [&](uint32_t row) { pending.push_back(row); });
    if (Status s = store->beginCut(id, pending.data(), pending.size());
        !s.ok()) {
      cache->endCut();
      return s;
    }
  } else {
    // What the cut before did not store after all is to be stored by this one.
    // Not when that one ends: updates set bits of `dirty` then.
    dirty.add(cutRows);
    cutRows.clear();
    TRC_RETURN_IF_ERROR(store->beginCutOf(id, dirty.data()));
    std::swap(cutRows, dirty);
  }
  cutting = true;
  return Status();
}

Status GroupRuntime::drainCut() {
  Piece p(*store);
  uint32_t cursor = 0;
  uint64_t next = 0, count = static_cast<uint64_t>(plan->rows);
  while (true) {
    std::lock_guard<std::mutex> lock(cutMutex);
    uint32_t n = 0;
    if (cache) {
      n = cache->drainPending(&cursor, p.rows.data(), p.slots.data(), p.most());
    } else {
      for (; n < p.most() && (next = cutRows.next(next, count)) < count; ++n) {
        cutRows.reset(next);
        p.rows[n] = p.slots[n] = static_cast<uint32_t>(next);
      }
    }
    if (!n)
      return Status();
    TRC_RETURN_IF_ERROR(storePiece(p, n));
    if (cache) // not before: a clean row is evicted without being stored
      cache->markClean(p.slots.data(), n);
  }
}

void GroupRuntime::endCut() {
  std::lock_guard<std::mutex> lock(cutMutex);
  cutting = false;
  if (cache)
    cache->endCut();
}

/// The rows of the batch that are still pending, before their update.
Status GroupRuntime::preserve(const uint32_t *slots, const uint32_t *rows,
                              uint32_t unique) {
  std::lock_guard<std::mutex> lock(cutMutex);
  if (!cutting)
    return Status();
  Piece p(*store);
  for (uint32_t u = 0; u < unique;) {
    uint32_t n = 0;
    for (; u < unique && n < p.most(); ++u) {
      bool pending = false;
      if (cache) {
        pending = cache->takePending(slots[u]);
      } else if (cutRows.test(rows[u])) {
        cutRows.reset(rows[u]);
        pending = true;
      }
      if (pending) {
        p.rows[n] = rows[u];
        p.slots[n++] = slots[u];
      }
    }
    if (n)
      TRC_RETURN_IF_ERROR(storePiece(p, n));
  }
  return Status();
}

Status Pipeline::beginCut(uint64_t id) {
  for (size_t g = 0; g < groups.size(); ++g)
    if (Status s = groups[g]->beginCut(id); !s.ok()) {
      while (g-- > 0) {
        groups[g]->endCut();
        groups[g]->store->dropCut();
      }
      return s;
    }
  return Status();
}

Status Pipeline::drainCut() {
  for (auto &g : groups)
    TRC_RETURN_IF_ERROR(g->drainCut());
  return Status();
}

void Pipeline::endCut() {
  for (auto &g : groups)
    g->endCut();
}
