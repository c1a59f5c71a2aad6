//===- ProgramGraph.cpp - A plan program as a schedule graph --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Transforms/Plan/ProgramGraph.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace terrace;

namespace {

schedule::LaneKind laneKind(plan::LaneKind kind) {
  switch (kind) {
  case plan::LaneKind::CPU:
    return schedule::LaneKind::Cpu;
  case plan::LaneKind::Stream:
    return schedule::LaneKind::Stream;
  case plan::LaneKind::IO:
    return schedule::LaneKind::Io;
  case plan::LaneKind::Caller:
    return schedule::LaneKind::Caller;
  }
  llvm_unreachable("covered switch");
}

schedule::RingRole ringRole(plan::RingOp ring) {
  if (!ring.getRole() || int(*ring.getRole()) > int(plan::RingRole::Grads))
    return schedule::RingRole::Other;
  return schedule::RingRole(int(*ring.getRole()));
}

schedule::Role roleOf(plan::Role role) {
  switch (role) {
  case plan::Role::Directory:
    return schedule::Role::Directory;
  case plan::Role::Slots:
    return schedule::Role::Slots;
  case plan::Role::Home:
    return schedule::Role::Home;
  case plan::Role::Ring:
    return schedule::Role::Ring;
  case plan::Role::Cut:
    return schedule::Role::Cut;
  }
  llvm_unreachable("covered switch");
}

schedule::RowSet rowsOf(plan::RowSet rows) {
  switch (rows) {
  case plan::RowSet::Pin:
    return schedule::RowSet::Pin;
  case plan::RowSet::Miss:
    return schedule::RowSet::Miss;
  case plan::RowSet::Victim:
    return schedule::RowSet::Victim;
  case plan::RowSet::None:
  case plan::RowSet::All:
    return schedule::RowSet::All;
  }
  llvm_unreachable("covered switch");
}

class GraphBuilder {
public:
  explicit GraphBuilder(plan::ProgramOp program)
      : program(program), module(program->getParentOfType<ModuleOp>()) {}

  FailureOr<ProgramGraph> build() {
    for (auto lane : module.getOps<plan::LaneOp>()) {
      laneIndex[lane.getSymName()] = int(p.lanes.size());
      p.lanes.push_back(lane);
      p.graph.lanes.push_back({lane.getSymName().str(),
                               laneKind(lane.getKind()),
                               int(lane.getDepth().value_or(0))});
    }
    for (auto group : module.getOps<plan::GroupOp>()) {
      groupIndex[group.getSymName()] = int(p.groups.size());
      p.groups.push_back(group);
      schedule::Group g;
      g.name = "@" + group.getSymName().str();
      g.cached = group.isCached();
      g.rows = int64_t(group.getRows().value_or(0));
      g.slots = int64_t(group.getSlots().value_or(0));
      g.maxUnique = int64_t(group.getMaxUnique().value_or(0));
      p.graph.groups.push_back(std::move(g));
    }
    for (auto ring : program.getBody().front().getOps<plan::RingOp>())
      if (failed(addRing(ring)))
        return failure();
    plan::PipelineOp pipeline = program.getPipeline();
    for (Operation &op : pipeline.getBody().front())
      if (auto stage = dyn_cast<plan::PlanStageOpInterface>(op))
        if (failed(addOp(stage)))
          return failure();
    for (auto [i, stage] : llvm::enumerate(p.ops))
      for (Value operand : stage->getOperands())
        addWait(p.graph.ops[i], operand, 0);
    dropUnprobedGroups();
    schedule::declareEffects(p.graph);
    for (auto [i, stage] : llvm::enumerate(p.ops))
      addDeclared(p.graph.ops[i], stage);
    return std::move(p);
  }

private:
  LogicalResult addRing(plan::RingOp ring) {
    schedule::Ring r;
    r.role = ringRole(ring);
    r.depth = int(ring.getDepth());
    r.name = ring.getRole() ? plan::stringifyRingRole(*ring.getRole()).str()
                            : "ring" + std::to_string(p.rings.size());
    if (ring.getGroup()) {
      auto found = groupIndex.find(*ring.getGroup());
      if (found == groupIndex.end())
        return ring.emitError("names group '")
               << *ring.getGroup() << "', which the module does not have";
      r.group = found->second;
      r.name += " of @" + ring.getGroup()->str();
    }
    ringIndex[ring.getResult()] = int(p.rings.size());
    p.rings.push_back(ring);
    p.graph.rings.push_back(std::move(r));
    return success();
  }

  LogicalResult addOp(plan::PlanStageOpInterface stage) {
    schedule::Op op;
    std::string kind = stage->getName().stripDialect().str();
    if (!schedule::parse(kind, op.kind))
      op.kind = schedule::OpKind::Other;
    op.name = kind;
    if (FlatSymbolRefAttr group = stage.getGroupRef()) {
      auto found = groupIndex.find(group.getValue());
      if (found == groupIndex.end())
        return stage->emitError("names group '")
               << group.getValue() << "', which the module does not have";
      op.group = found->second;
      op.name += " @" + group.getValue().str();
    }
    op.lane = -1;
    op.ahead = int(stage.getAheadOr0());
    if (FlatSymbolRefAttr lane = stage.getLaneAttr()) {
      auto found = laneIndex.find(lane.getValue());
      if (found == laneIndex.end())
        return stage->emitError("runs on lane '")
               << lane.getValue() << "', which the module does not have";
      op.lane = found->second;
    }
    opIndex[stage.getOperation()] = int(p.ops.size());
    p.ops.push_back(stage);
    p.graph.ops.push_back(std::move(op));
    return success();
  }

  /// A value stands for what its op has done; an argument of the pipeline for
  /// what was yielded `distance` batches earlier.
  void addWait(schedule::Op &op, Value value, int distance) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      plan::PipelineOp pipeline = program.getPipeline();
      unsigned i = argument.getArgNumber();
      int64_t carried = pipeline.getDistances()[i];
      // A token that is only passed on comes from a batch further back.
      if (distance < 1024 && carried > 0)
        addWait(op, pipeline.getCarried(i), distance + int(carried));
      return;
    }
    auto found = opIndex.find(value.getDefiningOp());
    if (found == opIndex.end())
      return; // a ring
    schedule::Wait wait{found->second, distance};
    if (!llvm::is_contained(op.waits, wait))
      op.waits.push_back(wait);
  }

  /// A group that no op works on (no feature reads its tables) has no pins.
  void dropUnprobedGroups() {
    for (size_t g = 0; g < p.graph.groups.size(); ++g) {
      bool used = llvm::any_of(p.graph.ops, [&](const schedule::Op &op) {
        return op.group == int(g);
      });
      if (!used)
        p.graph.groups[g].cached = false;
    }
  }

  void addDeclared(schedule::Op &op, plan::PlanStageOpInterface stage) {
    auto declares = dyn_cast<plan::PlanEffectsOpInterface>(
        static_cast<Operation *>(stage.getOperation()));
    if (!declares)
      return;
    SmallVector<plan::PlanEffect> effects;
    declares.getPlanEffects(effects);
    auto add = [&](schedule::Effect effect) {
      for (const schedule::Effect &e : op.effects)
        if (e.role == effect.role && e.target == effect.target &&
            e.rows == effect.rows && (e.write || !effect.write))
          return;
      op.effects.push_back(effect);
    };
    for (const plan::PlanEffect &e : effects) {
      schedule::Effect effect;
      effect.role = roleOf(e.role);
      effect.rows = rowsOf(e.rows);
      effect.write = e.access == plan::Access::Write;
      if (e.role == plan::Role::Ring) {
        auto found = ringIndex.find(e.ring);
        if (found == ringIndex.end())
          continue;
        effect.target = found->second;
      } else if (e.group) {
        effect.target = groupIndex.lookup(e.group.getValue());
      }
      add(effect);
    }
  }

  plan::ProgramOp program;
  ModuleOp module;
  ProgramGraph p;
  llvm::StringMap<int> laneIndex, groupIndex;
  llvm::DenseMap<Value, int> ringIndex;
  llvm::DenseMap<Operation *, int> opIndex;
};

} // namespace

FailureOr<ProgramGraph> ProgramGraph::of(plan::ProgramOp program) {
  return GraphBuilder(program).build();
}
