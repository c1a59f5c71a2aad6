//===- ProgramGraph.h - A plan program as a schedule graph ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bridge from IR to lib/Schedule: ops, lanes, rings and groups by index,
// waits from operands and carries. Effects are those that the ops declare,
// joined with those that lib/Schedule knows of the op's kind.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TRANSFORMS_PLAN_PROGRAMGRAPH_H
#define TERRACE_TRANSFORMS_PLAN_PROGRAMGRAPH_H

#include "Schedule/Graph.h"
#include "dialects/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace terrace {

struct ProgramGraph {
  schedule::Graph graph;
  llvm::SmallVector<plan::PlanStageOpInterface> ops; ///< as graph.ops
  llvm::SmallVector<plan::RingOp> rings;             ///< as graph.rings
  llvm::SmallVector<plan::GroupOp> groups;           ///< as graph.groups
  llvm::SmallVector<plan::LaneOp> lanes;             ///< as graph.lanes

  /// Emits an error and fails where a name does not resolve. Ops without a
  /// schedule get lane -1.
  static mlir::FailureOr<ProgramGraph> of(plan::ProgramOp program);
};

} // namespace terrace

#endif // TERRACE_TRANSFORMS_PLAN_PROGRAMGRAPH_H
