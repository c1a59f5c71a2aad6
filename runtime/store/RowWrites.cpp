//===- RowWrites.cpp - Batches of writes ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches are worked off in the order in which they were queued, each sorted
// by row, by a bounded number of requests. A request takes the next run of
// neighbouring records only when no request under way touches its blocks; so
// blocks that records share are read, merged and written by one request at a
// time, and a later write of a row always lands last.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace trc;

namespace trc {

class WriteOp final : public IoRequest {
public:
  explicit WriteOp(RowStore::Impl &store) : store(store) { background = true; }

  void begin(char *buffer) override {
    if (kind == Kind::Write) {
      // No other record lives in these blocks.
      std::memset(buffer, 0, run.end - run.begin);
      merge(buffer);
    }
  }

  bool complete(int32_t result, char *buffer) override {
    count(result);
    uint32_t whole =
        result > 0 ? static_cast<uint32_t>(result) / store.block * store.block
                   : 0;
    if (whole > 0 && whole < bytes) { // short: go on behind it
      offset += whole;
      at += whole;
      bytes -= whole;
      return true;
    }
    if (result < 0 || whole < bytes) {
      bool reading = kind == Kind::Read;
      uint32_t row = store.batches[slot].items[run.first].row;
      std::unique_lock<std::mutex> lock(store.mutex);
      store.fail(store.rowError(
          reading ? "cannot read the blocks around" : "cannot write", row,
          result < 0 ? -result : (reading ? ENODATA : ENOSPC)));
      return finish(buffer);
    }
    if (kind == Kind::Read) {
      merge(buffer);
      aim(Kind::Write);
      return true;
    }
    std::unique_lock<std::mutex> lock(store.mutex);
    return finish(buffer);
  }

  bool touches(const BatchRun &r) const {
    return busy && run.extent == r.extent && run.begin < r.end &&
           r.begin < run.end;
  }

  void assign(uint32_t batch, const BatchRun &r, bool readFirst) {
    slot = batch;
    run = r;
    busy = true;
    file = store.files[r.extent];
    aim(readFirst ? Kind::Read : Kind::Write);
  }

private:
  void aim(Kind k) {
    kind = k;
    offset = run.begin;
    bytes = static_cast<uint32_t>(run.end - run.begin);
    at = 0;
  }

  void merge(char *buffer) {
    const RowStore::Impl::WriteBatch &batch = store.batches[slot];
    uint64_t size = store.options.storeBytes;
    for (uint32_t i = run.first; i < run.last; ++i) {
      BatchItem item = batch.items[i];
      std::memcpy(buffer + (store.layout(item.row).offset - run.begin),
                  batch.records + item.index * size, size);
    }
  }

  /// With the mutex held. Takes over the next run, if there is one.
  bool finish(char *buffer) {
    busy = false;
    store.finishItems(slot, run.last - run.first);
    bool again = store.takeWrite(*this);
    if (!again)
      store.idleOps.push_back(this);
    store.startWrites(); // others may have waited for our blocks
    store.changed.notify_all();
    if (again)
      begin(buffer);
    return again;
  }

  void count(int32_t result) {
    auto &c = store.counts;
    bool read = kind == Kind::Read;
    (read ? c.reads : c.writes).fetch_add(1, std::memory_order_relaxed);
    if (result > 0)
      (read ? c.bytesRead : c.bytesWritten)
          .fetch_add(result, std::memory_order_relaxed);
    if (read)
      c.blocksMerged.fetch_add(1, std::memory_order_relaxed);
  }

  RowStore::Impl &store;
  uint32_t slot = 0;
  BatchRun run;
  bool busy = false;
};

} // namespace trc

RowStore::Impl::Impl(Device &device, const RowStoreOptions &options)
    : device(device), options(options) {
  depth = std::max(1u, std::min(options.depth, device.depth()));
  batches.resize(options.writeSlots + 2);
  for (uint32_t i = 0; i < options.writeSlots; ++i)
    batches[i].items.reserve(options.maxWrites);
  for (uint32_t i = 0; i < depth; ++i) {
    ops.push_back(std::make_unique<WriteOp>(*this));
    idleOps.push_back(ops.back().get());
  }
}

RowStore::Impl::~Impl() = default;

/// Assigns the next run to the request; false if there is none, or if it must
/// wait for another request's blocks.
bool RowStore::Impl::takeWrite(WriteOp &op) {
  for (uint32_t slot : queue) {
    WriteBatch &batch = batches[slot];
    if (batch.cursor >= batch.items.size())
      continue;
    BatchRun run = makeRun(batch.items, batch.cursor, 0);
    for (const auto &other : ops)
      if (other->touches(run))
        return false;
    batch.cursor = run.last;

    // Are there bytes in these blocks that are not ours? Walk over all records
    // that touch them.
    uint64_t pitch = options.storeBytes;
    uint32_t firstRow = batch.items[run.first].row;
    uint64_t firstAt = layout(firstRow).offset;
    uint32_t before =
        static_cast<uint32_t>((firstAt - run.begin + pitch - 1) / pitch);
    uint32_t low = firstRow - std::min(before, firstRow);
    uint64_t lastAt = layout(batch.items[run.last - 1].row).offset + pitch;
    uint64_t high = uint64_t(batch.items[run.last - 1].row) +
                    (run.end - lastAt + pitch - 1) / pitch;
    bool readFirst = false;
    uint32_t i = run.first;
    for (uint64_t row = low; row <= high && row < options.rows && !readFirst;
         ++row) {
      if (i < run.last && batch.items[i].row == row)
        ++i;
      else
        readFirst = isWritten(static_cast<uint32_t>(row));
    }
    op.assign(slot, run, readFirst);
    return true;
  }
  return false;
}

void RowStore::Impl::startWrites() {
  while (!idleOps.empty() && takeWrite(*idleOps.back())) {
    WriteOp *op = idleOps.back();
    idleOps.pop_back();
    device.submit(*op);
  }
}

/// Batches leave the queue in order: as long as an older one is there, a newer
/// one that holds later versions of the same rows must be found before it.
void RowStore::Impl::finishItems(uint32_t slot, uint32_t count) {
  batches[slot].remaining -= count;
  while (!queue.empty() && batches[queue.front()].remaining == 0) {
    batches[queue.front()].pending = false;
    queue.pop_front();
  }
}

/// Nothing new is started; what is under way ends.
void RowStore::Impl::fail(Status status) {
  if (failure.ok())
    failure = std::move(status);
  std::deque<uint32_t> slots = queue;
  for (uint32_t slot : slots) {
    WriteBatch &batch = batches[slot];
    uint32_t dropped = static_cast<uint32_t>(batch.items.size()) - batch.cursor;
    batch.cursor = static_cast<uint32_t>(batch.items.size());
    finishItems(slot, dropped);
  }
}

Status RowStore::write(uint32_t slot, const uint32_t *rows, uint32_t count,
                       const char *records) {
  Impl &s = *impl;
  auto internal = [&](const std::string &what) {
    return Status(TRC_INTERNAL,
                  "store of group '" + s.options.group + "': " + what);
  };
  if (slot >= s.batches.size())
    return internal("there is no write slot " + std::to_string(slot));
  bool own = slot >= s.options.writeSlots;
  if (!own && count > s.options.maxWrites)
    return internal(std::to_string(count) + " writes exceed the plan's " +
                    std::to_string(s.options.maxWrites));
  for (uint32_t i = 0; i < count; ++i)
    if (rows[i] >= s.options.rows)
      return internal("there is no row " + std::to_string(rows[i]));

  std::unique_lock<std::mutex> lock(s.mutex);
  if (!s.failure.ok())
    return s.failure.clone();
  Impl::WriteBatch &batch = s.batches[slot];
  if (batch.pending)
    return internal("write slot " + std::to_string(slot) +
                    " is used again before its writes are done");
  if (count == 0)
    return {};
  // Not pending, so no request looks at it: sort without the lock.
  lock.unlock();
  batch.items.resize(count);
  for (uint32_t i = 0; i < count; ++i)
    batch.items[i] = {rows[i], i};
  std::sort(batch.items.begin(), batch.items.end(),
            [](BatchItem a, BatchItem b) { return a.row < b.row; });
  lock.lock();
  batch.records = records;
  batch.cursor = 0;
  batch.remaining = count;
  batch.pending = true;
  uint64_t fresh = 0;
  for (BatchItem item : batch.items)
    fresh += s.setWritten(item.row);
  s.writtenRows += fresh;
  s.counts.rowsWritten += count;
  s.queue.push_back(slot);
  s.startWrites();
  return {};
}

Status RowStore::waitWrites(uint32_t slot) {
  std::unique_lock<std::mutex> lock(impl->mutex);
  impl->changed.wait(lock, [&] { return !impl->batches[slot].pending; });
  return impl->failure.clone();
}

bool RowStore::writesDone(uint32_t slot) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return !impl->batches[slot].pending;
}

Status RowStore::flush() {
  std::unique_lock<std::mutex> lock(impl->mutex);
  impl->changed.wait(lock, [&] { return impl->queue.empty(); });
  if (!impl->failure.ok())
    return impl->failure.clone();
  lock.unlock();
  for (uint32_t file : impl->files) {
    Status s = impl->device.flush(file);
    if (s.ok())
      continue;
    // The kernel may have dropped the pages: what was written is in doubt.
    lock.lock();
    if (impl->failure.ok())
      impl->failure = s.clone();
    return s;
  }
  return {};
}

void RowStore::Impl::readQueued(std::vector<BatchItem> &items, char *out,
                                uint64_t pitch) {
  // The newest queued write of a row counts, so look there first.
  for (auto slot = queue.rbegin(); slot != queue.rend() && !items.empty();
       ++slot) {
    const WriteBatch &batch = batches[*slot];
    size_t kept = 0, w = 0;
    for (BatchItem item : items) {
      while (w < batch.items.size() && batch.items[w].row < item.row)
        ++w;
      if (w == batch.items.size() || batch.items[w].row != item.row) {
        items[kept++] = item;
        continue;
      }
      const char *record =
          batch.records + uint64_t(batch.items[w].index) * options.storeBytes;
      std::memcpy(out + item.index * pitch, record + recordHeaderBytes,
                  options.payloadBytes);
      counts.readFromQueue.fetch_add(1, std::memory_order_relaxed);
    }
    items.resize(kept);
  }
}
