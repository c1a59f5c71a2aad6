//===- PlanToArtifact.cpp - From plan to the artifact's JSON --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per key of docs/artifact.md. Keys of an object are written in
// sorted order, numbers exactly, so equal plans give equal bytes.
//
//===----------------------------------------------------------------------===//
#include "Conversion/PlanToArtifact/PlanToArtifact.h"

#include "Conversion/PlanToArtifact/RunTimeKeys.h"
#include "CostModel/Footprint.h"
#include "Machine/Machine.h"
#include "Schedule/HappensBefore.h"
#include "Schedule/Waits.h"
#include "Transforms/Plan/ProgramGraph.h"
#include "Transforms/Plan/ProgramModel.h"
#include "runtime/core/Hash.h"

#include "llvm/Support/xxhash.h"

#include <set>

using namespace mlir;
using namespace terrace;
namespace json = llvm::json;

namespace {

class Writer {
public:
  Writer(const ProgramModel &model, const ProgramGraph &program,
         const spec::Spec &spec)
      : m(model), p(program), spec(spec) {}

  LogicalResult check() {
    plan::ProgramOp program = m.program;
    if (program.getWorkers() != 1)
      return program.emitError("is for ")
             << program.getWorkers()
             << " workers: needs the distributed exchange, which this version "
                "does not have";
    if (!program.getArena() || !program.getLookahead())
      return program.emitError("has no arena or no lookahead; run "
                               "plan-schedule-prefetch and plan-allocate");
    for (emb::TierOp tier : m.tiers) {
      bool used = llvm::any_of(m.groups, [&](plan::GroupOp group) {
        return group.getHome() == tier.getSymName() ||
               (group.getCache() && *group.getCache() == tier.getSymName());
      });
      if (used && tier.getKind() == emb::TierKind::HBM)
        return tier.emitError("tier '")
               << tier.getSymName()
               << "' is GPU memory, which needs the gpu target; this version "
                  "runs on CPUs";
    }
    for (emb::TableOp table : m.tables) {
      if (table.getIds() == emb::IdKind::Dynamic)
        return table.emitError("table '") << table.getSymName()
                                          << "' has dynamic ids, which have no "
                                             "runtime yet";
      emb::RowAttr row = table.getStateType().getRow();
      if (row.isQuantized() && m.trains)
        return table.emitError("table '")
               << table.getSymName() << "' is stored as " << row.getElement()
               << ", which is for serving only";
    }
    for (plan::PlanStageOpInterface op : p.ops) {
      schedule::OpKind kind;
      if (!schedule::parse(op->getName().stripDialect().str(), kind) ||
          kind == schedule::OpKind::Other)
        return op->emitError("has no runtime yet");
      if (auto call = dyn_cast<plan::CallOp>(op.getOperation())) {
        StringRef head = call.getKind();
        if (head != "fm" && head != "logistic")
          return op->emitError("head '")
                 << head << "' is not one of fm and logistic";
        if (!spec.head)
          return op->emitError("has no label: the spec names no head");
      }
    }
    return success();
  }

  json::Object write(const json::Value &reference, int64_t processBytes) {
    plan::ProgramOp program = m.program;
    json::Object o;
    o["format"] = 1;
    if (!m.trains)
      o["serve"] = true;
    o["model"] = text(emb::EmbDialect::kModel, *spec.model);
    o["terrace"] = TERRACE_VERSION;
    o["batch"] = m.shape.batch;
    o["max_ids"] = m.shape.maxIds;
    o["seed"] = std::to_string(emb::getSeed(m.module));
    o["numerics"] =
        text(emb::EmbDialect::kNumerics, spec::name(spec.numerics.value));
    o["on_bad_id"] = onBadId();
    o["on_bad_grad"] =
        text(emb::EmbDialect::kOnBadGrad, spec::name(spec.onBadGrad.value));
    o["lookahead"] = int64_t(*program.getLookahead());
    o["tables"] = tables();
    o["features"] = features();
    o["dedup"] = dedup();
    o["head"] = head();
    o["tiers"] = tiers();
    o["groups"] = groups();
    o["store"] = json::Object{
        {"space", emb::storeSpaceOf(m.module)},
        {"retained", emb::storeRetainedOf(m.module)},
        {"on_full", spec::name(spec.train.checkpoint.onFull.value)}};
    o["lanes"] = lanes();
    o["rings"] = rings();
    o["arena"] = int64_t(*program.getArena());
    o["ops"] = ops();
    o["bound"] = bound();
    o["process_bytes"] = processBytes;
    o["train"] = trainKeys(spec.train);
    o["data"] = dataKeys(spec);
    o["reference"] = reference;
    return o;
  }

  std::vector<std::string> kernels() {
    std::set<std::string> names;
    for (plan::FeatureAttr feature : m.features)
      names.insert(kernelName(feature.getKernel()));
    for (plan::GroupOp group : m.groups)
      if (group.getUpdateKernelAttr())
        names.insert(kernelName(group.getUpdateKernelAttr()));
    return {names.begin(), names.end()};
  }

private:
  std::string text(StringRef attribute, StringRef otherwise) {
    if (auto attr = ModuleOp(m.module)->getAttrOfType<StringAttr>(attribute))
      return attr.getValue().str();
    return otherwise.str();
  }

  std::string onBadId() {
    plan::ProgramOp program = m.program;
    for (auto check :
         program.getPipeline().getBody().front().getOps<plan::CheckOp>())
      return check.getOnBadId().str();
    return "error";
  }

  std::string kernelName(FlatSymbolRefAttr symbol) {
    ModuleOp module = m.module;
    if (!symbol)
      return "";
    if (auto kernel = module.lookupSymbol<plan::KernelOp>(symbol.getAttr()))
      return kernel.getKernelName();
    return symbol.getValue().str();
  }

  static json::Object
  parameters(StringRef kind,
             ArrayRef<std::pair<StringRef, double>> parameters) {
    json::Object o{{"kind", kind}};
    for (auto [name, value] : parameters)
      o[name] = value;
    return o;
  }

  static std::string dtype(emb::TableOp table) {
    std::string word;
    llvm::raw_string_ostream(word)
        << table.getStateType().getRow().getElement();
    return word;
  }

  json::Array tables() {
    json::Array list;
    uint64_t seed = emb::getSeed(m.module);
    for (auto [t, table] : llvm::enumerate(m.tables)) {
      emb::TableOp op = table;
      auto init = cast<emb::InitAttrInterface>(op.getInit());
      auto optimizer = cast<emb::OptimizerAttrInterface>(op.getOptimizer());
      list.push_back(json::Object{
          {"name", op.getSymName()},
          {"rows", op.getRows()},
          {"dim", op.getDim()},
          {"dtype", dtype(op)},
          {"rounding", op.getStateType().getRow().getStochastic() ? "stochastic"
                                                                  : "nearest"},
          {"ids", emb::stringifyIdKind(op.getIds())},
          {"init", parameters(init.getKindName(), init.getParameters())},
          {"init_key",
           std::to_string(trc::tableInitKey(seed, op.getSymName().str()))},
          {"optimizer",
           parameters(optimizer.getKindName(), optimizer.getHyperParameters())},
          {"group", m.tableGroup[t]},
          {"row_base", m.tableBase[t]}});
    }
    return list;
  }

  json::Array features() {
    json::Array list;
    for (auto [f, feature] : llvm::enumerate(m.features)) {
      json::Value weights = nullptr;
      if (feature.getWeights())
        weights = feature.getWeights().getValue();
      list.push_back(json::Object{
          {"name", feature.getName().getValue()},
          {"column", feature.getColumnName()},
          {"type", feature.getStringIds() ? "string" : "int"},
          {"table", m.featureTable[f]},
          {"pooling", emb::stringifyPooling(feature.getPooling())},
          {"weights", std::move(weights)},
          {"max_ids", feature.getMaxIds()},
          {"overflow", emb::stringifyOverflow(feature.getOverflow())},
          {"dedup", m.featureDedup[f]},
          {"gather", kernelName(feature.getKernel())},
          {"output", feature.getOutput()}});
    }
    return list;
  }

  json::Array dedup() {
    json::Array list;
    plan::DedupOp op = m.dedup;
    if (!op)
      return list;
    for (size_t d = 0; d < op.getGroups().size(); ++d) {
      json::Array members;
      for (auto [f, in] : llvm::enumerate(m.featureDedup))
        if (in == int(d))
          members.push_back(int64_t(f));
      list.push_back(json::Object{
          {"name", cast<StringAttr>((*op.getNames())[d]).getValue()},
          {"features", std::move(members)}});
    }
    return list;
  }

  json::Value head() {
    for (plan::PlanStageOpInterface op : p.ops)
      if (auto call = dyn_cast<plan::CallOp>(op.getOperation()))
        return json::Object{{"kind", call.getKind()},
                            {"label", *spec.head->label}};
    return nullptr;
  }

  json::Array tiers() {
    json::Array list;
    for (emb::TierOp tier : m.tiers) {
      json::Array paths;
      if (tier.getPath())
        for (auto path : tier.getPath()->getAsRange<StringAttr>())
          paths.push_back(path.getValue());
      list.push_back(
          json::Object{{"name", tier.getSymName()},
                       {"kind", emb::stringifyTierKind(tier.getKind())},
                       {"capacity", int64_t(tier.getBytes())},
                       {"paths", std::move(paths)}});
    }
    return list;
  }

  bool isDirect(StringRef group) {
    return llvm::any_of(p.ops, [&](plan::PlanStageOpInterface op) {
      auto gather = dyn_cast<plan::GatherPoolOp>(op.getOperation());
      return gather && gather.getGroup() == group && gather.getDirect();
    });
  }

  json::Array groups() {
    json::Array list;
    for (auto [g, op] : llvm::enumerate(m.groups)) {
      plan::GroupOp group = op;
      json::Array tables;
      for (auto [t, in] : llvm::enumerate(m.tableGroup))
        if (in == int(g))
          tables.push_back(int64_t(t));
      plan::RecordAttr record = group.getRecord();
      json::Value cache = nullptr;
      if (group.isCached())
        cache = *group.getCache();
      json::Object o{
          {"name", group.getSymName()},
          {"tables", std::move(tables)},
          {"rows", int64_t(group.getRows().value_or(0))},
          {"dim", record.getDim()},
          {"weights_bytes", record.getWeightsBytes()},
          {"state_bytes", record.getStateBytes()},
          {"slot_bytes", record.getSlotBytes()},
          {"store_bytes", record.getStoreBytes()},
          {"home", group.getHome()},
          {"cache", std::move(cache)},
          {"retained", int64_t(group.getRetained().value_or(0))},
          {"slots", int64_t(group.getSlots().value_or(0))},
          {"policy", group.getPolicy().value_or("")},
          {"max_occurrences", int64_t(group.getMaxOccurrences().value_or(0))},
          {"max_unique", int64_t(group.getMaxUnique().value_or(0))},
          {"max_miss", int64_t(group.getMaxMiss().value_or(0))},
          {"update", kernelName(group.getUpdateKernelAttr())}};
      if (isDirect(group.getSymName()))
        o["direct"] = true;
      list.push_back(std::move(o));
    }
    return list;
  }

  json::Array lanes() {
    json::Array list;
    for (plan::LaneOp lane : p.lanes) {
      json::Object o{{"name", lane.getSymName()},
                     {"kind", plan::stringifyLaneKind(lane.getKind())}};
      if (lane.getDepth())
        o["depth"] = int64_t(*lane.getDepth());
      list.push_back(std::move(o));
    }
    return list;
  }

  json::Array rings() {
    json::Array list;
    for (auto [r, ring] : llvm::enumerate(p.rings)) {
      plan::RingOp op = ring;
      const schedule::Ring &facts = p.graph.rings[r];
      std::string name = schedule::name(facts.role);
      if (facts.group >= 0)
        name += "_" + plan::GroupOp(p.groups[facts.group]).getSymName().str();
      list.push_back(json::Object{{"name", name},
                                  {"role", schedule::name(facts.role)},
                                  {"group", facts.group},
                                  {"depth", int64_t(op.getDepth())},
                                  {"bytes", int64_t(op.getBytes())},
                                  {"offset", int64_t(*op.getOffset())}});
    }
    return list;
  }

  json::Array ops() {
    json::Array list;
    for (auto [i, op] : llvm::enumerate(p.graph.ops)) {
      json::Array waits;
      for (const schedule::Wait &wait : op.waits)
        waits.push_back(
            json::Object{{"op", wait.op}, {"distance", wait.distance}});
      // The ring that it writes; those that it reads go by role and group.
      int ring = -1;
      for (const schedule::Effect &e : op.effects)
        if (e.role == schedule::Role::Ring && e.write && ring < 0)
          ring = e.target;
      list.push_back(json::Object{{"op", schedule::name(op.kind)},
                                  {"lane", op.lane},
                                  {"ahead", op.ahead},
                                  {"group", op.group},
                                  {"ring", ring},
                                  {"waits", std::move(waits)}});
    }
    return list;
  }

  json::Array bound() {
    json::Array list;
    for (const TierUse &use : m.tierUse()) {
      emb::TierOp tier = use.tier;
      list.push_back(json::Object{{"tier", tier.getSymName()},
                                  {"capacity", int64_t(tier.getBytes())},
                                  {"bytes", use.total()},
                                  {"parts", json::Object{{"rings", use.rings},
                                                         {"slots", use.slots},
                                                         {"index", use.index},
                                                         {"rows", use.rows}}}});
    }
    return list;
  }

  const ProgramModel &m;
  const ProgramGraph &p;
  const spec::Spec &spec;
};

/// One key a line, in sorted order: diffs of two plans can be read.
std::string print(const json::Object &object) {
  std::vector<StringRef> keys;
  for (const auto &entry : object)
    keys.push_back(entry.first);
  llvm::sort(keys);
  std::string text = "{";
  llvm::raw_string_ostream os(text);
  for (auto [i, key] : llvm::enumerate(keys))
    os << (i ? ",\n" : "\n") << '"' << key << "\": " << *object.get(key);
  os << "\n}\n";
  return text;
}

} // namespace

/// Of the machine that the plan was made for. A machine file that cannot be
/// read was an error, or a warning and the defaults, when the plan was made.
static int64_t processBytes(ModuleOp module) {
  auto pins = module->getAttrOfType<DictionaryAttr>(emb::EmbDialect::kPins);
  if (auto file = pins ? pins.getAs<StringAttr>("machine") : StringAttr()) {
    llvm::Expected<machine::Machine> m =
        machine::Machine::load(file.getValue());
    if (m)
      return m->processBytes();
    llvm::consumeError(m.takeError());
  }
  return machine::Machine::conservative().processBytes();
}

FailureOr<ArtifactText>
terrace::planToArtifact(ModuleOp module, const spec::Spec &spec,
                        const json::Value &reference,
                        const ArtifactOptions &options) {
  SmallVector<plan::ProgramOp> programs(module.getOps<plan::ProgramOp>());
  if (programs.empty())
    return module.emitError("has no plan.program to write an artifact of");
  if (programs.size() > 1)
    return programs[1].emitError(
        "programs of several workers need the distributed exchange, which "
        "this version does not have");
  FailureOr<ProgramModel> model = ProgramModel::of(programs.front());
  FailureOr<ProgramGraph> program = ProgramGraph::of(programs.front());
  if (failed(model) || failed(program))
    return failure();
  Writer writer(*model, *program, spec);
  if (failed(writer.check()))
    return failure();
  schedule::deriveWaits(program->graph);
  for (const schedule::Finding &f : schedule::verify(program->graph)) {
    Operation *at = f.op >= 0 ? program->ops[f.op].getOperation()
                              : programs.front().getOperation();
    return at->emitError() << "[" << f.rule << "] " << f.message;
  }
  int64_t process =
      options.processBytes >= 0 ? options.processBytes : processBytes(module);
  for (auto [r, op] : llvm::enumerate(program->rings))
    if (program->graph.rings[r].role == schedule::RingRole::Ingest) {
      plan::RingOp ring = op;
      process += planner::readerBytes(ring.getBytes(), ring.getDepth());
    }
  json::Object object = writer.write(reference, process);
  ArtifactText text;
  text.hash = llvm::utohexstr(llvm::xxh3_64bits(print(object)),
                              /*LowerCase=*/true, /*Width=*/16);
  object["hash"] = text.hash;
  text.json = print(object);
  text.kernels = writer.kernels();
  return text;
}
