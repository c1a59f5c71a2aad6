//===- Flatten.h - An emb step as the reference program ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step, op for op, as the JSON of docs/artifact.md ("reference"), which the
// interpreter in runtime/reference runs over plain arrays. Works on the
// imported module and after emb-dedup.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_REFERENCE_FLATTEN_H
#define TERRACE_LIB_REFERENCE_FLATTEN_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/JSON.h"

namespace terrace {

/// {"ops": [...]} of the step `stepName`. Features and tables are numbered as
/// the module declares them. Fails, with a diagnostic, on an op that the
/// reference does not know (a sharded step).
mlir::FailureOr<llvm::json::Value> flattenStep(mlir::ModuleOp module,
                                               llvm::StringRef stepName);

} // namespace terrace

#endif // TERRACE_LIB_REFERENCE_FLATTEN_H
