//===- Stats.h - Counters as JSON -------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects the counters of a pipeline into the object that trc_stats returns.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STATS_STATS_H
#define TERRACE_RUNTIME_STATS_STATS_H

#include "runtime/exec/Pipeline.h"

#include <string>

namespace trc {

struct SessionCounters {
  int64_t step = 0, samples = 0, submitted = 0, ended = 0;
  double lrScale = 1;
  double cutMs = 0; // of the last checkpoint: training stood still
  HeadState head;
};

std::string statsJson(const Pipeline &pipeline, const SessionCounters &session,
                      const std::vector<const Device *> &devices);

} // namespace trc

#endif // TERRACE_RUNTIME_STATS_STATS_H
