//===- Compile.h - From a spec to a file, in process ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `terrace compile` and `terrace explain` do, as functions that tests
// call too. Each stage runs only if the emitted kind needs it, and every fault
// is a diagnostic: nothing is printed, no signal handler is set. One call at a
// time per thread; calls on several threads share nothing but the linker's
// lock.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DRIVER_COMPILE_H
#define TERRACE_DRIVER_COMPILE_H

#include "Spec/Spec.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace terrace::driver {

/// What a call came to; the values are the exit codes of `terrace`.
enum class Outcome {
  Ok = 0,
  Error = 1,       ///< in the user's input, or no plan fits
  Usage = 2,       ///< of the command line
  Environment = 3, ///< a file, a device, a missing library
};

enum class Emit {
  Spec,     ///< the resolved spec, as YAML
  Mlir,     ///< the imported emb module
  Decision, ///< what the planner decided, for --plan
  Plan,     ///< the plan module after all passes
  Artifact, ///< the plan as the runtime reads it, JSON
  Llvm,     ///< the kernels as LLVM IR
  Obj,      ///< kernels and artifact as one relocatable object
  Lib,      ///< a shared library, and a header with the model's names
  Exe,      ///< an executable
};
/// By name; none for any other word.
std::optional<Emit> parseEmit(llvm::StringRef word);
llvm::ArrayRef<llvm::StringRef> emitNames();

struct CompileOptions {
  spec::SpecInput input;
  Emit emit = Emit::Exe;
  std::string output;      ///< empty: stdout for text, else from the model
  std::string planFile;    ///< a decision to start from; empty: decide
  std::string profileFile; ///< measured ids; empty: assumptions
  std::string dumpDir;     ///< a numbered .mlir after each pass; empty: none
  bool serve = false;      ///< forward only, rows as serve.dtype says
  std::vector<std::string> cpus; ///< images; empty: target.arch of the spec
  /// Called at the start of each stage, with its name; may be empty.
  std::function<void(llvm::StringRef)> progress;
};

struct StageTime {
  std::string stage;
  double seconds = 0;
};

struct CompileResult {
  Outcome outcome = Outcome::Ok;
  spec::Diagnostics diagnostics;
  std::string text;               ///< of a text kind that has no output file
  std::vector<std::string> files; ///< written, the main one first
  std::vector<StageTime> times;
  unsigned kernels = 0; ///< configurations compiled
};

CompileResult compile(const CompileOptions &options);

} // namespace terrace::driver

#endif // TERRACE_DRIVER_COMPILE_H
