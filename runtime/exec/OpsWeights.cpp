//===- OpsWeights.cpp - Gradients of the weights of bags ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Part of resume, in the caller's thread and its helpers: the rows are pinned
// and as the batch's forward read them, since its update waits for resume.
// "Gradients of weights" of docs/numerics.md.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/FpEnv.h"
#include "runtime/exec/Pipeline.h"

#include <cmath>

using namespace trc;

/// Over 32 lanes and a fold, as the row sums of the optimizers.
static float dot(const float *x, const float *y, int64_t dim) {
  float lane[32] = {};
  int64_t c = 0;
  for (; c + 32 <= dim; c += 32)
    for (int64_t l = 0; l < 32; ++l)
      lane[l] = std::fma(x[c + l], y[c + l], lane[l]);
  for (int64_t l = 0; c < dim; ++c, ++l)
    lane[l] = std::fma(x[c], y[c], lane[l]);
  for (int64_t width = 16; width > 0; width /= 2)
    for (int64_t l = 0; l < width; ++l)
      lane[l] = lane[l] + lane[l + width];
  return lane[0];
}

Status Pipeline::checkWeightGradients(float *const *to) const {
  if (!to)
    return Status();
  if (plan.hasHead)
    return Status(TRC_BAD_ARGUMENT, "weight_gradients are for trainers with a "
                                    "head of their own");
  for (size_t f = 0; f < plan.features.size(); ++f)
    if (to[f] && !plan.features[f].weighted())
      return Status(TRC_BAD_ARGUMENT, "weight_gradients of feature '" +
                                          plan.features[f].name +
                                          "', which has no weights");
  return Status();
}

void Pipeline::weightGradients(int64_t t, size_t f, float *to) {
  const GroupRuntime &g = *groups[plan.shape.features[f].group];
  const Pooling pooling = plan.features[f].pooling;
  const int64_t dim = g.plan->dim;
  const Bags bags = forwardBags(t, f);
  const uint32_t *x = forwardX(t, f), *slots = slotsOf(t, g);
  const int32_t *offsets = offsetsOf(t, f), *inverse = inverseOf(t, f);
  const float *outputs = outputOf(t, f);
  const float *grads = at<float>(gradsRing, t, gradsLayout.groupAt[g.index]) +
                       gradsLayout.rowBase[f] * dim;
  pool.parallelFor(0, batch(t).samples, 64, [&](int64_t first, int64_t last) {
    ScopedStrictFp strict;
    std::vector<float> row(static_cast<size_t>(dim));
    for (int64_t s = first; s < last; ++s) {
      int64_t bag = inverse ? inverse[s] : s;
      int64_t begin = bags.offsets[bag], n = bags.offsets[bag + 1] - begin;
      const float *w = bags.weights + begin, *gradient = grads + s * dim;
      float divisor = static_cast<float>(n), sum = 0, squares = 0;
      for (int64_t j = 0; j < n; ++j) {
        sum = sum + w[j];
        squares = std::fma(w[j], w[j], squares);
      }
      float out = 0;
      if (pooling == Pooling::weightedMean || pooling == Pooling::sqrtn) {
        divisor = pooling == Pooling::sqrtn ? std::sqrt(squares) : sum;
        out = dot(outputs + s * dim, gradient, dim);
      }
      for (int64_t j = 0; j < n; ++j) {
        decodeWeights(g.plan->element, g.row(slots[x[begin + j]]), dim,
                      row.data());
        float d = dot(row.data(), gradient, dim);
        if (pooling == Pooling::weightedMean)
          d = d - out;
        if (pooling == Pooling::sqrtn)
          d = std::fma(-(w[j] / divisor), out, d);
        to[offsets[s] + j] = pooling == Pooling::sum ? d : d / divisor;
      }
    }
  });
}
