//===- PlanCheck.h - What the executor relies on ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the parser only: errors travel as PlanError and end at parsePlan as a
// status.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_PLANCHECK_H
#define TERRACE_RUNTIME_CORE_PLANCHECK_H

#include "runtime/core/Plan.h"

#include <string>

namespace trc {

struct PlanError {
  std::string message;
};

[[noreturn]] void failPlan(const std::string &where, const std::string &what);
void checkPlanIndex(const std::string &where, int64_t index, size_t size);

/// Judges a plan that was read and has its shape: what passes cannot crash the
/// executor. Notes each group's features on the way.
void checkPlan(Plan &plan);

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_PLANCHECK_H
