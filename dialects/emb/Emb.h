//===- Emb.h - The emb dialect ----------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one header of the dialect: types, attributes, ops, and the module
// attributes by name. Accessors are the ones that ODS makes.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DIALECTS_EMB_EMB_H
#define TERRACE_DIALECTS_EMB_EMB_H

#include "dialects/emb/F64.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

#include "dialects/emb/EmbDialect.h.inc"
#include "dialects/emb/EmbEnums.h.inc"
#include "dialects/emb/EmbInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/emb/EmbAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/emb/EmbTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/emb/EmbOps.h.inc"

namespace terrace::emb {

// What the ops that are not pure act on.
struct VerdictResource : mlir::SideEffects::Resource::Base<VerdictResource> {
  llvm::StringRef getName() final { return "emb.verdict"; }
};
struct HeadResource : mlir::SideEffects::Resource::Base<HeadResource> {
  llvm::StringRef getName() final { return "emb.head"; }
};
struct TablesResource : mlir::SideEffects::Resource::Base<TablesResource> {
  llvm::StringRef getName() final { return "emb.tables"; }
};
struct ChannelResource : mlir::SideEffects::Resource::Base<ChannelResource> {
  llvm::StringRef getName() final { return "emb.channel"; }
};

/// The module's numerics; `strict` where the attribute is absent.
bool isStrict(mlir::Operation *op);
/// The module's machine, null where none was given.
MachineAttr getMachine(mlir::Operation *op);
/// Room of a store of rows as a multiple of the rows; 2 where not given.
double storeSpaceOf(mlir::Operation *op);
/// Checkpoints that stores retain at once; 1 where not given.
int64_t storeRetainedOf(mlir::Operation *op);
/// The model's seed, 0 where none was given.
uint64_t getSeed(mlir::Operation *op);

/// The table that a state value belongs to: follows `emb.state` and updates.
mlir::FlatSymbolRefAttr getTableOfState(mlir::Value state);
/// The table that ids were checked against: follows dedup and translate to the
/// check; null where that is not in this step (an exchange). `translated`: an
/// `emb.translate` is on the way.
mlir::FlatSymbolRefAttr getTableOfBags(mlir::Value bags,
                                       bool *translated = nullptr);
/// The feature that bags come from, null where that is not in this step.
FeatureOp getFeatureOfBags(mlir::Value bags);

} // namespace terrace::emb

#endif // TERRACE_DIALECTS_EMB_EMB_H
