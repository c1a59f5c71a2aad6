//===- Target.h - LLVM's target machine for our images ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Internal to this folder. One place decides triple, relocation model and
// contraction: always the named CPU, never the host's. "aarch64" is the least
// that one of those has (Armv8-A with its vectors).
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CODEGEN_TARGET_H
#define TERRACE_CODEGEN_TARGET_H

#include "Codegen/Codegen.h"

#include "llvm/Support/Error.h"

#include <memory>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace terrace::codegen {

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(llvm::StringRef cpu);

/// Each configuration is valid and there once.
llvm::Error checkConfigs(llvm::ArrayRef<KernelConfig> configs);

llvm::Expected<ObjectCode> emitObject(llvm::Module &module,
                                      llvm::TargetMachine &machine);

} // namespace terrace::codegen

#endif // TERRACE_CODEGEN_TARGET_H
