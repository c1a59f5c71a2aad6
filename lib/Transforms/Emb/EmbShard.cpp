//===- EmbShard.cpp - Steps to workers' programs --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Table-wise shards. A worker's program is the step with its own samples at the
// two ends (features and check; head) and all samples in between, for the
// features whose tables it owns. Which of the two an op lives in follows from
// what it is, so the clone needs no analysis.
//
//===----------------------------------------------------------------------===//
#include "Transforms/Emb/EmbPasses.h"
#include "dialects/emb/Emb.h"
#include "dialects/plan/Plan.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

namespace terrace {
#define GEN_PASS_DEF_EMBSHARD
#include "Transforms/Emb/EmbPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

/// What a step exchanges: one item per feature, in the order of its check.
struct StepItems {
  SmallVector<Attribute> names;
  SmallVector<int64_t> owners;
};

class WorkerProgram {
public:
  WorkerProgram(emb::StepOp step, const StepItems &items,
                const llvm::StringMap<int64_t> &owner, int64_t worker,
                int64_t workers, ArrayRef<std::string> channels)
      : step(step), items(items), owner(owner), worker(worker),
        workers(workers), channels(channels), b(step) {}

  LogicalResult build();

private:
  Value get(Value v) { return mapping.lookupOrNull(v); }
  bool owns(FlatSymbolRefAttr table) const {
    return owner.lookup(table.getValue()) == worker;
  }
  int64_t localBatch() {
    return (static_cast<int64_t>(step.getBatch()) + workers - 1) / workers;
  }
  Type localType(Type type);
  SmallVector<Value> exchange(StringRef channel, Location loc,
                              ValueRange inputs, TypeRange results);
  LogicalResult clone(Operation &op);
  void cloneCheck(emb::CheckOp op);
  void cloneDense(emb::DenseOp op);
  void cloneUpdate(emb::UpdateOp op);

  emb::StepOp step;
  const StepItems &items;
  const llvm::StringMap<int64_t> &owner;
  int64_t worker, workers;
  ArrayRef<std::string> channels; // ids, outputs, gradients
  OpBuilder b;
  IRMapping mapping;
};

/// The same value over the samples of one worker.
Type WorkerProgram::localType(Type type) {
  int64_t batch = step.getBatch();
  if (auto bags = dyn_cast<emb::BagsType>(type)) {
    int64_t perBag = (bags.getMaxIds() + batch - 1) / batch;
    return emb::BagsType::get(
        type.getContext(), localBatch(),
        std::min(bags.getMaxIds(), std::max<int64_t>(1, localBatch() * perBag)),
        bags.getChecked(), bags.getWeighted());
  }
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    SmallVector<int64_t> shape(tensor.getShape());
    if (!shape.empty() && shape[0] == batch)
      shape[0] = localBatch();
    return RankedTensorType::get(shape, tensor.getElementType());
  }
  return type;
}

SmallVector<Value> WorkerProgram::exchange(StringRef channel, Location loc,
                                           ValueRange inputs,
                                           TypeRange results) {
  auto op = emb::ExchangeOp::create(
      b, loc, results, FlatSymbolRefAttr::get(b.getContext(), channel), inputs);
  return SmallVector<Value>(op.getResults());
}

void WorkerProgram::cloneCheck(emb::CheckOp op) {
  SmallVector<Value> raw;
  for (Value v : op.getBags())
    raw.push_back(get(v));
  auto check = emb::CheckOp::create(b, op.getLoc(), raw, op.getTablesAttr(),
                                    op.getOnBadIdAttr());
  SmallVector<Type> owned;
  SmallVector<Value> ownedOf;
  for (auto [i, v] : llvm::enumerate(op.getResults()))
    if (items.owners[i] == worker) {
      owned.push_back(v.getType());
      ownedOf.push_back(v);
    }
  SmallVector<Value> mine =
      exchange(channels[0], op.getLoc(), check.getResults(), owned);
  for (auto [v, global] : llvm::zip(ownedOf, mine))
    mapping.map(v, global);
}

void WorkerProgram::cloneDense(emb::DenseOp op) {
  SmallVector<Value> owned;
  SmallVector<Type> localTypes, ownedGrads;
  for (auto [i, v] : llvm::enumerate(op.getPooled())) {
    localTypes.push_back(localType(v.getType()));
    if (items.owners[i] == worker)
      owned.push_back(get(v));
  }
  SmallVector<Value> inputs{get(op.getSamples())};
  llvm::append_range(inputs,
                     exchange(channels[1], op.getLoc(), owned, localTypes));
  if (Value label = op.getLabel())
    inputs.push_back(get(label));
  SmallVector<Type> results;
  for (Type type : op.getResultTypes())
    results.push_back(localType(type));
  auto dense =
      emb::DenseOp::create(b, op.getLoc(), results, op.getKindAttr(), inputs);
  if (!op.hasGradients())
    return;
  SmallVector<Value> ownedOf;
  for (auto [i, v] : llvm::enumerate(op.getResults()))
    if (items.owners[i] == worker) {
      ownedGrads.push_back(v.getType());
      ownedOf.push_back(v);
    }
  SmallVector<Value> mine =
      exchange(channels[2], op.getLoc(), dense.getResults(), ownedGrads);
  for (auto [v, global] : llvm::zip(ownedOf, mine))
    mapping.map(v, global);
}

void WorkerProgram::cloneUpdate(emb::UpdateOp op) {
  // All features of a table have one owner, so the update moves whole.
  mapping.map(op.getResult(), b.clone(*op, mapping)->getResult(0));
}

LogicalResult WorkerProgram::clone(Operation &op) {
  if (isa<emb::ScalarOp, emb::SamplesOp>(op)) {
    b.clone(op, mapping);
  } else if (isa<emb::FeatureOp>(op)) {
    Operation *copy = b.clone(op, mapping);
    copy->getResult(0).setType(localType(op.getResult(0).getType()));
  } else if (auto check = dyn_cast<emb::CheckOp>(op)) {
    cloneCheck(check);
  } else if (auto dense = dyn_cast<emb::DenseOp>(op)) {
    cloneDense(dense);
  } else if (auto dedup = dyn_cast<emb::DedupOp>(op)) {
    // The owner sees all samples of its features: its part of the group.
    SmallVector<Value> bags, results;
    for (auto [v, unique] : llvm::zip(dedup.getBags(), dedup.getUnique()))
      if (Value mine = get(v)) {
        bags.push_back(mine);
        results.push_back(unique);
      }
    if (bags.empty())
      return success();
    auto part =
        emb::DedupOp::create(b, op.getLoc(), bags, dedup.getGroupAttr());
    for (auto [old, unique] : llvm::zip(results, part.getUnique()))
      mapping.map(old, unique);
    mapping.map(dedup.getInverse(), part.getInverse());
  } else if (auto state = dyn_cast<emb::StateOp>(op)) {
    if (owns(state.getTableAttr()))
      b.clone(op, mapping);
  } else if (auto update = dyn_cast<emb::UpdateOp>(op)) {
    if (owns(update.getTableRef()))
      cloneUpdate(update);
  } else if (auto commit = dyn_cast<emb::CommitOp>(op)) {
    SmallVector<Attribute> tables;
    SmallVector<Value> states;
    for (auto [table, value] :
         llvm::zip(commit.getTables(), commit.getStates()))
      if (owns(cast<FlatSymbolRefAttr>(table))) {
        tables.push_back(table);
        states.push_back(get(value));
      }
    if (!tables.empty())
      emb::CommitOp::create(b, op.getLoc(), b.getArrayAttr(tables), states);
  } else if (isa<emb::TranslateOp, emb::LookupOp, emb::ExpandOp, emb::ReduceOp>(
                 op)) {
    // Between the exchanges: here where the first operand is.
    if (llvm::all_of(op.getOperands(), [&](Value v) { return !!get(v); }))
      b.clone(op, mapping);
  } else {
    return op.emitOpError("cannot be sharded over workers");
  }
  return success();
}

LogicalResult WorkerProgram::build() {
  auto program = emb::StepOp::create(
      b, step.getLoc(),
      (step.getSymName() + "_w" + std::to_string(worker)).str(),
      static_cast<int64_t>(step.getBatch()), step.getMaxIds(), worker, workers);
  b.setInsertionPointToStart(&program.getBody().emplaceBlock());
  for (Operation &op : step.getBody().front())
    if (failed(clone(op)))
      return failure();
  return success();
}

class EmbShardPass : public terrace::impl::EmbShardBase<EmbShardPass> {
public:
  using EmbShardBase::EmbShardBase;
  void runOnOperation() override;

private:
  FailureOr<StepItems> itemsOf(emb::StepOp step,
                               const llvm::StringMap<int64_t> &owner);
};

FailureOr<StepItems>
EmbShardPass::itemsOf(emb::StepOp step, const llvm::StringMap<int64_t> &owner) {
  StepItems items;
  for (auto check : step.getBody().front().getOps<emb::CheckOp>())
    for (auto [i, bags] : llvm::enumerate(check.getBags())) {
      auto feature = bags.getDefiningOp<emb::FeatureOp>();
      if (!feature)
        return check.emitError("operand #")
               << i << " does not come from an emb.feature";
      items.names.push_back(feature.getNameAttr());
      items.owners.push_back(owner.lookup(check.getTable(i)));
    }
  for (auto dense : step.getBody().front().getOps<emb::DenseOp>())
    if (dense.getPooled().size() != items.names.size())
      return dense.emitError("reads ")
             << dense.getPooled().size() << " outputs, and the step checks "
             << items.names.size() << " features";
  return items;
}

void EmbShardPass::runOnOperation() {
  ModuleOp module = getOperation();
  plan::DecisionAttr decision = plan::getDecision(module);
  if (!decision) {
    module.emitError("emb-shard needs plan.decision: run emb-decide first");
    return signalPassFailure();
  }
  llvm::StringMap<int64_t> owner;
  int64_t workers = 1;
  if (auto pins = module->getAttrOfType<DictionaryAttr>(emb::EmbDialect::kPins))
    if (auto n = pins.getAs<IntegerAttr>("workers"))
      workers = n.getInt();
  for (auto table : module.getOps<emb::TableOp>()) {
    plan::TableDecisionAttr d = decision.getTable(table.getSymName());
    emb::ShardsAttr shards = d ? d.getShards() : emb::ShardsAttr();
    if (!shards) {
      owner[table.getSymName()] = 0;
      continue;
    }
    if (shards.getKind() != emb::ShardKind::Table ||
        shards.getWorkers().size() != 1) {
      table.emitError("only table-wise shards can be made, not ") << shards;
      return signalPassFailure();
    }
    table.setShardsAttr(shards);
    owner[table.getSymName()] = shards.getWorkers().front();
    workers = std::max(workers, shards.getWorkers().front() + 1);
  }
  if (workers == 1)
    return;
  OpBuilder b(module.getContext());
  SmallVector<emb::StepOp> steps(module.getOps<emb::StepOp>());
  for (emb::StepOp step : steps) {
    FailureOr<StepItems> items = itemsOf(step, owner);
    if (failed(items))
      return signalPassFailure();
    b.setInsertionPoint(step);
    bool trains = !step.getBody().front().getOps<emb::UpdateOp>().empty();
    std::vector<std::string> channels;
    for (auto [name, direction] :
         {std::pair("ids", emb::Direction::ToOwner),
          std::pair("outputs", emb::Direction::FromOwner),
          std::pair("grads", emb::Direction::ToOwner)}) {
      if (!trains && channels.size() == 2)
        break; // a forward-only step has no gradients
      channels.push_back((step.getSymName() + "_" + name).str());
      emb::ChannelOp::create(b, step.getLoc(), channels.back(), direction,
                             b.getArrayAttr(items->names), items->owners,
                             workers);
    }
    for (int64_t w = 0; w < workers; ++w)
      if (failed(
              WorkerProgram(step, *items, owner, w, workers, channels).build()))
        return signalPassFailure();
    remark::passed(step.getLoc(), remark::RemarkOpts::name("shard")
                                      .category("emb-shard")
                                      .function(step.getSymName()))
        << remark::add("{0} programs, {1} features exchanged", workers,
                       items->names.size())
        << remark::metric("Channels", channels.size());
    step.erase();
  }
}

} // namespace
