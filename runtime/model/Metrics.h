//===- Metrics.h - Loss, normalised entropy and AUC of a stream -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// AUC is exact (ties count half) up to 2^18 samples; beyond, predictions that
// share a bin of 2^-12 in logit count as ties, which moves the AUC by less
// than 1e-6 once the labels inside a bin are mixed. Memory stays below 4 MiB
// whatever the stream's length. One thread.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_METRICS_H
#define TERRACE_RUNTIME_MODEL_METRICS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trc::model {

/// AUC over (score, label) pairs that come one by one.
class AucCounter {
public:
  void add(float probability, float label);
  /// NaN without both classes.
  double value() const;
  int64_t positives() const { return positiveCount; }
  int64_t negatives() const { return negativeCount; }

  static constexpr size_t exactSamples = size_t(1) << 18;

private:
  /// A group of tied predictions, or of close ones once binned.
  struct Bin {
    uint64_t positive = 0, negative = 0;
  };
  void compact();
  static double areaOf(const std::vector<Bin> &ascending, double positives,
                       double negatives);
  static size_t binOf(float probability);

  // Exact: the bits of the probability, shifted left once, plus the label, so
  // that sorting sorts by probability. Binned: by logit.
  std::vector<uint32_t> samples;
  std::vector<Bin> bins;
  int64_t positiveCount = 0, negativeCount = 0;
};

/// What is reported of a stream of predictions.
struct MetricValues {
  int64_t samples = 0;
  double loss = 0; // mean log loss
  double ne = 0;   // loss over the entropy of the same labels; NaN: one class
  double auc = 0;  // NaN: one class
};

class Metrics {
public:
  /// Probabilities and labels of one batch.
  void add(const float *probabilities, const float *labels, int64_t samples);
  MetricValues values() const;

private:
  AucCounter auc;
  double lossSum = 0;
  int64_t count = 0;
};

/// Log loss of one prediction from its probability; finite at 0 and 1.
double probabilityLoss(float probability, float label);

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_METRICS_H
