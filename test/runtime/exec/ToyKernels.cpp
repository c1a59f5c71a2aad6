//===- ToyKernels.cpp - Kernels written by hand, for tests ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/numerics.md as plain loops behind the generated kernels' signatures, so
// that the runtime is tested without the compiler.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/exec/ToyModel.h"

#include <cmath>
#include <cstring>

using namespace trc;

namespace {

template <int D, Pooling P, bool W, typename Place>
void pool(const char *rows, int64_t pitch, const Place &place,
          const int32_t *offsets, const float *weights, float *out,
          int32_t *winner, int64_t begin, int64_t end) {
  auto row = [&](int64_t j) {
    return reinterpret_cast<const float *>(rows + place(j) * pitch);
  };
  for (int64_t b = begin; b < end; ++b) {
    float *to = out + b * D;
    if (P == Pooling::none) {
      std::memcpy(to, row(b), D * 4);
      continue;
    }
    int64_t low = offsets[b], high = offsets[b + 1];
    float divisor = static_cast<float>(high - low);
    if (W && P == Pooling::weightedMean) {
      divisor = 0;
      for (int64_t j = low; j < high; ++j)
        divisor = divisor + weights[j];
    }
    if (P == Pooling::sqrtn) {
      float q = W ? 0.0f : divisor;
      for (int64_t j = low; W && j < high; ++j)
        q = std::fma(weights[j], weights[j], q);
      divisor = std::sqrt(q);
    }
    for (int c = 0; c < D; ++c) {
      float a = 0;
      if (P == Pooling::max) {
        winner[b * D + c] = high > low ? 0 : -1;
        for (int64_t j = low; j < high; ++j)
          if (j == low || row(j)[c] > a) {
            a = row(j)[c];
            winner[b * D + c] = static_cast<int32_t>(j - low);
          }
      } else {
        for (int64_t j = low; j < high; ++j)
          a = W ? std::fma(weights[j], row(j)[c], a) : a + row(j)[c];
        if (P != Pooling::sum && high > low)
          a = a / divisor;
      }
      to[c] = a;
    }
  }
}

template <int D, Pooling P, bool W>
void gather(const char *rows, int64_t pitch, const uint32_t *slots,
            const uint32_t *x, const int32_t *offsets, const float *weights,
            float *out, int32_t *winner, int64_t begin, int64_t end) {
  auto place = [&](int64_t j) { return static_cast<int64_t>(slots[x[j]]); };
  pool<D, P, W>(rows, pitch, place, offsets, weights, out, winner, begin, end);
}

template <int D, Pooling P, bool W>
void direct(const char *rows, int64_t pitch, const int64_t *ids,
            const int32_t *offsets, const float *weights, float *out,
            int32_t *winner, int64_t begin, int64_t end) {
  auto place = [&](int64_t j) { return ids[j]; };
  pool<D, P, W>(rows, pitch, place, offsets, weights, out, winner, begin, end);
}

template <int D> float rowSum(const float *g) {
  float lane[32] = {};
  for (int c = 0; c < D; ++c)
    lane[c % 32] = std::fma(g[c], g[c], lane[c % 32]);
  for (int width = 16; width; width /= 2)
    for (int l = 0; l < width; ++l)
      lane[l] = lane[l] + lane[l + width];
  return lane[0];
}

template <int D, OptimizerKind O, bool Decay>
void update(char *rows, int64_t pitch, const uint32_t *slots,
            const int32_t *seg, const uint32_t *occ, const float *coef,
            const float *grads, const float *hp, const uint64_t *,
            int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; ++u) {
    float *w = reinterpret_cast<float *>(rows + static_cast<int64_t>(slots[u]) *
                                                    pitch);
    float *s = w + D;
    float g[D];
    for (int c = 0; c < D; ++c) {
      g[c] = 0;
      for (int32_t k = seg[u]; k < seg[u + 1]; ++k)
        g[c] = std::fma(coef[k], grads[static_cast<int64_t>(occ[k]) * D + c],
                        g[c]);
      if (Decay)
        g[c] = std::fma(hp[1], w[c], g[c]);
    }
    float rate = 0;
    if (O == OptimizerKind::RowwiseAdagrad) {
      s[0] = s[0] + rowSum<D>(g) / hp[3];
      rate = -(hp[0] / (std::sqrt(s[0]) + hp[2]));
    }
    for (int c = 0; c < D; ++c) {
      switch (O) {
      case OptimizerKind::Sgd:
        w[c] = std::fma(hp[0], g[c], w[c]);
        break;
      case OptimizerKind::Adagrad:
        s[c] = std::fma(g[c], g[c], s[c]);
        w[c] = std::fma(hp[0], g[c] / (std::sqrt(s[c]) + hp[2]), w[c]);
        break;
      case OptimizerKind::RowwiseAdagrad:
        w[c] = std::fma(rate, g[c], w[c]);
        break;
      case OptimizerKind::Adam: {
        float &m = s[c], &v = s[D + c];
        m = std::fma(hp[3], g[c] - m, m);
        v = std::fma(hp[4], std::fma(g[c], g[c], -v), v);
        w[c] = std::fma(hp[0], m / (std::sqrt(v) + hp[2]), w[c]);
        break;
      }
      default:
        static_assert(O <= OptimizerKind::Adam, "has no toy kernel");
      }
    }
  }
}

struct Entry {
  std::string name;
  const void *address;
};

template <int D> void addDim(std::vector<Entry> &all) {
  std::string dim = std::to_string(D);
  auto add = [&](const std::string &name, auto *f) {
    all.push_back({name, reinterpret_cast<const void *>(f)});
  };
  std::string g = "gather_pool_" + dim + "_", u = "segment_update_" + dim + "_";
  add(g + "sum", gather<D, Pooling::sum, false>);
  add(g + "sum_direct", direct<D, Pooling::sum, false>);
  add(g + "sum_weighted", gather<D, Pooling::sum, true>);
  add(g + "sum_weighted_direct", direct<D, Pooling::sum, true>);
  add(g + "mean", gather<D, Pooling::mean, false>);
  add(g + "mean_direct", direct<D, Pooling::mean, false>);
  add(g + "mean_weighted", gather<D, Pooling::mean, true>);
  add(g + "mean_weighted_direct", direct<D, Pooling::mean, true>);
  add(g + "weighted_mean", gather<D, Pooling::weightedMean, false>);
  add(g + "weighted_mean_direct", direct<D, Pooling::weightedMean, false>);
  add(g + "weighted_mean_weighted", gather<D, Pooling::weightedMean, true>);
  add(g + "weighted_mean_weighted_direct",
      direct<D, Pooling::weightedMean, true>);
  add(g + "sqrtn", gather<D, Pooling::sqrtn, false>);
  add(g + "sqrtn_direct", direct<D, Pooling::sqrtn, false>);
  add(g + "sqrtn_weighted", gather<D, Pooling::sqrtn, true>);
  add(g + "sqrtn_weighted_direct", direct<D, Pooling::sqrtn, true>);
  add(g + "max", gather<D, Pooling::max, false>);
  add(g + "max_direct", direct<D, Pooling::max, false>);
  add(g + "none", gather<D, Pooling::none, false>);
  add(g + "none_direct", direct<D, Pooling::none, false>);
  add(u + "sgd", update<D, OptimizerKind::Sgd, false>);
  add(u + "sgd_decay", update<D, OptimizerKind::Sgd, true>);
  add(u + "adagrad", update<D, OptimizerKind::Adagrad, false>);
  add(u + "adagrad_decay", update<D, OptimizerKind::Adagrad, true>);
  add(u + "rowwise_adagrad", update<D, OptimizerKind::RowwiseAdagrad, false>);
  add(u + "rowwise_adagrad_decay",
      update<D, OptimizerKind::RowwiseAdagrad, true>);
  add(u + "adam", update<D, OptimizerKind::Adam, false>);
  add(u + "adam_decay", update<D, OptimizerKind::Adam, true>);
}

} // namespace

const void *toy::findKernel(const std::string &name) {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> entries;
    addDim<1>(entries);
    addDim<2>(entries);
    addDim<4>(entries);
    addDim<9>(entries);
    addDim<16>(entries);
    addDim<33>(entries);
    return entries;
  }();
  for (const Entry &e : all)
    if (e.name == name)
      return e.address;
  return nullptr;
}
