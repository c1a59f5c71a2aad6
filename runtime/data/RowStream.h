//===- RowStream.h - The rows of several files, in order -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over a list of TSV/CSV files: header or given columns, bad rows as
// errors with file and line or as counted skips. Not thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_DATA_ROWSTREAM_H
#define TERRACE_RUNTIME_DATA_ROWSTREAM_H

#include "runtime/data/ByteSource.h"
#include "runtime/data/RowParser.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trc::data {

struct TableFiles {
  std::vector<std::string> paths;   // as expanded by expandPaths
  std::vector<std::string> columns; // empty: each file starts with a header
  bool skipBadRows = false;
};

/// Called now and then during long work with the rows done so far.
using Progress = std::function<void(int64_t rows)>;

/// Expands `*`, `?` and `[...]`, sorted; a pattern without a match is an error.
Result<std::vector<std::string>>
expandPaths(const std::vector<std::string> &patterns);

/// "," for .csv and .csv.gz, else a tab.
char separatorOf(const std::string &path);

/// The columns of one file: `given`, or the file's header line.
Result<std::vector<std::string>>
columnsOf(const std::string &path, const std::vector<std::string> &given);

class RowStream {
public:
  RowStream(TableFiles files, RowFormat format)
      : files(std::move(files)), format(std::move(format)) {}

  /// The next row; false after the last row of the last file.
  Result<bool> next(Row &row);
  /// Passes over up to `count` rows; returns how many there were.
  Result<int64_t> skip(int64_t count);

  int64_t badRows() const { return bad; }
  /// The first bad row that was skipped, as an error's text; else empty.
  const std::string &firstBad() const { return firstBadText; }
  const std::vector<std::string> &paths() const { return files.paths; }

private:
  Result<bool> nextLine();
  Status openFile();

  TableFiles files;
  RowFormat format;
  size_t file = 0; // the open file, or the next one to open
  std::unique_ptr<LineReader> lines;
  std::unique_ptr<RowParser> parser;
  std::string line;
  int64_t bad = 0;
  std::string firstBadText;
};

/// Rows of the files: parsed only where bad rows are skipped, else counted.
Result<int64_t> countRows(const TableFiles &files, const RowFormat &format);

} // namespace trc::data

#endif // TERRACE_RUNTIME_DATA_ROWSTREAM_H
