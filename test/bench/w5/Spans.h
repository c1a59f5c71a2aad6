//===- Spans.h - What the device gives to a bare loop -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random reads of a file's written extents and sequential writes beside it,
// with io_uring and nothing else: the two rates of the roofline, and the CPU
// that one I/O costs.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_W5_SPANS_H
#define TERRACE_TEST_BENCH_W5_SPANS_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <string>

namespace trc::w5 {

struct Rates {
  double perSecond = 0;      // transfers
  double bytesPerSecond = 0; // of them
  double cpuUs = 0;          // user and system time of one
};

/// Batches of `count` reads of `bytes`, each sorted by offset as the store
/// sorts its own, for at least `seconds`.
Result<Rates> readSpan(const std::string &path, uint32_t bytes, uint32_t count,
                       double seconds);

/// Writes `total` bytes over a file of written extents in long transfers; makes
/// and removes it.
Result<Rates> writeSpan(const std::string &path, uint64_t total);

} // namespace trc::w5

#endif // TERRACE_TEST_BENCH_W5_SPANS_H
