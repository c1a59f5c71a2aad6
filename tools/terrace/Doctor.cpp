//===- Doctor.cpp - `terrace doctor` --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Doctor.h"
#include "Verbs.h"

#include "llvm/Support/FileSystem.h"

namespace terrace::tool {

int runDoctor(const DoctorVerb &options, bool json) {
  if (!llvm::sys::fs::is_directory(options.folder))
    return fail(driver::Outcome::Environment,
                options.folder + " is not a folder", json);
  std::vector<driver::Finding> findings = driver::examine(options.folder);
  bool failed = driver::anyFailed(findings);
  if (json)
    llvm::outs() << llvm::formatv(
        "{0:2}\n",
        llvm::json::Value(llvm::json::Object{
            {"ok", !failed}, {"checks", driver::findingsJson(findings)}}));
  else
    driver::printFindings(findings, llvm::outs());
  return int(failed ? driver::Outcome::Environment : driver::Outcome::Ok);
}

} // namespace terrace::tool
