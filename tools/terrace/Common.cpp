//===- Common.cpp - What all verbs share: errors and files ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Verbs.h"

#include "runtime/core/Output.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace terrace::tool {

spec::SpecInput SpecOptions::input() const {
  spec::SpecInput input{model, node, edits};
  if (!machine.empty())
    input.edits.push_back("machine=" + machine);
  return input;
}

int report(driver::Outcome outcome, const spec::Diagnostics &diagnostics,
           bool json) {
  if (outcome == driver::Outcome::Ok || !json)
    diagnostics.print(llvm::errs());
  else
    llvm::outs() << llvm::formatv("{0:2}\n",
                                  llvm::json::Value(llvm::json::Object{
                                      {"ok", false},
                                      {"exit_code", int(outcome)},
                                      {"diagnostics", diagnostics.toJson()}}));
  return int(outcome);
}

int fail(driver::Outcome outcome, const std::string &message, bool json) {
  spec::Diagnostics diagnostics;
  diagnostics.error(message);
  return report(outcome, diagnostics, json);
}

bool writeText(llvm::StringRef path, llvm::StringRef text, std::string &error) {
  if (path == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    return true;
  }
  trc::Status s = trc::writeOutput(path.str(), text);
  error = s.message();
  return s.ok();
}

} // namespace terrace::tool
