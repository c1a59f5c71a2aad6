//===- PlanBytecode.cpp - Binary encoding of plan ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Version 1, by the same rules as EmbBytecode.cpp: lists grow at their ends,
// a change of meaning raises the version.
//
//===----------------------------------------------------------------------===//
#include "dialects/plan/PlanBytecode.h"
#include "dialects/plan/Plan.h"

#include "dialects/emb/BytecodeFields.h"

using namespace mlir;

namespace terrace::emb {
// Found by the enum's namespace.
static uint64_t lastEnumerator(Pooling) { return getMaxEnumValForPooling(); }
static uint64_t lastEnumerator(Overflow) { return getMaxEnumValForOverflow(); }
} // namespace terrace::emb

namespace terrace::plan {

static constexpr uint64_t kVersion = 3;

static uint64_t lastEnumerator(LaneKind) { return getMaxEnumValForLaneKind(); }
static uint64_t lastEnumerator(KernelKind) {
  return getMaxEnumValForKernelKind();
}
static uint64_t lastEnumerator(OptimizerKind) {
  return getMaxEnumValForOptimizerKind();
}
static uint64_t lastEnumerator(RingRole) { return getMaxEnumValForRingRole(); }

//===----------------------------------------------------------------------===//
// Parameters of each attribute and type, in the order of its `get`
//===----------------------------------------------------------------------===//

static auto fieldsOf(LaneKindAttr a) { return std::tuple(a.getValue()); }
static auto fieldsOf(KernelKindAttr a) { return std::tuple(a.getValue()); }
static auto fieldsOf(RingRoleAttr a) { return std::tuple(a.getValue()); }
static auto fieldsOf(RecordAttr a) {
  return std::tuple(a.getDim(), a.getElement(), a.getStateBytes(),
                    a.getHeaderBytes(), a.getSlotBytes(), a.getStoreBytes());
}
static auto fieldsOf(KernelConfigAttr a) {
  return std::tuple(a.getDim(), a.getElement(), a.getPooling(), a.getWeighted(),
                    a.getOptimizer(), a.getDecay(),
                    bytecode::Since<2, bool>(a.getDecoupled()),
                    bytecode::Since<2, bool>(a.getClip()),
                    bytecode::Since<2, bool>(a.getStochastic()),
                    bytecode::Since<3, bool>(a.getDirect()));
}
static auto fieldsOf(FeatureAttr a) {
  return std::tuple(a.getName(), a.getTable(), a.getPooling(), a.getMaxIds(),
                    a.getColumn(), a.getWeights(), a.getOverflow(),
                    a.getStringIds(), a.getDedup(), a.getKernel(),
                    a.getOutput());
}
static auto fieldsOf(TableDecisionAttr a) {
  return std::tuple(a.getName(), a.getHome(), a.getCache(), a.getRetained(),
                    a.getPolicy(), a.getShards());
}
static auto fieldsOf(DecisionAttr a) {
  return std::tuple(a.getLookahead(),
                    SmallVector<TableDecisionAttr>(a.getTables()));
}

static std::tuple<> fieldsOf(RingType) { return {}; }
static std::tuple<> fieldsOf(BufType) { return {}; }
static std::tuple<> fieldsOf(TokenType) { return {}; }
static std::tuple<> fieldsOf(PinsType) { return {}; }
static std::tuple<> fieldsOf(MissesType) { return {}; }
static std::tuple<> fieldsOf(VictimsType) { return {}; }
static std::tuple<> fieldsOf(RowsType) { return {}; }

using Attributes = bytecode::List<Attribute, LaneKindAttr, KernelKindAttr,
                                  RingRoleAttr, RecordAttr, KernelConfigAttr,
                                  FeatureAttr, TableDecisionAttr, DecisionAttr>;
using Types = bytecode::List<Type, RingType, BufType, TokenType, PinsType,
                             MissesType, VictimsType, RowsType>;

void registerBytecode(PlanDialect *dialect) {
  dialect->addInterfaces<bytecode::Interface<Attributes, Types, kVersion>>();
}

} // namespace terrace::plan
