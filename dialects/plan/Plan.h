//===- Plan.h - The plan dialect --------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one header of the dialect. A scheduler works on PlanStageOpInterface, a
// verifier on PlanEffectsOpInterface; neither needs to know single ops.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DIALECTS_PLAN_PLAN_H
#define TERRACE_DIALECTS_PLAN_PLAN_H

#include "dialects/emb/Emb.h"
#include "dialects/plan/PlanEffects.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace terrace::plan {
class PipelineOp;
class YieldOp;
} // namespace terrace::plan

#include "dialects/plan/PlanDialect.h.inc"
#include "dialects/plan/PlanEnums.h.inc"
#include "dialects/plan/PlanInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

namespace terrace::plan {

/// The decision on the module around `op`, null where there is none.
DecisionAttr getDecision(mlir::Operation *op);

/// The group that a stage works on, null where it names none or the name does
/// not resolve. Walks the module: passes that ask often keep a SymbolTable.
GroupOp getGroupOp(mlir::Operation *stage);

namespace detail {
// Rules that several verifiers share.
mlir::LogicalResult verifyTable(mlir::Operation *op,
                                mlir::FlatSymbolRefAttr name,
                                mlir::SymbolTableCollection &symbols,
                                emb::TableOp *table = nullptr);
mlir::LogicalResult verifyKernel(mlir::Operation *op,
                                 mlir::FlatSymbolRefAttr name, KernelKind kind,
                                 RecordAttr record,
                                 mlir::SymbolTableCollection &symbols,
                                 KernelOp *result);
} // namespace detail

} // namespace terrace::plan

#endif // TERRACE_DIALECTS_PLAN_PLAN_H
