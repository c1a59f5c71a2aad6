//===- RowInitTest.cpp - Initial rows -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/RowInit.h"

#include "runtime/core/Math.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

using namespace trc;

TEST(RowInitPhilox, KnownAnswers) {
  // Random123's kat_vectors, philox4x32 with 10 rounds.
  struct Case {
    uint32_t counter[4], key[2], out[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u},
       {~0u, ~0u},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Case &c : cases) {
    uint32_t out[4];
    philox4x32(c.counter, c.key, out);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(out[i], c.out[i]);
  }
}

TEST(RowInitUniform, IsTheDocumentedFunction) {
  const uint64_t key = 0x299f31d0a4093822ull;
  RowInit init = RowInit::uniform(key, -0.01, 0.01);
  const int64_t row = (int64_t(5) << 32) | 9;
  std::vector<float> v(10);
  init.fill(row, 10, v.data());
  for (uint32_t c = 0; c < 10; ++c) {
    uint32_t counter[4] = {9, 5, c / 4, 0};
    uint32_t k[2] = {0xa4093822, 0x299f31d0}, out[4];
    philox4x32(counter, k, out);
    float u = static_cast<float>(out[c % 4] >> 8) / 16777216.0f;
    EXPECT_EQ(v[c], std::fma(0.02f, u, -0.01f));
    EXPECT_GE(v[c], -0.01f);
    EXPECT_LE(v[c], 0.01f);
  }
}

TEST(RowInitUniform, AColumnDoesNotDependOnTheDim) {
  RowInit init = RowInit::uniform(77, 0, 1);
  std::vector<float> wide(130);
  init.fill(3, 130, wide.data());
  for (int64_t dim : {1, 2, 3, 5, 63}) {
    std::vector<float> v(static_cast<size_t>(dim));
    init.fill(3, dim, v.data());
    EXPECT_EQ(v, std::vector<float>(wide.begin(), wide.begin() + dim));
  }
}

TEST(RowInitMoments, UniformAndNormal) {
  const int64_t rows = 4000, dim = 25;
  for (bool normal : {false, true}) {
    RowInit init =
        normal ? RowInit::normal(5, 0.5, 2.0) : RowInit::uniform(5, -1, 2);
    double sum = 0, squares = 0;
    std::vector<float> v(dim);
    for (int64_t r = 0; r < rows; ++r) {
      init.fill(r, dim, v.data());
      for (float x : v) {
        sum += x;
        squares += double(x) * x;
      }
    }
    double n = double(rows * dim), mean = sum / n;
    double variance = squares / n - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.03);
    EXPECT_NEAR(variance, normal ? 4.0 : 0.75, normal ? 0.06 : 0.01);
  }
}

TEST(RowInitConstant, Fills) {
  std::vector<float> v(7, -1);
  RowInit::constant(0.1).fill(123, 7, v.data());
  EXPECT_EQ(v, std::vector<float>(7, 0.1f));
}

TEST(RowInitKeys, RowsAndKeysDiffer) {
  float a, b, c;
  RowInit::uniform(1, 0, 1).fill(0, 1, &a);
  RowInit::uniform(1, 0, 1).fill(1, 1, &b);
  RowInit::uniform(2, 0, 1).fill(0, 1, &c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}
