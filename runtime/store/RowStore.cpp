//===- RowStore.cpp - The rows of one group on their home tier ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening, records, and whole-store streaming. Reads: RowReads.cpp; writes:
// RowWrites.cpp; the list of written rows: RowIndex.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/Crc32c.h"
#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <cstring>
#include <new>

using namespace trc;

RowStore::RowStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}

RowStore::~RowStore() {
  std::unique_lock<std::mutex> lock(impl->mutex);
  impl->changed.wait(lock, [&] {
    return impl->queue.empty() && impl->activeReads == 0 &&
           impl->idleOps.size() == impl->ops.size();
  });
}

uint64_t RowStore::extentBytes(uint64_t rows, uint64_t storeBytes,
                               uint64_t extents) {
  uint64_t each = rows;
  if (extents > 1) {
    uint64_t units = (rows + RowLayout::stripeRows - 1) / RowLayout::stripeRows;
    each = (units + extents - 1) / extents * RowLayout::stripeRows;
  }
  return (each * storeBytes + 4095) / 4096 * 4096;
}

uint64_t RowStore::memoryBytes(uint64_t rows, uint64_t writeSlots,
                               uint64_t maxWrites, uint64_t depth) {
  return rowStoreMemory(rows, writeSlots, maxWrites, depth);
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
  if (o.storeBytes % recordAlign != 0 ||
      o.storeBytes < recordHeaderBytes + o.payloadBytes)
    return bad("records of " + std::to_string(o.storeBytes) +
               " bytes cannot hold a payload of " +
               std::to_string(o.payloadBytes) + " bytes");
  auto impl = std::make_unique<Impl>(device, o);
  std::vector<uint64_t> bases;
  uint64_t bytes = extentBytes(o.rows, o.storeBytes, o.extents.size());
  for (const RowStoreOptions::Extent &e : o.extents) {
    if (e.base % 4096 != 0)
      return bad("base offset " + std::to_string(e.base) + " of '" + e.path +
                 "' is no multiple of 4096");
    auto file = device.openFile(e.path, e.base + bytes, true);
    if (!file.ok())
      return file.takeStatus();
    impl->files.push_back(*file);
    impl->paths.push_back(e.path);
    impl->block = std::max(impl->block, device.fileInfo(*file).blockBytes);
    bases.push_back(e.base);
  }
  uint64_t span = recordSpan(o.storeBytes, impl->block);
  if (device.bufferBytes() < span)
    return bad("the device's buffers of " +
               std::to_string(device.bufferBytes()) +
               " bytes do not hold the " + std::to_string(span) +
               " bytes around a record");
  impl->layout = RowLayout(o.storeBytes, std::move(bases));
  impl->bits.reset(new (std::nothrow) std::atomic<uint64_t>[impl->words()]());
  if (!impl->bits)
    return Status(TRC_NO_MEMORY, "store of group '" + o.group +
                                     "': no memory for the list of " +
                                     std::to_string(o.rows) + " rows");
  return std::unique_ptr<RowStore>(new RowStore(std::move(impl)));
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

bool RowStore::Impl::verify(uint32_t row, const char *record) const {
  RecordHeader header;
  std::memcpy(&header, record, sizeof header);
  return header.row == row &&
         header.crc == checksum(row, record + recordHeaderBytes);
}

Status RowStore::Impl::rowError(const char *what, uint32_t row,
                                int error) const {
  RowLayout::Place at = layout(row);
  return Status::ioError(std::string(what) + " row " + std::to_string(row) +
                             " of group '" + options.group + "' at offset " +
                             std::to_string(at.offset) + " of",
                         paths[at.extent], error);
}

Status RowStore::Impl::corrupt(uint32_t row) const {
  RowLayout::Place at = layout(row);
  return Status(TRC_CORRUPT, "row " + std::to_string(row) + " of group '" +
                                 options.group + "' at offset " +
                                 std::to_string(at.offset) + " of '" +
                                 paths[at.extent] +
                                 "' fails its check; go back to a checkpoint");
}

BatchRun RowStore::Impl::makeRun(const std::vector<BatchItem> &items,
                                 uint32_t first, uint64_t gap) const {
  uint64_t mask = ~uint64_t(block - 1);
  RowLayout::Place at = layout(items[first].row);
  BatchRun run;
  run.first = first;
  run.last = first + 1;
  run.extent = at.extent;
  run.begin = at.offset & mask;
  run.end = (at.offset + options.storeBytes + block - 1) & mask;
  for (; run.last < items.size(); ++run.last) {
    at = layout(items[run.last].row);
    uint64_t end = (at.offset + options.storeBytes + block - 1) & mask;
    if (at.extent != run.extent || (at.offset & mask) > run.end + gap ||
        end - run.begin > device.bufferBytes())
      break;
    run.end = end;
  }
  return run;
}

//===----------------------------------------------------------------------===//
// Streaming
//===----------------------------------------------------------------------===//

Status
RowStore::scan(uint32_t begin, uint32_t end,
               const std::function<Status(uint32_t, const char *)> &take) {
  struct Piece {
    ReadBatch batch;
    std::vector<uint32_t> rows;
    std::vector<char> payloads;
    bool started = false;
  };
  end = std::min(end, rows());
  uint64_t pitch = payloadBytes();
  size_t each = std::max<uint64_t>(1, (1 << 20) / storeBytes());
  uint32_t next = nextWritten(begin);
  Piece pieces[2];
  auto start = [&](Piece &p) {
    p.rows.clear();
    for (; next < end && p.rows.size() < each; next = nextWritten(next + 1))
      p.rows.push_back(next);
    p.started = !p.rows.empty();
    if (!p.started)
      return;
    p.payloads.resize(p.rows.size() * pitch);
    p.batch.rows = p.rows.data();
    p.batch.count = static_cast<uint32_t>(p.rows.size());
    p.batch.out = p.payloads.data();
    p.batch.pitch = pitch;
    this->start(p.batch);
  };
  start(pieces[0]);
  for (int i = 0; pieces[i].started; i ^= 1) {
    start(pieces[i ^ 1]);
    Status s = wait(pieces[i].batch);
    for (size_t k = 0; s.ok() && k < pieces[i].rows.size(); ++k)
      s = take(pieces[i].rows[k], pieces[i].payloads.data() + k * pitch);
    if (!s.ok()) {
      if (pieces[i ^ 1].started)
        (void)wait(pieces[i ^ 1].batch);
      return s;
    }
    pieces[i].started = false;
  }
  return {};
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
  c.blocksMerged = impl->counts.blocksMerged;
  c.readFromQueue = impl->counts.readFromQueue;
  return c;
}
