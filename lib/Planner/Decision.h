//===- Decision.h - What the planner decided --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain values; text is YAML that is also what `--emit=decision` writes and
// `--plan FILE` reads back, with names instead of indices so that people can
// edit it. The same fields make up #plan.decision.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_PLANNER_DECISION_H
#define TERRACE_LIB_PLANNER_DECISION_H

#include "CostModel/Footprint.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace terrace::planner {

/// Canonical YAML; ends with a newline. Names come from the problem.
std::string printDecision(const Problem &problem, const Decision &decision);

/// Reads a decision back. Every table must be there once; tables, tiers and
/// workers must exist. Slots are never in the file: they follow from the static
/// rule. Error: "name: what".
llvm::Expected<Decision> parseDecision(const Problem &problem,
                                       llvm::StringRef text,
                                       llvm::StringRef name);

} // namespace terrace::planner

#endif // TERRACE_LIB_PLANNER_DECISION_H
