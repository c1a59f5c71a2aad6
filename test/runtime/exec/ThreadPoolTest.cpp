//===- ThreadPoolTest.cpp - Loops over output rows ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every index once, whatever the range, grain and number of threads; strict
// floating point on all workers.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/ThreadPool.h"
#include "runtime/exec/FpEnv.h"

#include <gtest/gtest.h>

#include <atomic>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace trc;

TEST(ThreadPool, EveryIndexOnce) {
  for (unsigned threads : {1u, 2u, 3u, 5u}) {
    ThreadPool pool(threads);
    for (int64_t n : {0, 1, 2, 7, 64, 1000})
      for (int64_t grain : {1, 3, 100}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        pool.parallelFor(5, 5 + n, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            ++seen[static_cast<size_t>(i - 5)];
        });
        for (auto &s : seen)
          ASSERT_EQ(1, s.load());
      }
  }
}

TEST(ThreadPool, ConcurrentCallersDoNotWaitForEachOther) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int r = 0; r < 200; ++r)
        pool.parallelFor(
            0, 100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  for (std::thread &t : callers)
    t.join();
  EXPECT_EQ(4 * 200 * 100, sum.load());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Stacks take address space: here it ends after a few threads.
TEST(ThreadPool, GoesOnWithTheThreadsThatThereAre) {
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rlimit limit = {768u << 20, 768u << 20};
    ::setrlimit(RLIMIT_AS, &limit);
    ThreadPool pool(4000);
    std::atomic<int64_t> sum{0};
    pool.parallelFor(0, 10000, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sum += i;
    });
    ::_exit(pool.threads() < 4000 && sum == 49995000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

TEST(ThreadPool, WorkersKeepDenormals) {
  ThreadPool pool(4);
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); // FTZ and DAZ, as a trainer may have them
  std::atomic<unsigned> wrong{0};
  {
    ScopedStrictFp strict;
    pool.parallelFor(0, 64, 1, [&](int64_t, int64_t) {
      if (_mm_getcsr() & 0x8040)
        ++wrong;
    });
  }
  EXPECT_EQ(0u, wrong.load());
  EXPECT_EQ(before | 0x8040, _mm_getcsr() & ~0x3fu);
  _mm_setcsr(before);
}
