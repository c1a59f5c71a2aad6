//===- GenerateTest.cpp - The generated workloads -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DataFiles.h"
#include "runtime/data/GenerateParts.h"

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace trc;
using namespace trc::data;

namespace {

class Generate : public DataTest {
protected:
  Generated make(const std::string &workload, double scale, uint64_t seed = 1,
                 const std::string &sub = "out") {
    auto g = generateWorkload({workload, scale, seed, path(sub)});
    EXPECT_TRUE(g.ok()) << g.takeStatus().message();
    return g.ok() ? std::move(*g) : Generated();
  }
  static std::string bytes(const std::string &file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  /// Rows of a file as fields, without the header.
  static std::vector<std::vector<std::string>> table(const std::string &file) {
    std::vector<std::vector<std::string>> rows;
    auto source = ByteSource::open(file);
    EXPECT_TRUE(source.ok());
    LineReader lines(std::move(*source), false);
    std::string line, unquoted;
    std::vector<std::string_view> fields;
    while (*lines.next(line)) {
      (void)RowParser::split(line, '\t', fields, unquoted);
      rows.emplace_back(fields.begin(), fields.end());
    }
    rows.erase(rows.begin());
    return rows;
  }
  static const Statistic &find(const Generated &g, const std::string &name) {
    for (const Statistic &s : g.statistics)
      if (s.name == name)
        return s;
    ADD_FAILURE() << "no statistic " << name;
    static const Statistic none{};
    return none;
  }
};

} // namespace

TEST_F(Generate, EveryWorkloadReadsBackAsItsSpecSays) {
  for (const Workload &w : workloads()) {
    Generated g = make(w.name, 0.002);
    auto columns = columnsOf(g.dataFile, {});
    ASSERT_TRUE(columns.ok());
    std::string spec = bytes(g.specFile);
    // The label and the file that the spec names are there.
    size_t label = spec.find("label: ");
    ASSERT_NE(label, std::string::npos) << spec;
    std::string name = spec.substr(label + 7);
    name = name.substr(0, name.find_first_of(",}"));
    EXPECT_NE(std::find(columns->begin(), columns->end(), name), columns->end())
        << name;
    std::string file = g.dataFile.substr(g.dataFile.rfind('/') + 1);
    EXPECT_NE(spec.find("path: " + file), std::string::npos);
    auto n = countRows({{g.dataFile}, {}, false}, {});
    ASSERT_TRUE(n.ok());
    EXPECT_EQ(*n, g.rows) << w.name;
    EXPECT_GT(g.rows, 100) << w.name;
    auto j = nlohmann::json::parse(bytes(g.statisticsFile));
    EXPECT_EQ(j["rows"], g.rows);
    EXPECT_EQ(j["statistics"].size(), g.statistics.size());
  }
}

TEST_F(Generate, TheSeedFixesEveryByte) {
  for (const char *w : {"retail", "clicks", "w1", "w3", "w5-shift"}) {
    Generated a = make(w, 0.002, 5, "a"), b = make(w, 0.002, 5, "b"),
              c = make(w, 0.002, 6, "c");
    EXPECT_EQ(bytes(a.dataFile), bytes(b.dataFile)) << w;
    EXPECT_EQ(bytes(a.specFile), bytes(b.specFile)) << w;
    EXPECT_NE(bytes(a.dataFile), bytes(c.dataFile)) << w;
  }
}

TEST_F(Generate, W1EqualIdsGiveEqualBags) {
  Generated g = make("W1", 0.001);
  std::map<std::string, std::string> seen;
  const int64_t hot[26] = {3, 2, 1, 2, 6, 1, 1,  1,   1,  7,  3, 8, 1,
                           6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1};
  size_t repeats = 0;
  for (const auto &row : table(g.dataFile)) {
    ASSERT_EQ(row.size(), 27u);
    for (size_t t = 0; t < 26; ++t) {
      const std::string &bag = row[t];
      EXPECT_EQ(std::count(bag.begin(), bag.end(), ',') + 1, hot[t]);
      std::string key = std::to_string(t) + ":" + bag.substr(0, bag.find(','));
      auto [it, fresh] = seen.emplace(key, bag);
      repeats += !fresh;
      ASSERT_EQ(it->second, bag);
    }
  }
  EXPECT_GT(repeats, 10000u);
  EXPECT_EQ(find(g, "ids per sample").achieved, 214);
}

TEST_F(Generate, W3SessionsTogetherAndApart) {
  Generated together = make("w3", 0.01), apart = make("w3-shuffled", 0.01);
  EXPECT_NEAR(find(together, "samples per session").achieved, 16, 1.5);
  EXPECT_NEAR(
      find(together, "a user feature is constant in its session").achieved,
      0.97, 0.01);
  auto changes = [&](const Generated &g) {
    std::string last;
    int64_t n = 0;
    for (const auto &row : table(g.dataFile)) {
      n += row[0] != last;
      last = row[0];
    }
    return n;
  };
  EXPECT_EQ(changes(together), 600);
  EXPECT_GT(changes(apart), 5000);
  // Columns 16 and 21 are functions of the pair; the flags have 56 tuples.
  std::map<std::string, std::string> pairs;
  std::map<std::string, int> flags;
  for (const auto &row : table(together.dataFile)) {
    auto [it, fresh] = pairs.emplace(row[32], row[17] + "," + row[22]);
    EXPECT_EQ(it->second, row[17] + "," + row[22]);
    std::string tuple;
    for (int c = 26; c < 32; ++c)
      tuple += row[static_cast<size_t>(c)] + ",";
    ++flags[tuple];
  }
  EXPECT_LE(flags.size(), 56u);
  EXPECT_GT(flags.size(), 40u);
}

TEST_F(Generate, W5FollowsItsCurve) {
  for (auto [name, share] : {std::pair<const char *, double>{"kvcache", 0.724},
                             {"follower", 0.766},
                             {"leader", 0.327}}) {
    Generated g = make(std::string("w5-") + name, 0.01);
    EXPECT_NEAR(find(g, "f0: share of the hottest 1 %").achieved, share, 0.05)
        << name;
  }
  Generated u = make("w5-uniform", 0.01);
  const Statistic &s = find(u, "unique rows per batch, independent draws");
  EXPECT_NEAR(s.achieved / s.target, 1, 0.01);
}

TEST_F(Generate, RetailTwinResemblesTheRealFile) {
  Generated g = make("retail", 1, 7);
  for (const Statistic &s : g.statistics)
    EXPECT_NEAR(s.achieved / s.target, 1, 0.1) << s.name << " " << s.achieved;
  // Customer and country never change inside an invoice.
  std::map<std::string, std::string> of;
  for (const auto &row : table(g.dataFile)) {
    auto [it, fresh] = of.emplace(row[0], row[6] + "," + row[7] + "," + row[1]);
    ASSERT_EQ(it->second, row[6] + "," + row[7] + "," + row[1]);
  }
}

TEST_F(Generate, WrongOptionsAreErrors) {
  auto refused = [&](GenerateOptions o, const std::string &word) {
    auto g = generateWorkload(o);
    ASSERT_FALSE(g.ok());
    std::string text = g.takeStatus().message();
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  refused({"w9", 1, 0, folder}, "w9");
  refused({"w9", 1, 0, folder}, "w5-kvcache"); // names what there is
  refused({"w1", 0, 0, folder}, "scale");
  refused({"w1", -1, 0, folder}, "scale");
  write("file", "x");
  refused({"w1", 0.001, 0, path("file/sub")}, "file/sub");
}

TEST(GenerateParts, ZipfAndScatter) {
  ZipfSampler z(100, 1.0);
  SplitMix r(1);
  int64_t first = 0, second = 0;
  for (int i = 0; i < 100000; ++i) {
    int64_t rank = z.draw(r);
    ASSERT_GE(rank, 0);
    ASSERT_LT(rank, 100);
    first += rank == 0;
    second += rank == 1;
  }
  EXPECT_NEAR(static_cast<double>(first) / 100000, z.shareOfFirst(), 0.005);
  EXPECT_NEAR(static_cast<double>(first) / static_cast<double>(second), 2, 0.1);
  for (int64_t n : {1, 2, 7, 100, 4096}) {
    Scatter s(n, 3);
    std::vector<char> hit(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      hit[static_cast<size_t>(s(i))] = 1;
    EXPECT_EQ(std::count(hit.begin(), hit.end(), 1), n);
  }
}
