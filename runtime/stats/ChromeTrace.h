//===- ChromeTrace.h - Lanes over time, for a browser -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One complete event per op instance, in the Trace Event format that
// chrome://tracing and Perfetto read. Written as it goes: a crash leaves a file
// that both still read (the closing bracket is optional).
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STATS_CHROMETRACE_H
#define TERRACE_RUNTIME_STATS_CHROMETRACE_H

#include "runtime/core/Plan.h"

#include <cstdio>
#include <memory>
#include <mutex>

namespace trc {

class ChromeTrace {
public:
  static Result<std::unique_ptr<ChromeTrace>> create(const std::string &path,
                                                     const Plan &plan);
  ~ChromeTrace();
  void add(int op, int64_t t, uint64_t beginNs, uint64_t endNs);

private:
  ChromeTrace(const Plan &plan, std::FILE *file) : plan(plan), file(file) {}
  const Plan &plan;
  std::FILE *file;
  std::mutex mutex;
};

} // namespace trc

#endif // TERRACE_RUNTIME_STATS_CHROMETRACE_H
