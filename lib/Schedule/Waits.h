//===- Waits.h - The waits that a program needs -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a schedule must wait for follows from its effects, lanes and ring
// depths. Only essential waits are kept: each is itself a required pair that
// nothing else orders, so that dropping any of them is an error.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SCHEDULE_WAITS_H
#define TERRACE_SCHEDULE_WAITS_H

#include "Schedule/Graph.h"

namespace terrace::schedule {

/// Replaces all waits by the essential ones. A required pair that breaks the
/// inequality gets its wait too, so that verify reports it.
void deriveWaits(Graph &graph);

/// Adds what the reuse of ring slots demands: waits of each writer for the
/// users `depth` batches earlier, where that is possible (else verify reports
/// the depth). The other waits are kept.
void addRingWaits(Graph &graph);

} // namespace terrace::schedule

#endif // TERRACE_SCHEDULE_WAITS_H
