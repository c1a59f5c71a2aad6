//===- Explain.cpp - Plans in the user's terms ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Explain.h"
#include "Driver/Frontend.h"

#include "Planner/Explain.h"

namespace terrace::driver {

ExplainResult explain(const CompileOptions &options) {
  ExplainResult out;
  CompileResult result;
  {
    Frontend frontend(options, result);
    std::optional<ModuleProblem> problem;
    std::optional<planner::Plan> plan;
    bool parsed = frontend.parse();
    if (parsed && options.serve)
      frontend.makeServing();
    if (parsed && frontend.importModule() && frontend.plan(problem, plan)) {
      llvm::raw_string_ostream os(out.text);
      planner::explainText(problem->problem, *plan, os);
      out.json = planner::explainJson(problem->problem, *plan);
    }
  }
  out.outcome = result.outcome;
  out.diagnostics = std::move(result.diagnostics);
  return out;
}

} // namespace terrace::driver
