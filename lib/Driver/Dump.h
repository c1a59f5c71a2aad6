//===- Dump.h - The IR after each pass, as numbered files -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `--dump-dir`. Each file holds a whole module that terrace-opt reads back:
// 00-import.mlir, 01-emb-dedup.mlir, ... Not thread-safe: the context runs its
// passes on one thread while dumping.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DRIVER_DUMP_H
#define TERRACE_DRIVER_DUMP_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mlir {
class Operation;
class PassManager;
} // namespace mlir

namespace terrace::driver {

class Dump {
public:
  /// An empty folder name switches dumping off.
  explicit Dump(llvm::StringRef folder) : folder(folder.str()) {}

  bool enabled() const { return !folder.empty(); }
  /// Makes the folder and removes the numbered dumps of an earlier run.
  bool prepare();
  /// Writes the next file, named after `stage`.
  void write(llvm::StringRef stage, mlir::Operation *module);
  /// Dumps after every pass that runs on a module.
  void attach(mlir::PassManager &manager);

  const std::vector<std::string> &files() const { return written; }
  /// The first failure: which file and why; empty if there was none.
  const std::string &error() const { return failure; }

private:
  std::string folder, failure;
  std::vector<std::string> written;
};

} // namespace terrace::driver

#endif // TERRACE_DRIVER_DUMP_H
