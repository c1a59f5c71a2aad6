//===- PlanBytecode.h - Registers the binary encoding -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the dialect's own initialisation only.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DIALECTS_PLAN_PLANBYTECODE_H
#define TERRACE_DIALECTS_PLAN_PLANBYTECODE_H

namespace terrace::plan {
class PlanDialect;
void registerBytecode(PlanDialect *dialect);
} // namespace terrace::plan

#endif // TERRACE_DIALECTS_PLAN_PLANBYTECODE_H
