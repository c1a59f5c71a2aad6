//===- Problem.cpp - What the planner decides about -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CostModel/Problem.h"

using namespace terrace::planner;

int64_t Table::stateFloats() const {
  switch (optimizer) {
  case Optimizer::Sgd:
    return 0;
  case Optimizer::RowwiseAdagrad:
    return 1;
  case Optimizer::Adagrad:
  case Optimizer::MomentumSgd:
    return dim;
  case Optimizer::PartialRowwiseAdam:
    return dim + 1;
  case Optimizer::Adam:
  case Optimizer::Lamb:
  case Optimizer::Ftrl:
    return 2 * dim;
  }
  return 0;
}

int Problem::tierIndex(llvm::StringRef name) const {
  for (size_t i = 0; i < tiers.size(); ++i)
    if (tiers[i].name == name)
      return static_cast<int>(i);
  return -1;
}

int Problem::ringTier() const {
  for (size_t i = 0; i < tiers.size(); ++i)
    if (tiers[i].kind == machine::TierKind::DRAM)
      return static_cast<int>(i);
  return -1;
}
