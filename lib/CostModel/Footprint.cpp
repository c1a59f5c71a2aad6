//===- Footprint.cpp - Groups, rings and bytes of a decision --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CostModel/Footprint.h"

#include "CostModel/IndexBytes.h"

#include "Schedule/Stages.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace terrace;
using namespace terrace::planner;

int64_t planner::overflowSlots(int64_t lookahead, int64_t maxUnique,
                               int64_t rows) {
  int64_t batches = std::max<int64_t>(1, lookahead);
  return std::min(rows, batches * std::min(maxUnique, rows));
}

namespace {

/// Largest number of ids that features of `table` can bring in one batch.
struct Occurrences {
  std::vector<int64_t> perFeature, perTable;
  std::vector<bool> deduplicated; // by table

  explicit Occurrences(const Problem &p)
      : perTable(p.tables.size(), 0), deduplicated(p.tables.size(), false) {
    for (const Feature &f : p.features) {
      if (f.dedup >= 0)
        deduplicated[static_cast<size_t>(f.table)] = true;
      int64_t ids = std::min(p.batch * f.maxIds, p.maxIds);
      perFeature.push_back(ids);
      perTable[f.table] = std::min(perTable[f.table] + ids, p.maxIds);
    }
  }
};

} // namespace

std::vector<Group> planner::formGroups(const Problem &problem,
                                       const Decision &decision) {
  using Key = std::tuple<int, int64_t, int, int, std::vector<int>>;
  std::vector<Group> groups;
  std::map<Key, int> newest;
  llvm::StringMap<int> names;
  Occurrences occ(problem);
  std::vector<int64_t> uniqueSum;
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const Table &table = problem.tables[t];
    const TableDecision &d = decision.tables[t];
    std::vector<int> caches;
    for (const CacheDecision &c : d.caches)
      caches.push_back(c.tier);
    Key key(d.worker, table.dim, table.recordClass, d.home, caches);
    auto found = newest.find(key);
    if (found == newest.end() ||
        groups[found->second].rows + table.rows > schedule::maxGroupRows) {
      Group g;
      g.name = "g" + std::to_string(table.dim);
      if (int &n = names[g.name]; n++ > 0)
        g.name += "_" + std::to_string(n - 1);
      g.worker = d.worker;
      g.dim = table.dim;
      g.weightsBytes = table.rowBytes();
      g.stateBytes = table.stateFloats() * 4;
      g.slotBytes = table.slotBytes();
      g.storeBytes = table.storeBytes();
      g.home = d.home;
      g.caches = caches;
      g.retained.assign(caches.size(), 0);
      found =
          newest.insert_or_assign(key, static_cast<int>(groups.size())).first;
      groups.push_back(std::move(g));
      uniqueSum.push_back(0);
    }
    Group &g = groups[found->second];
    g.tables.push_back(static_cast<int>(t));
    g.rows += table.rows;
    g.maxOccurrences =
        std::min(g.maxOccurrences + occ.perTable[t], problem.maxIds);
    uniqueSum[found->second] += std::min(table.rows, occ.perTable[t]);
    for (size_t c = 0; c < caches.size(); ++c)
      g.retained[c] += d.caches[c].retained;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    Group &g = groups[i];
    // As trc::readsById, which decides the rings.
    g.direct = !g.cached() && llvm::none_of(g.tables, [&](int t) {
      return occ.deduplicated[static_cast<size_t>(t)];
    });
    g.maxUnique = std::min(uniqueSum[i], g.maxOccurrences);
    if (!g.cached())
      continue;
    g.maxMiss = g.maxUnique;
    for (int64_t &r : g.retained)
      r = std::min(r, g.rows);
    g.slots =
        std::min(g.rows, g.retained[0] + overflowSlots(decision.lookahead,
                                                       g.maxUnique, g.rows));
  }
  return groups;
}

std::vector<int> planner::featuresOf(const Problem &problem,
                                     const Decision &decision, int worker) {
  std::vector<int> features;
  for (size_t f = 0; f < problem.features.size(); ++f)
    if (decision.tables[problem.features[f].table].worker == worker)
      features.push_back(static_cast<int>(f));
  return features;
}

trc::ModelShape planner::modelShape(const Problem &problem,
                                    const Decision &decision,
                                    const std::vector<Group> &groups,
                                    int worker) {
  trc::ModelShape m;
  m.batch = problem.batch;
  m.maxIds = problem.maxIds;
  m.head = problem.head != Head::None;
  m.serve = problem.serve;
  m.dedupGroups = static_cast<int>(problem.dedup.size());
  std::vector<int> groupOf(problem.tables.size(), 0);
  for (const Group &g : groups) {
    if (g.worker != worker)
      continue;
    for (int t : g.tables)
      groupOf[t] = static_cast<int>(m.groups.size());
    trc::GroupShape s;
    s.maxOccurrences = g.maxOccurrences;
    s.maxUnique = g.maxUnique;
    s.maxMiss = g.maxMiss;
    s.slotBytes = g.slotBytes;
    s.storeBytes = g.cached() ? g.storeBytes : 0;
    s.dim = g.dim;
    s.cached = g.cached();
    m.groups.push_back(s);
  }
  for (int index : featuresOf(problem, decision, worker)) {
    const Feature &f = problem.features[index];
    trc::FeatureShape s;
    s.maxIds = f.maxIds;
    s.dim = problem.tables[f.table].dim;
    s.weighted = f.weighted;
    s.keepLast = f.keepLast;
    s.pooling = static_cast<trc::Pooling>(f.pooling);
    s.group = groupOf[f.table];
    s.dedup = f.dedup;
    m.features.push_back(s);
  }
  return m;
}

static int64_t depthOf(trc::RingRole role, int64_t lookahead) {
  using schedule::RingRole;
  int depth = static_cast<int>(lookahead);
  switch (role) {
  case trc::RingRole::ingest:
    return schedule::depthOf(RingRole::Ingest, depth);
  case trc::RingRole::dedup:
    return schedule::depthOf(RingRole::Dedup, depth);
  case trc::RingRole::unique:
    return schedule::depthOf(RingRole::Unique, depth);
  case trc::RingRole::probe:
    return schedule::depthOf(RingRole::Probe, depth);
  case trc::RingRole::staging:
    return schedule::depthOf(RingRole::Staging, depth);
  case trc::RingRole::writebuf:
    return schedule::depthOf(RingRole::Writebuf, depth);
  case trc::RingRole::pooled:
    return schedule::depthOf(RingRole::Pooled, depth);
  case trc::RingRole::expanded:
    return schedule::depthOf(RingRole::Expanded, depth);
  case trc::RingRole::grads:
    return schedule::depthOf(RingRole::Grads, depth);
  }
  return 1;
}

std::vector<Ring> planner::formRings(const trc::ModelShape &shape,
                                     int64_t lookahead) {
  std::vector<Ring> rings;
  auto add = [&](trc::RingRole role, int group) {
    rings.push_back({role, group, 0, depthOf(role, lookahead),
                     trc::ringBytes(shape, role, group)});
  };
  add(trc::RingRole::ingest, -1);
  bool dedup =
      std::any_of(shape.features.begin(), shape.features.end(),
                  [](const trc::FeatureShape &f) { return f.dedup >= 0; });
  if (dedup)
    add(trc::RingRole::dedup, -1);
  for (size_t g = 0; g < shape.groups.size(); ++g) {
    int group = static_cast<int>(g);
    if (!shape.serve || !trc::readsById(shape, group))
      add(trc::RingRole::unique, group);
    if (shape.groups[g].cached) {
      add(trc::RingRole::probe, group);
      add(trc::RingRole::staging, group);
      if (!shape.serve)
        add(trc::RingRole::writebuf, group);
    }
    add(trc::RingRole::pooled, group);
  }
  if (dedup)
    add(trc::RingRole::expanded, -1);
  if (!shape.serve || shape.head)
    add(trc::RingRole::grads, -1);
  return rings;
}

int64_t planner::arenaBytes(const std::vector<Ring> &rings) {
  int64_t end = 0;
  for (const Ring &r : rings)
    end +=
        (r.bytes * r.depth + ringAlignment - 1) / ringAlignment * ringAlignment;
  return end;
}

int64_t planner::readerBytes(int64_t ingestBytes, int64_t ingestDepth) {
  constexpr int64_t waiting = 3; // two queued, one being filled
  return (ingestDepth + waiting) * ingestBytes;
}

/// Where home is memory, the rows' store is a file of the state's folder.
static StoreShape storeShape(const Group &g, const Problem &problem) {
  StoreShape store;
  store.rows = g.rows;
  store.storeBytes = g.storeBytes;
  store.retained = problem.storeRetained;
  store.setSpace(problem.storeSpace, !g.cached());
  store.extents = g.cached() ? problem.tiers[g.home].extents : 1;
  store.mapped =
      g.cached() && problem.tiers[g.home].kind == machine::TierKind::PMem;
  return store;
}

TierUse planner::groupUse(const Group &g, const Problem &problem, int tier) {
  TierUse use;
  if (g.home == tier) {
    bool resident = machine::isMemory(problem.tiers[tier].kind) && !g.cached();
    StoreShape store = storeShape(g, problem);
    use.rows = resident ? g.rows * g.slotBytes : store.bytes();
    if (resident)
      use.index = memoryHomeIndexBytes(store);
  }
  for (size_t c = 0; c < g.caches.size(); ++c)
    if (g.caches[c] == tier)
      use.slots += (c == 0 ? g.slots : g.retained[c]) * g.slotBytes;
  return use;
}

Footprint planner::computeFootprint(const Problem &problem,
                                    const Decision &decision) {
  Footprint fp;
  fp.groups = formGroups(problem, decision);
  fp.use.assign(problem.tiers.size(), std::vector<TierUse>(problem.workers));
  int ringTier = problem.ringTier();
  for (const Group &g : fp.groups) {
    for (size_t t = 0; t < problem.tiers.size(); ++t) {
      TierUse part = groupUse(g, problem, static_cast<int>(t));
      fp.use[t][g.worker].rows += part.rows;
      fp.use[t][g.worker].slots += part.slots;
      fp.use[t][g.worker].index += part.index;
    }
    // The directory is walked by the host, wherever the slots lie.
    if (g.cached() && ringTier >= 0)
      fp.use[ringTier][g.worker].index += indexBytes(
          storeShape(g, problem), g.slots, g.maxMiss,
          problem.serve ? 1
                        : depthOf(trc::RingRole::writebuf, decision.lookahead));
  }
  for (int w = 0; w < problem.workers; ++w) {
    trc::ModelShape shape = modelShape(problem, decision, fp.groups, w);
    std::vector<Ring> rings = formRings(shape, decision.lookahead);
    if (ringTier >= 0)
      fp.use[ringTier][w].rings += arenaBytes(rings);
    for (Ring &r : rings) {
      r.worker = w;
      fp.rings.push_back(r);
    }
  }
  return fp;
}

TierUse Footprint::charged(const Problem &problem, int tier) const {
  TierUse result;
  for (const TierUse &u : use[tier]) {
    if (problem.tiers[tier].perWorker) {
      if (u.total() > result.total())
        result = u;
      continue;
    }
    result.rings += u.rings;
    result.slots += u.slots;
    result.index += u.index;
    result.rows += u.rows;
  }
  return result;
}
