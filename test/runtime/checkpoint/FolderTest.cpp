//===- FolderTest.cpp - What may be wrong with a state's folder -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that are no files, files that are missing, folders that were copied and
// imports that did not come to their end: each is an error that says what to
// do, at once, and nothing is lost by it.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/FileUtil.h"
#include "runtime/inspect/Portable.h"
#include "runtime/inspect/Roots.h"
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace toy;
using trc::SplitMix;
namespace fs = std::filesystem;

namespace {

Model model() {
  Model m;
  m.tables = {{"a", 300, 4, adagrad()}, {"b", 60, 9, adagrad()}};
  m.features = {{"x", 0, "sum", 3}, {"y", 1, "sum", 2}};
  m.cached = {true, false};
  m.retained = 10;
  return m;
}

using Tables = std::vector<std::vector<std::vector<float>>>;

Tables dumpAll(Session &s) {
  return {s.dump("a", 300, 4, {4}), s.dump("b", 60, 9, {9})};
}

void train(Session &s, const Model &m, int steps) {
  for (int i = 0; i < steps; ++i) {
    SplitMix random(900 + static_cast<uint64_t>(s.info().step));
    Batch b = randomBatch(m, random, m.batch);
    trc_ticket t = 0;
    ASSERT_EQ(TRC_OK, s.submit(b, t)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.forward(t)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.backward(t, gradientsFor(s))) << s.error.message;
  }
}

/// A checkpoint at step 3 with a blob, closed at step 5 with another's.
void makeState(const Artifact &artifact, const Model &m,
               const std::string &state) {
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
  train(s, m, 3);
  ASSERT_EQ(TRC_OK, trc_checkpoint(s.get(), "three", 5, 0, &s.error));
  train(s, m, 2);
  ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
}

void copyFolder(const std::string &from, const std::string &to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

bool says(const Session &s, const char *what) {
  return std::strstr(s.error.message, what) != nullptr;
}

class FolderTest : public ::testing::Test {
protected:
  Folder folder;
  std::string state = folder / "state";
  Model m = model();
};

} // namespace

// Whatever file of a state is a pipe instead, opening, training and closing
// come to an end. The alarm ends the test where one waits.
TEST_F(FolderTest, PipesAreNoFiles) {
  Artifact artifact(m);
  makeState(artifact, m, state);
  std::vector<std::string> names = {
      "claims.json.tmp",     "closed.json.tmp",     "manifest.json.tmp",
      "index-0-base-3.tmp",  "index-1-base-3.tmp",  "index-0-delta-3.tmp",
      "index-1-delta-3.tmp", "checkpoints/ckpt-3/x"};
  for (const auto &e : fs::recursive_directory_iterator(state))
    if (e.is_regular_file())
      names.push_back(fs::relative(e.path(), state).string());
  ASSERT_LE(8u + 8u, names.size());
  size_t refused = 0, warned = 0;
  std::string copy = folder / "copy";
  for (const std::string &name : names) {
    for (int mode : {TRC_TRAIN, TRC_EVAL}) {
      copyFolder(state, copy);
      fs::remove(copy + "/" + name);
      ASSERT_EQ(0, ::mkfifo((copy + "/" + name).c_str(), 0644)) << name;
      ::alarm(30);
      Session s;
      if (s.open(artifact, copy, mode, TRC_OPEN_WARM) != TRC_OK) {
        ++refused;
        EXPECT_TRUE(says(s, "is a pipe, not a file")) << s.error.message;
      } else if (mode == TRC_TRAIN) {
        train(s, m, 1);
        EXPECT_TRUE(s.close() == TRC_OK || says(s, "is a pipe, not a file"))
            << s.error.message;
      }
      for (const std::string &line : s.logs)
        warned += line.find("is a pipe, not a file") != std::string::npos;
      ::alarm(0);
    }
  }
  // A store, an index, a blob; a checkpoint, the close, who is in the caches.
  EXPECT_LE(8u, refused);
  EXPECT_LE(4u, warned);
}

// The rows of a state lie in its tier files. Nothing is made in place of one
// that is missing, and what there is stays as it is.
TEST_F(FolderTest, AMissingTierFileIsSaidToBeMissing) {
  for (const char *kind : {"nvme", "pmem"}) {
    m.homeKind = kind;
    Artifact artifact(m);
    std::string at = folder / kind;
    makeState(artifact, m, at);
    for (const char *name : {"toy.store", "dram.store"}) {
      std::string path = at + "/" + name;
      fs::rename(path, folder / "aside");
      for (int mode : {TRC_TRAIN, TRC_EVAL, TRC_SERVE})
        for (const char *from : {"", "ckpt-3"}) {
          Session s;
          EXPECT_EQ(TRC_NOT_FOUND,
                    s.open(artifact, at, mode, 0, *from ? from : nullptr));
          EXPECT_TRUE(says(s, (path + "' is missing").c_str()) &&
                      says(s, "put it back"))
              << s.error.message;
          EXPECT_FALSE(fs::exists(path)) << mode;
        }
      fs::rename(folder / "aside", path);
      Session s;
      ASSERT_EQ(TRC_OK, s.open(artifact, at)) << s.error.message;
      EXPECT_EQ(5, s.info().step);
      ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
    }
  }
}

// Two folders, one store: whoever trained last has it, and the other one is
// turned away before it writes or reads a row.
TEST_F(FolderTest, ACopiedFolderDoesNotShareItsStore) {
  m.paths = {folder / "tier.store"};
  Artifact artifact(m);
  makeState(artifact, m, state);
  std::string copy = folder / "copy";
  copyFolder(state, copy);
  Tables copied;
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, copy)) << s.error.message;
    train(s, m, 4);
    copied = dumpAll(s);
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  }
  for (uint32_t flags : {0u, uint32_t(TRC_OPEN_FRESH)})
    for (int mode : {TRC_TRAIN, TRC_EVAL, TRC_SERVE}) {
      if (mode != TRC_TRAIN && flags)
        continue;
      Session s;
      EXPECT_EQ(TRC_MISMATCH, s.open(artifact, state, mode, flags));
      EXPECT_TRUE(says(s, "tier.store") && says(s, "another folder"))
          << s.error.message;
    }
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, copy)) << s.error.message;
  EXPECT_EQ(9, s.info().step);
  EXPECT_EQ(copied, dumpAll(s));
  ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
}

// The copy counts from its first step on: cleaning alone may write over rows.
TEST_F(FolderTest, ACopyThatWasKilledHasTheStoreAllTheSame) {
  m.paths = {folder / "tier.store"};
  Artifact artifact(m);
  makeState(artifact, m, state);
  std::string copy = folder / "copy", dead = folder / "dead";
  copyFolder(state, copy);
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, copy)) << s.error.message;
    train(s, m, 2);
    copyFolder(copy, dead); // what a kill would leave
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  }
  Session s, t;
  EXPECT_EQ(TRC_MISMATCH, s.open(artifact, state)) << s.error.message;
  ASSERT_EQ(TRC_OK, t.open(artifact, dead)) << t.error.message;
  EXPECT_EQ(5, t.info().step);
}

// A folder that moves, or is copied with its stores, is nobody's copy.
TEST_F(FolderTest, FoldersThatMoveWithTheirStoresGoOn) {
  Artifact artifact(m);
  makeState(artifact, m, state);
  std::string copy = folder / "copy";
  copyFolder(state, copy);
  fs::rename(state, folder / "moved");
  for (const std::string &at : {copy, folder / "moved", copy}) {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, at)) << s.error.message;
    train(s, m, 2);
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  }
}

// Without its list of claims a folder knows nothing: it takes no store that
// somebody has claimed. A damaged list protects nothing and stops nobody.
TEST_F(FolderTest, ClaimsThatAreMissingOrDamaged) {
  Artifact artifact(m);
  makeState(artifact, m, state);
  for (int i = 0; i < 3; ++i) {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.close());
  }
  EXPECT_GT(400u, fs::file_size(state + "/claims.json")) << "it must not grow";
  fs::rename(state + "/claims.json", folder / "aside");
  Session s;
  EXPECT_EQ(TRC_MISMATCH, s.open(artifact, state));
  ASSERT_TRUE(trc::writeFile(state + "/claims.json", "{", 1).ok());
  ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
  ASSERT_EQ(TRC_OK, s.close());
  Session t;
  ASSERT_EQ(TRC_OK, t.open(artifact, state)) << t.error.message;
}

// A kill leaves an import's files at any moment of it. The next import makes
// the state; to train without it would begin at step 0.
TEST_F(FolderTest, AnInterruptedImportIsImportedAgain) {
  Artifact artifact(m);
  makeState(artifact, m, state);
  std::string portable = folder / "portable", at = folder / "imported",
              dead = folder / "dead";
  {
    auto dir = trc::StateDir::open(state, false, false);
    ASSERT_TRUE(dir.ok());
    auto root = trc::inspect::findRoot(**dir, "closed", nullptr);
    ASSERT_TRUE(root.ok());
    ASSERT_TRUE(trc::inspect::exportRows(*root, portable, nullptr).ok());
  }
  bool first = true;
  auto made = trc::inspect::importRows(portable, at, [&](uint64_t, uint64_t) {
    if (first)
      copyFolder(at, dead);
    first = false;
  });
  ASSERT_TRUE(made.ok()) << made.takeStatus().message();
  ASSERT_TRUE(fs::exists(dead + "/manifest.json"));
  for (int mode : {TRC_TRAIN, TRC_EVAL}) {
    Session s;
    EXPECT_EQ(TRC_NOT_FOUND, s.open(artifact, dead, mode));
    EXPECT_TRUE(says(s, "import the checkpoint again")) << s.error.message;
  }
  auto again = trc::inspect::importRows(portable, dead, nullptr);
  ASSERT_TRUE(again.ok()) << again.takeStatus().message();
  Tables rows[2];
  for (int i : {0, 1}) {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, i ? dead : at)) << s.error.message;
    EXPECT_EQ(5, s.info().step);
    rows[i] = dumpAll(s);
    if (i)
      copyFolder(dead, at); // as a kill before the first root would leave it
    else
      ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  }
  EXPECT_EQ(rows[0], rows[1]);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, at)) << s.error.message;
  EXPECT_EQ(rows[0], dumpAll(s));
  ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  EXPECT_EQ(
      TRC_BAD_ARGUMENT,
      trc::inspect::importRows(portable, at, nullptr).takeStatus().code());
}

// To start fresh gives an unfinished import up; one that has a root is none.
TEST_F(FolderTest, FreshStartsOverAnInterruptedImport) {
  Artifact artifact(m);
  makeState(artifact, m, state);
  Session s;
  {
    auto dir = trc::StateDir::open(state, true, false);
    ASSERT_TRUE(dir.ok());
    auto identity = (*dir)->identity();
    ASSERT_TRUE(identity.ok() && *identity);
    (*identity)->importing = true;
    ASSERT_TRUE((*dir)->writeIdentity(**identity).ok());
    // What has a root is whole.
    ASSERT_FALSE((*dir)->importing());
    fs::remove_all(state + "/checkpoints");
    fs::remove(state + "/closed.json");
    ASSERT_TRUE((*dir)->importing());
  }
  EXPECT_EQ(TRC_NOT_FOUND, s.open(artifact, state));
  ASSERT_EQ(TRC_OK, s.open(artifact, state, TRC_TRAIN, TRC_OPEN_FRESH))
      << s.error.message;
  train(s, m, 1);
  ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
}

// Who only reads cannot take rows over into a new state.
TEST_F(FolderTest, AnotherModelsStateIsRefusedWithAdviceThatFits) {
  makeState(Artifact(m), m, state);
  Model other = m;
  other.tables[0].dim = 8;
  Artifact artifact(other);
  for (int mode : {TRC_TRAIN, TRC_EVAL, TRC_SERVE}) {
    Session s;
    EXPECT_EQ(TRC_MISMATCH, s.open(artifact, state, mode));
    EXPECT_EQ(mode == TRC_TRAIN, says(s, "init-from")) << s.error.message;
    EXPECT_TRUE(says(s, "another model")) << s.error.message;
  }
}
