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
#include "runtime/exec/Grain.h"
#include "runtime/store/RecordFormat.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace terrace;
using namespace terrace::planner;
using machine::TierKind;

llvm::StringRef planner::stageName(Stage stage) {
  static const char *const names[stageCount] = {
      "ingest", "dedup",  "unique", "probe",  "fetch",    "store",   "copy",
      "gather", "expand", "head",   "update", "exchange", "handoff", "sync"};
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
    l.gradBags += double(problem.batch);
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

double planner::kernelCores(double cores, double outputs, int64_t dim) {
  double grain = double(trc::kernelGrain(dim));
  return std::min(cores, std::max(1.0, std::floor(outputs / grain)));
}

namespace {

/// What a table shares with others, and decides what its rows cost.
struct Neighbourhood {
  double hotBytes = 0;   // all rows that the worker's kernels address
  double batchBytes = 0; // those of a batch
  double groupIds = 0, groupUnique = 0, groupBags = 0;
};

double gatherSeconds(const machine::CpuModel &cpu, const Table &table,
                     const TableLoad &l, const Neighbourhood &near) {
  double cores = double(cpu.cores);
  if (cpu.gather.empty())
    return (l.ids * cpu.gatherNsPerId * 1e-9 +
            l.gatherBytes / (cpu.gatherGBps * 1e9)) /
           cores;
  double bytes = double(table.rowBytes());
  double far = cpu.gather.at(bytes, near.hotBytes);
  double first = l.unique * far;
  // A skewed batch finds rows of the one before it where those are still near.
  if (!table.stats.missCurve.empty()) {
    double cold = profile::missesPerBatch(table.stats.missCurve, table.rows,
                                          l.unique, l.gradIds, l.unique);
    first =
        cold * far + (l.unique - cold) * cpu.gather.at(bytes, near.batchBytes);
  }
  double again = std::max(0.0, l.ids - l.unique) *
                 cpu.gather.at(bytes, l.unique * double(table.slotBytes()));
  double bags = l.bags * cpu.bagNs;
  if (cpu.bagGBps > 0)
    bags += l.bags * double(table.dim) * 4 / cpu.bagGBps;
  return (first + again + bags) * 1e-9 /
         kernelCores(cores, near.groupBags, table.dim);
}

llvm::StringRef nameOf(Optimizer optimizer) {
  switch (optimizer) {
  case Optimizer::Sgd:
    return "sgd";
  case Optimizer::Adagrad:
    return "adagrad";
  case Optimizer::RowwiseAdagrad:
    return "rowwise_adagrad";
  case Optimizer::Adam:
    return "adam";
  case Optimizer::MomentumSgd:
    return "momentum_sgd";
  case Optimizer::PartialRowwiseAdam:
    return "partial_rowwise_adam";
  case Optimizer::Lamb:
    return "lamb";
  case Optimizer::Ftrl:
    return "ftrl";
  }
  return "";
}

const machine::Surface &updateSurface(const machine::CpuModel &cpu,
                                      Optimizer optimizer) {
  static const machine::Surface none;
  if (cpu.update.empty())
    return none;
  auto found = cpu.update.find(nameOf(optimizer).str());
  return (found == cpu.update.end() ? cpu.update.begin() : found)->second;
}

/// Whether the rows were measured in a place like theirs, so that the tier's
/// own limits, which only memory behind all caches has, say nothing more.
bool isNear(TierKind kind, const machine::Surface &surface, double bytes) {
  return kind == TierKind::DRAM && !surface.empty() && bytes < surface.y.back();
}

/// Rows that a core waits for at once.
constexpr double linesInFlight = 10;

double updateSeconds(const machine::CpuModel &cpu, const Table &table,
                     const TableLoad &l, const Neighbourhood &near) {
  double cores = double(cpu.cores);
  if (cpu.update.empty())
    return (l.unique * cpu.updateNsPerRow * 1e-9 +
            l.updateBytes / (cpu.updateGBps * 1e9)) /
           cores;
  // The gather of the same step has just been at these rows.
  double rows = l.unique * updateSurface(cpu, table.optimizer)
                               .at(double(table.slotBytes()), near.batchBytes);
  double bytes = double(table.dim) * 4;
  double further = std::max(0.0, l.gradIds - l.unique);
  rows += further * (cpu.gradient.empty()
                         ? bytes / cpu.copyGBps
                         : cpu.gradient.at(bytes, l.gradBags * bytes));
  return rows * 1e-9 / kernelCores(cores, near.groupUnique, table.dim);
}

/// Of one id, in a group's batch of `ids` with `unique` rows.
double uniqueNs(const machine::CpuModel &cpu, double ids, double unique) {
  return cpu.unique.empty() || ids <= 0
             ? cpu.uniqueNsPerId
             : cpu.unique.at(ids, std::max(1e-6, unique / ids));
}

} // namespace

double planner::tableSeconds(const Problem &problem, int index,
                             const TableLoad &load) {
  const machine::CpuModel &cpu = problem.machine.cpu();
  const Table &table = problem.tables[index];
  double slot = double(table.slotBytes());
  Neighbourhood near{double(table.rows) * slot, load.unique * slot,
                     load.gradIds, load.unique, load.bags};
  double seconds =
      load.gradIds *
          (cpu.ingestNsPerId + uniqueNs(cpu, load.gradIds, load.unique)) *
          1e-9 +
      gatherSeconds(cpu, table, load, near);
  return problem.serve ? seconds
                       : seconds + updateSeconds(cpu, table, load, near);
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
  double work = c.sum({S::Gather, S::Expand, S::Head, S::Update, S::Exchange,
                       S::Handoff, S::Sync});
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
  // The trainer's thread copies alone; kernels have all cores.
  double alone = c.sum({S::Handoff, S::Sync});
  p.raise((host + copy + c.ioCpu + alone + (work - alone) * cores) / cores,
          "all cores");
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

  std::vector<Neighbourhood> nearOf(problem.tables.size());
  std::vector<double> hotBytes(problem.workers), batchBytes(problem.workers);
  for (const Group &g : footprint.groups) {
    Neighbourhood group;
    for (int t : g.tables) {
      group.groupIds += loads[t].gradIds;
      group.groupUnique += loads[t].unique;
      group.groupBags += loads[t].bags;
    }
    for (int t : g.tables)
      nearOf[t] = group;
    hotBytes[g.worker] +=
        double(g.cached() ? std::min(g.slots, g.rows) : g.rows) *
        double(g.slotBytes);
    batchBytes[g.worker] += group.groupUnique * double(g.slotBytes);
  }
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    nearOf[t].hotBytes = hotBytes[decision.tables[t].worker];
    nearOf[t].batchBytes = batchBytes[decision.tables[t].worker];
  }

  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const Table &table = problem.tables[t];
    const TableLoad &l = loads[t];
    const TableDecision &d = decision.tables[t];
    WorkerCost &w = workers[d.worker];
    w.at(Stage::Ingest) += l.gradIds * cpu.ingestNsPerId * 1e-9;
    w.at(Stage::Ingest) += l.gradBags * cpu.ingestNsPerBag * 1e-9;
    if (unique[t])
      w.at(Stage::Unique) +=
          l.gradIds * uniqueNs(cpu, nearOf[t].groupIds, nearOf[t].groupUnique) *
          1e-9;
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
      auto moved = double(llvm::alignTo(table.storeBytes(), home.granule));
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
      w.at(Stage::Probe) += misses * cpu.probeNsPerMiss * 1e-9;
      w.at(Stage::Copy) +=
          (problem.serve ? 1 : 2) * misses * cpu.copyNsPerRow * 1e-9;
      w.ioCpu += (misses + transfers) * cpu.ioNsPerOp * 1e-9;
      w.at(Stage::Copy) +=
          2 * misses * double(table.slotBytes()) / (cpu.copyGBps * 1e9);
    }
    // Rows are read and written where the kernels find them.
    TierKind nearKind = problem.tiers[rowsIn].kind;
    const machine::TierModel &near = m.tier(nearKind);
    auto granules = double(llvm::alignTo(table.rowBytes(), near.granule));
    w.at(Stage::Gather) +=
        std::max(gatherSeconds(cpu, table, l, nearOf[t]),
                 isNear(nearKind, cpu.gather, nearOf[t].hotBytes)
                     ? 0
                     : std::max(l.unique * granules / (near.readGBps * 1e9),
                                l.unique * near.latencyUs * 1e-6 /
                                    (linesInFlight * cores)));
    if (problem.serve)
      continue;
    w.at(Stage::Update) +=
        std::max(updateSeconds(cpu, table, l, nearOf[t]),
                 isNear(nearKind, updateSurface(cpu, table.optimizer),
                        nearOf[t].batchBytes)
                     ? 0
                     : l.unique * granules / (near.writeGBps * 1e9));
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
    if (problem.head == Head::None && cpu.handoffGBps > 0)
      w.at(Stage::Handoff) +=
          (problem.serve ? 1 : 2) * bytes / (cpu.handoffGBps * 1e9);
    if (problem.head != Head::None)
      w.at(Stage::Head) += bytes / 4 * 8 / (cpu.flopsG * 1e9) / problem.workers;
    if (problem.workers > 1)
      w.at(Stage::Exchange) += 2 * bytes * (problem.workers - 1) /
                               problem.workers / (m.exchangeGBps() * 1e9);
  }
  for (int worker = 0; worker < problem.workers; ++worker) {
    WorkerCost &w = workers[worker];
    w.at(Stage::Sync) += cpu.stepUs * 1e-6;
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
