//===- PlanCheck.cpp - What the executor relies on ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every index, size and op that is used without a second look later.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/PlanCheck.h"

#include <set>

using namespace trc;

void trc::failPlan(const std::string &where, const std::string &what) {
  throw PlanError{where + ": " + what};
}

void trc::checkPlanIndex(const std::string &where, int64_t index, size_t size) {
  if (index < 0 || index >= static_cast<int64_t>(size))
    failPlan(where, "index " + std::to_string(index) + " is outside 0 .. " +
                        std::to_string(static_cast<int64_t>(size) - 1));
}

namespace {

void checkGroup(Plan &plan, size_t g) {
  GroupPlan &group = plan.groups[g];
  std::string where = "group '" + group.name + "'";
  if (group.rows > 0xfffffff0ll)
    failPlan(where,
             std::to_string(group.rows) + " rows; at most 4294967280 fit");
  int64_t end = 0;
  const TablePlan *first = nullptr;
  for (int t : group.tables) {
    checkPlanIndex(where + " tables", t, plan.tables.size());
    const TablePlan &table = plan.tables[t];
    if (table.group != static_cast<int>(g) || table.dim != group.dim ||
        table.rowBase < end || table.rowBase + table.rows > group.rows)
      failPlan(where, "table '" + table.name + "' does not fit into it");
    end = table.rowBase + table.rows;
    if (!first)
      first = &table;
    else if (table.element != first->element ||
             table.stochastic != first->stochastic)
      failPlan(where, "table '" + table.name +
                          "' is stored or rounded in another way; one update "
                          "serves a group");
    else if (!(table.optimizer == first->optimizer))
      failPlan(where, "table '" + table.name +
                          "' has another optimizer; one update serves a group");
  }
  if (!first)
    failPlan(where, "has no table");
  group.element = first->element;
  group.stochastic = first->stochastic;
  int64_t state = 0;
  for (int s = 0; s < first->optimizer.stateCount(); ++s)
    state += first->optimizer.stateWidth(s, group.dim) * 4;
  if (group.weightsBytes != weightsBytes(group.element, group.dim) ||
      group.stateBytes != state || group.slotBytes < group.recordBytes() ||
      group.slotBytes % 4)
    failPlan(where, "slot of " + std::to_string(group.slotBytes) +
                        " bytes does not hold " + std::to_string(group.dim) +
                        " weights of " + elementName(group.element) + " and " +
                        std::to_string(state) + " bytes of state");
  if (isQuantized(group.element) && !plan.serve)
    failPlan(where, std::string("rows of ") + elementName(group.element) +
                        " are not trained");
  if (isQuantized(group.element) && group.dim > mostQuantizedColumns)
    failPlan(where, std::to_string(group.dim) + " columns of " +
                        elementName(group.element) + "; at most " +
                        std::to_string(mostQuantizedColumns));
  const TierPlan &home = plan.tiers[group.home];
  if (home.kind != "dram" && home.kind != "pmem" && home.kind != "nvme")
    failPlan(where, "home tier '" + home.name + "' is of kind " + home.kind +
                        "; this runtime drives dram, pmem and nvme");
  if (home.memory() == group.cached())
    failPlan(where, home.memory() ? "a home in memory takes no cache"
                                  : "home '" + home.name + "' needs a cache");
  // A batch brings a table no more ids than its features may have, and no more
  // unique rows than it has.
  std::vector<int64_t> tableIds(plan.tables.size(), 0);
  int64_t ids = 0;
  for (size_t f = 0; f < plan.features.size(); ++f)
    if (plan.tables[plan.features[f].table].group == static_cast<int>(g)) {
      group.features.push_back(static_cast<int>(f));
      int64_t &own = tableIds[plan.features[f].table];
      own = std::min(own + plan.shape.featureIds(f), plan.maxIds);
      ids = std::min(ids + plan.shape.featureIds(f), plan.maxIds);
    }
  int64_t unique = 0;
  for (size_t t = 0; t < plan.tables.size(); ++t)
    unique += std::min(tableIds[t], plan.tables[t].rows);
  unique = std::min(unique, ids);
  if (group.maxOccurrences < ids || group.maxUnique < unique)
    failPlan(where, "bounds are below the " + std::to_string(ids) +
                        " ids that a batch may hold");
  if (group.direct && group.cached())
    failPlan(where, "has a cache; only rows in memory are looked up by id");
  for (int f : group.features)
    if (group.direct && plan.features[f].dedup >= 0)
      failPlan(where, "is looked up by id, but feature '" +
                          plan.features[f].name + "' is pooled per unique bag");
  if (group.cached()) {
    if (group.maxMiss < group.maxUnique)
      failPlan(where, "max_miss is below max_unique");
    if (group.slots < std::min(group.maxUnique, group.rows) ||
        group.retained > group.slots)
      failPlan(where, std::to_string(group.slots) + " slots cannot pin the " +
                          std::to_string(group.maxUnique) +
                          " rows of one batch");
    if (group.storeBytes < group.recordBytes())
      failPlan(where, "store_bytes does not hold a row");
  }
}

bool opHasGroup(OpKind kind) {
  switch (kind) {
  case OpKind::unique:
  case OpKind::touch:
  case OpKind::probe:
  case OpKind::spill:
  case OpKind::store:
  case OpKind::fetch:
  case OpKind::fill:
  case OpKind::gatherPool:
  case OpKind::preserve:
  case OpKind::segmentUpdate:
  case OpKind::unpin:
    return true;
  default:
    return false;
  }
}

void checkSchedule(const Plan &plan) {
  for (const RingPlan &ring : plan.rings) {
    std::string where = "ring '" + ring.name + "'";
    bool perGroup =
        ring.role == RingRole::unique || ring.role == RingRole::probe ||
        ring.role == RingRole::staging || ring.role == RingRole::writebuf ||
        ring.role == RingRole::pooled;
    if (perGroup)
      checkPlanIndex(where + " group", ring.group, plan.groups.size());
    int64_t need = ringBytes(plan.shape, ring.role, ring.group);
    if (ring.bytes < need)
      failPlan(where, "has slots of " + std::to_string(ring.bytes) +
                          " bytes; this runtime needs " + std::to_string(need));
    if (ring.bytes % 64 || ring.offset % 64)
      failPlan(where, "is not aligned to 64 bytes");
    if (ring.offset + ring.depth * ring.bytes > plan.arena)
      failPlan(where, "ends outside the arena");
  }
  std::set<std::pair<int, int>> seen;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const OpPlan &op = plan.ops[i];
    std::string where =
        "op " + std::to_string(i) + " (" + opName(op.kind) + ")";
    checkPlanIndex(where + " lane", op.lane, plan.lanes.size());
    bool callerOp = op.kind == OpKind::handoff || op.kind == OpKind::resume;
    if (callerOp != (plan.lanes[op.lane].kind == LaneKind::caller))
      failPlan(where, "is on lane '" + plan.lanes[op.lane].name +
                          "', which cannot run it");
    if (opHasGroup(op.kind))
      checkPlanIndex(where + " group", op.group, plan.groups.size());
    if (op.ring >= 0)
      checkPlanIndex(where + " ring", op.ring, plan.rings.size());
    if (!seen.insert({static_cast<int>(op.kind), op.group}).second)
      failPlan(where, "stands twice in the plan");
    for (const WaitPlan &w : op.waits) {
      checkPlanIndex(where + " wait", w.op, plan.ops.size());
      if (w.distance == 0 && w.op >= static_cast<int>(i))
        failPlan(where, "waits for a later op of its own batch");
    }
  }
  auto need = [&](OpKind kind, int group) {
    if (!seen.count({static_cast<int>(kind), group}))
      failPlan("ops", std::string(opName(kind)) + " is missing" +
                          (group < 0 ? std::string()
                                     : " for group '" +
                                           plan.groups[group].name + "'"));
  };
  auto needRing = [&](RingRole role, int group) {
    if (plan.findRing(role, group) < 0)
      failPlan("rings", std::string(ringRoleName(role)) + " is missing");
  };
  for (OpKind kind :
       {OpKind::ingest, OpKind::check, OpKind::handoff, OpKind::resume})
    need(kind, -1);
  if (plan.hasHead)
    need(OpKind::call, -1);
  if (!plan.dedup.empty()) {
    need(OpKind::dedup, -1);
    need(OpKind::expand, -1);
    needRing(RingRole::dedup, -1);
    needRing(RingRole::expanded, -1);
  }
  for (const TablePlan &t : plan.tables)
    if (t.hash)
      need(OpKind::translate, -1);
  needRing(RingRole::ingest, -1);
  if (!plan.serve || plan.hasHead)
    needRing(RingRole::grads, -1);
  for (int g = 0; g < static_cast<int>(plan.groups.size()); ++g) {
    if (plan.groups[g].features.empty())
      continue; // a table that no feature reads
    // Where nothing is updated, look-ups by id need no unique rows.
    const bool touched = plan.serve && plan.groups[g].direct;
    need(touched ? OpKind::touch : OpKind::unique, g);
    need(OpKind::gatherPool, g);
    if (!plan.serve) {
      need(OpKind::preserve, g);
      need(OpKind::segmentUpdate, g);
    }
    if (!touched)
      needRing(RingRole::unique, g);
    needRing(RingRole::pooled, g);
    if (!plan.groups[g].cached())
      continue;
    for (OpKind kind :
         {OpKind::probe, OpKind::fetch, OpKind::fill, OpKind::unpin})
      need(kind, g);
    needRing(RingRole::probe, g);
    needRing(RingRole::staging, g);
    if (plan.serve) // rows never change, so none goes home
      continue;
    need(OpKind::spill, g);
    need(OpKind::store, g);
    needRing(RingRole::writebuf, g);
  }
}

} // namespace

void trc::checkPlan(Plan &plan) {
  for (size_t g = 0; g < plan.groups.size(); ++g)
    checkGroup(plan, g);
  checkSchedule(plan);
}
