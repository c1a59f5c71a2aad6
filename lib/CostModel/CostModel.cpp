//===- CostModel.cpp - Expected time and traffic of a step ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage times add up on their lane. The pipeline then runs at the pace of its
// slowest lane, of all cores together, or of the chain probe -> fetch -> fill
// -> compute -> unpin, which a lookahead of d spreads over d batches.
//
//===----------------------------------------------------------------------===//
#include "CostModel/CostModel.h"
#include "runtime/store/RecordFormat.h"

#include <algorithm>
#include <cmath>

using namespace terrace;
using namespace terrace::planner;
using machine::TierKind;

llvm::StringRef planner::stageName(Stage stage) {
  static const char *const names[stageCount] = {
      "ingest", "dedup",  "unique", "probe", "fetch",  "store",
      "copy",   "gather", "expand", "head",  "update", "exchange"};
  return names[static_cast<int>(stage)];
}

std::vector<TableLoad> planner::tableLoads(const Problem &problem) {
  std::vector<TableLoad> loads(problem.tables.size());
  for (const Feature &f : problem.features) {
    TableLoad &l = loads[f.table];
    double factor = f.dedup >= 0 ? problem.dedup[f.dedup].factor : 1;
    double mean = std::min(f.meanIds, double(f.maxIds));
    double bags = double(problem.batch) / factor;
    l.bags += bags;
    l.ids += bags * mean;
    l.gradIds += double(problem.batch) * mean;
  }
  for (size_t t = 0; t < loads.size(); ++t) {
    const Table &table = problem.tables[t];
    const profile::Stats &stats = table.stats;
    TableLoad &l = loads[t];
    double scale =
        stats.batch > 0 ? double(problem.batch) / double(stats.batch) : 1;
    if (stats.ids > 0) {
      double ratio = l.gradIds > 0 ? l.ids / l.gradIds : 1;
      l.gradIds = stats.ids * scale;
      l.ids = l.gradIds * ratio;
    }
    if (l.gradIds > double(problem.maxIds)) {
      l.ids *= double(problem.maxIds) / l.gradIds;
      l.gradIds = double(problem.maxIds);
    }
    l.unique = stats.uniqueIds > 0
                   ? std::min(stats.uniqueIds * scale, double(table.rows))
                   : profile::uniformUnique(l.ids, double(table.rows));
    l.unique = std::min(l.unique, l.ids);
    l.gatherBytes = l.ids * double(table.rowBytes());
    l.updateBytes = 2 * l.unique * double(table.slotBytes()) +
                    l.gradIds * double(table.dim) * 4;
  }
  return loads;
}

double planner::tableSeconds(const Problem &problem, int table,
                             const TableLoad &load) {
  const machine::CpuModel &cpu = problem.machine.cpu();
  double cores = double(cpu.cores);
  double host = (load.gradIds * (cpu.ingestNsPerId + cpu.uniqueNsPerId)) * 1e-9;
  double work = (load.ids * cpu.gatherNsPerId * 1e-9 +
                 load.gatherBytes / (cpu.gatherGBps * 1e9)) /
                cores;
  if (!problem.serve)
    work += (load.unique * cpu.updateNsPerRow * 1e-9 +
             load.updateBytes / (cpu.updateGBps * 1e9)) /
            cores;
  return host + work;
}

namespace {

/// Time of one worker, by stage, and what its lanes and cores are busy with.
struct WorkerCost {
  std::array<double, stageCount> seconds{};
  double ioCpu = 0;
  double &at(Stage s) { return seconds[static_cast<int>(s)]; }
  double sum(std::initializer_list<Stage> stages) const {
    double total = 0;
    for (Stage s : stages)
      total += seconds[static_cast<int>(s)];
    return total;
  }
};

struct Pace {
  double step = 0, serial = 0;
  std::string bound;
  void raise(double seconds, std::string what) {
    if (seconds > step) {
      step = seconds;
      bound = std::move(what);
    }
  }
};

Pace pace(const WorkerCost &c, int64_t lookahead, double cores) {
  using S = Stage;
  double host = c.sum({S::Ingest, S::Dedup, S::Unique, S::Probe});
  double io = c.sum({S::Fetch, S::Store});
  double copy = c.sum({S::Copy});
  double work = c.sum({S::Gather, S::Expand, S::Head, S::Update, S::Exchange});
  Pace p;
  p.serial = host + io + copy + work;
  if (lookahead == 0) {
    p.step = p.serial;
    double longest = std::max({work, host, copy, io});
    p.bound = std::string("no overlap at lookahead 0, mostly the ") +
              (io == longest     ? "io"
               : work == longest ? "work"
               : host == longest ? "host"
                                 : "copy") +
              " lane";
    return p;
  }
  p.raise(work, "work lane");
  p.raise(host, "host lane");
  p.raise(copy, "copy lane");
  p.raise(io, "io lane");
  p.raise((host + copy + c.ioCpu + work * cores) / cores, "all cores");
  double chain = c.sum({S::Dedup, S::Unique, S::Probe, S::Fetch}) + copy + work;
  p.raise(chain / double(lookahead),
          "fetch latency at lookahead " + std::to_string(lookahead));
  return p;
}

} // namespace

StepCost planner::stepCost(const Problem &problem, const Decision &decision,
                           const Footprint &footprint,
                           const std::vector<TableLoad> &loads) {
  const machine::Machine &m = problem.machine;
  const machine::CpuModel &cpu = m.cpu();
  double cores = double(cpu.cores);
  StepCost cost;
  cost.tables.resize(problem.tables.size());
  std::vector<WorkerCost> workers(problem.workers);

  // Whole groups, so that a cache with a slot for every row never misses.
  // Where nothing is updated, look-ups by id need no unique rows.
  std::vector<char> allCached(problem.tables.size(), 0),
      unique(problem.tables.size(), 1);
  for (const Group &g : footprint.groups)
    for (int t : g.tables) {
      allCached[t] = g.cached() && g.slots >= g.rows;
      unique[t] = !(problem.serve && g.direct);
    }

  struct Transfer {
    double ops = 0, bytes = 0;
  };
  size_t tierCount = problem.tiers.size();
  std::vector<Transfer> reads(tierCount * problem.workers),
      writes(tierCount * problem.workers);

  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const Table &table = problem.tables[t];
    const TableLoad &l = loads[t];
    const TableDecision &d = decision.tables[t];
    WorkerCost &w = workers[d.worker];
    w.at(Stage::Ingest) += l.gradIds * cpu.ingestNsPerId * 1e-9;
    if (unique[t])
      w.at(Stage::Unique) += l.gradIds * cpu.uniqueNsPerId * 1e-9;
    int rowsIn = d.home;
    if (!d.caches.empty()) {
      rowsIn = d.caches.front().tier;
      w.at(Stage::Probe) += l.unique * cpu.probeNsPerRow * 1e-9;
      double cached =
          double(std::max<int64_t>(1, decision.lookahead)) * l.unique;
      for (const CacheDecision &c : d.caches)
        cached += double(c.retained);
      double misses =
          allCached[t]
              ? 0
              : profile::missesPerBatch(table.stats.missCurve, table.rows,
                                        cached, l.gradIds, l.unique);
      TableTraffic &traffic = cost.tables[t];
      traffic.misses = misses;
      traffic.missRatio = l.unique > 0 ? misses / l.unique : 0;
      const machine::TierModel &home = m.tier(problem.tiers[d.home].kind);
      double moved = double((table.storeBytes() + home.granule - 1) /
                            home.granule * home.granule);
      traffic.fetchBytes = misses * moved;
      // Trained rows are dirty; a log writes them one after the other.
      double appended = problem.serve ? 0 : misses * double(table.storeBytes());
      traffic.storeBytes = appended;
      Transfer &r = reads[d.home * problem.workers + d.worker];
      r.ops += misses;
      r.bytes += misses * double(table.storeBytes());
      Transfer &s = writes[d.home * problem.workers + d.worker];
      double transfers =
          std::ceil(appended / double(trc::deviceBufferBytes(
                                   static_cast<uint64_t>(table.storeBytes()))));
      s.ops += transfers;
      s.bytes += appended;
      w.ioCpu += (misses + transfers) * cpu.ioNsPerOp * 1e-9;
      w.at(Stage::Copy) +=
          2 * misses * double(table.slotBytes()) / (cpu.copyGBps * 1e9);
    }
    // Rows are read and written where the kernels find them.
    const machine::TierModel &near = m.tier(problem.tiers[rowsIn].kind);
    double granules = double((table.rowBytes() + near.granule - 1) /
                             near.granule * near.granule);
    w.at(Stage::Gather) +=
        std::max((l.ids * cpu.gatherNsPerId * 1e-9 +
                  l.gatherBytes / (cpu.gatherGBps * 1e9)) /
                     cores,
                 l.unique * granules / (near.readGBps * 1e9));
    if (problem.serve)
      continue;
    w.at(Stage::Update) +=
        std::max((l.unique * cpu.updateNsPerRow * 1e-9 +
                  l.updateBytes / (cpu.updateGBps * 1e9)) /
                     cores,
                 l.unique * granules / (near.writeGBps * 1e9));
  }
  for (const Feature &f : problem.features) {
    WorkerCost &w = workers[decision.tables[f.table].worker];
    double mean = std::min(f.meanIds, double(f.maxIds));
    double rows =
        double(problem.batch) * (f.pooling == Pooling::None ? mean : 1);
    double bytes = rows * double(problem.tables[f.table].dim) * 4;
    if (f.dedup >= 0) {
      w.at(Stage::Dedup) +=
          double(problem.batch) * mean * cpu.dedupNsPerId * 1e-9;
      w.at(Stage::Expand) += 2 * bytes / (cpu.copyGBps * 1e9) / cores;
    }
    // Forward and backward, eight operations a column.
    if (problem.head != Head::None)
      w.at(Stage::Head) += bytes / 4 * 8 / (cpu.flopsG * 1e9) / problem.workers;
    if (problem.workers > 1)
      w.at(Stage::Exchange) += 2 * bytes * (problem.workers - 1) /
                               problem.workers / (m.exchangeGBps() * 1e9);
  }
  for (int worker = 0; worker < problem.workers; ++worker) {
    WorkerCost &w = workers[worker];
    for (size_t tier = 0; tier < tierCount; ++tier) {
      TierKind kind = problem.tiers[tier].kind;
      // Drives of the node serve all of its workers.
      double share = problem.tiers[tier].perWorker ? 1 : problem.workers;
      const Transfer &r = reads[tier * problem.workers + worker];
      const Transfer &s = writes[tier * problem.workers + worker];
      if (r.ops > 0)
        w.at(Stage::Fetch) +=
            m.transferSeconds(kind, false, r.ops * share, r.bytes / r.ops);
      if (s.ops > 0)
        w.at(Stage::Store) +=
            m.transferSeconds(kind, true, s.ops * share, s.bytes / s.ops);
    }
    Pace p = pace(w, decision.lookahead, cores);
    cost.workerSeconds.push_back(p.step);
    if (worker == 0 || p.step > cost.step) {
      cost.step = p.step;
      cost.serial = p.serial;
      cost.bound = p.bound;
      cost.seconds = w.seconds;
    }
  }
  return cost;
}
