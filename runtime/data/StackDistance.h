//===- StackDistance.h - LRU stack distances of a sampled stream -*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many distinct rows lie between two accesses of a row: an LRU cache of c
// rows hits exactly the accesses whose distance is below c. Rows are sampled
// by hash; when more than a fixed number were seen the rate is lowered and
// rows above it forgotten (Waldspurger et al., SHARDS, FAST'15). One thread.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_DATA_STACKDISTANCE_H
#define TERRACE_RUNTIME_DATA_STACKDISTANCE_H

#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trc::data {

class StackDistance {
public:
  explicit StackDistance(int64_t maxRows) : maxRows(maxRows) {}

  void access(int64_t row, int64_t batch);

  /// (rows cached, share of accesses that miss), rising rows; empty before the
  /// first access.
  std::vector<std::pair<int64_t, double>> missCurve() const;
  /// Accesses by batches since the row's last access: 0, 1, 2-3, 4-7, ...
  std::vector<int64_t> reuse() const;
  /// Accesses without an earlier one, which is the number of distinct rows.
  int64_t cold() const { return std::llround(coldWeight); }
  double sampleRate() const { return rate(); }

private:
  struct Seen {
    int64_t time;  // index into the tree
    int64_t batch; // of the last access
    uint64_t hash;
  };
  double rate() const { return static_cast<double>(threshold) * 0x1p-32; }
  void lowerRate();
  void renumber();
  void add(int64_t time, int delta);
  int64_t after(int64_t time) const; // rows accessed later than `time`

  int64_t maxRows;
  uint64_t threshold = uint64_t(1) << 32; // rows with a lower hash are sampled
  std::unordered_map<int64_t, Seen> seen;
  std::vector<int32_t> tree; // Fenwick tree over times, 1 where a row is last
  int64_t now = 0, live = 0;
  double coldWeight = 0, total = 0;
  std::vector<double> distances; // weights by binOf(distance)
  std::vector<double> reuseWeights;
};

} // namespace trc::data

#endif // TERRACE_RUNTIME_DATA_STACKDISTANCE_H
