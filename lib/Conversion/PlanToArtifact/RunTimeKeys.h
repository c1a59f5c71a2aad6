//===- RunTimeKeys.h - `train` and `data` of an artifact --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CONVERSION_PLANTOARTIFACT_RUNTIMEKEYS_H
#define TERRACE_CONVERSION_PLANTOARTIFACT_RUNTIMEKEYS_H

#include "Spec/Spec.h"

#include "llvm/Support/JSON.h"

namespace terrace {

llvm::json::Value trainKeys(const spec::Train &train);
/// null where the spec has no data.
llvm::json::Value dataKeys(const spec::Spec &spec);

} // namespace terrace

#endif // TERRACE_CONVERSION_PLANTOARTIFACT_RUNTIMEKEYS_H
