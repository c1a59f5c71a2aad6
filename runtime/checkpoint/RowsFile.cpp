//===- RowsFile.cpp - Logical rows of tables in one file ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A chunk is a header, `count` row numbers and `count` records. The checksum
// covers all three, and the chunk's number in the file, so that a lost or
// doubled chunk fails too.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/RowsFile.h"

#include "runtime/store/Crc32c.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace trc;

namespace {

constexpr uint32_t chunkMagic = 0x54524f57; // "WORT"
constexpr size_t chunkTarget = 1 << 20;     // bytes of records
constexpr uint32_t chunkLimit = 1u << 30;

struct ChunkHeader {
  uint32_t magic;
  uint32_t table;
  uint32_t count;
  uint32_t recordBytes;
  uint64_t number;
  uint32_t seal; // of the manifest that names the file
  uint32_t crc;  // of the header with crc 0, then rows, then records
};

uint32_t chunkCrc(ChunkHeader header, const void *rows, const void *records) {
  header.crc = 0;
  uint32_t crc = crc32c(0, &header, sizeof(header));
  crc = crc32c(crc, rows, header.count * sizeof(uint64_t));
  return crc32c(crc, records,
                static_cast<size_t>(header.count) * header.recordBytes);
}

} // namespace

Result<std::unique_ptr<RowsWriter>>
RowsWriter::create(const std::string &path, std::vector<uint32_t> recordBytes,
                   uint32_t seal) {
  std::unique_ptr<RowsWriter> w(new RowsWriter());
  Result<Fd> fd = createFile(path);
  if (!fd.ok())
    return fd.takeStatus();
  w->fd = std::move(*fd);
  w->path = path;
  w->recordBytes = std::move(recordBytes);
  w->seal = seal;
  return Result<std::unique_ptr<RowsWriter>>(std::move(w));
}

Status RowsWriter::add(uint32_t toTable, uint64_t row, const char *record) {
  if (toTable != table || records.size() >= chunkTarget)
    TRC_RETURN_IF_ERROR(flushChunk());
  table = toTable;
  rowNumbers.push_back(row);
  records.insert(records.end(), record, record + recordBytes[table]);
  return Status();
}

Status RowsWriter::flushChunk() {
  if (rowNumbers.empty())
    return Status();
  ChunkHeader header = {chunkMagic,
                        table,
                        static_cast<uint32_t>(rowNumbers.size()),
                        recordBytes[table],
                        chunkCount,
                        seal,
                        0};
  header.crc = chunkCrc(header, rowNumbers.data(), records.data());
  TRC_RETURN_IF_ERROR(writeAll(fd.get(), &header, sizeof(header), path));
  TRC_RETURN_IF_ERROR(writeAll(fd.get(), rowNumbers.data(),
                               rowNumbers.size() * sizeof(uint64_t), path));
  TRC_RETURN_IF_ERROR(writeAll(fd.get(), records.data(), records.size(), path));
  written +=
      sizeof(header) + rowNumbers.size() * sizeof(uint64_t) + records.size();
  rowCount += rowNumbers.size();
  ++chunkCount;
  rowNumbers.clear();
  records.clear();
  return Status();
}

Status RowsWriter::finish() {
  TRC_RETURN_IF_ERROR(flushChunk());
  TRC_RETURN_IF_ERROR(syncFile(fd.get(), path));
  fd.reset();
  return Status();
}

static Status readExactly(int fd, void *data, uint64_t bytes,
                          const std::string &path) {
  char *p = static_cast<char *>(data);
  while (bytes) {
    ssize_t n = ::read(fd, p, std::min<uint64_t>(bytes, 1u << 30));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return Status::ioError("cannot read", path, errno);
    if (n == 0)
      return Status(TRC_CORRUPT, "'" + path + "' ends too early");
    p += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return Status();
}

Status trc::readRows(const std::string &path, uint64_t bytes, uint64_t chunks,
                     uint32_t seal,
                     const std::function<Status(const RowsChunk &)> &take) {
  Result<Fd> opened = openToRead(path);
  if (!opened.ok())
    return opened.takeStatus();
  const Fd &fd = *opened;
  std::vector<uint64_t> rows;
  std::vector<char> records;
  uint64_t at = 0;
  for (uint64_t c = 0; c < chunks; ++c) {
    auto corrupt = [&](const std::string &why) {
      return Status(TRC_CORRUPT, "'" + path + "', chunk " + std::to_string(c) +
                                     " at byte " + std::to_string(at) + ": " +
                                     why + "; use another checkpoint");
    };
    ChunkHeader header;
    TRC_RETURN_IF_ERROR(readExactly(fd.get(), &header, sizeof(header), path));
    uint64_t size = static_cast<uint64_t>(header.count) * header.recordBytes;
    if (header.magic != chunkMagic || header.number != c || size > chunkLimit)
      return corrupt("not a chunk of rows");
    rows.resize(header.count);
    records.resize(size);
    TRC_RETURN_IF_ERROR(
        readExactly(fd.get(), rows.data(), header.count * 8ull, path));
    TRC_RETURN_IF_ERROR(readExactly(fd.get(), records.data(), size, path));
    if (chunkCrc(header, rows.data(), records.data()) != header.crc)
      return corrupt("the checksum does not match");
    if (header.seal != seal)
      return corrupt("the rows are those of another checkpoint or state");
    at += sizeof(header) + header.count * 8ull + size;
    TRC_RETURN_IF_ERROR(take({header.table, header.count, header.recordBytes,
                              rows.data(), records.data()}));
  }
  if (at != bytes)
    return Status(TRC_CORRUPT, "'" + path + "' holds " + std::to_string(at) +
                                   " bytes of rows; its manifest says " +
                                   std::to_string(bytes));
  return Status();
}
