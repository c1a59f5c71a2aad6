//===- Portable.h - A checkpoint outside of its state -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder that holds one root whole and nothing of a plan: tables, written
// rows with optimizer state, head, counters and the trainer's blob. It becomes
// a state again on any machine; the model that opens that lays the rows out as
// its plan wants.
//
//   checkpoint.json   what it is of; comes last, with a checksum over all
//   rows.bin          (RowsFile) written rows by table and row number
//   blob.bin          where there is a blob
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_INSPECT_PORTABLE_H
#define TERRACE_RUNTIME_INSPECT_PORTABLE_H

#include "runtime/inspect/Rows.h"

namespace trc::inspect {

struct Portable {
  int64_t step = 0, samples = 0;
  uint64_t rows = 0, bytes = 0;
};

/// Memory: the index of the root, two blocks of rows. What stands in `folder`
/// under these names is replaced.
Result<Portable> exportRows(const StateSource &at, const std::string &folder,
                            const Progress &progress);

/// Makes the state `path`, which must not be one yet. Nothing of it stays
/// where that fails. Memory: the index of the new state, a piece of the file.
Result<Portable> importRows(const std::string &folder, const std::string &path,
                            const Progress &progress);

} // namespace trc::inspect

#endif // TERRACE_RUNTIME_INSPECT_PORTABLE_H
