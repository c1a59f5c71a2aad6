//===- RowStore.cpp - The rows of one group on their home tier ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening, records, and whole-store streaming. Reads: RowReads.cpp; writes:
// RowWrites.cpp; life of segments: Segments.cpp; checkpoints: Cut.cpp and
// Images.cpp; cleaning: Cleaner.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Files.h"
#include "runtime/store/Crc32c.h"
#include "runtime/store/RowStoreImpl.h"
#include "runtime/store/Superblock.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/random.h>
#include <system_error>

using namespace trc;

RowStore::RowStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}

RowStore::~RowStore() {
  {
    std::unique_lock<std::mutex> lock(impl->mutex);
    impl->stop = true;
    impl->work.notify_all();
    impl->changed.notify_all();
  }
  if (impl->thread.joinable())
    impl->thread.join();
  std::unique_lock<std::mutex> lock(impl->mutex);
  impl->changed.wait(lock, [&] {
    return impl->runs.empty() && impl->epochReads[0] == 0 &&
           impl->epochReads[1] == 0 && impl->idleOps.size() == impl->ops.size();
  });
}

uint64_t RowStore::memoryBytes() const {
  const RowStoreOptions &o = impl->options;
  return storeMemory(o.rows, o.geometry, o.storeBytes, o.retained, o.writeSlots,
                     o.maxWrites, o.depth, impl->mapped.any());
}

Result<std::unique_ptr<RowStore>> RowStore::open(Device &device,
                                                 const RowStoreOptions &o) {
  auto bad = [&](const std::string &what) {
    return Status(TRC_BAD_ARGUMENT,
                  "store of group '" + o.group + "': " + what);
  };
  if (o.rows == 0 || o.payloadBytes == 0 || o.extents.empty() ||
      o.writeSlots == 0)
    return bad("rows, payload, files and write slots must be given");
  if (o.rows > UINT32_MAX - 2)
    return bad(std::to_string(o.rows) + " rows are too many");
  if (o.storeBytes % recordAlign != 0 ||
      o.storeBytes < recordHeaderBytes + o.payloadBytes)
    return bad("records of " + std::to_string(o.storeBytes) +
               " bytes cannot hold a payload of " +
               std::to_string(o.payloadBytes) + " bytes");
  const StoreGeometry &g = o.geometry;
  if (g.segmentBytes == 0 || g.segmentBytes % storeSector != 0 ||
      g.segmentBytes > UINT32_MAX - storeSector ||
      g.segmentBytes < o.storeBytes)
    return bad("segments of " + std::to_string(g.segmentBytes) +
               " bytes cannot hold records of " + std::to_string(o.storeBytes) +
               " in whole sectors of 4096");
  if (g.segments < 3)
    return bad(std::to_string(g.segments) +
               " segments are too few: one to append to, one to clean into "
               "and one spare");
  if (g.segments * g.recordsPerSegment(o.storeBytes) >= UINT32_MAX - 1)
    return bad(std::to_string(g.segments) + " segments of " +
               std::to_string(g.recordsPerSegment(o.storeBytes)) +
               " records are more than 32 bits can name; use two groups");
  try {
    auto impl = std::make_unique<Impl>(device, o);
    Impl &s = *impl;
    std::vector<uint64_t> bases;
    uint64_t bytes = g.extentBytes(static_cast<uint32_t>(o.extents.size()));
    for (const RowStoreOptions::Extent &e : o.extents) {
      if (e.base % storeSector != 0)
        return bad("base offset " + std::to_string(e.base) + " of '" + e.path +
                   "' is no multiple of 4096");
      // What is there already is not grown: that would hide a truncation.
      auto file =
          device.openFile(e.path, o.create ? e.base + bytes : 0, o.create);
      if (!file.ok())
        return file.takeStatus();
      FileInfo info = device.fileInfo(*file);
      if (info.bytes < e.base + bytes)
        return Status(TRC_CORRUPT,
                      "'" + e.path + "' has " + std::to_string(info.bytes) +
                          " bytes, group '" + o.group + "' needs " +
                          std::to_string(e.base + bytes) +
                          " there; the file was cut off");
      s.files.push_back(*file);
      s.paths.push_back(e.path);
      s.block = std::max(s.block, info.blockBytes);
      bases.push_back(e.base);
    }
    uint64_t span = recordSpan(o.storeBytes, s.block);
    if (device.bufferBytes() < span)
      return bad("the device's buffers of " +
                 std::to_string(device.bufferBytes()) +
                 " bytes do not hold the " + std::to_string(span) +
                 " bytes around a record");
    TRC_RETURN_IF_ERROR(openSuperblocks(device, o, s.files, s.holders));
    s.layout = StoreLayout(g, o.storeBytes, std::move(bases));
    s.mapped = MappedRows(device, s.layout, s.files);
    s.placeBits = s.mapped.placeBits();
    if (!s.location.allocate(o.rows))
      throw std::bad_alloc();
    s.changedRows = RowMarks(o.rows);
    s.segments.resize(g.segments);
    s.freeSegments = g.segments;
    s.current = PlaceMarks(s.layout);
    if (!o.readOnly) {
      for (uint32_t i = 0; i <= o.retained; ++i)
        s.spare.emplace_back(s.layout);
      s.cut.changed = RowMarks(o.rows);
      s.cut.pendingMarks = RowMarks(o.rows);
      // Generations must not repeat what a crashed run gave to a segment.
      if (getrandom(&s.generation, sizeof s.generation, 0) !=
          static_cast<ssize_t>(sizeof s.generation))
        return Status(TRC_UNSUPPORTED,
                      "store of group '" + o.group +
                          "': the system has no random numbers");
      s.thread = std::thread([&s] {
        blockSignalsInThisThread();
        s.clean();
      });
    }
    return std::unique_ptr<RowStore>(new RowStore(std::move(impl)));
  } catch (const std::bad_alloc &) {
    return Status(TRC_NO_MEMORY, "store of group '" + o.group +
                                     "': no memory for the index of " +
                                     std::to_string(o.rows) + " rows");
  } catch (const std::system_error &e) {
    return Status(TRC_NO_MEMORY, "store of group '" + o.group +
                                     "': cannot start its thread: " + e.what());
  }
}

const std::vector<uint64_t> &RowStore::holders() const { return impl->holders; }

Status RowStore::claim(uint64_t holder) {
  TRC_RETURN_IF_ERROR(impl->writable("a claim"));
  return claimSuperblocks(impl->device, impl->options, impl->files, holder);
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

uint32_t RowStore::Impl::checksum(uint32_t row, const char *payload) const {
  uint64_t who[2] = {options.key, row};
  return crc32c(crc32c(0, who, sizeof who), payload, options.payloadBytes);
}

void RowStore::seal(uint32_t row, char *record) const {
  uint32_t used = recordHeaderBytes + impl->options.payloadBytes;
  RecordHeader header{impl->checksum(row, record + recordHeaderBytes), row};
  std::memcpy(record, &header, sizeof header);
  std::memset(record + used, 0, impl->options.storeBytes - used);
}

void RowStore::Impl::mix(uint32_t place, char *record) const {
  uint32_t crc;
  std::memcpy(&crc, record, sizeof crc);
  crc ^= recordMix(segments[layout.segmentOf(place)].generation,
                   layout.indexOf(place));
  std::memcpy(record, &crc, sizeof crc);
}

bool RowStore::Impl::verify(uint32_t row, uint32_t place,
                            const char *record) const {
  RecordHeader header;
  std::memcpy(&header, record, sizeof header);
  if (row == unknownRow ? header.row >= options.rows : header.row != row)
    return false;
  uint32_t crc = checksum(header.row, record + recordHeaderBytes);
  return header.crc ==
         (crc ^ recordMix(segments[layout.segmentOf(place)].generation,
                          layout.indexOf(place)));
}

std::string RowStore::Impl::rowName(uint32_t row) const {
  if (row < options.rows && options.rowName)
    return options.rowName(row);
  return (row == unknownRow ? "a row" : "row " + std::to_string(row)) +
         " of group '" + options.group + "'";
}

Status RowStore::Impl::placeError(const char *what, uint32_t row,
                                  uint32_t place, int error) const {
  StoreLayout::Position at = layout.positionOf(place);
  return Status::ioError(std::string(what) + " " + rowName(row) +
                             " at offset " + std::to_string(at.offset) + " of",
                         paths[at.extent], error);
}

Status RowStore::Impl::corrupt(uint32_t row, uint32_t place) const {
  // What lies there may name any row; the index knows better, if it is current.
  for (uint32_t r = 0; row == unknownRow && r < options.rows; ++r)
    if (locate(r) == place + 1)
      row = r;
  StoreLayout::Position at = layout.positionOf(place);
  return Status(TRC_CORRUPT, rowName(row) + " at offset " +
                                 std::to_string(at.offset) + " of '" +
                                 paths[at.extent] +
                                 "' fails its check; go back to a checkpoint");
}

Status RowStore::Impl::writable(const char *what) const {
  if (!options.readOnly)
    return {};
  return Status(TRC_BAD_ARGUMENT, name() + " was opened to be read only, but " +
                                      what + " was asked for");
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Status RowStore::failure() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->failure.clone();
}

bool RowStore::written(uint32_t row) const { return impl->locate(row) != 0; }

uint64_t RowStore::writtenCount() const { return impl->writtenRows; }

uint32_t RowStore::nextWritten(uint32_t row) const {
  uint32_t n = impl->options.rows;
  while (row < n && !impl->locate(row))
    ++row;
  return std::min(row, n);
}

void RowStore::clear() {
  std::lock_guard<std::mutex> lock(impl->mutex);
  for (uint32_t r = 0; r < impl->options.rows; ++r)
    impl->location[r].store(0, std::memory_order_relaxed);
  impl->writtenRows = 0;
  // In one go: cleaning takes a mark for a row that is there.
  for (uint32_t s = 0; s < impl->layout.segments(); ++s)
    impl->releaseSegment(impl->current, s);
  impl->work.notify_all();
  // No delta can say that a row is gone.
  impl->chain = {};
}

//===----------------------------------------------------------------------===//
// Streaming
//===----------------------------------------------------------------------===//

Status RowStore::scan(const std::function<Status(uint32_t, const char *)> &take,
                      const std::function<bool(uint32_t)> &want) {
  Impl &s = *impl;
  std::lock_guard<std::mutex> one(s.scanning);
  // The rows of this moment: what their places hold stays until it was given.
  PlaceMarks marks;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    if (!s.failure.ok())
      return s.failure.clone();
    if (want) {
      marks = PlaceMarks(s.layout);
      for (uint32_t row = 0; row < s.options.rows; ++row)
        if (uint32_t place = s.locate(row); place && want(row))
          marks.set(place - 1);
    } else {
      marks = s.current;
    }
    s.scanMarks = &marks;
  }
  struct Part {
    ReadBatch batch;
    std::vector<uint32_t> places;
    std::vector<char> records;
    bool started = false;
  };
  uint64_t pitch = storeBytes();
  size_t each = std::max<uint64_t>(1, (1 << 20) / pitch);
  uint64_t next = 0;
  Part parts[2];
  auto start = [&](Part &p) {
    p.places.clear();
    uint32_t n = s.layout.perSegment();
    for (; next < s.layout.places() && p.places.size() < each; ++next) {
      uint32_t place = static_cast<uint32_t>(next);
      if (place % n == 0 && !marks.any(place / n))
        next += n - 1;
      else if (marks.test(place))
        p.places.push_back(place);
    }
    p.started = !p.places.empty();
    if (!p.started)
      return;
    p.records.resize(p.places.size() * pitch);
    p.batch.rows = p.places.data();
    p.batch.count = static_cast<uint32_t>(p.places.size());
    p.batch.out = p.records.data();
    p.batch.pitch = pitch;
    s.startItems(p.batch, true);
  };
  Status status;
  uint32_t passed = 0;
  start(parts[0]);
  for (int i = 0; parts[i].started; i ^= 1) {
    Part &p = parts[i];
    if (status.ok())
      start(parts[i ^ 1]);
    else
      parts[i ^ 1].started = false;
    Status read = wait(p.batch);
    if (status.ok())
      status = std::move(read);
    for (size_t k = 0; status.ok() && k < p.places.size(); ++k) {
      const char *record = p.records.data() + k * pitch;
      RecordHeader header;
      std::memcpy(&header, record, sizeof header);
      status = take(header.row, record + recordHeaderBytes);
    }
    p.started = false;
    // Let go of the segments behind us, so that a long scan stops no cleaning.
    uint32_t until = p.places.back() / s.layout.perSegment();
    std::lock_guard<std::mutex> lock(s.mutex);
    for (; passed < until; ++passed)
      s.releaseSegment(marks, passed);
  }
  std::unique_lock<std::mutex> lock(s.mutex);
  s.release(marks, lock);
  s.scanMarks = nullptr;
  return status;
}

Status RowStore::load(const uint32_t *rows, uint32_t count,
                      const char *payloads) {
  std::lock_guard<std::mutex> one(impl->loading);
  uint32_t own = impl->options.writeSlots; // the first of load's two slots
  uint64_t pitch = storeBytes(), payload = payloadBytes();
  uint32_t each = std::max<uint32_t>(1, (2 << 20) / storeBytes());
  std::vector<char> records[2];
  Status status;
  uint32_t turn = 0;
  for (uint32_t at = 0; at < count && status.ok(); turn ^= 1) {
    uint32_t n = std::min(each, count - at);
    status = waitWrites(own + turn);
    if (!status.ok())
      break;
    records[turn].resize(n * pitch);
    for (uint32_t i = 0; i < n; ++i) {
      char *record = records[turn].data() + i * pitch;
      std::memcpy(record + recordHeaderBytes, payloads + (at + i) * payload,
                  payload);
      seal(rows[at + i], record);
    }
    status = write(own + turn, rows + at, n, records[turn].data());
    at += n;
  }
  for (uint32_t i = 0; i < 2; ++i)
    if (Status s = waitWrites(own + i); !s.ok() && status.ok())
      status = std::move(s);
  return status;
}

uint32_t RowStore::appendRows() const {
  return static_cast<uint32_t>(storeAppendRows(storeBytes()));
}

Status RowStore::append(const uint32_t *rows, uint32_t count,
                        const char *const *payloads) {
  uint32_t turn = impl->nextAppend++ % storeAppends;
  uint32_t slot = impl->options.writeSlots + 2 + turn;
  if (count > appendRows())
    return impl->internal(std::to_string(count) + " rows in one piece");
  TRC_RETURN_IF_ERROR(waitWrites(slot));
  std::vector<char> &records = impl->appends[turn];
  uint64_t pitch = storeBytes();
  if (records.size() < count * pitch)
    records.resize(count * pitch);
  for (uint32_t i = 0; i < count; ++i) {
    char *record = records.data() + i * pitch;
    std::memcpy(record + recordHeaderBytes, payloads[i], payloadBytes());
    seal(rows[i], record);
  }
  return write(slot, rows, count, records.data());
}

uint32_t RowStore::rows() const { return impl->options.rows; }
uint32_t RowStore::payloadBytes() const { return impl->options.payloadBytes; }
uint32_t RowStore::storeBytes() const { return impl->options.storeBytes; }

RowStore::Counters RowStore::counters() const {
  Counters c;
  c.rowsRead = impl->counts.rowsRead;
  c.rowsWritten = impl->counts.rowsWritten;
  c.reads = impl->counts.reads;
  c.writes = impl->counts.writes;
  c.bytesRead = impl->counts.bytesRead;
  c.bytesWritten = impl->counts.bytesWritten;
  c.bytesCleaned = impl->counts.bytesCleaned;
  c.segmentsCleaned = impl->counts.segmentsCleaned;
  c.bytesIndex = impl->counts.bytesIndex;
  c.stallNs = impl->counts.stallNs;
  c.readFromQueue = impl->counts.readFromQueue;
  c.readInPlace = impl->counts.readInPlace;
  return c;
}

RowStore::Space RowStore::space() const {
  const Impl &s = *impl;
  std::lock_guard<std::mutex> lock(s.mutex);
  Space space;
  uint64_t live = 0;
  for (const Segment &segment : s.segments)
    live += segment.live;
  space.capacity = s.layout.places() * s.options.storeBytes;
  space.current = s.writtenRows * s.options.storeBytes;
  space.retained = live * s.options.storeBytes - space.current;
  space.freeSegments = s.freeSegments;
  space.segments = s.layout.segments();
  return space;
}
