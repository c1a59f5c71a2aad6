//===- StateVerb.h - What the verbs over states share -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statuses of the runtime as exit codes, progress on a terminal, and opening a
// state to look at.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TOOLS_TERRACE_STATEVERB_H
#define TERRACE_TOOLS_TERRACE_STATEVERB_H

#include "Verbs.h"

#include "runtime/inspect/Roots.h"

#include "llvm/Support/JSON.h"

namespace terrace::tool {

/// What a runtime status is to the caller of `terrace`.
int fail(const trc::Status &status, bool json);

/// A line that is rewritten on a terminal, with the time that is left; nothing
/// elsewhere. It is gone when this is.
class ProgressLine {
public:
  ProgressLine(std::string what, bool json);
  ~ProgressLine();
  ProgressLine(const ProgressLine &) = delete;
  trc::inspect::Progress take();

private:
  std::string what;
  bool shown = false, terminal;
  double begin, last = 0;
};

/// A state, open to read, and one of its roots.
struct OpenRoot {
  std::unique_ptr<trc::StateDir> dir;
  trc::StateSource source;
};
trc::Result<OpenRoot> openRoot(const std::string &state,
                               const std::string &name);

/// "warning: ..." on stderr.
void warn(const std::string &line);

llvm::json::Object okObject();
void print(llvm::json::Object object);
/// "3 rows", "1 row".
std::string counted(uint64_t n, const char *what);
std::string shownBytes(uint64_t bytes);

} // namespace terrace::tool

#endif // TERRACE_TOOLS_TERRACE_STATEVERB_H
