//===- WarmTest.cpp - Caches filled when a state is opened ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warm open changes speed, never results: the misses are those of a run that
// never stopped, and so is every bit of the tables. A file of resident rows
// that is missing, damaged or another state's costs the warmth alone.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/FileUtil.h"
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace toy;
using trc::SplitMix;

namespace {

Model model(const char *policy = "lfu", int64_t retained = 40) {
  Model m;
  m.tables = {{"a", 600, 4, adagrad()}, {"c", 150, 9, rowwiseAdagrad()}};
  m.features = {{"x", 0, "sum", 3}, {"z", 1, "max", 2}};
  m.cached = {true};
  m.retained = retained;
  m.policy = policy;
  return m;
}

using Tables = std::vector<std::vector<std::vector<float>>>;
Tables dumpAll(Session &s) {
  return {s.dump("a", 600, 4, {4}), s.dump("c", 150, 9, {1})};
}

/// Batch `i` is the same in every run.
void train(Session &s, const Model &m, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    SplitMix random(9100 + static_cast<uint64_t>(i));
    Batch b = randomBatch(m, random, m.batch);
    trc_ticket t = 0;
    ASSERT_EQ(TRC_OK, s.submit(b, t)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.forward(t)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.backward(t, gradientsFor(s))) << s.error.message;
  }
}

uint64_t sum(Session &s, const char *counter) {
  uint64_t n = 0;
  json stats = s.stats();
  for (const json &g : stats["groups"])
    n += g.value(counter, uint64_t(0));
  return n;
}

bool logged(const Session &s, const std::string &text) {
  return std::any_of(s.logs.begin(), s.logs.end(), [&](const auto &line) {
    return line.find(text) != std::string::npos;
  });
}

/// The path of the file that closed.json names.
std::string residentFile(const std::string &state) {
  std::ifstream in(state + "/closed.json");
  return state + "/" + json::parse(in).at("resident").get<std::string>();
}

class Warm : public ::testing::Test {
protected:
  Folder folder;
  std::string state = folder / "state";

  /// Trains into the state and closes it.
  void close(const Model &m, int begin, int end) {
    Artifact artifact(m);
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
    train(s, m, begin, end);
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  }
  struct Half {
    uint64_t misses = 0, warmed = 0;
    bool saidWarm = false, saidCold = false;
    Tables tables;
  };
  /// Goes on from a copy of the state.
  Half half(const Model &m, uint32_t flags, int begin = 100, int end = 200) {
    static int copies = 0;
    std::string copy = folder / ("copy" + std::to_string(copies++));
    std::filesystem::copy(state, copy,
                          std::filesystem::copy_options::recursive);
    Artifact artifact(m);
    Session s;
    EXPECT_EQ(TRC_OK, s.open(artifact, copy, TRC_TRAIN, flags))
        << s.error.message;
    Half h;
    h.saidWarm = logged(s, "caches start warm: ");
    h.saidCold = logged(s, "caches start cold: ");
    h.warmed = sum(s, "warmed");
    train(s, m, begin, end);
    h.misses = sum(s, "misses");
    h.tables = dumpAll(s);
    EXPECT_EQ(TRC_OK, s.close()) << s.error.message;
    return h;
  }
};

} // namespace

TEST_F(Warm, GoesOnAsIfItHadNotStopped) {
  for (const char *policy : {"lru", "clock", "lfu"}) {
    Model m = model(policy);
    Artifact artifact(m);
    Folder other;
    Session whole;
    ASSERT_EQ(TRC_OK, whole.open(artifact, other / "s"));
    train(whole, m, 0, 100);
    uint64_t before = sum(whole, "misses");
    uint64_t held = sum(whole, "resident");
    train(whole, m, 100, 200);
    uint64_t after = sum(whole, "misses") - before;

    state = folder / policy;
    close(m, 0, 100);
    Half warm = half(m, TRC_OPEN_WARM), cold = half(m, 0);
    EXPECT_TRUE(warm.saidWarm && !warm.saidCold) << policy;
    EXPECT_EQ(warm.warmed, held) << policy;
    EXPECT_EQ(cold.warmed, 0u) << policy;
    // The clock goes on with other free slots, so it may choose others.
    if (std::string(policy) != "clock") {
      EXPECT_EQ(warm.misses, after) << policy;
    }
    EXPECT_LT(warm.misses, cold.misses) << policy;
    EXPECT_EQ(dumpAll(whole), warm.tables) << policy;
    EXPECT_EQ(dumpAll(whole), cold.tables) << policy;
  }
}

TEST_F(Warm, TakesTheHottestThatFit) {
  close(model("lfu", 40), 0, 100);
  Half full = half(model("lfu", 40), TRC_OPEN_WARM);
  Model small = model("lfu", 10), large = model("lfu", 90);
  Half warm = half(small, TRC_OPEN_WARM), cold = half(small, 0);
  EXPECT_EQ(warm.warmed, 2u * 10); // two groups
  EXPECT_LT(warm.misses, cold.misses);
  EXPECT_EQ(full.tables, warm.tables);
  Half more = half(large, TRC_OPEN_WARM);
  EXPECT_EQ(more.warmed, full.warmed);
  EXPECT_EQ(full.tables, more.tables);
  // Another policy gets the order; what the first one counted means nothing.
  Half lru = half(model("lru", 40), TRC_OPEN_WARM);
  EXPECT_EQ(lru.warmed, full.warmed);
  EXPECT_EQ(full.tables, lru.tables);
}

TEST_F(Warm, RowsThatWereNeverWrittenReadNothing) {
  Model m = model("lru", 200);
  Artifact artifact(m);
  Tables initial;
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    SplitMix random(5);
    Batch b = randomBatch(m, random, m.batch);
    trc_ticket t = 0;
    ASSERT_EQ(TRC_OK, s.submit(b, t));
    ASSERT_EQ(TRC_OK, s.forward(t));
    ASSERT_EQ(TRC_OK, s.release(t));
    initial = dumpAll(s);
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  }
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_TRAIN, TRC_OPEN_WARM));
  EXPECT_GT(sum(s, "warmed"), 0u);
  EXPECT_EQ(sum(s, "rows_read"), 0u);
  EXPECT_EQ(dumpAll(s), initial);
}

TEST_F(Warm, ReadersMayBeWarmToo) {
  Model m = model();
  close(m, 0, 50);
  std::string file = residentFile(state);
  std::string before = *trc::readFile(file);
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_EVAL, TRC_OPEN_WARM));
  EXPECT_GT(sum(s, "warmed"), 0u);
  ASSERT_EQ(TRC_OK, s.close());
  EXPECT_EQ(before, *trc::readFile(file));
}

TEST_F(Warm, WhatIsNotKnownStartsCold) {
  Model m = model();
  Artifact artifact(m);
  { // a new state
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_TRAIN, TRC_OPEN_WARM));
    EXPECT_TRUE(logged(s, "cold"));
    train(s, m, 0, 20);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), nullptr, 0, 0, nullptr));
    train(s, m, 20, 40);
    ASSERT_EQ(TRC_OK, s.close());
  }
  { // a checkpoint names none
    Session s;
    ASSERT_EQ(TRC_OK,
              s.open(artifact, state, TRC_EVAL, TRC_OPEN_WARM, "ckpt-20"));
    EXPECT_TRUE(logged(s, "cold: a checkpoint"));
    EXPECT_EQ(sum(s, "warmed"), 0u);
  }
  { // rows laid out anew
    Model other = m;
    other.paths = {"elsewhere.store"};
    Half h = half(other, TRC_OPEN_WARM, 40, 60);
    EXPECT_TRUE(h.saidCold);
    EXPECT_EQ(h.tables, half(m, TRC_OPEN_WARM, 40, 60).tables);
  }
  Session s;
  EXPECT_EQ(TRC_BAD_ARGUMENT,
            s.open(artifact, state, TRC_TRAIN, TRC_OPEN_WARM | TRC_OPEN_FRESH));
}

TEST_F(Warm, DamagedFilesStartCold) {
  Model m = model();
  close(m, 0, 100);
  std::string file = residentFile(state);
  std::string good = *trc::readFile(file);
  Half cold = half(m, 0);
  auto put = [&](const std::string &bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
  };
  auto expectCold = [&](const std::string &what) {
    Half h = half(m, TRC_OPEN_WARM);
    EXPECT_TRUE(h.saidCold && !h.saidWarm) << what;
    EXPECT_EQ(h.warmed, 0u) << what;
    EXPECT_EQ(h.misses, cold.misses) << what;
    EXPECT_EQ(h.tables, cold.tables) << what;
  };
  for (size_t at : {size_t(0), size_t(9), size_t(20), size_t(40), size_t(70),
                    good.size() / 2, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    put(bad);
    expectCold("byte " + std::to_string(at));
  }
  for (size_t bytes : {size_t(0), size_t(35), good.size() - 6}) {
    put(good.substr(0, bytes));
    expectCold(std::to_string(bytes) + " bytes");
  }
  // Whole, but of another close: of the same state, and of another one.
  put(good);
  std::string whole = folder / "whole";
  std::filesystem::copy(state, whole, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(state);
  close(m, 0, 100);
  file = residentFile(state);
  put(good);
  expectCold("another state's");
  std::filesystem::remove(file);
  expectCold("missing");
}

TEST_F(Warm, OneFileAtATimeAndNoneBesideACheckpoint) {
  Model m = model();
  close(m, 0, 20);
  std::string first = residentFile(state);
  close(m, 20, 40);
  EXPECT_FALSE(trc::pathExists(first));
  EXPECT_TRUE(trc::pathExists(residentFile(state)));
  std::string second = residentFile(state);
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_TRAIN, TRC_OPEN_WARM));
  train(s, m, 40, 45);
  ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), nullptr, 0, 0, nullptr));
  EXPECT_FALSE(trc::pathExists(second));
}
