//===- Crc32cTest.cpp - The checksum of records ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/store/Crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace trc;

namespace {

/// As RFC 3720 defines it, bit by bit, without the inversions at the ends.
uint32_t step(uint32_t crc, char byte) {
  crc ^= static_cast<uint8_t>(byte);
  for (int i = 0; i < 8; ++i)
    crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
  return crc;
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xE3069283u); // RFC 3720's check value
  EXPECT_EQ(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xE3069283u);
  EXPECT_EQ(crc32c(0, "", 0), 0u);
}

/// Every length up to where parts are cut once more, at every alignment.
TEST(Crc32c, EveryLengthAndAlignment) {
  constexpr size_t longest = 6500;
  std::vector<char> data(longest + 8);
  std::mt19937 random(5);
  for (char &c : data)
    c = static_cast<char>(random());
  for (size_t at = 0; at < 8; ++at) {
    uint32_t start = at % 2 ? 0 : random(), wanted = ~start;
    for (size_t n = 0; n <= longest; ++n) {
      ASSERT_EQ(crc32c(start, &data[at], n), ~wanted)
          << n << " bytes from " << at;
      wanted = step(wanted, data[at + n < data.size() ? at + n : 0]);
    }
  }
}

TEST(Crc32c, LongData) {
  std::vector<char> data(100003);
  std::mt19937 random(6);
  for (char &c : data)
    c = static_cast<char>(random());
  uint32_t wanted = ~7u;
  for (char c : data)
    wanted = step(wanted, c);
  EXPECT_EQ(crc32c(7, data.data(), data.size()), ~wanted);
  // In pieces of any size.
  uint32_t whole = 7;
  for (size_t at = 0, n; at < data.size(); at += n) {
    n = std::min<size_t>(random() % 9000, data.size() - at);
    whole = crc32c(whole, &data[at], n);
  }
  EXPECT_EQ(whole, ~wanted);
}

} // namespace
