//===- PlanGroup.cpp - Merges groups of one record class ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage by stage: all ops of one kind in the groups of a class become one op,
// where the first of them stood. That is safe since stages stand in one order
// and an op only takes what earlier stages gave. Lists of features follow the
// order of the spec, on which the order of summation rests.
//
//===----------------------------------------------------------------------===//
#include "Schedule/Stages.h"
#include "Transforms/Plan/PlanPasses.h"
#include "Transforms/Plan/ProgramModel.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace terrace {
#define GEN_PASS_DEF_PLANGROUP
#include "Transforms/Plan/PlanPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

/// Groups that become one.
struct Class {
  SmallVector<plan::GroupOp> members;
  int64_t rows = 0;
  plan::GroupOp merged;
};

/// One feature's part in a gather_pool or segment_update.
struct Part {
  int64_t order; ///< of the feature in the spec
  StringAttr feature;
  Attribute kernel;
  Value grad, inverse;
};

class Merger {
public:
  Merger(plan::ProgramOp program, ArrayRef<Class> classes) : program(program) {
    for (auto [c, one] : llvm::enumerate(classes))
      for (plan::GroupOp member : one.members)
        classOf[member.getSymName()] = int(c);
    for (const Class &one : classes) {
      merged.push_back(one.merged);
      many.push_back(one.members.size() > 1);
    }
  }

  LogicalResult run() {
    collect();
    mergeRings();
    for (auto &[key, ops] : stages) {
      FlatSymbolRefAttr group = FlatSymbolRefAttr::get(merged[key.first]);
      if (many[key.first]) {
        if (failed(merge(ops, group)))
          return failure();
      } else {
        ops.front()->setAttr("group", group);
      }
    }
    for (Operation *op : llvm::reverse(dead))
      op->erase();
    mergeCarries();
    mergeOutputs();
    return success();
  }

private:
  /// Carries of merged groups yield one token now: one carry is enough.
  void mergeCarries() {
    plan::PipelineOp pipeline = program.getPipeline();
    plan::YieldOp yield = pipeline.getYield();
    Block &body = pipeline.getBody().front();
    SmallVector<int64_t> distances(pipeline.getDistances());
    for (int i = int(distances.size()) - 1; i > 0; --i)
      for (int k = 0; k < i; ++k) {
        if (distances[k] != distances[i] ||
            yield.getTokens()[k] != yield.getTokens()[i])
          continue;
        body.getArgument(i).replaceAllUsesWith(body.getArgument(k));
        body.eraseArgument(i);
        yield.getTokensMutable().erase(i);
        distances.erase(distances.begin() + i);
        break;
      }
    pipeline.setDistances(distances);
    for (Operation &op : body)
      if (auto stage = dyn_cast<plan::PlanStageOpInterface>(op)) {
        auto after = stage.getAfterOperands();
        llvm::SetVector<Value> once(after.begin(), after.end());
        if (once.size() != after.size())
          stage.getAfterOperandsMutable().assign(
              ValueRange(once.getArrayRef()));
      }
  }

  void collect() {
    plan::PipelineOp pipeline = program.getPipeline();
    for (Operation &op : pipeline.getBody().front()) {
      if (auto ingest = dyn_cast<plan::IngestOp>(op))
        if (ingest.getFeatures())
          for (auto [i, feature] : llvm::enumerate(
                   ingest.getFeatures()->getAsRange<plan::FeatureAttr>()))
            order[feature.getName().getValue()] = int64_t(i);
      auto stage = dyn_cast<plan::PlanStageOpInterface>(op);
      if (!stage || !stage.getGroupRef())
        continue;
      int c = classOf.lookup(stage.getGroupRef().getValue());
      stages[{c, op.getName().getAsOpaquePointer()}].push_back(&op);
    }
  }

  /// One ring per role and class; the users of the others take it.
  void mergeRings() {
    llvm::MapVector<std::pair<int, int>, plan::RingOp> kept;
    for (auto ring : llvm::make_early_inc_range(
             program.getBody().front().getOps<plan::RingOp>())) {
      if (!ring.getGroup() || !ring.getRole())
        continue;
      int c = classOf.lookup(*ring.getGroup());
      ring.setGroup(merged[c].getSymName());
      auto [it, first] = kept.insert({{c, int(*ring.getRole())}, ring});
      if (first)
        continue;
      ring.getResult().replaceAllUsesWith(it->second.getResult());
      ring.erase();
    }
  }

  /// Pooled outputs of a merged group lie in one buffer: expand takes it once,
  /// and each feature has its block in it.
  void mergeOutputs() {
    plan::PipelineOp pipeline = program.getPipeline();
    for (Operation &op : pipeline.getBody().front()) {
      if (auto expand = dyn_cast<plan::ExpandOp>(op)) {
        auto pooled = expand.getPooled();
        llvm::SetVector<Value> once(pooled.begin(), pooled.end());
        expand.getPooledMutable().assign(ValueRange(once.getArrayRef()));
      } else if (auto ingest = dyn_cast<plan::IngestOp>(op)) {
        numberOutputs(ingest);
      }
    }
  }

  void numberOutputs(plan::IngestOp ingest) {
    llvm::StringMap<int> groupOfTable;
    for (auto [g, group] : llvm::enumerate(merged))
      for (auto table : group.getTables().getAsRange<FlatSymbolRefAttr>())
        groupOfTable[table.getValue()] = int(g);
    SmallVector<int64_t> next(merged.size(), 0);
    SmallVector<Attribute> features;
    for (auto f : ingest.getFeaturesAttr().getAsRange<plan::FeatureAttr>())
      features.push_back(plan::FeatureAttr::get(
          f.getContext(), f.getName(), f.getTable(), f.getPooling(),
          f.getMaxIds(), f.getColumn(), f.getWeights(), f.getOverflow(),
          f.getStringIds(), f.getDedup(), f.getKernel(),
          next[groupOfTable.lookup(f.getTable().getValue())]++));
    ingest.setFeaturesAttr(ArrayAttr::get(ingest.getContext(), features));
  }

  LogicalResult merge(ArrayRef<Operation *> ops, FlatSymbolRefAttr group) {
    Operation *first = ops.front();
    OpBuilder builder(first);
    SmallVector<Location> locs;
    llvm::SetVector<Value> after;
    for (Operation *op : ops) {
      locs.push_back(op->getLoc());
      auto waits = cast<plan::PlanStageOpInterface>(op).getAfterOperands();
      after.insert(waits.begin(), waits.end());
    }
    Location loc = builder.getFusedLoc(locs);
    Operation *one = nullptr;
    if (auto unique = dyn_cast<plan::UniqueOp>(first))
      one = mergeUnique(builder, loc, ops, group, after.getArrayRef());
    else if (auto gather = dyn_cast<plan::GatherPoolOp>(first))
      one = mergeGather(builder, loc, ops, group, after.getArrayRef());
    else if (auto update = dyn_cast<plan::SegmentUpdateOp>(first))
      one = mergeUpdate(builder, loc, ops, group, after.getArrayRef());
    if (!one) {
      // Moves rows: all operands are those of the class by now.
      first->setAttr("group", group);
      first->setLoc(loc);
      cast<plan::PlanStageOpInterface>(first).getAfterOperandsMutable().assign(
          ValueRange(after.getArrayRef()));
      one = first;
    }
    for (Operation *op : ops) {
      if (op == one)
        continue;
      if (op->getNumResults() != one->getNumResults())
        return op->emitError("cannot be merged with the op of another group");
      op->replaceAllUsesWith(one->getResults());
      dead.push_back(op);
    }
    return success();
  }

  Operation *mergeUnique(OpBuilder &builder, Location loc,
                         ArrayRef<Operation *> ops, FlatSymbolRefAttr group,
                         ValueRange after) {
    llvm::SetVector<Value> ids;
    SmallVector<Part> parts;
    auto first = cast<plan::UniqueOp>(ops.front());
    for (Operation *op : ops) {
      auto unique = cast<plan::UniqueOp>(op);
      ids.insert(unique.getIds().begin(), unique.getIds().end());
      ArrayAttr listed = *unique.getFeatures();
      for (Attribute name : listed)
        parts.push_back(part(name));
    }
    plan::GroupOp target = groupOf(group);
    return plan::UniqueOp::create(
        builder, loc, first.getResultTypes(), group, ids.getArrayRef(),
        builder.getI64IntegerAttr(int64_t(*target.getMaxOccurrences())),
        builder.getI64IntegerAttr(int64_t(*target.getMaxUnique())),
        names(builder, parts), first.getRing(), after, FlatSymbolRefAttr(),
        IntegerAttr());
  }

  Operation *mergeGather(OpBuilder &builder, Location loc,
                         ArrayRef<Operation *> ops, FlatSymbolRefAttr group,
                         ValueRange after) {
    SmallVector<Part> parts;
    auto first = cast<plan::GatherPoolOp>(ops.front());
    for (Operation *op : ops) {
      auto gather = cast<plan::GatherPoolOp>(op);
      ArrayAttr kernels = gather.getKernels();
      for (auto [i, name] : llvm::enumerate(gather.getFeaturesAttr())) {
        Part p = part(name);
        p.kernel = kernels[kernels.size() == 1 ? 0 : i];
        parts.push_back(p);
      }
    }
    ArrayAttr sorted = names(builder, parts);
    SmallVector<Attribute> kernels;
    for (const Part &p : parts)
      kernels.push_back(p.kernel);
    if (llvm::all_equal(kernels))
      kernels.resize(1);
    return plan::GatherPoolOp::create(
        builder, loc, first.getResult().getType(), group, first.getRows(),
        first.getOccurrences(), builder.getArrayAttr(kernels), sorted,
        first.getDirectAttr(), first.getRing(), after, FlatSymbolRefAttr(),
        IntegerAttr());
  }

  Operation *mergeUpdate(OpBuilder &builder, Location loc,
                         ArrayRef<Operation *> ops, FlatSymbolRefAttr group,
                         ValueRange after) {
    SmallVector<Part> parts;
    auto first = cast<plan::SegmentUpdateOp>(ops.front());
    for (Operation *op : ops) {
      auto update = cast<plan::SegmentUpdateOp>(op);
      for (auto [i, name] : llvm::enumerate(update.getFeaturesAttr())) {
        Part p = part(name);
        p.grad = update.getGrads()[i];
        if (int32_t at = update.getInverseIndex()[i]; at >= 0)
          p.inverse = update.getInverses()[at];
        parts.push_back(p);
      }
    }
    ArrayAttr sorted = names(builder, parts);
    SmallVector<Value> grads, inverses;
    SmallVector<int32_t> index;
    for (const Part &p : parts) {
      grads.push_back(p.grad);
      index.push_back(p.inverse ? int32_t(inverses.size()) : -1);
      if (p.inverse)
        inverses.push_back(p.inverse);
    }
    return plan::SegmentUpdateOp::create(
        builder, loc, first.getResult().getType(), group, first.getRows(),
        first.getOccurrences(), first.getKernelAttr(), grads, inverses,
        builder.getDenseI32ArrayAttr(index), sorted, after, FlatSymbolRefAttr(),
        IntegerAttr());
  }

  Part part(Attribute name) {
    auto feature = cast<StringAttr>(name);
    return {order.lookup(feature.getValue()), feature, {}, {}, {}};
  }

  /// Sorts by the features' order in the spec.
  static ArrayAttr names(OpBuilder &builder, SmallVector<Part> &parts) {
    llvm::stable_sort(
        parts, [](const Part &a, const Part &b) { return a.order < b.order; });
    SmallVector<Attribute> list;
    for (const Part &p : parts)
      list.push_back(p.feature);
    return builder.getArrayAttr(list);
  }

  plan::GroupOp groupOf(FlatSymbolRefAttr name) {
    for (plan::GroupOp group : merged)
      if (group.getSymName() == name.getValue())
        return group;
    return {};
  }

  plan::ProgramOp program;
  llvm::StringMap<int> classOf;
  llvm::StringMap<int64_t> order;
  SmallVector<plan::GroupOp> merged;
  SmallVector<bool> many;
  llvm::MapVector<std::pair<int, const void *>, SmallVector<Operation *>>
      stages;
  SmallVector<Operation *> dead;
};

struct PlanGroup : public terrace::impl::PlanGroupBase<PlanGroup> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<plan::ProgramOp> programs(module.getOps<plan::ProgramOp>());
    if (programs.empty()) {
      module.emitError("has no plan.program; run emb-to-plan first");
      return signalPassFailure();
    }
    if (programs.size() > 1) {
      programs[1].emitError("plan-group merges the groups of one program; the "
                            "programs of several workers need the distributed "
                            "exchange");
      return signalPassFailure();
    }
    FailureOr<ProgramModel> model = ProgramModel::of(programs.front());
    if (failed(model))
      return signalPassFailure();
    SmallVector<Class> classes = classify(*model);
    for (Class &one : classes)
      makeGroup(one, *model);
    if (failed(Merger(programs.front(), classes).run()))
      return signalPassFailure();
    size_t before = model->groups.size();
    for (plan::GroupOp old : model->groups)
      old.erase();
    if (failed(sizeRings(programs.front())))
      return signalPassFailure();
    remark::passed(module.getLoc(),
                   remark::RemarkOpts::name("Groups").category("plan-group"))
        << remark::add("{0} shards in {1} groups", before, classes.size())
        << remark::metric("shards", int64_t(before))
        << remark::metric("groups", int64_t(classes.size()));
  }

  /// Groups whose rows one kernel call and one directory can serve.
  SmallVector<Class> classify(const ProgramModel &model) {
    SmallVector<Class> classes;
    llvm::MapVector<Attribute, size_t> newest;
    for (plan::GroupOp group : model.groups) {
      // Tables of a group agree in optimizer and row: the first speaks for all.
      Attribute optimizer, row;
      for (emb::TableOp table : model.tables)
        if (group.getTableIndex(table.getSymName()) == 0)
          optimizer = table.getOptimizer(), row = table.getStateType().getRow();
      MLIRContext *context = &getContext();
      auto orUnit = [&](Attribute a) {
        return a ? a : Attribute(UnitAttr::get(context));
      };
      Attribute key =
          ArrayAttr::get(context, {Attribute(group.getRecord()), optimizer, row,
                                   Attribute(group.getHomeAttr()),
                                   orUnit(group.getCacheAttr()),
                                   orUnit(group.getPolicyAttr())});
      int64_t rows = int64_t(group.getRows().value_or(0));
      auto [it, fresh] = newest.insert({key, classes.size()});
      if (!fresh && classes[it->second].rows + rows > schedule::maxGroupRows) {
        it->second = classes.size();
        fresh = true;
      }
      if (fresh)
        classes.emplace_back();
      Class &one = classes[it->second];
      one.members.push_back(group);
      one.rows += rows;
    }
    // Names by dimension, in order of the first table.
    llvm::StringMap<int> used;
    for (Class &one : classes) {
      std::string name =
          "g" + std::to_string(one.members.front().getRecord().getDim());
      if (int n = used[name]++; n > 0)
        name += "_" + std::to_string(n);
      names.push_back(name);
    }
    return classes;
  }

  void makeGroup(Class &one, const ProgramModel &model) {
    plan::GroupOp first = one.members.front();
    OpBuilder builder(first);
    SmallVector<Attribute> tables;
    SmallVector<int64_t> bases;
    int64_t base = 0, retained = 0;
    GroupBounds bounds;
    for (plan::GroupOp member : one.members) {
      for (auto [i, table] : llvm::enumerate(member.getTables())) {
        tables.push_back(table);
        bases.push_back(base + member.getBase(unsigned(i)));
      }
      base += int64_t(member.getRows().value_or(0));
      retained += int64_t(member.getRetained().value_or(0));
      GroupBounds b = boundsOf(model, member);
      bounds.occurrences += b.occurrences;
      bounds.unique += b.unique;
    }
    bounds.occurrences = std::min(bounds.occurrences, model.shape.maxIds);
    bounds.unique = std::min(bounds.unique, bounds.occurrences);
    bool cached = first.isCached();
    auto i64 = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
    std::string name = names[index++];
    SmallVector<Location> locs;
    for (plan::GroupOp member : one.members)
      locs.push_back(member.getLoc());
    one.merged = plan::GroupOp::create(
        builder, builder.getFusedLoc(locs), builder.getStringAttr(name),
        builder.getArrayAttr(tables), first.getRecordAttr(),
        first.getHomeAttr(), first.getCacheAttr(),
        cached ? i64(std::min(retained, base)) : IntegerAttr(), IntegerAttr(),
        first.getPolicyAttr(), i64(base), builder.getDenseI64ArrayAttr(bases),
        i64(bounds.occurrences), i64(bounds.unique),
        cached ? i64(bounds.unique) : IntegerAttr(),
        first.getUpdateKernelAttr());
    remark::passed(
        one.merged.getLoc(),
        remark::RemarkOpts::name("Group").category("plan-group").function(name))
        << remark::add("{0}: {1} tables, {2} rows; a batch has up to {3} ids "
                       "and {4} unique rows",
                       name, tables.size(), base, bounds.occurrences,
                       bounds.unique)
        << remark::metric("tables", int64_t(tables.size()))
        << remark::metric("rows", base)
        << remark::metric("max_unique", bounds.unique);
  }

  SmallVector<std::string> names;
  size_t index = 0;
};

} // namespace
