//===- ProfileTest.cpp - The measured profile -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Profile.h"
#include "DataFiles.h"
#include "runtime/core/Hash.h"
#include "runtime/data/StackDistance.h"

#include <cstdlib>
#include <list>
#include <nlohmann/json.hpp>

using namespace trc;
using namespace trc::data;
using nlohmann::json;

namespace {

using ProfileMeasure = DataTest;

/// Misses of an LRU cache of `slots` rows, simulated.
double simulate(const std::vector<int64_t> &rows, size_t slots) {
  std::list<int64_t> order;
  std::unordered_map<int64_t, std::list<int64_t>::iterator> where;
  int64_t misses = 0;
  for (int64_t r : rows) {
    auto it = where.find(r);
    if (it == where.end()) {
      ++misses;
      if (order.size() == slots) {
        where.erase(order.back());
        order.pop_back();
      }
    } else {
      order.erase(it->second);
    }
    order.push_front(r);
    where[r] = order.begin();
  }
  return static_cast<double>(misses) / static_cast<double>(rows.size());
}

double at(const std::vector<std::pair<int64_t, double>> &curve, int64_t rows) {
  int64_t r0 = 0;
  double m0 = 1;
  for (auto [r, m] : curve) {
    if (rows <= r)
      return m0 + (m - m0) * static_cast<double>(rows - r0) /
                      static_cast<double>(r - r0);
    r0 = r;
    m0 = m;
  }
  return m0;
}

std::vector<int64_t> skewed(int64_t rows, size_t count, uint64_t seed) {
  SplitMix r(seed);
  std::vector<int64_t> out;
  for (size_t i = 0; i < count; ++i) {
    double u = r.unit();
    out.push_back(static_cast<int64_t>(u * u * u * static_cast<double>(rows)));
  }
  return out;
}

} // namespace

TEST(StackDistance, EqualsASimulatedLru) {
  std::vector<int64_t> rows = skewed(3000, 30000, 1);
  StackDistance d(1 << 16);
  for (int64_t r : rows)
    d.access(r, 0);
  auto curve = d.missCurve();
  for (size_t slots : {1, 5, 17, 40, 63})
    EXPECT_NEAR(at(curve, static_cast<int64_t>(slots)), simulate(rows, slots),
                1e-12)
        << slots;
  for (size_t slots : {100, 400, 1000, 2500})
    EXPECT_NEAR(at(curve, static_cast<int64_t>(slots)), simulate(rows, slots),
                0.005)
        << slots;
}

TEST(StackDistance, ASampleIsClose) {
  std::vector<int64_t> rows = skewed(40000, 400000, 2);
  StackDistance sample(4096), whole(1 << 16);
  for (int64_t r : rows) {
    sample.access(r, 0);
    whole.access(r, 0);
  }
  EXPECT_LT(sample.sampleRate(), 0.3);
  EXPECT_EQ(whole.sampleRate(), 1.0);
  EXPECT_NEAR(static_cast<double>(sample.cold()),
              static_cast<double>(whole.cold()), 0.05 * 40000);
  for (int64_t slots : {1000, 4000, 10000, 30000})
    EXPECT_NEAR(at(sample.missCurve(), slots), at(whole.missCurve(), slots),
                0.04)
        << slots;
}

TEST(StackDistance, ReuseByBatchesBack) {
  StackDistance d(100);
  for (auto [row, batch] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 0}, {1, 0}, {1, 1}, {1, 3}, {1, 6}, {1, 10}, {2, 10}})
    d.access(row, batch);
  // 0 back once, 1 once, 2-3 twice, 4-7 once; 1 and 2 are cold.
  EXPECT_EQ(d.reuse(), (std::vector<int64_t>{1, 1, 2, 1}));
  EXPECT_EQ(d.cold(), 2);
}

TEST_F(ProfileMeasure, CountsOfASmallFile) {
  ProfileInput in;
  in.files.paths = {write("a.tsv", "s\tu\tv\ti\n"
                                   "1\t5\t1,2\t7\n"
                                   "1\t5\t1,2\t8\n"
                                   "2\t6\t\t7\n"
                                   "2\t6\t3\t7\n"
                                   "1\t5\t1,2\t9\n")};
  in.format.features = {{"u", "u", "", false, false},
                        {"v", "v", "", false, false},
                        {"i", "i", "", false, false}};
  in.format.session = "s";
  in.tables = {{"user", 10, false}, {"item", 10, false}};
  in.featureTable = {0, 1, 1};
  in.featureGroup = {0, 0, -1};
  in.groups = {"g"};
  in.batch = 4;
  auto text = measureProfile(in);
  ASSERT_TRUE(text.ok()) << text.takeStatus().message();
  json p = json::parse(*text);
  EXPECT_EQ(p["terrace_profile"], 1);
  EXPECT_EQ(p["samples"], 5);
  EXPECT_EQ(p["batches"], 2);
  EXPECT_EQ(p["max_ids"], 4 + 5 + 4);
  json item = p["tables"][1];
  EXPECT_EQ(item["name"], "item");
  EXPECT_EQ(item["max_ids"], 9);
  EXPECT_EQ(item["max_unique_ids"], 5); // 1 2 3 7 8
  EXPECT_DOUBLE_EQ(item["unique_ids"], (5 + 3) / 2.0);
  EXPECT_EQ(item["distinct_ids"], 6);
  json v = p["features"][1];
  EXPECT_EQ(v["longest_bag"], 2);
  EXPECT_EQ(v["empty_bags"], 1);
  EXPECT_DOUBLE_EQ(v["unique_bags"], (3 + 1) / 2.0); // {1,2} {} {3}; {1,2}
  EXPECT_DOUBLE_EQ(v["unchanged"], 0.5);             // session 2 changed
  EXPECT_DOUBLE_EQ(p["features"][0]["unchanged"], 1.0);
  EXPECT_DOUBLE_EQ(v["samples_per_session"], 5.0 / 3); // 2 + 1 sessions
  json g = p["groups"][0];
  EXPECT_EQ(g["name"], "g");
  EXPECT_DOUBLE_EQ(g["unchanged"], 0.5);
  EXPECT_DOUBLE_EQ(g["unique_bags"], (3 + 1) / 2.0);
  EXPECT_DOUBLE_EQ(g["ids"], (5 + 9 - 1 - 1) / 2.0);
}

TEST_F(ProfileMeasure, IdsOutsideTheTableNameTheLine) {
  ProfileInput in;
  in.files.paths = {write("a.tsv", "i\ty\n3\t0\n10\t0\n")};
  in.format.features = {{"i", "i", "", false, false}};
  in.tables = {{"t", 10, false}};
  in.featureTable = {0};
  in.featureGroup = {-1};
  auto text = measureProfile(in);
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.takeStatus().message().find("a.tsv:3"), std::string::npos);
}

TEST_F(ProfileMeasure, OnlineRetailHasTheKnownStatistics) {
  const char *shared = std::getenv("TERRACE_SHARED_DATA");
  std::string file = std::string(shared ? shared : TERRACE_DEFAULT_DATA) +
                     "/online_retail.tsv.gz";
  if (::access(file.c_str(), R_OK) != 0)
    GTEST_SKIP() << file << " is not there";
  ProfileInput in;
  in.files.paths = {file};
  for (const char *name : {"stock", "customer", "country"})
    in.format.features.push_back({name, name, "", false, false});
  in.format.session = "invoice";
  in.tables = {{"stock", 4070, false},
               {"customer", 4373, false},
               {"country", 38, false}};
  in.featureTable = {0, 1, 2};
  in.featureGroup = {-1, 0, 0};
  in.groups = {"basket"};
  auto text = measureProfile(in);
  ASSERT_TRUE(text.ok()) << text.takeStatus().message();
  json p = json::parse(*text);
  EXPECT_EQ(p["samples"], 541909);
  // As workloads.md states them, measured elsewhere.
  EXPECT_EQ(p["tables"][0]["distinct_ids"], 4070);
  EXPECT_EQ(p["tables"][1]["distinct_ids"], 4373);
  EXPECT_NEAR(p["tables"][0]["unique_ids"].get<double>(), 1048, 8);
  EXPECT_NEAR(p["tables"][1]["unique_ids"].get<double>(), 75, 2);
  EXPECT_EQ(p["features"][1]["unchanged"], 1.0);
  EXPECT_EQ(p["groups"][0]["unchanged"], 1.0);
  EXPECT_LT(p["features"][0]["unchanged"].get<double>(), 0.05);
  EXPECT_NEAR(p["groups"][0]["samples_per_session"].get<double>(), 20, 2);
}
