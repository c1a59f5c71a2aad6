//===- StateDir.h - The folder of a state -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   manifest.json        which model's state this is; written when it is made
//   clean.json           the marker of a clean close and where its rows lie
//   live-N.rows, live-N.blob, index-N-G   what clean.json names
//   checkpoints/ckpt-S/  manifest.json, rows.bin, blob.bin
//   *.store              tier files with relative paths
//
// The folder itself is locked (flock): exclusively to train, shared to read.
// What is newest is told by the sequence number in the manifests.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_STATEDIR_H
#define TERRACE_RUNTIME_CHECKPOINT_STATEDIR_H

#include "runtime/checkpoint/FileUtil.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/RowsFile.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trc {

/// A state to begin with.
struct StateSource {
  Manifest manifest;
  std::string folder; // where the manifest's files lie
  std::string name;   // for messages: "ckpt-100" or "the closed state"
  bool clean = false; // a cleanly closed state, not a checkpoint

  /// Reads the blob and checks it.
  Status readBlob(std::vector<char> &blob) const;
};

class StateDir {
public:
  /// Opens and locks. With `create`, makes the folder where it is missing;
  /// without, NOT_FOUND. LOCKED where another process has it.
  static Result<std::unique_ptr<StateDir>> open(const std::string &path,
                                                bool exclusive, bool create);

  const std::string &path() const { return folder; }
  std::string checkpointPath(const std::string &name) const {
    return folder + "/checkpoints/" + name;
  }

  /// manifest.json, if there is one.
  Result<std::optional<Manifest>> identity() const;
  Status writeIdentity(const Manifest &manifest);

  /// All checkpoints with a readable manifest, oldest first; what is damaged
  /// is told to `warn`.
  std::vector<StateSource>
  checkpoints(const std::function<void(const std::string &)> &warn) const;
  Result<StateSource> checkpoint(const std::string &name) const;
  /// The clean state, if it is one.
  Result<std::optional<StateSource>> cleanState() const;
  /// The newest of both.
  Result<std::optional<StateSource>>
  newest(const std::function<void(const std::string &)> &warn) const;
  uint64_t lastSequence() const;

  /// Takes the clean marker away, durably. What it named is left over.
  Status removeClean();
  Status writeClean(const Manifest &manifest);
  /// Removes the files of clean states but that of `keep` (0: all).
  void removeLeftovers(uint64_t keep);
  /// Removes everything that this class made, and tier files in the folder.
  Status wipe(const std::vector<std::string> &tierFiles);

  /// A checkpoint: fill the folder that begin() returns, then commit().
  Result<std::string> beginCheckpoint();
  Status commitCheckpoint(const std::string &name, const Manifest &manifest);
  void abandonCheckpoint();
  /// Keeps the newest `keep` checkpoints (0: all).
  Status prune(uint32_t keep);

private:
  StateDir() = default;
  std::string temporary() const { return folder + "/checkpoints/.new"; }

  std::string folder;
  Fd lock;
};

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_STATEDIR_H
