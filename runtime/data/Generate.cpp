//===- Generate.cpp - Workloads with known statistics
//----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Generate.h"

#include "runtime/data/GenerateParts.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace trc::data {

namespace {

struct Entry {
  Workload shown;
  const char *file; // of the data
  void (*make)(Generator &);
};

const std::vector<Entry> &entries() {
  static const std::vector<Entry> table = {
      {{"clicks", "users, items and clicks; feeds the ten-line hello spec"},
       "clicks.tsv",
       generateClicks},
      {{"retail", "a twin of Online Retail: the same columns, about the same "
                  "statistics"},
       "online_retail.tsv.gz",
       generateRetail},
      {{"w1", "mlperf_v2: 26 tables, 214 ids a sample, Zipf 1.05"},
       "w1.tsv.gz",
       [](Generator &g) { generateMultiHot(g, false); }},
      {{"w1-uniform", "the same without skew"},
       "w1-uniform.tsv.gz",
       [](Generator &g) { generateMultiHot(g, true); }},
      {{"w3", "session_recd: repeated user features, shifting histories, "
              "sessions together"},
       "w3.tsv.gz",
       [](Generator &g) { generateSessions(g, false); }},
      {{"w3-shuffled", "the same with sessions far apart"},
       "w3-shuffled.tsv.gz",
       [](Generator &g) { generateSessions(g, true); }},
      {{"w5-kvcache", "ssd_tier: tables larger than memory, hot head"},
       "w5-kvcache.tsv.gz",
       [](Generator &g) { generateTiered(g, "kvcache"); }},
      {{"w5-follower", "ssd_tier: steep popularity"},
       "w5-follower.tsv.gz",
       [](Generator &g) { generateTiered(g, "follower"); }},
      {{"w5-leader", "ssd_tier: flat popularity"},
       "w5-leader.tsv.gz",
       [](Generator &g) { generateTiered(g, "leader"); }},
      {{"w5-shift", "ssd_tier: hot head, a tenth of it moves every 20 batches"},
       "w5-shift.tsv.gz",
       [](Generator &g) { generateTiered(g, "shift"); }},
      {{"w5-uniform", "ssd_tier: no skew and no reuse"},
       "w5-uniform.tsv.gz",
       [](Generator &g) { generateTiered(g, "uniform"); }}};
  return table;
}

} // namespace

const std::vector<Workload> &workloads() {
  static const std::vector<Workload> list = [] {
    std::vector<Workload> names;
    for (const Entry &e : entries())
      names.push_back(e.shown);
    return names;
  }();
  return list;
}

Result<Generated> generateWorkload(const GenerateOptions &options,
                                   const Progress &progress) {
  std::string name = options.workload;
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (name == "w5")
    name = "w5-kvcache";
  const Entry *entry = nullptr;
  std::string names;
  for (const Entry &e : entries()) {
    names += (names.empty() ? "" : ", ") + e.shown.name;
    if (e.shown.name == name)
      entry = &e;
  }
  if (!entry)
    return Status(TRC_BAD_ARGUMENT, "no workload '" + options.workload +
                                        "'; there are: " + names);
  if (!(options.scale > 0) || options.scale > 1000)
    return Status(TRC_BAD_ARGUMENT, "the scale is " + shortest(options.scale) +
                                        "; it must be above 0, at most 1000");
  if (options.folder.empty())
    return Status(TRC_BAD_ARGUMENT, "the folder for the files has no name");
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error)
    return Status::ioError("cannot make the folder", options.folder,
                           error.value());

  Generated result;
  std::string base = options.folder + "/";
  std::string stem = std::string(entry->file);
  stem = stem.substr(0, stem.find('.'));
  result.dataFile = base + entry->file;
  result.specFile = base + stem + ".yaml";
  result.statisticsFile = base + stem + ".stats.json";
  TableWriter out(result.dataFile);
  TRC_RETURN_IF_ERROR(out.open());
  Generator g{options, progress, out, entry->file, {}, {}};
  entry->make(g);
  TRC_RETURN_IF_ERROR(out.finish());
  result.rows = out.rows();
  result.statistics = std::move(g.statistics);

  nlohmann::json j = {{"workload", name},
                      {"scale", options.scale},
                      {"seed", std::to_string(options.seed)},
                      {"rows", result.rows},
                      {"statistics", nlohmann::json::array()}};
  for (const Statistic &s : result.statistics)
    j["statistics"].push_back(
        {{"name", s.name}, {"target", s.target}, {"achieved", s.achieved}});
  TRC_RETURN_IF_ERROR(writeOutput(result.specFile, g.spec));
  TRC_RETURN_IF_ERROR(writeOutput(result.statisticsFile, j.dump(1) + "\n"));
  return result;
}

} // namespace trc::data
