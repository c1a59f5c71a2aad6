//===- Plan.cpp - The plan of an artifact ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the structs know about themselves. PlanParse.cpp fills them from JSON,
// PlanCheck.cpp judges them.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Plan.h"

#include <array>
#include <iterator>

using namespace trc;

int OptimizerPlan::stateCount() const {
  switch (kind) {
  case OptimizerKind::Sgd:
    return 0;
  case OptimizerKind::Adagrad:
  case OptimizerKind::RowwiseAdagrad:
  case OptimizerKind::MomentumSgd:
    return 1;
  case OptimizerKind::Adam:
  case OptimizerKind::PartialRowwiseAdam:
  case OptimizerKind::Lamb:
  case OptimizerKind::Ftrl:
    return 2;
  }
  return 0;
}

int64_t OptimizerPlan::stateWidth(int slot, int64_t dim) const {
  if (slot < 0 || slot >= stateCount())
    return 0;
  bool perRow = kind == OptimizerKind::RowwiseAdagrad ||
                (kind == OptimizerKind::PartialRowwiseAdam && slot == 1);
  return perRow ? 1 : dim;
}

bool OptimizerPlan::operator==(const OptimizerPlan &o) const {
  auto values = [](const OptimizerPlan &p) {
    return std::array{
        p.lr, p.eps, p.weightDecay, p.beta1,          p.beta2,   p.beta,
        p.l1, p.l2,  p.momentum,    p.decoupledDecay, p.clipNorm};
  };
  return kind == o.kind && values(*this) == values(o);
}

RowInit InitPlan::make() const {
  if (kind == "uniform")
    return RowInit::uniform(key, first, second);
  if (kind == "normal")
    return RowInit::normal(key, first, second);
  return RowInit::constant(first);
}

static const char *const opNames[] = {
    "ingest", "check",       "translate",      "dedup", "unique",
    "touch",  "probe",       "spill",          "store", "fetch",
    "fill",   "gather_pool", "expand",         "call",  "handoff",
    "resume", "preserve",    "segment_update", "unpin"};

const char *trc::opName(OpKind kind) { return opNames[static_cast<int>(kind)]; }

bool trc::parseOpKind(const std::string &name, OpKind &kind) {
  for (size_t i = 0; i < std::size(opNames); ++i)
    if (name == opNames[i]) {
      kind = static_cast<OpKind>(i);
      return true;
    }
  return false;
}

int Plan::findTable(const std::string &name) const {
  for (size_t i = 0; i < tables.size(); ++i)
    if (tables[i].name == name)
      return static_cast<int>(i);
  return -1;
}

int Plan::findRing(RingRole role, int group) const {
  for (size_t i = 0; i < rings.size(); ++i)
    if (rings[i].role == role && rings[i].group == group)
      return static_cast<int>(i);
  return -1;
}

int Plan::findOp(OpKind kind, int group) const {
  for (size_t i = 0; i < ops.size(); ++i)
    if (ops[i].kind == kind && (group < 0 || ops[i].group == group))
      return static_cast<int>(i);
  return -1;
}
