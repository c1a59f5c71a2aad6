//===- EmbToPlan.cpp - From emb to plan -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the program stage by stage, in the program order of docs/artifact.md.
// One group per table; plan-group merges those of one record class.
//
//===----------------------------------------------------------------------===//
#include "Conversion/EmbToPlan/EmbToPlan.h"

#include "Conversion/EmbToPlan/StepFacts.h"
#include "Transforms/Plan/ProgramModel.h"
#include "dialects/plan/Plan.h"
#include "runtime/store/RecordFormat.h"
#include "runtime/store/StoreGeometry.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringSet.h"

namespace terrace {
#define GEN_PASS_DEF_EMBTOPLAN
#include "Conversion/EmbToPlan/EmbToPlan.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

class ProgramBuilder {
public:
  ProgramBuilder(const StepFacts &facts, ModuleOp module)
      : facts(facts), module(module), b(module.getContext()),
        loc(emb::StepOp(facts.step).getLoc()) {}

  LogicalResult run() {
    for (auto tier : module.getOps<emb::TierOp>())
      if (tier.getKind() == emb::TierKind::DRAM && !ringTier)
        ringTier = FlatSymbolRefAttr::get(tier);
    if (!ringTier)
      return emb::StepOp(facts.step)
          .emitError("needs a dram tier: rings and staging lie there");
    for (const TableFacts &table : facts.tables)
      if (failed(checkTable(table.op)))
        return failure();
    emb::StepOp step = facts.step;
    b.setInsertionPoint(step);
    makeLanes();
    for (const TableFacts &table : facts.tables)
      makeGroup(table);
    makeKernels();
    makeProgram();
    makeRings();
    makePipeline();
    return sizeRings(program);
  }

private:
  //--- Symbols --------------------------------------------------------------

  LogicalResult checkTable(emb::TableOp table) {
    emb::PlacementAttr placement = table.getPlacementAttr();
    if (!placement)
      return table.emitError("table '")
             << table.getSymName() << "' has no home; run emb-place first";
    auto home = SymbolTable::lookupNearestSymbolFrom<emb::TierOp>(
        table, placement.getHome());
    if (!home)
      return table.emitError("home ") << placement.getHome() << " is no tier";
    if (!home.isMemory() && !placement.getCache())
      return table.emitError("table '")
             << table.getSymName() << "' has its home on "
             << placement.getHome()
             << " and no cache; rows are used in memory only";
    if (home.isMemory() && placement.getCache())
      return table.emitError("table '")
             << table.getSymName()
             << "' has its home in memory and a cache in front of it";
    emb::RowAttr row = table.getStateType().getRow();
    if (row.isQuantized() && facts.trains)
      return table.emitError("table '")
             << table.getSymName() << "' stores rows as " << row.getElement()
             << ", which are for serving only: a step that trains needs f32, "
                "f16 or bf16";
    if (row.isQuantized() && !(row.getBias() && row.getScale().isF16()))
      return table.emitError("table '")
             << table.getSymName() << "' has rows " << row
             << "; kernels know a scale and a bias of f16";
    if (table.getIds() == emb::IdKind::Dynamic)
      return table.emitError("table '")
             << table.getSymName()
             << "' has dynamic ids, which have no runtime yet; use index or "
                "hash";
    if (table.getShards() && table.getShardsAttr().getWorkers().size() > 1)
      return table.emitError("table '")
             << table.getSymName()
             << "' is cut into shards; needs the distributed exchange";
    return success();
  }

  void makeLanes() {
    struct {
      const char *name;
      plan::LaneKind kind;
    } const lanes[] = {{"host", plan::LaneKind::CPU},
                       {"io", plan::LaneKind::IO},
                       {"copy", plan::LaneKind::CPU},
                       {"work", plan::LaneKind::CPU},
                       {"caller", plan::LaneKind::Caller}};
    for (auto &lane : lanes)
      plan::LaneOp::create(b, loc, b.getStringAttr(lane.name),
                           plan::LaneKindAttr::get(b.getContext(), lane.kind),
                           lane.kind == plan::LaneKind::IO
                               ? b.getI64IntegerAttr(trc::storeDepth)
                               : IntegerAttr());
  }

  void makeGroup(const TableFacts &table) {
    emb::TableOp op = table.op;
    emb::StepOp step = facts.step;
    int64_t dim = op.getDim(), rows = op.getRows();
    auto optimizer = cast<emb::OptimizerAttrInterface>(op.getOptimizer());
    int64_t state = optimizer.getStateFloats(dim) * 4;
    emb::RowAttr row = op.getStateType().getRow();
    // State is f32 and begins at a multiple of 4 bytes.
    int64_t slot = (row.getBytes(dim) + 3) / 4 * 4 + state;
    int64_t ids = 0;
    for (int f : table.features)
      ids += featureIds(f);
    ids = std::min(ids, int64_t(step.getMaxIds()));
    int64_t unique = std::min(ids, rows);
    emb::PlacementAttr placement = op.getPlacementAttr();
    bool cached = bool(placement.getCache());
    auto record =
        plan::RecordAttr::get(b.getContext(), dim, row.getElement(), state,
                              int64_t(trc::recordHeaderBytes), slot,
                              int64_t(trc::recordBytes(uint64_t(slot))));
    StringAttr policy;
    if (cached)
      policy = placement.getPolicy() ? placement.getPolicy()
                                     : b.getStringAttr("lru");
    // Also for a table that no feature reads: a group has one.
    FlatSymbolRefAttr kernel;
    if (facts.trains)
      kernel = FlatSymbolRefAttr::get(
          b.getContext(),
          updateConfig(table).getKernelName(plan::KernelKind::SegmentUpdate));
    auto group = plan::GroupOp::create(
        b, op.getLoc(), b.getStringAttr("t_" + op.getSymName().str()),
        b.getArrayAttr({FlatSymbolRefAttr::get(op)}), record,
        placement.getHome(), placement.getCache(),
        cached ? b.getI64IntegerAttr(std::min(placement.getRetained(), rows))
               : IntegerAttr(),
        IntegerAttr(), policy, b.getI64IntegerAttr(rows),
        b.getDenseI64ArrayAttr({0}), b.getI64IntegerAttr(ids),
        b.getI64IntegerAttr(unique),
        cached ? b.getI64IntegerAttr(unique) : IntegerAttr(), kernel);
    groups.push_back(group);
  }

  int64_t featureIds(int f) {
    emb::StepOp step = facts.step;
    emb::FeatureOp op = facts.features[f].op;
    int64_t perBag = int64_t(op.getMaxPerBag().value_or(1));
    return std::min(int64_t(step.getBatch()) * perBag,
                    int64_t(step.getMaxIds()));
  }

  plan::KernelConfigAttr updateConfig(const TableFacts &table) {
    emb::TableOp op = table.op;
    auto optimizer = cast<emb::OptimizerAttrInterface>(op.getOptimizer());
    auto kind = plan::symbolizeOptimizerKind(optimizer.getKindName())
                    .value_or(plan::OptimizerKind::SGD);
    emb::RowAttr row = op.getStateType().getRow();
    return plan::KernelConfigAttr::get(
        b.getContext(), op.getDim(), row.getElement(), emb::Pooling::Sum, false,
        kind, optimizer.getWeightDecay() != 0,
        optimizer.getDecoupledDecay() != 0, optimizer.getClipNorm() != 0,
        row.getStochastic(), /*direct=*/false);
  }

  plan::KernelConfigAttr gatherConfig(const FeatureFacts &f) {
    emb::LookupOp lookup = f.lookup;
    emb::TableOp table = facts.tables[f.table].op;
    return plan::KernelConfigAttr::get(
        b.getContext(), table.getDim(),
        table.getStateType().getRow().getElement(), lookup.getPooling(),
        f.weighted, plan::OptimizerKind::SGD, false, false, false, false,
        /*direct=*/false);
  }

  void makeKernels() {
    llvm::StringSet<> made;
    auto make = [&](plan::KernelConfigAttr config, plan::KernelKind kind) {
      std::string name = config.getKernelName(kind);
      if (made.insert(name).second)
        plan::KernelOp::create(b, loc, b.getStringAttr(name),
                               plan::KernelKindAttr::get(b.getContext(), kind),
                               config);
    };
    for (const FeatureFacts &f : facts.features)
      make(gatherConfig(f), plan::KernelKind::GatherPool);
    for (const TableFacts &table : facts.tables)
      if (facts.trains)
        make(updateConfig(table), plan::KernelKind::SegmentUpdate);
  }

  //--- The program ----------------------------------------------------------

  void makeProgram() {
    emb::StepOp step = facts.step;
    IntegerAttr lookahead;
    if (plan::DecisionAttr decision = plan::getDecision(module))
      lookahead = b.getI64IntegerAttr(decision.getLookahead());
    program = plan::ProgramOp::create(
        b, loc, b.getStringAttr(step.getSymName()), b.getI64IntegerAttr(0),
        b.getI64IntegerAttr(1), b.getI64IntegerAttr(int64_t(step.getBatch())),
        b.getI64IntegerAttr(int64_t(step.getMaxIds())), lookahead,
        IntegerAttr());
    b.createBlock(&program.getBody());
  }

  Value makeRing(plan::RingRole role, plan::GroupOp group = {}) {
    return plan::RingOp::create(
               b, loc, plan::RingType::get(b.getContext()), ringTier,
               plan::RingRoleAttr::get(b.getContext(), role),
               group ? FlatSymbolRefAttr::get(group) : FlatSymbolRefAttr(),
               b.getI64IntegerAttr(1), b.getI64IntegerAttr(1), IntegerAttr(),
               IntegerAttr())
        .getResult();
  }

  void makeRings() {
    ingestRing = makeRing(plan::RingRole::Ingest);
    if (!facts.dedups.empty())
      dedupRing = makeRing(plan::RingRole::Dedup);
    for (auto [t, table] : llvm::enumerate(facts.tables)) {
      TableRings rings;
      plan::GroupOp group = groups[t];
      if (!table.features.empty()) {
        rings.unique = makeRing(plan::RingRole::Unique, group);
        if (group.isCached()) {
          rings.probe = makeRing(plan::RingRole::Probe, group);
          rings.staging = makeRing(plan::RingRole::Staging, group);
          if (facts.trains)
            rings.writebuf = makeRing(plan::RingRole::WriteBuf, group);
        }
        rings.pooled = makeRing(plan::RingRole::Pooled, group);
      }
      tableRings.push_back(rings);
    }
    if (!facts.dedups.empty())
      expandedRing = makeRing(plan::RingRole::Expanded);
    // Of a head also the predictions.
    if (facts.trains || !emb::DenseOp(facts.dense).isCaller())
      gradsRing = makeRing(plan::RingRole::Grads);
  }

  StringAttr featureName(int f) {
    emb::FeatureOp op = facts.features[f].op;
    return b.getStringAttr(op.getName());
  }

  ArrayAttr featureNames(ArrayRef<int> list) {
    SmallVector<Attribute> names;
    for (int f : list)
      names.push_back(featureName(f));
    return b.getArrayAttr(names);
  }

  ArrayAttr featureAttrs() {
    SmallVector<Attribute> attrs;
    for (const FeatureFacts &f : facts.features) {
      emb::FeatureOp op = f.op;
      emb::LookupOp lookup = f.lookup;
      emb::TableOp table = facts.tables[f.table].op;
      auto kernel = gatherConfig(f).getKernelName(plan::KernelKind::GatherPool);
      auto block = llvm::find(facts.tables[f.table].features,
                              int(&f - facts.features.begin()));
      attrs.push_back(plan::FeatureAttr::get(
          b.getContext(), b.getStringAttr(op.getName()),
          FlatSymbolRefAttr::get(table), lookup.getPooling(),
          int64_t(op.getMaxPerBag().value_or(1)),
          op.getColumn() ? b.getStringAttr(*op.getColumn()) : StringAttr(),
          op.getWeights() ? b.getStringAttr(*op.getWeights()) : StringAttr(),
          op.getOverflowPolicy(), op.getStringIds(),
          f.dedup >= 0 ? b.getStringAttr(facts.dedups[f.dedup].name)
                       : StringAttr(),
          FlatSymbolRefAttr::get(b.getContext(), kernel),
          int64_t(block - facts.tables[f.table].features.begin())));
    }
    return b.getArrayAttr(attrs);
  }

  //--- The pipeline ---------------------------------------------------------

  void makePipeline() {
    SmallVector<int64_t> distances;
    SmallVector<int> cached;
    for (auto [t, table] : llvm::enumerate(facts.tables))
      if (!table.features.empty() && groups[t].isCached())
        cached.push_back(int(t));
    // Rows that never change are not stored: nothing to carry.
    if (facts.trains)
      distances.assign(cached.size(), 1);
    auto pipeline =
        plan::PipelineOp::create(b, loc, b.getDenseI64ArrayAttr(distances));
    Block *body = b.createBlock(&pipeline.getBody());
    Type token = plan::TokenType::get(b.getContext());
    for (int t : cached)
      if (facts.trains)
        stored[t] = body->addArgument(token, loc);

    makeIds();
    for (auto [t, table] : llvm::enumerate(facts.tables))
      if (!table.features.empty())
        makeUnique(int(t));
    makeMovement(cached);
    makeCompute();
    for (int t : cached)
      plan::UnpinOp::create(b, groups[t].getLoc(), token, ref(t), rows[t],
                            ValueRange{updated[t]}, FlatSymbolRefAttr(),
                            IntegerAttr());
    SmallVector<Value> tokens;
    for (int t : cached)
      if (facts.trains)
        tokens.push_back(queued[t]);
    plan::YieldOp::create(b, loc, tokens);
  }

  FlatSymbolRefAttr ref(int t) { return FlatSymbolRefAttr::get(groups[t]); }

  void makeIds() {
    Type buf = plan::BufType::get(b.getContext());
    batch =
        plan::IngestOp::create(b, loc, buf, featureAttrs(), ingestRing,
                               ValueRange(), FlatSymbolRefAttr(), IntegerAttr())
            .getResult();
    emb::CheckOp check = facts.check;
    ids = plan::CheckOp::create(b, check.getLoc(), buf, batch,
                                check.getOnBadIdAttr(), ValueRange(),
                                FlatSymbolRefAttr(), IntegerAttr())
              .getResult();
    SmallVector<Attribute> hashed;
    for (const TableFacts &table : facts.tables)
      if (!table.features.empty() &&
          emb::TableOp(table.op).getIds() == emb::IdKind::Hash)
        hashed.push_back(FlatSymbolRefAttr::get(emb::TableOp(table.op)));
    if (!hashed.empty())
      ids = plan::TranslateOp::create(b, loc, buf, ids, b.getArrayAttr(hashed),
                                      ValueRange(), FlatSymbolRefAttr(),
                                      IntegerAttr())
                .getResult();
    if (facts.dedups.empty())
      return;
    SmallVector<Attribute> lists, names;
    for (const DedupFacts &dedup : facts.dedups) {
      lists.push_back(featureNames(dedup.features));
      names.push_back(b.getStringAttr(dedup.name));
    }
    emb::DedupOp first = facts.dedups.front().op;
    auto op = plan::DedupOp::create(
        b, first.getLoc(), buf, buf, ids, b.getArrayAttr(lists),
        b.getArrayAttr(names), dedupRing, ValueRange(), FlatSymbolRefAttr(),
        IntegerAttr());
    uniqueBags = op.getUnique();
    inverse = op.getInverse();
  }

  void makeUnique(int t) {
    const TableFacts &table = facts.tables[t];
    Type buf = plan::BufType::get(b.getContext());
    bool deduped = llvm::any_of(
        table.features, [&](int f) { return facts.features[f].dedup >= 0; });
    bool plain = llvm::any_of(
        table.features, [&](int f) { return facts.features[f].dedup < 0; });
    SmallVector<Value> inputs;
    if (plain)
      inputs.push_back(ids);
    if (deduped)
      inputs.append({uniqueBags, inverse});
    auto op = plan::UniqueOp::create(
        b, groups[t].getLoc(), buf, buf, ref(t), inputs,
        b.getI64IntegerAttr(int64_t(*groups[t].getMaxOccurrences())),
        b.getI64IntegerAttr(int64_t(*groups[t].getMaxUnique())),
        featureNames(table.features), tableRings[t].unique, ValueRange(),
        FlatSymbolRefAttr(), IntegerAttr());
    unique[t] = op.getUnique();
    occurrences[t] = op.getOccurrences();
  }

  void makeMovement(ArrayRef<int> cached) {
    MLIRContext *c = b.getContext();
    Type buf = plan::BufType::get(c), token = plan::TokenType::get(c);
    FlatSymbolRefAttr lane;
    IntegerAttr ahead;
    llvm::DenseMap<int, Value> pins, misses, victims, records, staged;
    for (int t : cached) {
      auto op = plan::ProbeOp::create(
          b, groups[t].getLoc(), plan::PinsType::get(c),
          plan::MissesType::get(c), plan::VictimsType::get(c), ref(t),
          unique[t], tableRings[t].probe, ValueRange(), lane, ahead);
      pins[t] = op.getPins();
      misses[t] = op.getMisses();
      victims[t] = op.getVictims();
    }
    ArrayRef<int> changing = facts.trains ? cached : ArrayRef<int>();
    for (int t : changing)
      records[t] = plan::SpillOp::create(b, groups[t].getLoc(), buf, ref(t),
                                         victims[t], tableRings[t].writebuf,
                                         ValueRange(), lane, ahead);
    // Rows of the batches before are fetched from the write buffer or, once
    // their write was queued, from home: hence the two carried waits.
    for (int t : changing)
      queued[t] =
          plan::StoreOp::create(b, groups[t].getLoc(), token, ref(t),
                                records[t], ValueRange{stored[t]}, lane, ahead);
    for (int t : cached) {
      SmallVector<Value> after;
      if (facts.trains)
        after.push_back(stored[t]);
      staged[t] =
          plan::FetchOp::create(b, groups[t].getLoc(), buf, ref(t), misses[t],
                                tableRings[t].staging, after, lane, ahead);
    }
    for (int t : cached)
      rows[t] = plan::FillOp::create(b, groups[t].getLoc(),
                                     plan::RowsType::get(c), ref(t), pins[t],
                                     staged[t], ValueRange(), lane, ahead);
  }

  void makeCompute() {
    MLIRContext *c = b.getContext();
    Type buf = plan::BufType::get(c), token = plan::TokenType::get(c);
    FlatSymbolRefAttr lane;
    IntegerAttr ahead;
    llvm::DenseMap<int, Value> pooled;
    for (auto [t, table] : llvm::enumerate(facts.tables)) {
      if (table.features.empty())
        continue;
      SmallVector<Attribute> kernels;
      for (int f : table.features)
        kernels.push_back(FlatSymbolRefAttr::get(
            c, gatherConfig(facts.features[f])
                   .getKernelName(plan::KernelKind::GatherPool)));
      if (llvm::all_equal(kernels))
        kernels.resize(1);
      pooled[int(t)] = plan::GatherPoolOp::create(
          b, groups[t].getLoc(), buf, ref(int(t)), rows.lookup(int(t)),
          occurrences[int(t)], b.getArrayAttr(kernels),
          featureNames(table.features), /*direct=*/UnitAttr(),
          tableRings[t].pooled, ValueRange(), lane, ahead);
    }
    Value expanded;
    if (!facts.dedups.empty()) {
      llvm::SetVector<Value> inputs;
      SmallVector<int> features;
      for (auto [f, feature] : llvm::enumerate(facts.features))
        if (feature.dedup >= 0) {
          inputs.insert(pooled[feature.table]);
          features.push_back(int(f));
        }
      expanded = plan::ExpandOp::create(
          b, loc, buf, inputs.getArrayRef(), inverse, featureNames(features),
          expandedRing, ValueRange(), lane, ahead);
    }
    SmallVector<Value> outputs;
    for (const FeatureFacts &f : facts.features)
      outputs.push_back(f.dedup >= 0 ? expanded : pooled[f.table]);
    SmallVector<Value> grads;
    Value go = makeHead(outputs, grads);
    for (auto [t, table] : llvm::enumerate(facts.tables)) {
      if (table.features.empty())
        continue;
      if (!facts.trains) { // rows are let go with the batch
        updated[int(t)] = go;
        continue;
      }
      SmallVector<Value> own, inverses;
      SmallVector<int32_t> index;
      for (int f : table.features) {
        own.push_back(grads[f]);
        bool deduped = facts.features[f].dedup >= 0;
        index.push_back(deduped ? int32_t(inverses.size()) : -1);
        if (deduped)
          inverses.push_back(inverse);
      }
      auto kernel =
          updateConfig(table).getKernelName(plan::KernelKind::SegmentUpdate);
      emb::UpdateOp update = table.update;
      // The trainer may cut for a checkpoint until its word to go on.
      Value preserved = plan::PreserveOp::create(
          b, update.getLoc(), token, ref(int(t)), rows.lookup(int(t)),
          occurrences[int(t)], ValueRange{go}, lane, ahead);
      updated[int(t)] = plan::SegmentUpdateOp::create(
          b, update.getLoc(), token, ref(int(t)), rows.lookup(int(t)),
          occurrences[int(t)], FlatSymbolRefAttr::get(c, kernel), own, inverses,
          b.getDenseI32ArrayAttr(index), featureNames(table.features),
          ValueRange{preserved}, lane, ahead);
    }
  }

  /// The head or the trainer: outputs in, gradients out, the word to go on.
  Value makeHead(ValueRange outputs, SmallVector<Value> &grads) {
    MLIRContext *c = b.getContext();
    Type buf = plan::BufType::get(c), token = plan::TokenType::get(c);
    FlatSymbolRefAttr lane;
    IntegerAttr ahead;
    emb::DenseOp dense = facts.dense;
    // One gradient per output, or what is predicted.
    SmallVector<Type> types(outputs.size(), buf);
    if (!facts.trains)
      types.resize(dense.isCaller() ? 0 : 1);
    if (dense.isCaller()) {
      Value handed = plan::HandoffOp::create(b, dense.getLoc(), token, outputs,
                                             ValueRange(), lane, ahead);
      auto resume =
          plan::ResumeOp::create(b, dense.getLoc(), token, types, gradsRing,
                                 ValueRange{handed}, lane, ahead);
      grads.assign(resume.getGrads().begin(), resume.getGrads().end());
      return resume.getGo();
    }
    SmallVector<Value> inputs{batch};
    llvm::append_range(inputs, outputs);
    auto call =
        plan::CallOp::create(b, dense.getLoc(), types, dense.getKindAttr(),
                             inputs, gradsRing, ValueRange(), lane, ahead);
    grads.assign(call.getResults().begin(), call.getResults().end());
    // The predictions lie in the same ring.
    Value handed = plan::HandoffOp::create(b, dense.getLoc(), token,
                                           ValueRange{grads.front()},
                                           ValueRange(), lane, ahead);
    return plan::ResumeOp::create(b, dense.getLoc(), token, TypeRange(),
                                  Value(), ValueRange{handed}, lane, ahead)
        .getGo();
  }

  struct TableRings {
    Value unique, probe, staging, writebuf, pooled;
  };

  const StepFacts &facts;
  ModuleOp module;
  OpBuilder b;
  Location loc;
  FlatSymbolRefAttr ringTier;
  SmallVector<plan::GroupOp> groups; ///< by table
  plan::ProgramOp program;
  Value ingestRing, dedupRing, expandedRing, gradsRing;
  SmallVector<TableRings> tableRings;
  Value batch, ids, uniqueBags, inverse;
  llvm::DenseMap<int, Value> stored, queued, unique, occurrences, rows,
      updated; ///< by table
};

struct EmbToPlan : public terrace::impl::EmbToPlanBase<EmbToPlan> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    emb::StepOp training;
    SmallVector<emb::StepOp> forward;
    for (auto step : module.getOps<emb::StepOp>()) {
      bool trains = !step.getBody().front().getOps<emb::UpdateOp>().empty();
      if (!trains) {
        forward.push_back(step);
        continue;
      }
      if (training) {
        step.emitError("is a second training step; programs of several "
                       "workers need the distributed exchange");
        return signalPassFailure();
      }
      training = step;
    }
    if (!training && forward.size() != 1) {
      if (forward.empty())
        module.emitError("has no step; a plan program needs one");
      else
        forward[1].emitError("is a second step that does not train, and there "
                             "is none that does");
      return signalPassFailure();
    }
    if (!training)
      training = forward.front(); // of a model that serves
    FailureOr<StepFacts> facts = StepFacts::of(training);
    if (failed(facts) || failed(ProgramBuilder(*facts, module).run()))
      return signalPassFailure();
    int64_t tiered =
        llvm::count_if(module.getOps<plan::GroupOp>(),
                       [](plan::GroupOp group) { return group.isCached(); });
    remark::passed(training.getLoc(),
                   remark::RemarkOpts::name("Program").category("emb-to-plan"))
        << remark::add("{0} features of {1} tables; rows of {2} tables move "
                       "between home and slots",
                       facts->features.size(), facts->tables.size(), tiered)
        << remark::metric("features", int64_t(facts->features.size()))
        << remark::metric("tables", int64_t(facts->tables.size()))
        << remark::metric("tiered", tiered);
    for (auto step : llvm::make_early_inc_range(module.getOps<emb::StepOp>()))
      step.erase();
  }
};

} // namespace
