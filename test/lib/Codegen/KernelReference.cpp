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
      std::memcpy(to, row(bag), 4 * dim);
      continue;
    }
    const int64_t from = offsets[bag], n = offsets[bag + 1] - from;
    if (config.pooling == Pooling::Max) {
      for (int64_t c = 0; c < dim; ++c) {
        float best = 0;
        int32_t place = -1;
        for (int64_t j = 0; j < n; ++j) {
          float value = loadFloat(row(from + j), c);
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
        float value = loadFloat(row(from + j), c);
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
    const float *coef, const float *grads, const float *hp, int64_t begin,
    int64_t end) {
  const int64_t dim = config.dim;
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
        sum[c] = std::fmaf(hp[1], loadFloat(row, c), sum[c]);
    if (config.decoupled)
      for (int64_t c = 0; c < dim; ++c)
        storeFloat(row, c, hp[8] * loadFloat(row, c));

    float scale = 0;
    std::vector<float> direction(dim);
    if (config.optimizer == Optimizer::PartialRowwiseAdam) {
      float v = loadFloat(row, 2 * dim);
      v = std::fmaf(hp[4], rowSumOfSquares(sum) / hp[6] - v, v);
      storeFloat(row, 2 * dim, v);
      scale = hp[0] / (std::sqrt(v / hp[5]) + hp[2]);
    }
    if (config.optimizer == Optimizer::Lamb) {
      std::vector<float> weights(dim);
      for (int64_t c = 0; c < dim; ++c) {
        const float g = sum[c];
        float m = loadFloat(row, dim + c), v = loadFloat(row, 2 * dim + c);
        m = std::fmaf(hp[3], g - m, m);
        v = std::fmaf(hp[4], std::fmaf(g, g, -v), v);
        storeFloat(row, dim + c, m);
        storeFloat(row, 2 * dim + c, v);
        weights[c] = loadFloat(row, c);
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
      float s = loadFloat(row, dim) + m;
      storeFloat(row, dim, s);
      scale = hp[0] / (std::sqrt(s) + hp[2]);
    }
    for (int64_t c = 0; c < dim; ++c) {
      const float g = sum[c];
      float w = loadFloat(row, c);
      switch (config.optimizer) {
      case Optimizer::Sgd:
        w = std::fmaf(hp[0], g, w);
        break;
      case Optimizer::Adagrad: {
        float s = std::fmaf(g, g, loadFloat(row, dim + c));
        storeFloat(row, dim + c, s);
        w = std::fmaf(hp[0], g / (std::sqrt(s) + hp[2]), w);
        break;
      }
      case Optimizer::RowwiseAdagrad:
        w = std::fmaf(-scale, g, w);
        break;
      case Optimizer::Adam: {
        float m = loadFloat(row, dim + c), v = loadFloat(row, 2 * dim + c);
        m = std::fmaf(hp[3], g - m, m);
        v = std::fmaf(hp[4], std::fmaf(g, g, -v), v);
        storeFloat(row, dim + c, m);
        storeFloat(row, 2 * dim + c, v);
        w = std::fmaf(hp[0], m / (std::sqrt(v) + hp[2]), w);
        break;
      }
      case Optimizer::MomentumSgd: {
        float velocity = std::fmaf(hp[3], loadFloat(row, dim + c), g);
        storeFloat(row, dim + c, velocity);
        w = std::fmaf(hp[0], velocity, w);
        break;
      }
      case Optimizer::PartialRowwiseAdam: {
        float m = loadFloat(row, dim + c);
        m = std::fmaf(hp[3], g - m, m);
        storeFloat(row, dim + c, m);
        w = std::fmaf(-scale, m, w);
        break;
      }
      case Optimizer::Lamb:
        w = std::fmaf(-scale, direction[c], w);
        break;
      case Optimizer::Ftrl: {
        float z = loadFloat(row, dim + c), n = loadFloat(row, 2 * dim + c);
        float next = std::fmaf(g, g, n);
        if (next == 0)
          break;
        float sigma = (std::sqrt(next) - std::sqrt(n)) / hp[5];
        z = std::fmaf(-sigma, w, std::fmaf(hp[0], g, z));
        storeFloat(row, dim + c, z);
        storeFloat(row, 2 * dim + c, next);
        float y = z > hp[3] ? z - hp[3] : z < -hp[3] ? z + hp[3] : 0.0f;
        w = (0.0f - y) / ((hp[2] + std::sqrt(next)) / hp[5] + hp[4]);
        break;
      }
      }
      storeFloat(row, c, w);
    }
  }
}
