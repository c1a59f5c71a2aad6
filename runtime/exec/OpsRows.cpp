//===- OpsRows.cpp - probe, spill, store, fetch, fill, unpin --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Movement of rows between home and slots. Victims are chosen at run time, so
// three hazards are kept here and not by tokens: a write-buffer slot gets new
// rows only when its last ones are in the store's queue, and new records only
// when the device has completed those and no fetch still copies from them.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Pipeline.h"

#include <cstring>

using namespace trc;

void Pipeline::probe(Batch &b, GroupRuntime &g) {
  const UniqueLayout &u = uniqueLayouts[g.index];
  const ProbeLayout &layout = probeLayouts[g.index];
  Probe &p = b.probes[g.index];
  p = Probe();
  p.rows = at<uint32_t>(g.uniqueRing, b.t, u.rows);
  p.unique = static_cast<uint32_t>(
      at<UniqueHeader>(g.uniqueRing, b.t, u.header)->unique);
  p.seg = !b.forwardOnly ? at<int32_t>(g.uniqueRing, b.t, u.seg) : nullptr;
  // Where a model only serves, no row changes and no victim is written.
  const int64_t writeSlots =
      g.writeRing < 0 ? 0 : plan.rings[g.writeRing].depth;
  p.writeSlot = writeSlots ? static_cast<uint32_t>(b.t % writeSlots) : 0;
  p.slots = at<uint32_t>(g.probeRing, b.t, layout.slots);
  p.missRow = at<uint32_t>(g.probeRing, b.t, layout.missRow);
  p.missSlot = at<uint32_t>(g.probeRing, b.t, layout.missSlot);
  p.missPlace = at<BufferPlace>(g.probeRing, b.t, layout.missPlace);
  p.victimRow = at<uint32_t>(g.probeRing, b.t, layout.victimRow);
  p.victimSlot = at<uint32_t>(g.probeRing, b.t, layout.victimSlot);
  // Until they are queued, a cut has to know of the victims that the ring slot
  // held before, and the cache knows of one batch.
  if (int64_t before = b.t - writeSlots;
      writeSlots && before >= 0 && !executor.awaitDone(g.storeOp, before)) {
    p.unique = 0; // interrupted: nothing was pinned
    return;
  }
  std::lock_guard<std::mutex> lock(g.cutMutex);
  if (Status s = g.cache->probe(p); !s.ok())
    poison(std::move(s));
  g.storedSlots[p.writeSlot] = p.victims == 0;
}

void Pipeline::spill(Batch &b, GroupRuntime &g) {
  const Probe &p = b.probes[g.index];
  if (!p.victims)
    return;
  if (Status s = g.store->waitWrites(p.writeSlot); !s.ok()) {
    poison(std::move(s));
    return;
  }
  // Fetches of earlier batches that copy from the records about to go.
  for (int64_t t = b.t - 1; t >= executor.completed(); --t) {
    const Batch &other = batch(t);
    const Probe &q = other.probes[g.index];
    // Once a fetch is done, its probe's arrays may be in use again.
    if (executor.isDone(g.fetchOp, t) || other.failed)
      continue;
    bool reads = false;
    for (uint32_t k = q.fromHome; k < q.fromHome + q.fromBuffer && !reads; ++k)
      reads = q.missPlace[k].slot == p.writeSlot;
    if (reads && !executor.awaitDone(g.fetchOp, t))
      return;
  }
  char *records = slot(g.writeRing, b.t);
  uint64_t pitch = static_cast<uint64_t>(g.plan->storeBytes);
  pool.parallelFor(0, p.victims, 512, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      char *record = records + static_cast<uint64_t>(v) * pitch;
      std::memcpy(record + recordHeaderBytes, g.row(p.victimSlot[v]),
                  static_cast<size_t>(g.plan->slotBytes));
      g.store->seal(p.victimRow[v], record);
    }
  });
}

void Pipeline::storeVictims(Batch &b, GroupRuntime &g) {
  const Probe &p = b.probes[g.index];
  if (!p.victims)
    return;
  // The rows from the records: the probe's arrays are free after unpin, which
  // does not wait for us.
  const char *records = slot(g.writeRing, b.t);
  g.victimRows.resize(p.victims);
  for (uint32_t v = 0; v < p.victims; ++v) {
    RecordHeader header;
    std::memcpy(&header, records + v * g.plan->storeBytes, sizeof(header));
    g.victimRows[v] = header.row;
  }
  std::lock_guard<std::mutex> lock(g.cutMutex);
  if (Status s =
          g.store->write(p.writeSlot, g.victimRows.data(), p.victims, records);
      !s.ok())
    poison(std::move(s));
  g.storedSlots[p.writeSlot] = true;
}

/// Returns false while reads are under way; the last one completes the op.
bool Pipeline::fetch(int op, Batch &b, GroupRuntime &g) {
  const Probe &p = b.probes[g.index];
  char *staging = slot(g.stagingRing, b.t);
  uint64_t pitch = static_cast<uint64_t>(g.plan->slotBytes);
  for (uint32_t k = p.fromHome; k < p.fromHome + p.fromBuffer; ++k) {
    const RingPlan &buffer = plan.rings[g.writeRing];
    BufferPlace from = p.missPlace[k];
    const char *record = arena.data() + buffer.offset +
                         from.slot * buffer.bytes +
                         from.index * g.plan->storeBytes;
    std::memcpy(staging + k * pitch, record + recordHeaderBytes,
                static_cast<size_t>(g.plan->slotBytes));
  }
  if (!p.fromHome)
    return true;
  std::unique_ptr<ReadBatch> &read = b.reads[g.index];
  if (!read)
    read = std::make_unique<ReadBatch>();
  read->rows = p.missRow;
  read->count = p.fromHome;
  read->out = staging;
  read->pitch = pitch;
  read->spread = [this](uint32_t count, const ReadBatch::Part &part) {
    pool.parallelFor(0, count, 256, [&part](int64_t begin, int64_t end) {
      part(static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
    });
  };
  int64_t t = b.t;
  // The outcome is looked at in fill: this runs on a device thread.
  read->onDone = [this, op, t] { executor.complete(op, t); };
  g.store->start(*read);
  return false;
}

void Pipeline::fill(Batch &b, GroupRuntime &g) {
  const Probe &p = b.probes[g.index];
  if (p.fromHome)
    if (Status s = g.store->wait(*b.reads[g.index]); !s.ok()) {
      poison(std::move(s));
      return;
    }
  const char *staging = slot(g.stagingRing, b.t);
  uint64_t pitch = static_cast<uint64_t>(g.plan->slotBytes);
  uint32_t stored = p.fromHome + p.fromBuffer;
  pool.parallelFor(0, p.misses, 256, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      char *out = g.row(p.missSlot[k]);
      if (k < stored)
        std::memcpy(out, staging + static_cast<uint64_t>(k) * pitch, pitch);
      else
        g.initRow(plan, g.tableOf(plan, p.missRow[k]), p.missRow[k], out);
    }
  });
}

void Pipeline::unpin(Batch &b, GroupRuntime &g) {
  g.cache->unpin(b.probes[g.index]);
}
