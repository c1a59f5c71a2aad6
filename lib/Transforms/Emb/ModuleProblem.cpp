//===- ModuleProblem.cpp - The planner's view of an emb module ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Transforms/Emb/ModuleProblem.h"

#include "CostModel/Wear.h"

#include "Planner/Decision.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace terrace;

emb::FeatureOp terrace::featureOfBags(Value bags) {
  while (Operation *op = bags.getDefiningOp()) {
    if (auto feature = dyn_cast<emb::FeatureOp>(op))
      return feature;
    unsigned result = cast<OpResult>(bags).getResultNumber();
    if (isa<emb::CheckOp, emb::DedupOp>(op) && result < op->getNumOperands())
      bags = op->getOperand(result);
    else if (auto translate = dyn_cast<emb::TranslateOp>(op))
      bags = translate.getBags();
    else
      break;
  }
  return {};
}

double terrace::expectedDedupFactor(ModuleOp module, StringRef group,
                                    ArrayRef<emb::FeatureOp> features,
                                    bool &measured) {
  auto factorOf = [](emb::ProfileAttr p) {
    return p && p.getUniqueBags() > 0 && p.getBatch() > 0
               ? std::max(1.0, double(p.getBatch()) / p.getUniqueBags())
               : 0.0;
  };
  measured = true;
  if (auto pins = module->getAttrOfType<DictionaryAttr>(emb::EmbDialect::kPins))
    if (auto groups = pins.getAs<DictionaryAttr>("dedup_profile"))
      if (double f = factorOf(groups.getAs<emb::ProfileAttr>(group)))
        return f;
  // A tuple repeats at most as often as its least repeating member.
  double least = 0;
  for (emb::FeatureOp feature : features) {
    double f = factorOf(feature.getProfileAttr());
    if (f == 0) {
      least = 0;
      break;
    }
    least = least == 0 ? f : std::min(least, f);
  }
  if (least > 0)
    return least;
  measured = false;
  return profile::dedupFactor(profile::assumedSamplesPerSession,
                              profile::assumedUnchanged);
}

namespace {

class Reader {
public:
  explicit Reader(ModuleOp module)
      : module(module), result{{}, {}, {}, {}, module.getLoc()},
        p(result.problem) {}

  FailureOr<ModuleProblem> run();

private:
  LogicalResult tiers();
  LogicalResult tables();
  LogicalResult step();
  LogicalResult pins();
  LogicalResult machineFile(DictionaryAttr pins);
  FailureOr<int> tierNamed(StringRef name, Location loc);
  static profile::Stats stats(emb::ProfileAttr attr);

  ModuleOp module;
  ModuleProblem result;
  planner::Problem &p;
  llvm::StringMap<int> tableIndex;
};

profile::Stats Reader::stats(emb::ProfileAttr attr) {
  profile::Stats s;
  if (!attr)
    return s;
  s.batches = attr.getBatches();
  s.batch = attr.getBatch();
  s.ids = attr.getIds();
  s.maxIds = attr.getMaxIds();
  s.uniqueIds = attr.getUniqueIds();
  s.maxUniqueIds = attr.getMaxUniqueIds();
  s.uniqueBags = attr.getUniqueBags();
  s.uniqueBagIds = attr.getUniqueBagIds();
  s.samplesPerSession = attr.getSamplesPerSession();
  s.distinctIds = attr.getDistinctIds();
  for (auto [rows, miss] : llvm::zip(attr.getCacheRows(), attr.getMissRatio()))
    s.missCurve.emplace_back(rows, miss);
  return s;
}

LogicalResult Reader::tiers() {
  std::vector<emb::TierOp> ops(module.getOps<emb::TierOp>().begin(),
                               module.getOps<emb::TierOp>().end());
  llvm::stable_sort(ops, [](emb::TierOp a, emb::TierOp b) {
    return a.getKind() < b.getKind();
  });
  for (emb::TierOp op : ops) {
    planner::Tier t;
    t.name = op.getSymName().str();
    t.kind = static_cast<machine::TierKind>(op.getKind());
    t.capacity = op.getBytes();
    t.perWorker = op.getPerWorker();
    if (op.getDriveWritesPerDay())
      t.driveWritesPerDay = op.getDriveWritesPerDay()->convertToDouble();
    t.warnOfWear = op.getWarnOfWear();
    if (op.getPath())
      t.extents = static_cast<int>(op.getPath()->size());
    p.tiers.push_back(t);
    result.tierLocs.push_back(op.getLoc());
  }
  if (p.tiers.empty()) {
    planner::Tier t;
    t.name = "dram";
    t.capacity = std::numeric_limits<int64_t>::max() / 4;
    t.implied = true;
    p.tiers.push_back(t);
    result.tierLocs.push_back(module.getLoc());
  }
  return success();
}

LogicalResult Reader::tables() {
  llvm::DenseMap<Attribute, int> classes;
  for (auto op : module.getOps<emb::TableOp>()) {
    planner::Table t;
    t.name = op.getSymName().str();
    t.rows = op.getRows();
    t.dim = op.getDim();
    emb::OptimizerAttrInterface optimizer = op.getOptimizer();
    std::optional<planner::Optimizer> kind =
        llvm::StringSwitch<std::optional<planner::Optimizer>>(
            optimizer.getKindName())
            .Case("sgd", planner::Optimizer::Sgd)
            .Case("adagrad", planner::Optimizer::Adagrad)
            .Case("rowwise_adagrad", planner::Optimizer::RowwiseAdagrad)
            .Case("adam", planner::Optimizer::Adam)
            .Case("momentum_sgd", planner::Optimizer::MomentumSgd)
            .Case("partial_rowwise_adam",
                  planner::Optimizer::PartialRowwiseAdam)
            .Case("lamb", planner::Optimizer::Lamb)
            .Case("ftrl", planner::Optimizer::Ftrl)
            .Default(std::nullopt);
    if (!kind)
      return op.emitError("optimizer '")
             << optimizer.getKindName() << "' is not known to the planner";
    t.optimizer = *kind;
    t.weightDecay = optimizer.getWeightDecay() != 0;
    t.weightsBytes = op.getStateType().getRow().getBytes(t.dim);
    Attribute record =
        ArrayAttr::get(module.getContext(),
                       {Attribute(optimizer), op.getStateType().getRow()});
    t.recordClass =
        classes.try_emplace(record, static_cast<int>(classes.size()))
            .first->second;
    t.hashed = op.getIds() != emb::IdKind::Index;
    t.stats = stats(op.getProfileAttr());
    if (t.stats.uniqueIds > 0 && p.profileOrigin.empty())
      p.profileOrigin = "in the module";
    tableIndex[t.name] = static_cast<int>(p.tables.size());
    p.tables.push_back(std::move(t));
    result.tableLocs.push_back(op.getLoc());
  }
  if (p.tables.empty())
    return module.emitError("the module has no emb.table: nothing to plan");
  return success();
}

LogicalResult Reader::step() {
  emb::StepOp step;
  for (auto op : module.getOps<emb::StepOp>()) {
    if (op.getWorkers() != 1)
      return op.emitError("step '") << op.getSymName() << "' is already one of "
                                    << op.getWorkers() << " workers' programs";
    bool trains = !op.getBody().front().getOps<emb::UpdateOp>().empty();
    if (!step || trains)
      step = op;
    if (trains)
      break;
  }
  if (!step)
    return module.emitError("the module has no emb.step: nothing to plan");
  p.serve = step.getBody().front().getOps<emb::UpdateOp>().empty();
  p.batch = step.getBatch();
  p.maxIds = step.getMaxIds();
  Block &body = step.getBody().front();
  llvm::DenseMap<Operation *, int> featureIndex;
  for (auto check : body.getOps<emb::CheckOp>())
    for (auto [i, bags] : llvm::enumerate(check.getBags())) {
      emb::FeatureOp op = featureOfBags(bags);
      if (!op)
        return check.emitError("operand #")
               << i << " does not come from an emb.feature";
      auto table = tableIndex.find(check.getTable(i));
      if (table == tableIndex.end())
        return check.emitError("there is no table @") << check.getTable(i);
      planner::Feature f;
      f.name = op.getName().str();
      f.table = table->second;
      f.weighted = cast<emb::BagsType>(op.getType()).getWeighted();
      f.keepLast = op.getOverflowPolicy() == emb::Overflow::KeepLast;
      auto type = cast<emb::BagsType>(op.getType());
      f.maxIds = op.getMaxPerBag() ? *op.getMaxPerBag()
                                   : (type.getMaxIds() + p.batch - 1) / p.batch;
      f.meanIds = op.getMeanIds() ? op.getMeanIds()->convertToDouble()
                                  : double(f.maxIds);
      if (emb::ProfileAttr attr = op.getProfileAttr())
        if (attr.getIds() > 0 && attr.getBatch() > 0)
          f.meanIds = attr.getIds() / double(attr.getBatch());
      featureIndex[op] = static_cast<int>(p.features.size());
      p.features.push_back(std::move(f));
    }
  for (auto lookup : body.getOps<emb::LookupOp>())
    if (emb::FeatureOp op = featureOfBags(lookup.getBags()))
      if (auto it = featureIndex.find(op); it != featureIndex.end())
        p.features[it->second].pooling =
            static_cast<planner::Pooling>(lookup.getPooling());
  for (auto dedup : body.getOps<emb::DedupOp>()) {
    planner::DedupGroup g;
    g.name = dedup.getGroup() ? dedup.getGroup()->str()
                              : "group" + std::to_string(p.dedup.size());
    SmallVector<emb::FeatureOp> features;
    for (Value bags : dedup.getBags()) {
      emb::FeatureOp op = featureOfBags(bags);
      auto it = featureIndex.find(op);
      if (!op || it == featureIndex.end())
        return dedup.emitError("bags do not come from a checked emb.feature");
      features.push_back(op);
      g.features.push_back(it->second);
      p.features[it->second].dedup = static_cast<int>(p.dedup.size());
    }
    bool measured;
    g.factor = expectedDedupFactor(module, g.name, features, measured);
    p.dedup.push_back(std::move(g));
  }
  for (auto dense : body.getOps<emb::DenseOp>())
    p.head = llvm::StringSwitch<planner::Head>(dense.getKind())
                 .Case("caller", planner::Head::None)
                 .Case("logistic", planner::Head::Logistic)
                 .Case("fm", planner::Head::Fm)
                 .Default(planner::Head::Other);
  return success();
}

FailureOr<int> Reader::tierNamed(StringRef name, Location loc) {
  int tier = p.tierIndex(name);
  if (tier < 0)
    return emitError(loc) << "there is no tier '" << name << "'";
  return tier;
}

LogicalResult Reader::machineFile(DictionaryAttr pins) {
  auto file = pins.getAs<StringAttr>("machine");
  if (!file)
    return success();
  Location loc = module.getLoc();
  if (auto at = pins.getAs<LocationAttr>("machine_loc"))
    loc = at;
  if (!llvm::sys::fs::exists(file.getValue())) {
    emitWarning(loc) << "machine file '" << file.getValue()
                     << "' does not exist: planning with conservative "
                        "defaults";
    return success();
  }
  llvm::Expected<machine::Machine> m = machine::Machine::load(file.getValue());
  if (!m)
    return emitError(loc) << llvm::toString(m.takeError());
  p.machine = std::move(*m);
  return success();
}

LogicalResult Reader::pins() {
  auto pins = module->getAttrOfType<DictionaryAttr>(emb::EmbDialect::kPins);
  if (!pins)
    return success();
  auto locOf = [&](DictionaryAttr d, StringRef key) -> Location {
    if (auto at = d.getAs<LocationAttr>(key))
      return at;
    return module.getLoc();
  };
  if (failed(machineFile(pins)))
    return failure();
  if (auto lookahead = pins.getAs<IntegerAttr>("lookahead"))
    p.lookahead = lookahead.getInt();
  result.lookaheadLoc = locOf(pins, "lookahead_loc");
  if (auto workers = pins.getAs<IntegerAttr>("workers"))
    p.workers = static_cast<int>(workers.getInt());
  if (p.workers < 1)
    return module.emitError("workers must be 1 or more, not ") << p.workers;
  if (auto device = pins.getAs<StringAttr>("device"))
    p.gpu = device.getValue() == "gpu";
  if (auto profile = pins.getAs<StringAttr>("profile"))
    p.profileOrigin = profile.getValue().str();

  // The last entry that matches a table counts.
  std::vector<int> pinOf(p.tables.size(), -1);
  if (auto place = pins.getAs<ArrayAttr>("place"))
    for (Attribute item : place) {
      auto entry = dyn_cast<DictionaryAttr>(item);
      auto glob = entry ? entry.getAs<StringAttr>("tables") : StringAttr();
      if (!glob)
        return module.emitError("emb.pins: every place needs `tables`");
      Location loc = locOf(entry, "loc");
      llvm::Expected<llvm::GlobPattern> pattern =
          llvm::GlobPattern::create(glob.getValue());
      if (!pattern)
        return emitError(loc) << llvm::toString(pattern.takeError());
      planner::Pin pin;
      pin.text = "{tables: \"" + glob.getValue().str() + "\"";
      if (auto home = entry.getAs<StringAttr>("home")) {
        FailureOr<int> tier = tierNamed(home.getValue(), loc);
        if (failed(tier))
          return failure();
        pin.home = *tier;
        pin.text += ", home: " + home.getValue().str();
      }
      if (auto caches = entry.getAs<ArrayAttr>("cache")) {
        pin.cacheGiven = true;
        std::string text;
        for (Attribute c : caches) {
          auto pair = dyn_cast<ArrayAttr>(c);
          auto name = pair && pair.size() == 2 ? dyn_cast<StringAttr>(pair[0])
                                               : StringAttr();
          auto bytes = name ? dyn_cast<IntegerAttr>(pair[1]) : IntegerAttr();
          if (!bytes)
            return emitError(loc) << "cache is a list of [tier, bytes]";
          FailureOr<int> tier = tierNamed(name.getValue(), loc);
          if (failed(tier))
            return failure();
          pin.caches.push_back({*tier, bytes.getInt()});
          text += (text.empty() ? "" : ", ") + name.getValue().str() + ": " +
                  std::to_string(bytes.getInt()) + "B";
        }
        llvm::stable_sort(pin.caches, [&](const auto &a, const auto &b) {
          return p.tiers[a.tier].kind < p.tiers[b.tier].kind;
        });
        pin.text += ", cache: {" + text + "}";
      }
      pin.text += "}";
      bool any = false;
      for (size_t t = 0; t < p.tables.size(); ++t)
        if (pattern->match(p.tables[t].name)) {
          pinOf[t] = static_cast<int>(p.pins.size());
          any = true;
        }
      if (!any)
        return emitError(loc) << "no table matches '" << glob.getValue() << "'";
      p.pins.push_back(std::move(pin));
      result.pinLocs.push_back(loc);
    }
  for (size_t t = 0; t < p.tables.size(); ++t)
    if (pinOf[t] >= 0)
      p.pins[pinOf[t]].tables.push_back(static_cast<int>(t));
  if (auto together = pins.getAs<ArrayAttr>("together"))
    for (Attribute item : together) {
      auto names = dyn_cast<ArrayAttr>(item);
      if (!names)
        return module.emitError("emb.pins: together is a list of lists of "
                                "tables, not of ")
               << item;
      std::vector<int> set;
      for (Attribute name : names) {
        auto text = dyn_cast<StringAttr>(name);
        auto it = text ? tableIndex.find(text.getValue()) : tableIndex.end();
        if (it == tableIndex.end())
          return module.emitError("together: there is no table ") << name;
        set.push_back(it->second);
      }
      if (!set.empty())
        p.together.push_back(std::move(set));
    }
  return success();
}

FailureOr<ModuleProblem> Reader::run() {
  if (auto model = module->getAttrOfType<StringAttr>(emb::EmbDialect::kModel))
    p.model = model.getValue().str();
  p.storeSpace = emb::storeSpaceOf(module);
  p.storeRetained = emb::storeRetainedOf(module);
  if (failed(tiers()) || failed(tables()) || failed(step()) || failed(pins()))
    return failure();
  return std::move(result);
}

} // namespace

FailureOr<ModuleProblem> terrace::problemFromModule(ModuleOp module) {
  return Reader(module).run();
}

FailureOr<planner::Plan> terrace::planModule(const ModuleProblem &m,
                                             StringRef planFile) {
  planner::PlanResult planned;
  if (planFile.empty()) {
    planned = planner::plan(m.problem);
  } else {
    auto buffer = llvm::MemoryBuffer::getFile(planFile, /*IsText=*/true);
    Location loc =
        FileLineColLoc::get(m.lookaheadLoc.getContext(), planFile, 1, 1);
    if (!buffer)
      return emitError(loc)
             << "cannot read the plan: " << buffer.getError().message();
    llvm::Expected<planner::Decision> decision =
        planner::parseDecision(m.problem, (*buffer)->getBuffer(), planFile);
    if (!decision)
      return emitError(loc) << llvm::toString(decision.takeError());
    planned = planner::planFrom(m.problem, *decision);
  }
  if (auto *plan = std::get_if<planner::Plan>(&planned)) {
    for (const planner::WearFault &fault :
         planner::wearFaults(m.problem, plan->decision, plan->cost)) {
      Location loc = m.tierLocs[fault.tier];
      if (!m.problem.tiers[fault.tier].warnOfWear)
        return emitError(loc) << fault.message;
      emitWarning(loc) << fault.message;
    }
    return std::move(*plan);
  }
  const auto &error = std::get<planner::PlanError>(planned);
  Location loc = m.tierLocs.front();
  if (error.pin >= 0)
    loc = m.pinLocs[error.pin];
  else if (error.lookaheadPin)
    loc = m.lookaheadLoc;
  else if (error.tier >= 0)
    loc = m.tierLocs[error.tier];
  else if (error.table >= 0)
    loc = m.tableLocs[error.table];
  return emitError(loc) << error.message;
}
