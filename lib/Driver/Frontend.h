//===- Frontend.h - The stages before code, as one object -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a spec and takes it through import and planning; `compile`, `explain`
// and `diff` share it, so that they see the same plan. MLIR's diagnostics are
// turned into ours, at the places in the user's files.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DRIVER_FRONTEND_H
#define TERRACE_DRIVER_FRONTEND_H

#include "Driver/Compile.h"
#include "Driver/Dump.h"
#include "Profile/Profile.h"
#include "Spec/Spec.h"
#include "Transforms/Emb/ModuleProblem.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace terrace::driver {

class Frontend {
public:
  Frontend(const CompileOptions &options, CompileResult &result);
  ~Frontend();

  /// Each returns false after an error; `result.outcome` is set then.
  bool parse();
  /// After parse: what follows is of the model that serves.
  void makeServing();
  bool importModule();
  /// The passes on emb, up to a sharded and placed module.
  bool runEmbPasses();
  /// The conversion to plan and the passes on it.
  bool runPlanPasses();
  /// What the planner says of the imported module (does not change it).
  bool plan(std::optional<ModuleProblem> &problem,
            std::optional<planner::Plan> &plan);

  const spec::Spec &spec() const { return *parsed; }
  mlir::ModuleOp module() { return *imported; }
  /// The imported module as the reference program, taken before any pass.
  const llvm::json::Value &reference() const { return flattened; }
  Dump &dump() { return dumps; }

  /// To -o, else to `result.text`.
  bool emitText(std::string text);
  /// Through a temporary file; notes it in `result.files`.
  bool writeFile(const std::string &path, llvm::StringRef text);
  /// A usage error where `path` is a file that this compilation reads, or that
  /// the model will.
  bool checkOutput(const std::string &path);

  /// Starts a stage: progress and times.
  void stage(llvm::StringRef name);
  void endStage();

  bool fail(Outcome outcome);
  bool fail(Outcome outcome, const llvm::Twine &message);

private:
  void onDiagnostic(mlir::Diagnostic &diagnostic);
  spec::Loc locOf(mlir::Location location) const;
  bool runPipeline(llvm::StringRef name,
                   llvm::function_ref<void(mlir::PassManager &)> build);

  const CompileOptions &options;
  CompileResult &result;
  mlir::MLIRContext context;
  mlir::DiagnosticEngine::HandlerID handler;
  std::optional<spec::Spec> parsed;
  std::optional<profile::Profile> profile;
  mlir::OwningOpRef<mlir::ModuleOp> imported;
  llvm::json::Value flattened = nullptr;
  Dump dumps;
  std::string currentStage;
  double stageStart = 0;
};

} // namespace terrace::driver

#endif // TERRACE_DRIVER_FRONTEND_H
