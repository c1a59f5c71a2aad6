//===- Tables.cpp - Tables of the reference, and their optimizers
//----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/reference/Tables.h"

#include "runtime/core/Hash.h"
#include "runtime/reference/Rounding.h"

#include <algorithm>
#include <cmath>

namespace trc::reference {

std::vector<float> Table::record(int64_t row) const {
  auto it = rows.find(row);
  if (it != rows.end())
    return it->second;
  std::vector<float> r(static_cast<size_t>(def->recordFloats()), 0.0f);
  initial(row, r.data());
  return r;
}

const float *Table::weights(int64_t row, std::vector<float> &scratch) const {
  auto it = rows.find(row);
  if (it != rows.end())
    return it->second.data();
  scratch.resize(static_cast<size_t>(def->dim));
  initial(row, scratch.data());
  return scratch.data();
}

void Table::initial(int64_t row, float *out) const {
  def->init.fill(row, def->dim, out);
  roundRow(def->storage, out, def->dim);
}

std::vector<float> Table::updated(int64_t row, const StepScale &scale,
                                  std::vector<float> &gradient) const {
  std::vector<float> r = record(row);
  updateRow(*def, scale, gradient, r);
  uint64_t golden = 0x9e3779b97f4a7c15ull;
  uint64_t seed =
      mix64(mix64(def->key + static_cast<uint64_t>(scale.step) * golden) +
            static_cast<uint64_t>(row));
  for (int64_t c = 0; c < def->dim; ++c) {
    float &w = r[static_cast<size_t>(c)];
    w = def->stochastic
            ? roundStochastic(def->storage, w, roundingWord(seed, c))
            : roundNearest(def->storage, w);
  }
  return r;
}

void Table::store(int64_t row, const std::vector<float> &record) {
  rows[row] = record;
}

std::vector<int64_t> Table::touched() const {
  std::vector<int64_t> out;
  out.reserve(rows.size());
  for (const auto &entry : rows)
    out.push_back(entry.first);
  std::sort(out.begin(), out.end());
  return out;
}

/// The fixed order of docs/numerics.md: 32 lanes, then a tree.
static float rowSum(const std::vector<float> &g) {
  float lane[32] = {};
  for (size_t c = 0; c < g.size(); ++c)
    lane[c % 32] = std::fma(g[c], g[c], lane[c % 32]);
  for (size_t width = 16; width >= 1; width /= 2)
    for (size_t l = 0; l < width; ++l)
      lane[l] = lane[l] + lane[l + width];
  return lane[0];
}

static double power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1)
      result *= base;
    base *= base;
  }
  return result;
}

void updateRow(const TableDef &def, const StepScale &scale,
               std::vector<float> &gradient, std::vector<float> &record) {
  size_t dim = static_cast<size_t>(def.dim);
  float *w = record.data();
  float *state = w + dim;
  std::vector<float> &g = gradient;
  float decay = static_cast<float>(def.weightDecay);
  if (def.clipNorm != 0) {
    float limit = static_cast<float>(def.clipNorm);
    float norm = std::sqrt(rowSum(g));
    float factor = norm > limit ? limit / norm : 1.0f;
    for (float &x : g)
      x = factor * x;
  }
  if (def.weightDecay != 0 && def.optimizer != Optimizer::Lamb)
    for (size_t c = 0; c < dim; ++c)
      g[c] = std::fma(decay, w[c], g[c]);
  if (def.decoupledDecay != 0) {
    float keep =
        static_cast<float>(1 - def.lr * scale.lrScale * def.decoupledDecay);
    for (size_t c = 0; c < dim; ++c)
      w[c] = keep * w[c];
  }
  float lr = static_cast<float>(def.lr * scale.lrScale);
  float eps = static_cast<float>(def.eps);
  switch (def.optimizer) {
  case Optimizer::Sgd:
    for (size_t c = 0; c < dim; ++c)
      w[c] = std::fma(-lr, g[c], w[c]);
    return;
  case Optimizer::Adagrad:
    for (size_t c = 0; c < dim; ++c) {
      state[c] = std::fma(g[c], g[c], state[c]);
      w[c] = std::fma(-lr, g[c] / (std::sqrt(state[c]) + eps), w[c]);
    }
    return;
  case Optimizer::RowwiseAdagrad: {
    float mean = rowSum(g) / static_cast<float>(def.dim);
    state[0] = state[0] + mean;
    float k = lr / (std::sqrt(state[0]) + eps);
    for (size_t c = 0; c < dim; ++c)
      w[c] = std::fma(-k, g[c], w[c]);
    return;
  }
  case Optimizer::Momentum: {
    float mu = static_cast<float>(def.momentum);
    for (size_t c = 0; c < dim; ++c) {
      state[c] = std::fma(mu, state[c], g[c]);
      w[c] = std::fma(-lr, state[c], w[c]);
    }
    return;
  }
  case Optimizer::Adam: {
    float *m = state, *v = state + dim;
    float keep1 = static_cast<float>(1 - def.beta1);
    float keep2 = static_cast<float>(1 - def.beta2);
    float s = static_cast<float>(def.lr * scale.lrScale *
                                 std::sqrt(1 - power(def.beta2, scale.step)) /
                                 (1 - power(def.beta1, scale.step)));
    for (size_t c = 0; c < dim; ++c) {
      m[c] = std::fma(keep1, g[c] - m[c], m[c]);
      v[c] = std::fma(keep2, std::fma(g[c], g[c], -v[c]), v[c]);
      w[c] = std::fma(-s, m[c] / (std::sqrt(v[c]) + eps), w[c]);
    }
    return;
  }
  case Optimizer::PartialRowwiseAdam: {
    float *m = state, *v = state + dim;
    float keep1 = static_cast<float>(1 - def.beta1);
    float keep2 = static_cast<float>(1 - def.beta2);
    float s = static_cast<float>(def.lr * scale.lrScale /
                                 (1 - power(def.beta1, scale.step)));
    float bias2 = static_cast<float>(1 - power(def.beta2, scale.step));
    float mean = rowSum(g) / static_cast<float>(def.dim);
    *v = std::fma(keep2, mean - *v, *v);
    float k = s / (std::sqrt(*v / bias2) + eps);
    for (size_t c = 0; c < dim; ++c) {
      m[c] = std::fma(keep1, g[c] - m[c], m[c]);
      w[c] = std::fma(-k, m[c], w[c]);
    }
    return;
  }
  case Optimizer::Lamb: {
    float *m = state, *v = state + dim;
    float keep1 = static_cast<float>(1 - def.beta1);
    float keep2 = static_cast<float>(1 - def.beta2);
    float bias1 = static_cast<float>(1 - power(def.beta1, scale.step));
    float bias2 = static_cast<float>(1 - power(def.beta2, scale.step));
    std::vector<float> r(dim);
    for (size_t c = 0; c < dim; ++c) {
      m[c] = std::fma(keep1, g[c] - m[c], m[c]);
      v[c] = std::fma(keep2, std::fma(g[c], g[c], -v[c]), v[c]);
      r[c] = m[c] / bias1 / (std::sqrt(v[c] / bias2) + eps);
      if (def.weightDecay != 0)
        r[c] = std::fma(decay, w[c], r[c]);
    }
    float length = std::sqrt(rowSum(std::vector<float>(w, w + dim)));
    float step = std::sqrt(rowSum(r));
    float ratio = length > 0 && step > 0 ? length / step : 1.0f;
    for (size_t c = 0; c < dim; ++c)
      w[c] = std::fma(-(lr * ratio), r[c], w[c]);
    return;
  }
  case Optimizer::Ftrl: {
    float *z = state, *n = state + dim;
    float alpha = static_cast<float>(def.lr);
    float lrScale = static_cast<float>(scale.lrScale);
    float beta = static_cast<float>(def.beta);
    float l1 = static_cast<float>(def.l1), l2 = static_cast<float>(def.l2);
    for (size_t c = 0; c < dim; ++c) {
      float next = std::fma(g[c], g[c], n[c]);
      if (next == 0)
        continue; // no gradient yet: the initial weight stays
      float root = std::sqrt(next);
      float sigma = (root - std::sqrt(n[c])) / alpha;
      z[c] = std::fma(-sigma, w[c], std::fma(lrScale, g[c], z[c]));
      n[c] = next;
      float shrunk = z[c] > l1 ? z[c] - l1 : z[c] < -l1 ? z[c] + l1 : 0.0f;
      w[c] = (0.0f - shrunk) / ((beta + root) / alpha + l2);
    }
    return;
  }
  }
}

} // namespace trc::reference
