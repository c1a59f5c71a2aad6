//===- ThreadPool.h - Loops over output rows --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// parallelFor splits a range statically into one part per thread; every part
// writes outputs of its own, so results do not depend on the number of threads.
// The calling thread takes the first part. A call that finds the pool in use
// by another lane runs alone rather than wait. Workers sleep between calls.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_EXEC_THREADPOOL_H
#define TERRACE_RUNTIME_EXEC_THREADPOOL_H

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trc {

class ThreadPool {
public:
  using Body = std::function<void(int64_t begin, int64_t end)>;

  /// `threads` in all, the calling one included; 0: one per CPU that this
  /// process may use.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned threads() const { return count; }

  /// Runs body over [begin, end); no part is smaller than `grain`, if the range
  /// is not. body must not throw.
  void parallelFor(int64_t begin, int64_t end, int64_t grain, const Body &body);

private:
  void work(unsigned index);

  unsigned count;
  std::mutex entry; // held by the call that has the workers
  std::mutex mutex;
  std::condition_variable wake, finished;
  uint64_t round = 0;
  unsigned parts = 0, open = 0;
  int64_t first = 0, last = 0;
  const Body *current = nullptr;
  bool stop = false;
  std::vector<std::thread> workers;
};

/// CPUs that this process may run on.
unsigned availableCpus();

} // namespace trc

#endif // TERRACE_RUNTIME_EXEC_THREADPOOL_H
