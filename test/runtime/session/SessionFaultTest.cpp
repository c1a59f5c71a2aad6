//===- SessionFaultTest.cpp - A session whose disk says no ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One fault at a known place each: what the caller is told, what goes on, and
// what is there when the state is opened again. SessionCrashTest sweeps over
// random places.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/FileUtil.h"
#include "runtime/checkpoint/Manifest.h"
#include "test/runtime/session/CrashWorld.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

using namespace crash;
using namespace toy;
using trc::FaultDevice;
using trc::SplitMix;

namespace {

/// Tables "a" and "b" share a group on the tier behind a small cache; "m" lives
/// in memory.
Model model() {
  Model m;
  m.tables = {{"a", 300, 33, adagrad()},
              {"b", 400, 33, adagrad()},
              {"m", 200, 16, adagrad()}};
  m.features = {{"x", 0, "sum", 3}, {"y", 1, "mean", 3}, {"z", 2, "max", 2}};
  m.cached = {true, true, false};
  m.paths = {"one.store"};
  return m;
}

/// Runs so many steps, or until a call fails; its status.
trc_status train(Session &s, const Model &m, int steps) {
  for (int i = 0; i < steps; ++i) {
    SplitMix random(500 + static_cast<uint64_t>(s.info().step));
    Batch b = randomBatch(m, random, m.batch);
    trc_ticket t = 0;
    trc_status status = s.submit(b, t);
    if (status == TRC_OK)
      status = s.forward(t);
    if (status == TRC_OK)
      status = s.backward(t, gradientsFor(s));
    if (status != TRC_OK)
      return status;
  }
  return TRC_OK;
}

trc_status checkpoint(Session &s, const std::string &blob, uint32_t keep = 0) {
  return trc_checkpoint(s.get(), blob.data(), blob.size(), keep, &s.error);
}

std::string blobOf(Session &s) {
  std::string blob(64, 0);
  uint64_t bytes = blob.size();
  if (trc_get_blob(s.get(), blob.data(), &bytes, &s.error) != TRC_OK)
    return std::string("no blob: ") + s.error.message;
  blob.resize(bytes);
  return blob;
}

std::vector<std::vector<std::vector<float>>> dumpAll(Session &s) {
  return {s.dump("a", 300, 33, {33}), s.dump("b", 400, 33, {33}),
          s.dump("m", 200, 16, {16})};
}

bool poisoned(Session &s) {
  return trc_set_lr(s.get(), 1, &s.error) == TRC_POISONED;
}

/// The newest root on disk.
trc::Manifest newestRoot(const std::string &state) {
  trc::Manifest newest;
  std::vector<std::string> files = {state + "/closed.json"};
  for (const std::string &name : trc::listFolder(state + "/checkpoints"))
    files.push_back(state + "/checkpoints/" + name + "/manifest.json");
  for (const std::string &file : files)
    if (auto text = trc::readFile(file); text.ok())
      if (auto m = trc::Manifest::fromText(*text, file);
          m.ok() && m->sequence > newest.sequence)
        newest = std::move(*m);
  return newest;
}

struct SessionFault : ::testing::Test {
  World world;
  Model m = model();
  Artifact artifact{m};
};

} // namespace

// The blob of a checkpoint that failed is not the state's.
TEST_F(SessionFault, AFailedCheckpointTakesItsBlobAlong) {
  world.simulate();
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, world.state())) << s.error.message;
  ASSERT_EQ(TRC_OK, train(s, m, 2)) << s.error.message;
  ASSERT_EQ(TRC_OK, checkpoint(s, "kept")) << s.error.message;
  ASSERT_EQ(TRC_OK, train(s, m, 2));
  world.failWritesTo("manifest.json", ENOSPC);
  EXPECT_EQ(TRC_NO_SPACE, checkpoint(s, "lost"));
  world.failWritesTo("", 0);
  EXPECT_EQ("kept", blobOf(s));
  // Nor does it come back with the close, which brings no blob of its own.
  ASSERT_EQ(TRC_OK, train(s, m, 1)) << s.error.message;
  ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  Session again;
  ASSERT_EQ(TRC_OK, again.open(artifact, world.state(), TRC_EVAL))
      << again.error.message;
  EXPECT_EQ(5, again.info().step);
  EXPECT_EQ("kept", blobOf(again));
}

// A close that cannot store the state loses nothing: it says what is at stake,
// takes no more steps, and may be called again.
TEST_F(SessionFault, ACloseThatFailedIsClosedAgain) {
  struct Case {
    const char *part; // of the names of files that cannot be written
    int error;
    trc_status status;
  };
  const Case cases[] = {{"index-", ENOSPC, TRC_NO_SPACE},
                        {"closed-", ENOSPC, TRC_NO_SPACE},
                        {"closed.json", ENOSPC, TRC_NO_SPACE},
                        {"closed.json", EIO, TRC_IO}};
  for (const Case &c : cases) {
    SCOPED_TRACE(std::string(c.part) + " " + std::to_string(c.error));
    World own;
    own.simulate();
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, own.state())) << s.error.message;
    ASSERT_EQ(TRC_OK, train(s, m, 2));
    ASSERT_EQ(TRC_OK, checkpoint(s, "kept")) << s.error.message;
    ASSERT_EQ(TRC_OK, train(s, m, 3));
    auto rows = dumpAll(s);
    own.failWritesTo(c.part, c.error);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(c.status, s.close());
      EXPECT_NE(nullptr, std::strstr(s.error.message,
                                     "steps 3 to 5 are not stored yet, the "
                                     "state stands at step 2 (ckpt-2)"))
          << s.error.message;
      EXPECT_NE(nullptr, s.get());
      EXPECT_EQ(TRC_CANCELLED, train(s, m, 1));
      EXPECT_EQ(TRC_CANCELLED, checkpoint(s, "no"));
      EXPECT_EQ("kept", blobOf(s));
      EXPECT_EQ(5, s.info().step);
      Session other; // the state is locked as before
      EXPECT_EQ(TRC_LOCKED, other.open(artifact, own.state()));
    }
    own.failWritesTo("", 0);
    ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
    EXPECT_EQ(nullptr, s.get());
    Session again;
    ASSERT_EQ(TRC_OK, again.open(artifact, own.state())) << again.error.message;
    EXPECT_EQ(5, again.info().step);
    EXPECT_EQ("kept", blobOf(again));
    EXPECT_EQ(rows, dumpAll(again));
  }
}

// Given up, it is the state of before, and free for others.
TEST_F(SessionFault, ADiscardedSessionStoresNothing) {
  world.simulate();
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, world.state())) << s.error.message;
  world.failWritesTo("closed.json", ENOSPC);
  ASSERT_EQ(TRC_OK, train(s, m, 1));
  EXPECT_EQ(TRC_NO_SPACE, s.close());
  EXPECT_NE(nullptr, std::strstr(s.error.message, "step 1 is not stored yet, "
                                                  "the state has no root yet"))
      << s.error.message;
  s.discard();
  world.failWritesTo("", 0);
  ASSERT_EQ(TRC_OK, s.open(artifact, world.state())) << s.error.message;
  EXPECT_EQ(0, s.info().step);
  ASSERT_EQ(TRC_OK, train(s, m, 2));
  ASSERT_EQ(TRC_OK, checkpoint(s, "kept"));
  ASSERT_EQ(TRC_OK, train(s, m, 2));
  s.discard(); // without a close before
  ASSERT_EQ(TRC_OK, s.open(artifact, world.state())) << s.error.message;
  EXPECT_EQ(2, s.info().step);
}

// A failed checkpoint must not unmake what a clean close left either.
TEST_F(SessionFault, AFailedCheckpointLeavesTheClosedState) {
  world.simulate();
  {
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, world.state())) << s.error.message;
    ASSERT_EQ(TRC_OK, train(s, m, 2));
    ASSERT_EQ(TRC_OK, checkpoint(s, "kept"));
    ASSERT_EQ(TRC_OK, s.close());
  }
  uint64_t sequence = newestRoot(world.state()).sequence;
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, world.state())) << s.error.message;
  world.failWritesTo("manifest.json", EIO);
  EXPECT_EQ(TRC_IO, checkpoint(s, "lost"));
  world.failWritesTo("", 0);
  ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
  EXPECT_EQ(sequence, newestRoot(world.state()).sequence);
}

// Whichever operation on small files fails: what the session says of its state
// is what the newest root says.
TEST_F(SessionFault, TheSessionAndTheNewestRootAgree) {
  for (int error : {ENOSPC, EIO}) {
    world.simulate();
    auto s = std::make_unique<Session>();
    ASSERT_EQ(TRC_OK,
              s->open(artifact, world.state(), TRC_TRAIN, TRC_OPEN_FRESH))
        << s->error.message;
    ASSERT_EQ(TRC_OK, train(*s, m, 1)) << s->error.message;
    ASSERT_EQ(TRC_OK, checkpoint(*s, "first", 2)) << s->error.message;
    ASSERT_EQ(TRC_OK, train(*s, m, 1));
    ASSERT_EQ(TRC_OK, checkpoint(*s, "second", 2)) << s->error.message;
    uint64_t k = 0, ended = 0;
    for (bool through = false; !through && k < 200; ++k) {
      // Some are of a step that has one already.
      ASSERT_EQ(TRC_OK, train(*s, m, k % 3 ? 1 : 0)) << s->error.message;
      std::string blob = "try " + std::to_string(k);
      world.failFileIn(k, error);
      through = checkpoint(*s, blob, 2) == TRC_OK;
      std::string what = s->error.message;
      world.failFileIn(UINT32_MAX, 0);
      if (poisoned(*s)) {
        // Nobody knows whether the root is there: opening finds out.
        ++ended;
        EXPECT_EQ(TRC_POISONED, s->close());
        s = std::make_unique<Session>();
        ASSERT_EQ(TRC_OK, s->open(artifact, world.state())) << s->error.message;
      } else if (!through) {
        EXPECT_NE(std::string::npos, what.find(world.state())) << what;
      }
      trc::Manifest root = newestRoot(world.state());
      std::string said = blobOf(*s);
      EXPECT_EQ(root.blobBytes, said.size()) << k << ": " << what;
      EXPECT_EQ(0u, said.find(root.step == 1   ? "first"
                              : root.step == 2 ? "second"
                                               : "try "))
          << k;
    }
    EXPECT_GE(k, 15u) << "operations of a checkpoint";
    EXPECT_LE(ended, 3u);
    ASSERT_EQ(TRC_OK, train(*s, m, 2)) << s->error.message;
    auto want = dumpAll(*s);
    ASSERT_EQ(TRC_OK, s->close()) << s->error.message;
    Session reader;
    ASSERT_EQ(TRC_OK, reader.open(artifact, world.state(), TRC_EVAL))
        << reader.error.message;
    EXPECT_EQ(want, dumpAll(reader));
  }
}

// Rows that cannot be written end the session; the message is enough to act
// on, and the last checkpoint is there.
TEST_F(SessionFault, LostWritesEndTheSessionAndSayWhere) {
  struct {
    const char *what;
    unsigned device; // 0: the tier, 1: memory's
    bool flush;
    int error;
    trc_status code;
    std::vector<const char *> parts;
  } cases[] = {
      {"a row that does not fit",
       0,
       false,
       ENOSPC,
       TRC_NO_SPACE,
       {"cannot write row ", " of table '", " at offset ", "/one.store'",
        "No space left", "free some space", "open it again"}},
      {"a row's write",
       0,
       false,
       EIO,
       TRC_IO,
       {"cannot write row ", " of table '", " at offset ", "/one.store'",
        "Input/output error", "open it again"}},
      {"a row of memory",
       1,
       false,
       ENOSPC,
       TRC_NO_SPACE,
       {"cannot write row ", " of table 'm'", " at offset ", "/dram.store'",
        "open it again"}},
      {"the tier's flush",
       0,
       true,
       EIO,
       TRC_IO,
       {"cannot flush ", "/one.store'", "open it again"}},
      {"memory's flush",
       1,
       true,
       ENOSPC,
       TRC_NO_SPACE,
       {"cannot flush ", "/dram.store'", "open it again"}},
  };
  for (const auto &c : cases) {
    SCOPED_TRACE(c.what);
    world.simulate();
    Session s;
    ASSERT_EQ(TRC_OK,
              s.open(artifact, world.state(), TRC_TRAIN, TRC_OPEN_FRESH))
        << s.error.message;
    ASSERT_EQ(TRC_OK, train(s, m, 6)) << s.error.message;
    auto want = dumpAll(s);
    ASSERT_EQ(TRC_OK, checkpoint(s, "kept")) << s.error.message;
    FaultDevice &device = world.faultsOf(c.device);
    if (c.flush)
      device.failFlush(c.error, device.flushes());
    else
      device.add({FaultDevice::Fault::Error, trc::IoRequest::Kind::Write,
                  device.writes(), 1, c.error, 0});
    // In training where rows are evicted, at the latest by the checkpoint.
    trc_status status = train(s, m, 6);
    if (status == TRC_OK)
      status = checkpoint(s, "lost");
    // The call that waited for it, or the first one after it.
    EXPECT_TRUE(status == c.code || status == TRC_POISONED) << s.error.message;
    for (const char *part : c.parts)
      EXPECT_NE(nullptr, std::strstr(s.error.message, part))
          << part << " is not in: " << s.error.message;
    EXPECT_TRUE(poisoned(s));
    EXPECT_EQ("kept", blobOf(s));
    EXPECT_EQ(TRC_POISONED, s.close());
    EXPECT_NE(nullptr, std::strstr(s.error.message, "nothing was saved"))
        << s.error.message;
    // The disk has room again, or not: nothing is written to look.
    Session again;
    ASSERT_EQ(TRC_OK, again.open(artifact, world.state()))
        << again.error.message;
    EXPECT_EQ(6, again.info().step);
    EXPECT_EQ("kept", blobOf(again));
    EXPECT_EQ(want, dumpAll(again));
    ASSERT_EQ(TRC_OK, train(again, m, 1)) << again.error.message;
    ASSERT_EQ(TRC_OK, again.close()) << again.error.message;
  }
}

// What only fails the checkpoint: the session goes on, and the next one brings
// everything.
TEST_F(SessionFault, AFullFolderFailsTheCheckpointAlone) {
  for (const char *file : {"index-", "manifest.json", "blob.bin"})
    for (int error : {ENOSPC, EIO}) {
      SCOPED_TRACE(file);
      world.simulate();
      Session s;
      ASSERT_EQ(TRC_OK,
                s.open(artifact, world.state(), TRC_TRAIN, TRC_OPEN_FRESH))
          << s.error.message;
      ASSERT_EQ(TRC_OK, train(s, m, 4)) << s.error.message;
      ASSERT_EQ(TRC_OK, checkpoint(s, "kept")) << s.error.message;
      ASSERT_EQ(TRC_OK, train(s, m, 3));
      world.failWritesTo(file, error);
      for (int twice = 0; twice < 2; ++twice) {
        EXPECT_EQ(error == EIO ? TRC_IO : TRC_NO_SPACE, checkpoint(s, "lost"));
        for (const std::string &part :
             {std::string("cannot write '"), world.state(), std::string(file)})
          EXPECT_NE(nullptr, std::strstr(s.error.message, part.c_str()))
              << part << " is not in: " << s.error.message;
        ASSERT_EQ(TRC_OK, train(s, m, 3)) << s.error.message;
      }
      EXPECT_FALSE(poisoned(s));
      EXPECT_EQ(4, newestRoot(world.state()).step);
      world.failWritesTo("", 0);
      ASSERT_EQ(TRC_OK, checkpoint(s, "new")) << s.error.message;
      auto want = dumpAll(s);
      ASSERT_EQ(TRC_OK, train(s, m, 3)) << s.error.message;
      ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
      Session again;
      ASSERT_EQ(TRC_OK,
                again.open(artifact, world.state(), TRC_EVAL, 0, "ckpt-13"))
          << again.error.message;
      EXPECT_EQ("new", blobOf(again));
      EXPECT_EQ(want, dumpAll(again));
    }
}

/// Waits until cleaning has left so many free segments in each store: steps may
/// be faster than it is.
bool cleaned(Session &s, int64_t free) {
  for (int i = 0; i < 10000; ++i) {
    int64_t least = free;
    json stats = s.stats();
    for (const json &g : stats["groups"])
      if (g.contains("store"))
        least = std::min(least, g["store"]["free_segments"].get<int64_t>());
    if (least >= free)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Where cleaning's file of moves cannot be written, only cleaning waits: as
// long as there is room training goes on, and no row of any root is lost.
TEST_F(SessionFault, MovesThatCannotBeWrittenPutCleaningOff) {
  m.space = 2.5; // so that it cleans
  m.retained = 3;
  m.tables[0].rows = 1200; // some steps fill a segment
  m.tables[1].rows = 1600;
  Artifact small(m);
  for (bool lifted : {true, false}) {
    SCOPED_TRACE(lifted);
    World own;
    own.simulate();
    Session s;
    ASSERT_EQ(TRC_OK, s.open(small, own.state())) << s.error.message;
    std::map<int64_t, std::vector<std::vector<std::vector<float>>>> rows;
    trc_status status = TRC_OK;
    int64_t failing = 0, most = 1200;
    std::string why;
    while (status == TRC_OK && s.info().step < most) {
      status = train(s, m, 1);
      why = s.error.message;
      int64_t step = s.info().step;
      if (status == TRC_OK && step % 8 == 0) {
        rows[step] = dumpAll(s);
        status = checkpoint(s, "", 3);
        if (failing && status == TRC_NO_SPACE)
          status = TRC_OK; // it alone found no room
      }
      if (!failing && own.movesFiles() >= 2 && step % 8 == 3 &&
          status == TRC_OK) {
        ASSERT_TRUE(cleaned(s, 4)); // cleaning takes one of them, or two
        own.failWritesTo("moves-", ENOSPC);
        failing = step;
      }
      if (failing && lifted && step >= failing + 2)
        own.failWritesTo("", 0);
    }
    ASSERT_GT(failing, 0) << "it must clean";
    if (lifted) {
      ASSERT_EQ(TRC_OK, status) << s.error.message;
      EXPECT_LT(4u, own.movesFiles());
      rows[s.info().step] = dumpAll(s);
      ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
    } else {
      // Poisoned: the store was full behind a call that had returned; the next
      // one says so, with the cause.
      EXPECT_TRUE(status == TRC_NO_SPACE || status == TRC_POISONED) << status;
      EXPECT_LE(failing + 1, s.info().step) << "there was room left: " << why;
      for (const char *part : {"no free segment left", "moves-", "mend that"})
        EXPECT_NE(std::string::npos, why.find(part)) << why;
      EXPECT_EQ(TRC_POISONED, s.close());
      own.failWritesTo("", 0);
    }
    for (const auto &name : trc::listFolder(own.state() + "/checkpoints")) {
      Session at;
      ASSERT_EQ(TRC_OK, at.open(small, own.state(), TRC_EVAL, 0, name.c_str()))
          << at.error.message;
      EXPECT_EQ(rows[at.info().step], dumpAll(at)) << name;
    }
    Session again;
    ASSERT_EQ(TRC_OK, again.open(small, own.state())) << again.error.message;
    EXPECT_EQ(rows[again.info().step], dumpAll(again));
    ASSERT_EQ(TRC_OK, train(again, m, 6)) << again.error.message;
    ASSERT_EQ(TRC_OK, again.close()) << again.error.message;
  }
}
