//===- EmbDecide.cpp - Decides homes, caches and lookahead ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thin: lib/Planner decides, this writes the decision down and says why.
//
//===----------------------------------------------------------------------===//
#include "Planner/Explain.h"
#include "Transforms/Emb/EmbPasses.h"
#include "Transforms/Emb/ModuleProblem.h"
#include "dialects/plan/Plan.h"

#include "mlir/IR/Remarks.h"

namespace terrace {
#define GEN_PASS_DEF_EMBDECIDE
#include "Transforms/Emb/EmbPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

constexpr llvm::StringLiteral category = "emb-decide";

emb::MachineAttr machineAttr(MLIRContext *context, const planner::Problem &p) {
  Builder b(context);
  const machine::Machine &m = p.machine;
  auto figures = [&](std::initializer_list<std::pair<StringRef, double>> list) {
    SmallVector<NamedAttribute> entries;
    for (auto [name, value] : list)
      entries.push_back(b.getNamedAttr(name, b.getF64FloatAttr(value)));
    return b.getDictionaryAttr(entries);
  };
  SmallVector<NamedAttribute> parts;
  const machine::CpuModel &cpu = m.cpu();
  parts.push_back(b.getNamedAttr(
      "cpu", figures({{"ingest_ns_per_id", cpu.ingestNsPerId},
                      {"unique_ns_per_id", cpu.uniqueNsPerId},
                      {"probe_ns_per_row", cpu.probeNsPerRow},
                      {"gather_ns_per_id", cpu.gatherNsPerId},
                      {"gather_bytes_per_s", cpu.gatherGBps * 1e9},
                      {"update_bytes_per_s", cpu.updateGBps * 1e9},
                      {"copy_bytes_per_s", cpu.copyGBps * 1e9},
                      {"io_ns_per_op", cpu.ioNsPerOp}})));
  llvm::SmallDenseSet<int> seen;
  for (const planner::Tier &tier : p.tiers) {
    if (!seen.insert(static_cast<int>(tier.kind)).second)
      continue;
    const machine::TierModel &t = m.tier(tier.kind);
    auto dict = figures({{"read_bytes_per_s", t.readGBps * 1e9},
                         {"write_bytes_per_s", t.writeGBps * 1e9},
                         {"latency_s", t.latencyUs * 1e-6},
                         {"granule", double(t.granule)}});
    SmallVector<NamedAttribute> all(dict.begin(), dict.end());
    double iops = m.iops(tier.kind, false, m.queueDepth());
    if (std::isfinite(iops))
      all.push_back(b.getNamedAttr("read_iops", b.getF64FloatAttr(iops)));
    parts.push_back(b.getNamedAttr(machine::tierKindName(tier.kind),
                                   b.getDictionaryAttr(all)));
  }
  return emb::MachineAttr::get(context, b.getStringAttr(cpu.level), cpu.cores,
                               StringAttr(), b.getDictionaryAttr(parts));
}

class EmbDecidePass : public terrace::impl::EmbDecideBase<EmbDecidePass> {
public:
  using EmbDecideBase::EmbDecideBase;
  void runOnOperation() override;

private:
  LogicalResult write(const ModuleProblem &m, const planner::Plan &plan);
  void explain(const ModuleProblem &m, const planner::Plan &plan);
};

LogicalResult EmbDecidePass::write(const ModuleProblem &m,
                                   const planner::Plan &plan) {
  MLIRContext *context = &getContext();
  Builder b(context);
  const planner::Problem &p = m.problem;
  SmallVector<plan::TableDecisionAttr> tables;
  for (size_t t = 0; t < p.tables.size(); ++t) {
    const planner::TableDecision &d = plan.decision.tables[t];
    if (d.caches.size() > 1)
      return emitError(m.tableLocs[t])
             << "table '" << p.tables[t].name
             << "': two caches above one home ("
             << p.tiers[d.caches[0].tier].name << ", "
             << p.tiers[d.caches[1].tier].name
             << ") cannot be compiled yet; pin one of them";
    StringAttr cache, policy;
    int64_t retained = 0;
    if (!d.caches.empty()) {
      cache = b.getStringAttr(p.tiers[d.caches[0].tier].name);
      policy = b.getStringAttr(plan.decision.policy);
      retained = d.caches[0].retained;
    }
    emb::ShardsAttr shards;
    if (p.workers > 1)
      shards = emb::ShardsAttr::get(context, emb::ShardKind::Table,
                                    {int64_t(d.worker)}, ArrayRef<int64_t>());
    tables.push_back(
        plan::TableDecisionAttr::get(context, b.getStringAttr(p.tables[t].name),
                                     b.getStringAttr(p.tiers[d.home].name),
                                     cache, retained, policy, shards));
  }
  ModuleOp module = getOperation();
  module->setAttr(
      plan::PlanDialect::kDecision,
      plan::DecisionAttr::get(context, plan.decision.lookahead, tables));
  module->setAttr(emb::EmbDialect::kMachine, machineAttr(context, p));
  return success();
}

void EmbDecidePass::explain(const ModuleProblem &m, const planner::Plan &plan) {
  using namespace remark;
  if (!getContext().getRemarkEngine())
    return;
  const planner::Problem &p = m.problem;
  auto opts = [](StringRef name, StringRef subject) {
    return RemarkOpts::name(name).category(category).function(subject);
  };
  auto micros = [](double seconds) { return std::llround(seconds * 1e6); };
  for (size_t t = 0; t < p.tables.size(); ++t) {
    const planner::TableDecision &d = plan.decision.tables[t];
    const std::optional<planner::RunnerUp> &second = plan.tableRunnerUp[t];
    auto r = passed(m.tableLocs[t], opts("home", p.tables[t].name));
    r << add("table {0} lives in {1}", p.tables[t].name, p.tiers[d.home].name);
    for (const planner::CacheDecision &c : d.caches)
      r << metric("CacheTier", p.tiers[c.tier].name)
        << metric("RetainedRows", c.retained);
    r << metric("MissesPerStep", std::llround(plan.cost.tables[t].misses))
      << metric("StepMicros", micros(plan.cost.step));
    if (second)
      r << metric("RunnerUp", second->what)
        << metric("RunnerUpMicros", micros(second->stepSeconds));
    r << reason("{0}", plan.why[t]);
  }
  {
    auto r = passed(m.lookaheadLoc, opts("lookahead", p.model));
    r << add("lookahead {0}", plan.decision.lookahead)
      << metric("StepMicros", micros(plan.cost.step))
      << metric("SerialMicros", micros(plan.cost.serial));
    if (plan.runnerUp)
      r << metric("RunnerUp", plan.runnerUp->what)
        << metric("RunnerUpMicros", micros(plan.runnerUp->stepSeconds));
    r << reason("{0}", plan.binding);
  }
  for (size_t t = 0; t < p.tiers.size(); ++t) {
    planner::TierUse use = plan.footprint.charged(p, static_cast<int>(t));
    auto r = analysis(m.tierLocs[t], opts("bound", p.tiers[t].name));
    r << add("tier {0} holds at most {1} bytes", p.tiers[t].name, use.total())
      << metric("Rings", use.rings) << metric("Slots", use.slots)
      << metric("Index", use.index) << metric("Rows", use.rows);
    if (!p.tiers[t].implied)
      r << metric("Capacity", p.tiers[t].capacity);
  }
  if (p.workers > 1)
    analysis(getOperation().getLoc(), opts("balance", p.model)) << add(
        "{0} workers, largest load {1:f3}x the mean", p.workers, plan.balance);
}

void EmbDecidePass::runOnOperation() {
  FailureOr<ModuleProblem> m = problemFromModule(getOperation());
  if (failed(m))
    return signalPassFailure();
  FailureOr<planner::Plan> plan = planModule(*m, planFile);
  if (failed(plan) || failed(write(*m, *plan)))
    return signalPassFailure();
  explain(*m, *plan);
}

} // namespace
