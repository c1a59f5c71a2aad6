//===- Explain.cpp - The plan in the user's terms -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Planner/Explain.h"
#include "CostModel/Wear.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;
using namespace terrace;
using namespace terrace::planner;

std::string planner::formatBytes(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = double(bytes);
  int unit = 0;
  while (std::abs(value) >= 1024 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? std::to_string(bytes) + " B"
                   : formatv("{0:f1} {1}", value, units[unit]).str();
}

std::string planner::formatSeconds(double seconds) {
  if (seconds >= 1)
    return formatv("{0:f2} s", seconds);
  if (seconds >= 1e-3)
    return formatv("{0:f2} ms", seconds * 1e3);
  return formatv("{0:f1} us", seconds * 1e6);
}

namespace {

/// Rows of cells, aligned; the first column and those marked flush left.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> header) {
    rows.push_back(std::move(header));
  }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(raw_ostream &os, std::initializer_list<size_t> left) const {
    std::vector<size_t> width;
    for (const auto &row : rows) {
      width.resize(std::max(width.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i)
        width[i] = std::max(width[i], row[i].size());
    }
    for (const auto &row : rows) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        std::string pad(width[i] - row[i].size(), ' ');
        bool flushLeft = llvm::is_contained(left, i);
        line += " " + (flushLeft ? row[i] + pad : pad + row[i]) + " ";
      }
      os << StringRef(line).rtrim() << "\n";
    }
  }

private:
  std::vector<std::vector<std::string>> rows;
};

std::string count(double value) {
  return value < 10 ? formatv("{0:f1}", value).str()
                    : formatv("{0:f0}", value).str();
}

/// What of a table lies in its home.
int64_t homeBytes(const Problem &p, const Plan &plan, int t) {
  const Table &table = p.tables[t];
  return table.rows * (plan.decision.tables[t].caches.empty()
                           ? table.slotBytes()
                           : table.storeBytes());
}

std::string cacheText(const Problem &p, const TableDecision &d) {
  std::string text;
  for (const CacheDecision &c : d.caches)
    text += (text.empty() ? "" : ", ") + p.tiers[c.tier].name + " " +
            std::to_string(c.retained);
  return text.empty() ? "-" : text;
}

/// Bytes that a step moves from and to the home, or reads and writes in place.
double stepBytes(const Plan &plan, const std::vector<TableLoad> &loads, int t) {
  const TableTraffic &traffic = plan.cost.tables[t];
  return plan.decision.tables[t].caches.empty()
             ? loads[t].gatherBytes + loads[t].updateBytes
             : traffic.fetchBytes + traffic.storeBytes;
}

int64_t memoryBytes(const Problem &p, const Plan &plan) {
  int64_t total = 0;
  for (size_t t = 0; t < p.tiers.size(); ++t)
    if (p.tiers[t].kind == machine::TierKind::DRAM)
      total += plan.footprint.charged(p, static_cast<int>(t)).total();
  return total;
}

/// Outside the tiers: the process itself and its reader.
int64_t processBytes(const Problem &p, const Plan &plan) {
  int64_t reader = 0;
  for (const Ring &ring : plan.footprint.rings)
    if (ring.role == trc::RingRole::ingest)
      reader = std::max(reader, readerBytes(ring.bytes, ring.depth));
  return p.machine.processBytes() + reader;
}

std::string assumptions(const Problem &p) {
  return p.profileOrigin.empty()
             ? "no profile: ids are taken as uniform, and bags of a dedup "
               "group as repeating with S = 16, d = 0.9"
             : "ids: profile " + p.profileOrigin;
}

/// Tiers that hold rows in stores: space, and what a step does to the drives.
void explainStores(const Problem &p, const Plan &plan, raw_ostream &os) {
  std::vector<TierWear> wear = tierWear(p, plan.decision, plan.cost);
  TextTable stores({"store", "rows", "space", "reads/step", "writes/step",
                    "written/step", "drive writes/day"});
  bool any = false;
  for (size_t t = 0; t < p.tiers.size(); ++t) {
    int64_t rows = 0;
    for (const Group &g : plan.footprint.groups)
      if (g.cached() && g.home == static_cast<int>(t))
        rows += g.rows * g.storeBytes;
    if (!rows)
      continue;
    any = true;
    std::string perDay = formatv("{0:f2}", wear[t].driveWritesPerDay).str();
    if (p.tiers[t].driveWritesPerDay > 0)
      perDay += formatv(" of {0}", p.tiers[t].driveWritesPerDay).str();
    stores.add(
        {p.tiers[t].name, formatBytes(rows),
         formatBytes(plan.footprint.charged(p, static_cast<int>(t)).rows),
         count(wear[t].readsPerStep), count(wear[t].writesPerStep),
         formatBytes(int64_t(wear[t].bytesPerStep)), perDay});
  }
  if (!any)
    return;
  stores.print(os, {0});
  os << formatv("  space for {0} retained checkpoint{1}: {2:f2}x the rows; "
                "written: with {3}x for cleaning, without checkpoints\n",
                p.storeRetained, p.storeRetained == 1 ? "" : "s", p.storeSpace,
                writeAmplification);
}

} // namespace

void planner::explainText(const Problem &p, const Plan &plan, raw_ostream &os) {
  std::vector<TableLoad> loads = tableLoads(p);
  os << "model " << p.model << ": " << p.tables.size() << " tables, "
     << p.features.size() << " features, batch " << p.batch << ", at most "
     << p.maxIds << " ids, " << p.workers
     << (p.workers == 1 ? " worker" : " workers") << "\n";
  os << "machine: " << p.machine.origin()
     << (p.machine.isMeasured() ? "" : " (terrace calibrate measures yours)")
     << "\n"
     << assumptions(p)
     << (p.profileOrigin.empty() ? " (terrace data profile measures them)" : "")
     << "\n\n";

  os << "tables\n";
  TextTable tables({"table", "rows", "dim", "bytes", "home", "cache (rows)",
                    "rows/step", "fetched/step", "bytes/step", "decided by",
                    "runner-up"});
  bool many = p.workers > 1;
  for (size_t t = 0; t < p.tables.size(); ++t) {
    int i = static_cast<int>(t);
    const TableDecision &d = plan.decision.tables[t];
    std::string runner = "-";
    if (const auto &r = plan.tableRunnerUp[t])
      runner = r->what + ": " + formatSeconds(r->stepSeconds);
    std::string home = p.tiers[d.home].name;
    if (many)
      home += " @" + std::to_string(d.worker);
    tables.add({p.tables[t].name, std::to_string(p.tables[t].rows),
                std::to_string(p.tables[t].dim),
                formatBytes(homeBytes(p, plan, i)), home, cacheText(p, d),
                count(loads[t].unique), count(plan.cost.tables[t].misses),
                formatBytes(int64_t(stepBytes(plan, loads, i))), plan.why[t],
                runner});
  }
  tables.print(os, {0, 4, 5, 9, 10});

  os << "\ngroups (tables of one record class, home and cache)\n";
  TextTable groups({"group", "tables", "rows", "slot", "home", "cache",
                    "retained", "slots", "max unique", "looked up"});
  for (const Group &g : plan.footprint.groups) {
    std::string caches;
    for (int c : g.caches)
      caches += (caches.empty() ? "" : ", ") + p.tiers[c].name;
    groups.add({g.name, std::to_string(g.tables.size()), std::to_string(g.rows),
                formatBytes(g.slotBytes), p.tiers[g.home].name,
                caches.empty() ? "-" : caches,
                g.cached() ? std::to_string(g.retained[0]) : "-",
                g.cached() ? std::to_string(g.slots) : "-",
                std::to_string(g.maxUnique),
                g.direct ? "by id" : "by unique row"});
  }
  groups.print(os, {0, 4, 5, 9});

  os << "\nbound\n";
  TextTable tiers(
      {"tier", "kind", "capacity", "bound", "rings", "slots", "index", "rows"});
  for (size_t t = 0; t < p.tiers.size(); ++t) {
    TierUse use = plan.footprint.charged(p, static_cast<int>(t));
    tiers.add(
        {p.tiers[t].name + (p.tiers[t].perWorker ? " (per worker)" : ""),
         machine::tierKindName(p.tiers[t].kind).str(),
         p.tiers[t].implied ? "not declared" : formatBytes(p.tiers[t].capacity),
         formatBytes(use.total()), formatBytes(use.rings),
         formatBytes(use.slots), formatBytes(use.index),
         formatBytes(use.rows)});
  }
  tiers.print(os, {0, 1});
  explainStores(p, plan, os);
  int64_t memory = memoryBytes(p, plan);
  int64_t process = processBytes(p, plan);
  os << "  process: " << formatBytes(process)
     << " of code, libraries, stacks and reader, outside the tiers; total "
     << formatBytes(memory + process) << " of DRAM\n";

  os << "\nstep at lookahead " << plan.decision.lookahead << ": "
     << formatSeconds(plan.cost.step) << " predicted ("
     << formatSeconds(plan.cost.serial) << " without overlap)\n";
  TextTable stages({"stage", "time"});
  for (int s = 0; s < stageCount; ++s)
    if (plan.cost.seconds[s] > 0)
      stages.add({stageName(static_cast<Stage>(s)).str(),
                  formatSeconds(plan.cost.seconds[s])});
  stages.print(os, {0});
  os << "  binds: " << plan.binding << "\n";
  if (plan.runnerUp)
    os << "  runner-up: " << plan.runnerUp->what << ", "
       << formatSeconds(plan.runnerUp->stepSeconds)
       // The planner's rule, or a faster runner-up looks like a mistake.
       << (plan.runnerUp->stepSeconds < plan.cost.step
               ? ", less than 1 % faster for more memory"
               : "")
       << "\n";
  if (many)
    os << formatv("  balance: largest worker {0:f3}x the mean\n", plan.balance);
  for (const DedupGroup &g : p.dedup)
    os << formatv("  dedup {0}: {1} features, {2:f2} samples per unique bag\n",
                  g.name, g.features.size(), g.factor);
}

json::Value planner::explainJson(const Problem &p, const Plan &plan) {
  std::vector<TableLoad> loads = tableLoads(p);
  // Times to the nanosecond: enough, and equal on every host.
  auto time = [](double seconds) { return std::round(seconds * 1e9) / 1e9; };
  auto round2 = [](double v) { return std::round(v * 100) / 100; };
  json::Array tables;
  for (size_t t = 0; t < p.tables.size(); ++t) {
    int i = static_cast<int>(t);
    const TableDecision &d = plan.decision.tables[t];
    json::Array caches;
    for (const CacheDecision &c : d.caches)
      caches.push_back(json::Object{{"tier", p.tiers[c.tier].name},
                                    {"retained", c.retained}});
    json::Object o{{"name", p.tables[t].name},
                   {"rows", p.tables[t].rows},
                   {"dim", p.tables[t].dim},
                   {"bytes", homeBytes(p, plan, i)},
                   {"home", p.tiers[d.home].name},
                   {"worker", d.worker},
                   {"cache", std::move(caches)},
                   {"ids_per_step", round2(loads[t].gradIds)},
                   {"rows_per_step", round2(loads[t].unique)},
                   {"fetched_per_step", round2(plan.cost.tables[t].misses)},
                   {"bytes_per_step", round2(stepBytes(plan, loads, i))},
                   {"decided_by", plan.why[t]}};
    if (const auto &r = plan.tableRunnerUp[t])
      o["runner_up"] = json::Object{{"what", r->what},
                                    {"step_seconds", time(r->stepSeconds)}};
    tables.push_back(std::move(o));
  }
  json::Array groups;
  for (const Group &g : plan.footprint.groups) {
    json::Array names, caches;
    for (int t : g.tables)
      names.push_back(p.tables[t].name);
    for (size_t c = 0; c < g.caches.size(); ++c)
      caches.push_back(json::Object{{"tier", p.tiers[g.caches[c]].name},
                                    {"retained", g.retained[c]}});
    groups.push_back(json::Object{{"name", g.name},
                                  {"worker", g.worker},
                                  {"tables", std::move(names)},
                                  {"rows", g.rows},
                                  {"slot_bytes", g.slotBytes},
                                  {"store_bytes", g.storeBytes},
                                  {"home", p.tiers[g.home].name},
                                  {"cache", std::move(caches)},
                                  {"slots", g.slots},
                                  {"max_unique", g.maxUnique},
                                  {"direct", g.direct}});
  }
  json::Array tiers;
  std::vector<TierWear> wear = tierWear(p, plan.decision, plan.cost);
  for (size_t t = 0; t < p.tiers.size(); ++t) {
    TierUse use = plan.footprint.charged(p, static_cast<int>(t));
    tiers.push_back(json::Object{
        {"reads_per_step", round2(wear[t].readsPerStep)},
        {"writes_per_step", round2(wear[t].writesPerStep)},
        {"written_bytes_per_step", round2(wear[t].bytesPerStep)},
        {"drive_writes_per_day", round2(wear[t].driveWritesPerDay)},
        {"name", p.tiers[t].name},
        {"kind", machine::tierKindName(p.tiers[t].kind)},
        {"per_worker", p.tiers[t].perWorker},
        {"capacity", p.tiers[t].implied ? json::Value(nullptr)
                                        : json::Value(p.tiers[t].capacity)},
        {"bytes", use.total()},
        {"parts", json::Object{{"rings", use.rings},
                               {"slots", use.slots},
                               {"index", use.index},
                               {"rows", use.rows}}}});
  }
  json::Object stages;
  for (int s = 0; s < stageCount; ++s)
    stages[stageName(static_cast<Stage>(s))] = time(plan.cost.seconds[s]);
  json::Array dedup;
  for (const DedupGroup &g : p.dedup)
    dedup.push_back(json::Object{{"name", g.name},
                                 {"features", int64_t(g.features.size())},
                                 {"factor", round2(g.factor)}});
  int64_t memory = memoryBytes(p, plan), process = processBytes(p, plan);
  json::Object root{{"model", p.model},
                    {"batch", p.batch},
                    {"max_ids", p.maxIds},
                    {"workers", p.workers},
                    {"store", json::Object{{"space", p.storeSpace},
                                           {"retained", p.storeRetained}}},
                    {"machine", p.machine.origin()},
                    {"assumptions", assumptions(p)},
                    {"lookahead", plan.decision.lookahead},
                    {"tables", std::move(tables)},
                    {"groups", std::move(groups)},
                    {"tiers", std::move(tiers)},
                    {"process_bytes", process},
                    {"total_bytes", memory + process},
                    {"step_seconds", time(plan.cost.step)},
                    {"serial_seconds", time(plan.cost.serial)},
                    {"stages", std::move(stages)},
                    {"binds", plan.binding},
                    {"dedup", std::move(dedup)},
                    {"balance", std::round(plan.balance * 1e4) / 1e4}};
  if (plan.runnerUp)
    root["runner_up"] =
        json::Object{{"what", plan.runnerUp->what},
                     {"step_seconds", time(plan.runnerUp->stepSeconds)}};
  return root;
}
