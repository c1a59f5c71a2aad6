//===- Pipelines.cpp - The order of all passes ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Pipelines/Pipelines.h"

#include "Conversion/EmbToPlan/EmbToPlan.h"
#include "Transforms/Emb/EmbPasses.h"
#include "Transforms/Plan/PlanPasses.h"

#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace terrace {

void buildEmbPipeline(OpPassManager &manager,
                      const EmbPipelineOptions &options) {
  EmbDedupOptions dedup;
  dedup.minFactor = options.minDedupFactor;
  manager.addPass(createEmbDedup(dedup));
  EmbDecideOptions decide;
  decide.planFile = options.planFile;
  manager.addPass(createEmbDecide(decide));
  manager.addPass(createEmbShard());
  manager.addPass(createEmbPlace());
}

void buildPlanPipeline(OpPassManager &manager,
                       const PlanPipelineOptions &options) {
  manager.addPass(createEmbToPlan());
  manager.addPass(createPlanGroup());
  manager.addPass(createPlanDirectLookup());
  PlanSchedulePrefetchOptions schedule;
  schedule.lookahead = options.lookahead;
  manager.addPass(createPlanSchedulePrefetch(schedule));
  manager.addPass(createPlanAllocate());
  manager.addPass(createPlanVerify());
}

namespace {

/// The options of both pipelines as the command line spells them.
struct PipelineFlags : public PassPipelineOptions<PipelineFlags> {
  Option<double> minFactor{*this, "min-factor",
                           llvm::cl::desc("As emb-dedup's"),
                           llvm::cl::init(EmbPipelineOptions().minDedupFactor)};
  Option<std::string> planFile{*this, "plan", llvm::cl::desc("As emb-decide's"),
                               llvm::cl::init("")};
  Option<int64_t> lookahead{*this, "lookahead",
                            llvm::cl::desc("As plan-schedule-prefetch's"),
                            llvm::cl::init(-1)};

  EmbPipelineOptions emb() const { return {minFactor, planFile}; }
  PlanPipelineOptions plan() const { return {lookahead}; }
};

} // namespace

void registerTerracePasses() {
  registerEmbPasses();
  registerEmbToPlanPasses();
  registerPlanPasses();
}

void registerTerracePipelines() {
  PassPipelineRegistration<PipelineFlags>(
      "terrace-emb-pipeline", "Imported emb to sharded and placed emb",
      [](OpPassManager &manager, const PipelineFlags &flags) {
        buildEmbPipeline(manager, flags.emb());
      });
  PassPipelineRegistration<PipelineFlags>(
      "terrace-plan-pipeline", "Placed emb to a proven plan",
      [](OpPassManager &manager, const PipelineFlags &flags) {
        buildPlanPipeline(manager, flags.plan());
      });
  PassPipelineRegistration<PipelineFlags>(
      "terrace-pipeline", "Imported emb to a proven plan",
      [](OpPassManager &manager, const PipelineFlags &flags) {
        buildEmbPipeline(manager, flags.emb());
        buildPlanPipeline(manager, flags.plan());
      });
}

} // namespace terrace
