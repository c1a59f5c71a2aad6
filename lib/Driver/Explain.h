//===- Explain.h - Plans in the user's terms, and their differences -*- C++
//-*-//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `terrace explain` and `terrace diff` as functions. Explaining runs the same
// front end as compiling, so a what-if equals a fresh compile.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DRIVER_EXPLAIN_H
#define TERRACE_DRIVER_EXPLAIN_H

#include "Driver/Compile.h"

#include "llvm/Support/JSON.h"

namespace terrace::driver {

struct ExplainResult {
  Outcome outcome = Outcome::Ok;
  spec::Diagnostics diagnostics;
  std::string text;
  llvm::json::Value json = nullptr;
};

/// Uses input, planFile and profileFile of the options.
ExplainResult explain(const CompileOptions &options);

/// What changes from one spec to the other: keys, then homes, caches, traffic
/// and time of the two plans. Either may be a decision (--emit=decision), if
/// both are.
ExplainResult diff(const CompileOptions &before, const CompileOptions &after);

} // namespace terrace::driver

#endif // TERRACE_DRIVER_EXPLAIN_H
