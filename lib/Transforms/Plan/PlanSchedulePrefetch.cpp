//===- PlanSchedulePrefetch.cpp - Lanes, batches ahead, ring depths -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes only. The stages are lib/Schedule's, which the planner has
// reckoned with, so the plan is the one that was decided.
//
//===----------------------------------------------------------------------===//
#include "Planner/Explain.h"
#include "Schedule/HappensBefore.h"
#include "Schedule/Scheduler.h"
#include "Schedule/Stages.h"
#include "Transforms/Plan/PlanPasses.h"
#include "Transforms/Plan/ProgramGraph.h"
#include "Transforms/Plan/StageCosts.h"

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
  FailureOr<std::pair<int64_t, std::string>> choose(plan::ProgramOp program,
                                                    const ProgramGraph &p) {
    if (lookahead >= 0)
      return std::make_pair(int64_t(lookahead), std::string("option"));
    if (program.getLookahead())
      return std::make_pair(int64_t(*program.getLookahead()),
                            std::string("program"));
    if (plan::DecisionAttr decision = plan::getDecision(program))
      return std::make_pair(decision.getLookahead(), std::string("decision"));
    FailureOr<ProgramModel> model = ProgramModel::of(program);
    if (failed(model))
      return failure();
    // Nobody has decided: the smallest that is about as fast as any, among
    // those for which the groups that have slots have enough.
    schedule::Graph graph = p.graph;
    for (schedule::Group &group : graph.groups)
      if (group.slots == 0)
        group.slots = group.rows;
    schedule::Choice choice =
        schedule::chooseLookahead(graph, stageCosts(*model, p));
    return std::make_pair(
        int64_t(choice.lookahead),
        llvm::formatv("predicted {0} a batch, {1} without",
                      planner::formatSeconds(choice.seconds),
                      planner::formatSeconds(choice.tried.front()))
            .str());
  }

  LogicalResult schedule(plan::ProgramOp program) {
    FailureOr<ProgramGraph> built = ProgramGraph::of(program);
    if (failed(built))
      return failure();
    auto chosen = choose(program, *built);
    if (failed(chosen))
      return failure();
    auto [depth, source] = *chosen;
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
                       depth, source, depth > 0 ? depth - 1 : 0)
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
