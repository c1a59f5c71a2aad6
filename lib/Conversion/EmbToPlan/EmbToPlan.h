//===- EmbToPlan.h - From emb to plan ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass that EmbToPlan.td declares.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CONVERSION_EMBTOPLAN_EMBTOPLAN_H
#define TERRACE_CONVERSION_EMBTOPLAN_EMBTOPLAN_H

#include "mlir/Pass/Pass.h"

namespace terrace {

#define GEN_PASS_DECL
#include "Conversion/EmbToPlan/EmbToPlan.h.inc"

#define GEN_PASS_REGISTRATION
#include "Conversion/EmbToPlan/EmbToPlan.h.inc"

} // namespace terrace

#endif // TERRACE_CONVERSION_EMBTOPLAN_EMBTOPLAN_H
