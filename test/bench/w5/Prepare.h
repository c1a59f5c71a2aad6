//===- Prepare.h - States and data for the measured steps -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state whose every row was written, and, per stream, the cache that 300
// steps would have left, as the file that a warm open takes it from: made by
// the runtime's cache and the runtime's writer, without the 300 steps' I/O.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_W5_PREPARE_H
#define TERRACE_TEST_BENCH_W5_PREPARE_H

#include "runtime/core/Plan.h"

#include <nlohmann/json.hpp>

#include <string>

namespace trc::w5 {

/// The plan of a library made by --emit=lib.
Result<Plan> planOf(const std::string &library);

/// Writes every row of every table through the C ABI and closes the state:
/// streaming, so it takes no space but the state's own.
Status fillState(const std::string &library, const std::string &state);

struct WarmOptions {
  std::string library, stream;
  std::string state;      // a closed one; its closed root is written anew
  std::string data;       // gets the measured steps' samples
  std::string memoryData; // the same with ids modulo memoryRows
  int64_t memoryRows = 0;
  int64_t warmup = 300, steps = 50;
};

/// Simulates, writes what `options` names, and returns misses of the plan's
/// policy, of LRU and of Belady over the measured steps.
Result<nlohmann::json> warmState(const WarmOptions &options);

} // namespace trc::w5

#endif // TERRACE_TEST_BENCH_W5_PREPARE_H
