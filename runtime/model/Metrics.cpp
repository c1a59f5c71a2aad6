//===- Metrics.cpp - Loss, normalised entropy and AUC of a stream
//----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Metrics.h"

#include "runtime/core/Math.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace trc::model {

static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
static constexpr double maxLogit = 16;
static constexpr size_t binCount = size_t(1) << 17; // 2^-12 wide

double probabilityLoss(float probability, float label) {
  // A probability is an f32, so its distance from 0 and 1 is not below what
  // f32 can tell; clamp there rather than report an infinite loss.
  double p = probability;
  double q = label > 0.5f ? p : 1.0 - p;
  return -math::log(std::max(q, 0x1p-25));
}

void AucCounter::add(float probability, float label) {
  bool positive = label > 0.5f;
  ++(positive ? positiveCount : negativeCount);
  if (!bins.empty()) {
    Bin &b = bins[binOf(probability)];
    ++(positive ? b.positive : b.negative);
    return;
  }
  // Probabilities are in [0, 1], so the top bit (the sign) is free.
  float p = std::min(std::max(probability, 0.0f), 1.0f);
  if (p != p)
    p = 0.0f;
  uint32_t bits;
  std::memcpy(&bits, &p, sizeof(bits));
  if (samples.empty())
    samples.reserve(1024);
  samples.push_back(bits << 1 | (positive ? 1u : 0u));
  if (samples.size() > exactSamples)
    compact();
}

size_t AucCounter::binOf(float probability) {
  double p = probability;
  double logit = p <= 0   ? -maxLogit
                 : p >= 1 ? maxLogit
                          : math::log(p) - math::log1p(-p);
  double at =
      (logit + maxLogit) * (static_cast<double>(binCount) / (2 * maxLogit));
  at = std::min(std::max(at, 0.0), static_cast<double>(binCount - 1));
  return static_cast<size_t>(at);
}

void AucCounter::compact() {
  bins.resize(binCount);
  for (uint32_t s : samples) {
    uint32_t bits = s >> 1;
    float p;
    std::memcpy(&p, &bits, sizeof(p));
    Bin &b = bins[binOf(p)];
    ++(s & 1 ? b.positive : b.negative);
  }
  samples = std::vector<uint32_t>();
}

double AucCounter::areaOf(const std::vector<Bin> &ascending, double positives,
                          double negatives) {
  double area = 0, below = 0; // negatives ranked lower
  for (const Bin &b : ascending) {
    area += static_cast<double>(b.positive) *
            (below + 0.5 * static_cast<double>(b.negative));
    below += static_cast<double>(b.negative);
  }
  return area / (positives * negatives);
}

double AucCounter::value() const {
  if (positiveCount == 0 || negativeCount == 0)
    return nan;
  double p = static_cast<double>(positiveCount);
  double n = static_cast<double>(negativeCount);
  if (!bins.empty())
    return areaOf(bins, p, n);
  std::vector<uint32_t> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  double area = 0, below = 0;
  for (size_t i = 0; i < sorted.size();) {
    double tiedPositive = 0, tiedNegative = 0;
    uint32_t score = sorted[i] >> 1;
    for (; i < sorted.size() && sorted[i] >> 1 == score; ++i)
      ++(sorted[i] & 1 ? tiedPositive : tiedNegative);
    area += tiedPositive * (below + 0.5 * tiedNegative);
    below += tiedNegative;
  }
  return area / (p * n);
}

void Metrics::add(const float *probabilities, const float *labels,
                  int64_t samples) {
  for (int64_t i = 0; i < samples; ++i) {
    auc.add(probabilities[i], labels[i]);
    lossSum += probabilityLoss(probabilities[i], labels[i]);
  }
  count += samples;
}

MetricValues Metrics::values() const {
  MetricValues v;
  v.samples = count;
  if (count == 0) {
    v.loss = v.ne = v.auc = nan;
    return v;
  }
  v.loss = lossSum / static_cast<double>(count);
  double rate =
      static_cast<double>(auc.positives()) / static_cast<double>(count);
  v.ne =
      rate > 0 && rate < 1
          ? v.loss / -(rate * math::log(rate) + (1 - rate) * math::log1p(-rate))
          : nan;
  v.auc = auc.value();
  return v;
}

} // namespace trc::model
