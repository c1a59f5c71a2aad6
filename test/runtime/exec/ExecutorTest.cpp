//===- ExecutorTest.cpp - Order of instances on lanes ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random plans, random submission: no instance starts before its waits have
// completed, cpu lanes keep the order of ticks within a run, every instance
// runs once, and a caller that waits is never left alone.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Executor.h"
#include "runtime/core/Hash.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

using namespace trc;

namespace {

/// Records what happens; io ops complete on a thread of their own, late and out
/// of order.
class Recorder : public OpRunner {
public:
  explicit Recorder(const Plan &plan) : plan(plan) {
    device = std::thread([this] { deviceLoop(); });
  }
  ~Recorder() override { finish(); }
  void finish() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
    }
    wake.notify_all();
    if (device.joinable())
      device.join();
  }

  bool run(int op, int64_t t) override {
    bool io = plan.lanes[plan.ops[op].lane].kind == LaneKind::io;
    std::lock_guard<std::mutex> lock(mutex);
    checkWaits(op, t);
    starts.push_back({op, t});
    if (!io) {
      done.insert({op, t});
      return true;
    }
    if (random.below(3) == 0) {
      done.insert({op, t});
      return true;
    }
    pending.push_back({op, t});
    wake.notify_all();
    return false;
  }

  void checkWaits(int op, int64_t t) {
    for (const WaitPlan &w : plan.ops[op].waits)
      if (t - w.distance >= 0 && !done.count({w.op, t - w.distance}))
        ++violations;
    if (!seen.insert({op, t}).second)
      ++violations;
  }
  /// The session's side of a caller's op.
  void callerDone(int op, int64_t t) {
    std::lock_guard<std::mutex> lock(mutex);
    checkWaits(op, t);
    done.insert({op, t});
  }

  Executor *executor = nullptr;
  std::mutex mutex;
  std::vector<std::pair<int, int64_t>> starts;
  std::set<std::pair<int, int64_t>> done, seen;
  int violations = 0;

private:
  void deviceLoop() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stop || !pending.empty(); });
      if (pending.empty())
        return;
      size_t i = random.below(pending.size());
      auto [op, t] = pending[i];
      pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
      done.insert({op, t});
      lock.unlock();
      executor->complete(op, t);
      lock.lock();
    }
  }
  const Plan &plan;
  std::thread device;
  std::condition_variable wake;
  std::deque<std::pair<int, int64_t>> pending;
  SplitMix random{5};
  bool stop = false;
};

/// The recorder's thread calls the executor, so it ends before that does.
struct Finish {
  Recorder &recorder;
  ~Finish() { recorder.finish(); }
};

/// host: ingest, probe, unpin · io: fetch · work: gather, update · the caller.
Plan pipelinePlan(int64_t d, SplitMix &random) {
  Plan p;
  p.lanes = {{"host", LaneKind::cpu, 1},
             {"io", LaneKind::io, 8},
             {"work", LaneKind::cpu, 1},
             {"caller", LaneKind::caller, 1}};
  auto op = [&](OpKind kind, int lane, int64_t ahead,
                std::vector<WaitPlan> waits) {
    OpPlan o;
    o.kind = kind;
    o.lane = lane;
    o.ahead = ahead;
    o.waits = std::move(waits);
    p.ops.push_back(o);
  };
  int64_t depth = d + 2 + static_cast<int64_t>(random.below(3));
  op(OpKind::ingest, 0, d + 1, {{7, depth}});
  op(OpKind::probe, 0, d, {{0, 0}, {7, d + 1}});
  op(OpKind::fetch, 1, d, {{1, 0}, {3, d + 1}});
  op(OpKind::gatherPool, 2, 0, {{2, 0}, {4, 1}});
  op(OpKind::handoff, 3, 0, {{3, 0}});
  op(OpKind::resume, 3, 0, {{4, 0}, {6, 1}});
  op(OpKind::segmentUpdate, 2, 0, {{5, 0}});
  op(OpKind::unpin, 0, 0, {{6, 0}});
  return p;
}

} // namespace

TEST(Executor, WaitsHoldAndEveryInstanceRunsOnce) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    SplitMix random(seed);
    int64_t d = static_cast<int64_t>(random.below(6));
    Plan plan = pipelinePlan(d, random);
    Recorder recorder(plan);
    Executor executor(plan, recorder);
    Finish finish{recorder};
    recorder.executor = &executor;
    executor.start();
    const int64_t batches = 40;
    int64_t ended = 0, submitted = 0;
    int64_t most = static_cast<int64_t>(random.below(8));
    while (ended < batches) {
      while (submitted < batches && submitted - ended <= most &&
             executor.mayAdmit(random.below(2) || submitted == ended)) {
        executor.admit();
        ++submitted;
      }
      ASSERT_LT(ended, submitted);
      bool forward = random.below(4) != 0;
      if (forward) {
        ASSERT_TRUE(executor.waitReady(4, ended));
        recorder.callerDone(4, ended);
        executor.completeCaller(4, ended);
        ASSERT_TRUE(executor.waitReady(5, ended));
        recorder.callerDone(5, ended);
        executor.completeCaller(5, ended);
      } else {
        // Released: these complete by themselves.
        std::lock_guard<std::mutex> lock(recorder.mutex);
        recorder.done.insert({4, ended});
        recorder.done.insert({5, ended});
      }
      executor.finishCaller(ended);
      ++ended;
    }
    ASSERT_TRUE(executor.drain());
    EXPECT_EQ(batches, executor.completed());
    executor.stop();
    recorder.finish();
    EXPECT_EQ(0, recorder.violations);
    EXPECT_EQ(static_cast<size_t>(batches) * 6, recorder.starts.size());
    // A cpu lane goes back in ticks only where a run ended.
    uint64_t back = 0;
    int64_t last = -100;
    for (auto [op, t] : recorder.starts) {
      if (plan.ops[op].lane != 0)
        continue;
      int64_t tick = t - plan.ops[op].ahead;
      back += tick < last;
      last = tick;
    }
    EXPECT_LE(back, executor.drains());
  }
}

TEST(Executor, ATrainerThatKeepsUpNeverDrains) {
  SplitMix random(1);
  Plan plan = pipelinePlan(3, random);
  plan.ops[0].waits[0].distance = 6;
  Recorder recorder(plan);
  Executor executor(plan, recorder);
  Finish finish{recorder};
  recorder.executor = &executor;
  executor.start();
  int64_t submitted = 0;
  for (int64_t t = 0; t < 50; ++t) {
    while (submitted < t + 5) {
      ASSERT_TRUE(executor.mayAdmit(true));
      executor.admit();
      ++submitted;
    }
    for (int op : {4, 5}) {
      ASSERT_TRUE(executor.waitReady(op, t));
      recorder.callerDone(op, t);
      executor.completeCaller(op, t);
    }
    executor.finishCaller(t);
  }
  EXPECT_EQ(0u, executor.drains());
  executor.stop();
}

// The compiler leaves out waits that the order of a lane implies, but ingest is
// done by the producer's thread.
TEST(Executor, IngestWaitsForItsRingSlotWhateverThePlanSays) {
  SplitMix random(4);
  Plan plan = pipelinePlan(2, random);
  plan.ops[0].waits.clear();
  plan.ops[0].ring = 0;
  plan.rings.push_back(RingPlan());
  plan.rings[0].depth = 4;
  Recorder recorder(plan);
  Executor executor(plan, recorder);
  Finish finish{recorder};
  recorder.executor = &executor;
  executor.start();
  int64_t submitted = 0;
  auto fill = [&] {
    while (submitted < 60 && executor.mayAdmit(false)) {
      executor.admit();
      ++submitted;
    }
  };
  for (int64_t t = 0; t < 20; ++t) {
    fill();
    EXPECT_LE(submitted, t + 4);
    // Also while the update of a batch that the caller is through with runs.
    EXPECT_LE(submitted, executor.completed() + 4);
    for (int op : {4, 5}) {
      ASSERT_TRUE(executor.waitReady(op, t));
      recorder.callerDone(op, t);
      executor.completeCaller(op, t);
    }
    executor.finishCaller(t);
  }
  executor.stop();
}

TEST(Executor, AScheduleThatCannotGoOnIsReported) {
  SplitMix random(2);
  Plan plan = pipelinePlan(0, random);
  plan.ops[3].waits.push_back({7, 0}); // gather waits for its own unpin
  Recorder recorder(plan);
  Executor executor(plan, recorder);
  Finish finish{recorder};
  recorder.executor = &executor;
  executor.start();
  ASSERT_TRUE(executor.mayAdmit(true));
  executor.admit();
  EXPECT_FALSE(executor.waitReady(4, 0));
  EXPECT_TRUE(executor.wedged());
  executor.stop();
}

// A producer may ask for the end of a run while the trainer's thread is between
// the end of its ticket and its last word to the executor.
TEST(Executor, ADrainWaitsForTheTrainerToFinish) {
  for (int round = 0; round < 20; ++round) {
    SplitMix random(5);
    Plan plan = pipelinePlan(round % 4, random);
    Recorder recorder(plan);
    Executor executor(plan, recorder);
    Finish finish{recorder};
    recorder.executor = &executor;
    executor.start();
    ASSERT_TRUE(executor.mayAdmit(true));
    executor.admit();
    std::thread trainer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      {
        std::lock_guard<std::mutex> lock(recorder.mutex);
        recorder.done.insert({4, 0});
        recorder.done.insert({5, 0});
      }
      executor.finishCaller(0);
    });
    EXPECT_TRUE(executor.drain());
    EXPECT_FALSE(executor.wedged());
    trainer.join();
    executor.stop();
  }
}

TEST(Executor, CancelWakesAndCanBeTakenBack) {
  SplitMix random(3);
  Plan plan = pipelinePlan(1, random);
  Recorder recorder(plan);
  Executor executor(plan, recorder);
  Finish finish{recorder};
  recorder.executor = &executor;
  executor.start();
  ASSERT_TRUE(executor.mayAdmit(true));
  executor.admit();
  std::thread other([&] { executor.cancelCallers(true); });
  bool first = executor.waitReady(4, 0);
  other.join();
  EXPECT_FALSE(executor.waitReady(5, 0));
  executor.cancelCallers(false);
  if (!first) {
    ASSERT_TRUE(executor.waitReady(4, 0));
  }
  recorder.callerDone(4, 0);
  executor.completeCaller(4, 0);
  {
    std::lock_guard<std::mutex> lock(recorder.mutex);
    recorder.done.insert({5, 0});
  }
  executor.finishCaller(0);
  EXPECT_TRUE(executor.drain());
  executor.stop();
}
