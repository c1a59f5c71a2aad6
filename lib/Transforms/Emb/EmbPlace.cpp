//===- EmbPlace.cpp - Writes placements -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Transforms/Emb/EmbPasses.h"
#include "dialects/emb/Emb.h"
#include "dialects/plan/Plan.h"

#include "mlir/IR/Remarks.h"

namespace terrace {
#define GEN_PASS_DEF_EMBPLACE
#include "Transforms/Emb/EmbPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

class EmbPlacePass : public terrace::impl::EmbPlaceBase<EmbPlacePass> {
public:
  using EmbPlaceBase::EmbPlaceBase;
  void runOnOperation() override;

private:
  LogicalResult place(emb::TableOp table, plan::DecisionAttr decision);
};

LogicalResult EmbPlacePass::place(emb::TableOp table,
                                  plan::DecisionAttr decision) {
  plan::TableDecisionAttr d = decision.getTable(table.getSymName());
  if (!d)
    return table.emitError("plan.decision says nothing about table '")
           << table.getSymName() << "'; run emb-decide again";
  ModuleOp module = getOperation();
  for (StringAttr tier : {d.getHome(), d.getCache()})
    if (tier && !module.lookupSymbol<emb::TierOp>(tier))
      return table.emitError("plan.decision puts table '")
             << table.getSymName() << "' in tier '" << tier.getValue()
             << "', and the module has no such tier";
  MLIRContext *context = &getContext();
  table.setPlacementAttr(emb::PlacementAttr::get(
      context, FlatSymbolRefAttr::get(d.getHome()),
      d.getCache() ? FlatSymbolRefAttr::get(d.getCache()) : FlatSymbolRefAttr(),
      d.getRetained(), d.getPolicy()));
  auto r = remark::passed(table.getLoc(), remark::RemarkOpts::name("placement")
                                              .category("emb-place")
                                              .function(table.getSymName()));
  r << remark::add("home {0}", d.getHome().getValue());
  if (d.getCache())
    r << remark::metric("CacheTier", d.getCache().getValue())
      << remark::metric("RetainedRows", d.getRetained());
  return success();
}

void EmbPlacePass::runOnOperation() {
  ModuleOp module = getOperation();
  plan::DecisionAttr decision = plan::getDecision(module);
  if (!decision) {
    module.emitError("emb-place needs plan.decision: run emb-decide first");
    return signalPassFailure();
  }
  // Without `memory:` the planner took plain memory for granted.
  if (module.getOps<emb::TierOp>().empty()) {
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    emb::TierOp::create(builder, module.getLoc(), "dram", emb::TierKind::DRAM,
                        std::numeric_limits<int64_t>::max() / 4, ArrayAttr(),
                        /*per_worker=*/false, FloatAttr(),
                        /*warn_of_wear=*/false);
  }
  for (auto table : module.getOps<emb::TableOp>())
    if (failed(place(table, decision)))
      return signalPassFailure();
}

} // namespace
