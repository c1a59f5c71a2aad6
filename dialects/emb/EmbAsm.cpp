//===- EmbAsm.cpp - Names in printed IR -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// IR is read by people: values carry the names of their features and tables,
// and long types are written once, under names that say their sizes.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/EmbAsm.h"
#include "dialects/emb/Emb.h"

using namespace mlir;
using namespace terrace::emb;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

using SetName = OpAsmSetValueNameFn;

/// `stem`, or the stem and what the value belongs to.
static void name(SetName set, Value value, StringRef stem, StringRef of = {}) {
  set(value, of.empty() ? stem.str() : (stem + "_" + of).str());
}

static StringRef featureOf(Value bags) {
  FeatureOp feature = getFeatureOfBags(bags);
  return feature ? feature.getName() : StringRef();
}

void ScalarOp::getAsmResultNames(SetName set) { set(getResult(), getName()); }

void SamplesOp::getAsmResultNames(SetName set) { set(getResult(), "samples"); }

void FeatureOp::getAsmResultNames(SetName set) {
  name(set, getResult(), isBags() ? "raw" : "column", getName());
}

void CheckOp::getAsmResultNames(SetName set) {
  for (auto [bags, result] : llvm::zip(getBags(), getResults()))
    name(set, result, "ids", featureOf(bags));
}

void TranslateOp::getAsmResultNames(SetName set) {
  name(set, getResult(), "rows", featureOf(getBags()));
}

void DedupOp::getAsmResultNames(SetName set) {
  for (auto [bags, result] : llvm::zip(getBags(), getUnique()))
    name(set, result, "unique", featureOf(bags));
  name(set, getInverse(), "inverse", getGroup() ? *getGroup() : StringRef());
}

void StateOp::getAsmResultNames(SetName set) {
  name(set, getResult(), "state", getTable());
}

void LookupOp::getAsmResultNames(SetName set) {
  name(set, getPooled(), "pooled", featureOf(getBags()));
  if (getWinner())
    name(set, getWinner(), "winner", featureOf(getBags()));
}

void ExpandOp::getAsmResultNames(SetName set) {
  auto lookup = getPooled().getDefiningOp<LookupOp>();
  name(set, getResult(), "expanded",
       lookup ? featureOf(lookup.getBags()) : StringRef());
}

void DenseOp::getAsmResultNames(SetName set) {
  if (getNumResults())
    set(getResult(0), hasGradients() ? "grads" : "predictions");
}

void ReduceOp::getAsmResultNames(SetName set) { set(getResult(), "reduced"); }

void UpdateOp::getAsmResultNames(SetName set) {
  FlatSymbolRefAttr table = getTableRef();
  name(set, getResult(), "updated", table ? table.getValue() : StringRef());
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

namespace {
struct EmbAsm : OpAsmDialectInterface {
  explicit EmbAsm(Dialect *dialect) : OpAsmDialectInterface(dialect) {}

  AliasResult getAlias(Type type, raw_ostream &os) const override {
    if (auto bags = dyn_cast<BagsType>(type)) {
      os << (!bags.getChecked()       ? "raw"
             : bags.hasDynamicBatch() ? "unique"
                                      : "ids");
      if (!bags.hasDynamicBatch())
        os << '_' << bags.getBatch();
      os << "_max" << bags.getMaxIds() << (bags.getWeighted() ? "_w" : "");
      return AliasResult::FinalAlias;
    }
    if (auto state = dyn_cast<StateType>(type)) {
      os << "state_" << state.getRows() << 'x' << state.getDim() << 'x'
         << state.getRow().getElement();
      return AliasResult::FinalAlias;
    }
    return AliasResult::NoAlias;
  }
};
} // namespace

void terrace::emb::registerAsm(EmbDialect *dialect) {
  dialect->addInterfaces<EmbAsm>();
}
