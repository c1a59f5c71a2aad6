//===- ElementTest.cpp - f16 and bf16 against the compiler's own ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every 16-bit pattern there and back, and roundings against _Float16, which
// the compiler's library converts. Random rounding of the reference is even.
// Quantised rows equal the reference's and stay within what the page bounds.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Element.h"
#include "runtime/core/Hash.h"
#include "runtime/reference/Rounding.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

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

static float storedValue(Element element, float x) {
  roundWeights(element, &x, 1);
  return x;
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

/// Many at once are the same as one by one, at any place, NaNs included.
TEST(Element, ManyAtOnce) {
  SplitMix random(6);
  std::vector<float> from(301), back(301);
  for (float &x : from)
    x = floatOf(static_cast<uint32_t>(random.next()) &
                (random.below(2) ? ~0u : 0xc7ffffffu));
  from[3] = floatOf(0x7fa00001); // NaNs that signal
  from[299] = floatOf(0xff800001);
  std::vector<char> bits(2 * 301 + 1);
  for (Element e : {Element::f16, Element::bf16})
    for (int64_t count : {0, 1, 7, 8, 9, 64, 301}) {
      encodeFloats(e, from.data(), count, bits.data() + 1);
      decodeFloats(e, bits.data() + 1, count, back.data());
      for (int64_t i = 0; i < count; ++i) {
        uint16_t one =
            e == Element::f16 ? f16FromF32(from[i]) : bf16FromF32(from[i]);
        uint16_t of;
        std::memcpy(&of, bits.data() + 1 + 2 * i, 2);
        ASSERT_EQ(of, one) << from[i];
        ASSERT_EQ(
            bitsOf(back[i]),
            bitsOf(e == Element::f16 ? f32FromF16(one) : f32FromBF16(one)));
      }
    }
}

/// Rows of very different sizes and offsets.
static std::vector<float> randomRow(SplitMix &random, int64_t dim) {
  std::vector<float> row(static_cast<size_t>(dim));
  auto unit = [&] {
    return static_cast<double>(random.next() >> 11) * 0x1p-52 - 1;
  };
  double spread = std::ldexp(1.0, static_cast<int>(random.below(30)) - 20);
  double offset =
      unit() * std::ldexp(1.0, static_cast<int>(random.below(20)) - 10);
  for (float &x : row)
    x = static_cast<float>(unit() * spread + offset);
  if (random.below(8) == 0)
    std::fill(row.begin(), row.end(), row[0]);
  return row;
}

TEST(Quantize, EqualsTheReferenceAndStaysNear) {
  SplitMix random(11);
  for (Element element : {Element::i8, Element::i4})
    for (int i = 0; i < 20000; ++i) {
      int64_t dim = static_cast<int64_t>(1 + random.below(40));
      std::vector<float> row = randomRow(random, dim), ours = row, theirs = row;
      ASSERT_EQ(whyNotStored(element, row.data(), dim), "");
      roundWeights(element, ours.data(), dim);
      reference::roundRow(element == Element::i8 ? reference::Storage::I8
                                                 : reference::Storage::I4,
                          theirs.data(), dim);
      double most = element == Element::i8 ? 255 : 15;
      double low = *std::min_element(row.begin(), row.end());
      double high = *std::max_element(row.begin(), row.end());
      // Half of a place; or, at the ends, what f16 moved the bias and the
      // places by (docs/numerics.md).
      double ends =
          std::max(std::fabs(low), high - low) * 0x1.1p-11 + most * 0x1p-24;
      double bound = std::max(0.501 * (high - low) / most, 0.0) + 2 * ends +
                     std::max(std::fabs(low), std::fabs(high)) * 0x1p-22;
      for (size_t c = 0; c < row.size(); ++c) {
        ASSERT_EQ(bitsOf(ours[c]), bitsOf(theirs[c])) << i << " " << c;
        ASSERT_LE(std::fabs(static_cast<double>(ours[c]) - row[c]), bound)
            << elementName(element) << " " << row[c] << " in " << low << " .. "
            << high;
      }
    }
}

TEST(Quantize, KeepsFbgemmsBytes) {
  // Scale 1, bias -2: FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf in numbers,
  // scale and bias in front.
  const float row[5] = {-2, 13, 0.5f, 1.5f, 7};
  char record[12];
  encodeWeights(Element::i4, row, 5, record);
  const unsigned char want[12] = {0x00, 0x3c, 0x00, 0xc0, 0xf0, 0x42, 0x09};
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(static_cast<unsigned char>(record[i]), want[i]) << i;
  EXPECT_EQ(record[7], 0); // up to a multiple of 4
  float back[5];
  decodeWeights(Element::i4, record, 5, back);
  EXPECT_EQ(back[1], 13);
  EXPECT_EQ(back[2], 0); // 2.5 is halfway: to even
  EXPECT_EQ(back[3], 2); // 3.5 too
}

TEST(Quantize, SaysWhatDoesNotFit) {
  float row[3] = {1, 2, 3};
  EXPECT_EQ(whyNotStored(Element::i8, row, 3), "");
  row[1] = NAN;
  EXPECT_NE(whyNotStored(Element::i8, row, 3).find("column 1 is"),
            std::string::npos);
  row[1] = -INFINITY;
  EXPECT_NE(whyNotStored(Element::i4, row, 3).find("column 1 is -inf"),
            std::string::npos);
  row[1] = -65520; // the bias would be infinite
  EXPECT_NE(whyNotStored(Element::i4, row, 3), "");
  row[1] = -65519;
  EXPECT_EQ(whyNotStored(Element::i4, row, 3), "");
  row[1] = 1e6f; // 1e6 / 15 is no f16, 1e6 / 255 is one
  EXPECT_NE(whyNotStored(Element::i4, row, 3), "");
  EXPECT_EQ(whyNotStored(Element::i8, row, 3), "");
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
