//===- FileUtil.h - Durable small files and folders -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a checkpoint needs of the file system: write, fdatasync, rename, fsync
// of the folder. Errors name the path. What changes the disk goes through
// FileSystem.h, so tests may simulate a power loss: use these functions for
// whatever must be durable, not the system's.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CHECKPOINT_FILEUTIL_H
#define TERRACE_RUNTIME_CHECKPOINT_FILEUTIL_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trc {

/// A file descriptor that closes itself.
class Fd {
public:
  explicit Fd(int fd = -1) : fd(fd) {}
  ~Fd();
  Fd(Fd &&other) noexcept : fd(other.fd) { other.fd = -1; }
  Fd &operator=(Fd &&other) noexcept;
  int get() const { return fd; }
  bool open() const { return fd >= 0; }
  void reset();

private:
  int fd;
};

/// openFile(), which is for what is only read.
Result<Fd> openToRead(const std::string &path);

bool pathExists(const std::string &path);
/// mkdir -p; the new folders' names are durable.
Status makeFolders(const std::string &path);
Status syncFolder(const std::string &path);
/// Creates or empties a file for writeAll() and syncFile(); what is no file
/// (a pipe) is an error.
Result<Fd> createFile(const std::string &path);
Status writeAll(int fd, const void *data, uint64_t bytes,
                const std::string &path);
/// fdatasync: contents, not the name.
Status syncFile(int fd, const std::string &path);
/// Durable after syncFolder() of the folder, of both if they differ.
Status renameFile(const std::string &from, const std::string &to);
/// Creates or replaces a file, durable but for its name (see syncFolder).
Status writeFile(const std::string &path, const void *data, uint64_t bytes);
/// writeFile to a temporary name, then rename, then syncFolder.
Status replaceFile(const std::string &folder, const std::string &name,
                   const std::string &text);
/// NOT_FOUND where there is none.
Result<std::string> readFile(const std::string &path);
/// Missing is fine.
Status removeFile(const std::string &path);
/// A folder with files in it, no folders below; missing is fine.
Status removeFlatFolder(const std::string &path);
std::vector<std::string> listFolder(const std::string &path);
/// `path` itself if absolute, else inside `folder`.
std::string inFolder(const std::string &folder, const std::string &path);
std::string folderOf(const std::string &path);

} // namespace trc

#endif // TERRACE_RUNTIME_CHECKPOINT_FILEUTIL_H
