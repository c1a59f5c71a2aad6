//===- PlanAllocate.cpp - Rings in one arena, bytes per tier --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every ring is alive in every batch, so offsets are a packing and the arena
// is their sum; planner::arenaBytes says the same number beforehand.
//
//===----------------------------------------------------------------------===//
#include "CostModel/Footprint.h"
#include "Planner/Explain.h"
#include "Transforms/Plan/PlanPasses.h"
#include "Transforms/Plan/ProgramModel.h"

#include "mlir/IR/Remarks.h"

namespace terrace {
#define GEN_PASS_DEF_PLANALLOCATE
#include "Transforms/Plan/PlanPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

struct PlanAllocate : public terrace::impl::PlanAllocateBase<PlanAllocate> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      if (failed(allocate(program)))
        return signalPassFailure();
  }

  LogicalResult allocate(plan::ProgramOp program) {
    FailureOr<ProgramModel> model = ProgramModel::of(program);
    if (failed(model))
      return failure();
    int64_t end = 0;
    StringRef tier;
    for (auto ring : program.getBody().front().getOps<plan::RingOp>()) {
      if (!tier.empty() && ring.getTier() != tier)
        return ring.emitError("lies in tier '")
               << ring.getTier() << "', other rings in '" << tier
               << "'; one arena holds all rings";
      tier = ring.getTier();
      int64_t bytes = model->ringBytes(ring);
      ring.setBytes(bytes);
      ring.setOffset(end);
      end += llvm::alignTo(bytes * int64_t(ring.getDepth()),
                           planner::ringAlignment);
    }
    program.setArena(end);
    remark::passed(program.getLoc(), remark::RemarkOpts::name("Arena")
                                         .category("plan-allocate")
                                         .function(program.getSymName()))
        << remark::add("rings take {0} of {1}", planner::formatBytes(end),
                       tier.str())
        << remark::metric("arena", end);
    return bound(*model);
  }

  LogicalResult bound(const ProgramModel &model) {
    for (const TierUse &use : model.tierUse()) {
      emb::TierOp tier = use.tier;
      int64_t capacity = int64_t(tier.getBytes());
      if (use.total() > capacity)
        return tier.emitError("tier '")
               << tier.getSymName() << "' has " << capacity << " bytes ("
               << planner::formatBytes(capacity) << "), but the plan needs "
               << use.total() << " (" << planner::formatBytes(use.total())
               << "): rings " << use.rings << ", slots " << use.slots
               << ", index " << use.index << ", rows " << use.rows
               << "; give it at least " << use.total() << " bytes";
      if (use.total())
        remark::analysis(tier.getLoc(), remark::RemarkOpts::name("Bound")
                                            .category("plan-allocate")
                                            .function(tier.getSymName()))
            << remark::add(
                   "{0} of {1} in {2}", planner::formatBytes(use.total()),
                   planner::formatBytes(capacity), tier.getSymName().str())
            << remark::metric("bytes", use.total())
            << remark::metric("capacity", capacity)
            << remark::metric("rings", use.rings)
            << remark::metric("slots", use.slots)
            << remark::metric("index", use.index)
            << remark::metric("rows", use.rows);
    }
    return success();
  }
};

} // namespace
