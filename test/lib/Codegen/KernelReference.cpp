//===- KernelReference.cpp - docs/numerics.md as naive loops ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelReference.h"

#include <cmath>
#include <cstring>
#include <vector>

using namespace terrace::codegen;

static float loadFloat(const char *row, int64_t index) {
  float value;
  std::memcpy(&value, row + 4 * index, 4);
  return value;
}
static void storeFloat(char *row, int64_t index, float value) {
  std::memcpy(row + 4 * index, &value, 4);
}

float terrace::test::loadWeight(const KernelConfig &config, const char *row,
                                int64_t column) {
  if (config.element == Element::F32)
    return loadFloat(row, column);
  if (config.isQuantized()) {
    _Float16 scale, bias;
    std::memcpy(&scale, row, 2);
    std::memcpy(&bias, row + 2, 2);
    const bool wide = config.element == Element::I8;
    unsigned byte = uint8_t(row[4 + (wide ? column : column / 2)]);
    unsigned number = wide ? byte : column % 2 ? byte >> 4 : byte & 15;
    // The product is exact in f64, and the sum: one rounding.
    return float(double(scale) * number + double(bias));
  }
  uint16_t bits;
  std::memcpy(&bits, row + 2 * column, 2);
  if (config.element == Element::BF16) {
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  _Float16 half;
  std::memcpy(&half, &bits, 2);
  return float(half);
}

/// The last place of a number of `mantissa` bits, where exponents end at
/// `least`.
static double lastPlace(float x, int mantissa, int least) {
  int exponent = x == 0 ? least : std::max(std::ilogb(x), least);
  return std::ldexp(1.0, exponent - mantissa);
}

void terrace::test::storeWeight(const KernelConfig &config, char *row,
                                int64_t column, float value,
                                const uint64_t *seed) {
  if (config.element == Element::F32)
    return storeFloat(row, column, value);
  const bool half = config.element == Element::F16;
  if (std::isfinite(value)) {
    double place = half ? lastPlace(value, 10, -14) : lastPlace(value, 7, -126);
    double places = std::fabs(double(value)) / place;
    if (config.stochastic) {
      uint32_t x = uint32_t(*seed) + uint32_t(column) * 0x9e3779b9u;
      x = (x ^ (x >> 16)) * 0x7feb352du;
      x ^= uint32_t(*seed >> 32);
      x = (x ^ (x >> 15)) * 0x846ca68bu;
      x ^= x >> 16;
      places = std::floor(places + (half ? std::ldexp(double(x >> 19), -13)
                                         : std::ldexp(double(x >> 16), -16)));
    } else {
      places = std::nearbyint(places);
    }
    double rounded = places * place;
    if (rounded >= (half ? 65536.0 : std::ldexp(1.0, 128)))
      rounded = INFINITY;
    value = std::copysign(float(rounded), value);
  }
  uint16_t bits;
  if (half) {
    _Float16 stored = _Float16(value); // exact
    std::memcpy(&bits, &stored, 2);
  } else {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    bits = uint16_t(wide >> 16 | (std::isnan(value) ? 0x40 : 0));
  }
  std::memcpy(row + 2 * column, &bits, 2);
}

void terrace::test::referenceGatherPool(
    const KernelConfig &config, const char *rows, int64_t pitch,
    const uint32_t *slots, const uint32_t *x, const int32_t *offsets,
    const float *weights, float *out, int32_t *winner, int64_t begin,
    int64_t end) {
  const int64_t dim = config.dim;
  auto row = [&](int64_t j) { return rows + int64_t(slots[x[j]]) * pitch; };
  for (int64_t bag = begin; bag < end; ++bag) {
    float *to = out + bag * dim;
    if (config.pooling == Pooling::None) {
      for (int64_t c = 0; c < dim; ++c)
        to[c] = loadWeight(config, row(bag), c);
      continue;
    }
    const int64_t from = offsets[bag], n = offsets[bag + 1] - from;
    if (config.pooling == Pooling::Max) {
      for (int64_t c = 0; c < dim; ++c) {
        float best = 0;
        int32_t place = -1;
        for (int64_t j = 0; j < n; ++j) {
          float value = loadWeight(config, row(from + j), c);
          if (j == 0 || value > best) {
            best = value;
            place = int32_t(j);
          }
        }
        to[c] = best;
        winner[bag * dim + c] = place;
      }
      continue;
    }
    float w = 0, q = 0;
    for (int64_t j = 0; j < n; ++j) {
      float weight = config.weighted ? weights[from + j] : 1.0f;
      w = w + weight;
      q = std::fmaf(weight, weight, q);
    }
    if (!config.weighted)
      w = q = float(n);
    for (int64_t c = 0; c < dim; ++c) {
      float a = 0;
      for (int64_t j = 0; j < n; ++j) {
        float value = loadWeight(config, row(from + j), c);
        a = config.weighted ? std::fmaf(weights[from + j], value, a)
                            : a + value;
      }
      if (n == 0)
        a = 0;
      else if (config.pooling == Pooling::Mean)
        a = a / float(n);
      else if (config.pooling == Pooling::WeightedMean)
        a = a / w;
      else if (config.pooling == Pooling::Sqrtn)
        a = a / std::sqrt(q);
      to[c] = a;
    }
  }
}

static float rowSumOfSquares(const std::vector<float> &g) {
  float lane[32] = {};
  for (size_t c = 0; c < g.size(); ++c)
    lane[c % 32] = std::fmaf(g[c], g[c], lane[c % 32]);
  for (int width = 16; width >= 1; width /= 2)
    for (int l = 0; l < width; ++l)
      lane[l] = lane[l] + lane[l + width];
  return lane[0];
}

void terrace::test::referenceSegmentUpdate(
    const KernelConfig &config, char *rows, int64_t pitch,
    const uint32_t *slots, const int32_t *seg, const uint32_t *occ,
    const float *coef, const float *grads, const float *hp,
    const uint64_t *seeds, int64_t begin, int64_t end) {
  const int64_t dim = config.dim;
  const int64_t state = config.weightWords(); // its first float
  for (int64_t u = begin; u < end; ++u) {
    char *row = rows + int64_t(slots[u]) * pitch;
    std::vector<float> sum(dim, 0.0f);
    for (int64_t k = seg[u]; k < seg[u + 1]; ++k)
      for (int64_t c = 0; c < dim; ++c)
        sum[c] = std::fmaf(coef[k], grads[int64_t(occ[k]) * dim + c], sum[c]);
    if (config.clip) {
      float norm = std::sqrt(rowSumOfSquares(sum));
      float factor = norm > hp[9] ? hp[9] / norm : 1.0f;
      for (float &g : sum)
        g = factor * g;
    }
    if (config.decay && config.optimizer != Optimizer::Lamb)
      for (int64_t c = 0; c < dim; ++c)
        sum[c] = std::fmaf(hp[1], loadWeight(config, row, c), sum[c]);

    float scale = 0;
    std::vector<float> direction(dim);
    if (config.optimizer == Optimizer::PartialRowwiseAdam) {
      float v = loadFloat(row, state + dim);
      v = std::fmaf(hp[4], rowSumOfSquares(sum) / hp[6] - v, v);
      storeFloat(row, state + dim, v);
      scale = hp[0] / (std::sqrt(v / hp[5]) + hp[2]);
    }
    if (config.optimizer == Optimizer::Lamb) {
      std::vector<float> weights(dim);
      for (int64_t c = 0; c < dim; ++c) {
        const float g = sum[c];
        float m = loadFloat(row, state + c),
              v = loadFloat(row, state + dim + c);
        m = std::fmaf(hp[3], g - m, m);
        v = std::fmaf(hp[4], std::fmaf(g, g, -v), v);
        storeFloat(row, state + c, m);
        storeFloat(row, state + dim + c, v);
        weights[c] = loadWeight(config, row, c);
        direction[c] = m / hp[5] / (std::sqrt(v / hp[6]) + hp[2]);
        if (config.decay)
          direction[c] = std::fmaf(hp[1], weights[c], direction[c]);
      }
      float length = std::sqrt(rowSumOfSquares(weights));
      float step = std::sqrt(rowSumOfSquares(direction));
      scale = hp[0] * (length > 0 && step > 0 ? length / step : 1.0f);
    }
    if (config.optimizer == Optimizer::RowwiseAdagrad) {
      float m = rowSumOfSquares(sum) / hp[3];
      float s = loadFloat(row, state) + m;
      storeFloat(row, state, s);
      scale = hp[0] / (std::sqrt(s) + hp[2]);
    }
    for (int64_t c = 0; c < dim; ++c) {
      const float g = sum[c];
      float w = loadWeight(config, row, c);
      if (config.decoupled)
        w = hp[8] * w;
      switch (config.optimizer) {
      case Optimizer::Sgd:
        w = std::fmaf(hp[0], g, w);
        break;
      case Optimizer::Adagrad: {
        float s = std::fmaf(g, g, loadFloat(row, state + c));
        storeFloat(row, state + c, s);
        w = std::fmaf(hp[0], g / (std::sqrt(s) + hp[2]), w);
        break;
      }
      case Optimizer::RowwiseAdagrad:
        w = std::fmaf(-scale, g, w);
        break;
      case Optimizer::Adam: {
        float m = loadFloat(row, state + c),
              v = loadFloat(row, state + dim + c);
        m = std::fmaf(hp[3], g - m, m);
        v = std::fmaf(hp[4], std::fmaf(g, g, -v), v);
        storeFloat(row, state + c, m);
        storeFloat(row, state + dim + c, v);
        w = std::fmaf(hp[0], m / (std::sqrt(v) + hp[2]), w);
        break;
      }
      case Optimizer::MomentumSgd: {
        float velocity = std::fmaf(hp[3], loadFloat(row, state + c), g);
        storeFloat(row, state + c, velocity);
        w = std::fmaf(hp[0], velocity, w);
        break;
      }
      case Optimizer::PartialRowwiseAdam: {
        float m = loadFloat(row, state + c);
        m = std::fmaf(hp[3], g - m, m);
        storeFloat(row, state + c, m);
        w = std::fmaf(-scale, m, w);
        break;
      }
      case Optimizer::Lamb:
        w = std::fmaf(-scale, direction[c], w);
        break;
      case Optimizer::Ftrl: {
        float z = loadFloat(row, state + c),
              n = loadFloat(row, state + dim + c);
        float next = std::fmaf(g, g, n);
        if (next == 0)
          break;
        float sigma = (std::sqrt(next) - std::sqrt(n)) / hp[5];
        z = std::fmaf(-sigma, w, std::fmaf(hp[0], g, z));
        storeFloat(row, state + c, z);
        storeFloat(row, state + dim + c, next);
        float y = z > hp[3] ? z - hp[3] : z < -hp[3] ? z + hp[3] : 0.0f;
        w = (0.0f - y) / ((hp[2] + std::sqrt(next)) / hp[5] + hp[4]);
        break;
      }
      }
      storeWeight(config, row, c, w, seeds ? seeds + (u - begin) : nullptr);
    }
  }
}
