//===- Rounding.cpp - Rounding of stored weights --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/reference/Rounding.h"

#include <cmath>

namespace trc::reference {

namespace {
struct Format {
  int mantissa;    // bits behind the point
  int minExponent; // of normal numbers
  int maxExponent;
  int randomBits;
};
} // namespace

static Format formatOf(Storage storage) {
  return storage == Storage::F16 ? Format{10, -14, 15, 13}
                                 : Format{7, -126, 127, 16};
}

/// x in units of its last place, and that place.
static double inPlaces(const Format &format, float x, double &place) {
  int exponent = x == 0 ? format.minExponent : std::ilogb(x);
  exponent = std::max(exponent, format.minExponent);
  place = std::ldexp(1.0, exponent - format.mantissa);
  return std::fabs(static_cast<double>(x)) / place;
}

static float finish(const Format &format, double places, double place,
                    float x) {
  double value = places * place;
  if (value >= std::ldexp(1.0, format.maxExponent + 1))
    value = HUGE_VAL;
  return std::copysign(static_cast<float>(value), x);
}

float roundNearest(Storage storage, float x) {
  if (storage == Storage::F32 || !std::isfinite(x))
    return x;
  Format format = formatOf(storage);
  double place;
  double places = inPlaces(format, x, place);
  return finish(format, std::nearbyint(places), place, x);
}

/// The smallest and the largest column make bias and scale.
static void quantize(float most, float *row, int64_t dim) {
  float low = row[0], high = row[0];
  for (int64_t c = 0; c < dim; ++c) {
    if (row[c] < low)
      low = row[c];
    if (row[c] > high)
      high = row[c];
  }
  const float bias = roundNearest(Storage::F16, low);
  float scale = roundNearest(Storage::F16, (high - bias) / most);
  if (scale == 0)
    scale = 1;
  const float inverse = 1 / scale;
  for (int64_t c = 0; c < dim; ++c) {
    double number = std::nearbyint(
        static_cast<double>(static_cast<float>(row[c] - bias) * inverse));
    number = std::fmin(std::fmax(number, 0), static_cast<double>(most));
    // Exact in f64, so that there is one rounding.
    row[c] = static_cast<float>(static_cast<double>(scale) * number +
                                static_cast<double>(bias));
  }
}

void roundRow(Storage storage, float *row, int64_t dim) {
  if (storage == Storage::I8 || storage == Storage::I4)
    return quantize(storage == Storage::I8 ? 255.0f : 15.0f, row, dim);
  for (int64_t c = 0; c < dim; ++c)
    row[c] = roundNearest(storage, row[c]);
}

float roundStochastic(Storage storage, float x, uint32_t word) {
  if (storage == Storage::F32 || !std::isfinite(x))
    return x;
  Format format = formatOf(storage);
  double place;
  double places = inPlaces(format, x, place);
  double random =
      std::ldexp(static_cast<double>(word >> (32 - format.randomBits)),
                 -format.randomBits);
  return finish(format, std::floor(places + random), place, x);
}

uint32_t roundingWord(uint64_t seed, int64_t column) {
  uint32_t x =
      static_cast<uint32_t>(seed) + static_cast<uint32_t>(column) * 0x9e3779b9u;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = x ^ static_cast<uint32_t>(seed >> 32);
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

} // namespace trc::reference
