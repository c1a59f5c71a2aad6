//===- Diff.h - What differs between two roots ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares the rows of two roots, of one state or of two, table by table. Rows
// that neither has written are not read: they are equal where the tables begin
// alike, and else the difference is told once. Memory: both indices, two
// blocks of rows.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_DIFF_H
#define TERRACE_RUNTIME_INSPECT_DIFF_H

#include "runtime/inspect/Rows.h"

namespace trc::inspect {

/// A row that at least one of the two has written; a record that was not is the
/// row's initial value.
struct RowPair {
  int64_t row;
  bool inBefore, inAfter;     // written there
  const char *before, *after; // records
};
/// In rising order, as far as both tables go.
Status forPairs(StateReader &before, int tableBefore, StateReader &after,
                int tableAfter,
                const std::function<Status(const RowPair &)> &take);

struct TableDiff {
  std::string table;
  int64_t rowsBefore = 0, rowsAfter = 0;  // 0: not there
  std::string note;                       // why rows were not compared, or what
                                          // else differs
  uint64_t written = 0;                   // in both
  uint64_t changed = 0;                   // of those, other bytes
  uint64_t onlyBefore = 0, onlyAfter = 0; // written in one
  double weights = 0, state = 0;          // largest absolute differences
  int64_t weightsRow = -1;                // where the first is

  bool same() const {
    return note.empty() && !changed && !onlyBefore && !onlyAfter;
  }
};

struct RootDiff {
  std::vector<TableDiff> tables;
  bool blob = false; // other bytes
  bool same = true;  // tables, blob, head and counters
};

Result<RootDiff> diffRoots(const StateSource &before, const StateSource &after,
                           const Progress &progress);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_DIFF_H
