//===- PlanDialect.cpp - Registration and module attributes -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the dialect holds, and the rule of `plan.decision`.
//
//===----------------------------------------------------------------------===//
#include "dialects/plan/Plan.h"
#include "dialects/plan/PlanBytecode.h"

using namespace mlir;
using namespace terrace::plan;

#include "dialects/plan/PlanDialect.cpp.inc"
#include "dialects/plan/PlanEnums.cpp.inc"
#include "dialects/plan/PlanInterfaces.cpp.inc"

void PlanDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerBytecode(this);
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/PlanOps.cpp.inc"
      >();
}

LogicalResult PlanDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name != kDecision)
    return op->emitOpError("unknown attribute '") << name << "'";
  if (!isa<ModuleOp>(op))
    return op->emitOpError("attribute '") << name << "' belongs on a module";
  if (!isa<DecisionAttr>(attribute.getValue()))
    return op->emitOpError("attribute 'plan.decision' must be "
                           "#plan.decision<...>, not ")
           << attribute.getValue();
  return success();
}

DecisionAttr terrace::plan::getDecision(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<DecisionAttr>(PlanDialect::kDecision)
                : DecisionAttr();
}

GroupOp terrace::plan::getGroupOp(Operation *stage) {
  auto op = dyn_cast<PlanStageOpInterface>(stage);
  FlatSymbolRefAttr name = op ? op.getGroupRef() : FlatSymbolRefAttr();
  return name ? SymbolTable::lookupNearestSymbolFrom<GroupOp>(stage, name)
              : GroupOp();
}
