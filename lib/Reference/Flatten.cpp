//===- Flatten.cpp - An emb step as the reference program -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names are made here, from features and tables, so that the text does not
// depend on how a printer would number the values.
//
//===----------------------------------------------------------------------===//
#include "Reference/Flatten.h"

#include "dialects/emb/Emb.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace terrace;
namespace json = llvm::json;

namespace {

class Flattener {
public:
  Flattener(ModuleOp module, emb::StepOp step) : module(module), step(step) {}

  FailureOr<json::Value> run();

private:
  std::string define(Value v) {
    std::string name = "%" + std::to_string(names.size());
    names[v] = name;
    return name;
  }
  std::string use(Value v) { return names.lookup(v); }
  json::Array defineAll(ValueRange values) {
    json::Array a;
    for (Value v : values)
      a.push_back(define(v));
    return a;
  }
  json::Array useAll(ValueRange values) {
    json::Array a;
    for (Value v : values)
      a.push_back(use(v));
    return a;
  }
  int64_t table(FlatSymbolRefAttr ref) {
    auto it = ref ? tables.find(ref.getValue()) : tables.end();
    return it == tables.end() ? -1 : it->second;
  }
  json::Array tableList(ArrayAttr refs) {
    json::Array a;
    for (Attribute ref : refs)
      a.push_back(table(cast<FlatSymbolRefAttr>(ref)));
    return a;
  }

  FailureOr<json::Object> flatten(Operation &op);
  FailureOr<json::Object> feature(emb::FeatureOp op);
  json::Object update(emb::UpdateOp op);
  json::Object dense(emb::DenseOp op);

  ModuleOp module;
  emb::StepOp step;
  llvm::DenseMap<Value, std::string> names;
  llvm::StringMap<int64_t> tables;
  int64_t featureCount = 0;
};

FailureOr<json::Object> Flattener::feature(emb::FeatureOp op) {
  if (!op.isBags()) {
    // Only the head reads a dense column, as its label.
    return json::Object{{"op", "label"}, {"result", define(op.getResult())}};
  }
  // Features are numbered as the spec has them, or as they come.
  int64_t index =
      op.getIndex() ? static_cast<int64_t>(*op.getIndex()) : featureCount;
  ++featureCount;
  return json::Object{{"op", "feature"},
                      {"result", define(op.getResult())},
                      {"feature", index}};
}

json::Object Flattener::dense(emb::DenseOp op) {
  json::Object o{{"op", "dense"},
                 {"kind", op.getKind()},
                 {"args", useAll(op.getPooled())},
                 {"results", defineAll(op.getResults())}};
  if (Value label = op.getLabel())
    o["label"] = use(label);
  return o;
}

json::Object Flattener::update(emb::UpdateOp op) {
  json::Array pool, inverse, winners;
  for (unsigned i = 0, e = op.getBags().size(); i < e; ++i) {
    pool.push_back(emb::stringifyPooling(op.getPooling(i)));
    Value inv = op.getInverseOf(i), win = op.getWinnerOf(i);
    inverse.push_back(inv ? json::Value(use(inv)) : json::Value(nullptr));
    winners.push_back(win ? json::Value(use(win)) : json::Value(nullptr));
  }
  return json::Object{{"op", "update"},
                      {"table", table(op.getTableRef())},
                      {"state", use(op.getState())},
                      {"pool", std::move(pool)},
                      {"bags", useAll(op.getBags())},
                      {"inverse", std::move(inverse)},
                      {"grads", useAll(op.getGrads())},
                      {"winners", std::move(winners)},
                      {"result", define(op.getResult())}};
}

FailureOr<json::Object> Flattener::flatten(Operation &op) {
  using Result = FailureOr<json::Object>;
  return llvm::TypeSwitch<Operation *, Result>(&op)
      .Case([&](emb::FeatureOp o) { return feature(o); })
      .Case([&](emb::CheckOp o) -> Result {
        return json::Object{{"op", "check"},
                            {"args", useAll(o.getBags())},
                            {"results", defineAll(o.getResults())},
                            {"tables", tableList(o.getTables())}};
      })
      .Case([&](emb::TranslateOp o) -> Result {
        return json::Object{{"op", "translate"},
                            {"arg", use(o.getBags())},
                            {"result", define(o.getResult())},
                            {"table", table(o.getTableAttr())}};
      })
      .Case([&](emb::StateOp o) -> Result {
        return json::Object{{"op", "state"},
                            {"result", define(o.getResult())},
                            {"table", table(o.getTableAttr())}};
      })
      .Case([&](emb::LookupOp o) -> Result {
        json::Object j{{"op", "lookup"},
                       {"pooling", emb::stringifyPooling(o.getPooling())},
                       {"state", use(o.getState())},
                       {"bags", use(o.getBags())},
                       {"result", define(o.getPooled())}};
        if (o.getWinner())
          j["winner"] = define(o.getWinner());
        return j;
      })
      .Case([&](emb::DedupOp o) -> Result {
        return json::Object{{"op", "dedup"},
                            {"args", useAll(o.getBags())},
                            {"results", defineAll(o.getUnique())},
                            {"inverse", define(o.getInverse())}};
      })
      .Case([&](emb::ExpandOp o) -> Result {
        return json::Object{{"op", "expand"},
                            {"arg", use(o.getPooled())},
                            {"inverse", use(o.getInverse())},
                            {"result", define(o.getResult())}};
      })
      .Case([&](emb::DenseOp o) -> Result { return dense(o); })
      .Case([&](emb::UpdateOp o) -> Result { return update(o); })
      .Case([&](emb::CommitOp o) -> Result {
        return json::Object{{"op", "commit"},
                            {"tables", tableList(o.getTables())},
                            {"states", useAll(o.getStates())}};
      })
      .Default([&](Operation *o) -> Result {
        return o->emitOpError("is not part of the reference program");
      });
}

FailureOr<json::Value> Flattener::run() {
  int64_t n = 0;
  for (auto op : module.getOps<emb::TableOp>())
    tables[op.getSymName()] = n++;
  json::Array ops;
  for (Operation &op : step.getBody().front()) {
    // The interpreter knows both from the batch and the session.
    if (isa<emb::ScalarOp, emb::SamplesOp>(op))
      continue;
    FailureOr<json::Object> o = flatten(op);
    if (failed(o))
      return failure();
    ops.push_back(std::move(*o));
  }
  return json::Value(json::Object{{"ops", std::move(ops)}});
}

} // namespace

FailureOr<json::Value> terrace::flattenStep(ModuleOp module,
                                            llvm::StringRef stepName) {
  auto step = module.lookupSymbol<emb::StepOp>(stepName);
  if (!step)
    return module.emitError("there is no step @") << stepName;
  if (step.getWorkers() != 1)
    return step.emitError("a worker's program has no reference of its own: "
                          "flatten the step before emb-shard");
  return Flattener(module, step).run();
}
