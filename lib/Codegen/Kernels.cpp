//===- Kernels.cpp - The module of kernels ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images and the readable module.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelBuilder.h"

#include "terrace-rt/artifact.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace terrace::codegen;

static constexpr Image images[] = {
    {"x86-64-v3", "_v3", TRC_CPU_V3, 8, 16},
    {"x86-64-v4", "_v4", TRC_CPU_V4, 16, 32},
};

/// 16 vectors of 8 floats are its 32 registers of 4.
static constexpr Image aarch64 = {"aarch64", "_aarch64", -1, 8, 16};

ArrayRef<Image> terrace::codegen::allImages() { return images; }

const Image *terrace::codegen::findImage(StringRef cpu) {
  for (const Image &image : images)
    if (cpu == image.cpu)
      return &image;
  return cpu == aarch64.cpu ? &aarch64 : nullptr;
}

OwningOpRef<ModuleOp> terrace::codegen::buildKernels(
    MLIRContext &context, ArrayRef<KernelConfig> configs, const Image &image) {
  context
      .loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect,
                   math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(UnknownLoc::get(&context), image.cpu);
  for (const KernelConfig &config : configs) {
    KernelBuilder builder(*module, config, image);
    if (config.kind == KernelKind::GatherPool)
      buildGatherPool(builder);
    else
      buildSegmentUpdate(builder);
  }
  // The builder repeats constants and addresses at will.
  PassManager cse(&context);
  cse.addPass(createCSEPass());
  if (failed(cse.run(*module)))
    llvm_unreachable("CSE never fails");
  return module;
}
