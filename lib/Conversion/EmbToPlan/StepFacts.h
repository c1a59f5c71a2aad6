//===- StepFacts.h - What a training step says about a model ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Traces every look-up of an emb step back to its feature and its table. The
// conversion builds from these facts alone.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CONVERSION_EMBTOPLAN_STEPFACTS_H
#define TERRACE_CONVERSION_EMBTOPLAN_STEPFACTS_H

#include "dialects/emb/Emb.h"

namespace terrace {

struct FeatureFacts {
  emb::FeatureOp op;
  emb::LookupOp lookup;
  int table = -1;
  int dedup = -1; ///< into StepFacts::dedups
  bool weighted = false;
};

struct TableFacts {
  emb::TableOp op;
  emb::UpdateOp update;
  llvm::SmallVector<int> features; ///< in the spec's order
};

struct DedupFacts {
  emb::DedupOp op;
  std::string name;
  llvm::SmallVector<int> features;
};

struct StepFacts {
  emb::StepOp step;
  emb::CheckOp check;
  emb::DenseOp dense;
  bool trains = false; ///< else forward only: tables have no updates
  llvm::SmallVector<FeatureFacts> features; ///< in the spec's order
  llvm::SmallVector<TableFacts> tables;     ///< in module order
  llvm::SmallVector<DedupFacts> dedups;

  /// Emits an error and fails where the step is not one that a plan can run.
  static mlir::FailureOr<StepFacts> of(emb::StepOp step);
};

} // namespace terrace

#endif // TERRACE_CONVERSION_EMBTOPLAN_STEPFACTS_H
