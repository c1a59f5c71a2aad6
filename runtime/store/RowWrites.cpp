//===- RowWrites.cpp - Appending records ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records take the next places of the open segment. Whole sectors become runs,
// which a bounded number of requests write piece by piece, in any order: no two
// runs share a sector. The records of the last sector wait, as copies, in the
// stream's tail until it fills up or is closed.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

using namespace trc;

namespace {
/// Records appended before a cut is looked after again.
constexpr uint32_t writePart = 4096;
constexpr uint32_t prefetchRows = 16;

uint32_t sectorDown(uint64_t bytes) {
  return static_cast<uint32_t>(bytes / storeSector * storeSector);
}
uint32_t sectorUp(uint64_t bytes) {
  return sectorDown(bytes + storeSector - 1);
}
} // namespace

namespace trc {

class WriteOp final : public IoRequest {
public:
  explicit WriteOp(RowStore::Impl &store) : store(store) {
    background = true;
    kind = Kind::Write;
  }

  void begin(char *buffer) override { fill(buffer); }

  bool complete(int32_t result, char *buffer) override {
    auto &c = store.counts;
    c.writes.fetch_add(1, std::memory_order_relaxed);
    uint32_t whole = 0;
    if (result > 0) {
      c.bytesWritten.fetch_add(result, std::memory_order_relaxed);
      whole = static_cast<uint32_t>(result) / store.block * store.block;
    }
    if (whole > 0 && whole < bytes) { // short: go on behind it
      offset += whole;
      at += whole;
      bytes -= whole;
      return true;
    }
    std::unique_lock<std::mutex> lock(store.mutex);
    if (result < 0 || whole < bytes)
      store.fail(error(result < 0 ? -result : ENOSPC));
    store.finishBytes(*run, to - from);
    bool again = store.takeWrite(*this);
    if (!again)
      store.idleOps.push_back(this);
    store.changed.notify_all();
    lock.unlock();
    if (again)
      fill(buffer);
    return again;
  }

  void assign(WriteRun &r, uint32_t begin, uint32_t end) {
    run = &r;
    from = begin;
    to = end;
    StoreLayout::Position p = store.layout.position(r.segment, begin);
    file = store.files[p.extent];
    offset = p.offset;
    bytes = end - begin;
    at = 0;
  }

private:
  /// Bytes [from, to) of the segment; what no record covers is zero.
  void fill(char *buffer) const {
    const uint32_t size = store.options.storeBytes;
    uint64_t done = from;
    for (const Piece &p : run->pieces) {
      if (p.count == 0)
        continue;
      uint32_t first = store.layout.indexOf(p.place);
      uint64_t skipped = from / size;
      uint32_t i = skipped > first ? static_cast<uint32_t>(skipped) - first : 0;
      for (; i < p.count; ++i) {
        uint64_t at = uint64_t(first + i) * size;
        if (at >= to)
          break;
        uint64_t low = std::max<uint64_t>(at, from),
                 high = std::min<uint64_t>(at + size, to);
        if (low >= high)
          continue;
        std::memset(buffer + (done - from), 0, low - std::min(done, low));
        const char *record = p.records + uint64_t(i) * size;
        std::memcpy(buffer + (low - from), record + (low - at), high - low);
        // A header never lies across two sectors: both are multiples of 16.
        if (low == at && !p.mixed)
          store.mix(p.place + i, buffer + (low - from));
        done = high;
      }
    }
    std::memset(buffer + (done - from), 0, to - done);
  }

  /// Names the first record of the transfer.
  Status error(int code) const {
    const uint32_t size = store.options.storeBytes;
    for (const Piece &p : run->pieces)
      for (uint32_t i = 0; i < p.count; ++i)
        if (uint64_t(store.layout.indexOf(p.place) + i + 1) * size > from) {
          RecordHeader header;
          std::memcpy(&header, p.records + uint64_t(i) * size, sizeof header);
          return store.placeError("cannot write", header.row, p.place + i,
                                  code);
        }
    return store.placeError("cannot write", unknownRow,
                            store.layout.place(run->segment, 0), code);
  }

  RowStore::Impl &store;
  WriteRun *run = nullptr;
  uint32_t from = 0, to = 0; // bytes of the segment
};

} // namespace trc

RowStore::Impl::Impl(Device &device, const RowStoreOptions &options)
    : device(device), options(options) {
  depth = std::max(1u, std::min(options.depth, device.depth()));
  pad = static_cast<uint32_t>((storeSector + options.storeBytes - 1) /
                              options.storeBytes);
  batches.resize(options.writeSlots + 2 + storeAppends); // load's, append's
  for (uint32_t i = 0; i < depth; ++i) {
    ops.push_back(std::make_unique<WriteOp>(*this));
    idleOps.push_back(ops.back().get());
  }
}

RowStore::Impl::~Impl() = default;

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

bool RowStore::Impl::takeWrite(WriteOp &op) {
  for (WriteRun &run : runs) {
    if (run.cursor >= run.end)
      continue;
    uint32_t begin = run.cursor;
    run.cursor = static_cast<uint32_t>(
        std::min<uint64_t>(run.end, uint64_t(begin) + device.bufferBytes()));
    op.assign(run, begin, run.cursor);
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

void RowStore::Impl::addRun(WriteRun run) {
  run.ticket = nextTicket++;
  run.cursor = run.begin;
  run.left = run.end - run.begin;
  segments[run.segment].pending += run.left;
  if (run.batch)
    ++run.batch->runs;
  runs.push_back(std::move(run));
}

void RowStore::Impl::finishBytes(WriteRun &run, uint32_t bytes) {
  uint32_t segment = run.segment;
  run.left -= bytes;
  segments[segment].pending -= bytes;
  if (run.left > 0)
    return;
  if (run.batch)
    --run.batch->runs;
  for (auto i = runs.begin(); i != runs.end(); ++i)
    if (&*i == &run) {
      runs.erase(i);
      break;
    }
  mayRetire(segment);
  if (waiters > 0)
    work.notify_all();
}

/// Nothing new is started; what is under way ends.
void RowStore::Impl::fail(Status status) {
  bool device = status.code() == TRC_IO || status.code() == TRC_NO_SPACE;
  if (failure.ok() && device)
    failure = Status(status.code(),
                     status.message() +
                         "; nothing more is stored, what is on disk is the "
                         "state of its last checkpoint: open it again");
  else if (failure.ok())
    failure = std::move(status);
  for (auto i = runs.begin(); i != runs.end();) {
    WriteRun &run = *i++;
    uint32_t dropped = run.end - run.cursor;
    run.end = run.cursor;
    if (dropped > 0)
      finishBytes(run, dropped);
  }
  changed.notify_all();
  work.notify_all();
}

//===----------------------------------------------------------------------===//
// Appending
//===----------------------------------------------------------------------===//

/// Records that can be appended, leaving `reserve` segments free.
uint32_t RowStore::Impl::roomFor(const Stream &stream, uint32_t reserve) const {
  uint32_t each = layout.perSegment();
  if (stream.segment != Stream::none)
    return each - stream.next;
  return freeSegments > reserve ? each : 0;
}

void RowStore::Impl::openSegment(Stream &stream) {
  while (segments[nextFree].state != Segment::State::Free)
    nextFree = (nextFree + 1) % layout.segments();
  Segment &segment = segments[nextFree];
  segment.state = Segment::State::Open;
  segment.generation = ++generation;
  --freeSegments;
  stream.segment = nextFree;
  stream.next = stream.issued = 0;
  nextFree = (nextFree + 1) % layout.segments();
  if (freeSegments < lowWater())
    work.notify_all();
}

/// Copies records that begin at or after index `from` into the tail.
void RowStore::Impl::keepTail(Stream &stream, uint32_t from,
                              const char *records, uint32_t count) {
  if (count == 0)
    return;
  uint32_t size = options.storeBytes;
  if (stream.tailCount == 0) {
    stream.tailPlace = layout.place(stream.segment, from);
    stream.tail.reserve((pad + 1) * size);
  }
  size_t at = stream.tail.size();
  stream.tail.insert(stream.tail.end(), records,
                     records + uint64_t(count) * size);
  for (uint32_t i = 0; i < count; ++i)
    mix(stream.tailPlace + stream.tailCount++, &stream.tail[at + i * size]);
}

uint32_t RowStore::Impl::append(Stream &stream, WriteBatch *batch,
                                const char *records, uint32_t count,
                                uint32_t &first) {
  if (stream.segment == Stream::none)
    openSegment(stream);
  const uint32_t size = options.storeBytes, each = layout.perSegment();
  uint32_t index = stream.next, n = std::min(count, each - index);
  first = layout.place(stream.segment, index);
  stream.next += n;
  uint64_t end = uint64_t(stream.next) * size;
  bool full = stream.next == each;
  uint32_t whole = full ? sectorUp(end) : sectorDown(end);
  if (whole > stream.issued) {
    WriteRun run;
    run.segment = stream.segment;
    run.begin = stream.issued;
    run.end = whole;
    run.batch = batch;
    if (stream.tailCount) {
      run.head.swap(stream.tail);
      run.pieces[0] = {stream.tailPlace, stream.tailCount, run.head.data(),
                       true};
      stream.tail.clear();
      stream.tailCount = 0;
    }
    run.pieces[1] = {first, n, records, false};
    addRun(std::move(run));
    stream.issued = whole;
    // The first record with bytes behind the run; it is of this batch, for the
    // ones before ended in the run's first sector.
    uint32_t kept = whole / size;
    if (kept < stream.next)
      keepTail(stream, kept, records + uint64_t(kept - index) * size,
               stream.next - kept);
  } else {
    keepTail(stream, index, records, n);
  }
  if (full) {
    segments[stream.segment].state = Segment::State::Full;
    stream.segment = Stream::none;
  }
  return n;
}

void RowStore::Impl::closeTail(Stream &stream) {
  if (stream.tailCount == 0)
    return;
  uint64_t end = uint64_t(stream.next) * options.storeBytes;
  WriteRun run;
  run.segment = stream.segment;
  run.begin = stream.issued;
  run.end = sectorUp(end);
  run.head.swap(stream.tail);
  run.pieces[0] = {stream.tailPlace, stream.tailCount, run.head.data(), true};
  stream.tail.clear();
  stream.tailCount = 0;
  // The first place that begins in a fresh sector; sectors before it stay.
  uint64_t next = (run.end + options.storeBytes - 1) / options.storeBytes;
  uint32_t segment = stream.segment;
  addRun(std::move(run));
  if (next >= layout.perSegment()) {
    segments[segment].state = Segment::State::Full;
    stream.segment = Stream::none;
    return;
  }
  stream.next = static_cast<uint32_t>(next);
  stream.issued = sectorDown(next * options.storeBytes);
}

void RowStore::Impl::assign(uint32_t row, uint32_t place) {
  uint32_t old = locate(row);
  if (cut.active && !cut.finished) {
    if (cut.pendingMarks.test(row))
      resolvePending(row, place);
    else if (old && row >= cut.cursor && cut.failure.ok() &&
             cut.marks.test(old - 1) && (cut.base || cut.changed.test(row)))
      cut.special.emplace(row, old - 1);
  }
  location[row].store(place + 1, std::memory_order_release);
  current.set(place);
  ++segments[layout.segmentOf(place)].live;
  if (changedRows.set(row))
    ++changedCount;
  if (!old) {
    writtenRows.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  current.clear(old - 1);
  if (!namedApart(old - 1))
    dropLive(layout.segmentOf(old - 1));
}

Status RowStore::write(uint32_t slot, const uint32_t *rows, uint32_t count,
                       const char *records) {
  Impl &s = *impl;
  TRC_RETURN_IF_ERROR(s.writable("a write"));
  if (slot >= s.batches.size())
    return s.internal("there is no write slot " + std::to_string(slot));
  bool own = slot >= s.options.writeSlots;
  if (!own && count > s.options.maxWrites)
    return s.internal(std::to_string(count) + " writes exceed the plan's " +
                      std::to_string(s.options.maxWrites));
  for (uint32_t i = 0; i < count; ++i)
    if (rows[i] >= s.options.rows)
      return s.internal("there is no row " + std::to_string(rows[i]));

  std::unique_lock<std::mutex> lock(s.mutex);
  if (!s.failure.ok())
    return s.failure.clone();
  WriteBatch &batch = s.batches[slot];
  if (batch.pending())
    return s.internal("write slot " + std::to_string(slot) +
                      " is used again before its writes are done");
  // A batch lies wholly before or after a cut.
  s.changed.wait(lock, [&] { return !s.cutWaits; });
  batch.appending = true;
  ++s.appending;
  s.started = true;
  Status status;
  for (uint32_t at = 0; at < count;) {
    status = s.waitRoom(lock);
    if (!status.ok())
      break;
    uint32_t first = 0;
    uint32_t n =
        s.append(s.user, &batch, records + uint64_t(at) * s.options.storeBytes,
                 std::min(count - at, writePart), first);
    for (uint32_t i = 0; i < n; ++i) {
      if (at + i + prefetchRows < count)
        __builtin_prefetch(&s.location[rows[at + i + prefetchRows]], 1);
      s.assign(rows[at + i], first + i);
    }
    s.counts.rowsWritten.fetch_add(n, std::memory_order_relaxed);
    s.startWrites();
    at += n;
    if (at < count) { // let others have a turn
      lock.unlock();
      lock.lock();
    }
  }
  batch.appending = false;
  --s.appending;
  s.changed.notify_all();
  return status;
}

/// Until the open segment or the free ones take a record, and a cut has room to
/// remember old places.
Status RowStore::Impl::waitRoom(std::unique_lock<std::mutex> &lock) {
  using Clock = std::chrono::steady_clock;
  uint64_t forgottenBefore = UINT64_MAX;
  for (;;) {
    if (!failure.ok())
      return failure.clone();
    if (cut.active && cut.special.size() >= storeCutRows(options.rows) &&
        cut.failure.ok() && cut.cursor < options.rows) {
      lock.unlock();
      Result<bool> more = captureStep();
      lock.lock();
      (void)more; // finishCut() says what went wrong
      continue;
    }
    if (roomFor(user, 1) > 0)
      return {};
    Clock::time_point began = Clock::now();
    ++waiters;
    uint64_t question = ++asked;
    work.notify_all();
    changed.wait(lock, [&] {
      return roomFor(user, 1) > 0 || answered >= question || !failure.ok() ||
             stop;
    });
    --waiters;
    counts.stallNs += static_cast<uint64_t>(
        std::chrono::nanoseconds(Clock::now() - began).count());
    if (!failure.ok() || roomFor(user, 1) > 0)
      continue;
    if (!stop && !putOff.why.ok())
      return Status(putOff.why.code(),
                    name() +
                        " has no free segment left, and cleaning waits "
                        "for a file of moves: " +
                        putOff.why.message() +
                        "; mend that, then open the state again");
    if (stop || !options.onFull || forgottenBefore == forgotten)
      return Status(TRC_FULL,
                    fullStatus().message() +
                        "; it needs more capacity or fewer checkpoints");
    forgottenBefore = forgotten;
    lock.unlock();
    Status made = options.onFull();
    lock.lock();
    if (!made.ok())
      return made.code() == TRC_FULL
                 ? Status(TRC_FULL,
                          fullStatus().message() + "; " + made.message())
                 : std::move(made);
  }
}

Status RowStore::Impl::fullStatus() const {
  uint64_t live = 0, capacity = layout.places();
  for (const Segment &segment : segments)
    live += segment.live;
  auto percent = [&](uint64_t n) {
    return std::to_string(n * 100 / capacity) + " %";
  };
  return Status(TRC_FULL,
                name() + " is full: of " +
                    std::to_string(capacity * options.storeBytes >> 10) +
                    " KiB in '" + paths[0] + "'" +
                    (paths.size() > 1 ? ", ..." : "") + " current rows hold " +
                    percent(writtenRows) + ", checkpoints hold " +
                    percent(live - writtenRows) + " more");
}

Status RowStore::waitWrites(uint32_t slot) {
  std::unique_lock<std::mutex> lock(impl->mutex);
  impl->changed.wait(lock, [&] { return !impl->batches[slot].pending(); });
  return impl->failure.clone();
}

bool RowStore::writesDone(uint32_t slot) const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return !impl->batches[slot].pending();
}

Status RowStore::Impl::flushAll(std::unique_lock<std::mutex> &lock,
                                bool withUser) {
  if (withUser)
    closeTail(user);
  closeTail(cleaner);
  startWrites();
  uint64_t mark = nextTicket;
  changed.wait(lock,
               [&] { return runs.empty() || runs.front().ticket >= mark; });
  if (!failure.ok())
    return failure.clone();
  lock.unlock();
  Status status;
  for (uint32_t file : files) {
    status = device.flush(file);
    if (!status.ok())
      break;
  }
  lock.lock();
  // The kernel may have dropped the pages: what was written is in doubt.
  if (!status.ok())
    fail(status.clone());
  return failure.clone();
}

Status RowStore::flush() {
  TRC_RETURN_IF_ERROR(impl->writable("a flush"));
  std::unique_lock<std::mutex> lock(impl->mutex);
  if (!impl->failure.ok())
    return impl->failure.clone();
  return impl->flushAll(lock, true);
}
