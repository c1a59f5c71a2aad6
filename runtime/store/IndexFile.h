//===- IndexFile.h - Index and move files of a store ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of up to three sections of fixed-size entries (32-bit words), in
// chunks with a CRC32C each, between a header that names the store and a footer
// that gives the sizes. Both ways it streams, a chunk at a time. What was read
// has passed its check; what the numbers mean is for the reader to check.
//
//   Base, Delta  rows    row, place      (base, dense: place + 1 or 0, by row)
//                late    row, place      replaces what `rows` says
//                segments  segment, generation; all that the image names
//   Moves        rows    row, old place, its generation, new place, generation;
//                        a row's in the order in which they were made
//
// Written under a temporary name and renamed when durable. Not thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_INDEXFILE_H
#define TERRACE_RUNTIME_STORE_INDEXFILE_H

#include "runtime/checkpoint/FileUtil.h"
#include "runtime/store/StoreGeometry.h"

#include <memory>

namespace trc {

enum class IndexKind : uint32_t { Base = 1, Delta = 2, Moves = 3 };

struct IndexHeader {
  static constexpr uint32_t currentVersion = 1;
  char magic[8];
  uint32_t version;
  uint32_t kind;
  // The store that it belongs to.
  uint64_t key;
  uint64_t segmentBytes;
  uint32_t segments, rows, storeBytes, payloadBytes;
  /// Of the checkpoint; the number of a moves file.
  uint64_t id;
  /// The checkpoint of the base; moves: no later checkpoint needs them.
  uint64_t base;
  /// Delta: the checkpoint of the file before it.
  uint64_t previous;
  uint32_t dense; // base: `rows` has one word per row
  uint32_t crc;
};

enum IndexSection : uint32_t { IndexRows, IndexLate, IndexSegments };
constexpr uint32_t indexSections = 3;
/// Divisible by every entry's size.
constexpr uint32_t indexChunkBytes = 61440;

class IndexWriter {
public:
  /// `name` inside `folder`. Fills in magic, version and check of the header.
  static Result<std::unique_ptr<IndexWriter>> create(const std::string &folder,
                                                     const std::string &name,
                                                     IndexHeader header);
  ~IndexWriter(); // removes the file unless finished

  /// Sections in rising order.
  Status append(IndexSection section, const uint32_t *words, size_t count);
  /// Footer, fdatasync, rename, fsync of the folder.
  Status finish();
  uint64_t bytes() const { return total; }

private:
  IndexWriter() = default;
  Status writeChunk();
  Status write(const void *data, size_t bytes);

  std::string folder, name, temporary;
  IndexHeader header{};
  Fd fd;
  uint64_t total = 0;
  uint64_t sizes[indexSections] = {};
  uint32_t section = 0, chunks = 0;
  size_t used = 0;
  std::unique_ptr<char[]> chunk;
  bool finished = false;
};

class IndexReader {
public:
  /// TRC_NOT_FOUND, TRC_CORRUPT, or TRC_MISMATCH where it is of another store
  /// than `expected` (key, geometry, sizes).
  static Result<std::unique_ptr<IndexReader>> open(const std::string &path,
                                                   const IndexHeader &expected);

  const IndexHeader &header() const { return head; }
  IndexKind kind() const { return static_cast<IndexKind>(head.kind); }
  const std::string &path() const { return name; }
  uint64_t bytes() const { return total; }
  uint64_t sectionBytes(IndexSection s) const { return sizes[s]; }
  /// "is damaged at byte ..: <what>".
  Status corrupt(uint64_t at, const std::string &what) const;

  /// Walks one section's entries. The reader outlives it.
  class Cursor {
  public:
    Cursor(const IndexReader &file, IndexSection section, uint32_t words);
    /// Call before at(): brings the entry into memory. False at the end.
    Result<bool> more();
    const uint32_t *at() const { return &buffer[used]; }
    /// Entries from the current one on that are in memory.
    size_t ready() const { return (filled - used) / words; }
    void next(size_t count = 1) {
      entry += count;
      used += count * words;
    }
    /// Entries before the current one.
    uint64_t index() const { return entry; }
    Status corrupt(const std::string &what) const;

  private:
    const IndexReader &file;
    const IndexSection section;
    const uint32_t words;
    uint64_t entry = 0, begin = 0, chunk = 0;
    size_t used = 0, filled = 0; // words
    std::vector<uint32_t> buffer;
  };

private:
  IndexReader() = default;
  Fd fd;
  std::string name;
  IndexHeader head{};
  uint64_t total = 0;
  uint64_t sizes[indexSections] = {}, begins[indexSections] = {};
};

/// "<prefix>base-12": the name of an index or moves file, and back again.
std::string indexName(const std::string &prefix, IndexKind kind, uint64_t id);
/// Also for leftover temporary files; false for strangers.
bool parseIndexName(const std::string &prefix, const std::string &name,
                    IndexKind &kind, uint64_t &id, bool &temporary);

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_INDEXFILE_H
