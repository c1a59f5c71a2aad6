//===- Compile.cpp - `terrace compile` ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Spec/Words.h"
#include "Verbs.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Process.h"

namespace terrace::tool {

int runCompile(const CompileVerb &verb, bool json) {
  driver::CompileOptions options;
  options.input = verb.spec.input();
  std::optional<driver::Emit> emit = driver::parseEmit(verb.emit);
  if (!emit)
    return fail(driver::Outcome::Usage,
                "--emit: '" + verb.emit + "' is not known" +
                    spec::didYouMean(verb.emit, driver::emitNames()) +
                    " (allowed: " + spec::listOf(driver::emitNames()) + ")",
                json);
  options.emit = *emit;
  options.output = verb.output;
  options.planFile = verb.plan;
  options.profileFile = verb.profile;
  options.dumpDir = verb.dumpDir;
  options.serve = verb.serve;
  llvm::SmallVector<llvm::StringRef> cpus;
  llvm::StringRef(verb.cpus).split(cpus, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef cpu : cpus)
    options.cpus.push_back(cpu.trim().str());
  // A line that is rewritten on a terminal; nothing elsewhere.
  bool live = !json && llvm::sys::Process::StandardErrIsDisplayed();
  if (live)
    options.progress = [](llvm::StringRef stage) {
      llvm::errs() << "\r\033[K" << stage << " ...";
    };
  driver::CompileResult result = driver::compile(options);
  if (live)
    llvm::errs() << "\r\033[K";
  if (result.outcome != driver::Outcome::Ok)
    return report(result.outcome, result.diagnostics, json);
  if (!json) {
    report(result.outcome, result.diagnostics, json); // warnings
    llvm::outs() << result.text;
    if (verb.output.empty()) // a name that the user did not choose
      for (const std::string &file : result.files)
        llvm::outs() << "wrote " << file << "\n";
    return 0;
  }
  llvm::json::Object times;
  for (const driver::StageTime &time : result.times)
    times[time.stage] = time.seconds;
  llvm::json::Object object{{"ok", true},
                            {"files", llvm::json::Array(result.files)},
                            {"kernels", result.kernels},
                            {"seconds", std::move(times)}};
  if (!result.diagnostics.list().empty())
    object["diagnostics"] = result.diagnostics.toJson();
  if (!result.text.empty())
    object["text"] = result.text;
  llvm::outs() << llvm::formatv("{0:2}\n",
                                llvm::json::Value(std::move(object)));
  return 0;
}

} // namespace terrace::tool
