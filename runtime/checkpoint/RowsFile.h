//===- RowsFile.h - Logical rows of tables in one file ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written rows by table and row number, weights then optimizer state, in
// chunks with a checksum each. Nothing of a plan is in it, so that it loads
// under another plan, tier layout or cache size. Rows may come in any order; a
// row stands at most once.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_ROWSFILE_H
#define TERRACE_RUNTIME_CHECKPOINT_ROWSFILE_H

#include "runtime/checkpoint/FileUtil.h"

#include <functional>
#include <string>
#include <vector>

namespace trc {

class RowsWriter {
public:
  /// recordBytes: per table, weights and state. seal: of the manifest that
  /// names the file, so that the file of another moment is told from it.
  static Result<std::unique_ptr<RowsWriter>>
  create(const std::string &path, std::vector<uint32_t> recordBytes,
         uint32_t seal = 0);

  Status add(uint32_t table, uint64_t row, const char *record);
  /// Writes what is left and makes the file durable.
  Status finish();

  uint64_t bytes() const { return written; }
  uint64_t rows() const { return rowCount; }
  uint64_t chunks() const { return chunkCount; }

private:
  RowsWriter() = default;
  Status flushChunk();

  Fd fd;
  std::string path;
  std::vector<uint32_t> recordBytes;
  uint32_t seal = 0, table = 0;
  std::vector<uint64_t> rowNumbers;
  std::vector<char> records;
  uint64_t written = 0, rowCount = 0, chunkCount = 0;
};

/// One verified chunk: `count` rows of a table, records one after the other.
struct RowsChunk {
  uint32_t table;
  uint32_t count;
  uint32_t recordBytes;
  const uint64_t *rows;
  const char *records;
};

/// Reads the file from the start; expects exactly `bytes` bytes in `chunks`.
Status readRows(const std::string &path, uint64_t bytes, uint64_t chunks,
                uint32_t seal,
                const std::function<Status(const RowsChunk &)> &take);

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_ROWSFILE_H
