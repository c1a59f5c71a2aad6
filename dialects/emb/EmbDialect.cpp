//===- EmbDialect.cpp - Registration and module attributes ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the dialect holds, and the rules of the attributes that it defines on a
// module.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/Emb.h"
#include "dialects/emb/EmbAsm.h"
#include "dialects/emb/EmbBytecode.h"

using namespace mlir;
using namespace terrace::emb;

#include "dialects/emb/EmbDialect.cpp.inc"
#include "dialects/emb/EmbEnums.cpp.inc"
#include "dialects/emb/EmbInterfaces.cpp.inc"

void EmbDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerBytecode(this);
  registerAsm(this);
  addOperations<
#define GET_OP_LIST
#include "dialects/emb/EmbOps.cpp.inc"
      >();
}

static LogicalResult verifyChoice(Operation *op, NamedAttribute attribute,
                                  ArrayRef<StringRef> allowed) {
  auto text = dyn_cast<StringAttr>(attribute.getValue());
  if (text && llvm::is_contained(allowed, text.getValue()))
    return success();
  return op->emitOpError("attribute '")
         << attribute.getName().getValue() << "' must be \"" << allowed[0]
         << "\" or \"" << allowed[1] << "\", not " << attribute.getValue();
}

LogicalResult EmbDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (!isa<ModuleOp>(op))
    return op->emitOpError("attribute '") << name << "' belongs on a module";
  if (name == kMachine) {
    if (isa<MachineAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("attribute 'emb.machine' must be #emb.machine<...>, "
                           "not ")
           << attribute.getValue();
  }
  if (name == kNumerics)
    return verifyChoice(op, attribute, {"strict", "reassociate"});
  if (name == kOnBadId)
    return verifyChoice(op, attribute, {"error", "drop"});
  if (name == kOnBadGrad)
    return verifyChoice(op, attribute, {"error", "skip"});
  if (name == kStoreSpace) {
    auto space = dyn_cast<FloatAttr>(attribute.getValue());
    if (space && space.getType().isF64() && space.getValueAsDouble() >= 1.25 &&
        space.getValueAsDouble() <= 1000)
      return success();
    return op->emitOpError("attribute 'emb.store_space' must be an f64 from "
                           "1.25 to 1000, not ")
           << attribute.getValue();
  }
  if (name == kStoreRetained) {
    auto retained = dyn_cast<IntegerAttr>(attribute.getValue());
    if (retained && retained.getType().isInteger(64) && retained.getInt() >= 1)
      return success();
    return op->emitOpError("attribute 'emb.store_retained' must be an i64 from "
                           "1, not ")
           << attribute.getValue();
  }
  if (name == kSeed) {
    auto seed = dyn_cast<IntegerAttr>(attribute.getValue());
    if (seed && seed.getType().isInteger(64))
      return success();
    return op->emitOpError("attribute 'emb.seed' must be an i64, not ")
           << attribute.getValue();
  }
  if (name == kModel) {
    if (isa<StringAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("attribute 'emb.model' must be a string, not ")
           << attribute.getValue();
  }
  if (name == kPins) {
    if (isa<DictionaryAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("attribute 'emb.pins' must be a dictionary, not ")
           << attribute.getValue();
  }
  return op->emitOpError("unknown attribute '") << name << "'";
}

template <typename AttrT>
static AttrT getModuleAttr(Operation *op, StringRef name) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<AttrT>(name) : AttrT();
}

bool terrace::emb::isStrict(Operation *op) {
  auto numerics = getModuleAttr<StringAttr>(op, EmbDialect::kNumerics);
  return !numerics || numerics.getValue() == "strict";
}

double terrace::emb::storeSpaceOf(Operation *op) {
  auto space = getModuleAttr<FloatAttr>(op, EmbDialect::kStoreSpace);
  return space ? space.getValueAsDouble() : 2.0;
}

int64_t terrace::emb::storeRetainedOf(Operation *op) {
  auto retained = getModuleAttr<IntegerAttr>(op, EmbDialect::kStoreRetained);
  return retained ? retained.getInt() : 1;
}

MachineAttr terrace::emb::getMachine(Operation *op) {
  return getModuleAttr<MachineAttr>(op, EmbDialect::kMachine);
}

uint64_t terrace::emb::getSeed(Operation *op) {
  auto seed = getModuleAttr<IntegerAttr>(op, EmbDialect::kSeed);
  return seed ? seed.getValue().getZExtValue() : 0;
}
