//===- PlanSchedulePrefetch.cpp - Lanes, batches ahead, ring depths -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes only. The stages are lib/Schedule's, which the planner has
// reckoned with, so the plan is the one that was decided.
//
//===----------------------------------------------------------------------===//
#include "Schedule/HappensBefore.h"
#include "Schedule/Scheduler.h"
#include "Schedule/Stages.h"
#include "Transforms/Plan/PlanPasses.h"
#include "Transforms/Plan/ProgramGraph.h"

#include "mlir/IR/Remarks.h"

namespace terrace {
#define GEN_PASS_DEF_PLANSCHEDULEPREFETCH
#include "Transforms/Plan/PlanPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

struct PlanSchedulePrefetch
    : public terrace::impl::PlanSchedulePrefetchBase<PlanSchedulePrefetch> {
  using PlanSchedulePrefetchBase::PlanSchedulePrefetchBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      if (failed(schedule(program)))
        return signalPassFailure();
  }

  /// The lookahead, and who says so.
  std::pair<int64_t, StringRef> choose(plan::ProgramOp program,
                                       const ProgramGraph &p) {
    if (lookahead >= 0)
      return {lookahead, "option"};
    if (program.getLookahead())
      return {int64_t(*program.getLookahead()), "program"};
    if (plan::DecisionAttr decision = plan::getDecision(program))
      return {decision.getLookahead(), "decision"};
    bool cached = llvm::any_of(
        p.graph.groups, [](const schedule::Group &g) { return g.cached; });
    return {cached ? 2 : 0, "smallest that hides a fetch"};
  }

  LogicalResult schedule(plan::ProgramOp program) {
    FailureOr<ProgramGraph> built = ProgramGraph::of(program);
    if (failed(built))
      return failure();
    auto [depth, source] = choose(program, *built);
    if (depth < 0 || depth > schedule::maxLookahead)
      return program.emitError("lookahead ")
             << depth << " (" << source << ") is outside 0 .. "
             << schedule::maxLookahead;
    if (!schedule::applyLookahead(built->graph, int(depth)))
      return program.emitError("needs the lanes host, io, copy, work and "
                               "caller that emb-to-plan makes");
    schedule::Graph &graph = built->graph;
    MLIRContext *context = &getContext();
    Builder builder(context);
    for (auto [i, op] : llvm::enumerate(graph.ops))
      if (op.kind != schedule::OpKind::Other)
        built->ops[i].setSchedule(
            FlatSymbolRefAttr::get(context, graph.lanes[op.lane].name),
            op.ahead);
    int64_t ringSlots = 0;
    for (auto [i, ring] : llvm::enumerate(graph.rings)) {
      built->rings[i].setDepth(ring.depth);
      ringSlots += ring.depth;
    }
    program.setLookahead(depth);
    for (auto [g, group] : llvm::enumerate(graph.groups))
      if (group.cached)
        sizeSlots(built->groups[g], graph, int(g));
    remark::passed(program.getLoc(), remark::RemarkOpts::name("Lookahead")
                                         .category("plan-schedule-prefetch")
                                         .function(program.getSymName()))
        << remark::add("lookahead {0} ({1}): the fetch of batch t + {0} hides "
                       "behind {2} batches of compute",
                       depth, source.str(), depth > 0 ? depth - 1 : 0)
        << remark::metric("lookahead", depth)
        << remark::metric("ring_slots", ringSlots);
    return success();
  }

  void sizeSlots(plan::GroupOp group, const schedule::Graph &graph, int index) {
    int64_t overflow = schedule::smallestSlots(graph, index);
    if (!group.getSlots()) {
      int64_t rows = graph.groups[index].rows;
      group.setSlots(std::max<int64_t>(
          1,
          std::min(rows, int64_t(group.getRetained().value_or(0)) + overflow)));
    }
    remark::passed(group.getLoc(), remark::RemarkOpts::name("Slots")
                                       .category("plan-schedule-prefetch")
                                       .function(group.getSymName()))
        << remark::add("group {0}: {1} slots, of which {2} batches in flight "
                       "may pin {3}",
                       group.getSymName().str(), int64_t(*group.getSlots()),
                       schedule::livePinSets(graph, index), overflow)
        << remark::metric("slots", int64_t(*group.getSlots()))
        << remark::metric("smallest", overflow);
  }
};

} // namespace
