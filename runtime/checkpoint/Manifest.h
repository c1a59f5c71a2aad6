//===- Manifest.h - What a state or a checkpoint is of ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One JSON text with a checksum. The part about tables, counters and head is
// independent of any plan; `groups` says where the rows of a cleanly closed
// state lie and is only in that one.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_MANIFEST_H
#define TERRACE_RUNTIME_CHECKPOINT_MANIFEST_H

#include "runtime/core/Plan.h"

#include <string>
#include <vector>

namespace trc {

struct ManifestTable {
  std::string name, ids, optimizer;
  int64_t rows = 0, dim = 0;
  Element element = Element::f32;
  InitPlan init; // as it was when the state was made: unwritten rows keep it
  std::vector<int64_t> stateWidths;

  uint32_t recordBytes() const;
};

/// A group's rows on its home tier.
struct ManifestGroup {
  struct Extent {
    std::string path; // as in the plan: relative ones lie in the state's folder
    uint64_t base = 0;
  };
  std::vector<int> tables; // indices into Manifest::tables
  std::vector<int64_t> rowBase;
  int64_t rows = 0, payloadBytes = 0, storeBytes = 0;
  std::vector<Extent> extents;
  uint64_t key = 0;
  std::string index; // file with the list of written rows
};

struct Manifest {
  std::string model, head; // head empty: none
  uint64_t sequence = 0;   // rises with every checkpoint and clean close
  int64_t step = 0, samples = 0;
  double lrScale = 1;
  HeadState headState;
  std::string blobFile; // empty: no blob
  uint64_t blobBytes = 0;
  uint32_t blobCrc = 0;
  std::string rowsFile; // empty: no rows in it
  uint64_t rowsBytes = 0, rowsChunks = 0, rowCount = 0;
  /// Also in the rows file and the lists of written rows: files of another
  /// moment do not pass for those that were written with this manifest.
  uint32_t seal = 0;
  std::vector<ManifestTable> tables;
  std::vector<ManifestGroup> groups;

  int findTable(const std::string &name) const;
  std::string toText() const;
  static Result<Manifest> fromText(const std::string &text,
                                   const std::string &path);
  /// The part that a plan fixes.
  static Manifest of(const Plan &plan);
  /// MISMATCH with what differs, where `plan` cannot go on with this state.
  Status matches(const Plan &plan, const std::string &where) const;
};

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_MANIFEST_H
