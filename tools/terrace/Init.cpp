//===- Init.cpp - `terrace init` ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Verbs.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

namespace terrace::tool {

int runInit(const InitOptions &options, bool json) {
  std::string text = spec::initText(options.model);
  // The name goes into the text: what it breaks is said here.
  spec::Diagnostics diagnostics;
  if (!spec::parseSpecText(text, options.model + ".yaml", diagnostics))
    return fail(driver::Outcome::Usage,
                "'" + options.model +
                    "' cannot name a model: letters, digits, '_', '-' and '.'",
                json);
  std::string output =
      options.output.empty() ? options.model + ".yaml" : options.output;
  if (output != "-" && !options.force && llvm::sys::fs::exists(output))
    return fail(driver::Outcome::Error,
                output + " is there already; --force overwrites it", json);
  std::string error;
  if (!writeText(output, text, error))
    return fail(driver::Outcome::Environment, error, json);
  if (output == "-")
    return 0;
  if (json)
    llvm::outs() << llvm::json::Value(
                        llvm::json::Object{{"ok", true}, {"file", output}})
                 << "\n";
  else
    llvm::outs() << "wrote " << output << "\nnext: terrace explain " << output
                 << ", terrace compile " << output << " -o " << options.model
                 << "\n";
  return 0;
}

} // namespace terrace::tool
