//===- Compile.cpp - From a spec to a file, in process --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the front end as far as the emitted kind needs, then the code
// generator and the linker.
//
//===----------------------------------------------------------------------===//
#include "Driver/Compile.h"
#include "Driver/Backend.h"
#include "Driver/Frontend.h"

#include "Planner/Decision.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace terrace::driver {

static constexpr llvm::StringRef emitWords[] = {"spec", "mlir",     "decision",
                                                "plan", "artifact", "llvm",
                                                "obj",  "lib",      "exe"};

llvm::ArrayRef<llvm::StringRef> emitNames() { return emitWords; }

std::optional<Emit> parseEmit(llvm::StringRef word) {
  const auto *found = llvm::find(emitWords, word);
  if (found == std::end(emitWords))
    return std::nullopt;
  return Emit(found - std::begin(emitWords));
}

namespace {

std::string printed(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  return text + "\n";
}

bool emitDecision(Frontend &frontend) {
  std::optional<ModuleProblem> problem;
  std::optional<planner::Plan> plan;
  return frontend.plan(problem, plan) &&
         frontend.emitText(
             planner::printDecision(problem->problem, plan->decision));
}

bool run(const CompileOptions &options, CompileResult &result) {
  Frontend frontend(options, result);
  if (!frontend.parse())
    return false;
  if (options.emit == Emit::Spec)
    return frontend.emitText(spec::printSpec(frontend.spec()));
  if (options.serve)
    frontend.makeServing();
  Backend backend(frontend, options, result);
  if (options.emit >= Emit::Artifact && !backend.check())
    return false;
  if (!frontend.importModule())
    return false;
  if (options.emit == Emit::Mlir)
    return frontend.emitText(printed(frontend.module()));
  if (options.emit == Emit::Decision)
    return emitDecision(frontend);
  if (!frontend.runEmbPasses() || !frontend.runPlanPasses())
    return false;
  if (options.emit == Emit::Plan)
    return frontend.emitText(printed(frontend.module()));
  return backend.run();
}

} // namespace

CompileResult compile(const CompileOptions &options) {
  CompileResult result;
  run(options, result);
  return result;
}

} // namespace terrace::driver
