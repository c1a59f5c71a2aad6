//===- StageCosts.h - Seconds of each stage of a program --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For a schedule that nobody has decided: what each op costs when a batch is as
// large as its bounds allow, from the module's machine figures or, where it has
// none, from the shipped ones. The planner's cost model works on expected
// counts instead; this one needs no profile.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TRANSFORMS_PLAN_STAGECOSTS_H
#define TERRACE_TRANSFORMS_PLAN_STAGECOSTS_H

#include "Schedule/Scheduler.h"
#include "Transforms/Plan/ProgramGraph.h"
#include "Transforms/Plan/ProgramModel.h"

namespace terrace {

/// One cost per op of the graph.
std::vector<schedule::Cost> stageCosts(const ProgramModel &model,
                                       const ProgramGraph &program);

} // namespace terrace

#endif // TERRACE_TRANSFORMS_PLAN_STAGECOSTS_H
