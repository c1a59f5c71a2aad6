//===- MainTest.cpp - The executable's main over a test double
//-------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Command lines as a user types them, against the C ABI of FakeRuntime.
//
//===----------------------------------------------------------------------===//
#include "FakeRuntime.h"
#include "runtime/core/Hash.h"
#include "runtime/model/Config.h"
#include "runtime/model/ModelMain.h"
#include "test/runtime/reference/ReferencePlans.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace trc;
using namespace trc::fake;
using nlohmann::json;
using trc::model::ModelConfig;
namespace fs = std::filesystem;

namespace {

struct Outcome {
  int code = 0;
  std::string out, err;
  std::vector<json> lines() const {
    std::vector<json> v;
    std::istringstream in(out);
    for (std::string line; std::getline(in, line);)
      v.push_back(json::parse(line));
    return v;
  }
  json event(const std::string &name) const {
    json found;
    for (const json &line : lines())
      if (line.at("event") == name)
        found = line;
    return found;
  }
};

class ModelMainTest : public ::testing::Test {
protected:
  void SetUp() override {
    control() = Control();
    forgetStates();
    folder = fs::temp_directory_path() /
             ("terrace-main-" + std::to_string(::getpid()));
    fs::remove_all(folder);
    fs::create_directories(folder);
    previous = fs::current_path();
    fs::current_path(folder);
    writeData(1000);
    plan = headPlan();
  }
  void TearDown() override {
    fs::current_path(previous);
    fs::remove_all(folder);
  }

  static json headPlan() {
    json adagrad = {{"kind", "adagrad"}, {"lr", 0.1}, {"eps", 1e-8}};
    json init = {{"kind", "uniform"}, {"low", -0.01}, {"high", 0.01}};
    json p = reference::makePlan(
        {reference::tablePlan("user", 50, 4, adagrad, init),
         reference::tablePlan("item", 100, 4, adagrad, init)},
        {reference::featurePlan("user", 0, "sum", 1),
         reference::featurePlan("item", 1, "mean", 3)},
        "fm", 32);
    finishPlan(p);
    p["head"]["label"] = "click";
    p["data"] = {{"paths", {"clicks.tsv"}},
                 {"list_sep", ","},
                 {"on_bad_row", "error"},
                 {"eval", {{"last", {{"percent", 10}}}}}};
    p["train"] = {{"epochs", 1},
                  {"eval_every", 10},
                  {"metrics", {"auc", "ne"}},
                  {"checkpoint", {{"every_steps", 12}, {"keep", 2}}},
                  {"lr_schedule", {{"warmup_steps", 4}}}};
    return p;
  }
  static void finishPlan(json &p) {
    p["model"] = "clicks";
    p["lookahead"] = 2;
    p["hash"] = "00ff";
    p["terrace"] = "0.1.0";
    p["groups"] = json::array();
    for (json &f : p["features"])
      f["gather"] = "gather_pool_4_sum";
  }
  static json libraryPlan() {
    json adam = {{"kind", "adam"}, {"lr", 0.01},     {"eps", 1e-8},
                 {"beta1", 0.9},   {"beta2", 0.999}, {"weight_decay", 0.01}};
    json rowwise = {{"kind", "rowwise_adagrad"}, {"lr", 0.1}, {"eps", 1e-8}};
    json init = {{"kind", "normal"}, {"mean", 0}, {"std", 0.1}};
    json p = reference::makePlan(
        {reference::tablePlan("a", 40, 5, adam, init),
         reference::tablePlan("b", 1000, 3, rowwise, init, "hash")},
        {reference::featurePlan("f0", 0, "max", 4),
         reference::featurePlan("f1", 0, "none", 3, false, "keep_last"),
         reference::featurePlan("f2", 1, "weighted_mean", 5, true),
         reference::featurePlan("f3", 1, "sqrtn", 5, true, "keep_first"),
         reference::featurePlan("f4", 0, "sum", 6, true)},
        "", 16, {2, 3});
    p["features"][2]["dedup"] = p["features"][3]["dedup"] = 0;
    p["on_bad_id"] = "drop";
    finishPlan(p);
    return p;
  }

  void writeData(int rows) {
    std::ofstream out(folder / "clicks.tsv");
    out << "user\titem\tclick\n";
    SplitMix r(3);
    for (int i = 0; i < rows; ++i) {
      uint64_t user = r.below(50), item = r.below(100);
      out << user << '\t' << item << ',' << r.below(100) << '\t'
          << (r.below(10) < (item % 2 ? 8 : 2)) << '\n';
    }
  }

  Outcome run(std::vector<std::string> args) {
    std::string text = plan.dump();
    trc_artifact a = {TRC_ARTIFACT_MAGIC,
                      TRC_ARTIFACT_ABI,
                      text.size(),
                      text.c_str(),
                      0,
                      nullptr};
    args.insert(args.begin(), "model");
    std::vector<char *> argv;
    for (std::string &s : args)
      argv.push_back(s.data());
    argv.push_back(nullptr);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Outcome o;
    o.code = trc_model_main(static_cast<int>(args.size()), argv.data(), &a);
    o.out = ::testing::internal::GetCapturedStdout();
    o.err = ::testing::internal::GetCapturedStderr();
    return o;
  }

  fs::path folder, previous;
  json plan;
};

TEST_F(ModelMainTest, NumbersHaveTheSpecsLimits) {
  struct {
    const char *key;
    std::vector<const char *> bad, good;
  } keys[] = {
      {"train.epochs", {"0", "-1", "1.5", "1073741825", "0x10"}, {"1", "+2"}},
      {"train.eval_every", {"-1", "101%", "-5%", "nan%", "5x"}, {"0", "5%"}},
      {"train.metrics", {"recall", "[auc, auc]"}, {"[auc, ne]"}},
      {"train.checkpoint.every",
       {"0", "0s", "0.3s", "99999999999999999999", "1e3", "-5", "5m", "",
        "99999999999999w"},
       {"1", "30s", "1.5h", "2w"}},
      {"train.checkpoint.keep", {"0", "-1", "1000001"}, {"1", "1000000"}},
      {"train.lr_schedule.warmup_steps", {"-1", "281474976710657"}, {"0"}},
      {"train.lr_schedule.decay_power", {"-1", "101", "nan", "inf"}, {"2.5"}},
      {"train.lr_schedule.end_scale", {"-0.1", "1.1", "nan"}, {"0", "1"}},
      {"train.stop.auc", {"1.5", "-1", "nan", "inf", "1e999"}, {"1"}},
      {"train.stop.logloss", {"-1", "inf"}, {"0.001"}},
      {"data.path", {"", "[]"}, {"clicks.tsv"}},
      {"data.list_sep", {"", ",,", "1", "-", "\t"}, {"|"}},
      {"data.on_bad_row", {"", "drop"}, {"skip"}},
      {"data.shuffle.buffer", {"-1", "1099511627777"}, {"0", "10"}},
      {"data.shuffle.seed",
       {"-1", "18446744073709551616"},
       {"18446744073709551615"}},
      {"data.eval.last", {"100%", "-1", "1%%"}, {"0", "10%", "50"}},
  };
  Result<ModelConfig> config = [&] {
    std::string text = plan.dump();
    trc_artifact a = {TRC_ARTIFACT_MAGIC,
                      TRC_ARTIFACT_ABI,
                      text.size(),
                      text.c_str(),
                      0,
                      nullptr};
    return ModelConfig::parse(a);
  }();
  ASSERT_TRUE(config.ok());
  for (const auto &k : keys) {
    for (const char *value : k.bad) {
      Status s = config->set(std::string(k.key) + "=" + value);
      EXPECT_EQ(s.code(), TRC_BAD_ARGUMENT) << k.key << "=" << value;
      EXPECT_NE(s.message().find(k.key), std::string::npos) << s.message();
      EXPECT_LT(s.message().size(), 160u) << s.message();
    }
    for (const char *value : k.good)
      EXPECT_TRUE(config->set(std::string(k.key) + "=" + value).ok())
          << k.key << "=" << value;
  }
}

/// As in a spec: a decay that never comes is a mistake.
TEST_F(ModelMainTest, DecayNeedsItsSteps) {
  for (const char *key : {"decay_start=5", "decay_power=2", "end_scale=0.5"}) {
    std::string set = std::string("train.lr_schedule.") + key;
    Outcome o = run({"verify", "--steps", "1", "--set", set});
    EXPECT_NE(o.code, 0) << key;
    EXPECT_NE(o.err.find("decay_steps; set that, too"), std::string::npos)
        << o.err;
    o = run({"verify", "--steps", "1", "--set", set, "--set",
             "train.lr_schedule.decay_steps=9"});
    EXPECT_EQ(o.err.find("decay_steps"), std::string::npos) << o.err;
  }
}

TEST_F(ModelMainTest, NumbersOfOptionsHaveLimits) {
  for (const char *verb : {"train", "verify", "bench"})
    for (const char *bad : {"-1", "99999999999999999999", "1.5", "", "x",
                            "281474976710657", "nan"}) {
      Outcome o = run({verb, "--steps", bad});
      EXPECT_EQ(o.code, 2) << verb << " --steps " << bad;
      EXPECT_LT(o.err.size(), 160u) << o.err;
      EXPECT_NE(o.err.find("--steps"), std::string::npos) << o.err;
    }
  EXPECT_EQ(run({"train", "--epochs", "0"}).code, 2);
  EXPECT_EQ(run({"train", "--threads", "1025"}).code, 2);
  EXPECT_EQ(run({"bench", "--seed", "-1"}).code, 2);
  EXPECT_EQ(run({"train", "--state", ""}).code, 2);
  // As many as there are, and no overflow on the way.
  Outcome o = run({"train", "--steps", "281474976710656"});
  EXPECT_EQ(o.code, 0) << o.err;
}

} // namespace

TEST_F(ModelMainTest, TrainsEvaluatesAndReports) {
  Outcome o = run({"train", "--json"});
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  json end = o.event("end");
  EXPECT_EQ(end["step"], 29); // 900 rows of 1000, 32 a step
  EXPECT_EQ(end["progressive"]["samples"], 900);
  EXPECT_EQ(end["held_out"]["samples"], 100);
  EXPECT_GT(end["held_out"]["auc"], 0.6);
  EXPECT_TRUE(end["held_out"].contains("ne"));
  EXPECT_FALSE(end["held_out"].contains("logloss")); // not asked for
  EXPECT_EQ(control().checkpoints, (std::vector<int64_t>{12, 24}));
  int evals = 0;
  for (const json &line : o.lines())
    evals += line["event"] == "eval";
  EXPECT_EQ(evals, 3); // 10, 20, and the end
  ASSERT_EQ(control().lrScales.size(), 29u);
  EXPECT_EQ(control().lrScales[0], 0.25);
  EXPECT_EQ(control().lrScales[3], 1.0);
}

// The steps are not lost with it, and the next one may work out.
TEST_F(ModelMainTest, TrainingOutlivesAFailedCheckpoint) {
  control().failCheckpoints = true;
  Outcome o = run({"train", "--json"});
  control().failCheckpoints = false;
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(o.event("end")["step"], 29);
  EXPECT_EQ(control().checkpoints, (std::vector<int64_t>{12, 24}));
  EXPECT_NE(o.err.find("the checkpoint of step 12 failed: cannot write "
                       "'index'"),
            std::string::npos)
      << o.err;
  EXPECT_EQ(o.out.find("\"event\":\"checkpoint\""), std::string::npos);
}

// A disk that is full for a moment at the very end.
TEST_F(ModelMainTest, ACloseThatFindsNoSpaceIsTriedAgain) {
  control().failCloses = 1;
  Outcome o = run({"train", "--json"});
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(control().failCloses, 0);
  EXPECT_NE(o.err.find("the disk is full; trying again in 1 s"),
            std::string::npos)
      << o.err;
  EXPECT_EQ(o.event("end")["step"], 29);
}

TEST_F(ModelMainTest, StoppedAndResumedEqualsInOneGo) {
  ASSERT_EQ(run({"train", "--state", "a", "--steps", "20"}).code, 0);
  Outcome whole = run({"predict", "--state", "a"});
  ASSERT_EQ(run({"train", "--state", "b", "--steps", "7"}).code, 0);
  ASSERT_EQ(run({"train", "--state", "b", "--steps", "13"}).code, 0);
  Outcome parts = run({"predict", "--state", "b"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(std::count(whole.out.begin(), whole.out.end(), '\n'), 1000);
  EXPECT_EQ(whole.out, parts.out);
  ASSERT_EQ(run({"train", "--state", "b", "--fresh", "--steps", "7"}).code, 0);
  EXPECT_NE(run({"predict", "--state", "b"}).out, whole.out);
}

TEST_F(ModelMainTest, ResumesInTheMiddleOfAnEpochWithShuffle) {
  std::vector<std::string> shuffle = {"--set", "data.shuffle.buffer=100",
                                      "--epochs", "2"};
  auto train = [&](const char *state, const char *steps) {
    std::vector<std::string> args = {"train", "--state", state, "--steps",
                                     steps};
    args.insert(args.end(), shuffle.begin(), shuffle.end());
    return run(args);
  };
  ASSERT_EQ(train("a", "45").code, 0);
  ASSERT_EQ(train("b", "33").code, 0);
  ASSERT_EQ(train("b", "12").code, 0);
  EXPECT_EQ(run({"predict", "--state", "a"}).out,
            run({"predict", "--state", "b"}).out);
}

TEST_F(ModelMainTest, SeenDataAreSaidSo) {
  ASSERT_EQ(run({"train"}).code, 0);
  Outcome o = run({"train"});
  EXPECT_EQ(o.code, 0);
  EXPECT_NE(o.err.find("has seen all of the data"), std::string::npos) << o.err;
}

TEST_F(ModelMainTest, EvalMeasuresTheHeldOutPart) {
  ASSERT_EQ(run({"train"}).code, 0);
  int64_t released = control().releases;
  Outcome o = run({"eval", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.event("eval")["samples"], 100);
  EXPECT_EQ(control().releases - released, 4); // batches of 32
  EXPECT_EQ(run({"eval", "--state", "nowhere"}).code, 1);
}

TEST_F(ModelMainTest, PredictWritesAFileWhenComplete) {
  ASSERT_EQ(run({"train"}).code, 0);
  ASSERT_EQ(run({"predict", "--out", "p.txt"}).code, 0);
  std::ifstream in("p.txt");
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    float p = std::stof(line);
    EXPECT_TRUE(p >= 0 && p <= 1);
  }
  EXPECT_EQ(lines, 1000);
  EXPECT_FALSE(fs::exists("p.txt.part"));
}

TEST_F(ModelMainTest, SetTakesRunTimeKeysOnly) {
  Outcome o = run({"train", "--set", "batch.size=8"});
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.err.find("batch.size"), std::string::npos);
  EXPECT_NE(o.err.find("compiled in"), std::string::npos);
  EXPECT_EQ(run({"train", "--set", "train.epoch=1"}).code, 1);
  EXPECT_NE(run({"train", "--set", "epochs=2"}).err.find("'train.epochs'"),
            std::string::npos);
  o = run({"trian"});
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("'trian' is not a verb"), std::string::npos) << o.err;
  EXPECT_EQ(run({"train", "--set", "train.epochs=zero"}).code, 1);
  o = run({"train", "--json", "--set", "train.eval_every=0", "--set",
           "data.eval.last=40%", "--set", "train.metrics=[logloss]"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.event("end")["held_out"]["samples"], 400);
  EXPECT_TRUE(o.event("end")["held_out"].contains("logloss"));
  EXPECT_FALSE(o.event("end")["held_out"].contains("auc"));
}

TEST_F(ModelMainTest, WarnsOfKeysWithoutEffect) {
  Outcome o = run({"train", "--steps", "1", "--set", "train.stop.auc=0.9",
                   "--set", "train.eval_every=5", "--set", "data.eval.last=0"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.err.find("train.eval_every has no effect"), std::string::npos);
  EXPECT_NE(o.err.find("train.stop has no effect: data.eval"),
            std::string::npos);
}

TEST_F(ModelMainTest, StopsAtATarget) {
  Outcome o = run({"train", "--json", "--set", "train.stop.auc=0.1"});
  ASSERT_EQ(o.code, 0);
  EXPECT_EQ(o.event("end")["step"], 10); // the first evaluation
  EXPECT_EQ(o.event("stop")["metric"], "auc");
}

TEST_F(ModelMainTest, BadIdsNameFileAndLine) {
  std::ofstream("clicks.tsv", std::ios::app) << "50\t1\t0\n";
  Outcome o = run({"train", "--set", "data.eval.last=0"});
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.err.find("clicks.tsv:1002"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("'user'"), std::string::npos) << o.err;
}

TEST_F(ModelMainTest, BadDataLeaveNoState) {
  std::ofstream("other.tsv") << "a\tb\n1\t2\n";
  Outcome o = run({"train", "--data", "other.tsv"});
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.err.find("the columns are: a, b"), std::string::npos) << o.err;
  EXPECT_FALSE(fs::exists("clicks.state"));
  EXPECT_EQ(run({"train", "--data", "nowhere.tsv"}).code, 1);
  EXPECT_FALSE(fs::exists("clicks.state"));
}

TEST_F(ModelMainTest, UsageErrorsExitWithTwo) {
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"fly"}).code, 2);
  EXPECT_EQ(run({"train", "--stepz", "3"}).code, 2);
  EXPECT_EQ(run({"train", "--fresh", "--from", "ckpt-1"}).code, 2);
  EXPECT_EQ(run({"--help"}).code, 0);
}

TEST_F(ModelMainTest, SignalFinishesTheStepAndCloses) {
  pid_t child = ::fork(); // the signal stays noted for the process's life
  ASSERT_GE(child, 0);
  if (child == 0) {
    control().raiseAtStep = 5;
    Outcome o = run({"train", "--json"});
    bool good = o.code == 130 && o.event("end")["step"] == 5 &&
                o.event("end")["signal"] == SIGINT;
    ::_exit(good ? 42 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(ModelMainTest, VerifyAgreesWithItself) {
  Outcome o = run({"verify", "--json"});
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(o.event("verify")["source"], "data");
  o = run({"verify", "--synthetic", "5", "--steps", "30"});
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_NE(o.out.find("verify: 30 steps, "), std::string::npos) << o.out;
  plan = libraryPlan();
  o = run({"verify", "--steps", "30", "--json"});
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(o.event("verify")["source"], "synthetic");
  EXPECT_GT(o.event("verify")["rows"], 100);
  for (const auto &entry : fs::directory_iterator(folder))
    EXPECT_EQ(entry.path().filename(), "clicks.tsv"); // no scratch left
}

TEST_F(ModelMainTest, VerifyFindsASingleBit) {
  struct Case {
    Fault fault;
    const char *where;
    bool library;
  };
  for (const Case &c :
       {Case{Fault::Output, "step 3, prediction, row 31", false},
        Case{Fault::Output, "step 3, output of feature 'f4'", true},
        Case{Fault::Weight, "table 'user', row", false},
        Case{Fault::State, "optimizer state 0", false},
        Case{Fault::State, "table 'a', row 0, optimizer state 0", true},
        Case{Fault::UntouchedRow, "table 'b'", true},
        Case{Fault::Bias, "the head's bias", false}}) {
    plan = c.library ? libraryPlan() : headPlan();
    control() = Control();
    control().fault = c.fault;
    Outcome o = run({"verify", "--synthetic", "7"});
    EXPECT_EQ(o.code, 1) << c.where;
    EXPECT_NE(o.out.find(c.where), std::string::npos) << o.out << o.err;
    EXPECT_NE(o.out.find("0x"), std::string::npos);
  }
}

TEST_F(ModelMainTest, LibrariesDoNotTrainAlone) {
  plan = libraryPlan();
  Outcome o = run({"train"});
  EXPECT_EQ(o.code, 1);
  EXPECT_NE(o.err.find("no head"), std::string::npos);
  EXPECT_EQ(run({"bench", "--steps", "5"}).code, 0);
  EXPECT_EQ(run({"info"}).code, 0);
}

TEST_F(ModelMainTest, InfoReadsTheState) {
  EXPECT_EQ(run({"info", "--json"}).event("info")["state_exists"], false);
  ASSERT_EQ(run({"train", "--steps", "4"}).code, 0);
  json info = run({"info", "--json"}).event("info");
  EXPECT_EQ(info["step"], 4);
  EXPECT_EQ(info["tables"], 2);
  EXPECT_EQ(info["parameters"], 600);
}
