//===- Pipelines.h - The order of all passes --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only place that combines passes; the driver, terrace-opt and tests use
// these. Each pipeline ends with the gate that the next stage relies on.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_PIPELINES_PIPELINES_H
#define TERRACE_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"

#include <string>

namespace terrace {

struct EmbPipelineOptions {
  double minDedupFactor = 1.5; ///< as emb-dedup's min-factor
  std::string planFile;        ///< a decision to take instead of searching
};

struct PlanPipelineOptions {
  int64_t lookahead = -1; ///< -1: as decided
};

/// Imported emb to sharded and placed emb: emb-dedup, emb-decide, emb-shard,
/// emb-place.
void buildEmbPipeline(mlir::OpPassManager &manager,
                      const EmbPipelineOptions &options = {});

/// Placed emb to a plan that is proven and fits its tiers: emb-to-plan,
/// plan-group, plan-schedule-prefetch, plan-allocate, plan-verify.
void buildPlanPipeline(mlir::OpPassManager &manager,
                       const PlanPipelineOptions &options = {});

/// --terrace-emb-pipeline, --terrace-plan-pipeline and --terrace-pipeline (both
/// in a row), and every pass of ours by its own name.
void registerTerracePasses();
void registerTerracePipelines();

} // namespace terrace

#endif // TERRACE_PIPELINES_PIPELINES_H
