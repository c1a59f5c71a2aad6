//===- Wear.h - What training writes to a drive -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drives are sold with a number of full writes a day that they bear for their
// warranted life (DWPD). Writes here: trained rows that leave the cache, and
// what cleaning a log-structured store copies on. Checkpoints come on top, by
// the rows that a cache holds dirty when one is taken.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_COSTMODEL_WEAR_H
#define TERRACE_LIB_COSTMODEL_WEAR_H

#include "CostModel/CostModel.h"

namespace terrace::planner {

/// Bytes that a store writes for each byte of rows given to it, at most: with
/// the space that it is planned with, and no more written between checkpoints
/// than the spec's churn.
constexpr double writeAmplification = 1.5;

struct TierWear {
  double readsPerStep = 0;  // rows, by operations of the device
  double writesPerStep = 0; // rows
  double bytesPerStep = 0;  // written
  /// Full writes of the tier's capacity in a day of steps; 0 where nothing is
  /// written or nothing bounds the capacity.
  double driveWritesPerDay = 0;
};

/// By tier; of the node's drives, or of one worker's where they are its own.
std::vector<TierWear> tierWear(const Problem &problem, const Decision &decision,
                               const StepCost &cost);

/// Tiers whose limit the plan breaks, as lines for the user.
struct WearFault {
  int tier = -1;
  std::string message;
};
std::vector<WearFault> wearFaults(const Problem &problem,
                                  const Decision &decision,
                                  const StepCost &cost);

} // namespace terrace::planner

#endif // TERRACE_LIB_COSTMODEL_WEAR_H
