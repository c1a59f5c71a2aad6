//===- Doctor.h - Can this machine compile and run models -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks by doing: real I/O through io_uring, a real link. A check that fails
// says what it stops and what to do about it.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DRIVER_DOCTOR_H
#define TERRACE_DRIVER_DOCTOR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace terrace::driver {

struct Finding {
  enum class Level {
    Ok,
    Note, ///< not there, and not needed
    Warn, ///< works, but slower
    Fail  ///< compiling or running a model does not work
  };
  std::string name;
  Level level = Level::Ok;
  std::string detail;
  std::string advice; ///< empty where all is well
};

/// Checks the machine; `folder` is where states would lie.
std::vector<Finding> examine(llvm::StringRef folder);

bool anyFailed(llvm::ArrayRef<Finding> findings);
void printFindings(llvm::ArrayRef<Finding> findings, llvm::raw_ostream &os);
llvm::json::Value findingsJson(llvm::ArrayRef<Finding> findings);

} // namespace terrace::driver

#endif // TERRACE_DRIVER_DOCTOR_H
