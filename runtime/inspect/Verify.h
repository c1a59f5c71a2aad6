//===- Verify.h - Whether everything can be read ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads all that a root names: manifest, index files, blob and every live
// record. Rows that fail are found one by one, so that the report says exactly
// what a reader would meet. Memory: the index of the root, a block of rows.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_VERIFY_H
#define TERRACE_RUNTIME_INSPECT_VERIFY_H

#include "runtime/inspect/Rows.h"

namespace trc::inspect {

struct Problem {
  std::string root;
  std::string table; // empty: not a row's, but of the files
  int64_t row = -1;
  std::string what;
};

struct Verified {
  std::string root;
  bool opened = false; // index and stores could be read
  int64_t step = 0;
  uint64_t rows = 0;     // live records
  uint64_t lost = 0;     // of those
  uint64_t problems = 0; // told, lost rows included
};

/// Tells `take` every problem as it is found. Fails only where the work itself
/// cannot go on.
Status verifyRoot(const StateSource &root,
                  const std::function<void(Problem)> &take,
                  const Progress &progress, Verified &out);

/// All of a state's roots, oldest first, and those without a manifest.
Status scrubState(const StateDir &dir, const std::function<void(Problem)> &take,
                  const Progress &progress, std::vector<Verified> &out);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_VERIFY_H
