//===- PlanProgramVerifiers.cpp - Rules of symbols and pipelines -*- C++ -*-==//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes, groups, kernels, rings, programs, and what a pipeline must hold as a
// whole: one probe, fetch, fill and unpin per pin set, one update per group.
//
//===----------------------------------------------------------------------===//
#include "dialects/plan/Plan.h"

using namespace mlir;
using namespace terrace;
using namespace terrace::plan;

static LogicalResult verifyAtLeast(Operation *op, StringRef what,
                                   std::optional<int64_t> value,
                                   int64_t least) {
  if (!value || *value >= least)
    return success();
  return op->emitOpError() << what << " must be at least " << least << ", not "
                           << *value;
}

//===----------------------------------------------------------------------===//
// Lanes, kernels, rings
//===----------------------------------------------------------------------===//

LogicalResult LaneOp::verify() {
  if (getDepth() && getKind() != LaneKind::IO)
    return emitOpError("a lane of kind ")
           << stringifyLaneKind(getKind())
           << " takes no depth: it runs in order, one stage at a time";
  return verifyAtLeast(*this, "depth", getDepth(), 1);
}

LogicalResult KernelOp::verify() {
  KernelConfigAttr config = getConfig();
  if (getKind() == KernelKind::GatherPool &&
      (config.getOptimizer() != OptimizerKind::SGD || config.getDecay() ||
       config.getDecoupled() || config.getClip() || config.getStochastic()))
    return emitOpError("a gather_pool takes no optimizer, no decay, no "
                       "clipping and no rounding");
  if (getKind() == KernelKind::SegmentUpdate &&
      (config.getPooling() != emb::Pooling::Sum || config.getWeighted() ||
       config.getDirect()))
    return emitOpError("a segment_update takes no pooling and no weights, and "
                       "is never direct");
  return success();
}

LogicalResult RingOp::verify() {
  if (failed(verifyAtLeast(*this, "bytes", int64_t(getBytes()), 1)) ||
      failed(verifyAtLeast(*this, "depth", int64_t(getDepth()), 1)) ||
      failed(verifyAtLeast(*this, "offset", getOffset(), 0)) ||
      failed(verifyAtLeast(*this, "chunks", getChunks(), 1)))
    return failure();
  if (getChunks() && getRole() && *getRole() != RingRole::Staging)
    return emitOpError("only a staging ring takes chunks, not role ")
           << stringifyRingRole(*getRole());
  auto program = cast<ProgramOp>((*this)->getParentOp());
  if (!getOffset() || !program.getArena())
    return success();
  int64_t end = int64_t(*getOffset()) + int64_t(getBytes() * getDepth());
  if (end > int64_t(*program.getArena()))
    return emitOpError("ends at byte ")
           << end << ", but the arena has " << int64_t(*program.getArena());
  return success();
}

LogicalResult RingOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto tier =
      symbols.lookupNearestSymbolFrom<emb::TierOp>(*this, getTierAttr());
  if (!tier)
    return emitOpError() << getTierAttr() << " is not an emb.tier";
  if (tier.getKind() == emb::TierKind::NVMe)
    return emitOpError("a ring lies in memory, but ")
           << getTierAttr() << " is of kind nvme";
  if (getGroupAttr() &&
      !symbols.lookupNearestSymbolFrom<GroupOp>(*this, getGroupAttr()))
    return emitOpError() << getGroupAttr() << " is not a plan.group";
  return success();
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

LogicalResult GroupOp::verify() {
  if (getTables().empty())
    return emitOpError("needs at least one table");
  llvm::SmallDenseSet<Attribute> seen;
  for (Attribute table : getTables())
    if (!seen.insert(table).second)
      return emitOpError("has ") << table << " twice";
  if (!isCached() &&
      (getRetained() || getSlots() || getPolicy() || getMaxMiss()))
    return emitOpError("retained, slots, policy and miss belong to a cache");
  if (getCacheAttr() == getHomeAttr())
    return emitOpError("cache and home are both ") << getHomeAttr();
  if (failed(verifyAtLeast(*this, "retained", getRetained(), 0)) ||
      failed(verifyAtLeast(*this, "slots", getSlots(), 1)) ||
      failed(verifyAtLeast(*this, "rows", getRows(), 1)) ||
      failed(verifyAtLeast(*this, "occurrences", getMaxOccurrences(), 1)) ||
      failed(verifyAtLeast(*this, "unique", getMaxUnique(), 1)) ||
      failed(verifyAtLeast(*this, "miss", getMaxMiss(), 0)))
    return failure();
  if (getSlots() && getRetained() && *getSlots() < *getRetained())
    return emitOpError("slots = ")
           << *getSlots() << " are fewer than retained = " << *getRetained();
  if (getMaxUnique() && getMaxOccurrences() &&
      *getMaxUnique() > *getMaxOccurrences())
    return emitOpError("unique = ")
           << *getMaxUnique()
           << " is more than occurrences = " << *getMaxOccurrences();
  if (getMaxUnique() && getRows() && *getMaxUnique() > *getRows())
    return emitOpError("unique = ")
           << *getMaxUnique() << " is more than rows = " << *getRows();
  if (getMaxMiss() && getMaxUnique() && *getMaxMiss() > *getMaxUnique())
    return emitOpError("miss = ")
           << *getMaxMiss() << " is more than unique = " << *getMaxUnique();
  if (!getBases())
    return success();
  ArrayRef<int64_t> bases = *getBases();
  if (bases.size() != getTables().size())
    return emitOpError("has ")
           << getTables().size() << " tables but " << bases.size() << " bases";
  if (bases.front() != 0)
    return emitOpError("the first base must be 0, not ") << bases.front();
  for (size_t i = 1; i < bases.size(); ++i)
    if (bases[i] <= bases[i - 1])
      return emitOpError("bases must rise, but ")
             << bases[i] << " follows " << bases[i - 1];
  return success();
}

/// A table must have the record that the group has.
static LogicalResult verifyMember(GroupOp group, emb::TableOp table,
                                  emb::TableOp first, unsigned i) {
  RecordAttr record = group.getRecord();
  emb::RowAttr row = table.getStateType().getRow();
  if (table.getDim() != record.getDim() ||
      row.getElement() != record.getElement())
    return group.emitOpError("its records are ")
           << record.getDim() << " x " << record.getElement() << ", but table @"
           << table.getSymName() << " has rows of " << table.getDim() << " x "
           << row.getElement();
  int64_t state = 4 * table.getOptimizer().getStateFloats(table.getDim());
  if (state != record.getStateBytes())
    return group.emitOpError("its records hold ")
           << record.getStateBytes() << " bytes of optimizer state, but table @"
           << table.getSymName() << " needs " << state;
  if (row != first.getStateType().getRow())
    return group.emitOpError("its tables share one kernel set, but @")
           << table.getSymName() << " has " << row << " and @"
           << first.getSymName() << " has " << first.getStateType().getRow();
  if (table.getOptimizer() != first.getOptimizer())
    return group.emitOpError("its tables share one kernel set, but @")
           << table.getSymName() << " has " << table.getOptimizer() << " and @"
           << first.getSymName() << " has " << first.getOptimizer();
  if (!group.getBases())
    return success();
  ArrayRef<int64_t> bases = *group.getBases();
  int64_t end = bases[i] + table.getRows();
  if (i + 1 < bases.size() && bases[i + 1] < end)
    return group.emitOpError("rows of @")
           << table.getSymName() << " end at " << end
           << ", but the next table begins at " << bases[i + 1];
  if (group.getRows() && int64_t(*group.getRows()) < end)
    return group.emitOpError("rows of @")
           << table.getSymName() << " end at " << end << ", but the group has "
           << int64_t(*group.getRows());
  return success();
}

/// A table is in one group. Checked once for all groups, at the first of them.
static LogicalResult verifyDisjoint(GroupOp group) {
  auto groups = group->getBlock()->getOps<GroupOp>();
  if (*groups.begin() != group)
    return success();
  llvm::DenseMap<Attribute, GroupOp> owners;
  for (GroupOp other : groups)
    for (Attribute table : other.getTables()) {
      auto [owner, isNew] = owners.try_emplace(table, other);
      if (!isNew && owner->second != other)
        return other.emitOpError() << table << " is in group @"
                                   << owner->second.getSymName() << " already";
    }
  return success();
}

LogicalResult GroupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto tier = [&](FlatSymbolRefAttr name) {
    return symbols.lookupNearestSymbolFrom<emb::TierOp>(*this, name);
  };
  emb::TierOp home = tier(getHomeAttr());
  if (!home)
    return emitOpError("home ") << getHomeAttr() << " is not an emb.tier";
  if (!isCached() && home.getKind() == emb::TierKind::NVMe)
    return emitOpError("home ")
           << getHomeAttr()
           << " is of kind nvme: its rows cannot be used in place, so that a "
              "cache is needed";
  if (isCached()) {
    emb::TierOp cache = tier(getCacheAttr());
    if (!cache)
      return emitOpError("cache ") << getCacheAttr() << " is not an emb.tier";
    if (cache.getKind() != emb::TierKind::DRAM &&
        cache.getKind() != emb::TierKind::HBM)
      return emitOpError("a cache lies in hbm or dram, but ")
             << getCacheAttr() << " is of kind "
             << emb::stringifyTierKind(cache.getKind());
  }
  emb::TableOp first;
  for (auto [i, name] :
       llvm::enumerate(getTables().getAsRange<FlatSymbolRefAttr>())) {
    emb::TableOp table;
    if (failed(
            terrace::plan::detail::verifyTable(*this, name, symbols, &table)))
      return failure();
    if (!table)
      continue;
    if (!first)
      first = table;
    if (failed(verifyMember(*this, table, first, i)))
      return failure();
  }
  if (failed(verifyDisjoint(*this)))
    return failure();
  return getUpdateKernelAttr()
             ? terrace::plan::detail::verifyKernel(
                   *this, getUpdateKernelAttr(), KernelKind::SegmentUpdate,
                   getRecord(), symbols, nullptr)
             : success();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verify() {
  if (int64_t(getWorkers()) < 1 || int64_t(getWorker()) < 0 ||
      getWorker() >= getWorkers())
    return emitOpError("worker ") << int64_t(getWorker()) << " is not one of "
                                  << int64_t(getWorkers());
  if (failed(verifyAtLeast(*this, "batch", getBatch(), 1)) ||
      failed(verifyAtLeast(*this, "max_ids", getMaxIds(), 1)) ||
      failed(verifyAtLeast(*this, "lookahead", getLookahead(), 0)) ||
      failed(verifyAtLeast(*this, "arena", getArena(), 1)))
    return failure();
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  int64_t pipelines = 0;
  for (Operation &op : getBody().front()) {
    if (isa<PipelineOp>(op))
      ++pipelines;
    else if (!isa<RingOp>(op))
      return op.emitOpError("does not belong into a program: it holds rings "
                            "and a pipeline");
  }
  if (pipelines != 1)
    return emitOpError("has one pipeline, not ") << pipelines;
  return success();
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

LogicalResult PipelineOp::verify() {
  if (getBody().getNumArguments() != getDistances().size())
    return emitOpError("has ")
           << getBody().getNumArguments() << " carried values but "
           << getDistances().size() << " distances";
  for (int64_t distance : getDistances())
    if (distance < 1)
      return emitOpError("a value is carried at least 1 batch, not ")
             << distance;
  for (Type type : getBody().getArgumentTypes())
    if (!isa<TokenType>(type))
      return emitOpError("carries tokens, not ") << type;
  return success();
}

namespace {
/// The stages of one group, at most one of each kind.
struct GroupStages {
  UniqueOp unique;
  ProbeOp probe;
  SpillOp spill;
  StoreOp store;
  FetchOp fetch;
  FillOp fill;
  SegmentUpdateOp update;
  UnpinOp unpin;
};
} // namespace

/// Remembers `op`, or says that there is one already.
template <typename OpT> static LogicalResult takeOne(OpT &slot, Operation &op) {
  auto taken = dyn_cast<OpT>(op);
  if (!taken)
    return success();
  if (!slot) {
    slot = taken;
    return success();
  }
  InFlightDiagnostic error = op.emitOpError("a pipeline has one for group ")
                             << taken.getGroupAttr();
  error.attachNote(slot.getLoc()) << "the first is here";
  return error;
}

static LogicalResult verifyGroupStages(const GroupStages &stages) {
  ProbeOp probe = stages.probe;
  if (!probe)
    return success();
  auto missing = [&](StringRef what) {
    return probe.emitOpError("pins rows of ")
           << probe.getGroupAttr() << ", but there is no " << what;
  };
  if (!stages.fetch)
    return missing("plan.fetch for those that miss");
  if (!stages.fill)
    return missing("plan.fill to make them ready");
  if (!stages.unpin)
    return missing("plan.unpin to let them go");
  if (stages.update && (!stages.spill || !stages.store))
    return missing("plan.spill and plan.store: updates of its victims would be "
                   "lost");
  if (stages.spill && !stages.store)
    return missing("plan.store for what plan.spill copies out");
  FlatSymbolRefAttr from = probe.getLaneAttr();
  UnpinOp unpin = stages.unpin;
  FlatSymbolRefAttr to = unpin.getLaneAttr();
  if (from && to && from != to)
    return unpin.emitOpError("runs on ")
           << to << ", but plan.probe of the group on " << from
           << ": both edit the directory and need one lane";
  return success();
}

LogicalResult PipelineOp::verifyRegions() {
  llvm::MapVector<Attribute, GroupStages> groups;
  llvm::DenseMap<Value, Operation *> writers;
  unsigned ingests = 0, checks = 0, handoffs = 0, resumes = 0;
  for (Operation &op : getBody().front()) {
    if (isa<YieldOp>(op))
      continue;
    auto stage = dyn_cast<PlanStageOpInterface>(op);
    if (!stage)
      return op.emitOpError("is not a stage: a pipeline holds stages only");
    ingests += isa<IngestOp>(op);
    checks += isa<CheckOp>(op);
    handoffs += isa<HandoffOp>(op);
    if (isa<ResumeOp>(op)) {
      ++resumes;
      if (!handoffs)
        return op.emitOpError("needs a plan.handoff before it: the trainer "
                              "answers what it got");
    }
    if (Value ring = stage.getRingOperand()) {
      auto [first, isNew] = writers.try_emplace(ring, &op);
      if (!isNew) {
        InFlightDiagnostic error =
            op.emitOpError("writes a ring that another stage writes: the two "
                           "would share a slot");
        error.attachNote(first->second->getLoc()) << "the first is here";
        return error;
      }
    }
    if (FlatSymbolRefAttr group = stage.getGroupRef()) {
      GroupStages &stages = groups[group];
      if (failed(takeOne(stages.unique, op)) ||
          failed(takeOne(stages.probe, op)) ||
          failed(takeOne(stages.spill, op)) ||
          failed(takeOne(stages.store, op)) ||
          failed(takeOne(stages.fetch, op)) ||
          failed(takeOne(stages.fill, op)) ||
          failed(takeOne(stages.update, op)) ||
          failed(takeOne(stages.unpin, op)))
        return failure();
    }
  }
  if (ingests > 1 || checks > 1 || handoffs > 1 || resumes > 1)
    return emitOpError("a batch is ingested, checked, handed off and resumed "
                       "at most once each");
  for (auto &[group, stages] : groups)
    if (failed(verifyGroupStages(stages)))
      return failure();
  if (getYield().getTokens().size() != getDistances().size())
    return emitOpError("carries ")
           << getDistances().size() << " values, but yields "
           << getYield().getTokens().size();
  return success();
}
