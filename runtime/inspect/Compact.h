//===- Compact.h - Keeps only the newest root -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes every other root of a state away, durably, and the files that none
// names any more. Rows stay where they are: the space of those that only older
// roots named is used again by training. Before anything goes, the newest root
// is read whole, and nothing goes where that fails.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_COMPACT_H
#define TERRACE_RUNTIME_INSPECT_COMPACT_H

#include "runtime/inspect/Rows.h"

namespace trc::inspect {

struct Compacted {
  std::string kept;
  std::vector<std::string> removed;         // roots, damaged ones included
  uint64_t bytesBefore = 0, bytesAfter = 0; // that the folder takes on disk
};

/// `dir` is open to write.
Result<Compacted> compactState(StateDir &dir, const Progress &progress);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_COMPACT_H
