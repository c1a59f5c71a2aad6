//===- ImportTorchrec.cpp - `terrace import-torchrec` ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models in Python are read in Python: hands over to the package's importer,
// with the interpreter that TERRACE_PYTHON names, or python3.
//
//===----------------------------------------------------------------------===//
#include "Verbs.h"

#include "runtime/core/Output.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

namespace terrace::tool {

/// The package of a checkout goes before an installed one; it is beside the
/// build folder that holds this program.
static void preferCheckout() {
  static int here; // any address of this program
  llvm::SmallString<256> root(llvm::sys::fs::getMainExecutable(nullptr, &here));
  for (int up = 0; up < 3; ++up)
    llvm::sys::path::remove_filename(root);
  llvm::sys::path::append(root, "python");
  if (!llvm::sys::fs::exists(root + "/terrace/importer.py"))
    return;
  std::string paths = root.str().str();
  if (std::optional<std::string> old = llvm::sys::Process::GetEnv("PYTHONPATH"))
    paths += ":" + *old;
  ::setenv("PYTHONPATH", paths.c_str(), /*replace=*/1);
}

int runImportTorchrec(const ImportTorchrecVerb &options) {
  // FILE.py:FUNCTION
  std::string file = options.function.substr(0, options.function.rfind(':'));
  if (trc::Status free = trc::refuseInput(options.output, {file}); !free.ok())
    return fail(driver::Outcome::Usage, free.message(), false);
  std::string name =
      llvm::sys::Process::GetEnv("TERRACE_PYTHON").value_or("python3");
  llvm::ErrorOr<std::string> python = llvm::sys::findProgramByName(name);
  if (!python)
    return fail(driver::Outcome::Environment,
                "no program '" + name +
                    "'; TERRACE_PYTHON names the Python that has torch",
                false);
  preferCheckout();
  // Asked first, so that what is missing is said in words.
  std::optional<llvm::StringRef> quiet[] = {"", "", ""};
  if (llvm::sys::ExecuteAndWait(*python,
                                {*python, "-c", "import terrace.torch"},
                                std::nullopt, quiet) != 0)
    return fail(driver::Outcome::Environment,
                *python + " has no package terrace, or no torch: pip install "
                          "./python torch; or name another Python in "
                          "TERRACE_PYTHON",
                false);
  std::vector<std::string> arguments = {*python, "-m", "terrace.importer",
                                        options.function};
  auto add = [&](const char *option, const std::string &value) {
    if (!value.empty())
      arguments.insert(arguments.end(), {option, value});
  };
  add("--output", options.output);
  add("--optimizer", options.optimizer);
  add("--model", options.model);
  add("--max-ids", std::to_string(options.maxIds));
  add("--batch", std::to_string(options.batch));
  std::vector<llvm::StringRef> references(arguments.begin(), arguments.end());
  std::string message;
  int code = llvm::sys::ExecuteAndWait(*python, references, std::nullopt, {}, 0,
                                       0, &message);
  if (code < 0)
    return fail(driver::Outcome::Environment, *python + ": " + message, false);
  return code;
}

} // namespace terrace::tool
