//===- EmbInterfaces.td - Interfaces of emb attributes -----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes ask of any optimizer and of any row initialiser, so that a new
// one is one attribute and not a case in every pass.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_EMB_INTERFACES
#define TERRACE_EMB_INTERFACES

include "mlir/IR/OpBase.td"

def Emb_OptimizerInterface : AttrInterface<"OptimizerAttrInterface"> {
  let cppNamespace = "::terrace::emb";
  let description = [{A fused optimizer with its hyper-parameters (f64).}];
  let methods = [
    InterfaceMethod<"Name in specs, kernels and artifacts.",
      "::llvm::StringRef", "getKindName">,
    InterfaceMethod<"f32 values of optimizer state for one row of `dim` columns.",
      "int64_t", "getStateFloats", (ins "int64_t":$dim)>,
    InterfaceMethod<[{Whether a column's update needs no other column, so that
      column shards may update alone.}], "bool", "isColumnSeparable">,
    InterfaceMethod<"Learning rate.", "double", "getLr">,
    InterfaceMethod<"Weight decay in the gradient, 0 for none.",
      "double", "getWeightDecay">,
    InterfaceMethod<"Weight decay apart from the gradient, 0 for none.",
      "double", "getDecoupledDecay">,
    InterfaceMethod<"Largest norm of a row's gradient, 0 for any.",
      "double", "getClipNorm">,
    InterfaceMethod<"Name and value of each hyper-parameter, in printing order.",
      "::llvm::SmallVector<std::pair<::llvm::StringRef, double>>",
      "getHyperParameters">,
  ];
}

def Emb_InitInterface : AttrInterface<"InitAttrInterface"> {
  let cppNamespace = "::terrace::emb";
  let description = [{The value of rows that were never written.}];
  let methods = [
    InterfaceMethod<"Name in specs and artifacts.",
      "::llvm::StringRef", "getKindName">,
    InterfaceMethod<"Name and value of each parameter, in printing order.",
      "::llvm::SmallVector<std::pair<::llvm::StringRef, double>>",
      "getParameters">,
  ];
}

#endif // TERRACE_EMB_INTERFACES
