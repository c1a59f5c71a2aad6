//===- LrSchedule.h - The factor of every table's learning rate -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lr_scale(step) = min(1, step / warmup), then, from decay_start on,
// max(end_scale, ((decay_start + decay_steps - step) / decay_steps) ^ power);
// step is the global step, 1 for the first. A pure function, so that a resumed
// run has the same rates.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_LRSCHEDULE_H
#define TERRACE_RUNTIME_MODEL_LRSCHEDULE_H

#include <cstdint>

namespace trc::model {

struct LrSchedule {
  int64_t warmupSteps = 0;
  int64_t decayStart = 0, decaySteps = 0; // decaySteps 0: no decay
  double decayPower = 1, endScale = 0;

  double at(int64_t step) const;
};

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_LRSCHEDULE_H
