//===- Variant.h - One way to do what a benchmark measures ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface that all variants have in common, and what is measured of
// them. A variant owns its files and removes them. Used by one thread.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_VARIANT_H
#define TERRACE_TEST_BENCH_STORE_VARIANT_H

#include "runtime/core/Status.h"
#include "test/bench/store/Workload.h"

#include <functional>
#include <memory>
#include <string>

namespace trc::bench {

/// Sums over batches.
struct Measured {
  double seconds = 0, cpu = 0; // wall; of all threads of the process
  uint64_t rows = 0;           // asked for
  uint64_t wrong = 0;          // content was not what it must be
  uint64_t dirty = 0;          // written back
  uint64_t deviceReads = 0;    // where the variant counts them
  uint64_t writtenBytes = 0;   // that this process sent to block devices
  uint64_t cleanedBytes = 0;   // of these: copied by the store's cleaning

  Measured &operator+=(const Measured &m) {
    seconds += m.seconds;
    cpu += m.cpu;
    rows += m.rows;
    wrong += m.wrong;
    dirty += m.dirty;
    deviceReads += m.deviceReads;
    writtenBytes += m.writtenBytes;
    cleanedBytes += m.cleanedBytes;
    return *this;
  }
};

class Variant {
public:
  virtual ~Variant() = default;
  /// Writes all rows, durable, and gets ready; `note` says what a reader of the
  /// table must know.
  virtual Status prepare(std::string &note) = 0;
  /// Does one batch of the workload and adds what it took.
  virtual Status run(uint64_t batch, Measured &sum) = 0;
  /// Lets work in the background come to an end; adds what that took.
  virtual Status endRound(Measured &sum) { return {}; }
};

using MakeVariant = std::function<std::unique_ptr<Variant>()>;

/// Measures from its construction until add(), less what is done between
/// pause() and resume() on this thread.
class Meter {
public:
  Meter();
  void pause();
  void resume();
  void add(Measured &sum);

private:
  double wall, cpu, pauseWall = 0, pauseCpu = 0;
  double outWall = 0, outCpu = 0;
};

/// Monotonic seconds.
double wallSeconds();
/// Bytes that this process sent to block devices (/proc/self/io); 0 where the
/// kernel does not count.
uint64_t writtenBytes();

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_VARIANT_H
