//===- KernelConfig.h - What one generated kernel computes ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel is keyed by its configuration, never by a table: all tables with
// the same configuration share it. The configuration and the name in the
// artifact (docs/artifact.md) are two spellings of the same thing. Plain
// values, thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CODEGEN_KERNELCONFIG_H
#define TERRACE_CODEGEN_KERNELCONFIG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace terrace::codegen {

enum class KernelKind { GatherPool, SegmentUpdate };
enum class Pooling { Sum, Mean, WeightedMean, Sqrtn, Max, None };
/// What a row's weights are stored as; arithmetic is f32. I8 and I4: whole
/// numbers behind an f16 scale and an f16 bias, only ever gathered.
enum class Element { F32, F16, BF16, I8, I4 };
enum class Optimizer {
  Sgd,
  Adagrad,
  RowwiseAdagrad,
  Adam,
  MomentumSgd,
  PartialRowwiseAdam,
  Lamb,
  Ftrl
};

llvm::StringRef toString(Pooling pooling);
llvm::StringRef toString(Element element);
llvm::StringRef toString(Optimizer optimizer);

struct KernelConfig {
  static constexpr int64_t maxDim = 2048;

  KernelKind kind = KernelKind::GatherPool;
  int64_t dim = 0; // 1 .. maxDim
  Element element = Element::F32;
  // gather_pool
  Pooling pooling = Pooling::Sum;
  bool weighted = false; // never with max or none
  bool direct = false;   // occurrences are rows, without slots
  // segment_update
  Optimizer optimizer = Optimizer::Sgd;
  bool decay = false;      // weight decay != 0
  bool decoupled = false;  // weight decay apart from the gradient
  bool clip = false;       // the gradient, by its norm
  bool stochastic = false; // rounding of f16 and bf16

  static KernelConfig gatherPool(int64_t dim, Pooling pooling,
                                 bool weighted = false) {
    KernelConfig config;
    config.dim = dim;
    config.pooling = pooling;
    config.weighted = weighted;
    return config;
  }
  static KernelConfig segmentUpdate(int64_t dim, Optimizer optimizer,
                                    bool decay = false, bool decoupled = false,
                                    bool clip = false) {
    KernelConfig config;
    config.kind = KernelKind::SegmentUpdate;
    config.dim = dim;
    config.optimizer = optimizer;
    config.decay = decay;
    config.decoupled = decoupled;
    config.clip = clip;
    return config;
  }

  KernelConfig byId() const {
    KernelConfig config = *this;
    config.direct = true;
    return config;
  }

  KernelConfig stored(Element as, bool roundStochastically = false) const {
    KernelConfig config = *this;
    config.element = as;
    config.stochastic = roundStochastically;
    return config;
  }

  /// The name in the artifact: gather_pool_<dim>_[<element>_]<pooling>
  /// [_weighted][_direct] or
  /// segment_update_<dim>_[<element>_]<optimizer>[_decay]
  /// [_decoupled][_clip][_stochastic]; f32 is not spelt.
  std::string name() const;
  /// The configuration of such a name; the error says what is wrong in it.
  static llvm::Expected<KernelConfig> parse(llvm::StringRef name);
  /// The dimension's range, no weights with max or none, no decay that the
  /// optimizer does not know.
  llvm::Error verify() const;

  /// Whether the optimizer itself, without clipping, updates a column from
  /// that column alone.
  bool isColumnwise() const;
  bool needsWholeRow() const { return clip || !isColumnwise(); }
  bool isQuantized() const {
    return element == Element::I8 || element == Element::I4;
  }
  /// Bytes of `columns` weights, from an even column on.
  int64_t bytesOf(int64_t columns) const {
    switch (element) {
    case Element::F32:
      return columns * 4;
    case Element::F16:
    case Element::BF16:
      return columns * 2;
    case Element::I8:
      return columns;
    case Element::I4:
      return (columns + 1) / 2;
    }
    return 0;
  }
  /// Scale and bias, in front of a row's weights.
  int64_t headBytes() const { return isQuantized() ? 4 : 0; }
  /// Words of 4 bytes that the weights take; the state lies behind them.
  int64_t weightWords() const { return (headBytes() + bytesOf(dim) + 3) / 4; }
  /// Floats of optimizer state behind the weights of a row.
  int64_t stateFloats() const;
};

inline bool operator==(const KernelConfig &a, const KernelConfig &b) {
  return a.name() == b.name();
}

} // namespace terrace::codegen

#endif // TERRACE_CODEGEN_KERNELCONFIG_H
