//===- Element.cpp - Types that weights are stored in ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Element.h"
#include "runtime/core/FloatBits.h"

#include "runtime/core/Hash.h"

#include <cmath>
#include <cstring>
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace trc {

static const char *const names[] = {"f32", "f16", "bf16", "i8", "i4"};

const char *elementName(Element element) {
  return names[static_cast<int>(element)];
}

bool parseElement(const std::string &name, Element &element) {
  for (Element e :
       {Element::f32, Element::f16, Element::bf16, Element::i8, Element::i4})
    if (name == elementName(e)) {
      element = e;
      return true;
    }
  return false;
}

/// Drops the lower `bits` bits of x to nearest, ties to even.
static uint32_t dropNearest(uint32_t x, int bits) {
  uint32_t half = 1u << (bits - 1), odd = (x >> bits) & 1;
  return (x + half - 1 + odd) >> bits;
}

uint16_t f16FromF32(float x) {
  uint32_t bits = bitsOf(x), magnitude = bits & 0x7fffffff;
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000) // NaN: its upper bits, made quiet
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x47800000) // 2^16
    return sign | 0x7c00;
  if (magnitude >= 0x38800000) // 2^-14: the exponent counts from 112 less
    return static_cast<uint16_t>(sign |
                                 dropNearest(magnitude - (112u << 23), 13));
  if (magnitude < 0x33000000) // below half of the smallest
    return sign;
  // Multiples of 2^-24: the mantissa with its leading one, shifted.
  int exponent = static_cast<int>(magnitude >> 23);
  uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  return static_cast<uint16_t>(sign | dropNearest(mantissa, 126 - exponent));
}

float f32FromF16(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
  if (exponent == 0) { // exact in f32
    float value = static_cast<float>(mantissa) * 0x1p-24f;
    return floatOf(bitsOf(value) | sign);
  }
  uint32_t wide = exponent == 0x1f ? 0xff : exponent + 112;
  if (exponent == 0x1f && mantissa)
    mantissa |= 0x200; // quiet, as the instruction makes it
  return floatOf(sign | wide << 23 | mantissa << 13);
}

uint16_t bf16FromF32(float x) {
  uint32_t bits = bitsOf(x);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>(dropNearest(bits, 16));
}

float f32FromBF16(uint16_t bits) {
  return floatOf(static_cast<uint32_t>(bits) << 16);
}

// Eight at a time where the CPU converts f16; NaNs come out the same.
void decodeFloats(Element element, const char *bits, int64_t count, float *to) {
  if (element == Element::f32) {
    std::memcpy(to, bits, static_cast<size_t>(count) * 4);
    return;
  }
  int64_t i = 0;
#ifdef __F16C__
  if (element == Element::f16)
    for (; i + 8 <= count; i += 8)
      _mm256_storeu_ps(to + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(
                           reinterpret_cast<const __m128i *>(bits + 2 * i))));
#endif
  for (; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, bits + 2 * i, 2);
    to[i] = element == Element::f16 ? f32FromF16(half) : f32FromBF16(half);
  }
}

void encodeFloats(Element element, const float *from, int64_t count,
                  char *bits) {
  if (element == Element::f32) {
    std::memcpy(bits, from, static_cast<size_t>(count) * 4);
    return;
  }
  int64_t i = 0;
#ifdef __F16C__
  if (element == Element::f16)
    for (; i + 8 <= count; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i *>(bits + 2 * i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i),
                                       _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; ++i) {
    uint16_t half =
        element == Element::f16 ? f16FromF32(from[i]) : bf16FromF32(from[i]);
    std::memcpy(bits + 2 * i, &half, 2);
  }
}

void decodeWeights(Element element, const char *from, int64_t dim, float *to) {
  if (isQuantized(element))
    dequantizeRow(from, dim, quantizedBits(element), to);
  else
    decodeFloats(element, from, dim, to);
}

void encodeWeights(Element element, const float *from, int64_t dim, char *to) {
  if (isQuantized(element))
    quantizeRow(from, dim, quantizedBits(element), to);
  else
    encodeFloats(element, from, dim, to);
  int64_t end = weightsBytes(element, dim);
  std::memset(to + end, 0,
              static_cast<size_t>(stateOffset(element, dim) - end));
}

/// `x` as a row of floats keeps it.
static float storedValue(Element element, float x) {
  return element == Element::f16    ? f32FromF16(f16FromF32(x))
         : element == Element::bf16 ? f32FromBF16(bf16FromF32(x))
                                    : x;
}

void roundWeights(Element element, float *weights, int64_t dim) {
  if (isQuantized(element)) {
    std::string record(static_cast<size_t>(stateOffset(element, dim)), 0);
    encodeWeights(element, weights, dim, record.data());
    decodeWeights(element, record.data(), dim, weights);
    return;
  }
  for (int64_t c = 0; element != Element::f32 && c < dim; ++c)
    weights[c] = storedValue(element, weights[c]);
}

std::string whyNotStored(Element element, const float *weights, int64_t dim,
                         int64_t *column) {
  if (isQuantized(element))
    return whyNotQuantized(weights, dim, quantizedBits(element));
  for (int64_t c = 0; element != Element::f32 && c < dim; ++c)
    if (std::isfinite(weights[c]) &&
        !std::isfinite(storedValue(element, weights[c]))) {
      if (column)
        *column = c;
      return "column " + std::to_string(c) + " is " +
             std::to_string(weights[c]) + ", too large for " +
             elementName(element);
    }
  return "";
}

uint64_t roundingSeed(uint64_t key, int64_t step, int64_t row) {
  uint64_t golden = 0x9e3779b97f4a7c15ull;
  return mix64(mix64(key + static_cast<uint64_t>(step) * golden) +
               static_cast<uint64_t>(row));
}

} // namespace trc
