//===- ToyModel.cpp - Artifacts made by hand, for tests -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule is that of the design's example: ids are prepared `lookahead`
// batches ahead, rows are fetched while earlier batches compute.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/exec/ToyModel.h"

#include "runtime/core/RingLayout.h"
#include "runtime/store/RecordFormat.h"
#include "test/runtime/reference/ReferencePlans.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace toy;

json toy::rowwiseAdagrad(double lr) {
  return {{"kind", "rowwise_adagrad"},
          {"lr", lr},
          {"eps", 1e-8},
          {"weight_decay", 0}};
}
json toy::sgd(double lr, double decay) {
  return {{"kind", "sgd"}, {"lr", lr}, {"eps", 0}, {"weight_decay", decay}};
}
json toy::adagrad(double lr) {
  return {{"kind", "adagrad"}, {"lr", lr}, {"eps", 1e-8}, {"weight_decay", 0}};
}
json toy::adam(double lr) {
  return {{"kind", "adam"},    {"lr", lr},     {"eps", 1e-8},
          {"weight_decay", 0}, {"beta1", 0.9}, {"beta2", 0.999}};
}

static int stateFloats(const json &optimizer, int64_t dim) {
  std::string kind = optimizer["kind"];
  if (kind == "sgd")
    return 0;
  if (kind == "rowwise_adagrad")
    return 1;
  return static_cast<int>(kind == "adam" ? 2 * dim : dim);
}

static trc::Pooling poolingOf(const std::string &name) {
  static const std::map<std::string, trc::Pooling> all = {
      {"sum", trc::Pooling::sum},
      {"mean", trc::Pooling::mean},
      {"weighted_mean", trc::Pooling::weightedMean},
      {"sqrtn", trc::Pooling::sqrtn},
      {"max", trc::Pooling::max},
      {"none", trc::Pooling::none}};
  return all.at(name);
}

namespace {

/// Collects ops, rings and waits of a plan.
struct Builder {
  json ops = json::array(), rings = json::array();
  int64_t offset = 0;
  const trc::ModelShape &shape;
  explicit Builder(const trc::ModelShape &shape) : shape(shape) {}

  int ring(trc::RingRole role, int group, int64_t depth) {
    int64_t bytes = (trc::ringBytes(shape, role, group) + 63) / 64 * 64;
    rings.push_back(
        {{"name", std::string(trc::ringRoleName(role)) + std::to_string(group)},
         {"role", trc::ringRoleName(role)},
         {"group", group},
         {"depth", depth},
         {"bytes", bytes},
         {"offset", offset}});
    offset += depth * bytes;
    return static_cast<int>(rings.size()) - 1;
  }
  int op(const char *name, int lane, int64_t ahead, int group, int ring) {
    ops.push_back({{"op", name},
                   {"lane", lane},
                   {"ahead", ahead},
                   {"group", group},
                   {"ring", ring},
                   {"waits", json::array()}});
    return static_cast<int>(ops.size()) - 1;
  }
  void wait(int op, int on, int64_t distance) {
    ops[op]["waits"].push_back({{"op", on}, {"distance", distance}});
  }
};

} // namespace

json toy::makePlan(const Model &m) {
  std::vector<json> tables, features;
  std::vector<size_t> dedup;
  for (const Table &t : m.tables) {
    tables.push_back(trc::reference::tablePlan(
        t.name, t.rows, t.dim, t.optimizer, t.init, t.hash ? "hash" : "index"));
    tables.back()["init_key"] = m.initKey;
  }
  for (size_t f = 0; f < m.features.size(); ++f) {
    const Feature &x = m.features[f];
    features.push_back(trc::reference::featurePlan(
        x.name, x.table, x.pooling, x.maxIds, x.weighted, x.overflow.c_str()));
    if (x.dedup)
      dedup.push_back(f);
  }
  // Groups: tables with one record class and one kind of home.
  struct Group {
    std::vector<int> tables;
    int64_t rows = 0, dim = 0;
    bool cached = false;
  };
  std::vector<Group> groups;
  for (size_t t = 0; t < m.tables.size(); ++t) {
    bool cached = m.cached[t % m.cached.size()];
    size_t g = 0;
    while (g < groups.size() &&
           !(groups[g].dim == m.tables[t].dim && groups[g].cached == cached &&
             m.tables[groups[g].tables[0]].optimizer == m.tables[t].optimizer))
      ++g;
    if (g == groups.size())
      groups.push_back({{}, 0, m.tables[t].dim, cached});
    tables[t]["group"] = g;
    tables[t]["row_base"] = groups[g].rows;
    groups[g].tables.push_back(static_cast<int>(t));
    groups[g].rows += m.tables[t].rows;
  }
  json plan =
      trc::reference::makePlan(tables, features, m.head, m.batch, dedup);
  plan["format"] = 1;
  plan["model"] = m.name;
  plan["hash"] = "0123456789abcdef";
  plan["seed"] = "7";
  plan["numerics"] = "strict";
  plan["on_bad_id"] = m.dropBadIds ? "drop" : "error";
  plan["on_bad_grad"] = m.skipBadGrads ? "skip" : "error";
  plan["lookahead"] = m.lookahead;
  plan["store"] = {{"space", m.space}, {"retained", 3}, {"on_full", m.onFull}};
  int64_t allIds = 0;
  for (const Feature &f : m.features)
    allIds += f.maxIds * m.batch;
  plan["max_ids"] = allIds;
  plan["dedup"] = json::array();
  if (!dedup.empty()) {
    plan["dedup"].push_back({{"name", "d"}, {"features", dedup}});
    for (size_t f : dedup)
      plan["features"][f]["dedup"] = 0;
  }
  if (m.head.empty())
    plan["head"] = nullptr;
  plan["tiers"] = {{{"name", "dram"}, {"kind", "dram"}, {"capacity", 1 << 30}},
                   {{"name", "disk"},
                    {"kind", m.homeKind},
                    {"capacity", 1 << 30},
                    {"paths", m.paths}}};

  trc::ModelShape shape;
  shape.batch = m.batch;
  shape.maxIds = allIds;
  shape.head = !m.head.empty();
  shape.dedupGroups = dedup.empty() ? 0 : 1;
  for (size_t f = 0; f < m.features.size(); ++f) {
    const Feature &x = m.features[f];
    trc::FeatureShape s;
    s.maxIds = x.maxIds;
    s.dim = m.tables[x.table].dim;
    s.weighted = x.weighted;
    s.keepLast = x.overflow == "keep_last";
    s.pooling = poolingOf(x.pooling);
    s.group = tables[x.table]["group"];
    s.dedup = x.dedup ? 0 : -1;
    shape.features.push_back(s);
    plan["features"][f]["gather"] = "gather_pool_" + std::to_string(s.dim) +
                                    "_" + x.pooling +
                                    (x.weighted ? "_weighted" : "");
    plan["features"][f]["output"] = 0;
  }
  int64_t d = m.lookahead;
  plan["groups"] = json::array();
  for (size_t g = 0; g < groups.size(); ++g) {
    const json &optimizer = m.tables[groups[g].tables[0]].optimizer;
    int64_t ids = 0;
    for (size_t f = 0; f < m.features.size(); ++f)
      if (shape.features[f].group == static_cast<int>(g))
        ids += shape.featureIds(f);
    int64_t state = stateFloats(optimizer, groups[g].dim) * 4;
    int64_t slot = groups[g].dim * 4 + state;
    int64_t store =
        static_cast<int64_t>(trc::recordBytes(static_cast<uint64_t>(slot)));
    int64_t unique = std::min(ids, groups[g].rows);
    int64_t slots = std::min(groups[g].rows, std::max<int64_t>(1, d) * unique +
                                                 m.retained + m.spareSlots);
    trc::GroupShape s;
    s.maxOccurrences = ids;
    s.maxUnique = s.maxMiss = unique;
    s.slotBytes = slot;
    s.storeBytes = store;
    s.dim = groups[g].dim;
    s.cached = groups[g].cached;
    shape.groups.push_back(s);
    bool decay = optimizer["weight_decay"] != 0;
    bool direct = m.direct && trc::readsById(shape, static_cast<int>(g));
    for (size_t f = 0; f < m.features.size(); ++f)
      if (direct && shape.features[f].group == static_cast<int>(g))
        plan["features"][f]["gather"] =
            plan["features"][f]["gather"].get<std::string>() + "_direct";
    plan["groups"].push_back(
        {{"name", "g" + std::to_string(g)},
         {"tables", groups[g].tables},
         {"rows", groups[g].rows},
         {"dim", groups[g].dim},
         {"weights_bytes", groups[g].dim * 4},
         {"state_bytes", state},
         {"slot_bytes", slot},
         {"store_bytes", store},
         {"home", s.cached ? "disk" : "dram"},
         {"cache", s.cached ? json("dram") : json(nullptr)},
         {"retained", std::min(m.retained, slots)},
         {"slots", slots},
         {"policy", m.policy},
         {"max_occurrences", ids},
         {"max_unique", unique},
         {"max_miss", unique},
         {"direct", direct},
         {"update", "segment_update_" + std::to_string(groups[g].dim) + "_" +
                        optimizer["kind"].get<std::string>() +
                        (decay ? "_decay" : "")}});
  }

  enum { host, io, copy, work, caller };
  plan["lanes"] = {{{"name", "host"}, {"kind", "cpu"}},
                   {{"name", "io"}, {"kind", "io"}, {"depth", 32}},
                   {{"name", "copy"}, {"kind", "cpu"}},
                   {{"name", "work"}, {"kind", "cpu"}},
                   {{"name", "caller"}, {"kind", "caller"}}};
  Builder b(shape);
  using trc::RingRole;
  int64_t inDepth = d + 2, depth = d + 1;
  int in = b.ring(RingRole::ingest, -1, inDepth);
  int grads = b.ring(RingRole::grads, -1, 1);
  int ingest = b.op("ingest", host, d + 1, -1, in);
  int check = b.op("check", host, d + 1, -1, in);
  b.wait(check, ingest, 0);
  int ready = check;
  bool hashed = std::any_of(m.tables.begin(), m.tables.end(),
                            [](const Table &t) { return t.hash; });
  if (hashed) {
    ready = b.op("translate", host, d + 1, -1, in);
    b.wait(ready, check, 0);
  }
  int dd = -1, ex = -1, dedupOp = -1;
  if (!dedup.empty()) {
    dd = b.ring(RingRole::dedup, -1, depth);
    ex = b.ring(RingRole::expanded, -1, 1);
    dedupOp = b.op("dedup", host, d, -1, dd);
    b.wait(dedupOp, ready, 0);
    ready = dedupOp;
  }
  struct Ops {
    int unique, probe, spill, store, fetch, fill, gather, update, unpin;
  };
  std::vector<Ops> g(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    int group = static_cast<int>(i);
    g[i].unique =
        b.op("unique", host, d, group, b.ring(RingRole::unique, group, depth));
    b.wait(g[i].unique, ready, 0);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].cached)
      continue;
    int group = static_cast<int>(i);
    int pl = b.ring(RingRole::probe, group, depth);
    int st = b.ring(RingRole::staging, group, depth);
    int wb = b.ring(RingRole::writebuf, group, 2);
    g[i].probe = b.op("probe", host, d, group, pl);
    b.wait(g[i].probe, g[i].unique, 0);
    g[i].spill = b.op("spill", copy, d, group, wb);
    b.wait(g[i].spill, g[i].probe, 0);
    g[i].store = b.op("store", io, d, group, wb);
    b.wait(g[i].store, g[i].spill, 0);
    g[i].fetch = b.op("fetch", io, d, group, st);
    b.wait(g[i].fetch, g[i].probe, 0);
    b.wait(g[i].fetch, g[i].store, 1);
    g[i].fill = b.op("fill", copy, 0, group, st);
    b.wait(g[i].fill, g[i].fetch, 0);
    b.wait(g[i].fill, g[i].spill, 0);
    b.wait(g[i].fetch, g[i].fill, depth);
  }
  int handoffAfter = -1;
  std::vector<int> outputs;
  for (size_t i = 0; i < groups.size(); ++i) {
    int group = static_cast<int>(i);
    g[i].gather =
        b.op("gather_pool", work, 0, group, b.ring(RingRole::pooled, group, 1));
    b.wait(g[i].gather, groups[i].cached ? g[i].fill : g[i].unique, 0);
    outputs.push_back(g[i].gather);
  }
  int expand = -1, call = -1;
  if (!dedup.empty()) {
    expand = b.op("expand", work, 0, -1, ex);
    for (Ops &o : g)
      b.wait(expand, o.gather, 0);
    outputs.push_back(expand);
  }
  if (!m.head.empty()) {
    call = b.op("call", work, 0, -1, grads);
    for (int o : outputs)
      b.wait(call, o, 0);
    outputs = {call};
  }
  int handoff = b.op("handoff", caller, 0, -1, -1);
  for (int o : outputs)
    b.wait(handoff, o, 0);
  handoffAfter = handoff;
  int resume = b.op("resume", caller, 0, -1, grads);
  b.wait(resume, handoff, 0);
  for (size_t i = 0; i < groups.size(); ++i) {
    int group = static_cast<int>(i);
    int preserve = b.op("preserve", work, 0, group, -1);
    b.wait(preserve, resume, 0);
    g[i].update = b.op("segment_update", work, 0, group, -1);
    b.wait(g[i].update, preserve, 0);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].cached) {
      g[i].unpin = b.op("unpin", host, 0, static_cast<int>(i), -1);
      b.wait(g[i].unpin, g[i].update, 0);
      b.wait(g[i].probe, g[i].unpin, depth);
    }
    // Rings are used again when their last reader is through.
    b.wait(g[i].unique, g[i].update, depth);
    b.wait(ingest, g[i].update, inDepth);
    b.wait(resume, g[i].update, 1);
    b.wait(g[i].gather, handoffAfter, 1);
    b.wait(g[i].gather, resume, 1);
    if (dedupOp >= 0)
      b.wait(dedupOp, g[i].update, depth);
  }
  if (expand >= 0)
    b.wait(expand, handoff, 1);
  if (call >= 0)
    for (Ops &o : g)
      b.wait(call, o.update, 1);
  plan["rings"] = b.rings;
  plan["arena"] = b.offset;
  plan["ops"] = b.ops;
  plan["bound"] = json::array();
  plan["process_bytes"] = 0;
  return plan;
}

Artifact::Artifact(const json &j) : plan(j.dump()) {
  for (const json &f : j["features"])
    names.push_back(f["gather"]);
  for (const json &g : j["groups"])
    names.push_back(g["update"]);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string &name : names)
    if (const void *kernel = findKernel(name))
      kernels.push_back({name.c_str(), {kernel, kernel}});
  artifact.magic = TRC_ARTIFACT_MAGIC;
  artifact.abi = TRC_ARTIFACT_ABI;
  artifact.plan_bytes = plan.size();
  artifact.plan = plan.c_str();
  artifact.kernel_count = kernels.size();
  artifact.kernels = kernels.data();
}
