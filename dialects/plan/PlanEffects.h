//===- PlanEffects.h - What stages read and write ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An effect is (access, role, group, row set). Row sets of one group meet only
// in the ways that lib/Schedule knows, and every happens-before rule follows
// from that. MLIR's own memory effects are derived from these, one Resource
// per role.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DIALECTS_PLAN_PLANEFFECTS_H
#define TERRACE_DIALECTS_PLAN_PLANEFFECTS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace terrace::plan {

/// What is touched.
enum class Role {
  Directory, // where each row is: slot, write buffer, home; and the pins
  Slots,     // rows where kernels use them: slots, or in place without a cache
  Home,      // records on the home tier
  Ring,      // a batch's slot of a ring
  Cut,       // whether the trainer has cut for a checkpoint before this step
};

/// Which rows of the group, relative to the batch t of the op.
enum class RowSet {
  None,   // not rows: a ring
  Pin,    // every row that the batch uses
  Miss,   // those of them that had no slot
  Victim, // the rows whose slots they take
  All,    // every row of the group
};

enum class Access { Read, Write };

struct PlanEffect {
  Access access;
  Role role;
  RowSet rows = RowSet::None;
  mlir::FlatSymbolRefAttr group; // null for rings and for cuts
  mlir::Value ring;              // for Role::Ring: the plan.ring
};

/// The ring that holds a value's data, null for tokens. Ops that work in place
/// (check, translate) pass the ring of their operand on; of rows it is the
/// probe's, which holds their slots.
mlir::Value getRingOf(mlir::Value value);

struct DirectoryResource
    : mlir::SideEffects::Resource::Base<DirectoryResource> {
  llvm::StringRef getName() final { return "plan.directory"; }
};
struct SlotsResource : mlir::SideEffects::Resource::Base<SlotsResource> {
  llvm::StringRef getName() final { return "plan.slots"; }
};
struct HomeResource : mlir::SideEffects::Resource::Base<HomeResource> {
  llvm::StringRef getName() final { return "plan.home"; }
};
struct CutResource : mlir::SideEffects::Resource::Base<CutResource> {
  llvm::StringRef getName() final { return "plan.cut"; }
};
struct RingResource : mlir::SideEffects::Resource::Base<RingResource> {
  llvm::StringRef getName() final { return "plan.ring"; }
};

namespace detail {
/// Results are printed under the stage's name and its group's.
void nameResults(mlir::Operation *op, mlir::OpAsmSetValueNameFn set);
void getMemoryEffects(mlir::Operation *op,
                      llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<
                          mlir::MemoryEffects::Effect>> &effects);
mlir::LogicalResult verifyStage(mlir::Operation *op);
mlir::LogicalResult verifyStageSymbols(mlir::Operation *op,
                                       mlir::SymbolTableCollection &symbols);
} // namespace detail

} // namespace terrace::plan

#endif // TERRACE_DIALECTS_PLAN_PLANEFFECTS_H
