//===- PlanVerify.cpp - Proves the order of a program ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adapter over lib/Schedule: located errors, at most a few per program, since
// one wrong attribute breaks many pairs.
//
//===----------------------------------------------------------------------===//
#include "Schedule/HappensBefore.h"
#include "Schedule/Waits.h"
#include "Transforms/Plan/PlanPasses.h"
#include "Transforms/Plan/ProgramGraph.h"

#include "mlir/IR/Remarks.h"

namespace terrace {
#define GEN_PASS_DEF_PLANVERIFY
#include "Transforms/Plan/PlanPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

constexpr size_t shownFindings = 5;

struct PlanVerify : public terrace::impl::PlanVerifyBase<PlanVerify> {
  void runOnOperation() override {
    bool failed = false;
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      failed |= mlir::failed(verify(program));
    if (failed)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult verify(plan::ProgramOp program) {
    FailureOr<ProgramGraph> built = ProgramGraph::of(program);
    if (mlir::failed(built))
      return failure();
    schedule::addRingWaits(built->graph);
    std::vector<schedule::Finding> findings = schedule::verify(built->graph);
    for (size_t i = 0; i < findings.size() && i < shownFindings; ++i) {
      const schedule::Finding &f = findings[i];
      Operation *at =
          f.op >= 0 ? built->ops[f.op].getOperation() : program.getOperation();
      InFlightDiagnostic error = at->emitError()
                                 << "[" << f.rule << "] " << f.message;
      if (f.other >= 0)
        error.attachNote(built->ops[f.other].getLoc())
            << built->graph.ops[f.other].name << " is here";
    }
    if (findings.size() > shownFindings)
      program.emitRemark() << findings.size() - shownFindings
                           << " more findings of the same schedule";
    if (!findings.empty())
      return failure();
    remark::analysis(program.getLoc(),
                     remark::RemarkOpts::name("Proven").category("plan-verify"))
        << remark::metric("pairs",
                          int64_t(schedule::requirements(built->graph).size()))
        << remark::metric("ops", int64_t(built->ops.size()));
    return success();
  }
};

} // namespace
