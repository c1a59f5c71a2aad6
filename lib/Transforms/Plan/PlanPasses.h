//===- PlanPasses.h - Passes on plan ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What PlanPasses.td declares.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TRANSFORMS_PLAN_PLANPASSES_H
#define TERRACE_TRANSFORMS_PLAN_PLANPASSES_H

#include "mlir/Pass/Pass.h"

namespace terrace {

#define GEN_PASS_DECL
#include "Transforms/Plan/PlanPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "Transforms/Plan/PlanPasses.h.inc"

} // namespace terrace

#endif // TERRACE_TRANSFORMS_PLAN_PLANPASSES_H
