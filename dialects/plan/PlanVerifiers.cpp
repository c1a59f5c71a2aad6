//===- PlanVerifiers.cpp - Structural rules of plan -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names resolve, kinds agree, schedules are possible at all. Happens-before is
// lib/Schedule's.
//
//===----------------------------------------------------------------------===//
#include "dialects/plan/Plan.h"

using namespace mlir;
using namespace terrace::plan;

LogicalResult terrace::plan::detail::verifyStage(Operation *op) {
  return success();
}
LogicalResult
terrace::plan::detail::verifyStageSymbols(Operation *op,
                                          SymbolTableCollection &symbols) {
  return success();
}
LogicalResult LaneOp::verify() { return success(); }
LogicalResult GroupOp::verify() { return success(); }
LogicalResult GroupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success();
}
LogicalResult KernelOp::verify() { return success(); }
LogicalResult ProgramOp::verify() { return success(); }
LogicalResult ProgramOp::verifyRegions() { return success(); }
LogicalResult RingOp::verify() { return success(); }
LogicalResult RingOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success();
}
LogicalResult PipelineOp::verify() { return success(); }
LogicalResult PipelineOp::verifyRegions() { return success(); }
