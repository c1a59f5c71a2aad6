//===- FileSystem.h - The calls that change a folder ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything FileUtil does to what is on disk goes through these few calls, so
// that a test may stand in for the operating system and take away what was not
// synced. Reading does not go through here: descriptors and paths are real.
//
// Results are those of the system calls, with -errno for failures. Calls may
// come from any thread.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_FILESYSTEM_H
#define TERRACE_RUNTIME_CHECKPOINT_FILESYSTEM_H

#include <cstdint>
#include <string>

namespace trc {

class FileSystem {
public:
  virtual ~FileSystem() = default;

  /// Creates or empties a file for writing; the descriptor is closed by
  /// close(2).
  virtual int create(const std::string &path) = 0;
  /// Appends at the descriptor's place.
  virtual int64_t write(int fd, const void *data, uint64_t bytes) = 0;
  virtual int sync(int fd) = 0;
  virtual int rename(const std::string &from, const std::string &to) = 0;
  /// Two names change places in one step; -EINVAL or -ENOSYS where the file
  /// system cannot.
  virtual int exchange(const std::string &a, const std::string &b) = 0;
  virtual int unlink(const std::string &path) = 0;
  virtual int makeFolder(const std::string &path) = 0;
  virtual int removeFolder(const std::string &path) = 0;
  /// Makes the names in the folder durable.
  virtual int syncFolder(const std::string &path) = 0;
};

/// The one in use: the operating system's unless a test has set another.
FileSystem &fileSystem();
FileSystem &posixFileSystem();
/// For tests: null goes back to the operating system. The caller keeps it alive
/// and calls this only while nobody uses the file system.
void setFileSystem(FileSystem *other);

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_FILESYSTEM_H
