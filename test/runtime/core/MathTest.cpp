//===- MathTest.cpp - exp, log, log1p and the normal quantile -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Math.h"

#include "runtime/core/Hash.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace trc;

/// Error in units of the last place of the exact value.
static double ulps(double got, long double exact) {
  double rounded = static_cast<double>(exact);
  double ulp =
      std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
  return std::fabs(
      static_cast<double>((static_cast<long double>(got) - exact) / ulp));
}

TEST(MathExp, WithinOneUlp) {
  SplitMix r(1);
  for (int i = 0; i < 200000; ++i) {
    double x = (r.unit() - 0.5) * 1400;
    ASSERT_LE(ulps(math::exp(x), expl(x)), 1.0) << x;
    x = (r.unit() - 0.5) * 2;
    ASSERT_LE(ulps(math::exp(x), expl(x)), 1.0) << x;
  }
}

TEST(MathLog, WithinOneUlp) {
  SplitMix r(2);
  for (int i = 0; i < 200000; ++i) {
    uint64_t bits = r.next() >> 1;
    double x;
    std::memcpy(&x, &bits, sizeof(x));
    if (!std::isfinite(x) || x == 0)
      continue;
    ASSERT_LE(ulps(math::log(x), logl(x)), 1.0) << x;
    x = 0.5 + 1.5 * r.unit();
    ASSERT_LE(ulps(math::log(x), logl(x)), 1.0) << x;
  }
}

TEST(MathLog1p, WithinAnUlpAndAQuarter) {
  SplitMix r(3);
  for (int i = 0; i < 200000; ++i)
    for (double scale : {1.0, 1e-3, 1e-9, 1e-16, 1e3, 1e18}) {
      double x = (r.unit() - (scale <= 1 ? 0.5 : 0)) * 2 * scale;
      if (x <= -1)
        continue;
      ASSERT_LE(ulps(math::log1p(x), log1pl(x)), 1.25) << x;
    }
}

TEST(MathEdges, AsInC) {
  EXPECT_EQ(math::exp(0.0), 1.0);
  EXPECT_EQ(math::exp(-INFINITY), 0.0);
  EXPECT_EQ(math::exp(double(INFINITY)), INFINITY);
  EXPECT_EQ(math::exp(710.0), INFINITY);
  EXPECT_EQ(math::exp(-746.0), 0.0);
  EXPECT_GT(math::exp(-744.0), 0.0); // subnormal
  EXPECT_GT(math::exp(709.78), 1e308);
  EXPECT_TRUE(std::isnan(math::exp(double(NAN))));
  EXPECT_EQ(math::log(1.0), 0.0);
  EXPECT_EQ(math::log(0.0), -INFINITY);
  EXPECT_EQ(math::log(double(INFINITY)), INFINITY);
  EXPECT_TRUE(std::isnan(math::log(-1.0)));
  EXPECT_TRUE(std::isnan(math::log(double(NAN))));
  EXPECT_NEAR(math::log(4.9406564584124654e-324), -744.4400719213812, 1e-12);
  EXPECT_EQ(math::log1p(-1.0), -INFINITY);
  EXPECT_TRUE(std::isnan(math::log1p(-2.0)));
  EXPECT_TRUE(std::signbit(math::log1p(-0.0)));
  EXPECT_EQ(math::exp(100.0f), INFINITY);
  EXPECT_EQ(math::exp(1.0f), 2.7182817459106445f);
}

TEST(MathNormalQuantile, KnownValues) {
  // statistics.NormalDist().inv_cdf of Python, another implementation.
  EXPECT_DOUBLE_EQ(math::normalQuantile(0.5), 0.0);
  EXPECT_NEAR(math::normalQuantile(0.3), -0.5244005127080407, 1e-15);
  EXPECT_NEAR(math::normalQuantile(0.975), 1.9599639845400534, 2e-15);
  EXPECT_NEAR(math::normalQuantile(1e-5), -4.2648907939228256, 5e-15);
  EXPECT_NEAR(math::normalQuantile(1 - 1e-12), 7.0344869100478356, 1e-14);
  EXPECT_NEAR(math::normalQuantile(0x1p-33), -6.337957754553789, 1e-14);
}

TEST(MathHash, KnownValues) {
  // The first outputs of SplitMix64 with seed 0.
  SplitMix r(0);
  EXPECT_EQ(r.next(), 0xe220a8397b1dcdafull);
  EXPECT_EQ(r.next(), 0x6e789e6aa1b965f4ull);
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8ull);
  for (int64_t id : {int64_t(0), int64_t(-1), int64_t(1) << 62})
    for (int64_t rows : {1, 7, 1000000007}) {
      EXPECT_GE(hashRow(id, rows), 0);
      EXPECT_LT(hashRow(id, rows), rows);
    }
  EXPECT_NE(tableInitKey(0, "a"), tableInitKey(0, "b"));
  EXPECT_NE(tableInitKey(0, "a"), tableInitKey(1, "a"));
}
