//===- StateTest.cpp - Close, resume, checkpoint, kill --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run that stops and resumes equals one that does not, bit for bit, under any
// plan; a killed one is that of its last checkpoint; readers change no byte.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/FileUtil.h"
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace toy;
using trc::SplitMix;

namespace {

Model model(bool cached = true) {
  Model m;
  m.tables = {{"a", 300, 4, adagrad()},
              {"b", 50, 4, adagrad()},
              {"c", 40, 9, rowwiseAdagrad()}};
  m.features = {{"x", 0, "sum", 3}, {"y", 1, "mean", 2}, {"z", 2, "max", 2}};
  m.cached = {cached};
  m.retained = 10;
  return m;
}

using Tables = std::vector<std::vector<std::vector<float>>>;

Tables dumpAll(Session &s) {
  return {s.dump("a", 300, 4, {4}), s.dump("b", 50, 4, {4}),
          s.dump("c", 40, 9, {1})};
}

/// Batch `i` is the same in every run.
void train(Session &s, const Model &m, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    SplitMix random(7000 + static_cast<uint64_t>(i));
    Batch b = randomBatch(m, random, m.batch);
    trc_ticket t = 0;
    ASSERT_EQ(TRC_OK, s.submit(b, t)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.forward(t)) << s.error.message;
    auto grads =
        m.head.empty() ? gradientsFor(s) : std::vector<std::vector<float>>();
    ASSERT_EQ(TRC_OK, m.head.empty() ? s.backward(t, grads) : s.backwardHead(t))
        << s.error.message;
  }
}

/// Trains `end` steps from nothing, never stopping.
Tables unbroken(const Model &m, int end) {
  Folder folder;
  Artifact artifact(m);
  Session s;
  EXPECT_EQ(TRC_OK, s.open(artifact, folder / "s")) << s.error.message;
  train(s, m, 0, end);
  return dumpAll(s);
}

/// Every file below a folder, with its bytes.
std::map<std::string, std::string> bytesOf(const std::string &folder) {
  std::map<std::string, std::string> all;
  for (const auto &e : std::filesystem::recursive_directory_iterator(folder))
    if (e.is_regular_file()) {
      std::ifstream in(e.path(), std::ios::binary);
      all[e.path().string()] = std::string(std::istreambuf_iterator<char>(in),
                                           std::istreambuf_iterator<char>());
    }
  return all;
}

/// The files that differ; short, where bytes would fill the screen.
std::vector<std::string> changes(const std::map<std::string, std::string> &a,
                                 const std::map<std::string, std::string> &b) {
  std::vector<std::string> names;
  for (const auto &[name, bytes] : a)
    if (auto it = b.find(name); it == b.end() || it->second != bytes)
      names.push_back(name);
  for (const auto &[name, bytes] : b)
    if (!a.count(name))
      names.push_back(name);
  return names;
}

/// The index files of the first group that a checkpoint names.
std::vector<std::string> indexFiles(const std::string &checkpoint) {
  std::ifstream in(checkpoint + "/manifest.json");
  nlohmann::json j = nlohmann::json::parse(in);
  return j["groups"][0]["index"].get<std::vector<std::string>>();
}

class StateTest : public ::testing::Test {
protected:
  Folder folder;
  std::string state = folder / "state";
};

} // namespace

TEST_F(StateTest, CloseAndResume) {
  for (bool cached : {false, true}) {
    Model m = model(cached);
    Artifact artifact(m);
    std::string at = folder / (cached ? "c" : "m");
    for (int begin : {0, 5, 6, 12}) {
      int end = begin == 0 ? 5 : begin == 5 ? 6 : begin == 6 ? 12 : 20;
      Session s;
      ASSERT_EQ(TRC_OK, s.open(artifact, at)) << s.error.message;
      EXPECT_EQ(begin, s.info().step);
      EXPECT_EQ(begin * m.batch, s.info().samples);
      train(s, m, begin, end);
      ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
    }
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, at));
    EXPECT_EQ(unbroken(m, 20), dumpAll(s));
  }
}

TEST_F(StateTest, HeadAndLearningRateResume) {
  Model m = model();
  m.tables[2].dim = 4;
  m.head = "fm";
  Artifact artifact(m);
  float bias = 0;
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    ASSERT_EQ(TRC_OK, trc_set_lr(s.get(), 0.125, nullptr));
    train(s, m, 0, 4);
    bias = s.stats()["head"]["bias"];
    ASSERT_EQ(TRC_OK, s.close());
  }
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state));
  EXPECT_EQ(bias, s.stats()["head"]["bias"].get<float>());
  EXPECT_NE(0.0f, bias);
  EXPECT_EQ(0.125, s.stats()["lr_scale"].get<double>());
}

TEST_F(StateTest, AnotherPlanTakesTheStateOver) {
  // From memory to NVMe, to two files, to another cache, and back.
  std::vector<Model> plans(4, model(false));
  plans[1].cached = {true};
  plans[2].cached = {true, false, true};
  plans[2].paths = {"one.store", "two.store"};
  plans[2].lookahead = 5;
  plans[3].lookahead = 0;
  int step = 0;
  for (const Model &m : plans) {
    Artifact artifact(m);
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
    ASSERT_EQ(step, s.info().step);
    train(s, m, step, step + 4);
    step += 4;
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  }
  Artifact artifact(model(true));
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
  EXPECT_EQ(unbroken(model(false), step), dumpAll(s));
}

// Each layout has index files of its own: those of an older one stay as long as
// one of its roots does, however often the new one is opened.
TEST_F(StateTest, CheckpointsOfAnotherLayoutStayWhole) {
  Model before = model(), after = model();
  after.cached = {true, false, true};
  after.paths = {"other.store"};
  auto run = [&](const Model &m, int begin, int end, uint32_t keep) {
    Artifact artifact(m);
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
    ASSERT_EQ(begin, s.info().step);
    train(s, m, begin, end);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), nullptr, 0, keep, &s.error))
        << s.error.message;
    train(s, m, end, end + 1);
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  };
  run(before, 0, 4, 0);
  run(after, 5, 8, 0);
  run(after, 9, 10, 0);
  for (int step : {4, 8, 10}) {
    Artifact artifact(step == 4 ? before : after);
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_EVAL, 0,
                             ("ckpt-" + std::to_string(step)).c_str()))
        << s.error.message;
    EXPECT_EQ(unbroken(before, step), dumpAll(s));
  }
  // They go with the last root of their layout.
  run(after, 11, 12, 1);
  for (const std::string &name : trc::listFolder(state))
    EXPECT_NE(0u, name.rfind("index-0-", 0)) << name;
}

TEST_F(StateTest, CheckpointsAreKeptAndNamed) {
  Model m = model();
  Artifact artifact(m);
  Tables at4, at6;
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    for (int i = 0; i < 4; ++i) {
      train(s, m, 2 * i, 2 * i + 2);
      std::string blob = "blob " + std::to_string(2 * i + 2);
      ASSERT_EQ(TRC_OK,
                trc_checkpoint(s.get(), blob.data(), blob.size(), 3, &s.error))
          << s.error.message;
      if (i == 1)
        at4 = dumpAll(s);
      if (i == 2)
        at6 = dumpAll(s);
    }
    train(s, m, 8, 9);
    // Once more at the same step, over the one that is there.
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), "x", 1, 3, nullptr));
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), "yz", 2, 3, nullptr));
    ASSERT_EQ(TRC_OK, s.close());
  }
  EXPECT_EQ((std::vector<std::string>{"ckpt-6", "ckpt-8", "ckpt-9"}),
            trc::listFolder(state + "/checkpoints"));
  Session reader;
  ASSERT_EQ(TRC_OK, reader.open(artifact, state, TRC_EVAL, 0, "ckpt-6"))
      << reader.error.message;
  EXPECT_EQ(at6, dumpAll(reader));
  EXPECT_EQ(6, reader.info().step);
  char text[16] = {};
  uint64_t size = sizeof(text);
  ASSERT_EQ(TRC_OK, trc_get_blob(reader.get(), text, &size, nullptr));
  EXPECT_EQ("blob 6", std::string(text, size));
  ASSERT_EQ(TRC_OK, reader.close());
  Session s;
  EXPECT_EQ(TRC_NOT_FOUND, s.open(artifact, state, TRC_TRAIN, 0, "ckpt-4"));
  EXPECT_NE(nullptr, std::strstr(s.error.message, "ckpt-6, ckpt-8, ckpt-9"))
      << s.error.message;
  ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_TRAIN, 0, "ckpt-6"));
  train(s, m, 6, 10);
  EXPECT_EQ(unbroken(m, 10), dumpAll(s));
}

TEST_F(StateTest, ReadersChangeNoByte) {
  Model m = model();
  Artifact artifact(m);
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    train(s, m, 0, 6);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), nullptr, 0, 0, nullptr));
    train(s, m, 6, 9);
    ASSERT_EQ(TRC_OK, s.close());
  }
  auto before = bytesOf(state);
  Model other = m;
  other.lookahead = 4;
  other.cached = {false, true, true};
  // The closed state, a checkpoint, and the closed state under another plan.
  for (int kind = 0; kind < 3; ++kind) {
    Artifact used(kind == 2 ? other : m);
    Session s;
    ASSERT_EQ(TRC_OK,
              s.open(used, state, TRC_EVAL, 0, kind == 1 ? "ckpt-6" : nullptr))
        << s.error.message;
    EXPECT_EQ(unbroken(m, kind == 1 ? 6 : 9), dumpAll(s));
    for (int i = 0; i < 10; ++i) {
      SplitMix random(static_cast<uint64_t>(i));
      Batch b = randomBatch(m, random, m.batch);
      trc_ticket t = 0;
      ASSERT_EQ(TRC_OK, s.submit(b, t)) << s.error.message;
      ASSERT_EQ(TRC_OK, s.forward(t)) << s.error.message;
      EXPECT_EQ(TRC_BAD_ARGUMENT, s.backward(t, gradientsFor(s)));
      ASSERT_EQ(TRC_OK, s.release(t));
    }
    EXPECT_EQ(TRC_BAD_ARGUMENT,
              trc_checkpoint(s.get(), nullptr, 0, 0, nullptr));
    Session second; // readers share
    EXPECT_EQ(TRC_OK, second.open(used, state, TRC_SERVE));
    ASSERT_EQ(TRC_OK, s.close());
  }
  EXPECT_EQ(std::vector<std::string>(), changes(before, bytesOf(state)));
}

TEST_F(StateTest, OpeningToTrainAndLookingKeepsItClosed) {
  Model m = model();
  Artifact artifact(m);
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    train(s, m, 0, 3);
    ASSERT_EQ(TRC_OK, s.close());
  }
  auto before = bytesOf(state);
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    (void)dumpAll(s);
    ASSERT_EQ(TRC_OK, s.close());
  }
  // But for who opened it last.
  for (const std::string &name : changes(before, bytesOf(state)))
    EXPECT_TRUE(name == state + "/claims.json" ||
                name == state + "/toy.store" || name == state + "/dram.store")
        << name;
}

TEST_F(StateTest, OneTrainerAtATime) {
  Artifact artifact(model());
  Session first, second;
  ASSERT_EQ(TRC_OK, first.open(artifact, state));
  EXPECT_EQ(TRC_LOCKED, second.open(artifact, state));
  EXPECT_EQ(TRC_LOCKED, second.open(artifact, state, TRC_EVAL));
  EXPECT_NE(nullptr, std::strstr(second.error.message, state.c_str()));
  ASSERT_EQ(TRC_OK, first.close());
  EXPECT_EQ(TRC_OK, second.open(artifact, state)) << second.error.message;
}

TEST_F(StateTest, AnotherModelIsRefusedAndInitFromTakesItsRows) {
  Model m = model();
  Artifact artifact(m);
  Tables trained;
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    train(s, m, 0, 5);
    trained = dumpAll(s);
    ASSERT_EQ(TRC_OK, s.close());
  }
  // Table a grows, b changes its optimizer, c is gone, d is new; the seed too.
  Model n = m;
  n.name = "next";
  n.tables[0].rows = 400;
  n.tables[1].optimizer = adam();
  n.tables[2] = {"d", 30, 9, rowwiseAdagrad()};
  n.initKey = "99";
  Artifact next(n);
  auto before = bytesOf(state);
  Session s;
  EXPECT_EQ(TRC_MISMATCH, s.open(next, state));
  for (const char *part : {"'toy', not 'next'", "rows 300, not 400",
                           "optimizer adagrad, not adam", "init-from"})
    EXPECT_NE(nullptr, std::strstr(s.error.message, part)) << s.error.message;
  EXPECT_EQ(std::vector<std::string>(), changes(before, bytesOf(state)));
  std::string fresh = folder / "next";
  ASSERT_EQ(TRC_OK, s.open(next, fresh, TRC_TRAIN, 0, nullptr, state.c_str()))
      << s.error.message;
  EXPECT_EQ(0, s.info().step);
  auto a = s.dump("a", 400, 4, {4});
  a[0].resize(1200);
  a[1].resize(1200);
  EXPECT_EQ(trained[0], a); // also the rows that were never written
  auto b = s.dump("b", 50, 4, {4, 4});
  EXPECT_EQ(trained[1][0], b[0]);
  EXPECT_EQ(std::vector<float>(200, 0.0f), b[1]);
  ASSERT_FALSE(s.logs.empty());
  ASSERT_EQ(TRC_OK, s.close());
  EXPECT_EQ(std::vector<std::string>(), changes(before, bytesOf(state)));
  EXPECT_EQ(TRC_BAD_ARGUMENT,
            s.open(next, fresh, TRC_TRAIN, 0, nullptr, state.c_str()));
}

TEST_F(StateTest, FreshRemovesWhatWasThere) {
  Model m = model();
  Artifact artifact(m);
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    train(s, m, 0, 3);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), nullptr, 0, 0, nullptr));
    ASSERT_EQ(TRC_OK, s.close());
  }
  std::ofstream(state + "/mine.txt") << "keep";
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_TRAIN, TRC_OPEN_FRESH))
      << s.error.message;
  EXPECT_EQ(0, s.info().step);
  train(s, m, 0, 2);
  EXPECT_EQ(unbroken(m, 2), dumpAll(s));
  ASSERT_EQ(TRC_OK, s.close());
  EXPECT_TRUE(trc::pathExists(state + "/mine.txt"));
  EXPECT_TRUE(trc::listFolder(state + "/checkpoints").empty());
}

TEST_F(StateTest, MissingOrUnwritableFolders) {
  Artifact artifact(model());
  Session s;
  EXPECT_EQ(TRC_NOT_FOUND, s.open(artifact, state, TRC_EVAL));
  EXPECT_FALSE(trc::pathExists(state));
  std::ofstream(folder / "file") << "x";
  EXPECT_EQ(TRC_IO, s.open(artifact, folder / "file"));
  if (::geteuid() != 0) {
    std::filesystem::create_directory(folder / "ro");
    ::chmod((folder / "ro").c_str(), 0555);
    EXPECT_EQ(TRC_IO, s.open(artifact, (folder / "ro") + "/state"));
    EXPECT_NE(nullptr, std::strstr(s.error.message, "cannot create"));
  }
}

TEST_F(StateTest, DamageIsFound) {
  Model m = model();
  Artifact artifact(m);
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    train(s, m, 0, 3);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), nullptr, 0, 0, nullptr));
    train(s, m, 3, 6);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), nullptr, 0, 0, nullptr));
    ASSERT_EQ(TRC_OK, s.close());
  }
  auto flip = [](const std::string &path, std::streamoff at) {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    char c = static_cast<char>(f.get());
    f.seekp(at);
    f.put(static_cast<char>(c ^ 4));
  };
  std::string index =
      state + "/" + indexFiles(state + "/checkpoints/ckpt-6").back();
  flip(index, 200);
  Session s;
  EXPECT_EQ(TRC_CORRUPT, s.open(artifact, state, TRC_EVAL, 0, "ckpt-6"));
  EXPECT_NE(nullptr, std::strstr(s.error.message, index.c_str()))
      << s.error.message;
  flip(state + "/closed.json", 40);
  flip(state + "/checkpoints/ckpt-6/manifest.json", 40);
  // What is whole is still there.
  ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_EVAL)) << s.error.message;
  EXPECT_EQ(3, s.info().step);
  EXPECT_EQ(unbroken(m, 3), dumpAll(s));
  EXPECT_FALSE(s.logs.empty());
}

// The same run, with the same rows, at another moment: each file alone is
// whole, but not the one that a root names.
TEST_F(StateTest, FilesOfAnotherMomentAreRefused) {
  Model m = model();
  m.cached = {true, false};
  Artifact artifact(m);
  auto run = [&](const std::string &path, int begin, int end) {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, path)) << s.error.message;
    train(s, m, begin, end);
    ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), nullptr, 0, 0, nullptr));
    ASSERT_EQ(TRC_OK, s.close());
  };
  run(state, 0, 200);
  run(state, 200, 220);
  auto now = bytesOf(state);
  int swapped = 0;
  for (const std::string &late : indexFiles(state + "/checkpoints/ckpt-220"))
    for (const auto &[name, bytes] : now) {
      std::string path = state + "/" + late;
      if (name.find("/index-0-") == std::string::npos || name == path)
        continue;
      ++swapped;
      std::ofstream(path, std::ios::binary) << bytes;
      Session s;
      trc_status status = s.open(artifact, state, TRC_EVAL, 0, "ckpt-220");
      EXPECT_TRUE(status == TRC_CORRUPT || status == TRC_MISMATCH)
          << late << " as " << name << ": " << s.error.message;
      std::ofstream(path, std::ios::binary) << now[path];
    }
  EXPECT_GE(swapped, 1);
  Session s;
  EXPECT_EQ(TRC_OK, s.open(artifact, state, TRC_EVAL)) << s.error.message;
}

TEST_F(StateTest, FreshRemovesNothingWhereInitFromCannotBe) {
  Model m = model();
  Artifact artifact(m);
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    train(s, m, 0, 3);
    ASSERT_EQ(TRC_OK, s.close());
  }
  auto before = bytesOf(state);
  std::filesystem::create_directory(folder / "empty");
  for (std::string from :
       {folder / "none", folder / "empty", state, state + "/../state"}) {
    Session s;
    trc_status status = s.open(artifact, state, TRC_TRAIN, TRC_OPEN_FRESH,
                               nullptr, from.c_str());
    EXPECT_TRUE(status == TRC_NOT_FOUND || status == TRC_BAD_ARGUMENT)
        << from << ": " << s.error.message;
    EXPECT_EQ(std::vector<std::string>(), changes(before, bytesOf(state)));
  }
}

TEST_F(StateTest, ATierFileHasOneOwnerAtATime) {
  Model m = model();
  m.paths = {folder / "shared.store"};
  Artifact artifact(m);
  Session a, b;
  ASSERT_EQ(TRC_OK, a.open(artifact, state)) << a.error.message;
  EXPECT_EQ(TRC_LOCKED, b.open(artifact, folder / "other"));
  EXPECT_NE(nullptr, std::strstr(b.error.message, "shared.store"));
  train(a, m, 0, 3);
  EXPECT_EQ(unbroken(model(), 3), dumpAll(a));
  ASSERT_EQ(TRC_OK, a.close());
  // Two readers of one state share it.
  Session c, d;
  ASSERT_EQ(TRC_OK, c.open(artifact, state, TRC_EVAL)) << c.error.message;
  ASSERT_EQ(TRC_OK, d.open(artifact, state, TRC_EVAL)) << d.error.message;
}

#if !defined(__SANITIZE_THREAD__)
namespace {
/// Runs `body` in a child that then kills itself, at any moment it likes.
void inKilledChild(const std::function<void()> &body) {
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
} // namespace

TEST_F(StateTest, KilledBeforeACheckpointStartsFreshAndSaysSo) {
  Model m = model();
  Artifact artifact(m);
  inKilledChild([&] {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state));
    train(s, m, 0, 6);
    // Without its destructor.
    ::kill(::getpid(), SIGKILL);
  });
  Session s;
  EXPECT_EQ(TRC_NOT_FOUND, s.open(artifact, state, TRC_EVAL));
  ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
  EXPECT_EQ(0, s.info().step);
  ASSERT_FALSE(s.logs.empty());
  EXPECT_NE(std::string::npos, s.logs[0].find("no checkpoint")) << s.logs[0];
  train(s, m, 0, 4);
  EXPECT_EQ(unbroken(m, 4), dumpAll(s));
}

TEST_F(StateTest, KilledAfterACheckpointGoesBackToIt) {
  for (bool cached : {false, true}) {
    Model m = model(cached);
    Artifact artifact(m);
    std::string at = folder / (cached ? "c" : "m");
    for (int closed : {0, 1}) {
      inKilledChild([&] {
        Session s;
        ASSERT_EQ(TRC_OK, s.open(artifact, at));
        int step = static_cast<int>(s.info().step);
        train(s, m, step, step + 5);
        ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), "b", 1, 2, nullptr));
        train(s, m, step + 5, step + 9);
        ::kill(::getpid(), SIGKILL);
      });
      Session reader;
      int expect = closed ? 12 : 5;
      ASSERT_EQ(TRC_OK, reader.open(artifact, at, TRC_EVAL))
          << reader.error.message;
      EXPECT_EQ(expect, reader.info().step);
      EXPECT_EQ(unbroken(m, expect), dumpAll(reader));
      ASSERT_EQ(TRC_OK, reader.close());
      Session s;
      ASSERT_EQ(TRC_OK, s.open(artifact, at)) << s.error.message;
      EXPECT_EQ(expect, s.info().step);
      train(s, m, expect, expect + 2);
      EXPECT_EQ(unbroken(m, expect + 2), dumpAll(s));
      ASSERT_EQ(TRC_OK, s.close());
    }
  }
}

TEST_F(StateTest, KilledAfterResumingKeepsTheClosedState) {
  for (bool cached : {false, true}) {
    Model m = model(cached);
    Artifact artifact(m);
    std::string at = folder / (cached ? "c" : "m");
    for (int closed : {4, 8}) {
      {
        Session s;
        ASSERT_EQ(TRC_OK, s.open(artifact, at)) << s.error.message;
        train(s, m, closed - 4, closed);
        ASSERT_EQ(TRC_OK, s.close());
      }
      inKilledChild([&] {
        Session s;
        ASSERT_EQ(TRC_OK, s.open(artifact, at));
        train(s, m, closed, closed + 5); // and no checkpoint
        ::kill(::getpid(), SIGKILL);
      });
      Session reader;
      ASSERT_EQ(TRC_OK, reader.open(artifact, at, TRC_EVAL))
          << reader.error.message;
      EXPECT_EQ(closed, reader.info().step);
      EXPECT_EQ(unbroken(m, closed), dumpAll(reader));
    }
    // Nothing was copied to keep it.
    EXPECT_TRUE(trc::listFolder(at + "/checkpoints").empty());
  }
}

TEST_F(StateTest, KilledAtAnyInstant) {
  // The parent kills the child while it trains, checkpoints, closes and opens.
  Model m = model();
  m.spareSlots = 5;
  Artifact artifact(m);
  for (int round = 0; round < 12; ++round) {
    int64_t before = 0;
    for (const std::string &name : trc::listFolder(state + "/checkpoints"))
      if (name.rfind("ckpt-", 0) == 0)
        before = std::max<int64_t>(before, std::atoll(name.c_str() + 5));
    pid_t child = ::fork();
    if (child == 0) {
      while (true) {
        Session s;
        if (s.open(artifact, state) != TRC_OK)
          ::_exit(3);
        for (int i = 0; i < 3; ++i) {
          int step = static_cast<int>(s.info().step);
          train(s, m, step, step + 2);
          if (trc_checkpoint(s.get(), nullptr, 0, 2, nullptr) != TRC_OK)
            ::_exit(4);
        }
        if (s.close() != TRC_OK)
          ::_exit(5);
      }
    }
    ::usleep(20000 + 17000 * static_cast<useconds_t>(round));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    Session reader;
    trc_status opened = reader.open(artifact, state, TRC_EVAL);
    if (opened == TRC_NOT_FOUND && before == 0)
      continue; // killed before its first checkpoint
    ASSERT_EQ(TRC_OK, opened) << reader.error.message;
    int64_t step = reader.info().step;
    EXPECT_GE(step, before);
    EXPECT_EQ(0, step % 2);
    EXPECT_EQ(unbroken(m, static_cast<int>(step)), dumpAll(reader))
        << "step " << step;
  }
}

TEST_F(StateTest, FullDisk) {
  // A limit on the size of files stands for the full device.
  Model m = model(false);
  Artifact artifact(m);
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    Session s;
    bool ok = s.open(artifact, state) == TRC_OK;
    train(s, m, 0, 4);
    ok = ok && trc_checkpoint(s.get(), nullptr, 0, 0, nullptr) == TRC_OK;
    train(s, m, 4, 6);
    rlimit limit = {4096, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    // Rows that cannot be written end the session; what is there stays.
    ok = ok &&
         trc_checkpoint(s.get(), nullptr, 0, 1, &s.error) == TRC_NO_SPACE &&
         std::strstr(s.error.message, "dram.store");
    ok = ok && trc_set_lr(s.get(), 1, &s.error) == TRC_POISONED &&
         s.close() == TRC_POISONED;
    ::_exit(ok && !::testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  ASSERT_EQ(0, status);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
  EXPECT_EQ(4, s.info().step);
  EXPECT_EQ(unbroken(m, 4), dumpAll(s));
}
#endif
