//===- Head.h - The heads of the executable: logistic and fm ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward and backward of docs/numerics.md "Heads", sample by sample, so that
// a caller may split [begin, end) over threads: no sample depends on another
// but through the bias, whose update takes all of them in sample order.
// Shared by the executor and the reference interpreter. No allocation.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_HEAD_H
#define TERRACE_RUNTIME_CORE_HEAD_H

#include <cstdint>

namespace trc {

enum class HeadKind { Logistic, Fm };

/// Pooled outputs of one feature: sample s starts at values + s * stride.
struct HeadInput {
  const float *values;
  int64_t stride; // in floats
  int64_t dim;
};

/// Where one feature's gradients go, laid out like a HeadInput.
struct HeadGrad {
  float *values;
  int64_t stride;
};

/// The head's own parameters; part of every state and checkpoint.
struct HeadState {
  float bias = 0;
  float biasSquares = 0; // Adagrad's sum
};

/// Logits z and probabilities p of samples begin..end-1, indexed by sample.
/// `fm` needs all dims equal.
void headForward(HeadKind kind, float bias, const HeadInput *inputs,
                 int64_t features, int64_t begin, int64_t end, float *z,
                 float *p);

/// Loss of one sample, in f64 of z; y is 0 or 1.
double headSampleLoss(float z, float y);

/// Mean loss of the step: the samples' losses summed in order, over n.
double headLoss(const float *z, const float *y, int64_t samples);

/// dz = (p - y) / float(samples) and the gradients of samples begin..end-1;
/// `samples` is the whole step's count.
void headBackward(HeadKind kind, const HeadInput *inputs, int64_t features,
                  const float *p, const float *y, int64_t samples,
                  int64_t begin, int64_t end, const HeadGrad *grads, float *dz);

/// One Adagrad step of the bias, lr 0.1 * lrScale; dz in sample order.
void headUpdateBias(HeadState &state, const float *dz, int64_t samples,
                    double lrScale);

float sigmoid(float z);

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_HEAD_H
