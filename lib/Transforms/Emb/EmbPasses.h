//===- EmbPasses.h - Passes on emb ------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What EmbPasses.td declares.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TRANSFORMS_EMB_EMBPASSES_H
#define TERRACE_TRANSFORMS_EMB_EMBPASSES_H

#include "mlir/Pass/Pass.h"

namespace terrace {

#define GEN_PASS_DECL
#include "Transforms/Emb/EmbPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "Transforms/Emb/EmbPasses.h.inc"

} // namespace terrace

#endif // TERRACE_TRANSFORMS_EMB_EMBPASSES_H
