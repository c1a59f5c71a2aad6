//===- RowParser.h - Columns of a text table as features -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maps the columns of TSV and CSV rows to the model's features: integers,
// hashed strings, lists, weights, the label and the session. A row that does
// not parse is reported with its column and value; the caller adds file and
// line. Ids are not checked against the tables: that is the session's verdict.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_DATA_ROWPARSER_H
#define TERRACE_RUNTIME_DATA_ROWPARSER_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trc::data {

struct FeatureColumn {
  std::string name;
  std::string column;
  std::string weights;  // column of the weights; empty: not weighted
  bool strings = false; // hash each value
  bool anyId = false;   // a hash table: unsigned 64-bit ids are fine as well
};

struct RowFormat {
  std::vector<FeatureColumn> features;
  std::string label;          // empty: no label is read
  bool labelOptional = false; // predict: take it where the column exists
  std::string session;        // empty: none
  std::string listSep = ",";
};

/// One sample, flat over features.
struct Row {
  std::vector<int64_t> ids;    // of all features, in order
  std::vector<float> weights;  // of the weighted features, in order
  std::vector<int32_t> counts; // ids per feature
  float label = 0;
  uint64_t session = 0;
  int32_t file = 0;
  int64_t line = 0;
};

class RowParser {
public:
  /// `columns`: the table's columns in file order; `where` names the file in
  /// errors.
  static Result<RowParser> create(const RowFormat &format,
                                  const std::vector<std::string> &columns,
                                  char separator, const std::string &where);

  /// Fills `row`; a failed status says which column and value are wrong.
  Status parse(std::string_view line, Row &row);

  /// Splits one line; fields point into `line` or into `unquoted`.
  static Status split(std::string_view line, char separator,
                      std::vector<std::string_view> &fields,
                      std::string &unquoted);
  bool hasLabel() const { return labelIndex >= 0; }

private:
  struct Source {
    int32_t column, weights; // field numbers; weights -1: none
  };
  Status parseFeature(const FeatureColumn &feature, const Source &source,
                      Row &row);

  RowFormat format;
  char separator = '\t';
  size_t columnCount = 0;
  std::vector<Source> sources;
  int32_t labelIndex = -1, sessionIndex = -1;
  std::vector<std::string_view> fields;
  std::string unquoted;
};

} // namespace trc::data

#endif // TERRACE_RUNTIME_DATA_ROWPARSER_H
