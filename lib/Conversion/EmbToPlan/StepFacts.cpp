//===- StepFacts.cpp - What a step says about a model ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Conversion/EmbToPlan/StepFacts.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace terrace;

namespace {

class Collector {
public:
  explicit Collector(emb::StepOp step) { facts.step = step; }

  FailureOr<StepFacts> run() {
    emb::StepOp step = facts.step;
    if (step.getWorkers() > 1)
      return step.emitError("worker ")
             << step.getWorker() << " of " << step.getWorkers()
             << ": a step of several workers needs the distributed exchange, "
                "which this version does not lower";
    for (auto table :
         step->getParentOfType<ModuleOp>().getOps<emb::TableOp>()) {
      tableIndex[table.getSymName()] = int(facts.tables.size());
      facts.tables.push_back({table, {}, {}});
    }
    for (Operation &op : step.getBody().front())
      if (failed(collect(op)))
        return failure();
    if (!facts.check)
      return step.emitError("has no emb.check; every step checks its ids");
    if (!facts.dense)
      return step.emitError("has no emb.dense; a head or the trainer must take "
                            "the outputs");
    llvm::stable_sort(facts.features,
                      [&](const FeatureFacts &a, const FeatureFacts &b) {
                        return position(a.op) < position(b.op);
                      });
    for (auto [f, feature] : llvm::enumerate(facts.features)) {
      facts.tables[feature.table].features.push_back(int(f));
      if (feature.dedup >= 0)
        facts.dedups[feature.dedup].features.push_back(int(f));
    }
    for (TableFacts &table : facts.tables)
      if (facts.trains && !table.features.empty() && !table.update)
        return step.emitError("table '")
               << table.op.getSymName()
               << "' is looked up but not updated; a plan program trains all "
                  "tables or none";
    return std::move(facts);
  }

private:
  static int64_t position(emb::FeatureOp op) {
    return op.getIndex() ? int64_t(*op.getIndex())
                         : std::numeric_limits<int64_t>::max();
  }

  LogicalResult collect(Operation &op) {
    if (auto check = dyn_cast<emb::CheckOp>(op))
      facts.check = check;
    else if (auto dense = dyn_cast<emb::DenseOp>(op))
      facts.dense = dense;
    else if (auto lookup = dyn_cast<emb::LookupOp>(op))
      return collectLookup(lookup);
    else if (auto update = dyn_cast<emb::UpdateOp>(op))
      return collectUpdate(update);
    else if (isa<emb::ReduceOp, emb::GradWeightsOp, emb::ExchangeOp>(op))
      return op.emitError("has no lowering yet: needs ")
             << (isa<emb::ReduceOp>(op)        ? "partial sums of gradients"
                 : isa<emb::GradWeightsOp>(op) ? "gradients of weights"
                                               : "the distributed exchange");
    return success();
  }

  LogicalResult collectLookup(emb::LookupOp lookup) {
    FeatureFacts f;
    f.lookup = lookup;
    // From the look-up's bags back to the column they came from.
    Value bags = lookup.getBags();
    while (Operation *op = bags.getDefiningOp()) {
      if (auto feature = dyn_cast<emb::FeatureOp>(op)) {
        f.op = feature;
        break;
      }
      if (auto translate = dyn_cast<emb::TranslateOp>(op)) {
        bags = translate.getBags();
      } else if (auto dedup = dyn_cast<emb::DedupOp>(op)) {
        f.dedup = dedupOf(dedup);
        bags = dedup.getBags()[cast<OpResult>(bags).getResultNumber()];
      } else if (auto check = dyn_cast<emb::CheckOp>(op)) {
        bags = check.getBags()[cast<OpResult>(bags).getResultNumber()];
      } else {
        break;
      }
    }
    if (!f.op)
      return lookup.emitError("takes bags that come from no feature");
    FlatSymbolRefAttr table = lookup.getTableRef();
    if (!table || !tableIndex.count(table.getValue()))
      return lookup.emitError("reads a state of no table of the module");
    f.table = tableIndex.lookup(table.getValue());
    f.weighted = bool(f.op.getWeights());
    for (const FeatureFacts &other : facts.features)
      if (other.op == f.op)
        return lookup.emitError("feature '")
               << f.op.getName()
               << "' is looked up twice; a feature has one "
                  "output";
    if (f.dedup >= 0 && facts.dedups[f.dedup].name.empty())
      facts.dedups[f.dedup].name = f.op.getDedup()
                                       ? f.op.getDedup()->str()
                                       : "dedup" + std::to_string(f.dedup);
    facts.features.push_back(f);
    return success();
  }

  LogicalResult collectUpdate(emb::UpdateOp update) {
    FlatSymbolRefAttr table = update.getTableRef();
    if (!table || !tableIndex.count(table.getValue()))
      return update.emitError("updates a state of no table of the module");
    TableFacts &t = facts.tables[tableIndex.lookup(table.getValue())];
    if (t.update)
      return update.emitError("table '")
             << table.getValue() << "' is updated twice in one step";
    t.update = update;
    facts.trains = true;
    return success();
  }

  int dedupOf(emb::DedupOp op) {
    for (auto [i, dedup] : llvm::enumerate(facts.dedups))
      if (dedup.op == op)
        return int(i);
    facts.dedups.push_back(
        {op, op.getGroup() ? op.getGroup()->str() : std::string(), {}});
    return int(facts.dedups.size()) - 1;
  }

  StepFacts facts;
  llvm::StringMap<int> tableIndex;
};

} // namespace

FailureOr<StepFacts> StepFacts::of(emb::StepOp step) {
  return Collector(step).run();
}
