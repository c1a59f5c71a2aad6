//===- Codegen.h - Kernels and artifacts as object code ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From kernel configurations and the plan's JSON text to object files, all in
// process. The emb and plan dialects are unknown here. Every function returns
// the same bytes for the same input. Thread-safe; functions without an
// MLIRContext make their own. Errors are one line for the user.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CODEGEN_CODEGEN_H
#define TERRACE_CODEGEN_CODEGEN_H

#include "Codegen/KernelConfig.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace terrace::codegen {

/// A set of instructions that kernels are built for. `index` is the place in
/// trc_kernel.image (enum trc_cpu); -1 where kernels are object code only, for
/// another kind of machine than the runtime's.
struct Image {
  const char *cpu;    // the user's name and, on x86-64, LLVM's: "x86-64-v3"
  const char *suffix; // of the kernels' symbols, e.g. "_v3"
  int index;
  int lanes;     // f32 lanes of the widest vector
  int registers; // vector registers

  bool isObjectOnly() const { return index < 0; }
};
/// Those that the runtime runs.
llvm::ArrayRef<Image> allImages();
/// x86-64-v3, x86-64-v4 or aarch64; null for any other name.
const Image *findImage(llvm::StringRef cpu);

/// The kernels as readable MLIR (func, scf, arith, math, vector; loads and
/// stores of llvm), one func.func `<name><suffix>` per configuration, in the
/// order given, each once. Loads the dialects it
/// needs. What --emit=mlir and --dump-dir show.
mlir::OwningOpRef<mlir::ModuleOp>
buildKernels(mlir::MLIRContext &context, llvm::ArrayRef<KernelConfig> configs,
             const Image &image);

/// Lowers a module of buildKernels in place to the llvm dialect.
llvm::Error lowerToLLVMDialect(mlir::ModuleOp module);

/// Lowered, translated, optimised and gated LLVM IR of the kernels.
llvm::Expected<std::unique_ptr<llvm::Module>>
emitLLVM(llvm::LLVMContext &context, llvm::ArrayRef<KernelConfig> configs,
         const Image &image);
/// The same as text (--emit=llvm).
llvm::Expected<std::string> emitLLVMText(llvm::ArrayRef<KernelConfig> configs,
                                         const Image &image);

using ObjectCode = llvm::SmallVector<char, 0>;

/// One relocatable object with the kernels of one image; passed both gates.
llvm::Expected<ObjectCode>
emitKernelObject(llvm::ArrayRef<KernelConfig> configs, const Image &image);

/// The kernels of all images, compiled on `threads` threads (0: one per CPU).
/// Split into objects by the configurations alone, so the bytes do not depend
/// on the number of threads.
llvm::Expected<std::vector<ObjectCode>>
emitKernelObjects(llvm::ArrayRef<KernelConfig> configs,
                  llvm::ArrayRef<Image> images, unsigned threads = 0);

struct ArtifactOptions {
  /// Also define main(), which calls trc_model_main(argc, argv,
  /// &terrace_artifact), and __dso_handle, which gcc's start files would.
  bool executable = false;
};

/// The object that defines `terrace_artifact` (include/terrace-rt/artifact.h):
/// the plan's text and the table of kernels, in the order given.
llvm::Expected<ObjectCode> emitArtifactObject(
    llvm::StringRef planJson, llvm::ArrayRef<KernelConfig> configs,
    llvm::ArrayRef<Image> images, const ArtifactOptions &options = {});

/// Gate on the optimised IR: no fast-math flag, no llvm.fmuladd, no call but
/// the allowed ones (fma, sqrt, bits of the sign, max/min of integers,
/// prefetch, memory).
llvm::Error checkKernelIR(const llvm::Module &module);
/// Gate on an object: no undefined symbol but memcpy, memset, memmove.
llvm::Error checkKernelObject(llvm::StringRef object);

} // namespace terrace::codegen

#endif // TERRACE_CODEGEN_CODEGEN_H
