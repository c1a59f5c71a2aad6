//===- ModuleProblem.h - The planner's view of an emb module ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads tables, features, tiers and pins off the IR, runs the planner, and
// reports what it refuses at the place in the user's file. `terrace explain`
// and emb-decide share it, so that they cannot differ.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TRANSFORMS_EMB_MODULEPROBLEM_H
#define TERRACE_TRANSFORMS_EMB_MODULEPROBLEM_H

#include "Planner/Planner.h"
#include "dialects/emb/Emb.h"

namespace terrace {

struct ModuleProblem {
  planner::Problem problem;
  std::vector<mlir::Location> tierLocs, tableLocs, pinLocs;
  mlir::Location lookaheadLoc;
};

/// The problem of an unsharded module (any step with updates; else the first).
/// Opens the machine file that the pins name; one that does not exist is a
/// warning, and conservative figures are used.
mlir::FailureOr<ModuleProblem> problemFromModule(mlir::ModuleOp module);

/// Decides, or completes the decision in `planFile` where it is not empty.
/// Failure has emitted an error at the tier, table or pin.
mlir::FailureOr<planner::Plan> planModule(const ModuleProblem &problem,
                                          llvm::StringRef planFile = {});

/// The feature whose bags a value holds: through check, translate and dedup.
emb::FeatureOp featureOfBags(mlir::Value bags);

/// Expected samples per unique bag of a group, from its profile or its
/// features', else assumed; `measured` says which.
double expectedDedupFactor(mlir::ModuleOp module, llvm::StringRef group,
                           llvm::ArrayRef<emb::FeatureOp> features,
                           bool &measured);

} // namespace terrace

#endif // TERRACE_TRANSFORMS_EMB_MODULEPROBLEM_H
