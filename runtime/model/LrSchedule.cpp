//===- LrSchedule.cpp - The factor of every table's learning rate
//----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/LrSchedule.h"

#include "runtime/core/Math.h"

#include <algorithm>

namespace trc::model {

/// base^exponent for 0 <= base <= 1: by products where the exponent is a small
/// integer, so that the usual schedules have no rounding of exp and log.
static double power(double base, double exponent) {
  if (base <= 0)
    return exponent > 0 ? 0.0 : 1.0;
  int64_t whole = static_cast<int64_t>(exponent);
  if (exponent >= 0 && exponent <= 16 &&
      static_cast<double>(whole) == exponent) {
    double r = 1;
    for (int64_t i = 0; i < whole; ++i)
      r *= base;
    return r;
  }
  return math::exp(exponent * math::log(base));
}

double LrSchedule::at(int64_t step) const {
  double scale = 1;
  if (warmupSteps > 0)
    scale = std::min(1.0, static_cast<double>(step) /
                              static_cast<double>(warmupSteps));
  if (decaySteps > 0 && step >= decayStart) {
    double left = static_cast<double>(decayStart + decaySteps - step) /
                  static_cast<double>(decaySteps);
    double decay = power(std::min(1.0, std::max(0.0, left)), decayPower);
    scale *= std::max(endScale, decay);
  }
  return scale;
}

} // namespace trc::model
