//===- RowReads.cpp - Batches of reads ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A batch is sorted by row, so that rows in neighbouring blocks share a
// transfer, and worked off by a bounded number of requests: each takes the
// next run when it is done with one. Records are verified and copied on the
// device's threads, while other transfers are under way.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace trc;

namespace {
/// A hole this small is cheaper to read than to skip.
constexpr uint64_t readGap = 4096;

class ReadOp;
} // namespace

struct ReadBatch::State {
  RowStore::Impl *store = nullptr;
  std::vector<BatchItem> items; // by row
  char *out = nullptr;
  uint64_t pitch = 0;
  std::vector<ReadOp> ops;

  std::mutex mutex;
  std::condition_variable finished;
  uint32_t cursor = 0; // items before it have a transfer
  uint32_t active = 0; // requests under way, and start() itself
  bool done = true;
  Status failure;
  uint32_t failedRow = 0;
  std::function<void()> onDone;

  bool take(ReadOp &op);
  void fail(uint32_t row, Status status);
  void leave(); // one of `active` is done
};

namespace {

class ReadOp final : public IoRequest {
public:
  explicit ReadOp(ReadBatch::State &batch) : batch(batch) {}

  void assign(const BatchRun &r) {
    run = r;
    kind = Kind::Read;
    file = batch.store->files[r.extent];
    offset = r.begin;
    bytes = static_cast<uint32_t>(r.end - r.begin);
    at = 0;
  }

  bool complete(int32_t result, char *buffer) override {
    RowStore::Impl &store = *batch.store;
    store.counts.reads.fetch_add(1, std::memory_order_relaxed);
    if (result > 0) {
      store.counts.bytesRead.fetch_add(result, std::memory_order_relaxed);
      // Go on behind the last whole block of a short read.
      uint32_t whole =
          static_cast<uint32_t>(result) / store.block * store.block;
      if (whole > 0 && whole < bytes) {
        offset += whole;
        at += whole;
        bytes -= whole;
        return true;
      }
    }
    if (result < 0 || static_cast<uint32_t>(result) < bytes) {
      // The first row that misses bytes.
      uint32_t row = batch.items[run.first].row;
      for (uint32_t i = run.first; i < run.last; ++i) {
        row = batch.items[i].row;
        if (store.layout(row).offset + store.options.storeBytes > offset)
          break;
      }
      // Nothing at all and no error: the file ends before its rows do.
      batch.fail(row, store.rowError("cannot read", row,
                                     result < 0 ? -result : ENODATA));
    } else {
      copyOut(buffer);
    }
    if (batch.take(*this))
      return true;
    batch.leave();
    return false;
  }

private:
  void copyOut(const char *buffer) {
    RowStore::Impl &store = *batch.store;
    for (uint32_t i = run.first; i < run.last; ++i) {
      BatchItem item = batch.items[i];
      const char *record = buffer + (store.layout(item.row).offset - run.begin);
      if (!store.verify(item.row, record)) {
        batch.fail(item.row, store.corrupt(item.row));
        continue;
      }
      std::memcpy(batch.out + item.index * batch.pitch,
                  record + recordHeaderBytes, store.options.payloadBytes);
    }
    store.counts.rowsRead.fetch_add(run.last - run.first,
                                    std::memory_order_relaxed);
  }

  ReadBatch::State &batch;
  BatchRun run;
};

} // namespace

bool ReadBatch::State::take(ReadOp &op) {
  std::lock_guard<std::mutex> lock(mutex);
  if (cursor >= items.size())
    return false;
  BatchRun run = store->makeRun(items, cursor, readGap);
  cursor = run.last;
  op.assign(run);
  return true;
}

void ReadBatch::State::fail(uint32_t row, Status status) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure.ok() && failedRow <= row)
    return;
  failure = std::move(status);
  failedRow = row;
}

void ReadBatch::State::leave() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (--active != 0)
      return;
  }
  if (onDone)
    onDone();
  RowStore::Impl *impl = store;
  {
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    finished.notify_all();
  } // the batch may be gone from here on
  std::lock_guard<std::mutex> lock(impl->mutex);
  --impl->activeReads;
  impl->changed.notify_all();
}

ReadBatch::ReadBatch() : state(std::make_unique<State>()) {}
ReadBatch::~ReadBatch() = default;

void RowStore::start(ReadBatch &batch) {
  ReadBatch::State &s = *batch.state;
  s.store = impl.get();
  s.out = batch.out;
  s.pitch = batch.pitch;
  s.onDone = batch.onDone;
  s.ops.clear();
  s.cursor = 0;
  s.active = 1;
  s.done = false;
  s.failure = Status();
  s.items.resize(batch.count);
  bool sorted = true;
  for (uint32_t i = 0; i < batch.count; ++i) {
    s.items[i] = {batch.rows[i], i};
    sorted = sorted && (i == 0 || batch.rows[i - 1] < batch.rows[i]);
  }
  if (!sorted)
    std::sort(s.items.begin(), s.items.end(),
              [](BatchItem a, BatchItem b) { return a.row < b.row; });
  for (BatchItem item : s.items)
    if (item.row >= impl->options.rows || !impl->isWritten(item.row)) {
      s.fail(item.row,
             Status(TRC_NOT_FOUND, "row " + std::to_string(item.row) +
                                       " of group '" + impl->options.group +
                                       "' was never written"));
      s.items.clear();
      break;
    }
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    ++impl->activeReads;
    if (!impl->failure.ok()) {
      s.fail(0, impl->failure.clone());
      s.items.clear();
    }
    impl->readQueued(s.items, batch.out, batch.pitch);
  }
  uint32_t most =
      static_cast<uint32_t>(std::min<size_t>(impl->depth, s.items.size()));
  // Reserved, so that requests under way stay where they are.
  s.ops.reserve(most);
  while (s.ops.size() < most)
    s.ops.emplace_back(s);
  for (uint32_t i = 0; i < most && s.take(s.ops[i]); ++i) {
    {
      std::lock_guard<std::mutex> lock(s.mutex);
      ++s.active;
    }
    impl->device.submit(s.ops[i]);
  }
  s.leave();
}

Status RowStore::wait(ReadBatch &batch) {
  ReadBatch::State &s = *batch.state;
  std::unique_lock<std::mutex> lock(s.mutex);
  s.finished.wait(lock, [&] { return s.done; });
  // Only batches in flight hold memory: there may be many more of them.
  std::vector<BatchItem>().swap(s.items);
  std::vector<ReadOp>().swap(s.ops);
  return s.failure.clone();
}

bool RowStore::done(const ReadBatch &batch) const {
  std::lock_guard<std::mutex> lock(batch.state->mutex);
  return batch.state->done;
}
