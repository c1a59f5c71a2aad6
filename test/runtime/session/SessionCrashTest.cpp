//===- SessionCrashTest.cpp - Power losses and kills of whole sessions ----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sweep behind the durability contract: after a loss at any operation, the
// state is that of a root between the last that returned and the last that was
// started, bit for bit, and trains on as if nothing had happened.
// TERRACE_CRASH_POINTS sets the number of points (200), TERRACE_CRASH_SEED the
// first. The sweep comes in parts, tests of their own that can share the CPUs.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/io/CrashRandom.h"
#include "test/runtime/session/CrashStory.h"
#include "test/runtime/session/CrashWorld.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

using namespace crash;
using trc::crashMix;

namespace {

constexpr uint64_t stories = 6, sweepParts = 4, defaultPoints = 200;

uint64_t number(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// What happens in a story that nothing interrupts.
struct Course {
  uint64_t operations = 0;
  std::vector<uint64_t> sessions; // operations where one is opened or closed
  std::vector<World::Traffic> traffic;
};

const Course &courseOf(uint64_t story) {
  static std::vector<Course> known(stories);
  Course &course = known[story];
  if (!course.operations) {
    World world;
    world.simulate();
    Story s(world.state(), world.tier(), story);
    s.onSession = [&] { course.sessions.push_back(world.operations()); };
    EXPECT_TRUE(s.play()) << "story " << story << ": " << s.failure;
    course.operations = world.operations();
    course.traffic = world.traffic();
  }
  return course;
}

/// What is left is looked at as real files; some go on there, too, the others
/// where a flush costs nothing.
std::string recover(World &world, Story &story, uint64_t seed) {
  world.makeReal();
  if (std::string wrong = story.check(); !wrong.empty())
    return wrong;
  if (seed % 8)
    world.simulate();
  return story.recover();
}

/// One point of the sweep; says what is wrong. Half of them lose power while
/// recovering from the first loss, too.
std::string loseAt(uint64_t seed, Lie lie = Lie::None) {
  uint64_t story = seed % stories;
  const Course &course = courseOf(story);
  uint64_t at = crashMix(seed, 1) % course.operations;
  if (crashMix(seed, 6) % 4 == 0) // roots are made and removed there
    at = course.sessions[crashMix(seed, 7) % course.sessions.size()] +
         crashMix(seed, 1) % 64;
  bool kill = crashMix(seed, 2) % 4 == 0, twice = crashMix(seed, 3) % 2;
  World world;
  world.lie(lie);
  Story s(world.state(), world.tier(), story);
  auto lost = [&](bool through) -> std::string {
    if (!through && !world.powerless())
      return "failed with power: " + s.failure;
    s.failure.clear();
    world.lose(crashMix(seed, 4), kill);
    return "";
  };
  world.simulate(at);
  if (std::string wrong = lost(s.play()); !wrong.empty())
    return wrong;
  if (twice) {
    world.simulate(crashMix(seed, 5) % 120);
    if (std::string wrong = lost(s.goOn()); !wrong.empty())
      return "second loss: " + wrong;
  }
  return recover(world, s, seed);
}

enum class Fault {
  ReadError,
  ReadFlip,
  WriteError,
  WriteFull,
  FlushError,
  FileError,
  FileFull
};
constexpr uint64_t faults = 7;

/// One fault in a story that keeps its power; says what is wrong. `hit` counts
/// those that a call reported.
std::string failAt(uint64_t seed, uint64_t &hit) {
  uint64_t story = seed % stories;
  const Course &course = courseOf(story);
  Fault kind = static_cast<Fault>(crashMix(seed, 1) % faults);
  World world;
  Story s(world.state(), world.tier(), story);
  s.patient = kind == Fault::FileError || kind == Fault::FileFull;
  world.simulate();
  unsigned number =
      static_cast<unsigned>(crashMix(seed, 2) % course.traffic.size());
  const World::Traffic &traffic = course.traffic[number];
  auto one = [&](uint64_t count) { return crashMix(seed, 3) % (count + 1); };
  trc::FaultDevice::Fault fault;
  switch (kind) {
  case Fault::ReadError:
  case Fault::ReadFlip:
    fault.kind = trc::IoRequest::Kind::Read;
    fault.type = kind == Fault::ReadFlip ? trc::FaultDevice::Fault::Flip
                                         : trc::FaultDevice::Fault::Error;
    fault.first = one(traffic.reads);
    fault.keep = static_cast<uint32_t>(crashMix(seed, 4) % 4096);
    world.addFault(number, fault);
    break;
  case Fault::WriteError:
  case Fault::WriteFull:
    fault.first = one(traffic.writes);
    fault.error = kind == Fault::WriteFull ? ENOSPC : EIO;
    world.addFault(number, fault);
    break;
  case Fault::FlushError:
    world.failFlush(number, one(traffic.flushes), EIO);
    break;
  case Fault::FileError:
  case Fault::FileFull:
    world.failFileAt(one(course.operations / 2),
                     kind == Fault::FileFull ? ENOSPC : EIO);
    break;
  }
  (void)s.play();
  if (!s.failure.empty()) {
    ++hit;
    if (s.failure.find(world.state()) == std::string::npos &&
        s.failure.find(world.tier()) == std::string::npos)
      return "names no file: " + s.failure;
    if ((kind == Fault::ReadError || kind == Fault::WriteError) &&
        s.failure.find("offset") == std::string::npos)
      return "names no offset: " + s.failure;
  }
  std::string reported = std::move(s.failure);
  s.failure.clear();
  world.lose(seed, true);
  std::string wrong = recover(world, s, seed);
  // What was reported may be why.
  return wrong.empty()
             ? wrong
             : wrong + " (fault " + std::to_string(int(kind)) + " in session " +
                   std::to_string(number) + ": " +
                   (reported.empty() ? "not reported" : reported) + ")";
}

} // namespace

// What the sweep is about happens in every story.
TEST(SessionCrashTest, StoriesComeToEverything) {
  uint64_t dropped = 0;
  for (uint64_t story = 0; story < stories; ++story) {
    World world;
    world.simulate();
    Story s(world.state(), world.tier(), story);
    ASSERT_TRUE(s.play()) << "story " << story << ": " << s.failure;
    std::printf("story %d: %d operations, %d segments cleaned, %d files of "
                "moves, %d checkpoints given up, %d evaluations\n",
                int(story), int(world.operations()),
                int(s.counters.segmentsCleaned), int(world.movesFiles()),
                int(s.counters.checkpointsDropped),
                int(s.counters.evaluations));
    EXPECT_GT(s.counters.segmentsCleaned, 0u);
    EXPECT_GT(world.movesFiles(), 0u);
    dropped += s.counters.checkpointsDropped;
    EXPECT_GT(s.counters.evaluations, 0u);
    EXPECT_GT(s.counters.rowsWritten, 0u);
    EXPECT_GT(s.counters.layouts, 0u);
    world.lose(story, true);
    EXPECT_EQ("", recover(world, s, 0)) << "story " << story;
  }
  // Up to the stores of the tier: those of small groups in memory have room.
  EXPECT_GT(dropped, stories);
}

class SessionCrashSweep : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SessionCrashSweep, AnyLossLeavesARootBetweenReturnedAndStarted) {
  uint64_t points = number("TERRACE_CRASH_POINTS", defaultPoints), wrong = 0;
  uint64_t begin = points * GetParam() / sweepParts,
           count = points * (GetParam() + 1) / sweepParts - begin;
  uint64_t first = number("TERRACE_CRASH_SEED", 0) + begin;
  for (uint64_t seed = first; seed < first + count; ++seed)
    if (std::string what = loseAt(seed); !what.empty()) {
      ADD_FAILURE() << "seed " << seed << ": " << what;
      if (++wrong == 20)
        break;
    }
  std::printf("%d of %d points hold\n", int(count - wrong), int(count));
}

INSTANTIATE_TEST_SUITE_P(Part, SessionCrashSweep,
                         ::testing::Range(uint64_t(0), sweepParts));

TEST(SessionCrashTest, AnyFaultIsACleanError) {
  uint64_t count = number("TERRACE_CRASH_POINTS", defaultPoints) / 4;
  uint64_t wrong = 0, hit = 0;
  uint64_t first = number("TERRACE_CRASH_SEED", 0);
  for (uint64_t seed = first; seed < first + count; ++seed)
    if (std::string what = failAt(seed, hit); !what.empty()) {
      ADD_FAILURE() << "seed " << seed << ": " << what;
      if (++wrong == 20)
        break;
    }
  std::printf("%d of %d faults hold, %d were reported\n", int(count - wrong),
              int(count), int(hit));
  EXPECT_GE(hit, count / 4);
}

// Also while a checkpoint makes room for itself: rows that it took from a cache
// and could not store are dirty still.
TEST(SessionCrashTest, ARootThatCannotBeRemovedChangesNoRow) {
  uint64_t failed = 0, wrong = 0;
  for (uint64_t story = 0; story < stories; ++story)
    for (uint64_t n = story % 2; n < 16; n += 2) {
      World world;
      Story s(world.state(), world.tier(), story);
      s.patient = true;
      world.failRootRemoval(n);
      world.simulate();
      (void)s.play();
      failed += !s.failure.empty();
      std::string reported = std::move(s.failure);
      s.failure.clear();
      world.lose(story, true);
      if (std::string what = recover(world, s, story); !what.empty()) {
        ADD_FAILURE() << "story " << story << ", removal " << n << ": " << what
                      << " (" << reported << ")";
        if (++wrong == 20)
          return;
      }
    }
  EXPECT_GT(failed, stories);
}

// What the sweep is worth: a disk that forgets one step of the protocol.
TEST(SessionCrashTest, EveryForgottenStepIsFound) {
  struct {
    Lie lie;
    const char *what;
  } lies[] = {{Lie::DeviceFlush, "rows are not flushed before the index"},
              {Lie::IndexSync, "index files are not synced"},
              {Lie::MovesSync, "moves are not durable before space is reused"},
              {Lie::RootEarly, "the root is durable before the index"},
              {Lie::RootRemoval, "a root's removal is not synced"},
              {Lie::ClosedStays, "the closed root stays"},
              {Lie::CheckpointStays, "a pruned checkpoint's root stays"}};
  for (const auto &mutant : lies) {
    uint64_t seed = 0, most = 400;
    std::string what;
    while (seed < most && (what = loseAt(seed, mutant.lie)).empty())
      ++seed;
    EXPECT_LT(seed, most) << mutant.what;
    std::printf("%s: seed %d: %.120s\n", mutant.what, int(seed), what.c_str());
  }
}
