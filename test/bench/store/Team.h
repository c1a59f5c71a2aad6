//===- Team.h - Threads that share a batch ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For variants that need many threads to keep a device busy. The threads stay
// and sleep between batches, so that starting them is not measured.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_TEAM_H
#define TERRACE_TEST_BENCH_STORE_TEAM_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trc::bench {

class Team {
public:
  explicit Team(uint32_t width) : width(width) {
    for (uint32_t i = 1; i < width; ++i)
      threads.emplace_back([this, i] { serve(i); });
  }
  ~Team() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
      wake.notify_all();
    }
    for (std::thread &t : threads)
      t.join();
  }

  uint32_t size() const { return width; }

  /// Calls part(first, last) for parts of [0, count), each on a thread of its
  /// own, and waits.
  void run(uint32_t count,
           const std::function<void(uint32_t, uint32_t)> &part) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      task = &part;
      items = count;
      left = width - 1;
      ++round;
      wake.notify_all();
    }
    share(0);
    std::unique_lock<std::mutex> lock(mutex);
    done.wait(lock, [&] { return left == 0; });
  }

private:
  void share(uint32_t i) {
    uint32_t first = static_cast<uint32_t>(uint64_t(items) * i / width);
    uint32_t last = static_cast<uint32_t>(uint64_t(items) * (i + 1) / width);
    if (first < last)
      (*task)(first, last);
  }
  void serve(uint32_t i) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || round != seen; });
      if (stop)
        return;
      seen = round;
      lock.unlock();
      share(i);
      lock.lock();
      if (--left == 0)
        done.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable wake, done;
  const std::function<void(uint32_t, uint32_t)> *task = nullptr;
  const uint32_t width;
  uint32_t items = 0, left = 0;
  uint64_t round = 0;
  bool stop = false;
  std::vector<std::thread> threads;
};

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_TEAM_H
