//===- EmbBytecode.cpp - Binary encoding of emb -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two lists below only grow at their ends. A parameter that is added raises
// the version and is marked with it, so that older files still read.
// Version 2: decoupled decay and clipping of the optimizers of version 1, and
// the rounding of rows. Version 3: the bias of rows.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/EmbBytecode.h"
#include "dialects/emb/Emb.h"

#include "dialects/emb/BytecodeFields.h"

using namespace mlir;

namespace terrace::emb {

static constexpr uint64_t kVersion = 3;

static uint64_t lastEnumerator(Pooling) { return getMaxEnumValForPooling(); }
static uint64_t lastEnumerator(IdKind) { return getMaxEnumValForIdKind(); }
static uint64_t lastEnumerator(TierKind) { return getMaxEnumValForTierKind(); }
static uint64_t lastEnumerator(Overflow) { return getMaxEnumValForOverflow(); }
static uint64_t lastEnumerator(ShardKind) {
  return getMaxEnumValForShardKind();
}
static uint64_t lastEnumerator(Direction) {
  return getMaxEnumValForDirection();
}

//===----------------------------------------------------------------------===//
// Parameters of each attribute and type, in the order of its `get`
//===----------------------------------------------------------------------===//

template <typename T> static SmallVector<T> copy(ArrayRef<T> list) {
  return SmallVector<T>(list);
}

static auto fieldsOf(PoolingAttr a) { return std::tuple(a.getValue()); }
static auto fieldsOf(IdKindAttr a) { return std::tuple(a.getValue()); }
static auto fieldsOf(TierKindAttr a) { return std::tuple(a.getValue()); }
static auto fieldsOf(OverflowAttr a) { return std::tuple(a.getValue()); }
static auto fieldsOf(DirectionAttr a) { return std::tuple(a.getValue()); }
static auto fieldsOf(RowAttr a) {
  return std::tuple(a.getElement(), a.getScale(),
                    bytecode::Since<2, bool>(a.getStochastic()),
                    bytecode::Since<3, Type>(a.getBias()));
}
using Added2 = bytecode::Since<2, F64>;
static auto fieldsOf(SGDAttr a) {
  return std::tuple(F64(a.getLr()), F64(a.getWeightDecay()),
                    Added2(a.getDecoupledDecay()), Added2(a.getClipNorm()));
}
static auto fieldsOf(AdagradAttr a) {
  return std::tuple(F64(a.getLr()), F64(a.getEps()), F64(a.getWeightDecay()),
                    Added2(a.getDecoupledDecay()), Added2(a.getClipNorm()));
}
static auto fieldsOf(RowwiseAdagradAttr a) {
  return std::tuple(F64(a.getLr()), F64(a.getEps()), F64(a.getWeightDecay()),
                    Added2(a.getDecoupledDecay()), Added2(a.getClipNorm()));
}
static auto fieldsOf(AdamAttr a) {
  return std::tuple(F64(a.getLr()), F64(a.getBeta1()), F64(a.getBeta2()),
                    F64(a.getEps()), F64(a.getWeightDecay()),
                    Added2(a.getDecoupledDecay()), Added2(a.getClipNorm()));
}
static auto fieldsOf(MomentumSGDAttr a) {
  return std::tuple(F64(a.getLr()), F64(a.getMomentum()),
                    F64(a.getWeightDecay()), F64(a.getDecoupledDecay()),
                    F64(a.getClipNorm()));
}
static auto fieldsOf(PartialRowwiseAdamAttr a) {
  return std::tuple(F64(a.getLr()), F64(a.getBeta1()), F64(a.getBeta2()),
                    F64(a.getEps()), F64(a.getWeightDecay()),
                    F64(a.getDecoupledDecay()), F64(a.getClipNorm()));
}
static auto fieldsOf(LambAttr a) {
  return std::tuple(F64(a.getLr()), F64(a.getBeta1()), F64(a.getBeta2()),
                    F64(a.getEps()), F64(a.getWeightDecay()),
                    F64(a.getClipNorm()));
}
static auto fieldsOf(FtrlAttr a) {
  return std::tuple(F64(a.getLr()), F64(a.getBeta()), F64(a.getL1()),
                    F64(a.getL2()), F64(a.getClipNorm()));
}
static auto fieldsOf(UniformAttr a) {
  return std::tuple(F64(a.getLow()), F64(a.getHigh()));
}
static auto fieldsOf(NormalAttr a) {
  return std::tuple(F64(a.getMean()), F64(a.getStd()));
}
static auto fieldsOf(ConstantAttr a) { return std::tuple(F64(a.getValue())); }
static auto fieldsOf(MachineAttr a) {
  return std::tuple(a.getCpu(), a.getCores(), a.getGpu(), a.getFigures());
}
static auto fieldsOf(ShardsAttr a) {
  return std::tuple(a.getKind(), copy(a.getWorkers()), copy(a.getBounds()));
}
static auto fieldsOf(PlacementAttr a) {
  return std::tuple(a.getHome(), a.getCache(), a.getRetained(), a.getPolicy());
}
static auto fieldsOf(ProfileAttr a) {
  return std::tuple(a.getBatches(), a.getBatch(), F64(a.getIds()),
                    a.getMaxIds(), F64(a.getUniqueIds()), a.getMaxUniqueIds(),
                    F64(a.getUniqueBags()), F64(a.getUniqueBagIds()),
                    F64(a.getSamplesPerSession()), a.getDistinctIds(),
                    a.getCold(), copy(a.getReuse()), copy(a.getCacheRows()),
                    copy(a.getMissRatio()));
}

static auto fieldsOf(BagsType t) {
  return std::tuple(t.getBatch(), t.getMaxIds(), t.getId(), t.getChecked(),
                    t.getWeighted());
}
static auto fieldsOf(InverseType t) { return std::tuple(t.getBatch()); }
static auto fieldsOf(StateType t) {
  return std::tuple(t.getRows(), t.getDim(), t.getRow());
}

using Attributes =
    bytecode::List<Attribute, PoolingAttr, IdKindAttr, TierKindAttr,
                   OverflowAttr, DirectionAttr, RowAttr, SGDAttr, AdagradAttr,
                   RowwiseAdagradAttr, AdamAttr, UniformAttr, NormalAttr,
                   ConstantAttr, MachineAttr, ShardsAttr, PlacementAttr,
                   ProfileAttr, MomentumSGDAttr, PartialRowwiseAdamAttr,
                   LambAttr, FtrlAttr>;
using Types = bytecode::List<Type, BagsType, InverseType, StateType>;

void registerBytecode(EmbDialect *dialect) {
  dialect->addInterfaces<bytecode::Interface<Attributes, Types, kVersion>>();
}

} // namespace terrace::emb
