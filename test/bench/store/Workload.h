//===- Workload.h - Rows and batches of a benchmark -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which rows exist, what is in them, and which of them a batch asks for: pure
// functions of fixed seeds, so that every variant, in this process or in a
// child, sees the same ones without being told. Contents do not compress.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_WORKLOAD_H
#define TERRACE_TEST_BENCH_STORE_WORKLOAD_H

#include <cstdint>
#include <cstring>
#include <unordered_set>
#include <vector>

namespace trc::bench {

struct Workload {
  uint32_t payload = 0; // bytes, a multiple of 8
  uint32_t rows = 0;
  uint32_t batchRows = 0;
  uint64_t seed = 1;

  static uint64_t hash(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }

  /// Distinct rows in random order. No two batches of a run are related, so
  /// nothing that an earlier one left in a cache below is asked for on purpose.
  std::vector<uint32_t> batch(uint64_t number) const {
    std::vector<uint32_t> picked;
    std::unordered_set<uint32_t> seen(2 * batchRows);
    picked.reserve(batchRows);
    uint64_t at = hash(hash(seed) + number);
    while (picked.size() < batchRows) {
      at = hash(at);
      uint32_t row = static_cast<uint32_t>((at >> 32) * rows >> 32);
      if (seen.insert(row).second)
        picked.push_back(row);
    }
    return picked;
  }

  /// The content of a row after its n-th write.
  void fill(uint32_t row, uint32_t version, char *out) const {
    uint64_t word = hash(uint64_t(version) << 32 | row);
    for (uint32_t i = 0; i < payload; i += 8) {
      std::memcpy(out + i, &word, 8);
      word = word * 6364136223846793005u + 1442695040888963407u;
    }
  }
  bool matches(uint32_t row, uint32_t version, const char *content) const {
    uint64_t word = hash(uint64_t(version) << 32 | row), found;
    for (uint32_t i = 0; i < payload; i += 8) {
      std::memcpy(&found, content + i, 8);
      if (found != word)
        return false;
      word = word * 6364136223846793005u + 1442695040888963407u;
    }
    return true;
  }
};

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_WORKLOAD_H
