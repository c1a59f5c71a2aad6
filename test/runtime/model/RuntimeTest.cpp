//===- RuntimeTest.cpp - The main over the real runtime -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// verify, train, resume, eval and bench with the executor, caches and stores
// of the runtime and hand-made plans: tables in memory and on NVMe, caches
// smaller than a batch, lookahead 0 to 4, all poolings and optimizers.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/ModelMain.h"
#include "test/runtime/exec/ToyModel.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace trc;
namespace fs = std::filesystem;

namespace {

struct Outcome {
  int code;
  std::string out, err;
};

Outcome runMain(const toy::json &plan, std::vector<std::string> args) {
  toy::Artifact artifact(plan);
  args.insert(args.begin(), "model");
  std::vector<char *> argv;
  for (std::string &s : args)
    argv.push_back(s.data());
  argv.push_back(nullptr);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome o;
  o.code = trc_model_main(static_cast<int>(args.size()), argv.data(),
                          artifact.get());
  o.out = ::testing::internal::GetCapturedStdout();
  o.err = ::testing::internal::GetCapturedStderr();
  return o;
}

toy::Model randomModel(uint64_t seed) {
  SplitMix r(seed);
  toy::Model m;
  m.name = "toy" + std::to_string(seed);
  m.batch = static_cast<int64_t>(1 + r.below(24));
  m.lookahead = static_cast<int64_t>(r.below(5));
  m.head = std::vector<std::string>{"", "fm", "logistic"}[r.below(3)];
  m.dropBadIds = m.head.empty() && r.below(3) == 0;
  m.cached = {r.below(2) == 0, r.below(2) == 0};
  m.retained = static_cast<int64_t>(r.below(8));
  const int64_t dims[] = {1, 2, 9, 33};
  int64_t headDim = dims[r.below(4)];
  int tables = static_cast<int>(1 + r.below(3));
  for (int t = 0; t < tables; ++t) {
    toy::json optimizers[] = {toy::sgd(0.1, r.below(2) ? 0.01 : 0),
                              toy::adagrad(), toy::rowwiseAdagrad(),
                              toy::adam()};
    m.tables.push_back({"t" + std::to_string(t),
                        static_cast<int64_t>(1 + r.below(200)),
                        m.head == "fm" ? headDim : dims[r.below(4)],
                        optimizers[r.below(4)], r.below(3) == 0});
  }
  const char *poolings[] = {"sum",   "mean", "weighted_mean",
                            "sqrtn", "max",  "none"};
  int features = tables + static_cast<int>(r.below(3)); // every table is read
  for (int f = 0; f < features; ++f) {
    toy::Feature x;
    x.name = "f" + std::to_string(f);
    x.table = f < tables
                  ? f
                  : static_cast<int>(r.below(static_cast<uint64_t>(tables)));
    x.pooling = poolings[r.below(m.head.empty() ? 6 : 5)];
    x.maxIds = static_cast<int64_t>(1 + r.below(5));
    x.weighted = x.pooling != "max" && x.pooling != "none" && r.below(2);
    x.overflow = r.below(3) ? "error" : r.below(2) ? "keep_first" : "keep_last";
    x.dedup = r.below(4) == 0;
    m.features.push_back(x);
  }
  return m;
}

/// Two features, a head and a data file in the current folder.
toy::json clicks(int rows) {
  toy::Model m;
  m.name = "clicks";
  m.head = "fm";
  m.batch = 32;
  m.tables = {{"user", 300, 4, toy::adam()},
              {"item", 900, 4, toy::rowwiseAdagrad()}};
  m.features = {{"user", 0}, {"item", 1, "mean", 3}};
  m.cached = {false, true};
  m.retained = 5;
  toy::json plan = toy::makePlan(m);
  plan["head"]["label"] = "click";
  plan["data"] = {{"paths", {"clicks.tsv"}},
                  {"list_sep", ","},
                  {"eval", {{"last", {{"percent", 20}}}}}};
  plan["train"] = {{"eval_every", 10},
                   {"metrics", {"auc"}},
                   {"checkpoint", {{"every_steps", 7}, {"keep", 2}}},
                   {"lr_schedule", {{"warmup_steps", 9}}}};
  std::ofstream out("clicks.tsv");
  out << "user\titem\tclick\n";
  SplitMix r(2);
  for (int i = 0; i < rows; ++i) {
    uint64_t item = r.below(900);
    out << r.below(300) << '\t' << item << ',' << r.below(900) << '\t'
        << (r.below(10) < (item % 2 ? 8 : 2)) << '\n';
  }
  return plan;
}

class RealRuntime : public ::testing::Test {
protected:
  void SetUp() override {
    previous = fs::current_path();
    fs::current_path(folder.path());
  }
  void TearDown() override { fs::current_path(previous); }
  toy::Folder folder;
  fs::path previous;
};

} // namespace

TEST_F(RealRuntime, RandomModelsEqualTheReference) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    toy::json plan = toy::makePlan(randomModel(seed));
    Outcome o = runMain(
        plan, {"verify", "--synthetic", std::to_string(seed), "--steps", "20"});
    ASSERT_EQ(o.code, 0) << "seed " << seed << "\n" << o.out << o.err;
    ASSERT_NE(o.out.find("verify: 20 steps, "), std::string::npos) << o.out;
  }
  EXPECT_TRUE(fs::is_empty(folder.path())); // no scratch left behind
}

TEST_F(RealRuntime, TrainsResumesAndEvaluates) {
  toy::json plan = clicks(2000);
  Outcome whole =
      runMain(plan, {"train", "--state", "a", "--steps", "40", "--json"});
  ASSERT_EQ(whole.code, 0) << whole.out << whole.err;
  ASSERT_EQ(runMain(plan, {"train", "--state", "b", "--steps", "13"}).code, 0);
  Outcome rest = runMain(plan, {"train", "--state", "b", "--steps", "27"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.out.find("at step 13, row 416"), std::string::npos)
      << rest.out;
  Outcome a = runMain(plan, {"predict", "--state", "a"});
  Outcome b = runMain(plan, {"predict", "--state", "b"});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.out, b.out);
  Outcome eval = runMain(plan, {"eval", "--state", "a", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  toy::json line = toy::json::parse(eval.out.substr(eval.out.rfind("{\"")));
  EXPECT_EQ(line["samples"], 400);
  EXPECT_EQ(line["step"], 40);
  Outcome from =
      runMain(plan, {"eval", "--state", "a", "--from", "ckpt-35", "--json"});
  ASSERT_EQ(from.code, 0) << from.err;
  EXPECT_NE(from.out.find("\"step\":35"), std::string::npos) << from.out;
}

TEST_F(RealRuntime, VerifiesData) {
  toy::json plan = clicks(1000);
  Outcome o = runMain(plan, {"verify", "--steps", "25", "--json"});
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_NE(o.out.find("\"source\":\"data\""), std::string::npos);
}

TEST_F(RealRuntime, ABadIdNamesItsLineAndKeepsTheState) {
  toy::json plan = clicks(1000);
  ASSERT_EQ(runMain(plan, {"train", "--steps", "5"}).code, 0);
  std::string before = runMain(plan, {"predict"}).out;
  std::ofstream bad("bad.tsv");
  bad << "user\titem\tclick\n";
  for (int i = 0; i < 200; ++i)
    bad << (i == 180 ? 300 : 1) << "\t1\t0\n";
  bad.close();
  Outcome o = runMain(
      plan, {"train", "--data", "bad.tsv", "--set", "data.eval.last=0"});
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.err.find("bad.tsv:182"), std::string::npos) << o.err;
  EXPECT_EQ(runMain(plan, {"predict"}).out, before);
}

TEST_F(RealRuntime, BenchesAndInforms) {
  toy::json plan = clicks(100);
  Outcome o = runMain(plan, {"bench", "--steps", "30"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("rows/s"), std::string::npos);
  EXPECT_NE(o.out.find("dram "), std::string::npos) << o.out; // the tiers
  ASSERT_EQ(runMain(plan, {"train", "--steps", "2"}).code, 0);
  o = runMain(plan, {"info"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("step 2, 64 samples"), std::string::npos) << o.out;
}
