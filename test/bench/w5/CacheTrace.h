//===- CacheTrace.h - The runtime's cache without any rows ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plays batches through the GroupCache of a plan's group, with its own slots,
// policy and batches in flight, but moves nothing: what a run of the program
// would miss. Every row has a copy at home, as in a state where all rows were
// written.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_W5_CACHETRACE_H
#define TERRACE_TEST_BENCH_W5_CACHETRACE_H

#include "runtime/cache/GroupCache.h"
#include "runtime/core/Plan.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace trc::w5 {

class CacheTrace {
public:
  /// `policy` empty: the plan's.
  static Result<std::unique_ptr<CacheTrace>> create(const Plan &plan, int group,
                                                    const std::string &policy);

  Status batch(const std::vector<uint32_t> &rows);
  /// Ends the batches in flight.
  void drain();

  const GroupCache &state() const { return *cache; }
  uint64_t misses() const { return cache->counters().misses; }
  uint64_t writes() const { return cache->counters().writes; }

private:
  struct Flight {
    std::vector<uint32_t> rows, slots, missRow, missSlot, victimRow, victimSlot;
    std::vector<BufferPlace> missPlace;
    Probe probe;
  };
  std::unique_ptr<GroupCache> cache;
  uint32_t writeSlots = 1, maxUnique = 0, maxMiss = 0;
  int64_t t = 0, ahead = 0; // probes that run before the oldest batch ends
  std::deque<std::unique_ptr<Flight>> flights;
  std::vector<std::unique_ptr<Flight>> idle;
};

/// Misses of the best possible cache of that many rows, which knows all batches
/// to come: of each, by batch. The rows of a batch count as used at once.
std::vector<uint64_t>
beladyMisses(const std::vector<std::vector<uint32_t>> &batches, uint64_t rows,
             uint64_t capacity);

} // namespace trc::w5

#endif // TERRACE_TEST_BENCH_W5_CACHETRACE_H
