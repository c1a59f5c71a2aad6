//===- MemoryLimit.h - A control group that bounds memory -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Peers and mmap may keep no more of their rows in memory than is said in the
// table, the page cache included: they run in a control group of their own.
// By default one is made below this process's group of version 2; a folder of
// either version may be named instead. Where none can be made, why() says so
// and the variant drops its pages before each batch.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_MEMORYLIMIT_H
#define TERRACE_TEST_BENCH_STORE_MEMORYLIMIT_H

#include <cstdint>
#include <string>

namespace trc::bench {

class MemoryLimit {
public:
  /// `parent`: a folder of control groups, or empty.
  MemoryLimit(const std::string &parent, uint64_t bytes);
  /// Removes the group; its processes must have ended.
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit &) = delete;
  MemoryLimit &operator=(const MemoryLimit &) = delete;

  /// Moves the calling process into the group; false if that fails.
  bool enter() const;
  /// Empty: the limit holds.
  const std::string &why() const { return reason; }
  uint64_t bytes() const { return limit; }

private:
  std::string make(const std::string &parent);

  std::string group, reason;
  uint64_t limit;
};

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_MEMORYLIMIT_H
