//===- CrashStory.h - What a session goes through ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A story trains, checkpoints with batches in flight, evaluates, writes rows,
// closes, opens again, changes the plan's layout and starts afresh, over stores
// so small that cleaning, moves and the rule for a full store come up. Every
// lineage of a state takes the same steps, so one uninterrupted run says what
// each step's state is. The story keeps a book of roots: which were started,
// and which of them returned.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_SESSION_CRASHSTORY_H
#define TERRACE_TEST_RUNTIME_SESSION_CRASHSTORY_H

#include "test/runtime/exec/ToyModel.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace crash {

constexpr int lastStep = 48;

/// Everything that a root says of one moment.
struct Moment {
  std::vector<std::vector<std::vector<float>>> tables; // weights, states
  std::string head;
  double lrScale = 1;
  int64_t samples = 0;
};

/// The state after each step of a run that nothing interrupts.
const std::vector<Moment> &reference();

struct Root {
  int64_t step = 0;
  std::string blob;
};

/// What may be found after a loss: roots[returned] or one that was started
/// later.
struct Book {
  std::vector<Root> roots = {Root()}; // the first: no root at all
  size_t returned = 0;
  void start(int64_t step, const std::string &blob) {
    roots.push_back({step, blob});
  }
  void end() { returned = roots.size() - 1; }
};

struct Counters {
  uint64_t segmentsCleaned = 0, checkpointsDropped = 0, evaluations = 0,
           rowsWritten = 0, layouts = 0, failures = 0;
};

struct Story {
  std::string state, tier;
  uint64_t seed = 0;
  Book book;
  Counters counters;
  /// The first thing that failed, where the disk said so.
  std::string failure;
  /// Goes on after a checkpoint that failed.
  bool patient = false;
  /// Called before each session is opened and closed.
  std::function<void()> onSession;

  Story(std::string state, std::string tier, uint64_t seed)
      : state(std::move(state)), tier(std::move(tier)), seed(seed) {}

  /// From nothing to the end; false where a call failed (see `failure`).
  bool play();
  /// Looks at what is there, changing nothing: what is wrong with the state and
  /// the rows of all checkpoints; empty where nothing is.
  std::string check();
  /// From what is there to the end; what is wrong with it.
  std::string recover();
  /// Once more from what is there, for a second loss: trains on, checkpoints
  /// and closes.
  bool goOn();

private:
  bool failed(toy::Session &session, const char *call);
  toy::Model plan(int layout) const;
  bool open(toy::Session &session, int layout, uint32_t flags = 0);
  bool train(toy::Session &session, const toy::Model &model, int end,
             int checkpointEvery, uint32_t keep);
  bool close(toy::Session &session);
  std::string checkCheckpoints() const;
  std::string checkState(toy::Session &session);
  int layout = 0; // of the plan that runs
};

/// What differs from the reference at that step; empty: nothing.
std::string compare(toy::Session &session, int64_t step);

} // namespace crash

#endif // TERRACE_TEST_RUNTIME_SESSION_CRASHSTORY_H
