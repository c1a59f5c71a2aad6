//===- Executor.cpp - Runs the ops of a plan on its lanes -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All scheduling state is under one mutex: ops take tens of microseconds and
// more, a decision well under one. Tokens are bits per op in a window of
// batches; everything before the oldest incomplete batch counts as done.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Executor.h"

#include "runtime/exec/FpEnv.h"

#include <algorithm>
#include <cassert>
#include <chrono>

using namespace trc;

static uint64_t nowNs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

Executor::Executor(const Plan &plan, OpRunner &runner)
    : plan(plan), runner(runner), startedBits(plan.ops.size()),
      doneBits(plan.ops.size()), left(window, 0), callerDone(window, false),
      opTimes(plan.ops.size()) {
  ingestOp = plan.findOp(OpKind::ingest);
  if (int ring = ingestOp < 0 ? -1 : plan.ops[ingestOp].ring; ring >= 0)
    admissible = std::min(admissible, plan.rings[ring].depth);
  for (size_t l = 0; l < plan.lanes.size(); ++l) {
    std::vector<int> order;
    for (size_t i = 0; i < plan.ops.size(); ++i)
      if (plan.ops[i].lane == static_cast<int>(l))
        order.push_back(static_cast<int>(i));
    if (plan.lanes[l].kind == LaneKind::caller) {
      callerOps.insert(callerOps.end(), order.begin(), order.end());
      continue;
    }
    if (order.empty())
      continue;
    // Within a tick the batch is tick + ahead: the oldest has the smallest.
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return plan.ops[a].ahead < plan.ops[b].ahead;
    });
    auto lane = std::make_unique<Lane>();
    lane->index = static_cast<int>(l);
    lane->kind = plan.lanes[l].kind;
    lane->minAhead = plan.ops[order.front()].ahead;
    lane->maxAhead = plan.ops[order.back()].ahead;
    lane->order = std::move(order);
    lanes.push_back(std::move(lane));
  }
  rewind();
}

Executor::~Executor() { stop(); }

void Executor::start() {
  for (auto &lane : lanes)
    lane->thread = std::thread([this, l = lane.get()] { runLane(*l); });
}

void Executor::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopped = interrupt_ = true;
    for (auto &lane : lanes)
      lane->wake.notify_all();
    callerWake.notify_all();
    awaitWake.notify_all();
  }
  for (auto &lane : lanes)
    if (lane->thread.joinable())
      lane->thread.join();
}

void Executor::rewind() {
  for (auto &lane : lanes) {
    lane->tick = base - lane->maxAhead;
    lane->next = 0;
  }
}

bool Executor::done(int op, int64_t t) const {
  return t < oldest || (doneBits[op] >> (t % window) & 1);
}

bool Executor::waitsHold(int op, int64_t t) const {
  for (const WaitPlan &w : plan.ops[op].waits)
    if (!done(w.op, t - w.distance))
      return false;
  return true;
}

bool Executor::findInOrder(Lane &lane, Instance &found) {
  while (true) {
    if (lane.next == lane.order.size()) {
      lane.next = 0;
      ++lane.tick;
    }
    // Past the last instance of the run: nothing until it starts anew.
    if (lane.next == 0 && lane.tick + lane.minAhead >= visible())
      return false;
    int op = lane.order[lane.next];
    int64_t t = lane.tick + plan.ops[op].ahead;
    if (t < base) {
      ++lane.next;
      continue;
    }
    if (t >= visible()) {
      if (!draining)
        return false; // it may still come
      ++lane.next;
      continue;
    }
    found = {op, t, false};
    return waitsHold(op, t);
  }
}

bool Executor::findAny(Lane &lane, Instance &found) {
  for (int64_t t = std::max(base, oldest); t < visible(); ++t)
    for (int op : lane.order) {
      if (startedBits[op] >> (t % window) & 1)
        continue;
      if (waitsHold(op, t)) {
        found = {op, t, false};
        return true;
      }
      if (found.op < 0)
        found = {op, t, false};
    }
  return false;
}

/// The next instance to start. Where none is ready, `found` is the one that
/// holds the lane up, if there is one.
bool Executor::findNext(Lane &lane, Instance &found) {
  found = Instance();
  if (stopped || interrupt_)
    return false;
  return lane.kind == LaneKind::io ? findAny(lane, found)
                                   : findInOrder(lane, found);
}

void Executor::runLane(Lane &lane) {
  setStrictFp();
  std::unique_lock<std::mutex> lock(mutex);
  while (!stopped) {
    Instance next;
    if (!findNext(lane, next)) {
      if (next.op != lane.stalledOp) {
        lane.stalledOp = next.op;
        lane.stalledSince = nowNs();
      }
      lane.wake.wait(lock);
      continue;
    }
    uint64_t begin = nowNs();
    if (lane.stalledOp == next.op)
      opTimes[next.op].stallNs += begin - lane.stalledSince;
    lane.stalledOp = -1;
    lane.busy = true;
    startedBits[next.op] |= 1ull << (next.t % window);
    if (lane.kind == LaneKind::io)
      ++pendingIo;
    lock.unlock();
    bool complete = runner.run(next.op, next.t);
    uint64_t end = nowNs();
    if (trace)
      trace(next.op, next.t, begin, end);
    lock.lock();
    opTimes[next.op].busyNs += end - begin;
    ++opTimes[next.op].count;
    lane.busy = false;
    if (lane.kind == LaneKind::cpu)
      ++lane.next;
    if (complete) {
      if (lane.kind == LaneKind::io)
        --pendingIo;
      markDone(next.op, next.t);
    }
    advance();
  }
}

void Executor::markDone(int op, int64_t t) {
  startedBits[op] |= 1ull << (t % window);
  doneBits[op] |= 1ull << (t % window);
  --left[t % window];
  while (oldest < submitted && left[oldest % window] == 0) {
    uint64_t keep = ~(1ull << (oldest % window));
    for (size_t i = 0; i < doneBits.size(); ++i) {
      doneBits[i] &= keep;
      startedBits[i] &= keep;
    }
    callerDone[oldest % window] = false;
    ++oldest;
  }
  if (draining && oldest == limit) {
    draining = false;
    base = limit;
    rewind();
  }
  if (waitingForOps)
    awaitWake.notify_all();
}

void Executor::finishOwnCallerOps() {
  bool again = true;
  while (again) {
    again = false;
    for (int64_t t = oldest; t < submitted && !again; ++t) {
      if (!callerDone[t % window])
        continue;
      for (int op : callerOps)
        if (!done(op, t) && waitsHold(op, t)) {
          markDone(op, t);
          again = true;
        }
    }
  }
}

/// Whether nothing moves unless a caller does something.
bool Executor::atRest() {
  if (pendingIo > 0 || admitting)
    return false;
  for (auto &lane : lanes) {
    Instance next;
    if (lane->busy || findNext(*lane, next))
      return false;
  }
  return true;
}

bool Executor::stuck(const Instance &caller) const {
  if (caller.op < 0)
    return oldest < submitted;
  return caller.end ? !done(caller.op, caller.t)
                    : !waitsHold(caller.op, caller.t);
}

/// Whether all who wait want the end of the run, and the trainer, who is not
/// among them, has yet to end a batch of it.
bool Executor::trainerOwes() const {
  for (const Instance *caller : callers)
    if (caller->op >= 0)
      return false;
  for (int64_t t = oldest; t < submitted; ++t)
    if (!callerDone[t % window])
      return true;
  return false;
}

void Executor::advance() {
  finishOwnCallerOps();
  bool rest = pendingIo == 0 && !admitting;
  for (auto &lane : lanes) {
    Instance next;
    if (lane->busy) {
      rest = false;
    } else if (findNext(*lane, next)) {
      rest = false;
      lane->wake.notify_one();
    }
  }
  bool anyStuck = false, anyFree = false;
  for (const Instance *caller : callers)
    (stuck(*caller) ? anyStuck : anyFree) = true;
  if (anyFree || (rest && anyStuck))
    callerWake.notify_all();
  // An op may have completed on another thread before its lane was idle again.
  if (rest && waitingForOps)
    awaitWake.notify_all();
  // One that can go on may bring the next batch, so only end the run when all
  // who wait are stuck.
  if (rest && anyStuck && !anyFree && !draining && oldest < submitted &&
      !interrupt_) {
    draining = true;
    limit = submitted;
    ++drainCount;
    advance();
  }
}

bool Executor::waitAsCaller(const Instance &wanted) {
  std::unique_lock<std::mutex> lock(mutex);
  callers.push_back(&wanted);
  while (!interrupt_ && !cancelled && stuck(wanted)) {
    if (atRest() && !draining)
      advance(); // ends the run, unless another caller can go on
    bool othersStuck =
        std::all_of(callers.begin(), callers.end(),
                    [&](const Instance *caller) { return stuck(*caller); });
    if (atRest() && draining && othersStuck && !trainerOwes()) {
      // Even the end of the run brings nothing: waits that cannot hold.
      wedged_ = interrupt_ = true;
      callerWake.notify_all();
    } else if (stuck(wanted)) {
      callerWake.wait(lock);
    }
  }
  callers.erase(std::find(callers.begin(), callers.end(), &wanted));
  return !interrupt_ && !cancelled;
}

bool Executor::mayAdmit(bool patient) {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    if (interrupt_ || cancelled)
      return false;
    // The plan may leave to the lane's order what ingest has to wait for, but
    // the copy is made by the producer: the slot's last batch must be over.
    if (submitted - oldest < admissible && waitsHold(ingestOp, submitted)) {
      admitting = true;
      return true;
    }
    if (!patient || atRest())
      return false;
    ++waitingForOps;
    awaitWake.wait(lock);
    --waitingForOps;
  }
}

void Executor::admit() {
  std::lock_guard<std::mutex> lock(mutex);
  left[submitted % window] = static_cast<int>(plan.ops.size());
  callerDone[submitted % window] = false;
  ++submitted;
  admitting = false;
  advance();
}

void Executor::giveUpAdmission() {
  std::lock_guard<std::mutex> lock(mutex);
  admitting = false;
  advance();
}

int64_t Executor::admitted() const {
  std::lock_guard<std::mutex> lock(mutex);
  return submitted;
}

bool Executor::waitReady(int op, int64_t t) {
  return waitAsCaller({op, t, false});
}

bool Executor::waitEnd(int op, int64_t t) {
  return waitAsCaller({op, t, true});
}

bool Executor::drain() { return waitAsCaller({-1, 0, false}); }

void Executor::completeCaller(int op, int64_t t) {
  std::lock_guard<std::mutex> lock(mutex);
  markDone(op, t);
  advance();
}

void Executor::finishCaller(int64_t t) {
  std::lock_guard<std::mutex> lock(mutex);
  if (t >= oldest)
    callerDone[t % window] = true;
  advance();
}

void Executor::complete(int op, int64_t t) {
  std::lock_guard<std::mutex> lock(mutex);
  --pendingIo;
  markDone(op, t);
  advance();
}

bool Executor::isDone(int op, int64_t t) const {
  std::lock_guard<std::mutex> lock(mutex);
  return done(op, t);
}

bool Executor::awaitDone(int op, int64_t t) {
  std::unique_lock<std::mutex> lock(mutex);
  ++waitingForOps;
  while (!interrupt_ && !done(op, t))
    awaitWake.wait(lock);
  --waitingForOps;
  return done(op, t);
}

void Executor::cancelCallers(bool on) {
  std::lock_guard<std::mutex> lock(mutex);
  cancelled = on;
  callerWake.notify_all();
  awaitWake.notify_all();
}

void Executor::interrupt() {
  std::lock_guard<std::mutex> lock(mutex);
  interrupt_ = true;
  for (auto &lane : lanes)
    lane->wake.notify_all();
  callerWake.notify_all();
  awaitWake.notify_all();
}

bool Executor::interrupted() const {
  std::lock_guard<std::mutex> lock(mutex);
  return interrupt_;
}

bool Executor::wedged() const {
  std::lock_guard<std::mutex> lock(mutex);
  return wedged_;
}

std::vector<OpTimes> Executor::times() const {
  std::lock_guard<std::mutex> lock(mutex);
  return opTimes;
}

int64_t Executor::completed() const {
  std::lock_guard<std::mutex> lock(mutex);
  return oldest;
}

uint64_t Executor::drains() const {
  std::lock_guard<std::mutex> lock(mutex);
  return drainCount;
}
