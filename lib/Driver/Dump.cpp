//===- Dump.cpp - The IR after each pass, as numbered files ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass instrumentation. Passes nested below a module are dumped once, when
// the module is done with them, under their names joined.
//
//===----------------------------------------------------------------------===//
#include "Driver/Dump.h"

#include "runtime/core/Output.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace terrace::driver {

namespace {

class DumpInstrumentation : public mlir::PassInstrumentation {
public:
  explicit DumpInstrumentation(Dump &dump) : dump(dump) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
    std::string name = pass->getArgument().str();
    if (!llvm::isa<mlir::ModuleOp>(op)) {
      if (!name.empty() && !llvm::is_contained(nested, name))
        nested.push_back(name);
      return;
    }
    // The adaptor that ran nested passes has no argument of its own.
    if (name.empty())
      name = llvm::join(nested, "+");
    nested.clear();
    if (!name.empty())
      dump.write(name, op);
  }

  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override {
    nested.clear();
    if (llvm::isa<mlir::ModuleOp>(op) && !pass->getArgument().empty())
      dump.write(pass->getArgument().str() + ".failed", op);
  }

private:
  Dump &dump;
  std::vector<std::string> nested;
};

bool isNumbered(llvm::StringRef name) {
  return name.size() > 8 && llvm::isDigit(name[0]) && llvm::isDigit(name[1]) &&
         name[2] == '-' && name.ends_with(".mlir");
}

} // namespace

bool Dump::prepare() {
  if (std::error_code ec = llvm::sys::fs::create_directories(folder)) {
    failure = folder + ": " + ec.message();
    return false;
  }
  std::error_code ec;
  std::vector<std::string> old;
  for (llvm::sys::fs::directory_iterator it(folder, ec), end; !ec && it != end;
       it.increment(ec))
    if (isNumbered(llvm::sys::path::filename(it->path())))
      old.push_back(it->path());
  for (const std::string &file : old)
    if (!ec)
      ec = llvm::sys::fs::remove(file);
  if (ec)
    failure = folder + ": " + ec.message();
  return !ec;
}

void Dump::write(llvm::StringRef stage, mlir::Operation *module) {
  if (!enabled() || !failure.empty())
    return;
  llvm::SmallString<128> path(folder);
  std::string number = std::to_string(written.size());
  if (number.size() < 2)
    number = "0" + number;
  llvm::sys::path::append(path, number + "-" + stage + ".mlir");
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  os << "\n";
  if (trc::Status s = trc::writeOutput(path.c_str(), text); !s.ok())
    failure = s.message();
  else
    written.push_back(path.str().str());
}

void Dump::attach(mlir::PassManager &manager) {
  if (enabled())
    manager.addInstrumentation(std::make_unique<DumpInstrumentation>(*this));
}

} // namespace terrace::driver
