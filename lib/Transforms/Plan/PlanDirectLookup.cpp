//===- PlanDirectLookup.cpp - Look-ups of rows in memory, by id -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group without a cache holds its rows one after the other, so that a look-up
// needs neither unique rows nor their slots. The planner sizes rings by the
// same rule (runtime/core/RingLayout.h, readsById).
//
//===----------------------------------------------------------------------===//
#include "Transforms/Plan/PlanPasses.h"
#include "Transforms/Plan/ProgramModel.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"

namespace terrace {
#define GEN_PASS_DEF_PLANDIRECTLOOKUP
#include "Transforms/Plan/PlanPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

/// The kernels that read by id, made where they are missing.
class DirectKernels {
public:
  explicit DirectKernels(ModuleOp module) : module(module) {}

  FailureOr<FlatSymbolRefAttr> of(Operation *user, Attribute name) {
    auto symbol = cast<FlatSymbolRefAttr>(name);
    if (auto found = made.find(symbol); found != made.end())
      return found->second;
    auto kernel = module.lookupSymbol<plan::KernelOp>(symbol.getAttr());
    if (!kernel)
      return user->emitError() << symbol << " is not a plan.kernel";
    plan::KernelConfigAttr c = kernel.getConfig();
    auto config = plan::KernelConfigAttr::get(
        c.getContext(), c.getDim(), c.getElement(), c.getPooling(),
        c.getWeighted(), c.getOptimizer(), c.getDecay(), c.getDecoupled(),
        c.getClip(), c.getStochastic(), /*direct=*/true);
    std::string direct = config.getKernelName(kernel.getKind());
    if (!module.lookupSymbol(direct)) {
      OpBuilder b(kernel);
      b.setInsertionPointAfter(kernel);
      plan::KernelOp::create(b, kernel.getLoc(), b.getStringAttr(direct),
                             kernel.getKindAttr(), config);
    }
    return made[symbol] = FlatSymbolRefAttr::get(c.getContext(), direct);
  }

  /// Those whose last user now reads by id.
  void dropUnused() {
    llvm::DenseSet<Attribute> used;
    module.walk([&](plan::GatherPoolOp gather) {
      used.insert(gather.getKernels().begin(), gather.getKernels().end());
    });
    for (auto [symbol, direct] : made)
      if (!used.contains(symbol))
        module.lookupSymbol(cast<FlatSymbolRefAttr>(symbol).getAttr())->erase();
  }

private:
  ModuleOp module;
  llvm::MapVector<Attribute, FlatSymbolRefAttr> made; // by name
};

struct PlanDirectLookup
    : public terrace::impl::PlanDirectLookupBase<PlanDirectLookup> {
  void runOnOperation() override {
    DirectKernels kernels(getOperation());
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      if (failed(rewrite(program, kernels)))
        return signalPassFailure();
    kernels.dropUnused();
  }

  LogicalResult rewrite(plan::ProgramOp program, DirectKernels &kernels) {
    FailureOr<ProgramModel> model = ProgramModel::of(program);
    if (failed(model))
      return failure();
    Block &body = program.getPipeline().getBody().front();
    SmallVector<plan::GatherPoolOp> gathers(body.getOps<plan::GatherPoolOp>());
    llvm::DenseMap<int, FlatSymbolRefAttr> featureKernels;
    for (plan::GatherPoolOp gather : gathers) {
      int g = model->group(gather.getGroup());
      if (g < 0)
        return gather.emitError("works on no group of the module");
      if (gather.getDirect() || !say(*model, g))
        continue;
      SmallVector<Attribute> direct;
      for (Attribute kernel : gather.getKernels()) {
        FailureOr<FlatSymbolRefAttr> found = kernels.of(gather, kernel);
        if (failed(found))
          return failure();
        direct.push_back(*found);
      }
      gather.setKernelsAttr(ArrayAttr::get(&getContext(), direct));
      gather.setDirect(true);
      for (auto [f, shape] : llvm::enumerate(model->shape.features)) {
        if (shape.group != g || !model->features[f].getKernel())
          continue;
        FailureOr<FlatSymbolRefAttr> found =
            kernels.of(gather, model->features[f].getKernel());
        if (failed(found))
          return failure();
        featureKernels[int(f)] = *found;
      }
      if (!model->trains)
        dropUnique(gather);
    }
    nameKernels(*model, featureKernels);
    return success();
  }

  /// Whether a group's rows are read by id, and why not.
  static bool say(const ProgramModel &model, int g) {
    plan::GroupOp group = model.groups[size_t(g)];
    StringRef name = group.getSymName();
    auto options = remark::RemarkOpts::name("DirectLookup")
                       .category("plan-direct-lookup")
                       .function(name);
    if (trc::readsById(model.shape, g)) {
      remark::passed(group.getLoc(), options)
          << remark::add("{0}: look-ups read rows by id; {1}", name,
                         model.trains ? "unique rows serve updates only"
                                      : "no unique rows are made");
      return true;
    }
    std::string why;
    if (group.isCached())
      why = "rows lie in slots of a cache";
    for (size_t f = 0; f < model.features.size() && why.empty(); ++f)
      if (model.shape.features[f].group == g &&
          model.shape.features[f].dedup >= 0)
        why = ("feature '" + model.features[f].getName().getValue() +
               "' is pooled per unique bag")
                  .str();
    remark::missed(group.getLoc(), options)
        << remark::add("{0}: look-ups go through unique rows: {1}", name, why);
    return false;
  }

  /// Nothing is updated: the ids alone are needed.
  static void dropUnique(plan::GatherPoolOp gather) {
    auto unique = gather.getOccurrences().getDefiningOp<plan::UniqueOp>();
    if (!unique || !unique.getUnique().use_empty())
      return;
    OpBuilder b(unique);
    // Rows of a group without dedup come from one buffer.
    auto touch = plan::TouchOp::create(
        b, unique.getLoc(), unique.getOccurrences().getType(),
        unique.getGroupAttr(), unique.getIds().front(),
        unique.getFeaturesAttr(), unique.getAfter(), unique.getLaneAttr(),
        unique.getAheadAttr());
    unique.getOccurrences().replaceAllUsesWith(touch.getOccurrences());
    Operation *ring = unique.getRing().getDefiningOp();
    unique.erase();
    if (ring && ring->use_empty())
      ring->erase();
  }

  void nameKernels(const ProgramModel &model,
                   const llvm::DenseMap<int, FlatSymbolRefAttr> &kernels) {
    if (kernels.empty())
      return;
    SmallVector<Attribute> features;
    for (auto [i, f] : llvm::enumerate(model.features)) {
      auto found = kernels.find(int(i));
      features.push_back(found == kernels.end()
                             ? f
                             : plan::FeatureAttr::get(
                                   f.getContext(), f.getName(), f.getTable(),
                                   f.getPooling(), f.getMaxIds(), f.getColumn(),
                                   f.getWeights(), f.getOverflow(),
                                   f.getStringIds(), f.getDedup(),
                                   found->second, f.getOutput()));
    }
    plan::IngestOp ingest = model.ingest;
    ingest.setFeaturesAttr(ArrayAttr::get(&getContext(), features));
  }
};

} // namespace
