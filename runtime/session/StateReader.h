//===- StateReader.h - The rows that a root names ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a checkpoint or a closed state by table and row number, without a plan
// and without the model. Writes nothing; files are locked shared.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_SESSION_STATEREADER_H
#define TERRACE_RUNTIME_SESSION_STATEREADER_H

#include "runtime/session/Stores.h"

namespace trc {

/// A row of a table: weights, then optimizer state.
using RowTaker = std::function<Status(int table, uint64_t row,
                                      const char *record, uint32_t bytes)>;

class StateReader {
public:
  /// `decoded`: weights come as f32 whatever the tables store, and manifest()
  /// says so; else records come as they are stored.
  static Result<std::unique_ptr<StateReader>> open(const StateSource &source,
                                                   bool decoded = false);

  const Manifest &manifest() const { return source; }
  /// Every row that was ever written, in no particular order. Stops at the
  /// first failure.
  Status scan(const RowTaker &take);
  /// The same of one table.
  Status scan(int table, const RowTaker &take);
  /// Rows of a table, in any order, each once; calls `take(i, record)` for
  /// rows[i]. Rows never written have their initial value and no state.
  Status read(int table, const int64_t *rows, int64_t count,
              const std::function<void(int64_t i, const char *record)> &take);
  /// Whether the row was ever written.
  bool written(int table, int64_t row) const;
  uint64_t writtenCount() const;
  uint64_t writtenCount(int table) const;
  /// The first row at or after `row` that was ever written; the table's rows
  /// where there is none.
  int64_t nextWritten(int table, int64_t row) const;

private:
  StateReader() = default;
  struct Place {
    size_t group = 0;
    uint32_t base = 0;
  };
  Place placeOf(int table) const;
  Status scanGroup(size_t g, int only, const RowTaker &take);

  /// The record as the caller wants it.
  const char *shape(int table, const char *record);

  Manifest source;
  std::vector<Element> stored; // by table
  std::vector<char> shaped;
  HomeStores homes;
};

} // namespace trc

#endif // TERRACE_RUNTIME_SESSION_STATEREADER_H
