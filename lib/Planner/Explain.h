//===- Explain.h - The plan in the user's terms -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text for people, JSON for tools, from the same numbers: per table what it is,
// where it went and why; per tier the bound; the step by stage; what was
// assumed. Deterministic: equal problems give equal bytes.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_PLANNER_EXPLAIN_H
#define TERRACE_LIB_PLANNER_EXPLAIN_H

#include "Planner/Planner.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace terrace::planner {

void explainText(const Problem &problem, const Plan &plan,
                 llvm::raw_ostream &os);
llvm::json::Value explainJson(const Problem &problem, const Plan &plan);

/// "1.5 GiB", "64 KiB", "68 B".
std::string formatBytes(int64_t bytes);
/// "3.2 ms", "18 us".
std::string formatSeconds(double seconds);

} // namespace terrace::planner

#endif // TERRACE_LIB_PLANNER_EXPLAIN_H
