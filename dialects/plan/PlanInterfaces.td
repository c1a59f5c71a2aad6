//===- PlanInterfaces.td - Schedule and effects of an op ---*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All that the scheduler and the happens-before verifier know about an op, so
// that a new op is covered as soon as it states its effects.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_PLAN_INTERFACES
#define TERRACE_PLAN_INTERFACES

include "mlir/IR/OpBase.td"

def Plan_StageInterface : OpInterface<"PlanStageOpInterface"> {
  let cppNamespace = "::terrace::plan";
  let description = [{
    An op of a pipeline's body: one stage of one batch. `at(@lane, ahead)` is
    optional; its waits are its operands.
  }];
  let methods = [
    InterfaceMethod<"The lane it runs on, null where unscheduled.",
      "::mlir::FlatSymbolRefAttr", "getLaneAttr">,
    InterfaceMethod<"Batches ahead, 0 where unscheduled.",
      "int64_t", "getAheadOr0">,
    InterfaceMethod<"Schedules the op; a null lane takes the schedule away.",
      "void", "setSchedule", (ins "::mlir::FlatSymbolRefAttr":$lane,
                                  "int64_t":$ahead)>,
    InterfaceMethod<"The group it works on, null for none.",
      "::mlir::FlatSymbolRefAttr", "getGroupRef">,
    InterfaceMethod<"The ring it writes into, null for none.",
      "::mlir::Value", "getRingOperand">,
    InterfaceMethod<"Extra waits, in `after(...)`.",
      "::mlir::OperandRange", "getAfterOperands">,
    InterfaceMethod<"Extra waits, to edit.",
      "::mlir::MutableOperandRange", "getAfterOperandsMutable">,
    InterfaceMethod<"Whether a lane of this kind can run it.",
      "bool", "canRunOn", (ins "::terrace::plan::LaneKind":$kind)>,
    InterfaceMethod<"Features it names, null for none.",
      "::mlir::ArrayAttr", "getFeatureNames">,
  ];
  let verify = [{ return ::terrace::plan::detail::verifyStage($_op); }];
}

def Plan_EffectsInterface : OpInterface<"PlanEffectsOpInterface"> {
  let cppNamespace = "::terrace::plan";
  let description = [{
    What an op of a pipeline reads and writes, as (role, group, row set).
    The happens-before verifier derives every rule from this.
  }];
  let methods = [
    InterfaceMethod<"Appends the op's effects.", "void", "getPlanEffects",
      (ins "::llvm::SmallVectorImpl<::terrace::plan::PlanEffect> &":$effects)>,
  ];
}

#endif // TERRACE_PLAN_INTERFACES
