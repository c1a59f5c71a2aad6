//===- Head.cpp - Logistic regression and factorisation machine -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of additions is the definition; see docs/numerics.md.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Head.h"

#include "runtime/core/Math.h"

#include <cmath>

namespace trc {

float sigmoid(float z) {
  if (z >= 0) {
    float e = math::exp(-z);
    return 1.0f / (1.0f + e);
  }
  float e = math::exp(z);
  return e / (1.0f + e);
}

static float logisticLogit(float bias, const HeadInput *inputs,
                           int64_t features, int64_t sample) {
  float z = bias;
  for (int64_t f = 0; f < features; ++f) {
    const float *v = inputs[f].values + sample * inputs[f].stride;
    for (int64_t c = 0; c < inputs[f].dim; ++c)
      z = z + v[c];
  }
  return z;
}

static float fmLogit(float bias, const HeadInput *inputs, int64_t features,
                     int64_t sample) {
  float z = bias;
  for (int64_t f = 0; f < features; ++f)
    z = z + inputs[f].values[sample * inputs[f].stride];
  float h = 0;
  int64_t dim = features ? inputs[0].dim : 0;
  for (int64_t k = 1; k < dim; ++k) {
    float s = 0, q = 0;
    for (int64_t f = 0; f < features; ++f) {
      float v = inputs[f].values[sample * inputs[f].stride + k];
      s = s + v;
      q = std::fma(v, v, q);
    }
    h = h + std::fma(s, s, -q);
  }
  return std::fma(0.5f, h, z);
}

void headForward(HeadKind kind, float bias, const HeadInput *inputs,
                 int64_t features, int64_t begin, int64_t end, float *z,
                 float *p) {
  for (int64_t i = begin; i < end; ++i) {
    z[i] = kind == HeadKind::Fm ? fmLogit(bias, inputs, features, i)
                                : logisticLogit(bias, inputs, features, i);
    p[i] = sigmoid(z[i]);
  }
}

double headSampleLoss(float z, float y) {
  double x = z;
  double e = math::exp(x < 0 ? x : -x);
  return (x > 0 ? x : 0.0) - x * static_cast<double>(y) + math::log1p(e);
}

double headLoss(const float *z, const float *y, int64_t samples) {
  double sum = 0;
  for (int64_t i = 0; i < samples; ++i)
    sum += headSampleLoss(z[i], y[i]);
  return samples ? sum / static_cast<double>(samples) : 0.0;
}

void headBackward(HeadKind kind, const HeadInput *inputs, int64_t features,
                  const float *p, const float *y, int64_t samples,
                  int64_t begin, int64_t end, const HeadGrad *grads,
                  float *dz) {
  float n = static_cast<float>(samples);
  for (int64_t i = begin; i < end; ++i) {
    float d = (p[i] - y[i]) / n;
    dz[i] = d;
    if (kind == HeadKind::Logistic) {
      for (int64_t f = 0; f < features; ++f) {
        float *g = grads[f].values + i * grads[f].stride;
        for (int64_t c = 0; c < inputs[f].dim; ++c)
          g[c] = d;
      }
      continue;
    }
    for (int64_t f = 0; f < features; ++f)
      grads[f].values[i * grads[f].stride] = d;
    int64_t dim = features ? inputs[0].dim : 0;
    for (int64_t k = 1; k < dim; ++k) {
      float s = 0;
      for (int64_t f = 0; f < features; ++f)
        s = s + inputs[f].values[i * inputs[f].stride + k];
      for (int64_t f = 0; f < features; ++f) {
        float v = inputs[f].values[i * inputs[f].stride + k];
        grads[f].values[i * grads[f].stride + k] = d * (s - v);
      }
    }
  }
}

void headUpdateBias(HeadState &state, const float *dz, int64_t samples,
                    double lrScale) {
  float g = 0;
  for (int64_t i = 0; i < samples; ++i)
    g = g + dz[i];
  float lr = static_cast<float>(0.1 * lrScale);
  state.biasSquares = std::fma(g, g, state.biasSquares);
  state.bias = std::fma(-lr, g / (__builtin_sqrtf(state.biasSquares) + 1e-8f),
                        state.bias);
}

} // namespace trc
