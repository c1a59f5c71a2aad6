//===- Export.h - Tables as arrays ------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the tables of a root as arrays TABLE [rows, dim], and TABLE.SLOT for
// each state of its optimizer; with `since`, only the rows whose bytes are not
// those of an older root, with their numbers in TABLE.ids. Rows never written
// have their initial value. Every float is the stored one.
//
// Memory: the index of the root (about 5 bytes a row), with `since` that
// of both and one bit a row, and three blocks of rows of at most 4 MiB (or one
// record) each; nothing grows with the bytes of the tables.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_EXPORT_H
#define TERRACE_RUNTIME_INSPECT_EXPORT_H

#include "runtime/inspect/Rows.h"

namespace trc::inspect {

struct ExportOptions {
  bool safetensors = false;        // one file; else a folder of .npy
  std::string output;              // the file or the folder
  std::vector<std::string> tables; // empty: all
  bool weightsOnly = false;
};

struct Exported {
  struct Table {
    std::string name;
    int64_t rows = 0; // written to the output
  };
  std::vector<Table> tables;
  uint64_t bytes = 0;
};

/// `since` may be null.
Result<Exported> exportTensors(const StateSource &at, const StateSource *since,
                               const ExportOptions &options,
                               const Progress &progress);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_EXPORT_H
