//===- CostModel.h - Expected time and traffic of a step --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Analytic: occurrences, unique rows and misses from the profile (or the stated
// assumptions), times from the machine model. Pure functions.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_COSTMODEL_COSTMODEL_H
#define TERRACE_LIB_COSTMODEL_COSTMODEL_H

#include "CostModel/Footprint.h"

#include <array>

namespace terrace::planner {

/// What one table sees in a step, whatever the decision.
struct TableLoad {
  double ids = 0;      // occurrences gathered, after bag-level dedup
  double gradIds = 0;  // contributions of the update
  double unique = 0;   // distinct rows
  double bags = 0;     // pooled, after dedup
  double gradBags = 0; // outputs with a gradient, before it
  double gatherBytes = 0;
  double updateBytes = 0;
};
std::vector<TableLoad> tableLoads(const Problem &problem);

enum class Stage {
  Ingest,
  Dedup,
  Unique,
  Probe,
  Fetch,
  Store,
  Copy,
  Gather,
  Expand,
  Head,
  Update,
  Exchange,
  Handoff, // outputs to and gradients from a trainer
  Sync     // lanes that wait for each other
};
inline constexpr int stageCount = 14;
llvm::StringRef stageName(Stage stage);

struct TableTraffic {
  double misses = 0;                     // rows a step fetched from home
  double fetchBytes = 0, storeBytes = 0; // as the device moves them
  double missRatio = 0;
};

struct StepCost {
  std::array<double, stageCount> seconds{}; // of the slowest worker
  double step = 0;   // seconds with the pipeline as scheduled
  double serial = 0; // without any overlap
  std::string bound; // the lane or resource that sets `step`
  std::vector<TableTraffic> tables;
  std::vector<double> workerSeconds; // step of each
  double at(Stage s) const { return seconds[static_cast<int>(s)]; }
};

StepCost stepCost(const Problem &problem, const Decision &decision,
                  const Footprint &footprint,
                  const std::vector<TableLoad> &loads);

/// Cores that a kernel over `outputs` bags or rows of `dim` columns keeps busy:
/// the runtime gives a thread no less than its grain.
double kernelCores(double cores, double outputs, int64_t dim);

/// Predicted seconds of a table alone, for sharding and ordering.
double tableSeconds(const Problem &problem, int table, const TableLoad &load);

} // namespace terrace::planner

#endif // TERRACE_LIB_COSTMODEL_COSTMODEL_H
