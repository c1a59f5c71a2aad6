//===- RowReads.cpp - Batches of reads ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A batch is sorted by place, so that records in neighbouring blocks share a
// transfer, and worked off by a bounded number of requests: each takes the
// next run when it is done with one. Records are verified and copied on the
// device's threads, while other transfers are under way. What is still being
// written, or waits in a tail, is copied from memory; so is, before anything
// else, what lies verified in the mapping of the device.
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
  std::vector<BatchItem> items; // by place
  char *out = nullptr;
  uint64_t pitch = 0;
  bool raw = false; // whole records as seal() made them, for the store itself
  uint32_t epoch = 0;
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
  /// Hands a verified record out.
  void give(const BatchItem &item, const char *record, bool mixed) const {
    char *to = out + item.index * pitch;
    if (!raw) {
      std::memcpy(to, record + recordHeaderBytes, store->options.payloadBytes);
      return;
    }
    std::memcpy(to, record, store->options.storeBytes);
    if (mixed)
      store->mix(item.place, to);
  }
};

namespace {

class ReadOp final : public IoRequest {
public:
  explicit ReadOp(ReadBatch::State &batch) : batch(batch) {
    background = batch.raw;
  }

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
      // All records that miss bytes; the batch keeps the first by row.
      for (uint32_t i = run.first; i < run.last; ++i) {
        const BatchItem &item = batch.items[i];
        if (store.layout.positionOf(item.place).offset +
                store.options.storeBytes <=
            offset)
          continue;
        // Nothing at all and no error: the file ends before its rows do.
        batch.fail(item.row,
                   store.placeError("cannot read", item.row, item.place,
                                    result < 0 ? -result : ENODATA));
      }
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
      const char *record =
          buffer + (store.layout.positionOf(item.place).offset - run.begin);
      if (!store.verify(item.row, item.place, record)) {
        batch.fail(item.row, store.corrupt(item.row, item.place));
        continue;
      }
      batch.give(item, record, true);
      if (!batch.raw && store.mapped.any())
        MappedRows::verified(store.location[item.row], item.place);
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
  uint32_t began = epoch;
  {
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    finished.notify_all();
  } // the batch may be gone from here on
  std::lock_guard<std::mutex> lock(impl->mutex);
  --impl->epochReads[began];
  impl->advanceEpoch();
  if (impl->waiters > 0)
    impl->work.notify_all();
  impl->changed.notify_all();
}

ReadBatch::ReadBatch() : state(std::make_unique<State>()) {}
ReadBatch::~ReadBatch() = default;

BatchRun RowStore::Impl::makeRun(const std::vector<BatchItem> &items,
                                 uint32_t first, uint64_t gap) const {
  uint64_t mask = ~uint64_t(block - 1);
  StoreLayout::Position at = layout.positionOf(items[first].place);
  uint32_t segment = layout.segmentOf(items[first].place);
  BatchRun run;
  run.first = first;
  run.last = first + 1;
  run.extent = at.extent;
  run.begin = at.offset & mask;
  run.end = (at.offset + options.storeBytes + block - 1) & mask;
  for (; run.last < items.size(); ++run.last) {
    if (layout.segmentOf(items[run.last].place) != segment)
      break;
    at = layout.positionOf(items[run.last].place);
    uint64_t end = (at.offset + options.storeBytes + block - 1) & mask;
    if ((at.offset & mask) > run.end + gap ||
        end - run.begin > device.bufferBytes())
      break;
    run.end = end;
  }
  return run;
}

const char *RowStore::Impl::inMemory(uint32_t place, bool &mixed) const {
  const Segment &segment = segments[layout.segmentOf(place)];
  auto inPiece = [&](const Piece &p) {
    return place - p.place < p.count; // wraps around below
  };
  if (segment.pending > 0)
    for (const WriteRun &run : runs)
      for (const Piece &p : run.pieces)
        if (inPiece(p)) {
          mixed = p.mixed;
          return p.records + uint64_t(place - p.place) * options.storeBytes;
        }
  if (segment.state == Segment::State::Open)
    for (const Stream *stream : {&user, &cleaner})
      if (place - stream->tailPlace < stream->tailCount) {
        mixed = true;
        return stream->tail.data() +
               uint64_t(place - stream->tailPlace) * options.storeBytes;
      }
  return nullptr;
}

void RowStore::start(ReadBatch &batch) { impl->startItems(batch, false); }

/// Copies what lies in place, in parts on several threads; gives the others.
void RowStore::Impl::readInPlace(const ReadBatch &batch,
                                 std::vector<BatchItem> &others) {
  MappedRows::Gather gather{&location[0], options.rows, options.payloadBytes,
                            batch.rows,   batch.out,    batch.pitch};
  std::mutex merge;
  auto part = [&](uint32_t begin, uint32_t end) {
    mapped.copy(gather, begin, end, [&](const uint32_t *left, uint32_t n) {
      std::lock_guard<std::mutex> lock(merge);
      for (uint32_t i = 0; i < n; ++i)
        others.push_back({0, left[i], 0});
    });
  };
  if (batch.spread)
    batch.spread(batch.count, part);
  else
    part(0, batch.count);
  counts.readInPlace.fetch_add(batch.count - others.size(),
                               std::memory_order_relaxed);
}

void RowStore::Impl::startItems(ReadBatch &batch, bool raw) {
  ReadBatch::State &s = *batch.state;
  s.store = this;
  s.out = batch.out;
  s.pitch = batch.pitch;
  s.raw = raw;
  s.onDone = raw ? std::function<void()>() : batch.onDone;
  s.ops.clear();
  s.items.clear();
  s.cursor = 0;
  s.active = 1;
  s.done = false;
  s.failure = Status();
  const bool inPlace = !raw && mapped.any();
  // Bring the locations near before the lock is taken.
  for (uint32_t i = 0; i < batch.count && !raw && !inPlace; ++i)
    if (batch.rows[i] < options.rows)
      __builtin_prefetch(&location[batch.rows[i]]);
  {
    std::unique_lock<std::mutex> lock(mutex);
    s.epoch = epoch;
    ++epochReads[epoch];
    if (!failure.ok())
      s.fail(0, failure.clone());
    size_t all = s.failure.ok() ? batch.count : 0, kept = 0;
    if (inPlace && all > 0) {
      // The epoch keeps the segments that are looked up from now on.
      lock.unlock();
      readInPlace(batch, s.items);
      lock.lock();
      all = s.items.size();
    } else {
      s.items.resize(all);
    }
    for (uint32_t k = 0; k < all; ++k) {
      uint32_t i = inPlace ? s.items[k].index : k;
      uint32_t row = batch.rows[i];
      uint32_t place = raw ? row + 1 : row < options.rows ? locate(row) : 0;
      if (place == 0) {
        s.fail(row, Status(TRC_NOT_FOUND, rowName(row) + " was never written"));
        break;
      }
      BatchItem item{place - 1, i, raw ? unknownRow : row};
      bool mixed = false;
      if (const char *record = inMemory(item.place, mixed)) {
        s.give(item, record, mixed);
        counts.readFromQueue.fetch_add(1, std::memory_order_relaxed);
      } else {
        s.items[kept++] = item;
      }
    }
    s.items.resize(s.failure.ok() ? kept : 0);
  }
  auto byPlace = [](const BatchItem &a, const BatchItem &b) {
    return a.place < b.place;
  };
  if (!std::is_sorted(s.items.begin(), s.items.end(), byPlace))
    std::sort(s.items.begin(), s.items.end(), byPlace);
  uint32_t most =
      static_cast<uint32_t>(std::min<size_t>(depth, s.items.size()));
  // Reserved, so that requests under way stay where they are.
  s.ops.reserve(most);
  while (s.ops.size() < most)
    s.ops.emplace_back(s);
  for (uint32_t i = 0; i < most && s.take(s.ops[i]); ++i) {
    {
      std::lock_guard<std::mutex> lock(s.mutex);
      ++s.active;
    }
    device.submit(s.ops[i]);
  }
  s.leave();
}

Status RowStore::wait(ReadBatch &batch) { return impl->waitBatch(batch); }

Status RowStore::Impl::waitBatch(ReadBatch &batch) {
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
