//===- IndexFile.cpp - Index and move files of a store --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of chunks are seeded with the header's and with the chunk's number, so
// that chunks of other files or places fail.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/IndexFile.h"
#include "runtime/store/Crc32c.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;

namespace {

constexpr char headerMagic[8] = {'T', 'R', 'C', 'I', 'N', 'D', 'E', 'X'};
constexpr char footerMagic[8] = {'T', 'R', 'C', 'I', 'N', 'D', 'X', 'E'};
/// Read ahead of a cursor: 8 MiB, in the kernel's memory.
constexpr uint32_t aheadChunks = 64;
constexpr const char *kindNames[] = {"", "base-", "delta-", "moves-"};

struct IndexFooter {
  char magic[8];
  uint64_t sizes[indexSections];
  uint32_t headerCrc;
  uint32_t crc;
};

template <typename T> uint32_t ownCrc(const T &t) {
  return crc32c(0, &t, offsetof(T, crc));
}

uint32_t chunkCrc(const IndexHeader &header, uint32_t section, uint64_t chunk,
                  const void *data, size_t bytes) {
  uint64_t where[2] = {section, chunk};
  uint32_t crc = crc32c(header.crc, where, sizeof where);
  return crc32c(crc, data, bytes);
}

uint64_t storedBytes(uint64_t bytes) {
  return bytes + (bytes + indexChunkBytes - 1) / indexChunkBytes * 4;
}

/// 0, an errno, or -1 where the file ends before.
int readAt(int fd, void *data, size_t bytes, uint64_t offset) {
  char *p = static_cast<char *>(data);
  while (bytes) {
    ssize_t n = ::pread(fd, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    if (n == 0)
      return -1;
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return 0;
}

} // namespace

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<IndexWriter>>
IndexWriter::create(const std::string &folder, const std::string &name,
                    IndexHeader header) {
  std::unique_ptr<IndexWriter> w(new IndexWriter());
  w->folder = folder;
  w->name = folder + "/" + name;
  w->temporary = w->name + ".tmp";
  Result<Fd> fd = createFile(w->temporary);
  if (!fd.ok())
    return fd.takeStatus();
  w->fd = std::move(*fd);
  w->chunk = std::make_unique<char[]>(indexChunkBytes + 4);
  std::memcpy(header.magic, headerMagic, sizeof headerMagic);
  header.version = IndexHeader::currentVersion;
  header.crc = ownCrc(header);
  w->header = header;
  TRC_RETURN_IF_ERROR(w->write(&header, sizeof header));
  return w;
}

IndexWriter::~IndexWriter() {
  fd.reset();
  if (!finished && !temporary.empty())
    (void)removeFile(temporary);
}

Status IndexWriter::write(const void *data, size_t bytes) {
  TRC_RETURN_IF_ERROR(writeAll(fd.get(), data, bytes, temporary));
  total += bytes;
  return {};
}

Status IndexWriter::writeChunk() {
  if (used == 0)
    return {};
  uint32_t crc = chunkCrc(header, section, chunks, chunk.get(), used);
  std::memcpy(chunk.get() + used, &crc, sizeof crc);
  TRC_RETURN_IF_ERROR(write(chunk.get(), used + sizeof crc));
  ++chunks;
  used = 0;
  return {};
}

Status IndexWriter::append(IndexSection to, const uint32_t *words,
                           size_t count) {
  if (section != to) {
    TRC_RETURN_IF_ERROR(writeChunk());
    section = to;
    chunks = 0;
  }
  const char *from = reinterpret_cast<const char *>(words);
  size_t bytes = count * 4;
  sizes[to] += bytes;
  while (bytes) {
    size_t n = std::min(bytes, indexChunkBytes - used);
    std::memcpy(chunk.get() + used, from, n);
    used += n;
    from += n;
    bytes -= n;
    if (used == indexChunkBytes)
      TRC_RETURN_IF_ERROR(writeChunk());
  }
  return {};
}

Status IndexWriter::finish() {
  TRC_RETURN_IF_ERROR(writeChunk());
  IndexFooter footer{};
  std::memcpy(footer.magic, footerMagic, sizeof footerMagic);
  std::memcpy(footer.sizes, sizes, sizeof sizes);
  footer.headerCrc = header.crc;
  footer.crc = ownCrc(footer);
  TRC_RETURN_IF_ERROR(write(&footer, sizeof footer));
  TRC_RETURN_IF_ERROR(syncFile(fd.get(), temporary));
  fd.reset();
  TRC_RETURN_IF_ERROR(renameFile(temporary, name));
  finished = true;
  return syncFolder(folder);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Status IndexReader::corrupt(uint64_t at, const std::string &what) const {
  return Status(TRC_CORRUPT, "the index file '" + name +
                                 "' is damaged at byte " + std::to_string(at) +
                                 ": " + what + "; go back to a checkpoint");
}

Result<std::unique_ptr<IndexReader>>
IndexReader::open(const std::string &path, const IndexHeader &expected) {
  std::unique_ptr<IndexReader> r(new IndexReader());
  r->name = path;
  Result<Fd> opened = openToRead(path);
  if (!opened.ok())
    return opened.takeStatus();
  r->fd = std::move(*opened);
  struct stat st;
  if (::fstat(r->fd.get(), &st) != 0)
    return Status::ioError("cannot stat", path, errno);
  IndexHeader &h = r->head;
  IndexFooter footer{};
  r->total = static_cast<uint64_t>(st.st_size);
  if (!S_ISREG(st.st_mode) || r->total < sizeof h + sizeof footer)
    return r->corrupt(0, "it is cut off or no index file");
  int error = readAt(r->fd.get(), &h, sizeof h, 0);
  if (!error)
    error =
        readAt(r->fd.get(), &footer, sizeof footer, r->total - sizeof footer);
  if (error > 0)
    return Status::ioError("cannot read", path, error);
  if (error < 0 || std::memcmp(h.magic, headerMagic, sizeof headerMagic) != 0)
    return r->corrupt(0, "it is no index file");
  if (h.version != IndexHeader::currentVersion)
    return Status(TRC_MISMATCH,
                  "the index file '" + path + "' has version " +
                      std::to_string(h.version) +
                      ", this runtime reads version " +
                      std::to_string(IndexHeader::currentVersion));
  if (h.crc != ownCrc(h))
    return r->corrupt(0, "its header fails its check");
  if (h.key != expected.key || h.segmentBytes != expected.segmentBytes ||
      h.segments != expected.segments || h.rows != expected.rows ||
      h.storeBytes != expected.storeBytes ||
      h.payloadBytes != expected.payloadBytes)
    return Status(TRC_MISMATCH,
                  "the index file '" + path +
                      "' belongs to another state: " + std::to_string(h.rows) +
                      " rows of " + std::to_string(h.payloadBytes) +
                      " bytes in " + std::to_string(h.segments) +
                      " segments, here are " + std::to_string(expected.rows) +
                      " of " + std::to_string(expected.payloadBytes) + " in " +
                      std::to_string(expected.segments) +
                      (h.key != expected.key ? ", and its key differs" : ""));
  uint64_t end = r->total - sizeof footer;
  if (std::memcmp(footer.magic, footerMagic, sizeof footerMagic) != 0 ||
      footer.crc != ownCrc(footer) || footer.headerCrc != h.crc)
    return r->corrupt(end, "its footer fails its check, or it is cut off");
  if (h.kind < uint32_t(IndexKind::Base) || h.kind > uint32_t(IndexKind::Moves))
    return r->corrupt(0, "its kind is " + std::to_string(h.kind));
  if (h.dense && h.kind != uint32_t(IndexKind::Base))
    return r->corrupt(0, "only a base has an entry for every row");
  uint32_t entry = h.kind == uint32_t(IndexKind::Moves) ? 20 : h.dense ? 4 : 8;
  uint64_t at = sizeof h;
  for (uint32_t i = 0; i < indexSections; ++i) {
    uint64_t bytes = footer.sizes[i];
    if (bytes > r->total || bytes % (i ? 8 : entry) != 0)
      return r->corrupt(end, "a section of " + std::to_string(bytes) +
                                 " bytes cannot be");
    r->sizes[i] = bytes;
    r->begins[i] = at;
    at += storedBytes(bytes);
  }
  if (at != end)
    return r->corrupt(end, "its sections take " + std::to_string(at) +
                               " bytes, it has " + std::to_string(end));
  if (h.dense && r->sizes[IndexRows] != uint64_t(h.rows) * 4)
    return r->corrupt(end, "not every row has an entry");
  return r;
}

IndexReader::Cursor::Cursor(const IndexReader &file, IndexSection section,
                            uint32_t words)
    : file(file), section(section), words(words) {}

Result<bool> IndexReader::Cursor::more() {
  if (used < filled)
    return true;
  uint64_t done = chunk * indexChunkBytes;
  if (done >= file.sizes[section])
    return false;
  size_t bytes =
      std::min<uint64_t>(indexChunkBytes, file.sizes[section] - done);
  buffer.resize(bytes / 4 + 1);
  begin = file.begins[section] + chunk * (indexChunkBytes + 4);
  // The device is at work on what comes next while these entries are.
  if (chunk % aheadChunks == 0)
    (void)::posix_fadvise(file.fd.get(), static_cast<off_t>(begin),
                          off_t(2) * aheadChunks * (indexChunkBytes + 4),
                          POSIX_FADV_WILLNEED);
  int error = readAt(file.fd.get(), buffer.data(), bytes + 4, begin);
  if (error > 0)
    return Status::ioError("cannot read", file.name, error);
  if (error < 0)
    return file.corrupt(begin, "it is cut off");
  if (buffer[bytes / 4] !=
      chunkCrc(file.head, section, chunk, buffer.data(), bytes))
    return file.corrupt(begin, "a piece of " + std::to_string(bytes) +
                                   " bytes fails its check");
  ++chunk;
  used = 0;
  filled = bytes / 4;
  return true;
}

Status IndexReader::Cursor::corrupt(const std::string &what) const {
  return file.corrupt(begin + used * 4, what);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string trc::indexName(const std::string &prefix, IndexKind kind,
                           uint64_t id) {
  return prefix + kindNames[uint32_t(kind)] + std::to_string(id);
}

bool trc::parseIndexName(const std::string &prefix, const std::string &name,
                         IndexKind &kind, uint64_t &id, bool &temporary) {
  if (name.compare(0, prefix.size(), prefix) != 0)
    return false;
  std::string rest = name.substr(prefix.size());
  temporary = rest.size() > 4 && rest.compare(rest.size() - 4, 4, ".tmp") == 0;
  if (temporary)
    rest.resize(rest.size() - 4);
  for (uint32_t k = 1; k <= 3; ++k) {
    size_t n = std::strlen(kindNames[k]);
    if (rest.compare(0, n, kindNames[k]) != 0)
      continue;
    std::string digits = rest.substr(n);
    if (digits.empty() || digits.size() > 20 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      return false;
    kind = static_cast<IndexKind>(k);
    errno = 0;
    id = std::strtoull(digits.c_str(), nullptr, 10);
    return errno == 0 && std::to_string(id) == digits;
  }
  return false;
}
