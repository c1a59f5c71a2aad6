//===- Stream.h - The batches of one id stream ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draws the ids of W5 for the tables of a compiled plan, batch by batch: as ids
// per feature for a data file, and as a batch's unique rows of each group in
// order of first appearance, as the runtime finds them.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_W5_STREAM_H
#define TERRACE_TEST_BENCH_W5_STREAM_H

#include "runtime/core/Plan.h"
#include "runtime/data/GenerateParts.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trc::w5 {

constexpr uint64_t seed = 5;

class Stream {
public:
  Stream(const Plan &plan, const std::string &curve);
  /// Draws the next batch.
  void next();

  /// ids()[feature][sample * bag + k].
  const std::vector<std::vector<int64_t>> &ids() const { return values; }
  int64_t bag() const { return bagSize; }
  /// Unique rows of a group.
  const std::vector<uint32_t> &rows(size_t group) const {
    return unique[group];
  }

private:
  const Plan &plan;
  int64_t bagSize, sample = 0;
  data::TieredIds source;
  SplitMix random;
  std::vector<std::vector<int64_t>> values;
  std::vector<std::vector<uint32_t>> unique;
  std::vector<std::vector<uint32_t>> lastSeen; // by group and row: batch
  uint32_t batch = 0;
};

} // namespace trc::w5

#endif // TERRACE_TEST_BENCH_W5_STREAM_H
