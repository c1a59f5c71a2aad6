//===- Quantize.cpp - Rows of whole numbers with a scale ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FBGEMM's definition, with what it leaves to the caller made an error. Each
// product of a scale and a number has 19 bits at most and is exact in f32, so
// that a fused and a separate multiply and add agree.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Quantize.h"
#include "runtime/core/Element.h"
#include "runtime/core/FloatBits.h"

#include <cmath>
#include <cstring>

namespace trc {

namespace {
struct Range {
  float low, high;
};
struct Scale {
  uint16_t scaleBits, biasBits;
  float scale, bias;
};
} // namespace

static Range rangeOf(const float *row, int64_t dim) {
  Range r{row[0], row[0]};
  for (int64_t c = 1; c < dim; ++c) {
    r.low = row[c] < r.low ? row[c] : r.low;
    r.high = row[c] > r.high ? row[c] : r.high;
  }
  return r;
}

static Scale scaleOf(const Range &range, int bits) {
  Scale s;
  s.biasBits = f16FromF32(range.low);
  s.bias = f32FromF16(s.biasBits);
  s.scaleBits =
      f16FromF32((range.high - s.bias) / static_cast<float>((1 << bits) - 1));
  s.scale = f32FromF16(s.scaleBits);
  if (s.scale == 0) { // all columns are as good as equal
    s.scale = 1;
    s.scaleBits = f16FromF32(1);
  }
  return s;
}

std::string whyNotQuantized(const float *row, int64_t dim, int bits) {
  for (int64_t c = 0; c < dim; ++c)
    if (!std::isfinite(row[c]))
      return "column " + std::to_string(c) + " is " + std::to_string(row[c]);
  Range range = rangeOf(row, dim);
  Scale s = scaleOf(range, bits);
  if (std::isfinite(s.bias) && std::isfinite(s.scale))
    return "";
  return "its columns lie in " + std::to_string(range.low) + " .. " +
         std::to_string(range.high) + ", too far for a scale and a bias of f16";
}

void quantizeRow(const float *row, int64_t dim, int bits, char *to) {
  Scale s = scaleOf(rangeOf(row, dim), bits);
  std::memcpy(to, &s.scaleBits, 2);
  std::memcpy(to + 2, &s.biasBits, 2);
  const float inverse = 1.0f / s.scale;
  const float most = static_cast<float>((1 << bits) - 1);
  auto numberOf = [&](int64_t c) {
    float x = (row[c] - s.bias) * inverse;
    x = x > 0.0f ? x : 0.0f;
    x = x < most ? x : most;
    // Behind 2^23 the last place is 1: the sum is rounded to nearest even.
    return static_cast<uint8_t>(bitsOf(x + 0x1p23f) & 0xff);
  };
  uint8_t *out = reinterpret_cast<uint8_t *>(to + rowScaleBytes);
  if (bits == 8) {
    for (int64_t c = 0; c < dim; ++c)
      out[c] = numberOf(c);
    return;
  }
  for (int64_t c = 0; c < dim; c += 2) {
    uint8_t high = c + 1 < dim ? numberOf(c + 1) : 0;
    out[c / 2] = static_cast<uint8_t>(numberOf(c) | high << 4);
  }
}

void dequantizeRow(const char *from, int64_t dim, int bits, float *to) {
  uint16_t scaleBits, biasBits;
  std::memcpy(&scaleBits, from, 2);
  std::memcpy(&biasBits, from + 2, 2);
  const float scale = f32FromF16(scaleBits), bias = f32FromF16(biasBits);
  const uint8_t *in = reinterpret_cast<const uint8_t *>(from + rowScaleBytes);
  for (int64_t c = 0; c < dim; ++c) {
    uint8_t q =
        bits == 8 ? in[c] : static_cast<uint8_t>(in[c / 2] >> (c % 2 * 4) & 15);
    to[c] = std::fma(scale, static_cast<float>(q), bias);
  }
}

} // namespace trc
