//===- Roots.h - What a state retains ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds a checkpoint or the closed state by name and lists all of them, the
// damaged ones with the reason.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_ROOTS_H
#define TERRACE_RUNTIME_INSPECT_ROOTS_H

#include "runtime/inspect/Rows.h"

namespace trc::inspect {

/// Takes lines for the user's eyes.
using Warn = std::function<void(const std::string &)>;

/// What the verbs call the closed state.
constexpr const char *closedName = "closed";

/// The name of a root in the verbs' arguments.
std::string nameOf(const StateSource &source);

/// "": the newest that can be read; "closed", "ckpt-N" or N. NOT_FOUND says
/// what there is.
Result<StateSource> findRoot(const StateDir &dir, const std::string &name,
                             const Warn &warn);
/// The index of the table; NOT_FOUND says what there is.
Result<int> findTable(const Manifest &manifest, const std::string &name);

struct RootInfo {
  std::string name;
  bool closed = false;
  std::string damage; // why it cannot be read; then only name is known, or more
  int64_t time = 0;   // of its root, in seconds since 1970
  uint64_t sequence = 0;
  int64_t step = 0, samples = 0;
  uint64_t blobBytes = 0;
  uint64_t rows = 0;
  /// Of records, index files and blob that no older root names.
  uint64_t newBytes = 0;
};

/// NOT_FOUND where the folder is no state's, not even an unfinished one's.
Status checkIsState(const StateDir &dir);

/// Oldest first; those without a readable manifest at the end. Memory: the
/// index of one root, and marks of those of one generation.
Result<std::vector<RootInfo>> listRoots(const StateDir &dir);

/// Streams a blob and checks it; `take` may be empty.
Status checkBlob(const StateSource &source,
                 const std::function<Status(const char *, uint64_t)> &take);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_ROOTS_H
