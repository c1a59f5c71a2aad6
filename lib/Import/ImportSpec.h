//===- ImportSpec.h - Spec to emb module ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One emb.table per table, one emb.tier per tier, a @train step (forward, head
// or trainer, update) and an @eval step (forward only). Locations point into
// the YAML. Nothing is decided here: pins travel as the module attribute
// `emb.pins`.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_IMPORT_IMPORTSPEC_H
#define TERRACE_LIB_IMPORT_IMPORTSPEC_H

#include "Machine/Machine.h"
#include "Profile/Profile.h"
#include "Spec/Spec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace terrace {

struct ImportOptions {
  const profile::Profile *profile = nullptr; // none: assumptions
};

/// Null, with diagnostics emitted at the context, where the spec cannot be
/// expressed. The context loads the emb dialect itself.
mlir::OwningOpRef<mlir::ModuleOp> importSpec(mlir::MLIRContext &context,
                                             const spec::Spec &spec,
                                             const ImportOptions &options = {});

} // namespace terrace

#endif // TERRACE_LIB_IMPORT_IMPORTSPEC_H
