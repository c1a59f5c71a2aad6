//===- KeyedBatch.h - A batch in one array, as bags by feature --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views of a trc_keyed_batch; nothing is copied. Offsets of a feature's bags
// start where those of the keys before it end (Pipeline::checkShape, slices).
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_EXEC_KEYEDBATCH_H
#define TERRACE_RUNTIME_EXEC_KEYEDBATCH_H

#include "runtime/core/Plan.h"
#include "runtime/core/Status.h"
#include "terrace-rt/session.h"

namespace trc {

/// Fills one trc_bags per feature of the plan. Checks all that reading the ends
/// of the keys needs; what lies between them is left to checkShape.
Status slicesOf(const trc_keyed_batch &batch, const Plan &plan, trc_bags *bags);

} // namespace trc

#endif // TERRACE_RUNTIME_EXEC_KEYEDBATCH_H
