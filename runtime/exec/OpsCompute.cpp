//===- OpsCompute.cpp - gather_pool to segment_update ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work lane: the artifact's kernels and the head, over rows that are pinned
// and current. Every loop splits outputs, so bits do not depend on threads.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/FpEnv.h"
#include "runtime/exec/Grain.h"
#include "runtime/exec/Pipeline.h"

#include <cmath>
#include <cstring>

using namespace trc;

/// Outputs begin .. end - 1 of the i-th feature of a group.
void Pipeline::gatherOf(const Batch &b, GroupRuntime &g, size_t i,
                        int64_t begin, int64_t end) {
  const PooledLayout &layout = pooledLayouts[g.index];
  const size_t f = static_cast<size_t>(g.plan->features[i]);
  const FeaturePlan &feature = plan.features[f];
  Bags bags = forwardBags(b.t, f);
  const int32_t *offsets =
      feature.pooling == Pooling::none ? nullptr : bags.offsets;
  float *out = at<float>(g.pooledRing, b.t, layout.outAt[f]);
  int32_t *winner = feature.pooling == Pooling::max
                        ? at<int32_t>(g.pooledRing, b.t, layout.winnerAt[f])
                        : nullptr;
  if (g.plan->direct)
    g.directGathers[i](
        g.row(static_cast<uint64_t>(plan.tables[feature.table].rowBase)),
        g.plan->slotBytes, idsOf(b.t, f), offsets, bags.weights, out, winner,
        begin, end);
  else
    g.gathers[i](g.memory.data(), g.plan->slotBytes, slotsOf(b.t, g),
                 forwardX(b.t, f), offsets, bags.weights, out, winner, begin,
                 end);
}

void Pipeline::gatherPool(Batch &b, GroupRuntime &g) {
  const std::vector<int> &features = g.plan->features;
  // One loop over the outputs of all features: many are short.
  std::vector<int64_t> begins(features.size() + 1, 0);
  for (size_t i = 0; i < features.size(); ++i) {
    Bags bags = forwardBags(b.t, static_cast<size_t>(features[i]));
    bool none = plan.features[features[i]].pooling == Pooling::none;
    begins[i + 1] = begins[i] + (none ? bags.offsets[bags.count] : bags.count);
  }
  pool.parallelFor(0, begins.back(), kernelGrain(g.plan->dim),
                   [&](int64_t begin, int64_t end) {
                     size_t i = static_cast<size_t>(
                         std::upper_bound(begins.begin(), begins.end(), begin) -
                         begins.begin() - 1);
                     for (; i < features.size() && begins[i] < end; ++i) {
                       int64_t low = std::max(begin, begins[i]) - begins[i];
                       int64_t high = std::min(end, begins[i + 1]) - begins[i];
                       if (low < high)
                         gatherOf(b, g, i, low, high);
                     }
                   });
}

void Pipeline::expand(Batch &b) {
  for (size_t f = 0; f < plan.features.size(); ++f) {
    const int32_t *inverse = inverseOf(b.t, f);
    if (!inverse)
      continue;
    const GroupRuntime &g = *groups[plan.shape.features[f].group];
    const float *from =
        at<float>(g.pooledRing, b.t, pooledLayouts[g.index].outAt[f]);
    float *to = at<float>(expandedRing, b.t, expandedLayout.outAt[f]);
    int64_t dim = g.plan->dim;
    bool none = plan.features[f].pooling == Pooling::none;
    const int32_t *offsets = offsetsOf(b.t, f);
    Bags bags = forwardBags(b.t, f);
    pool.parallelFor(
        0, b.samples, kernelGrain(dim), [&](int64_t begin, int64_t end) {
          for (int64_t s = begin; s < end; ++s) {
            int64_t source = none ? bags.offsets[inverse[s]] : inverse[s];
            int64_t target = none ? offsets[s] : s;
            int64_t rows = none ? offsets[s + 1] - offsets[s] : 1;
            std::memcpy(to + target * dim, from + source * dim,
                        static_cast<size_t>(rows * dim) * 4);
          }
        });
  }
}

/// The gradient of a max bag, spread over its ids: each gets the columns it
/// won.
void Pipeline::scatterMax(int64_t t, size_t f) {
  const GroupRuntime &g = *groups[plan.shape.features[f].group];
  int64_t dim = g.plan->dim, samples = batch(t).samples;
  const int32_t *offsets = offsetsOf(t, f);
  const int32_t *inverse = inverseOf(t, f);
  const int32_t *winner =
      at<int32_t>(g.pooledRing, t, pooledLayouts[g.index].winnerAt[f]);
  const float *from = at<float>(gradsRing, t, gradsLayout.bagAt[f]);
  float *to = at<float>(gradsRing, t, gradsLayout.groupAt[g.index]) +
              gradsLayout.rowBase[f] * dim;
  pool.parallelFor(
      0, samples, kernelGrain(dim), [&](int64_t begin, int64_t end) {
        for (int64_t s = begin; s < end; ++s) {
          const int32_t *won = winner + (inverse ? inverse[s] : s) * dim;
          for (int64_t j = offsets[s]; j < offsets[s + 1]; ++j)
            for (int64_t c = 0; c < dim; ++c)
              to[j * dim + c] =
                  won[c] == j - offsets[s] ? from[s * dim + c] : 0.0f;
        }
      });
}

void Pipeline::call(Batch &b) {
  size_t n = plan.features.size();
  std::vector<HeadInput> inputs(n);
  std::vector<HeadGrad> grads(n);
  for (size_t f = 0; f < n; ++f) {
    int64_t dim = plan.shape.features[f].dim;
    int g = plan.shape.features[f].group;
    inputs[f] = {outputOf(b.t, f), dim, dim};
    float *to = gradsLayout.bagAt[f] >= 0
                    ? at<float>(gradsRing, b.t, gradsLayout.bagAt[f])
                    : at<float>(gradsRing, b.t, gradsLayout.groupAt[g]) +
                          gradsLayout.rowBase[f] * dim;
    grads[f] = {to, dim};
  }
  float *p = at<float>(gradsRing, b.t, gradsLayout.predictions);
  float *z = at<float>(gradsRing, b.t, gradsLayout.logits);
  float *dz = at<float>(gradsRing, b.t, gradsLayout.dlogits);
  const float *y = at<float>(inRing, b.t, inLayout.labels);
  pool.parallelFor(0, b.samples, 128, [&](int64_t begin, int64_t end) {
    headForward(plan.head, headState.bias, inputs.data(),
                static_cast<int64_t>(n), begin, end, z, p);
  });
  if (b.forwardOnly || !b.hasLabels)
    return;
  std::mutex mutex;
  int64_t badSample = b.samples;
  pool.parallelFor(0, b.samples, 128, [&](int64_t begin, int64_t end) {
    headBackward(plan.head, inputs.data(), static_cast<int64_t>(n), p, y,
                 b.samples, begin, end, grads.data(), dz);
    for (int64_t s = begin; s < end; ++s) {
      bool finite = std::isfinite(dz[s]);
      for (size_t f = 0; f < n && finite; ++f)
        for (int64_t c = 0; c < inputs[f].dim; ++c)
          finite &= std::isfinite(grads[f].values[s * grads[f].stride + c]);
      if (finite)
        continue;
      std::lock_guard<std::mutex> lock(mutex);
      badSample = std::min(badSample, s);
      break;
    }
  });
  if (badSample < b.samples) {
    uint32_t bits;
    std::memcpy(&bits, &z[badSample], 4);
    b.gradError = Status::badInput(
        "sample " + std::to_string(badSample) +
            ": the head's gradient is not finite (logit " +
            std::to_string(z[badSample]) +
            "); the step was not applied; lower the learning rate",
        "", badSample, -1, bits);
    return;
  }
  for (size_t f = 0; f < n; ++f)
    if (gradsLayout.bagAt[f] >= 0)
      scatterMax(b.t, f);
}

void Pipeline::updateHead(const Batch &b) {
  ScopedStrictFp strict;
  headUpdateBias(headState, at<float>(gradsRing, b.t, gradsLayout.dlogits),
                 b.samples, b.lrScale);
}

/// x^n by repeated squaring from the low bit, as docs/numerics.md has it.
static double power(double x, int64_t n) {
  double result = 1.0;
  for (; n > 0; n >>= 1) {
    if (n & 1)
      result = result * x;
    x = x * x;
  }
  return result;
}

void trc::updateScalars(const OptimizerPlan &o, int64_t dim, double lrScale,
                        int64_t step, float hp[kUpdateScalars]) {
  const double lr = o.lr * lrScale;
  // What is left of the bias that moments have at first; 1 in the long run.
  const double bias1 = 1.0 - power(o.beta1, step);
  const double bias2 = 1.0 - power(o.beta2, step);
  auto f32 = [](double x) { return static_cast<float>(x); };
  hp[1] = f32(o.weightDecay);
  hp[2] = f32(o.eps);
  hp[8] = f32(1.0 - lr * o.decoupledDecay);
  hp[9] = f32(o.clipNorm);
  switch (o.kind) {
  case OptimizerKind::Sgd:
  case OptimizerKind::Adagrad:
    hp[0] = -f32(lr);
    break;
  case OptimizerKind::MomentumSgd:
    hp[0] = -f32(lr);
    hp[3] = f32(o.momentum);
    break;
  case OptimizerKind::RowwiseAdagrad:
    hp[0] = f32(lr);
    hp[3] = f32(static_cast<double>(dim));
    break;
  case OptimizerKind::Adam:
    hp[0] = -f32(lr * std::sqrt(bias2) / bias1);
    hp[3] = f32(1.0 - o.beta1);
    hp[4] = f32(1.0 - o.beta2);
    break;
  case OptimizerKind::PartialRowwiseAdam:
    hp[0] = f32(lr / bias1);
    hp[3] = f32(1.0 - o.beta1);
    hp[4] = f32(1.0 - o.beta2);
    hp[5] = f32(bias2);
    hp[6] = f32(static_cast<double>(dim));
    break;
  case OptimizerKind::Lamb:
    hp[0] = f32(lr);
    hp[3] = f32(1.0 - o.beta1);
    hp[4] = f32(1.0 - o.beta2);
    hp[5] = f32(bias1);
    hp[6] = f32(bias2);
    break;
  case OptimizerKind::Ftrl:
    hp[0] = f32(lrScale);
    hp[2] = f32(o.beta);
    hp[3] = f32(o.l1);
    hp[4] = f32(o.l2);
    hp[5] = f32(o.lr);
    break;
  }
}

void Pipeline::preserve(Batch &b, GroupRuntime &g) {
  if (!b.applied)
    return; // nothing changes
  const UniqueLayout &layout = uniqueLayouts[g.index];
  Status s = g.preserve(
      slotsOf(b.t, g), at<uint32_t>(g.uniqueRing, b.t, layout.rows),
      static_cast<uint32_t>(
          at<UniqueHeader>(g.uniqueRing, b.t, layout.header)->unique));
  if (!s.ok())
    poison(std::move(s));
}

void Pipeline::segmentUpdate(Batch &b, GroupRuntime &g) {
  if (!b.applied)
    return;
  const UniqueLayout &layout = uniqueLayouts[g.index];
  int64_t rows = at<UniqueHeader>(g.uniqueRing, b.t, layout.header)->unique;
  const uint32_t *slots = slotsOf(b.t, g);
  const TablePlan &table = plan.tables[g.plan->tables.front()];
  float hp[kUpdateScalars] = {};
  updateScalars(table.optimizer, g.plan->dim, b.lrScale, b.step, hp);
  const float *grads = at<float>(gradsRing, b.t, gradsLayout.groupAt[g.index]);
  const uint32_t *unique = at<uint32_t>(g.uniqueRing, b.t, layout.rows);
  auto update = [&](const uint64_t *seeds, int64_t begin, int64_t end) {
    g.update(g.memory.data(), g.plan->slotBytes, slots,
             at<int32_t>(g.uniqueRing, b.t, layout.seg),
             at<uint32_t>(g.uniqueRing, b.t, layout.occ),
             at<float>(g.uniqueRing, b.t, layout.coef), grads, hp, seeds, begin,
             end);
  };
  pool.parallelFor(
      0, rows, kernelGrain(g.plan->dim), [&](int64_t begin, int64_t end) {
        if (!g.plan->stochastic)
          update(nullptr, begin, end);
        uint64_t seeds[128];
        for (int64_t u = begin; g.plan->stochastic && u < end; u += 128) {
          int64_t last = std::min<int64_t>(end, u + 128);
          for (int64_t i = u; i < last; ++i)
            seeds[i - u] = g.roundingSeedOf(plan, unique[i], b.step);
          update(seeds, u, last);
        }
        if (g.cache)
          g.cache->markDirty(slots, static_cast<uint32_t>(begin),
                             static_cast<uint32_t>(end));
      });
  if (!g.cache)
    for (int64_t u = 0; u < rows; ++u)
      g.dirty.set(slots[u]);
}
