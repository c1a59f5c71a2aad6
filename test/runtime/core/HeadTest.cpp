//===- HeadTest.cpp - logistic and fm: values and gradients ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values against hand-computed cases; gradients against central differences of
// a double-precision loss written here from the formulas, not from Head.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Head.h"

#include "runtime/core/Hash.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

using namespace trc;

namespace {

struct Model {
  HeadKind kind;
  int64_t samples, features, dim;
  std::vector<std::vector<float>> v; // per feature, [samples, dim]
  std::vector<float> y;
  float bias = 0.1f;

  Model(HeadKind kind, int64_t samples, int64_t features, int64_t dim)
      : kind(kind), samples(samples), features(features), dim(dim) {
    SplitMix r(static_cast<uint64_t>(dim * 100 + features));
    v.resize(static_cast<size_t>(features));
    for (auto &f : v)
      for (int64_t i = 0; i < samples * dim; ++i)
        f.push_back(static_cast<float>(r.unit() * 2 - 1));
    for (int64_t s = 0; s < samples; ++s)
      y.push_back(static_cast<float>(r.below(2)));
  }

  std::vector<HeadInput> inputs() const {
    std::vector<HeadInput> in;
    for (const auto &f : v)
      in.push_back({f.data(), dim, dim});
    return in;
  }

  /// The mean loss in double, by the textbook.
  double loss(double b) const {
    double total = 0;
    for (int64_t s = 0; s < samples; ++s) {
      double z = b;
      auto at = [&](int64_t f, int64_t c) {
        return double(v[size_t(f)][size_t(s * dim + c)]);
      };
      for (int64_t f = 0; f < features; ++f)
        for (int64_t c = 0; c < (kind == HeadKind::Fm ? 1 : dim); ++c)
          z += at(f, c);
      if (kind == HeadKind::Fm) // every pair of features
        for (int64_t f = 0; f < features; ++f)
          for (int64_t g = f + 1; g < features; ++g)
            for (int64_t c = 1; c < dim; ++c)
              z += at(f, c) * at(g, c);
      double p = 1 / (1 + std::exp(-z));
      total -= y[size_t(s)] > 0 ? std::log(p) : std::log(1 - p);
    }
    return total / double(samples);
  }
};

void checkGradients(Model m) {
  std::vector<float> z(size_t(m.samples)), p = z, dz = z;
  std::vector<HeadInput> in = m.inputs();
  headForward(m.kind, m.bias, in.data(), m.features, 0, m.samples, z.data(),
              p.data());
  EXPECT_NEAR(headLoss(z.data(), m.y.data(), m.samples), m.loss(m.bias), 1e-6);
  std::vector<std::vector<float>> g(
      size_t(m.features), std::vector<float>(size_t(m.samples * m.dim)));
  std::vector<HeadGrad> out;
  for (auto &f : g)
    out.push_back({f.data(), m.dim});
  headBackward(m.kind, in.data(), m.features, p.data(), m.y.data(), m.samples,
               0, m.samples, out.data(), dz.data());
  const float h = 1.0f / 1024;
  for (size_t f = 0; f < g.size(); ++f)
    for (size_t i = 0; i < g[f].size(); ++i) {
      float at = m.v[f][i];
      m.v[f][i] = at + h;
      double up = m.loss(m.bias);
      double high = m.v[f][i];
      m.v[f][i] = at - h;
      double slope = (up - m.loss(m.bias)) / (high - m.v[f][i]);
      m.v[f][i] = at;
      ASSERT_NEAR(g[f][i], slope, 2e-6) << f << " " << i;
    }
  double gb = 0;
  for (float d : dz)
    gb += d;
  double slope = (m.loss(m.bias + 1e-4) - m.loss(m.bias - 1e-4)) / 2e-4;
  EXPECT_NEAR(gb, slope, 2e-6);
}

} // namespace

TEST(HeadGradients, MatchFiniteDifferences) {
  for (HeadKind kind : {HeadKind::Logistic, HeadKind::Fm})
    for (int64_t dim : {1, 2, 9})
      for (int64_t features : {1, 2, 5})
        checkGradients(Model(kind, 4, features, dim));
}

TEST(HeadForward, HandComputed) {
  float a[] = {1, 2, 3}, b[] = {0.5f, -1, 4};
  HeadInput in[] = {{a, 3, 3}, {b, 3, 3}};
  float z, p;
  headForward(HeadKind::Logistic, 0.25f, in, 2, 0, 1, &z, &p);
  EXPECT_EQ(z, 9.75f);
  headForward(HeadKind::Fm, 0.25f, in, 2, 0, 1, &z, &p);
  EXPECT_EQ(z, 0.25f + 1.5f + 2 * -1 + 3 * 4);
  EXPECT_EQ(p, sigmoid(z));
}

TEST(HeadForward, RangesMakeTheWhole) {
  Model m(HeadKind::Fm, 10, 3, 5);
  std::vector<HeadInput> in = m.inputs();
  std::vector<float> z(10), p(10), z2(10), p2(10);
  headForward(m.kind, m.bias, in.data(), 3, 0, 10, z.data(), p.data());
  for (int64_t s = 0; s < 10; s += 4)
    headForward(m.kind, m.bias, in.data(), 3, s, std::min<int64_t>(s + 4, 10),
                z2.data(), p2.data());
  EXPECT_EQ(z, z2);
  EXPECT_EQ(p, p2);
}

TEST(HeadSigmoid, IsStableAndSymmetric) {
  EXPECT_EQ(sigmoid(0), 0.5f);
  EXPECT_EQ(sigmoid(200), 1.0f);
  EXPECT_EQ(sigmoid(-200), 0.0f);
  EXPECT_GT(sigmoid(-80), 0.0f);
  for (float z : {0.1f, 1.0f, 3.7f, 12.0f})
    EXPECT_NEAR(sigmoid(z) + sigmoid(-z), 1.0f, 1e-7f);
}

TEST(HeadLoss, IsStable) {
  EXPECT_DOUBLE_EQ(headSampleLoss(0, 1), std::log(2.0));
  EXPECT_DOUBLE_EQ(headSampleLoss(500, 0), 500.0);
  EXPECT_DOUBLE_EQ(headSampleLoss(-500, 1), 500.0);
  EXPECT_NEAR(headSampleLoss(500, 1), 0.0, 1e-200);
  EXPECT_NEAR(headSampleLoss(2, 1), std::log1p(std::exp(-2.0)), 1e-15);
}

TEST(HeadBias, OneAdagradStep) {
  HeadState s;
  float dz[] = {0.25f, -0.5f, 0.125f};
  headUpdateBias(s, dz, 3, 1.0);
  float g = -0.125f;
  EXPECT_EQ(s.biasSquares, g * g);
  EXPECT_NEAR(s.bias, 0.1f, 1e-6f); // the first step is lr towards -sign(g)
  float before = s.bias;
  headUpdateBias(s, dz, 3, 0.5);
  EXPECT_EQ(s.biasSquares, 2 * g * g);
  EXPECT_NEAR(s.bias - before, 0.05f / std::sqrt(2.0f), 1e-6f);
}
