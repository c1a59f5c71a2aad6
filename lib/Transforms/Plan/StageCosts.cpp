//===- StageCosts.cpp - Seconds of each stage of a program ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Transforms/Plan/StageCosts.h"

#include "Machine/Machine.h"

using namespace mlir;
using namespace terrace;

namespace {

class Costs {
public:
  explicit Costs(const ProgramModel &model)
      : model(model), machine(machine::Machine::conservative()),
        attr(emb::getMachine(ModuleOp(model.module))) {}

  schedule::Cost of(const schedule::Op &op) const {
    using Kind = schedule::OpKind;
    const machine::CpuModel &cpu = machine.cpu();
    double ids = double(model.shape.maxIds), batch = double(model.shape.batch);
    switch (op.kind) {
    case Kind::Ingest:
    case Kind::Check:
    case Kind::Translate:
      return {ids * ns("ingest_ns_per_id", cpu.ingestNsPerId) / 3, 0};
    case Kind::Dedup:
      return {ids * ns("dedup_ns_per_id", cpu.dedupNsPerId), 0};
    case Kind::Expand:
    case Kind::Call: {
      double bytes = 0;
      for (size_t f = 0; f < model.shape.features.size(); ++f)
        bytes += batch * double(model.shape.features[f].dim) * 4;
      return {bytes / figure("copy_bytes_per_s", cpu.copyGBps * 1e9), 0};
    }
    default:
      return op.group < 0 ? schedule::Cost{} : ofGroup(op);
    }
  }

private:
  schedule::Cost ofGroup(const schedule::Op &op) const {
    using Kind = schedule::OpKind;
    const machine::CpuModel &cpu = machine.cpu();
    const trc::GroupShape &g = model.shape.groups[op.group];
    double ids = double(g.maxOccurrences), rows = double(g.maxUnique);
    double moved = double(g.maxMiss) * double(g.slotBytes);
    switch (op.kind) {
    case Kind::Unique:
      return {ids * ns("unique_ns_per_id", cpu.uniqueNsPerId), 0};
    case Kind::Touch: // a bit per id
      return {ids * ns("ingest_ns_per_id", cpu.ingestNsPerId) / 3, 0};
    case Kind::Probe:
    case Kind::Unpin:
      return {rows * ns("probe_ns_per_row", cpu.probeNsPerRow), 0};
    case Kind::Spill:
    case Kind::Fill:
      return {moved / figure("copy_bytes_per_s", cpu.copyGBps * 1e9), 0};
    case Kind::Fetch:
    case Kind::Store: {
      machine::TierKind kind = homeOf(op.group);
      const machine::TierModel &disk = machine.tier(kind);
      double latency = disk.latencyUs * 1e-6;
      double transfer = machine.transferSeconds(
                            kind, op.kind == Kind::Store, double(g.maxMiss),
                            double(std::max(g.storeBytes, disk.granule))) -
                        latency;
      // The device is busy for both; only a fetch is waited for.
      double start = double(g.maxMiss) * ns("io_ns_per_op", cpu.ioNsPerOp);
      return {std::max(start, transfer), op.kind == Kind::Store ? 0 : latency};
    }
    case Kind::GatherPool:
      return {ids * ns("gather_ns_per_id", cpu.gatherNsPerId) +
                  ids * double(g.dim) * 4 /
                      figure("gather_bytes_per_s", cpu.gatherGBps * 1e9),
              0};
    case Kind::SegmentUpdate:
      return {rows * ns("update_ns_per_row", cpu.updateNsPerRow) +
                  (ids * double(g.dim) * 4 + rows * double(g.slotBytes)) /
                      figure("update_bytes_per_s", cpu.updateGBps * 1e9),
              0};
    default:
      return {};
    }
  }

  machine::TierKind homeOf(int group) const {
    plan::GroupOp op = model.groups[static_cast<size_t>(group)];
    for (emb::TierOp tier : model.tiers)
      if (tier.getSymName() == op.getHome() &&
          tier.getKind() == emb::TierKind::PMem)
        return machine::TierKind::PMem;
    return machine::TierKind::NVMe;
  }

  double figure(StringRef name, double otherwise) const {
    if (attr)
      if (std::optional<double> measured = attr.getFigure("cpu", name))
        return *measured > 0 ? *measured : otherwise;
    return std::max(otherwise, 1e-30);
  }
  /// Seconds, of a figure in nanoseconds.
  double ns(StringRef name, double otherwise) const {
    return figure(name, otherwise) * 1e-9;
  }

  const ProgramModel &model;
  machine::Machine machine;
  emb::MachineAttr attr;
};

} // namespace

std::vector<schedule::Cost> terrace::stageCosts(const ProgramModel &model,
                                                const ProgramGraph &program) {
  Costs costs(model);
  std::vector<schedule::Cost> list;
  for (const schedule::Op &op : program.graph.ops)
    list.push_back(costs.of(op));
  return list;
}
