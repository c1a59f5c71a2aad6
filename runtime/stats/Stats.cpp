//===- Stats.cpp - Counters as JSON ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hit rates come both by access (every id counts) and by unique row of a batch;
// they say different things (papers/mtrains.md). Groups at home in memory hit
// always and are not listed under `tiers` hits.
//
//===----------------------------------------------------------------------===//
#include "runtime/stats/Stats.h"

#include <map>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

using namespace trc;
using nlohmann::json;

namespace {

double ratio(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 1.0;
}

double ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

struct TierHits {
  uint64_t accesses = 0, hitAccesses = 0, lookups = 0, hits = 0;
};

} // namespace

/// Bytes of a store by what they are for.
static json storeJson(const RowStore &store) {
  RowStore::Space space = store.space();
  RowStore::Counters c = store.counters();
  return {{"capacity", space.capacity},
          {"current", space.current},
          {"retained", space.retained},
          {"segments", space.segments},
          {"free_segments", space.freeSegments},
          {"bytes_cleaned", c.bytesCleaned},
          {"segments_cleaned", c.segmentsCleaned},
          {"bytes_index", c.bytesIndex},
          {"stall_ms", static_cast<double>(c.stallNs) / 1e6}};
}

static json transfersJson(const TransferCounters &c) {
  auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  return {{"count", c.count},
          {"bytes", c.bytes},
          {"errors", c.errors},
          {"mean_us", c.count ? us(c.totalNs / c.count) : 0.0},
          {"p50_us", us(c.quantile(0.5))},
          {"p90_us", us(c.quantile(0.9))},
          {"p99_us", us(c.quantile(0.99))},
          {"p999_us", us(c.quantile(0.999))},
          {"max_us", us(c.maxNs)}};
}

std::string trc::statsJson(const Pipeline &p, const SessionCounters &session,
                           const std::vector<const Device *> &devices) {
  const Plan &plan = p.plan;
  json j;
  j["model"] = plan.model;
  j["step"] = session.step;
  j["samples"] = session.samples;
  j["submitted"] = session.submitted;
  j["in_flight"] = session.submitted - session.ended;
  j["lr_scale"] = session.lrScale;
  j["bad_batches"] = p.counters.badBatches.load();
  j["dropped_ids"] = p.counters.droppedIds.load();
  j["cut_ids"] = p.counters.cutIds.load();
  j["skipped_gradients"] = p.counters.skippedGrads.load();
  j["released"] = p.counters.released.load();
  j["drains"] = p.executor.drains();
  j["cut_ms"] = session.cutMs;
  j["threads"] = p.pool.threads();

  std::map<std::string, OpTimes> stages;
  std::vector<OpTimes> times = p.executor.times();
  for (size_t i = 0; i < times.size(); ++i) {
    OpTimes &s = stages[opName(plan.ops[i].kind)];
    s.count += times[i].count;
    s.busyNs += times[i].busyNs;
    s.stallNs += times[i].stallNs;
  }
  json busy = json::object(), stalls = json::object();
  for (const auto &[name, s] : stages) {
    busy[name] = ms(s.busyNs);
    stalls[name] = ms(s.stallNs);
  }
  j["busy_ms"] = std::move(busy);
  j["stall_ms"] = std::move(stalls);
  if (plan.hasHead)
    j["head"] = {{"bias", session.head.bias},
                 {"bias_squares", session.head.biasSquares}};

  std::map<int, TierHits> hits; // by cache tier
  std::map<int, uint64_t> used; // by tier
  int memoryTier = -1;
  for (size_t t = 0; t < plan.tiers.size(); ++t)
    if (plan.tiers[t].memory() && memoryTier < 0)
      memoryTier = static_cast<int>(t);
  used[memoryTier] += static_cast<uint64_t>(plan.arena);
  j["groups"] = json::array();
  for (const auto &g : p.groups) {
    const GroupPlan &gp = *g->plan;
    json o;
    o["name"] = gp.name;
    o["home"] = plan.tiers[gp.home].name;
    o["rows"] = gp.rows;
    o["store"] = storeJson(*g->store);
    if (!g->cache) {
      used[gp.home] += static_cast<uint64_t>(gp.rows * gp.slotBytes +
                                             memoryHomeIndexBytes(gp.rows)) +
                       g->store->memoryBytes();
      j["groups"].push_back(std::move(o));
      continue;
    }
    CacheCounters c = g->cache->counters();
    RowStore::Counters s = g->store->counters();
    o["cache"] = plan.tiers[gp.cache].name;
    o["slots"] = gp.slots;
    o["retained"] = gp.retained;
    o["accesses"] = c.accesses;
    o["unique_rows"] = c.lookups;
    o["hit_by_access"] = ratio(c.hitAccesses, c.accesses);
    o["hit_by_row"] = ratio(c.hits, c.lookups);
    o["misses"] = c.misses;
    o["first_touches"] = c.firstTouches;
    o["buffer_fetches"] = c.bufferFetches;
    o["evictions"] = c.evictions;
    o["writes"] = c.writes;
    o["resident"] = c.resident;
    o["pinned"] = c.pinned;
    o["peak_resident"] = c.peakResident;
    o["warmed"] = c.warmed;
    o["rows_read"] = s.rowsRead;
    o["rows_written"] = s.rowsWritten;
    o["reads"] = s.reads;
    o["writes_device"] = s.writes;
    o["bytes_read"] = s.bytesRead;
    o["bytes_written"] = s.bytesWritten;
    j["groups"].push_back(std::move(o));
    TierHits &h = hits[gp.cache];
    h.accesses += c.accesses;
    h.hitAccesses += c.hitAccesses;
    h.lookups += c.lookups;
    h.hits += c.hits;
    uint64_t slots = static_cast<uint64_t>(gp.slots),
             rows = static_cast<uint64_t>(gp.rows),
             miss = static_cast<uint64_t>(gp.maxMiss);
    uint64_t depth =
        g->writeRing < 0
            ? 1
            : static_cast<uint64_t>(plan.rings[g->writeRing].depth);
    used[gp.cache] += slots * static_cast<uint64_t>(gp.slotBytes) +
                      GroupCache::memoryBytes(rows, slots, miss, depth) +
                      g->store->memoryBytes();
    RowStore::Space space = g->store->space();
    used[gp.home] +=
        space.capacity / space.segments * (space.segments - space.freeSegments);
  }
  j["tiers"] = json::array();
  for (size_t t = 0; t < plan.tiers.size(); ++t) {
    json o;
    o["name"] = plan.tiers[t].name;
    o["kind"] = plan.tiers[t].kind;
    o["used"] = used[static_cast<int>(t)];
    o["capacity"] = plan.tiers[t].capacity;
    for (const BoundPlan &b : plan.bounds)
      if (b.tier == plan.tiers[t].name)
        o["bound"] = b.bytes;
    if (auto it = hits.find(static_cast<int>(t)); it != hits.end()) {
      o["accesses"] = it->second.accesses;
      o["hits"] = it->second.hitAccesses;
      o["unique_rows"] = it->second.lookups;
      o["unique_hits"] = it->second.hits;
      o["hit_by_access"] = ratio(it->second.hitAccesses, it->second.accesses);
      o["hit_by_row"] = ratio(it->second.hits, it->second.lookups);
    }
    j["tiers"].push_back(std::move(o));
  }
  j["devices"] = json::array();
  j["device_io"] = json::array(); // in the same order
  for (const Device *d : devices) {
    DeviceCounters io = d->counters();
    j["devices"].push_back(d->describe());
    j["device_io"].push_back({{"reads", transfersJson(io.reads)},
                              {"writes", transfersJson(io.writes)}});
  }
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0)
    j["peak_rss"] = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  j["process_bytes"] = plan.processBytes;
  return j.dump();
}
