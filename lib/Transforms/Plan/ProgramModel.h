//===- ProgramModel.h - A plan program as plain numbers ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes and the artifact ask of a program: its features, groups and
// tables by index, the shape that RingLayout.h sizes rings from, and the bytes
// that each tier holds. A snapshot: build it again after changing the IR.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TRANSFORMS_PLAN_PROGRAMMODEL_H
#define TERRACE_TRANSFORMS_PLAN_PROGRAMMODEL_H

#include "CostModel/IndexBytes.h"
#include "dialects/plan/Plan.h"
#include "runtime/core/RingLayout.h"

#include "mlir/IR/BuiltinOps.h"

namespace terrace {

/// Bytes of one tier.
struct TierUse {
  emb::TierOp tier;
  int64_t rings = 0, slots = 0, index = 0, rows = 0;
  int64_t total() const { return rings + slots + index + rows; }
};

struct ProgramModel {
  mlir::ModuleOp module;
  plan::ProgramOp program;
  plan::IngestOp ingest;
  plan::DedupOp dedup; ///< null where no bags are deduplicated
  bool head = false;
  bool trains = false;                    ///< else forward only
  llvm::SmallVector<emb::TableOp> tables; ///< in module order
  llvm::SmallVector<emb::TierOp> tiers;
  llvm::SmallVector<plan::GroupOp> groups;
  llvm::SmallVector<plan::FeatureAttr> features; ///< in the spec's order
  llvm::SmallVector<int> featureTable;           ///< by feature
  llvm::SmallVector<int> featureDedup;           ///< by feature, or -1
  llvm::SmallVector<int> tableGroup;             ///< by table, or -1
  llvm::SmallVector<int64_t> tableBase;          ///< by table
  trc::ModelShape shape;

  /// Emits an error and fails where names do not resolve.
  static mlir::FailureOr<ProgramModel> of(plan::ProgramOp program);

  int group(llvm::StringRef name) const;
  int tier(llvm::StringRef name) const;
  /// The store of a group's rows.
  planner::StoreShape storeOf(plan::GroupOp group) const;
  /// Bytes of one slot of a ring, from its role and group.
  int64_t ringBytes(plan::RingOp ring) const;
  /// What lies in each tier, in module order.
  llvm::SmallVector<TierUse> tierUse() const;
};

/// Gives every ring the bytes of one slot.
mlir::LogicalResult sizeRings(plan::ProgramOp program);

/// Rows of one batch that a group's ops meet at most, and the same of ids, from
/// the features that read its tables.
struct GroupBounds {
  int64_t occurrences = 0, unique = 0;
};
GroupBounds boundsOf(const ProgramModel &model, plan::GroupOp group);

} // namespace terrace

#endif // TERRACE_TRANSFORMS_PLAN_PROGRAMMODEL_H
