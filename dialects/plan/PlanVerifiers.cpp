//===- PlanVerifiers.cpp - Rules of single stages ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names resolve and have the right kind, a stage works on values of its own
// group, its lane can run it. Rules of symbols and of whole pipelines are in
// PlanProgramVerifiers.cpp; happens-before is lib/Schedule's.
//
//===----------------------------------------------------------------------===//
#include "dialects/plan/Plan.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace terrace;
using namespace terrace::plan;

//===----------------------------------------------------------------------===//
// Rings and groups of operands
//===----------------------------------------------------------------------===//

static std::optional<RingRole> roleOf(Operation *op) {
  return TypeSwitch<Operation *, std::optional<RingRole>>(op)
      .Case([](IngestOp) { return RingRole::Ingest; })
      .Case([](DedupOp) { return RingRole::Dedup; })
      .Case([](UniqueOp) { return RingRole::Unique; })
      .Case([](ProbeOp) { return RingRole::Probe; })
      .Case([](SpillOp) { return RingRole::WriteBuf; })
      .Case([](FetchOp) { return RingRole::Staging; })
      .Case([](GatherPoolOp) { return RingRole::Pooled; })
      .Case([](ExpandOp) { return RingRole::Expanded; })
      .Case<CallOp, ResumeOp, ReduceOp>([](auto) { return RingRole::Grads; })
      .Case([](ExchangeOp) { return RingRole::Exchange; })
      .Case([](CopyOp) { return RingRole::Copy; })
      .Default([](Operation *) { return std::nullopt; });
}

static LogicalResult verifyRing(PlanStageOpInterface stage) {
  Value value = stage.getRingOperand();
  auto ring = value ? value.getDefiningOp<RingOp>() : RingOp();
  if (!ring)
    return success();
  std::optional<RingRole> role = roleOf(stage);
  if (ring.getRole() && role && *ring.getRole() != *role)
    return stage->emitOpError("writes a ring of role ")
           << stringifyRingRole(*role) << ", but this one has role "
           << stringifyRingRole(*ring.getRole());
  FlatSymbolRefAttr group = stage.getGroupRef();
  if (ring.getGroupAttr() && group != ring.getGroupAttr()) {
    InFlightDiagnostic error = stage->emitOpError("writes a ring of group ")
                               << ring.getGroupAttr();
    if (group)
      error << ", but works on " << group;
    return error;
  }
  return success();
}

/// `value` must come from an op of kind OpT on the same group.
template <typename OpT>
static LogicalResult verifyFrom(PlanStageOpInterface stage, Value value,
                                StringRef what) {
  auto producer = value.getDefiningOp<OpT>();
  if (!producer)
    return stage->emitOpError(what)
           << " must come from " << OpT::getOperationName();
  if (producer.getGroupAttr() != stage.getGroupRef())
    return stage->emitOpError("works on ")
           << stage.getGroupRef() << ", but " << what << " of "
           << producer.getGroupAttr();
  return success();
}

static LogicalResult verifyOccurrences(PlanStageOpInterface stage,
                                       Value value) {
  if (failed(verifyFrom<UniqueOp>(stage, value, "occurrences")))
    return failure();
  if (value == value.getDefiningOp<UniqueOp>().getOccurrences())
    return success();
  return stage->emitOpError("needs the occurrences of plan.unique, its second "
                            "result, not the unique rows");
}

/// Look-ups take what plan.unique found, or by id what plan.touch made ready.
static LogicalResult verifyLookedUp(GatherPoolOp op,
                                    PlanStageOpInterface stage) {
  if (op.getDirect() && op.getRows())
    return op.emitOpError("is direct: its rows are named by id, which those "
                          "of plan.fill are not");
  if (!op.getOccurrences().getDefiningOp<TouchOp>())
    return verifyOccurrences(stage, op.getOccurrences());
  if (!op.getDirect())
    return op.emitOpError("takes ids of plan.touch, which are no places of "
                          "unique rows: needs `direct`");
  return verifyFrom<TouchOp>(stage, op.getOccurrences(), "occurrences");
}

//===----------------------------------------------------------------------===//
// Single stages
//===----------------------------------------------------------------------===//

static LogicalResult verifyDedup(DedupOp op) {
  llvm::StringSet<> seen;
  for (Attribute group : op.getGroups()) {
    auto names = dyn_cast<ArrayAttr>(group);
    if (!names || names.empty())
      return op.emitOpError("a group is a list of features, not ") << group;
    for (Attribute name : names) {
      auto text = dyn_cast<StringAttr>(name);
      if (!text)
        return op.emitOpError("features are named by strings, not ") << name;
      if (!seen.insert(text.getValue()).second)
        return op.emitOpError("feature ") << text << " is in two groups";
    }
  }
  if (op.getNames() && op.getNames()->size() != op.getGroups().size())
    return op.emitOpError("has ") << op.getGroups().size() << " groups but "
                                  << op.getNames()->size() << " names";
  return success();
}

static LogicalResult verifyUnique(UniqueOp op) {
  if (op.getIds().empty())
    return op.emitOpError("needs at least one buffer of ids");
  if (int64_t(op.getMax()) < 1)
    return op.emitOpError("max must be at least 1, not ")
           << int64_t(op.getMax());
  if (!op.getMaxUnique())
    return success();
  int64_t unique = *op.getMaxUnique();
  if (unique < 1 || unique > int64_t(op.getMax()))
    return op.emitOpError("unique must lie in 1 .. max = ")
           << int64_t(op.getMax()) << ", not " << unique;
  return success();
}

static LogicalResult verifyUpdate(SegmentUpdateOp op) {
  if (op.getGrads().empty())
    return op.emitOpError("needs gradients");
  if (op.getInverseIndex().size() != op.getGrads().size())
    return op.emitOpError("has ")
           << op.getGrads().size() << " gradients, but "
           << op.getInverseIndex().size() << " places of inverses";
  int32_t next = 0;
  for (int32_t index : op.getInverseIndex())
    if (index != -1 && index != next++)
      return op.emitOpError("inverses must be named once each, in order");
  if (size_t(next) != op.getInverses().size())
    return op.emitOpError("has ")
           << op.getInverses().size() << " inverses, but uses " << next;
  return success();
}

static LogicalResult verifyCheck(CheckOp op) {
  if (op.getOnBadId() != "error" && op.getOnBadId() != "drop")
    return op.emitOpError("on_bad_id must be \"error\" or \"drop\", not \"")
           << op.getOnBadId() << "\"";
  auto module = op->getParentOfType<ModuleOp>();
  auto model =
      module ? module->getAttrOfType<StringAttr>(emb::EmbDialect::kOnBadId)
             : StringAttr();
  if (model && model.getValue() != op.getOnBadId())
    return op.emitOpError("on_bad_id is \"")
           << op.getOnBadId() << "\", but the module's is " << model;
  return success();
}

static LogicalResult verifyIngest(IngestOp op) {
  if (!op.getFeatures())
    return success();
  llvm::StringSet<> names;
  for (auto feature : op.getFeatures()->getAsRange<FeatureAttr>())
    if (!names.insert(feature.getName().getValue()).second)
      return op.emitOpError("feature ") << feature.getName() << " stands twice";
  return success();
}

/// Rows of a cache, where they are given, are those that plan.fill made ready.
static LogicalResult verifyRows(PlanStageOpInterface stage, Value rows) {
  return rows ? verifyFrom<FillOp>(stage, rows, "rows") : success();
}

LogicalResult terrace::plan::detail::verifyStage(Operation *op) {
  auto stage = cast<PlanStageOpInterface>(op);
  auto ahead = op->getAttrOfType<IntegerAttr>("ahead");
  if (bool(stage.getLaneAttr()) != bool(ahead))
    return op->emitOpError("a schedule is a lane and the batches ahead: "
                           "at(@lane, n)");
  if (stage.getAheadOr0() < 0)
    return op->emitOpError("runs at least 0 batches ahead, not ")
           << stage.getAheadOr0();
  if (failed(verifyRing(stage)))
    return failure();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case(verifyIngest)
      .Case(verifyCheck)
      .Case(verifyDedup)
      .Case(verifyUnique)
      .Case([&](ProbeOp op) {
        return verifyFrom<UniqueOp>(stage, op.getUnique(), "unique rows");
      })
      .Case([&](SpillOp op) {
        return verifyFrom<ProbeOp>(stage, op.getVictims(), "victims");
      })
      .Case([&](StoreOp op) {
        return verifyFrom<SpillOp>(stage, op.getRecords(), "records");
      })
      .Case([&](FetchOp op) {
        return verifyFrom<ProbeOp>(stage, op.getMisses(), "misses");
      })
      .Case([&](FillOp op) -> LogicalResult {
        if (failed(verifyFrom<ProbeOp>(stage, op.getPins(), "pins")))
          return failure();
        return verifyFrom<FetchOp>(stage, op.getStaged(), "staged rows");
      })
      .Case([&](UnpinOp op) {
        return verifyFrom<FillOp>(stage, op.getRows(), "rows");
      })
      .Case([&](PreserveOp op) -> LogicalResult {
        if (failed(verifyRows(stage, op.getRows())))
          return failure();
        return verifyOccurrences(stage, op.getOccurrences());
      })
      .Case([&](GatherPoolOp op) -> LogicalResult {
        if (failed(verifyRows(stage, op.getRows())))
          return failure();
        return verifyLookedUp(op, stage);
      })
      .Case([&](SegmentUpdateOp op) -> LogicalResult {
        if (failed(verifyRows(stage, op.getRows())))
          return failure();
        if (failed(verifyOccurrences(stage, op.getOccurrences())))
          return failure();
        return verifyUpdate(op);
      })
      .Case([&](ExpandOp op) -> LogicalResult {
        return op.getPooled().empty()
                   ? op.emitOpError("needs at least one pooled output")
                   : success();
      })
      .Default([](Operation *) { return success(); });
}

//===----------------------------------------------------------------------===//
// Symbols of stages
//===----------------------------------------------------------------------===//

LogicalResult terrace::plan::detail::verifyTable(Operation *op,
                                                 FlatSymbolRefAttr name,
                                                 SymbolTableCollection &symbols,
                                                 emb::TableOp *table) {
  Operation *found = symbols.lookupNearestSymbolFrom(op, name);
  auto asTable = dyn_cast_or_null<emb::TableOp>(found);
  if (table)
    *table = asTable;
  if (asTable)
    return success();
  // A plan may stand apart from its model, but not next to half of it.
  auto module = op->getParentOfType<ModuleOp>();
  if (found || (module && !module.getOps<emb::TableOp>().empty()))
    return op->emitOpError() << name << " is not an emb.table";
  return success();
}

LogicalResult terrace::plan::detail::verifyKernel(
    Operation *op, FlatSymbolRefAttr name, KernelKind kind, RecordAttr record,
    SymbolTableCollection &symbols, KernelOp *result) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(op, name);
  if (!kernel)
    return op->emitOpError() << name << " is not a plan.kernel";
  if (kernel.getKind() != kind)
    return op->emitOpError("needs a kernel of kind ")
           << stringifyKernelKind(kind) << ", but " << name << " is a "
           << stringifyKernelKind(kernel.getKind());
  KernelConfigAttr config = kernel.getConfig();
  if (config.getDim() != record.getDim() ||
      config.getElement() != record.getElement())
    return op->emitOpError("kernel ")
           << name << " is for " << config.getDim() << " x "
           << config.getElement() << ", but the group's rows are "
           << record.getDim() << " x " << record.getElement();
  if (result)
    *result = kernel;
  return success();
}

using Features = llvm::StringMap<FeatureAttr>;

static LogicalResult verifyFeatureKernel(GatherPoolOp op, FeatureAttr feature,
                                         FlatSymbolRefAttr name,
                                         SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(op, name);
  if (!kernel)
    return success(); // said elsewhere
  KernelConfigAttr config = kernel.getConfig();
  if (config.getPooling() == feature.getPooling() &&
      config.getWeighted() == bool(feature.getWeights()))
    return success();
  return op.emitOpError("feature ")
         << feature.getName() << " pools by "
         << emb::stringifyPooling(feature.getPooling())
         << (feature.getWeights() ? " with" : " without")
         << " weights, but kernel " << name << " by "
         << emb::stringifyPooling(config.getPooling())
         << (config.getWeighted() ? " with weights" : " without weights");
}

static LogicalResult verifyFeatures(PlanStageOpInterface stage,
                                    const Features &declared,
                                    SymbolTableCollection &symbols) {
  GroupOp group;
  if (FlatSymbolRefAttr name = stage.getGroupRef())
    group = symbols.lookupNearestSymbolFrom<GroupOp>(stage, name);
  llvm::SmallDenseSet<Attribute> tables;
  if (group)
    tables.insert(group.getTables().begin(), group.getTables().end());
  auto gather = dyn_cast<GatherPoolOp>(stage.getOperation());
  for (auto [i, name] :
       llvm::enumerate(stage.getFeatureNames().getAsRange<StringAttr>())) {
    auto found = declared.find(name.getValue());
    if (found == declared.end())
      return stage->emitOpError("feature ")
             << name << " is not one that plan.ingest declares";
    FeatureAttr feature = found->second;
    if (group && !tables.contains(feature.getTable()))
      return stage->emitOpError("feature ")
             << name << " reads " << feature.getTable()
             << ", which is not in group @" << group.getSymName();
    if (gather && gather.getDirect() && feature.getDedup())
      return stage->emitOpError("feature ")
             << name << " is pooled per unique bag of " << feature.getDedup()
             << ", whose ids stand apart: it cannot be direct";
    if (!gather || i >= gather.getKernels().size() ||
        gather.getKernels().size() == 1)
      continue;
    auto kernel = cast<FlatSymbolRefAttr>(gather.getKernels()[i]);
    if (failed(verifyFeatureKernel(gather, feature, kernel, symbols)))
      return failure();
  }
  return success();
}

/// What `ingest` declares, and that all stages keep to it: in one go, since a
/// model has a thousand features.
static LogicalResult verifyDeclarations(IngestOp op,
                                        SymbolTableCollection &symbols) {
  if (!op.getFeatures())
    return success();
  Features declared;
  for (auto feature : op.getFeatures()->getAsRange<FeatureAttr>()) {
    if (failed(terrace::plan::detail::verifyTable(op, feature.getTable(),
                                                  symbols)))
      return failure();
    declared[feature.getName().getValue()] = feature;
  }
  for (Operation &other : *op->getBlock())
    if (auto stage = dyn_cast<PlanStageOpInterface>(other))
      if (stage.getFeatureNames() &&
          failed(verifyFeatures(stage, declared, symbols)))
        return failure();
  return success();
}

static LogicalResult verifyGather(GatherPoolOp op, GroupOp group,
                                  SymbolTableCollection &symbols) {
  size_t features = op.getFeatures() ? op.getFeatures()->size() : 1;
  size_t kernels = op.getKernels().size();
  if (kernels != 1 && kernels != features)
    return op.emitOpError("has ") << features << " features but " << kernels
                                  << " kernels: one for all, or one for each";
  for (auto name : op.getKernels().getAsRange<FlatSymbolRefAttr>()) {
    KernelOp kernel;
    if (failed(terrace::plan::detail::verifyKernel(
            op, name, KernelKind::GatherPool, group.getRecord(), symbols,
            &kernel)))
      return failure();
    if (kernel.getConfig().getDirect() != op.getDirect())
      return op.emitOpError("reads rows ")
             << (op.getDirect() ? "by id" : "by their slots") << ", but kernel "
             << name << (op.getDirect() ? " does not" : " reads them by id");
  }
  return success();
}

/// Rows of a cached group must be made ready. (A group without a cache has no
/// plan.fill that they could come from.)
static LogicalResult verifyRowsOperand(Operation *op, GroupOp group,
                                       bool hasRows) {
  if (hasRows || !group.isCached())
    return success();
  return op->emitOpError("group @")
         << group.getSymName()
         << " has a cache: needs the `rows` that plan.fill made ready";
}

static LogicalResult verifyGroupUse(PlanStageOpInterface stage, GroupOp group,
                                    SymbolTableCollection &symbols) {
  if (isa<ProbeOp, SpillOp, StoreOp, FetchOp, FillOp, UnpinOp>(
          stage.getOperation()) &&
      !group.isCached())
    return stage->emitOpError("group @")
           << group.getSymName() << " has no cache: its rows do not move";
  if (isa<TouchOp>(stage.getOperation()) && group.isCached())
    return stage->emitOpError("group @")
           << group.getSymName()
           << " has a cache: its rows get their value in plan.fill";
  if (auto gather = dyn_cast<GatherPoolOp>(stage.getOperation())) {
    if (gather.getDirect() && group.isCached())
      return stage->emitOpError("is direct, but group @")
             << group.getSymName()
             << " has a cache: its rows lie in slots, not by their ids";
    if (failed(verifyRowsOperand(stage, group, bool(gather.getRows()))))
      return failure();
    return verifyGather(gather, group, symbols);
  }
  if (auto preserve = dyn_cast<PreserveOp>(stage.getOperation()))
    return verifyRowsOperand(stage, group, bool(preserve.getRows()));
  if (auto update = dyn_cast<SegmentUpdateOp>(stage.getOperation())) {
    if (failed(verifyRowsOperand(stage, group, bool(update.getRows()))))
      return failure();
    return terrace::plan::detail::verifyKernel(
        stage, update.getKernelAttr(), KernelKind::SegmentUpdate,
        group.getRecord(), symbols, nullptr);
  }
  return success();
}

LogicalResult
terrace::plan::detail::verifyStageSymbols(Operation *op,
                                          SymbolTableCollection &symbols) {
  auto stage = cast<PlanStageOpInterface>(op);
  if (FlatSymbolRefAttr name = stage.getLaneAttr()) {
    auto lane = symbols.lookupNearestSymbolFrom<LaneOp>(op, name);
    if (!lane)
      return op->emitOpError() << name << " is not a plan.lane";
    if (!stage.canRunOn(lane.getKind()))
      return op->emitOpError("cannot run on lane ")
             << name << " of kind " << stringifyLaneKind(lane.getKind());
  }
  GroupOp group;
  if (FlatSymbolRefAttr name = stage.getGroupRef()) {
    group = symbols.lookupNearestSymbolFrom<GroupOp>(op, name);
    if (!group)
      return op->emitOpError() << name << " is not a plan.group";
    if (failed(verifyGroupUse(stage, group, symbols)))
      return failure();
  }
  if (auto translate = dyn_cast<TranslateOp>(op)) {
    for (auto table : translate.getTables().getAsRange<FlatSymbolRefAttr>())
      if (failed(verifyTable(op, table, symbols)))
        return failure();
  } else if (auto ingest = dyn_cast<IngestOp>(op)) {
    return verifyDeclarations(ingest, symbols);
  } else if (auto exchange = dyn_cast<ExchangeOp>(op)) {
    FlatSymbolRefAttr name = exchange.getChannelAttr();
    if (!symbols.lookupNearestSymbolFrom<emb::ChannelOp>(op, name))
      return op->emitOpError() << name << " is not an emb.channel";
  }
  return success();
}
