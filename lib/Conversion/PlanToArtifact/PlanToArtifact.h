//===- PlanToArtifact.h - From plan to the artifact's JSON ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes docs/artifact.md. The program comes from the IR, the run-time keys
// (`train`, `data`) and the head's label from the spec. Waits are the essential
// ones of lib/Schedule. Same input, same bytes.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CONVERSION_PLANTOARTIFACT_PLANTOARTIFACT_H
#define TERRACE_CONVERSION_PLANTOARTIFACT_PLANTOARTIFACT_H

#include "Spec/Spec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace terrace {

struct ArtifactOptions {
  /// Memory of a process outside every tier, but for its reader (which is
  /// added); negative: the shipped figure.
  int64_t processBytes = -1;
};

struct ArtifactText {
  std::string json;                 ///< one line of JSON per key
  std::string hash;                 ///< 16 hex digits
  std::vector<std::string> kernels; ///< names to generate, sorted
};

/// The module must have passed plan-verify and plan-allocate. Emits located
/// errors and fails where the runtime cannot run it.
mlir::FailureOr<ArtifactText>
planToArtifact(mlir::ModuleOp module, const spec::Spec &spec,
               const llvm::json::Value &reference,
               const ArtifactOptions &options = {});

} // namespace terrace

#endif // TERRACE_CONVERSION_PLANTOARTIFACT_PLANTOARTIFACT_H
