//===- Math.h - Elementary functions, the same on every target -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// exp, log, log1p and the inverse normal distribution from plain IEEE
// arithmetic: no libm, so that heads and initial rows have the same bits on
// every machine. Within 1 ulp in double; the float versions round the double
// result once. Special values as in C: exp(-inf) = 0, log(0) = -inf,
// log(x < 0) = NaN, NaN passes through.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_MATH_H
#define TERRACE_RUNTIME_CORE_MATH_H

namespace trc::math {

double exp(double x);
double log(double x);
double log1p(double x);

float exp(float x);
float log(float x);
float log1p(float x);

/// Inverse of the standard normal distribution function, 0 < p < 1 (Wichura's
/// AS241, PPND16).
double normalQuantile(double p);

} // namespace trc::math

#endif // TERRACE_RUNTIME_CORE_MATH_H
