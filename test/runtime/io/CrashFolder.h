//===- CrashFolder.h - A folder that forgets like a disk --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stands in for the file system below one folder. Everything is really done
// there, so descriptors, locks and readers work; but it remembers what was
// synced. crashInto() writes another folder as it may be found after a power
// loss at that moment:
//  - contents that were not synced since they last changed: there, as of the
//    last sync, or cut and mixed with old bytes and zeroes in blocks of 512;
//  - names made, renamed and removed since the last sync of their folder: each
//    such step happened or not, whatever became of the others.
// What was there at the start is durable. Paths outside the folder pass
// through. Thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_IO_CRASHFOLDER_H
#define TERRACE_TEST_RUNTIME_IO_CRASHFOLDER_H

#include "runtime/checkpoint/FileSystem.h"
#include "test/runtime/io/PowerSwitch.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace trc {

class CrashFates;

class CrashFolder final : public FileSystem {
public:
  /// `root` must exist; the switch outlives this (null: always on). Becomes the
  /// file system of the process until it ends.
  explicit CrashFolder(std::string root, PowerSwitch *power = nullptr);
  ~CrashFolder() override;

  /// Fills `target`, which must not exist, with what a power loss now leaves;
  /// may be called as often as you like, this one goes on. Files that were made
  /// around FileUtil (locks of tier files) are copied as they are.
  void crashInto(const std::string &target, uint64_t seed) const;

  /// Steps that a power loss might take: names, and files with unsynced bytes.
  uint64_t unsynced() const;
  /// Operation `n`, counted from 0, fails with this errno and does nothing.
  void failAt(uint64_t n, int error);
  /// Operations so far: failAt(operationCount() + k) hits the k-th from now.
  uint64_t operationCount() const;
  /// Makes the contents of a file durable, out of turn: for tests of what goes
  /// wrong where the order is.
  void persist(const std::string &path);

  int create(const std::string &path) override;
  int64_t write(int fd, const void *data, uint64_t bytes) override;
  int sync(int fd) override;
  int rename(const std::string &from, const std::string &to) override;
  int exchange(const std::string &a, const std::string &b) override;
  int unlink(const std::string &path) override;
  int makeFolder(const std::string &path) override;
  int removeFolder(const std::string &path) override;
  int syncFolder(const std::string &path) override;

private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePtr>;
  struct Node {
    bool folder = false;
    std::string synced, current; // of a file
    Names durable, names;        // of a folder
  };
  struct Place {
    NodePtr folder; // null: not below the root
    std::string name;
    NodePtr node; // null: nothing of that name
  };
  /// A change of names that is not durable yet.
  struct Step {
    enum Kind { Link, Unlink, Rename, Exchange } kind;
    NodePtr folder[2]; // set to null when that folder was synced
    NodePtr at[2];     // the folders themselves
    std::string name[2];
    NodePtr node[2];
  };
  using Answer = PowerSwitch::Answer;

  Place find(const std::string &path) const;
  NodePtr scan(const std::string &path) const;
  /// Counts an operation. Sets `error` where it must not be reported as done.
  Answer begin(int &error);
  void step(Step step);
  static void apply(const Step &step, std::map<const Node *, Names> &folders);
  void writeOut(const Node &node, const std::string &target,
                const std::string &path,
                const std::map<const Node *, Names> &folders,
                const CrashFates &fates) const;
  void copyStrangers(const Node &node, const std::string &from,
                     const std::string &to) const;

  const std::string root;
  PowerSwitch *const power;
  FileSystem &posix;
  mutable std::mutex mutex;
  NodePtr top;
  std::map<int, NodePtr> open; // by descriptor
  std::vector<Step> steps;     // in order
  uint64_t operations = 0, failOperation = UINT64_MAX;
  int failError = 0;
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_IO_CRASHFOLDER_H
