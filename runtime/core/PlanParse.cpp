//===- PlanParse.cpp - An artifact's JSON as a plan -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// nlohmann throws on a missing key or a wrong type; the throw ends here, as a
// status that names the place.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/PlanCheck.h"

#include <nlohmann/json.hpp>

using namespace trc;
using nlohmann::json;

namespace {

/// Above every sane size and so low that products of two do not overflow.
constexpr int64_t countLimit = 1ll << 31, byteLimit = 1ll << 46;

int64_t number(const json &j, const char *key, int64_t low = 0,
               int64_t high = countLimit) {
  const json &value = j.at(key);
  if (!value.is_number_integer())
    failPlan(key, "is " + value.dump() + ", not a whole number");
  int64_t v = value.get<int64_t>();
  if (v < low || v > high || (value.is_number_unsigned() && v < 0))
    failPlan(key, "is " + value.dump() + ", outside " + std::to_string(low) +
                      " .. " + std::to_string(high));
  return v;
}

/// A 64-bit value, written as a decimal string (or a small number).
uint64_t wide(const json &j) {
  if (j.is_string()) {
    const std::string &s = j.get_ref<const std::string &>();
    char *end = nullptr;
    errno = 0;
    uint64_t v = std::strtoull(s.c_str(), &end, 10);
    if (errno || s.empty() || *end)
      failPlan("number '" + s + "'", "is not a 64-bit decimal");
    return v;
  }
  return j.get<uint64_t>();
}

std::string textOrEmpty(const json &j, const char *key) {
  auto it = j.find(key);
  return it == j.end() || it->is_null() ? "" : it->get<std::string>();
}

double realOr(const json &j, const char *key, double fallback) {
  auto it = j.find(key);
  return it == j.end() || it->is_null() ? fallback : it->get<double>();
}

template <typename Enum>
Enum choose(const std::string &where, const std::string &name,
            std::initializer_list<std::pair<const char *, Enum>> choices) {
  for (const auto &[text, value] : choices)
    if (name == text)
      return value;
  failPlan(where, "'" + name + "' is not known to this runtime");
}

Pooling parsePooling(const std::string &where, const std::string &name) {
  return choose<Pooling>(where, name,
                         {{"sum", Pooling::sum},
                          {"mean", Pooling::mean},
                          {"weighted_mean", Pooling::weightedMean},
                          {"sqrtn", Pooling::sqrtn},
                          {"max", Pooling::max},
                          {"none", Pooling::none}});
}

void readTables(const json &j, Plan &plan) {
  for (const json &t : j.at("tables")) {
    TablePlan table;
    table.name = t.at("name").get<std::string>();
    std::string where = "table '" + table.name + "'";
    table.rows = number(t, "rows", 1, 1ll << 40);
    table.dim = number(t, "dim", 1, 1 << 20);
    table.hash = choose<bool>(where, t.at("ids").get<std::string>(),
                              {{"index", false}, {"hash", true}});
    const json &init = t.at("init");
    table.init.kind = init.at("kind").get<std::string>();
    if (table.init.kind == "uniform") {
      table.init.first = init.at("low").get<double>();
      table.init.second = init.at("high").get<double>();
    } else if (table.init.kind == "normal") {
      table.init.first = init.at("mean").get<double>();
      table.init.second = init.at("std").get<double>();
    } else if (table.init.kind == "constant") {
      table.init.first = init.at("value").get<double>();
    } else {
      failPlan(where, "init '" + table.init.kind + "' is not known");
    }
    table.init.key = wide(t.at("init_key"));
    table.roundingKey = table.init.key;
    if (std::string dtype = textOrEmpty(t, "dtype");
        !dtype.empty() && !parseElement(dtype, table.element))
      failPlan(where, "dtype '" + dtype + "' is not known to this runtime");
    if (std::string rounding = textOrEmpty(t, "rounding"); !rounding.empty())
      table.stochastic = choose<bool>(
          where, rounding, {{"nearest", false}, {"stochastic", true}});
    const json &opt = t.at("optimizer");
    table.optimizer.name = opt.at("kind").get<std::string>();
    table.optimizer.kind = choose<OptimizerKind>(
        where, table.optimizer.name,
        {{"sgd", OptimizerKind::Sgd},
         {"adagrad", OptimizerKind::Adagrad},
         {"rowwise_adagrad", OptimizerKind::RowwiseAdagrad},
         {"adam", OptimizerKind::Adam},
         {"momentum_sgd", OptimizerKind::MomentumSgd},
         {"partial_rowwise_adam", OptimizerKind::PartialRowwiseAdam},
         {"lamb", OptimizerKind::Lamb},
         {"ftrl", OptimizerKind::Ftrl}});
    table.optimizer.lr = opt.at("lr").get<double>();
    table.optimizer.eps = realOr(opt, "eps", 0);
    table.optimizer.weightDecay = realOr(opt, "weight_decay", 0);
    table.optimizer.beta1 = realOr(opt, "beta1", 0.9);
    table.optimizer.beta2 = realOr(opt, "beta2", 0.999);
    table.optimizer.momentum = realOr(opt, "momentum", 0);
    table.optimizer.beta = realOr(opt, "beta", 0);
    table.optimizer.l1 = realOr(opt, "l1", 0);
    table.optimizer.l2 = realOr(opt, "l2", 0);
    table.optimizer.decoupledDecay = realOr(opt, "decoupled_decay", 0);
    table.optimizer.clipNorm = realOr(opt, "clip_norm", 0);
    table.group = static_cast<int>(number(t, "group"));
    table.rowBase = number(t, "row_base", 0, 1ll << 40);
    plan.tables.push_back(std::move(table));
  }
}

void readFeatures(const json &j, Plan &plan) {
  for (const json &f : j.at("features")) {
    FeaturePlan feature;
    feature.name = f.at("name").get<std::string>();
    std::string where = "feature '" + feature.name + "'";
    feature.column = textOrEmpty(f, "column");
    if (feature.column.empty())
      feature.column = feature.name;
    feature.strings = textOrEmpty(f, "type") == "string";
    feature.weights = textOrEmpty(f, "weights");
    feature.table = static_cast<int>(number(f, "table"));
    checkPlanIndex(where + " table", feature.table, plan.tables.size());
    feature.pooling = parsePooling(where, f.at("pooling").get<std::string>());
    if (feature.weighted() &&
        (feature.pooling == Pooling::max || feature.pooling == Pooling::none))
      failPlan(where, "max and none refuse weights");
    feature.maxIds = number(f, "max_ids", 1);
    feature.overflow =
        choose<Overflow>(where, f.at("overflow").get<std::string>(),
                         {{"error", Overflow::error},
                          {"keep_first", Overflow::keepFirst},
                          {"keep_last", Overflow::keepLast}});
    feature.dedup = static_cast<int>(number(f, "dedup", -1));
    feature.gather = f.at("gather").get<std::string>();
    plan.features.push_back(std::move(feature));
  }
  for (const json &d : j.at("dedup")) {
    DedupPlan dedup;
    dedup.name = d.at("name").get<std::string>();
    for (const json &f : d.at("features")) {
      checkPlanIndex("dedup '" + dedup.name + "'", f.get<int64_t>(),
                     plan.features.size());
      dedup.features.push_back(f.get<int>());
    }
    plan.dedup.push_back(std::move(dedup));
  }
  for (size_t f = 0; f < plan.features.size(); ++f) {
    int d = plan.features[f].dedup;
    if (d < 0)
      continue;
    std::string where = "feature '" + plan.features[f].name + "'";
    checkPlanIndex(where + " dedup", d, plan.dedup.size());
    const std::vector<int> &in = plan.dedup[d].features;
    if (std::find(in.begin(), in.end(), static_cast<int>(f)) == in.end())
      failPlan(where, "is missing from its dedup group");
  }
}

int findTier(const Plan &plan, const std::string &where,
             const std::string &name) {
  for (size_t i = 0; i < plan.tiers.size(); ++i)
    if (plan.tiers[i].name == name)
      return static_cast<int>(i);
  failPlan(where, "tier '" + name + "' is not declared");
}

void readGroups(const json &j, Plan &plan) {
  for (const json &t : j.at("tiers")) {
    TierPlan tier;
    tier.name = t.at("name").get<std::string>();
    tier.kind = t.at("kind").get<std::string>();
    tier.capacity = number(t, "capacity", 0, INT64_MAX);
    if (auto it = t.find("paths"); it != t.end() && !it->is_null())
      tier.paths = it->get<std::vector<std::string>>();
    plan.tiers.push_back(std::move(tier));
  }
  for (const json &g : j.at("groups")) {
    GroupPlan group;
    group.name = g.at("name").get<std::string>();
    std::string where = "group '" + group.name + "'";
    group.tables = g.at("tables").get<std::vector<int>>();
    group.rows = number(g, "rows", 1, 1ll << 40);
    group.dim = number(g, "dim", 1, 1 << 20);
    group.weightsBytes = number(g, "weights_bytes", 2);
    group.stateBytes = number(g, "state_bytes");
    group.slotBytes = number(g, "slot_bytes", 4);
    group.storeBytes = number(g, "store_bytes");
    group.home = findTier(plan, where, g.at("home").get<std::string>());
    std::string cache = textOrEmpty(g, "cache");
    group.cache = cache.empty() ? -1 : findTier(plan, where, cache);
    group.retained = number(g, "retained");
    group.slots = number(g, "slots");
    group.policy = textOrEmpty(g, "policy");
    group.maxOccurrences = number(g, "max_occurrences");
    group.maxUnique = number(g, "max_unique");
    group.maxMiss = number(g, "max_miss");
    group.update = g.at("update").get<std::string>();
    group.direct = g.value("direct", false);
    plan.groups.push_back(std::move(group));
  }
}

void readSchedule(const json &j, Plan &plan) {
  for (const json &l : j.at("lanes")) {
    LanePlan lane;
    lane.name = l.at("name").get<std::string>();
    lane.kind = choose<LaneKind>("lane '" + lane.name + "'",
                                 l.at("kind").get<std::string>(),
                                 {{"cpu", LaneKind::cpu},
                                  {"io", LaneKind::io},
                                  {"caller", LaneKind::caller}});
    if (l.contains("depth"))
      lane.depth = static_cast<int>(number(l, "depth", 1));
    plan.lanes.push_back(std::move(lane));
  }
  for (const json &r : j.at("rings")) {
    RingPlan ring;
    ring.name = r.at("name").get<std::string>();
    std::string where = "ring '" + ring.name + "'";
    if (!parseRingRole(r.at("role").get<std::string>(), ring.role))
      failPlan(where,
               "role '" + r.at("role").get<std::string>() + "' is not known");
    ring.group = static_cast<int>(number(r, "group", -1));
    ring.depth = number(r, "depth", 1, 4096);
    ring.bytes = number(r, "bytes", 0, byteLimit);
    ring.offset = number(r, "offset", 0, byteLimit);
    plan.rings.push_back(std::move(ring));
  }
  for (const json &o : j.at("ops")) {
    OpPlan op;
    std::string name = o.at("op").get<std::string>();
    if (!parseOpKind(name, op.kind))
      failPlan("op '" + name + "'", "is not known to this runtime");
    op.lane = static_cast<int>(number(o, "lane"));
    op.ahead = number(o, "ahead");
    op.group =
        o.contains("group") ? static_cast<int>(number(o, "group", -1)) : -1;
    op.ring = o.contains("ring") ? static_cast<int>(number(o, "ring", -1)) : -1;
    for (const json &w : o.at("waits"))
      op.waits.push_back(
          {static_cast<int>(number(w, "op")), number(w, "distance")});
    plan.ops.push_back(std::move(op));
  }
  for (const json &b : j.at("bound"))
    plan.bounds.push_back({b.at("tier").get<std::string>(),
                           number(b, "capacity", 0, INT64_MAX),
                           number(b, "bytes", 0, INT64_MAX)});
  plan.arena = number(j, "arena", 0, byteLimit);
}

void fillShape(Plan &plan) {
  ModelShape &shape = plan.shape;
  shape.batch = plan.batch;
  shape.maxIds = plan.maxIds;
  shape.head = plan.hasHead;
  shape.serve = plan.serve;
  shape.dedupGroups = static_cast<int>(plan.dedup.size());
  for (const FeaturePlan &f : plan.features) {
    FeatureShape s;
    const TablePlan &table = plan.tables[f.table];
    s.maxIds = f.maxIds;
    s.dim = table.dim;
    s.weighted = f.weighted();
    s.keepLast = f.overflow == Overflow::keepLast;
    s.pooling = f.pooling;
    s.group = table.group;
    s.dedup = f.dedup;
    shape.features.push_back(s);
  }
  for (const GroupPlan &g : plan.groups) {
    GroupShape s;
    s.maxOccurrences = g.maxOccurrences;
    s.maxUnique = g.maxUnique;
    s.maxMiss = g.maxMiss;
    s.slotBytes = g.slotBytes;
    s.storeBytes = g.storeBytes;
    s.dim = g.dim;
    s.cached = g.cached();
    shape.groups.push_back(s);
  }
}

Plan read(const json &j) {
  Plan plan;
  int64_t format = j.at("format").get<int64_t>();
  if (format != 1)
    failPlan("format", "is " + std::to_string(format) +
                           "; this runtime reads 1; compile the model again");
  plan.model = j.at("model").get<std::string>();
  plan.hash = j.at("hash").get<std::string>();
  plan.version = textOrEmpty(j, "terrace");
  plan.batch = number(j, "batch", 1);
  plan.maxIds = number(j, "max_ids", 1);
  if (plan.batch > (1ll << 30) || plan.maxIds > (1ll << 30))
    failPlan("batch", "is too large");
  plan.seed = wide(j.at("seed"));
  plan.numerics = textOrEmpty(j, "numerics");
  plan.dropBadIds =
      choose<bool>("on_bad_id", j.at("on_bad_id").get<std::string>(),
                   {{"error", false}, {"drop", true}});
  plan.skipBadGrads =
      choose<bool>("on_bad_grad", j.at("on_bad_grad").get<std::string>(),
                   {{"error", false}, {"skip", true}});
  plan.serve = j.value("serve", false);
  plan.lookahead = number(j, "lookahead");
  readTables(j, plan);
  readFeatures(j, plan);
  if (const json &head = j.at("head"); !head.is_null()) {
    plan.hasHead = true;
    plan.headName = head.at("kind").get<std::string>();
    plan.labelName = textOrEmpty(head, "label");
    plan.head = choose<HeadKind>(
        "head", plan.headName,
        {{"logistic", HeadKind::Logistic}, {"fm", HeadKind::Fm}});
    for (const FeaturePlan &f : plan.features)
      if (f.pooling == Pooling::none)
        failPlan("head", "feature '" + f.name + "' has pooling none");
  }
  readGroups(j, plan);
  const json &store = j.at("store");
  plan.store.space = store.at("space").get<double>();
  if (!(plan.store.space >= 1.25 && plan.store.space <= 1000))
    failPlan("store", "space is " + std::to_string(plan.store.space) +
                          "; from 1.25 to 1000 times the rows' bytes");
  plan.store.retained = number(store, "retained", 1, 1 << 20);
  plan.store.dropOldest =
      choose<bool>("store", store.at("on_full").get<std::string>(),
                   {{"error", false}, {"drop_oldest", true}});
  for (const TablePlan &t : plan.tables)
    checkPlanIndex("table '" + t.name + "' group", t.group, plan.groups.size());
  fillShape(plan);
  readSchedule(j, plan);
  checkPlan(plan);
  if (j.contains("process_bytes"))
    plan.processBytes = number(j, "process_bytes", 0, INT64_MAX);
  return plan;
}

} // namespace

Result<Plan> trc::parsePlan(const char *text, uint64_t bytes) {
  try {
    return read(json::parse(text, text + bytes));
  } catch (const PlanError &e) {
    return Status(TRC_MISMATCH, "the artifact's plan: " + e.message);
  } catch (const json::exception &e) {
    return Status(TRC_MISMATCH,
                  std::string("the artifact's plan: ") + e.what());
  } catch (const std::exception &e) {
    return Status(TRC_NO_MEMORY,
                  std::string("the artifact's plan: ") + e.what());
  }
}
