//===- BeladyTest.cpp - The cache that knows what comes -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Against the same rule by looking ahead anew for each row that leaves, and
// against LRU, which cannot miss less.
//
//===----------------------------------------------------------------------===//
#include "test/bench/w5/CacheTrace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

using namespace trc;

using Batches = std::vector<std::vector<uint32_t>>;

static Batches randomBatches(std::mt19937 &random, uint32_t rows) {
  Batches batches(2 + random() % 20);
  for (auto &batch : batches) {
    std::set<uint32_t> unique;
    for (uint32_t n = random() % 8; n > 0; --n)
      unique.insert(std::min(random(), random()) % rows);
    batch.assign(unique.begin(), unique.end());
  }
  return batches;
}

static size_t nextUse(const Batches &batches, size_t after, uint32_t row) {
  for (size_t t = after + 1; t < batches.size(); ++t)
    if (std::binary_search(batches[t].begin(), batches[t].end(), row))
      return t;
  return batches.size();
}

static std::vector<uint64_t> slowly(const Batches &batches, size_t capacity) {
  std::set<uint32_t> held;
  std::vector<uint64_t> misses;
  for (size_t t = 0; t < batches.size(); ++t) {
    misses.push_back(0);
    for (uint32_t row : batches[t])
      misses.back() += held.insert(row).second;
    while (held.size() > capacity)
      held.erase(std::max_element(
          held.begin(), held.end(), [&](uint32_t a, uint32_t b) {
            return nextUse(batches, t, a) < nextUse(batches, t, b);
          }));
  }
  return misses;
}

static uint64_t lru(const Batches &batches, size_t capacity) {
  std::vector<uint32_t> held; // the oldest first
  uint64_t misses = 0;
  for (const auto &batch : batches) {
    for (uint32_t row : batch) {
      auto at = std::find(held.begin(), held.end(), row);
      misses += at == held.end();
      if (at != held.end())
        held.erase(at);
      held.push_back(row);
    }
    if (held.size() > capacity)
      held.erase(held.begin(), held.end() - static_cast<long>(capacity));
  }
  return misses;
}

static uint64_t sum(const std::vector<uint64_t> &v) {
  uint64_t n = 0;
  for (uint64_t x : v)
    n += x;
  return n;
}

TEST(Belady, EqualsLookingAheadAnew) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    uint32_t rows = 2 + random() % 30;
    Batches batches = randomBatches(random, rows);
    size_t capacity = 1 + random() % 12;
    auto fast = w5::beladyMisses(batches, rows, capacity);
    // Which of several rows of the same next use leaves changes no count.
    EXPECT_EQ(fast, slowly(batches, capacity)) << "seed " << seed;
    EXPECT_LE(sum(fast), lru(batches, capacity)) << "seed " << seed;
  }
}
