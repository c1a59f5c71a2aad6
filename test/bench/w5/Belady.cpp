//===- Belady.cpp - The cache that knows what comes -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows in the cache lie in one bucket per batch of their next use; whoever is
// used last leaves first. Every row enters and leaves a bucket once per use, so
// the whole takes time in the number of uses.
//
//===----------------------------------------------------------------------===//
#include "test/bench/w5/CacheTrace.h"

#include <algorithm>

using namespace trc;

std::vector<uint64_t>
w5::beladyMisses(const std::vector<std::vector<uint32_t>> &batches,
                 uint64_t rows, uint64_t capacity) {
  const size_t n = batches.size(), never = n;
  // When each row of each batch is used again.
  std::vector<std::vector<uint16_t>> again(n);
  {
    std::vector<uint16_t> next(rows, static_cast<uint16_t>(never));
    for (size_t t = n; t-- > 0;) {
      again[t].resize(batches[t].size());
      for (size_t u = 0; u < batches[t].size(); ++u) {
        again[t][u] = next[batches[t][u]];
        next[batches[t][u]] = static_cast<uint16_t>(t);
      }
    }
  }
  std::vector<bool> inside(rows);
  std::vector<std::vector<uint32_t>> buckets(n + 1);
  std::vector<uint64_t> misses(n);
  uint64_t held = 0;
  size_t last = never; // no bucket behind it holds a row
  for (size_t t = 0; t < n; ++t) {
    for (size_t u = 0; u < batches[t].size(); ++u) {
      uint32_t row = batches[t][u];
      if (!inside[row]) {
        ++misses[t];
        ++held;
        inside[row] = true;
      }
      buckets[again[t][u]].push_back(row);
      last = std::max<size_t>(last, again[t][u]);
    }
    std::vector<uint32_t>().swap(buckets[t]); // these were used just now
    for (; held > capacity; --held) {
      while (buckets[last].empty())
        --last;
      inside[buckets[last].back()] = false;
      buckets[last].pop_back();
    }
  }
  return misses;
}
