//===- Executor.h - Runs the ops of a plan on its lanes ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread per cpu and io lane; the caller's ops are completed by the
// session. An instance (op, t) starts when the plan's waits have completed. cpu
// lanes run in order of tick (t - ahead), then oldest batch, then plan order;
// io lanes start whatever is ready, oldest first, and may complete out of
// order. All waiting is on condition variables.
//
// The plan's order is proven for a run of N batches in which instances of
// batches beyond the last are left out. A trainer submits as it goes, so the
// end is not known: a lane that reaches an instance of a batch that is not
// there waits for it. Only when everything has come to rest and a caller still
// waits, the run ends ("drain"): the batches at hand are finished, and later
// ones start a new run after that.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_EXEC_EXECUTOR_H
#define TERRACE_RUNTIME_EXEC_EXECUTOR_H

#include "runtime/core/Plan.h"
#include "runtime/core/Status.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace trc {

/// What the ops do. run() is called on the lane's thread.
class OpRunner {
public:
  virtual ~OpRunner() = default;
  /// Returns true when the instance is complete, false when it will call
  /// Executor::complete later (io lanes only).
  virtual bool run(int op, int64_t t) = 0;
};

/// Time spent, by op of the plan; read under the executor's lock.
struct OpTimes {
  uint64_t count = 0;
  uint64_t busyNs = 0;
  uint64_t stallNs = 0; // first in its lane, but waiting for another op
};

class Executor {
public:
  Executor(const Plan &plan, OpRunner &runner);
  ~Executor();
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  void start();
  /// Ends the lanes after their current op; idempotent.
  void stop();

  //--- The producer ---------------------------------------------------------
  /// Whether batch `admitted()` may be copied into its ring slot. With
  /// `patient`, first waits for what the lanes can do without the caller. After
  /// true, admit() or giveUpAdmission() must follow.
  bool mayAdmit(bool patient);
  /// The next batch is in its slot.
  void admit();
  void giveUpAdmission();
  int64_t admitted() const;

  //--- The caller's lane ----------------------------------------------------
  /// Blocks until the waits of the caller's op hold for t. False when the
  /// executor was interrupted.
  bool waitReady(int op, int64_t t);
  /// Blocks until an op that follows from what callers did has completed for
  /// t. False when the executor was interrupted.
  bool waitEnd(int op, int64_t t);
  /// Completes the caller's op.
  void completeCaller(int op, int64_t t);
  /// The caller is through with t: its remaining caller's ops complete by
  /// themselves as soon as their waits hold.
  void finishCaller(int64_t t);
  /// Blocks until every admitted batch is complete. False when interrupted.
  bool drain();

  //--- The runner -----------------------------------------------------------
  /// Completes an io instance whose run() returned false; from any thread.
  void complete(int op, int64_t t);
  bool isDone(int op, int64_t t) const;
  /// Inside an op: blocks until another instance, which must not depend on the
  /// caller or on this lane, has completed. False when interrupted.
  bool awaitDone(int op, int64_t t);

  /// Callers' waits return false while on; the lanes go on.
  void cancelCallers(bool on);
  /// Wakes everyone; waits return false from now on and lanes start nothing.
  void interrupt();
  bool interrupted() const;
  /// No schedule can go on although the caller waits: the plan is wrong.
  bool wedged() const;

  /// Called after each op of a lane, if set before start().
  std::function<void(int op, int64_t t, uint64_t beginNs, uint64_t endNs)>
      trace;

  std::vector<OpTimes> times() const;
  /// Batches that are complete.
  int64_t completed() const;
  /// Ends of a run (see above) so far.
  uint64_t drains() const;

private:
  /// Instances in flight at once, at most; the done bits cover as many.
  static constexpr int64_t window = 64;

  struct Lane {
    int index;
    LaneKind kind;
    std::vector<int> order; // ops by ahead, then position
    int64_t maxAhead = 0, minAhead = 0;
    int64_t tick = 0; // cursor of an in-order lane
    size_t next = 0;
    bool busy = false;
    int stalledOp = -1; // whose waits hold the lane up, and since when
    uint64_t stalledSince = 0;
    std::condition_variable wake;
    std::thread thread;
  };
  struct Instance {
    int op = -1;
    int64_t t = 0;
    bool end = false; // its completion is waited for, not its waits
  };

  bool exists(int64_t t) const { return t >= base && t < visible(); }
  /// First batch that the lanes do not see yet.
  int64_t visible() const { return draining ? limit : submitted; }
  bool done(int op, int64_t t) const;
  bool waitsHold(int op, int64_t t) const;
  bool findNext(Lane &lane, Instance &found);
  bool findInOrder(Lane &lane, Instance &found);
  bool findAny(Lane &lane, Instance &found);
  void runLane(Lane &lane);
  void markDone(int op, int64_t t);
  void finishOwnCallerOps();
  void rewind();
  /// After any change: wakes whoever can go on; starts a drain when nobody can.
  void advance();
  bool atRest();
  bool stuck(const Instance &caller) const;
  bool trainerOwes() const;
  bool waitAsCaller(const Instance &wanted);

  const Plan &plan;
  OpRunner &runner;
  mutable std::mutex mutex;
  std::condition_variable callerWake, awaitWake;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<int> callerOps;
  int ingestOp = 0;
  int64_t admissible =
      window - 1; // batches in flight; ingest has as many slots

  std::vector<uint64_t> startedBits, doneBits; // per op, by t % window
  std::vector<int> left;                       // ops to go, by t % window
  std::vector<bool> callerDone;                // by t % window
  std::vector<OpTimes> opTimes;
  int64_t base = 0;      // first batch of this run
  int64_t oldest = 0;    // first batch that is not complete
  int64_t submitted = 0; // batches admitted
  int64_t limit = 0;     // end of the run, when draining
  bool draining = false;
  int pendingIo = 0; // io instances that complete later
  /// What callers wait for: an op's waits, or (op < 0) the end of everything.
  std::vector<const Instance *> callers;
  int waitingForOps = 0;
  bool cancelled = false;
  bool admitting = false; // a batch is being copied into its slot
  bool stopped = false, interrupt_ = false, wedged_ = false;
  uint64_t drainCount = 0;
};

} // namespace trc

#endif // TERRACE_RUNTIME_EXEC_EXECUTOR_H
