//===- ElementTest.cpp - f16 and bf16 against the compiler's own ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every 16-bit pattern there and back, and roundings against _Float16, which
// the compiler's library converts. Random rounding of the reference is even.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Element.h"
#include "runtime/core/Hash.h"
#include "runtime/reference/Rounding.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace trc;

namespace {
uint32_t bitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
float floatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
uint16_t halfBits(float x) {
  _Float16 half = static_cast<_Float16>(x);
  uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}
} // namespace

TEST(Element, EveryPatternComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    uint16_t bits = static_cast<uint16_t>(i);
    _Float16 half;
    std::memcpy(&half, &bits, 2);
    float x = f32FromF16(bits), b = f32FromBF16(bits);
    ASSERT_EQ(bitsOf(b), i << 16);
    if (std::isnan(static_cast<float>(half))) {
      ASSERT_TRUE(std::isnan(x)) << i;
      ASSERT_EQ(f16FromF32(x), bits | 0x200) << i;
    } else {
      ASSERT_EQ(bitsOf(x), bitsOf(static_cast<float>(half))) << i;
      ASSERT_EQ(f16FromF32(x), bits) << i;
    }
    ASSERT_EQ(bf16FromF32(b), std::isnan(b) ? (bits | 0x40) : bits) << i;
  }
}

TEST(Element, RoundsToNearestEven) {
  SplitMix random(5);
  auto check = [](float x) {
    if (std::isnan(x))
      return;
    ASSERT_EQ(f16FromF32(x), halfBits(x)) << x;
    ASSERT_EQ(bitsOf(storedValue(Element::f16, x)),
              bitsOf(reference::roundNearest(reference::Storage::F16, x)))
        << x;
    ASSERT_EQ(bitsOf(storedValue(Element::bf16, x)),
              bitsOf(reference::roundNearest(reference::Storage::BF16, x)))
        << x;
  };
  for (int i = 0; i < 200000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random.next());
    check(floatOf(bits));
    // Ties, and their neighbours, of both types.
    for (uint32_t tie : {0x1000u, 0x8000u})
      for (uint32_t d : {0u, 1u, 0xffffffffu})
        check(floatOf(((bits & ~(2 * tie - 1)) | tie) + d));
    // Where f16 is subnormal.
    check(floatOf((bits & 0x807fffff) | (100 + bits % 16) << 23));
  }
  for (float x : {65504.0f, 65519.0f, 65520.0f, 65536.0f, 0x1p-25f, 0x1.01p-25f,
                  0x1p-24f, 3.4e38f, 1e-45f, 0.0f, -0.0f})
    check(x);
}

TEST(Element, StochasticRoundingIsEvenOnAverage) {
  using reference::Storage;
  for (Storage storage : {Storage::F16, Storage::BF16})
    for (float x : {1.0f + 0x1p-13f, -3.14159f, 0.3f * 0x1p-16f, 1e-30f}) {
      double sum = 0;
      float low = HUGE_VALF, high = -HUGE_VALF;
      constexpr int count = 200000;
      for (int64_t c = 0; c < count; ++c) {
        float r = reference::roundStochastic(
            storage, x, reference::roundingWord(roundingSeed(7, 1, c / 16), c));
        sum += r;
        low = std::min(low, r);
        high = std::max(high, r);
      }
      double place = static_cast<double>(high) - low;
      if (storage == Storage::BF16 || std::fabs(x) > 1e-20f) {
        EXPECT_GT(place, 0) << x;
      }
      EXPECT_LE(low, x);
      EXPECT_GE(high, place > 0 ? x : low);
      // Five standard deviations of the mean of a coin.
      EXPECT_NEAR(sum / count, x,
                  place > 0 ? 2.5 * place / std::sqrt(count) : 0x1p-24)
          << x;
    }
  // What fits stays, whatever the word.
  EXPECT_EQ(reference::roundStochastic(Storage::F16, 0.1875f, ~0u), 0.1875f);
  EXPECT_EQ(reference::roundStochastic(Storage::BF16, -2.5f, ~0u), -2.5f);
}

TEST(Element, RowsArePaddedWithZeros) {
  char row[8];
  std::memset(row, 0x55, sizeof row);
  const float w[3] = {1, -2, 0.5f};
  encodeWeights(Element::f16, w, 3, row);
  EXPECT_EQ(stateOffset(Element::f16, 3), 8);
  EXPECT_EQ(row[6], 0);
  EXPECT_EQ(row[7], 0);
  float back[3];
  decodeWeights(Element::f16, row, 3, back);
  EXPECT_EQ(back[1], -2);
}
