//===- StateDir.h - The folder of a state -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   manifest.json        which model's state this is; written when it is made
//   claims.json          the sessions that its stores may name as their last
//                        writers, by generation of the layout
//   closed.json          the root of the last clean close
//   closed-N.blob        its blob
//   closed-N.resident    which rows its caches held, for a warm open
//   checkpoints/ckpt-S/  manifest.json (the root of a checkpoint), blob.bin
//   index-G-*            where the rows of group G lie, by checkpoint; in later
//   index-N.G-*          generations N of the layout
//   (RowStore) dram.store, *.store  rows of memory tiers; tier files with
//   relative paths
//
// The folder itself is locked (flock): exclusively to train, shared to read.
// What is newest is told by the sequence number in the roots. A root appears,
// and goes, as a whole; what it names was durable before, and is kept until the
// root is gone durably.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_STATEDIR_H
#define TERRACE_RUNTIME_CHECKPOINT_STATEDIR_H

#include "runtime/checkpoint/FileUtil.h"
#include "runtime/checkpoint/Manifest.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trc {

/// A state to begin with.
struct StateSource {
  Manifest manifest;
  std::string folder;  // where the manifest's files lie
  std::string name;    // for messages: "ckpt-100" or "the closed state"
  bool closed = false; // a cleanly closed state, not a checkpoint

  /// Reads the blob and checks it.
  Status readBlob(std::vector<char> &blob) const;
};

/// The file of a tier path in a generation of the layout.
std::string generationPath(const std::string &path, uint32_t generation);
/// The tier path of such a file.
std::string tierPath(const std::string &file, uint32_t generation);
/// What the index files of a generation's groups begin with.
std::string generationPrefix(uint32_t generation);
/// The store of the rows that live in memory, beside the tiers' files.
constexpr const char *memoryStoreFile = "dram.store";

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
  /// Whether an import began here and did not come to its end.
  bool importing() const;

  /// All checkpoints with a readable manifest, oldest first; what is damaged
  /// is told to `warn`.
  std::vector<StateSource>
  checkpoints(const std::function<void(const std::string &)> &warn) const;
  Result<StateSource> checkpoint(const std::string &name) const;
  /// The state of the last clean close, if there is one.
  Result<std::optional<StateSource>> closedState() const;
  /// The newest of both.
  Result<std::optional<StateSource>>
  newest(const std::function<void(const std::string &)> &warn) const;
  /// Every root that can be read, by rising sequence.
  std::vector<StateSource>
  roots(const std::function<void(const std::string &)> &warn) const;

  uint64_t lastSequence() const;

  /// Writes the root of a close. `inDoubt`: it failed, and may yet be there.
  Status writeClosed(const Manifest &manifest, bool &inDoubt);
  /// Takes the root of the last close away, durably; missing is fine.
  Status removeClosed();
  /// Removes what no root names: temporary files, blobs of older closes, and
  /// store and index files of generations that are gone.
  void removeLeftovers(const std::vector<std::string> &tierFiles);
  /// Removes everything that this class made but for the identity, and store
  /// files in the folder. No root counts while the identity says `removing`, so
  /// that a state is given up as a whole.
  Status wipe(const std::vector<std::string> &tierFiles);

  /// A checkpoint: fill the folder that begin() returns, then commit().
  Result<std::string> beginCheckpoint();
  /// `inDoubt`: it failed, and may yet be there.
  Status commitCheckpoint(const std::string &name, const Manifest &manifest,
                          bool &inDoubt);
  void abandonCheckpoint();
  /// Takes a checkpoint away, durably.
  Status removeCheckpoint(const std::string &name);
  /// Keeps the newest `keep` checkpoints (0: all). `removed` gets the
  /// sequences of those that are gone, durably.
  Status prune(uint32_t keep, std::vector<uint64_t> &removed);

private:
  StateDir() = default;
  /// Roots are those of a state that was given up.
  bool removing() const;
  /// Without asking whether it counts.
  Result<StateSource> readCheckpoint(const std::string &name) const;
  std::string temporary() const { return folder + "/checkpoints/.new"; }

  std::string folder;
  Fd lock;
};

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_STATEDIR_H
