//===- Manifest.h - What a state or a checkpoint is of ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One JSON text with a checksum: the root of a checkpoint or of a closed state.
// The part about tables, counters and head is independent of any plan; `groups`
// says in which stores the rows lie, and which index files find them there.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_MANIFEST_H
#define TERRACE_RUNTIME_CHECKPOINT_MANIFEST_H

#include "runtime/core/Plan.h"
#include "runtime/store/StoreGeometry.h"

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

/// The store of a group's rows.
struct ManifestGroup {
  struct Extent {
    std::string path; // relative ones lie in the state's folder
    uint64_t base = 0;
    bool operator==(const Extent &o) const {
      return path == o.path && base == o.base;
    }
  };
  std::vector<int> tables; // indices into Manifest::tables
  std::vector<int64_t> rowBase;
  int64_t rows = 0, payloadBytes = 0, storeBytes = 0;
  StoreGeometry geometry;
  std::vector<Extent> extents;
  std::vector<std::string> index; // index files in the state's folder
};

struct Manifest {
  std::string model, head; // head empty: none
  uint64_t sequence = 0;   // rises with every checkpoint and clean close
  /// Of the state, in all its files: those of another state do not pass.
  uint64_t key = 0;
  /// Of the identity: keys of the states that were here before and were given
  /// up; tier files outside of the folder may still carry them.
  std::vector<uint64_t> replaces;
  /// Of the identity: the last of those may not be removed altogether yet;
  /// whatever else lies here is its.
  bool removing = false;
  /// Of the identity: an import makes the state, and was not through as long as
  /// there is no root.
  bool importing = false;
  /// Rises when a plan lays the rows out anew, in files of their own.
  uint32_t generation = 0;
  int64_t step = 0, samples = 0;
  double lrScale = 1;
  HeadState headState;
  std::string blobFile; // empty: no blob
  uint64_t blobBytes = 0;
  uint32_t blobCrc = 0;
  /// Of a closed state: which rows its caches held (ResidentFile.h); empty:
  /// nobody knows. A hint, so nothing else depends on it.
  std::string residentFile;
  std::vector<ManifestTable> tables;
  std::vector<ManifestGroup> groups;

  int findTable(const std::string &name) const;
  std::string toText() const;
  static Result<Manifest> fromText(const std::string &text,
                                   const std::string &path);
  /// What cannot be right about it, or empty (fromText asks).
  std::string fault() const;
  /// The part that a plan fixes.
  static Manifest of(const Plan &plan);
  /// MISMATCH with what differs, where `plan` cannot go on with this state, to
  /// train or to read.
  Status matches(const Plan &plan, const std::string &where, bool train) const;
};

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_MANIFEST_H
