//===- Variant.cpp - Clocks -----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Variant.h"

#include <ctime>
#include <fstream>

using namespace trc::bench;

static double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double trc::bench::wallSeconds() { return seconds(CLOCK_MONOTONIC); }

uint64_t trc::bench::writtenBytes() {
  std::ifstream in("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (in >> key >> value)
    if (key == "write_bytes:")
      return value;
  return 0;
}

Meter::Meter() : wall(wallSeconds()), cpu(seconds(CLOCK_PROCESS_CPUTIME_ID)) {}

void Meter::pause() {
  pauseWall = wallSeconds();
  // This thread's: others may still be at work on what is measured.
  pauseCpu = seconds(CLOCK_THREAD_CPUTIME_ID);
}

void Meter::resume() {
  outWall += wallSeconds() - pauseWall;
  outCpu += seconds(CLOCK_THREAD_CPUTIME_ID) - pauseCpu;
}

void Meter::add(Measured &sum) {
  sum.seconds += wallSeconds() - wall - outWall;
  sum.cpu += seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu - outCpu;
}
