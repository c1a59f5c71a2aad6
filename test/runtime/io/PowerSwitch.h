//===- PowerSwitch.h - Counts durable operations, cuts the power *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One counter for everything of a test that changes what is on disk: writes
// and flushes of a CrashDevice, and the calls of a CrashFolder. A sweep runs
// its story once to learn the number of operations, then once for each n with
// cutAt(n). Thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_IO_POWERSWITCH_H
#define TERRACE_TEST_RUNTIME_IO_POWERSWITCH_H

#include <cstdint>
#include <mutex>

namespace trc {

class PowerSwitch {
public:
  enum class Answer {
    Go,    // carry it out
    Begun, // the power goes while it is under way: it may have happened, in
           // part, and is reported as failed
    Gone   // without power: nothing happens, reported as failed
  };

  /// The power goes during operation `n`, counted from 0.
  void cutAt(uint64_t n) {
    std::lock_guard<std::mutex> lock(mutex);
    limit = n;
  }
  /// The power goes now.
  void cut() {
    std::lock_guard<std::mutex> lock(mutex);
    off = true;
  }

  /// For those who carry operations out.
  Answer operation() {
    std::lock_guard<std::mutex> lock(mutex);
    if (off)
      return Answer::Gone;
    if (count++ < limit)
      return Answer::Go;
    off = true;
    return Answer::Begun;
  }

  bool gone() const {
    std::lock_guard<std::mutex> lock(mutex);
    return off;
  }
  /// Operations so far, the one that was cut included.
  uint64_t operations() const {
    std::lock_guard<std::mutex> lock(mutex);
    return count;
  }

private:
  mutable std::mutex mutex;
  uint64_t count = 0, limit = UINT64_MAX;
  bool off = false;
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_IO_POWERSWITCH_H
