//===- Explain.cpp - `terrace explain` and `terrace diff` -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Explain.h"
#include "Verbs.h"

#include "llvm/Support/FormatVariadic.h"

namespace terrace::tool {

static int show(driver::ExplainResult &result, bool json) {
  int code = report(result.outcome, result.diagnostics, json);
  if (code != 0)
    return code;
  if (json)
    llvm::outs() << llvm::formatv("{0:2}\n", result.json);
  else
    llvm::outs() << result.text;
  return 0;
}

int runExplain(const ExplainVerb &verb, bool json) {
  driver::CompileOptions options;
  options.input = verb.spec.input();
  options.planFile = verb.plan;
  options.serve = verb.serve;
  options.profileFile = verb.profile;
  driver::ExplainResult result = driver::explain(options);
  return show(result, json);
}

int runDiff(const DiffVerb &verb, bool json) {
  driver::CompileOptions before, after;
  before.input = {verb.before, verb.nodeBefore, {}};
  before.profileFile = verb.profile;
  after.input = {verb.after, verb.node, verb.edits};
  after.profileFile = verb.profile;
  // A what-if of one file: what was not changed is as before.
  if (verb.after.empty()) {
    after.input.modelFile = verb.before;
    if (verb.node.empty())
      after.input.nodeFile = verb.nodeBefore;
    if (verb.node.empty() && verb.edits.empty())
      return fail(driver::Outcome::Usage,
                  "diff compares two files, or one with --set or --node", json);
  }
  driver::ExplainResult result = driver::diff(before, after);
  return show(result, json);
}

} // namespace terrace::tool
