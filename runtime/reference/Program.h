//===- Program.h - The reference program, parsed ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the interpreter needs of the artifact's JSON: tables, features and the
// ops of the imported `emb` step. Parsed apart from runtime/core/Plan.h on
// purpose, so that a mistake there cannot hide from `verify`.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_REFERENCE_PROGRAM_H
#define TERRACE_RUNTIME_REFERENCE_PROGRAM_H

#include "runtime/core/Head.h"
#include "runtime/core/RowInit.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trc::reference {

enum class Optimizer {
  Sgd,
  Momentum,
  Adagrad,
  RowwiseAdagrad,
  Adam,
  PartialRowwiseAdam,
  Lamb,
  Ftrl
};
enum class Storage { F32, F16, BF16, I8, I4 };
enum class Pool { Sum, Mean, WeightedMean, Sqrtn, Max, None };

struct TableDef {
  std::string name;
  int64_t rows = 0, dim = 0;
  bool hash = false;
  Storage storage = Storage::F32;
  bool stochastic = false; // rounding of updates
  uint64_t key = 0;        // of rounding
  RowInit init;
  Optimizer optimizer = Optimizer::Sgd;
  double lr = 0, eps = 0, beta1 = 0, beta2 = 0, momentum = 0;
  double weightDecay = 0, decoupledDecay = 0, clipNorm = 0;
  double beta = 0, l1 = 0, l2 = 0; // ftrl

  /// Floats per optimizer state, in the order of docs/numerics.md.
  std::vector<int64_t> stateWidths() const;
  int64_t recordFloats() const;
};

struct FeatureDef {
  enum class Overflow { Error, KeepFirst, KeepLast };
  std::string name;
  int table = 0;
  Pool pooling = Pool::Sum;
  bool weighted = false;
  int64_t maxIds = 1;
  Overflow overflow = Overflow::Error;
};

struct Op {
  enum class Kind {
    Feature,
    Label,
    Check,
    Translate,
    State,
    Lookup,
    Dense,
    Update,
    Dedup,
    Expand,
    Commit
  };
  Kind kind;
  int feature = -1;             // feature
  int table = -1;               // translate, state, update
  std::vector<int> tables;      // check, commit
  std::vector<Pool> pools;      // lookup (one), update
  std::vector<int> args;        // values read; update: bags
  std::vector<int> results;     // values written
  std::vector<int> inverses;    // update: per bags, -1 where none
  std::vector<int> grads;       // update
  std::vector<int> winners;     // update: per bags, -1 where none
  int inverse = -1;             // dedup (result), expand
  int winner = -1;              // lookup max
  int state = -1;               // lookup, update
  int label = -1;               // dense
  bool caller = false;          // dense: gradients come from outside
  HeadKind head = HeadKind::Fm; // dense
};

struct Program {
  int64_t batch = 0, maxIds = 0;
  bool dropBadIds = false, skipBadGrads = false;
  std::vector<TableDef> tables;
  std::vector<FeatureDef> features;
  std::vector<Op> ops;
  std::vector<std::string> values; // names of the SSA values
  int dense = -1;                  // index of the dense op

  const Op &denseOp() const { return ops[static_cast<size_t>(dense)]; }
};

Result<Program> parseProgram(std::string_view planJson);

} // namespace trc::reference

#endif // TERRACE_RUNTIME_REFERENCE_PROGRAM_H
