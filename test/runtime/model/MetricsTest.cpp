//===- MetricsTest.cpp - Loss, NE, AUC and the learning-rate schedule -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Metrics.h"

#include "runtime/core/Hash.h"
#include "runtime/model/LrSchedule.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace trc;
using namespace trc::model;

/// AUC by its definition: the share of (positive, negative) pairs in order.
static double pairs(const std::vector<float> &p, const std::vector<float> &y) {
  double good = 0, all = 0;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t j = 0; j < p.size(); ++j)
      if (y[i] == 1 && y[j] == 0) {
        all += 1;
        good += p[i] > p[j] ? 1.0 : p[i] == p[j] ? 0.5 : 0.0;
      }
  return good / all;
}

TEST(Auc, EqualsItsDefinitionWithTies) {
  SplitMix r(1);
  std::vector<float> p, y;
  AucCounter auc;
  for (int i = 0; i < 500; ++i) {
    y.push_back(static_cast<float>(r.below(2)));
    p.push_back(static_cast<float>(r.below(20) + (y.back() > 0 ? 4 : 0)) / 24);
    auc.add(p.back(), y.back());
  }
  EXPECT_DOUBLE_EQ(auc.value(), pairs(p, y));
  AucCounter one;
  one.add(0.5f, 1);
  EXPECT_TRUE(std::isnan(one.value()));
}

TEST(Auc, BinsAreWithinAMillionth) {
  SplitMix r(2);
  const size_t n = 2 * AucCounter::exactSamples;
  AucCounter binned;
  std::vector<std::pair<float, bool>> all;
  for (size_t i = 0; i < n; ++i) {
    double z = -4;
    for (int k = 0; k < 6; ++k)
      z += r.unit() - 0.5 + (k == 0 ? 0.3 : 0);
    bool y = r.unit() < 1 / (1 + std::exp(-z));
    float p = static_cast<float>(1 / (1 + std::exp(-(z + r.unit()))));
    binned.add(p, y ? 1.0f : 0.0f);
    all.push_back({p, y});
  }
  std::sort(all.begin(), all.end());
  double area = 0, below = 0, positives = 0;
  for (size_t i = 0; i < n;) {
    double up = 0, down = 0;
    float score = all[i].first;
    for (; i < n && all[i].first == score; ++i)
      ++(all[i].second ? up : down);
    area += up * (below + down / 2);
    below += down;
    positives += up;
  }
  EXPECT_NEAR(binned.value(), area / (positives * below), 1e-6);
}

TEST(Metrics, LossAndNormalisedEntropy) {
  Metrics m;
  float p[] = {0.5f, 0.25f, 0.75f, 0.25f};
  float y[] = {1, 0, 1, 0};
  m.add(p, y, 4);
  MetricValues v = m.values();
  double loss = -(std::log(0.5) + 3 * std::log(0.75)) / 4;
  EXPECT_NEAR(v.loss, loss, 1e-12);
  EXPECT_NEAR(v.ne, loss / std::log(2.0), 1e-12);
  EXPECT_EQ(v.auc, 1.0);
  EXPECT_TRUE(std::isfinite(probabilityLoss(0.0f, 1.0f)));
}

TEST(LrSchedule, WarmsUpAndDecays) {
  LrSchedule s;
  EXPECT_EQ(s.at(1), 1.0);
  s.warmupSteps = 10;
  EXPECT_EQ(s.at(1), 0.1);
  EXPECT_EQ(s.at(10), 1.0);
  EXPECT_EQ(s.at(11), 1.0);
  s.decayStart = 100;
  s.decaySteps = 50;
  s.decayPower = 2;
  s.endScale = 0.01;
  EXPECT_EQ(s.at(99), 1.0);
  EXPECT_EQ(s.at(100), 1.0);
  EXPECT_EQ(s.at(125), 0.25);
  EXPECT_EQ(s.at(150), 0.01);
  EXPECT_EQ(s.at(100000), 0.01);
  s.decayPower = 0.5;
  EXPECT_NEAR(s.at(125), std::sqrt(0.5), 1e-15);
}
