//===- StateToolsTest.cpp - Looks at a trained state ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tools say of a state is what the session that wrote it says, bit for
// bit; damage is found where it was done; nothing changes a byte that should
// only look.
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Compact.h"
#include "runtime/inspect/Diff.h"
#include "runtime/inspect/Export.h"
#include "runtime/inspect/Portable.h"
#include "runtime/inspect/Roots.h"
#include "runtime/inspect/Verify.h"
#include "runtime/store/Crc32c.h"
#include "test/runtime/exec/ToyModel.h"
#include "test/runtime/inspect/ArrayFiles.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

using namespace toy;
using namespace trc::inspect;
namespace fs = std::filesystem;

namespace {

Model model() {
  Model m;
  m.tables = {{"a", 300, 4, adagrad()},
              {"b", 50, 4, adagrad()},
              {"c", 4000, 9, rowwiseAdagrad()},
              {"d", 40, 4, adam()}};
  m.features = {{"x", 0, "sum", 3},
                {"y", 1, "mean", 2},
                {"z", 2, "max", 2},
                {"w", 3, "sum", 1}};
  m.cached = {true, true, true, false};
  m.retained = 10;
  m.space = 6;
  return m;
}

using Tables = std::map<std::string, std::vector<std::vector<float>>>;

Tables dumpAll(Session &s) {
  return {{"a", s.dump("a", 300, 4, {4})},
          {"b", s.dump("b", 50, 4, {4})},
          {"c", s.dump("c", 4000, 9, {1})},
          {"d", s.dump("d", 40, 4, {4, 4})}};
}

const std::map<std::string, std::vector<std::string>> slots = {
    {"a", {"sum"}},
    {"b", {"sum"}},
    {"c", {"sum"}},
    {"d", {"exp_avg", "exp_avg_sq"}}};

void train(Session &s, const Model &m, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    trc::SplitMix random(900 + static_cast<uint64_t>(i));
    Batch b = randomBatch(m, random, m.batch);
    trc_ticket t = 0;
    ASSERT_EQ(TRC_OK, s.submit(b, t)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.forward(t)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.backward(t, gradientsFor(s))) << s.error.message;
  }
}

std::map<std::string, std::string> bytesOf(const std::string &folder) {
  std::map<std::string, std::string> all;
  for (const auto &e : fs::recursive_directory_iterator(folder))
    if (e.is_regular_file())
      all[e.path().string()] = arrays::slurp(e.path().string());
  return all;
}

/// Arrays of an exported folder or file, by name.
std::map<std::string, arrays::Array> arraysOf(const std::string &path) {
  if (!fs::is_directory(path))
    return arrays::readSafetensors(path).arrays;
  std::map<std::string, arrays::Array> all;
  for (const auto &e : fs::directory_iterator(path))
    if (e.path().extension() == ".npy")
      all[e.path().stem().string()] = arrays::readNpy(e.path().string());
  return all;
}

std::string bytesOf(const std::vector<float> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * 4);
}

class StateToolsTest : public ::testing::Test {
protected:
  /// Checkpoints at steps 4 and 8 with a blob, closed at step 10.
  void SetUp() override {
    Model m = model();
    Artifact artifact(m);
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
    train(s, m, 0, 4);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), "four", 4, 0, &s.error));
    at[4] = dumpAll(s);
    train(s, m, 4, 8);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), "eight", 5, 0, &s.error));
    at[8] = dumpAll(s);
    train(s, m, 8, 10);
    at[10] = dumpAll(s);
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  }

  trc::StateSource root(const std::string &name) {
    auto dir = trc::StateDir::open(state, false, false);
    EXPECT_TRUE(dir.ok());
    auto source = findRoot(**dir, name, nullptr);
    EXPECT_TRUE(source.ok()) << source.takeStatus().message();
    return std::move(*source);
  }

  Exported exportAll(const std::string &name, const std::string &output,
                     bool safetensors, const char *since = nullptr) {
    ExportOptions options;
    options.safetensors = safetensors;
    options.output = output;
    trc::StateSource source = root(name), before;
    if (since)
      before = root(since);
    auto done =
        exportTensors(source, since ? &before : nullptr, options, nullptr);
    EXPECT_TRUE(done.ok()) << done.takeStatus().message();
    return std::move(*done);
  }

  /// Flips a bit of the record of a row, found by its bytes.
  void damageRow(const std::string &table, int64_t row, int step) {
    const std::vector<float> &weights = at[step][table][0];
    int64_t dim = static_cast<int64_t>(weights.size()) / (table == "c"   ? 4000
                                                          : table == "a" ? 300
                                                                         : 50);
    std::string wanted = bytesOf(weights).substr(
        static_cast<size_t>(row * dim * 4), static_cast<size_t>(dim * 4));
    int found = 0;
    for (const auto &[path, data] : bytesOf(state)) {
      if (path.find(".store") == std::string::npos)
        continue;
      for (size_t p = data.find(wanted); p != std::string::npos;
           p = data.find(wanted, p + 1), ++found) {
        std::fstream file(path,
                          std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(p));
        file.put(static_cast<char>(data[p] ^ 4));
      }
    }
    ASSERT_LT(0, found);
  }

  Folder folder;
  std::string state = folder / "state";
  std::map<int, Tables> at;
};

/// Problems that verify or scrub told.
struct Told {
  std::vector<Problem> all;
  std::function<void(Problem)> taker() {
    return [this](Problem p) { all.push_back(std::move(p)); };
  }
};

} // namespace

TEST_F(StateToolsTest, ExportsEveryRowAndStateAsTheSessionReadsThem) {
  std::map<std::string, std::string> before = bytesOf(state);
  for (bool safetensors : {false, true})
    for (const auto &[name, step] :
         std::map<std::string, int>{{"4", 4}, {"ckpt-8", 8}, {"", 10}}) {
      std::string out = folder / ("out" + name + (safetensors ? ".st" : ""));
      Exported done = exportAll(name, out, safetensors);
      EXPECT_EQ(4u, done.tables.size());
      std::map<std::string, arrays::Array> all = arraysOf(out);
      EXPECT_EQ(9u, all.size());
      for (const auto &[table, dump] : at[step]) {
        EXPECT_EQ(bytesOf(dump[0]), all[table].bytes) << table << step;
        for (size_t s = 0; s < slots.at(table).size(); ++s)
          EXPECT_EQ(bytesOf(dump[s + 1]),
                    all[table + "." + slots.at(table)[s]].bytes);
      }
      EXPECT_EQ((std::vector<int64_t>{4000, 9}), all["c"].shape);
      EXPECT_EQ(std::vector<int64_t>{4000}, all["c.sum"].shape);
    }
  EXPECT_EQ(before, bytesOf(state)) << "looking changed a byte";
}

TEST_F(StateToolsTest, SinceHoldsWhatChangedAndNothingElse) {
  std::string out = folder / "delta";
  exportAll("8", out, false, "4");
  std::map<std::string, arrays::Array> all = arraysOf(out);
  bool someLeftOut = false;
  for (const auto &[table, now] : at[8]) {
    Tables::mapped_type merged = at[4][table];
    std::vector<int64_t> ids = all[table + ".ids"].as<int64_t>();
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    EXPECT_EQ(ids.size(), std::set<int64_t>(ids.begin(), ids.end()).size());
    size_t rows = now.size() > 2 ? 40
                  : table == "c" ? 4000
                  : table == "a" ? 300
                                 : 50;
    someLeftOut |= ids.size() < rows;
    for (size_t part = 0; part < now.size(); ++part) {
      size_t width = now[part].size() / rows;
      std::vector<float> values =
          all[part ? table + "." + slots.at(table)[part - 1] : table]
              .as<float>();
      ASSERT_EQ(ids.size() * width, values.size());
      for (size_t i = 0; i < ids.size(); ++i)
        std::copy_n(values.begin() + static_cast<int64_t>(i * width), width,
                    merged[part].begin() + static_cast<int64_t>(ids[i]) *
                                               static_cast<int64_t>(width));
    }
    EXPECT_EQ(now, merged) << table;
    for (int64_t id : ids) { // each of them has changed
      bool same = true;
      for (size_t part = 0; part < now.size(); ++part) {
        size_t width = now[part].size() / rows;
        same &= std::equal(
            now[part].begin() + id * static_cast<int64_t>(width),
            now[part].begin() + (id + 1) * static_cast<int64_t>(width),
            at[4][table][part].begin() + id * static_cast<int64_t>(width));
      }
      EXPECT_FALSE(same) << table << " row " << id;
    }
  }
  EXPECT_TRUE(someLeftOut);
  // Nothing has changed since itself.
  exportAll("8", folder / "none.st", true, "8");
  EXPECT_EQ((std::vector<int64_t>{0, 9}),
            arraysOf(folder / "none.st")["c"].shape);
}

TEST_F(StateToolsTest, ExportOfSomeTables) {
  ExportOptions options;
  options.output = folder / "some";
  options.tables = {"d"};
  options.weightsOnly = true;
  ASSERT_TRUE(exportTensors(root(""), nullptr, options, nullptr).ok());
  std::map<std::string, arrays::Array> all = arraysOf(options.output);
  EXPECT_EQ(1u, all.size());
  EXPECT_EQ(bytesOf(at[10]["d"][0]), all["d"].bytes);
  options.tables = {"nope"};
  auto refused = exportTensors(root(""), nullptr, options, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(std::string::npos,
            refused.takeStatus().message().find("there are: a, b, c, d"));
}

TEST_F(StateToolsTest, DiffCountsRowsAndTheLargestDifference) {
  auto d = diffRoots(root("4"), root("8"), nullptr);
  ASSERT_TRUE(d.ok()) << d.takeStatus().message();
  EXPECT_FALSE(d->same);
  EXPECT_TRUE(d->blob);
  ASSERT_EQ(4u, d->tables.size());
  for (const TableDiff &t : d->tables) {
    const std::vector<float> &x = at[4][t.table][0], &y = at[8][t.table][0];
    double most = 0;
    for (size_t i = 0; i < x.size(); ++i)
      most = std::max(most, std::fabs(double(x[i]) - double(y[i])));
    EXPECT_EQ(most, t.weights) << t.table;
    EXPECT_LT(0u, t.changed + t.onlyAfter);
    EXPECT_EQ(0u, t.onlyBefore);
    EXPECT_EQ("", t.note);
  }
  auto back = diffRoots(root("8"), root("4"), nullptr);
  ASSERT_TRUE(back.ok());
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(d->tables[t].onlyAfter, back->tables[t].onlyBefore);
    EXPECT_EQ(d->tables[t].changed, back->tables[t].changed);
  }
  auto same = diffRoots(root("8"), root("8"), nullptr);
  ASSERT_TRUE(same.ok());
  EXPECT_TRUE(same->same);
}

TEST_F(StateToolsTest, ListsRootsWithWhatIsNewInThem) {
  auto dir = trc::StateDir::open(state, false, false);
  ASSERT_TRUE(dir.ok());
  auto roots = listRoots(**dir);
  ASSERT_TRUE(roots.ok());
  ASSERT_EQ(3u, roots->size());
  const std::vector<RootInfo> &r = *roots;
  EXPECT_EQ("ckpt-4", r[0].name);
  EXPECT_EQ("ckpt-8", r[1].name);
  EXPECT_EQ("closed", r[2].name);
  EXPECT_EQ(8, r[1].step);
  EXPECT_EQ(5u, r[1].blobBytes);
  EXPECT_LT(0, r[0].time);
  EXPECT_LE(r[0].rows, r[1].rows);
  for (const RootInfo &root : r) {
    EXPECT_EQ("", root.damage);
    EXPECT_LT(0u, root.newBytes);
  }
  // Rows of the first are all new; two steps change fewer than four.
  EXPECT_LT(r[2].newBytes, r[1].newBytes);

  std::ofstream(state + "/checkpoints/ckpt-4/manifest.json") << "{}";
  roots = listRoots(**dir);
  ASSERT_TRUE(roots.ok());
  ASSERT_EQ(3u, roots->size());
  EXPECT_EQ("ckpt-4", roots->back().name);
  EXPECT_NE("", roots->back().damage);
}

TEST_F(StateToolsTest, VerifyFindsTheRowThatIsDamaged) {
  Told told;
  Verified v;
  ASSERT_TRUE(verifyRoot(root(""), told.taker(), nullptr, v).ok());
  EXPECT_TRUE(told.all.empty());
  EXPECT_LT(0u, v.rows);
  // A row of the log that the newest root names.
  auto source = root("");
  auto reader = trc::StateReader::open(source);
  ASSERT_TRUE(reader.ok());
  int64_t row = (*reader)->nextWritten(2, 100);
  ASSERT_LT(row, 4000);
  reader->reset();
  damageRow("c", row, 10);
  ASSERT_TRUE(verifyRoot(root(""), told.taker(), nullptr, v).ok());
  ASSERT_EQ(1u, told.all.size()) << told.all.back().what;
  EXPECT_EQ("c", told.all[0].table);
  EXPECT_EQ(row, told.all[0].row);
  EXPECT_EQ(1u, v.lost);
  // An export meets it and leaves nothing behind.
  ExportOptions options;
  options.output = folder / "lost";
  auto failed = exportTensors(root(""), nullptr, options, nullptr);
  EXPECT_FALSE(failed.ok());
  EXPECT_FALSE(fs::exists(folder / "lost"));
  // Compact removes nothing then.
  auto dir = trc::StateDir::open(state, true, false);
  ASSERT_TRUE(dir.ok());
  EXPECT_FALSE(compactState(**dir, nullptr).ok());
  EXPECT_TRUE(fs::exists(state + "/checkpoints/ckpt-4/manifest.json"));
}

TEST_F(StateToolsTest, ScrubTellsWhichRootsAreSound) {
  std::ofstream(state + "/checkpoints/ckpt-4/blob.bin") << "fore";
  const trc::StateSource closed = root("closed");
  std::string index = closed.manifest.groups[0].index.back();
  fs::resize_file(state + "/" + index, 10);
  auto dir = trc::StateDir::open(state, false, false);
  ASSERT_TRUE(dir.ok());
  Told told;
  std::vector<Verified> all;
  ASSERT_TRUE(scrubState(**dir, told.taker(), nullptr, all).ok());
  ASSERT_EQ(3u, all.size());
  EXPECT_EQ(1u, all[0].problems); // ckpt-4: its blob
  EXPECT_EQ(0u, all[1].problems);
  EXPECT_FALSE(all[2].opened); // the closed state: its index
  EXPECT_EQ(2u, told.all.size());
  EXPECT_NE(std::string::npos, told.all[0].what.find("blob.bin"));
}

TEST_F(StateToolsTest, CompactKeepsTheNewestAndItsRows) {
  {
    auto dir = trc::StateDir::open(state, true, false);
    ASSERT_TRUE(dir.ok());
    auto done = compactState(**dir, nullptr);
    ASSERT_TRUE(done.ok()) << done.takeStatus().message();
    EXPECT_EQ("closed", done->kept);
    EXPECT_EQ((std::vector<std::string>{"ckpt-4", "ckpt-8"}), done->removed);
    EXPECT_LE(done->bytesAfter, done->bytesBefore);
    // Once more changes nothing.
    std::map<std::string, std::string> before = bytesOf(state);
    ASSERT_TRUE(compactState(**dir, nullptr).ok());
    EXPECT_EQ(before, bytesOf(state));
  }
  EXPECT_FALSE(fs::exists(state + "/checkpoints/ckpt-4"));
  Model m = model();
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
  EXPECT_EQ(at[10], dumpAll(s));
  train(s, m, 10, 12);
  ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
}

TEST_F(StateToolsTest, APortableCheckpointBecomesAStateOfAnotherPlan) {
  auto wrote = exportRows(root("8"), folder / "portable", nullptr);
  ASSERT_TRUE(wrote.ok()) << wrote.takeStatus().message();
  auto made = importRows(folder / "portable", folder / "new", nullptr);
  ASSERT_TRUE(made.ok()) << made.takeStatus().message();
  EXPECT_EQ(8, made->step);
  for (bool cached : {true, false}) {
    Model m = model();
    m.cached = {cached};
    Artifact artifact(m);
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, folder / "new", TRC_EVAL))
        << s.error.message;
    EXPECT_EQ(at[8], dumpAll(s));
    uint64_t bytes = 0;
    ASSERT_EQ(TRC_OK, trc_get_blob(s.get(), nullptr, &bytes, nullptr));
    EXPECT_EQ(5u, bytes);
    ASSERT_EQ(TRC_OK, s.close());
  }
  // It trains on as the one that it was made of.
  Model m = model();
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "new")) << s.error.message;
  train(s, m, 8, 10);
  EXPECT_EQ(at[10], dumpAll(s));
  ASSERT_EQ(TRC_OK, s.close()) << s.error.message;

  auto again = importRows(folder / "portable", folder / "new", nullptr);
  EXPECT_EQ(TRC_BAD_ARGUMENT, again.takeStatus().code());
}

TEST_F(StateToolsTest, DamagedPortableCheckpointsLeaveNoState) {
  ASSERT_TRUE(exportRows(root("8"), folder / "p", nullptr).ok());
  for (const char *name : {"checkpoint.json", "rows.bin", "blob.bin"}) {
    std::string path = folder / ("p/" + std::string(name));
    std::string good = arrays::slurp(path);
    for (size_t p : {size_t(3), good.size() / 2, good.size() - 2}) {
      std::string bad = good;
      bad[p] = static_cast<char>(bad[p] ^ 1);
      std::ofstream(path, std::ios::binary) << bad;
      auto refused = importRows(folder / "p", folder / "new", nullptr);
      ASSERT_FALSE(refused.ok()) << name << " at " << p;
      EXPECT_FALSE(fs::exists(folder / "new")) << name;
    }
    std::ofstream(path, std::ios::binary) << good.substr(0, good.size() / 2);
    EXPECT_FALSE(importRows(folder / "p", folder / "new", nullptr).ok());
    std::ofstream(path, std::ios::binary) << good;
  }
  EXPECT_TRUE(importRows(folder / "p", folder / "new", nullptr).ok());
}

TEST_F(StateToolsTest, HostileManifestsAreRefused) {
  std::string path = state + "/closed.json";
  nlohmann::json good = nlohmann::json::parse(arrays::slurp(path));
  const std::vector<std::pair<std::string, nlohmann::json>> changes = {
      {"/tables/0/name", "../../x"},
      {"/tables/0/name", "b"},
      {"/tables/0/rows", -1},
      {"/tables/0/dim", 1 << 30},
      {"/tables/0/state_widths", {-4}},
      {"/groups/0/rows", int64_t(1) << 40},
      {"/groups/0/tables", {0, 0}},
      {"/groups/0/row_base", {-1, 300}},
      {"/groups/0/row_base", {0, 299}},
      {"/groups/0/payload_bytes", 4},
      {"/groups/0/store_bytes", 0},
      {"/groups/0/segment_bytes", 0},
      {"/groups/0/segments", 0},
      {"/groups/0/extents", nlohmann::json::array()},
      {"/groups/0/extents/0/base", 5},
      {"/groups/0/index", {"../closed.json"}},
      {"/groups", {good["groups"][0]}},
      {"/blob/file", "../../../../etc/passwd"},
      {"/step", -5}};
  for (const auto &[where, value] : changes) {
    nlohmann::json j = good;
    j[nlohmann::json::json_pointer(where)] = value;
    j.erase("crc32c");
    std::string body = j.dump(1);
    j["crc32c"] = trc::crc32c(0, body.data(), body.size());
    auto m = trc::Manifest::fromText(j.dump(1), path);
    ASSERT_FALSE(m.ok()) << where << " " << value;
    EXPECT_EQ(TRC_CORRUPT, m.takeStatus().code()) << where;
  }
}

TEST_F(StateToolsTest, ATrainerExcludesAndReadersShare) {
  auto one = trc::StateDir::open(state, false, false);
  auto two = trc::StateDir::open(state, false, false);
  EXPECT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(TRC_LOCKED,
            trc::StateDir::open(state, true, false).takeStatus().code());
  one = trc::Status(TRC_INTERNAL, "closed");
  two = trc::Status(TRC_INTERNAL, "closed");
  Model m = model();
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
  EXPECT_EQ(TRC_LOCKED,
            trc::StateDir::open(state, false, false).takeStatus().code());
}
