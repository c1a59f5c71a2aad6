//===- Profile.cpp - Measures the statistics that the passes read
//----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Profile.h"

#include "runtime/core/Hash.h"
#include "runtime/data/StackDistance.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

namespace trc::data {

using nlohmann::json;

namespace {

/// Sums over batches of one table, feature or group.
struct Totals {
  int64_t ids = 0, maxIds = 0, unique = 0, maxUnique = 0;
  int64_t uniqueBags = 0, uniqueBagIds = 0;
  int64_t longestBag = 0, emptyBags = 0;
  int64_t followers = 0, unchanged = 0; // samples after one of their session

  void closeBatch(int64_t batchIds, int64_t batchUnique) {
    ids += batchIds;
    maxIds = std::max(maxIds, batchIds);
    unique += batchUnique;
    maxUnique = std::max(maxUnique, batchUnique);
  }
};

/// The bags of one feature or the tuples of one group, inside one batch.
struct BagSet {
  std::unordered_set<uint64_t> seen;
  std::unordered_map<uint64_t, uint64_t> lastOfSession;

  void take(uint64_t bag, int64_t ids, uint64_t session, bool sessions,
            Totals &totals) {
    if (seen.insert(bag).second) {
      ++totals.uniqueBags;
      totals.uniqueBagIds += ids;
    }
    if (!sessions)
      return;
    auto [it, first] = lastOfSession.emplace(session, bag);
    if (!first) {
      ++totals.followers;
      totals.unchanged += it->second == bag;
      it->second = bag;
    }
  }
  void clear() {
    seen.clear();
    lastOfSession.clear();
  }
};

int64_t countDistinct(std::vector<int64_t> &rows) {
  std::sort(rows.begin(), rows.end());
  return std::unique(rows.begin(), rows.end()) - rows.begin();
}

class Profiler {
public:
  explicit Profiler(const ProfileInput &input)
      : in(input), sessions(!input.format.session.empty()),
        tables(input.tables.size()), features(input.format.features.size()),
        groups(input.groups.size()), tableRows(tables.size()),
        featureRows(features.size()), featureBags(features.size()),
        groupBags(groups.size()) {
    for (size_t t = 0; t < tables.size(); ++t)
      curves.emplace_back(input.sampledRows);
  }

  Status take(const Row &row);
  void closeBatch();
  json result() const;
  int64_t rows() const { return samples; }

private:
  json entry(const std::string &name, const Totals &t) const;
  void addSessions(json &o, const Totals &t) const;

  const ProfileInput &in;
  const bool sessions;
  std::vector<Totals> tables, features, groups;
  std::vector<std::vector<int64_t>> tableRows, featureRows; // of the batch
  std::vector<BagSet> featureBags, groupBags;
  std::vector<StackDistance> curves;
  std::unordered_set<uint64_t> batchSessions;
  int64_t samples = 0, inBatch = 0, batches = 0, sessionsSeen = 0;
  int64_t batchIds = 0, maxBatchIds = 0;
};

Status Profiler::take(const Row &row) {
  const int64_t *id = row.ids.data();
  const float *weight = row.weights.data();
  std::vector<uint64_t> tuple(groups.size(), 0x7475706c65ull);
  std::vector<int64_t> tupleIds(groups.size(), 0);
  for (size_t f = 0; f < features.size(); ++f) {
    const ProfileTable &table =
        in.tables[static_cast<size_t>(in.featureTable[f])];
    int64_t n = row.counts[f];
    uint64_t bag = mix64(static_cast<uint64_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      int64_t r = table.hash ? hashRow(id[i], table.rows) : id[i];
      if (r < 0 || r >= table.rows)
        return Status(TRC_BAD_INPUT, "feature '" + in.format.features[f].name +
                                         "': id " + std::to_string(r) +
                                         " is outside 0 .. " +
                                         std::to_string(table.rows - 1) +
                                         " of table '" + table.name + "'");
      tableRows[static_cast<size_t>(in.featureTable[f])].push_back(r);
      featureRows[f].push_back(r);
      curves[static_cast<size_t>(in.featureTable[f])].access(r, batches);
      bag = mix64(bag ^ static_cast<uint64_t>(id[i]));
    }
    id += n;
    if (!in.format.features[f].weights.empty()) {
      for (int64_t i = 0; i < n; ++i) {
        uint32_t bits;
        std::memcpy(&bits, &weight[i], sizeof(bits));
        bag = mix64(bag ^ bits);
      }
      weight += n;
    }
    Totals &t = features[f];
    t.longestBag = std::max(t.longestBag, n);
    t.emptyBags += n == 0;
    featureBags[f].take(bag, n, row.session, sessions, t);
    if (int g = in.featureGroup[f]; g >= 0) {
      tuple[static_cast<size_t>(g)] =
          mix64(tuple[static_cast<size_t>(g)] ^ bag);
      tupleIds[static_cast<size_t>(g)] += n;
    }
    batchIds += n;
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    groupBags[g].take(tuple[g], tupleIds[g], row.session, sessions, groups[g]);
    groups[g].ids += tupleIds[g];
  }
  if (sessions)
    batchSessions.insert(row.session);
  ++samples;
  if (++inBatch == in.batch)
    closeBatch();
  return Status();
}

void Profiler::closeBatch() {
  if (inBatch == 0)
    return;
  for (size_t t = 0; t < tables.size(); ++t) {
    int64_t n = static_cast<int64_t>(tableRows[t].size());
    tables[t].closeBatch(n, countDistinct(tableRows[t]));
    tableRows[t].clear();
  }
  for (size_t f = 0; f < features.size(); ++f) {
    int64_t n = static_cast<int64_t>(featureRows[f].size());
    features[f].closeBatch(n, countDistinct(featureRows[f]));
    featureRows[f].clear();
    featureBags[f].clear();
  }
  for (BagSet &g : groupBags)
    g.clear();
  sessionsSeen += static_cast<int64_t>(batchSessions.size());
  batchSessions.clear();
  maxBatchIds = std::max(maxBatchIds, batchIds);
  batchIds = inBatch = 0;
  ++batches;
}

json Profiler::entry(const std::string &name, const Totals &t) const {
  double n = static_cast<double>(std::max<int64_t>(1, batches));
  return {{"name", name},
          {"batches", batches},
          {"batch", in.batch},
          {"ids", static_cast<double>(t.ids) / n},
          {"max_ids", t.maxIds},
          {"unique_ids", static_cast<double>(t.unique) / n},
          {"max_unique_ids", t.maxUnique}};
}

void Profiler::addSessions(json &o, const Totals &t) const {
  double n = static_cast<double>(std::max<int64_t>(1, batches));
  o["unique_bags"] = static_cast<double>(t.uniqueBags) / n;
  o["unique_bag_ids"] = static_cast<double>(t.uniqueBagIds) / n;
  if (!sessions || sessionsSeen == 0)
    return;
  o["samples_per_session"] =
      static_cast<double>(samples) / static_cast<double>(sessionsSeen);
  o["unchanged"] = t.followers ? static_cast<double>(t.unchanged) /
                                     static_cast<double>(t.followers)
                               : 0.0;
}

json Profiler::result() const {
  json p = {{"terrace_profile", 1},      {"samples", samples},
            {"batches", batches},        {"batch", in.batch},
            {"max_ids", maxBatchIds},    {"tables", json::array()},
            {"features", json::array()}, {"groups", json::array()}};
  for (size_t t = 0; t < tables.size(); ++t) {
    json o = entry(in.tables[t].name, tables[t]);
    o["distinct_ids"] = curves[t].cold();
    o["cold"] = curves[t].cold();
    o["reuse"] = curves[t].reuse();
    o["sample_rate"] = curves[t].sampleRate();
    json rows = json::array(), ratio = json::array();
    for (auto [r, m] : curves[t].missCurve()) {
      rows.push_back(r);
      ratio.push_back(m);
    }
    o["cache_rows"] = rows;
    o["miss_ratio"] = ratio;
    p["tables"].push_back(o);
  }
  for (size_t f = 0; f < features.size(); ++f) {
    json o = entry(in.format.features[f].name, features[f]);
    o["longest_bag"] = features[f].longestBag;
    o["empty_bags"] = features[f].emptyBags;
    addSessions(o, features[f]);
    p["features"].push_back(o);
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    json o = {{"name", in.groups[g]},
              {"batches", batches},
              {"batch", in.batch},
              {"ids", static_cast<double>(groups[g].ids) /
                          static_cast<double>(std::max<int64_t>(1, batches))}};
    addSessions(o, groups[g]);
    p["groups"].push_back(o);
  }
  return p;
}

} // namespace

Result<std::string> measureProfile(const ProfileInput &input,
                                   const Progress &progress) {
  RowStream stream(input.files, input.format);
  Profiler profiler(input);
  Row row;
  while (input.maxRows < 0 || profiler.rows() < input.maxRows) {
    Result<bool> got = stream.next(row);
    if (!got.ok())
      return got.takeStatus();
    if (!*got)
      break;
    Status s = profiler.take(row);
    if (!s.ok())
      return Status(TRC_BAD_INPUT,
                    stream.paths()[static_cast<size_t>(row.file)] + ":" +
                        std::to_string(row.line) + ": " + s.message());
    if (progress && profiler.rows() % 65536 == 0)
      progress(profiler.rows());
  }
  profiler.closeBatch();
  if (profiler.rows() == 0)
    return Status(TRC_BAD_INPUT,
                  "the data hold no rows: " + input.files.paths.front());
  return profiler.result().dump(1) + "\n";
}

} // namespace trc::data
