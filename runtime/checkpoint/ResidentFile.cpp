//===- ResidentFile.cpp - Which rows the caches of a state held -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Read twice, once for the checksum: what a damaged file says of the order of
// rows must not get into a policy.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/ResidentFile.h"

#include "runtime/store/Crc32c.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;

namespace {

constexpr char residentMagic[8] = {'T', 'R', 'C', 'R', 'O', 'W', 'S', '1'};
constexpr size_t residentBuffer = 1 << 16;

struct FileHeader {
  char magic[8];
  uint32_t groups, unused;
  uint64_t key, sequence;
};

struct GroupHeader {
  char policy[16];
  uint64_t age, rows, count;
};

constexpr size_t rowBytes = sizeof(uint32_t) + sizeof(uint16_t);

} // namespace

Result<std::unique_ptr<ResidentWriter>>
ResidentWriter::create(const std::string &path, const ResidentRoot &root) {
  Result<Fd> fd = createFile(path);
  if (!fd.ok())
    return fd.takeStatus();
  std::unique_ptr<ResidentWriter> w(new ResidentWriter(path, std::move(*fd)));
  w->buffer.reserve(residentBuffer);
  FileHeader header = {{}, root.groups, 0, root.key, root.sequence};
  std::memcpy(header.magic, residentMagic, sizeof(residentMagic));
  TRC_RETURN_IF_ERROR(w->put(&header, sizeof(header)));
  return Result<std::unique_ptr<ResidentWriter>>(std::move(w));
}

Status ResidentWriter::put(const void *data, size_t bytes) {
  if (buffer.size() + bytes > residentBuffer)
    TRC_RETURN_IF_ERROR(flush());
  const char *p = static_cast<const char *>(data);
  buffer.insert(buffer.end(), p, p + bytes);
  return Status();
}

Status ResidentWriter::flush() {
  crc = crc32c(crc, buffer.data(), buffer.size());
  TRC_RETURN_IF_ERROR(writeAll(fd.get(), buffer.data(), buffer.size(), path));
  buffer.clear();
  return Status();
}

Status ResidentWriter::beginGroup(const ResidentGroup &group) {
  GroupHeader header = {{}, group.age, group.rows, group.count};
  std::strncpy(header.policy, group.policy.c_str(), sizeof(header.policy) - 1);
  left = group.count;
  return put(&header, sizeof(header));
}

Status ResidentWriter::add(ResidentRow row) {
  if (left == 0)
    return Status(TRC_INTERNAL, "'" + path +
                                    "': a cache holds more rows than it "
                                    "counts");
  --left;
  char packed[rowBytes];
  std::memcpy(packed, &row.row, sizeof(row.row));
  std::memcpy(packed + sizeof(row.row), &row.heat, sizeof(row.heat));
  return put(packed, sizeof(packed));
}

Status ResidentWriter::addCache(const GroupCache &cache) {
  const GroupCacheOptions &o = cache.options();
  TRC_RETURN_IF_ERROR(beginGroup(
      {o.policy, cache.policyAge(), o.rows, cache.counters().resident}));
  Status s;
  cache.forEachResident([&](ResidentRow row) {
    if (s.ok())
      s = add(row);
  });
  if (s.ok() && left)
    return Status(TRC_INTERNAL, "'" + path + "': " + std::to_string(left) +
                                    " rows of the cache are in use");
  return s;
}

Status ResidentWriter::finish() {
  TRC_RETURN_IF_ERROR(flush());
  TRC_RETURN_IF_ERROR(writeAll(fd.get(), &crc, sizeof(crc), path));
  return syncFile(fd.get(), path);
}

namespace {

class ResidentReader {
public:
  explicit ResidentReader(const std::string &path) : path(path) {}

  Status check() {
    Result<Fd> opened = openToRead(path);
    if (!opened.ok())
      return opened.takeStatus();
    fd = std::move(*opened);
    struct stat info;
    if (::fstat(fd.get(), &info) != 0)
      return Status::ioError("cannot read", path, errno);
    uint64_t size = static_cast<uint64_t>(info.st_size);
    if (size < sizeof(FileHeader) + sizeof(uint32_t))
      return corrupt("it ends too early");
    end = size - sizeof(uint32_t);
    std::vector<char> piece(residentBuffer);
    uint32_t crc = 0, stored = 0;
    while (at < end) {
      size_t n =
          static_cast<size_t>(std::min<uint64_t>(end - at, residentBuffer));
      TRC_RETURN_IF_ERROR(get(piece.data(), n));
      crc = crc32c(crc, piece.data(), n);
    }
    end = size;
    TRC_RETURN_IF_ERROR(get(&stored, sizeof(stored)));
    if (crc != stored)
      return corrupt("the checksum does not match");
    at = 0;
    end = size - sizeof(uint32_t);
    return Status();
  }

  Status get(void *data, size_t bytes) {
    if (bytes > end - at)
      return corrupt("it ends too early");
    char *p = static_cast<char *>(data);
    while (bytes) {
      ssize_t n = ::pread(fd.get(), p, bytes, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return Status::ioError("cannot read", path, errno);
      if (n == 0)
        return corrupt("it ends too early");
      p += n;
      at += static_cast<uint64_t>(n);
      bytes -= static_cast<size_t>(n);
    }
    return Status();
  }
  uint64_t left() const { return end - at; }
  Status corrupt(const std::string &why) const {
    return Status(TRC_CORRUPT, "'" + path + "': " + why);
  }

private:
  const std::string &path;
  Fd fd;
  uint64_t at = 0, end = 0;
};

} // namespace

Status trc::readResidents(
    const std::string &path, const ResidentRoot &root,
    const std::function<Status(uint32_t, const ResidentGroup &)> &begin,
    const std::function<Status(const ResidentRow *, uint32_t)> &take) {
  ResidentReader in(path);
  TRC_RETURN_IF_ERROR(in.check());
  FileHeader header;
  TRC_RETURN_IF_ERROR(in.get(&header, sizeof(header)));
  if (std::memcmp(header.magic, residentMagic, sizeof(residentMagic)) != 0)
    return in.corrupt("it is no file of resident rows");
  if (header.key != root.key || header.sequence != root.sequence ||
      header.groups != root.groups)
    return Status(TRC_MISMATCH,
                  "'" + path + "' is that of another closed state");
  constexpr uint32_t piece = 4096;
  std::vector<char> packed(piece * rowBytes);
  std::vector<ResidentRow> rows(piece);
  for (uint32_t g = 0; g < root.groups; ++g) {
    GroupHeader h;
    TRC_RETURN_IF_ERROR(in.get(&h, sizeof(h)));
    h.policy[sizeof(h.policy) - 1] = 0;
    if (h.count > h.rows || h.count > in.left() / rowBytes)
      return in.corrupt("group " + std::to_string(g) + " counts " +
                        std::to_string(h.count) + " rows");
    TRC_RETURN_IF_ERROR(begin(g, {h.policy, h.age, h.rows, h.count}));
    for (uint64_t k = 0; k < h.count;) {
      uint32_t n =
          static_cast<uint32_t>(std::min<uint64_t>(piece, h.count - k));
      TRC_RETURN_IF_ERROR(in.get(packed.data(), n * rowBytes));
      for (uint32_t i = 0; i < n; ++i) {
        const char *p = packed.data() + i * rowBytes;
        std::memcpy(&rows[i].row, p, sizeof(rows[i].row));
        std::memcpy(&rows[i].heat, p + sizeof(rows[i].row),
                    sizeof(rows[i].heat));
      }
      TRC_RETURN_IF_ERROR(take(rows.data(), n));
      k += n;
    }
  }
  return in.left() ? in.corrupt("it goes on behind its last group") : Status();
}
