//===- terrace-opt.cpp - Runs passes on IR text -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work horse of the lit tests: parses, verifies, runs passes, prints.
//
//===----------------------------------------------------------------------===//
#include "Pipelines/Pipelines.h"
#include "dialects/emb/Emb.h"
#include "dialects/plan/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<terrace::emb::EmbDialect, terrace::plan::PlanDialect,
                  mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::registerTransformsPasses();
  terrace::registerTerracePasses();
  terrace::registerTerracePipelines();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Terrace's optimizer driver\n", registry));
}
