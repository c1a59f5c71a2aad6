//===- FileSystem.cpp - The operating system's file system ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/FileSystem.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;

namespace {

int result(int r) { return r < 0 ? -errno : r; }

class PosixFileSystem final : public FileSystem {
public:
  int create(const std::string &path) override {
    return result(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  }
  int64_t write(int fd, const void *data, uint64_t bytes) override {
    ssize_t n = ::write(fd, data, std::min<uint64_t>(bytes, 1u << 30));
    return n < 0 ? -errno : n;
  }
  int sync(int fd) override { return result(::fdatasync(fd)); }
  int rename(const std::string &from, const std::string &to) override {
    return result(::rename(from.c_str(), to.c_str()));
  }
  int exchange(const std::string &a, const std::string &b) override {
    return result(
        ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE));
  }
  int unlink(const std::string &path) override {
    return result(::unlink(path.c_str()));
  }
  int makeFolder(const std::string &path) override {
    return result(::mkdir(path.c_str(), 0777));
  }
  int removeFolder(const std::string &path) override {
    return result(::rmdir(path.c_str()));
  }
  int syncFolder(const std::string &path) override {
    int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
      return -errno;
    int r = result(::fsync(fd));
    ::close(fd);
    return r;
  }
};

std::atomic<FileSystem *> standIn{nullptr};

} // namespace

FileSystem &trc::posixFileSystem() {
  static PosixFileSystem posix;
  return posix;
}

FileSystem &trc::fileSystem() {
  FileSystem *other = standIn.load(std::memory_order_acquire);
  return other ? *other : posixFileSystem();
}

void trc::setFileSystem(FileSystem *other) {
  standIn.store(other, std::memory_order_release);
}
