//===- ThreadPool.cpp - Loops over output rows ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One round per call: the caller publishes the range, each worker takes the
// part of its index, the last one to finish wakes the caller.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/ThreadPool.h"

#include "runtime/exec/FpEnv.h"

#include <algorithm>
#include <sched.h>

using namespace trc;

unsigned trc::availableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
    return static_cast<unsigned>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(unsigned threads)
    : count(threads ? threads : availableCpus()) {
  // What a machine that is short of threads gives has to do: results do not
  // depend on their number.
  try {
    for (unsigned i = 1; i < count; ++i)
      workers.emplace_back([this, i] { work(i); });
  } catch (const std::exception &) {
    count = static_cast<unsigned>(workers.size()) + 1;
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stop = true;
  }
  wake.notify_all();
  for (std::thread &t : workers)
    t.join();
}

/// Part i of n of [begin, end).
static int64_t cut(int64_t begin, int64_t end, unsigned i, unsigned n) {
  return begin +
         static_cast<int64_t>(static_cast<__int128>(end - begin) * i / n);
}

void ThreadPool::parallelFor(int64_t begin, int64_t end, int64_t grain,
                             const Body &body) {
  if (begin >= end)
    return;
  int64_t most =
      std::max<int64_t>(1, (end - begin) / std::max<int64_t>(1, grain));
  unsigned n = static_cast<unsigned>(std::min<int64_t>(count, most));
  if (n <= 1 || !entry.try_lock()) {
    body(begin, end);
    return;
  }
  std::lock_guard<std::mutex> held(entry, std::adopt_lock);
  {
    std::lock_guard<std::mutex> lock(mutex);
    current = &body;
    first = begin;
    last = end;
    parts = n;
    open = n - 1;
    ++round;
  }
  wake.notify_all();
  body(begin, cut(begin, end, 1, n));
  std::unique_lock<std::mutex> lock(mutex);
  finished.wait(lock, [this] { return open == 0; });
  current = nullptr;
}

void ThreadPool::work(unsigned index) {
  setStrictFp();
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    wake.wait(lock, [&] { return stop || round != seen; });
    if (stop)
      return;
    seen = round;
    if (index >= parts)
      continue;
    const Body &body = *current;
    int64_t begin = cut(first, last, index, parts);
    int64_t end = cut(first, last, index + 1, parts);
    lock.unlock();
    body(begin, end);
    lock.lock();
    if (--open == 0)
      finished.notify_one();
  }
}
