//===- PlanEffects.cpp - What each stage reads and writes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Must say the same as the table of ops in docs/artifact.md. Everything that
// the happens-before verifier proves starts from here.
//
//===----------------------------------------------------------------------===//
#include "dialects/plan/Plan.h"

using namespace mlir;
using namespace terrace::plan;

using Effects = SmallVectorImpl<PlanEffect>;

Value terrace::plan::getRingOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<TokenType>(value.getType()))
      return {};
    if (auto stage = dyn_cast<PlanStageOpInterface>(op))
      if (Value ring = stage.getRingOperand())
        return ring;
    if (auto check = dyn_cast<CheckOp>(op))
      value = check.getBatch();
    else if (auto translate = dyn_cast<TranslateOp>(op))
      value = translate.getIds();
    else if (auto touch = dyn_cast<TouchOp>(op))
      value = touch.getIds();
    else if (auto fill = dyn_cast<FillOp>(op))
      value = fill.getPins(); // the slots of the rows are in the probe's ring
    else
      return {};
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static void rows(Effects &effects, Access access, Role role, RowSet set,
                 FlatSymbolRefAttr group) {
  effects.push_back({access, role, set, group, Value()});
}

static void ring(Effects &effects, Access access, Value ring) {
  if (ring)
    effects.push_back({access, Role::Ring, RowSet::None, {}, ring});
}

static void cut(Effects &effects, Access access) {
  effects.push_back({access, Role::Cut, RowSet::None, {}, Value()});
}

/// Reads the ring behind `value`, said once.
static void read(Effects &effects, Value value) {
  Value from = getRingOf(value);
  if (from && llvm::none_of(effects, [&](const PlanEffect &effect) {
        return effect.ring == from && effect.access == Access::Read;
      }))
    ring(effects, Access::Read, from);
}

/// Reads its buffers (not those that it merely waits for), writes its ring.
static void buffers(Effects &effects, Operation *op) {
  auto stage = cast<PlanStageOpInterface>(op);
  size_t data = op->getNumOperands() - stage.getAfterOperands().size();
  for (Value operand : op->getOperands().take_front(data))
    read(effects, operand);
  ring(effects, Access::Write, stage.getRingOperand());
}

/// Whether a feature pools so; yes where plan.ingest does not say.
static bool mayPool(Operation *op, terrace::emb::Pooling pooling) {
  for (auto ingest : op->getBlock()->getOps<IngestOp>())
    if (ingest.getFeatures())
      return llvm::any_of(
          ingest.getFeatures()->getAsRange<FeatureAttr>(),
          [&](FeatureAttr feature) { return feature.getPooling() == pooling; });
  return true;
}

/// Offsets of the samples' bags lie in the batch.
static void readOffsets(Effects &effects, Operation *op) {
  for (auto ingest : op->getBlock()->getOps<IngestOp>())
    read(effects, ingest.getBatch());
}

/// The winners of `max` lie beside the pooled rows, per unique bag where an
/// output was expanded: gradients of outputs need them, with the inverse.
static void readWinners(Effects &effects, Value output) {
  auto expand = output.getDefiningOp<ExpandOp>();
  if (!expand)
    return read(effects, output);
  for (Value pooled : expand.getPooled())
    read(effects, pooled);
  read(effects, expand.getInverse());
}

//===----------------------------------------------------------------------===//
// Ids
//===----------------------------------------------------------------------===//

void IngestOp::getPlanEffects(Effects &effects) { buffers(effects, *this); }

void CheckOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  ring(effects, Access::Write, getRingOf(getBatch()));
}

void TranslateOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  ring(effects, Access::Write, getRingOf(getIds()));
}

void DedupOp::getPlanEffects(Effects &effects) { buffers(effects, *this); }

void UniqueOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  // Without a cache, rows seen for the first time get their value here.
  GroupOp group = getGroupOp(*this);
  if (!group || group.isCached())
    return;
  rows(effects, Access::Write, Role::Directory, RowSet::Miss, getGroupAttr());
  rows(effects, Access::Write, Role::Slots, RowSet::Miss, getGroupAttr());
}

void TouchOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Write, Role::Directory, RowSet::Miss, getGroupAttr());
  rows(effects, Access::Write, Role::Slots, RowSet::Miss, getGroupAttr());
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

void ProbeOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Write, Role::Directory, RowSet::Pin, getGroupAttr());
  rows(effects, Access::Write, Role::Directory, RowSet::Victim, getGroupAttr());
}

void SpillOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Read, Role::Slots, RowSet::Victim, getGroupAttr());
  rows(effects, Access::Write, Role::Directory, RowSet::Victim, getGroupAttr());
}

void StoreOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Write, Role::Home, RowSet::Victim, getGroupAttr());
}

void FetchOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Read, Role::Directory, RowSet::Miss, getGroupAttr());
  rows(effects, Access::Read, Role::Home, RowSet::Miss, getGroupAttr());
}

void FillOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Write, Role::Slots, RowSet::Miss, getGroupAttr());
}

void UnpinOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Write, Role::Directory, RowSet::Pin, getGroupAttr());
}

void PreserveOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Read, Role::Slots, RowSet::Pin, getGroupAttr());
  cut(effects, Access::Read);
}

void CopyOp::getPlanEffects(Effects &effects) { buffers(effects, *this); }

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

void GatherPoolOp::getPlanEffects(Effects &effects) {
  // A direct one looks at no unique rows, only at the ids.
  if (getDirect() && !getOccurrences().getDefiningOp<TouchOp>())
    ring(effects, Access::Write, getRing());
  else
    buffers(effects, *this);
  // Offsets and weights of the bags stay where plan.unique found them.
  if (auto unique = getOccurrences().getDefiningOp<UniqueOp>())
    for (Value bags : unique.getIds())
      read(effects, bags);
  rows(effects, Access::Read, Role::Slots, RowSet::Pin, getGroupAttr());
}

void ExpandOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  if (mayPool(*this, terrace::emb::Pooling::None))
    readOffsets(effects, *this);
}

void ReduceOp::getPlanEffects(Effects &effects) { buffers(effects, *this); }

void SegmentUpdateOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  rows(effects, Access::Write, Role::Slots, RowSet::Pin, getGroupAttr());
}

void CallOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  if (!mayPool(*this, terrace::emb::Pooling::Max))
    return;
  readOffsets(effects, *this);
  for (Value input : getInputs())
    readWinners(effects, input);
}

void HandoffOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  bool ofHead = llvm::any_of(getOutputs(), [](Value output) {
    return isa_and_nonnull<CallOp>(output.getDefiningOp());
  });
  if (!ofHead && mayPool(*this, terrace::emb::Pooling::None))
    readOffsets(effects, *this);
}

/// Whether a feature that `gather` pools has weights; yes where plan.ingest
/// does not say.
static bool mayWeigh(GatherPoolOp gather) {
  for (auto ingest : gather->getBlock()->getOps<IngestOp>())
    if (ingest.getFeatures())
      return llvm::any_of(
          ingest.getFeatures()->getAsRange<FeatureAttr>(),
          [&](FeatureAttr feature) {
            return feature.getWeights() &&
                   (!gather.getFeatures() ||
                    llvm::is_contained(*gather.getFeatures(),
                                       Attribute(feature.getName())));
          });
  return true;
}

/// What gradients of weights are made of: what the forward pass read, and what
/// it made of it.
static void readForWeights(Effects &effects, Operation *op) {
  for (auto gather : op->getBlock()->getOps<GatherPoolOp>()) {
    if (!mayWeigh(gather))
      continue;
    readOffsets(effects, op);
    SmallVector<PlanEffect> forward;
    gather.getPlanEffects(forward);
    for (const PlanEffect &effect : forward)
      if (effect.access == Access::Read && effect.role == Role::Ring)
        if (llvm::none_of(effects, [&](const PlanEffect &known) {
              return known.ring == effect.ring && known.access == Access::Read;
            }))
          effects.push_back(effect);
    rows(effects, Access::Read, Role::Slots, RowSet::Pin,
         gather.getGroupAttr());
    for (auto handoff : op->getBlock()->getOps<HandoffOp>())
      for (Value output : handoff.getOutputs()) {
        read(effects, output);
        if (auto expand = output.getDefiningOp<ExpandOp>())
          read(effects, expand.getInverse());
      }
  }
}

void ResumeOp::getPlanEffects(Effects &effects) {
  buffers(effects, *this);
  cut(effects, Access::Write); // any time before
  if (!getRing())
    return;
  readForWeights(effects, *this);
  // The trainer's gradients are laid out as the outputs that it was handed.
  bool max = mayPool(*this, terrace::emb::Pooling::Max);
  if (max || mayPool(*this, terrace::emb::Pooling::None))
    readOffsets(effects, *this);
  if (max)
    for (auto handoff : (*this)->getBlock()->getOps<HandoffOp>())
      for (Value output : handoff.getOutputs())
        readWinners(effects, output);
}

void ExchangeOp::getPlanEffects(Effects &effects) { buffers(effects, *this); }

//===----------------------------------------------------------------------===//
// MLIR's memory effects
//===----------------------------------------------------------------------===//

using MemoryEffect = SideEffects::EffectInstance<MemoryEffects::Effect>;

static SideEffects::Resource *resourceOf(Role role) {
  switch (role) {
  case Role::Directory:
    return DirectoryResource::get();
  case Role::Slots:
    return SlotsResource::get();
  case Role::Home:
    return HomeResource::get();
  case Role::Ring:
    return RingResource::get();
  case Role::Cut:
    return CutResource::get();
  }
  llvm_unreachable("covered switch");
}

void terrace::plan::detail::getMemoryEffects(
    Operation *op, SmallVectorImpl<MemoryEffect> &effects) {
  SmallVector<PlanEffect> planned;
  cast<PlanEffectsOpInterface>(op).getPlanEffects(planned);
  for (const PlanEffect &effect : planned) {
    MemoryEffects::Effect *kind = MemoryEffects::Read::get();
    if (effect.access == Access::Write)
      kind = MemoryEffects::Write::get();
    SideEffects::Resource *resource = resourceOf(effect.role);
    if (effect.group)
      effects.emplace_back(kind, effect.group, resource);
    else
      effects.emplace_back(kind, resource);
  }
  // Waits, pins and verdicts are more than their rows: no stage is dead.
  effects.emplace_back(MemoryEffects::Write::get(), RingResource::get());
}

void RingOp::getEffects(SmallVectorImpl<MemoryEffect> &effects) {
  effects.emplace_back(MemoryEffects::Allocate::get(),
                       cast<OpResult>(getResult()), RingResource::get());
}
