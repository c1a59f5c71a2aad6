//===- RowIndex.cpp - Which rows of a store exist -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One bit per row in memory; on disk a small file beside the rows: a header
// that names the geometry, the bits, and a CRC32C over both.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/Crc32c.h"
#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace trc;

namespace {

struct IndexHeader {
  char magic[8];
  uint64_t key;
  uint64_t rows;
  uint32_t payloadBytes, storeBytes;
  uint32_t extents, version;
};
constexpr char indexMagic[8] = {'T', 'R', 'C', 'R', 'O', 'W', 'S', '\n'};

class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  const int fd;
};

int writeAll(int fd, const void *data, size_t bytes) {
  const char *p = static_cast<const char *>(data);
  while (bytes) {
    ssize_t n = ::write(fd, p, bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    p += n;
    bytes -= static_cast<size_t>(n);
  }
  return 0;
}

/// Bytes read, fewer at the end of the file; -errno.
ssize_t readAll(int fd, void *data, size_t bytes) {
  char *p = static_cast<char *>(data);
  size_t got = 0;
  while (got < bytes) {
    ssize_t n = ::read(fd, p + got, bytes - got);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -errno;
    if (n == 0)
      break;
    got += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

constexpr size_t piece = 8192; // words

} // namespace

bool RowStore::written(uint32_t row) const { return impl->isWritten(row); }

uint64_t RowStore::writtenCount() const { return impl->writtenRows; }

uint32_t RowStore::nextWritten(uint32_t row) const {
  uint64_t n = impl->options.rows;
  if (row >= n)
    return impl->options.rows;
  uint64_t word = row / 64;
  uint64_t bits = impl->bits[word].load(std::memory_order_relaxed) &
                  (~uint64_t(0) << (row % 64));
  while (!bits) {
    if (++word >= impl->words())
      return impl->options.rows;
    bits = impl->bits[word].load(std::memory_order_relaxed);
  }
  return static_cast<uint32_t>(word * 64 + __builtin_ctzll(bits));
}

void RowStore::clear() {
  for (uint64_t w = 0; w < impl->words(); ++w)
    impl->bits[w].store(0, std::memory_order_relaxed);
  impl->writtenRows = 0;
}

static IndexHeader headerOf(const RowStoreOptions &o) {
  IndexHeader h{};
  std::memcpy(h.magic, indexMagic, sizeof h.magic);
  h.key = o.key;
  h.rows = o.rows;
  h.payloadBytes = o.payloadBytes;
  h.storeBytes = o.storeBytes;
  h.extents = static_cast<uint32_t>(o.extents.size());
  h.version = 1;
  return h;
}

Status RowStore::saveIndex(const std::string &path, uint32_t seal) const {
  std::string temporary = path + ".tmp";
  auto failed = [&](const char *what, int error) {
    ::unlink(temporary.c_str());
    return Status::ioError(what, temporary, error);
  };
  {
    Descriptor out(::open(temporary.c_str(),
                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (out.fd < 0)
      return Status::ioError("cannot create", temporary, errno);
    IndexHeader header = headerOf(impl->options);
    uint32_t crc = crc32c(seal, &header, sizeof header);
    int error = writeAll(out.fd, &header, sizeof header);
    std::vector<uint64_t> words(piece);
    for (uint64_t at = 0; !error && at < impl->words(); at += piece) {
      size_t n = std::min<uint64_t>(piece, impl->words() - at);
      for (size_t i = 0; i < n; ++i)
        words[i] = impl->bits[at + i].load(std::memory_order_relaxed);
      crc = crc32c(crc, words.data(), n * 8);
      error = writeAll(out.fd, words.data(), n * 8);
    }
    if (!error)
      error = writeAll(out.fd, &crc, sizeof crc);
    if (error)
      return failed("cannot write", error);
    if (fdatasync(out.fd) != 0)
      return failed("cannot flush", errno);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return failed("cannot rename", errno);
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  Descriptor dir(
      ::open(folder.empty() ? "/" : folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (dir.fd < 0 || fsync(dir.fd) != 0)
    return Status::ioError("cannot flush the folder", folder, errno);
  return {};
}

Status RowStore::loadIndex(const std::string &path, uint32_t seal) {
  Descriptor in(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.fd < 0)
    return Status::ioError("cannot open", path, errno);
  auto damaged = [&](const char *what) {
    clear();
    return Status(TRC_CORRUPT, "the list of rows '" + path + "' " + what +
                                   "; go back to a checkpoint");
  };
  IndexHeader header;
  ssize_t got = readAll(in.fd, &header, sizeof header);
  if (got < 0)
    return Status::ioError("cannot read", path, static_cast<int>(-got));
  if (got != sizeof header ||
      std::memcmp(header.magic, indexMagic, sizeof indexMagic) != 0)
    return damaged("is not one");
  uint32_t crc = crc32c(seal, &header, sizeof header);
  IndexHeader want = headerOf(impl->options);
  if (std::memcmp(&header, &want, sizeof want) != 0)
    return Status(TRC_MISMATCH,
                  "the rows of group '" + impl->options.group +
                      "' belong to another state: '" + path + "' has " +
                      std::to_string(header.rows) + " rows of " +
                      std::to_string(header.payloadBytes) +
                      " bytes, the model " + std::to_string(want.rows) +
                      " of " + std::to_string(want.payloadBytes));
  std::vector<uint64_t> words(piece);
  uint64_t count = 0;
  for (uint64_t at = 0; at < impl->words(); at += piece) {
    size_t n = std::min<uint64_t>(piece, impl->words() - at);
    got = readAll(in.fd, words.data(), n * 8);
    if (got < 0) {
      clear();
      return Status::ioError("cannot read", path, static_cast<int>(-got));
    }
    if (static_cast<size_t>(got) != n * 8)
      return damaged("is cut off");
    crc = crc32c(crc, words.data(), n * 8);
    for (size_t i = 0; i < n; ++i) {
      impl->bits[at + i].store(words[i], std::memory_order_relaxed);
      count += static_cast<uint64_t>(__builtin_popcountll(words[i]));
    }
  }
  uint32_t stored = 0;
  if (readAll(in.fd, &stored, sizeof stored) != sizeof stored)
    return damaged("is cut off");
  if (stored != crc)
    return damaged("fails its check");
  impl->writtenRows = count;
  return {};
}
