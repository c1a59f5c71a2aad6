//===- Profile.h - Measures the statistics that the passes read -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `terrace data profile`: one pass over the data in file order; the result is
// the JSON of docs/profile.md. Exact up to 65,536 distinct rows per table,
// beyond that reuse and miss-ratio curves come from a sample of the rows
// (SHARDS, fixed size), so memory is bounded whatever the data.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_DATA_PROFILE_H
#define TERRACE_RUNTIME_DATA_PROFILE_H

#include "runtime/data/RowStream.h"

#include <string>
#include <vector>

namespace trc::data {

struct ProfileTable {
  std::string name;
  int64_t rows = 0;
  bool hash = false; // ids are hashed to rows first
};

struct ProfileInput {
  TableFiles files;
  RowFormat format; // features in spec order; label may be empty
  std::vector<ProfileTable> tables;
  std::vector<int> featureTable;   // per feature
  std::vector<int> featureGroup;   // per feature; -1: no dedup group
  std::vector<std::string> groups; // dedup groups
  int64_t batch = 2048;
  int64_t maxRows = -1;          // stop after so many rows; -1: all
  int64_t sampledRows = 1 << 16; // rows a table's curve is measured on
};

/// The profile as JSON text. Ids outside their table are an error with file
/// and line.
Result<std::string> measureProfile(const ProfileInput &input,
                                   const Progress &progress = {});

} // namespace trc::data

#endif // TERRACE_RUNTIME_DATA_PROFILE_H
