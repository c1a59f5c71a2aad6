//===- Math.cpp - Elementary functions from plain arithmetic
//---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every operation is +, -, *, /, sqrt or an explicit fma; this file must be
// compiled without contraction (terrace_target_options sees to that).
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Math.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace trc::math {

namespace {

// ln 2 in two parts; the first has 32 trailing zero bits, so that k * ln2Hi is
// exact for every exponent k.
constexpr double ln2Hi = 0x1.62e42feep-1;
constexpr double ln2Lo = 0x1.a39ef35793c76p-33;
constexpr double log2e = 0x1.71547652b82fep+0;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

uint64_t bitsOf(double x) {
  uint64_t b;
  std::memcpy(&b, &x, sizeof(b));
  return b;
}

double fromBits(uint64_t b) {
  double x;
  std::memcpy(&x, &b, sizeof(x));
  return x;
}

/// 2^k for -1022 <= k <= 1023.
double pow2(int64_t k) {
  return fromBits(static_cast<uint64_t>(k + 1023) << 52);
}

/// k ln 2 + log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)].
/// With s = f / (2 + f): log(1 + f) = 2 s + 2/3 s^3 + 2/5 s^5 + ..., written
/// as f - (f^2/2 - s (f^2/2 + R)), so that the leading term is exact.
double logSeries(double f, double k) {
  double s = f / (2.0 + f);
  double z = s * s;
  double r = 2.0 / 23.0;
  r = std::fma(r, z, 2.0 / 21.0);
  r = std::fma(r, z, 2.0 / 19.0);
  r = std::fma(r, z, 2.0 / 17.0);
  r = std::fma(r, z, 2.0 / 15.0);
  r = std::fma(r, z, 2.0 / 13.0);
  r = std::fma(r, z, 2.0 / 11.0);
  r = std::fma(r, z, 2.0 / 9.0);
  r = std::fma(r, z, 2.0 / 7.0);
  r = std::fma(r, z, 2.0 / 5.0);
  r = std::fma(r, z, 2.0 / 3.0);
  r = r * z;
  double half = 0.5 * f * f;
  if (k == 0)
    return f - (half - s * (half + r));
  return k * ln2Hi - ((half - (s * (half + r) + k * ln2Lo)) - f);
}

} // namespace

double exp(double x) {
  if (x != x)
    return x;
  if (x > 709.782712893384)
    return inf;
  if (x < -745.2)
    return 0.0;
  // x = k ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 * 2^52 rounds to an integer.
  constexpr double magic = 0x1.8p52;
  double k = (x * log2e + magic) - magic;
  double hi = std::fma(-k, ln2Hi, x);
  double lo = k * ln2Lo;
  double r = hi - lo;
  double tail = (hi - r) - lo; // what the subtraction lost
  double q = 1.0 / 6227020800.0;
  q = std::fma(q, r, 1.0 / 479001600.0);
  q = std::fma(q, r, 1.0 / 39916800.0);
  q = std::fma(q, r, 1.0 / 3628800.0);
  q = std::fma(q, r, 1.0 / 362880.0);
  q = std::fma(q, r, 1.0 / 40320.0);
  q = std::fma(q, r, 1.0 / 5040.0);
  q = std::fma(q, r, 1.0 / 720.0);
  q = std::fma(q, r, 1.0 / 120.0);
  q = std::fma(q, r, 1.0 / 24.0);
  q = std::fma(q, r, 1.0 / 6.0);
  q = std::fma(q, r, 0.5);
  double e = 1.0 + (r + std::fma(r * r, q, tail));
  int64_t n = static_cast<int64_t>(k);
  if (n > 1023)
    return e * 2.0 * pow2(n - 1);
  if (n < -1021)
    return e * pow2(n + 64) * 0x1p-64;
  return e * pow2(n);
}

double log(double x) {
  if (x != x)
    return x;
  if (x <= 0)
    return x == 0 ? -inf : nan;
  if (x == inf)
    return inf;
  int64_t k = 0;
  if (x < 0x1p-1022) { // subnormal
    x *= 0x1p54;
    k = -54;
  }
  uint64_t b = bitsOf(x);
  k += static_cast<int64_t>(b >> 52) - 1023;
  double m = fromBits((b & 0x000fffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 0x1.6a09e667f3bcdp+0) { // sqrt(2)
    m *= 0.5;
    ++k;
  }
  return logSeries(m - 1.0, static_cast<double>(k));
}

double log1p(double x) {
  if (x != x || x == inf)
    return x;
  if (x <= -1)
    return x == -1 ? -inf : nan;
  if (x > -0.2928932188134524 && x < 0.4142135623730951)
    return x == 0 ? x : logSeries(x, 0.0); // keeps the sign of zero
  double u = 1.0 + x;
  // What 1 + x lost, as a relative correction.
  double lost = x >= 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
  return log(u) + lost / u;
}

float exp(float x) { return static_cast<float>(exp(static_cast<double>(x))); }
float log(float x) { return static_cast<float>(log(static_cast<double>(x))); }
float log1p(float x) {
  return static_cast<float>(log1p(static_cast<double>(x)));
}

namespace {

template <int N> double horner(const double (&c)[N], double x) {
  double r = c[N - 1];
  for (int i = N - 2; i >= 0; --i)
    r = r * x + c[i];
  return r;
}

// Coefficients of AS241, lowest power first.
constexpr double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                        1.9715909503065514427e+3, 1.3731693765509461125e+4,
                        4.5921953931549871457e+4, 6.7265770927008700853e+4,
                        3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr double b[] = {1.0,
                        4.2313330701600911252e+1,
                        6.8718700749205790830e+2,
                        5.3941960214247511077e+3,
                        2.1213794301586595867e+4,
                        3.9307895800092710610e+4,
                        2.8729085735721942674e+4,
                        5.2264952788528545610e+3};
constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                        5.76949722146069140550e0,  3.64784832476320460504e0,
                        1.27045825245236838258e0,  2.41780725177450611770e-1,
                        2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double d[] = {1.0,
                        2.05319162663775882187e0,
                        1.67638483018380384940e0,
                        6.89767334985100004550e-1,
                        1.48103976427480074590e-1,
                        1.51986665636164571966e-2,
                        5.47593808499534494600e-4,
                        1.05075007164441684324e-9};
constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                        1.78482653991729133580e0,  2.96560571828504891230e-1,
                        2.65321895265761230930e-2, 1.24266094738807843860e-3,
                        2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double f[] = {1.0,
                        5.99832206555887937690e-1,
                        1.36929880922735805310e-1,
                        1.48753612908506148525e-2,
                        7.86869131145613259100e-4,
                        1.84631831751005468180e-5,
                        1.42151175831644588870e-7,
                        2.04426310338993978564e-15};

} // namespace

double normalQuantile(double p) {
  double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    double r = 0.180625 - q * q;
    return q * horner(a, r) / horner(b, r);
  }
  double r = __builtin_sqrt(-log(q < 0 ? p : 1.0 - p));
  double x = r <= 5.0 ? horner(c, r - 1.6) / horner(d, r - 1.6)
                      : horner(e, r - 5.0) / horner(f, r - 5.0);
  return q < 0 ? -x : x;
}

} // namespace trc::math
