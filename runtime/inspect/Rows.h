//===- Rows.h - The rows of a root in blocks --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads many rows of a table in a bounded piece of memory, in rising order, so
// that what is written of them is written once and from front to back.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_ROWS_H
#define TERRACE_RUNTIME_INSPECT_ROWS_H

#include "runtime/session/StateReader.h"

#include <functional>
#include <string>
#include <vector>

namespace trc::inspect {

/// Rows done of all rows; called now and then, may be empty.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

/// Rows of a block: 4096, fewer where records are large.
size_t blockRows(uint32_t recordBytes);

/// Rows and their records, one after the other.
struct RowBlock {
  std::vector<int64_t> rows;
  std::vector<char> records;
  uint32_t recordBytes = 0;

  const char *record(size_t i) const {
    return records.data() + i * recordBytes;
  }
};

/// The row at or after the given one that is wanted next; the table's rows or
/// more: none.
using NextRow = std::function<int64_t(int64_t row)>;

/// Calls `take` with the wanted rows of the table, block by block.
Status forBlocks(StateReader &reader, int table, const NextRow &next,
                 const std::function<Status(const RowBlock &)> &take);
/// Fills the block's records for its rows (no duplicates).
Status readBlock(StateReader &reader, int table, RowBlock &block);

/// What the states of an optimizer are called, as torch does.
std::vector<std::string> stateNames(const ManifestTable &table);

/// Calls `work`; out of memory is a status.
Status guarded(const std::function<Status()> &work);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_ROWS_H
