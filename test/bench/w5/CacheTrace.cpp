//===- CacheTrace.cpp - The runtime's cache without any rows --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/bench/w5/CacheTrace.h"

using namespace trc;
using namespace trc::w5;

Result<std::unique_ptr<CacheTrace>>
CacheTrace::create(const Plan &plan, int group, const std::string &policy) {
  const GroupPlan &g = plan.groups[static_cast<size_t>(group)];
  std::unique_ptr<CacheTrace> trace(new CacheTrace());
  GroupCacheOptions o;
  o.group = g.name;
  o.rows = static_cast<uint32_t>(g.rows);
  o.slots = static_cast<uint32_t>(g.slots);
  o.retained = static_cast<uint32_t>(g.retained);
  trace->maxUnique = o.maxUnique = static_cast<uint32_t>(g.maxUnique);
  trace->maxMiss = o.maxMiss = static_cast<uint32_t>(g.maxMiss);
  int ring = plan.findRing(RingRole::writebuf, group);
  if (ring >= 0)
    trace->writeSlots = static_cast<uint32_t>(plan.rings[ring].depth);
  o.writeSlots = trace->writeSlots;
  if (!policy.empty())
    o.policy = policy;
  else if (!g.policy.empty())
    o.policy = g.policy;
  trace->ahead = plan.ops[plan.findOp(OpKind::probe, group)].ahead;
  Result<std::unique_ptr<GroupCache>> made = GroupCache::create(o);
  if (!made.ok())
    return made.takeStatus();
  trace->cache = std::move(*made);
  for (uint32_t row = 0; row < o.rows; ++row)
    trace->cache->setHome(row);
  return Result<std::unique_ptr<CacheTrace>>(std::move(trace));
}

Status CacheTrace::batch(const std::vector<uint32_t> &rows) {
  while (static_cast<int64_t>(flights.size()) > ahead) {
    cache->unpin(flights.front()->probe);
    idle.push_back(std::move(flights.front()));
    flights.pop_front();
  }
  if (idle.empty()) {
    auto f = std::make_unique<Flight>();
    f->slots.resize(maxUnique);
    for (auto *v : {&f->missRow, &f->missSlot, &f->victimRow, &f->victimSlot})
      v->resize(maxMiss);
    f->missPlace.resize(maxMiss);
    idle.push_back(std::move(f));
  }
  std::unique_ptr<Flight> f = std::move(idle.back());
  idle.pop_back();
  f->rows = rows;
  Probe &p = f->probe = Probe();
  p.rows = f->rows.data();
  p.unique = static_cast<uint32_t>(rows.size());
  p.writeSlot = static_cast<uint32_t>(t++ % writeSlots);
  p.slots = f->slots.data();
  p.missRow = f->missRow.data();
  p.missSlot = f->missSlot.data();
  p.missPlace = f->missPlace.data();
  p.victimRow = f->victimRow.data();
  p.victimSlot = f->victimSlot.data();
  TRC_RETURN_IF_ERROR(cache->probe(p));
  cache->markDirty(p.slots, 0, p.unique);
  flights.push_back(std::move(f));
  return Status();
}

void CacheTrace::drain() {
  for (auto &f : flights) {
    cache->unpin(f->probe);
    idle.push_back(std::move(f));
  }
  flights.clear();
}
