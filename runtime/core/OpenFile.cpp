//===- OpenFile.cpp - Opens what must be a file ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// O_NONBLOCK for the opening alone: io_uring takes it for a wish not to wait.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/OpenFile.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;

static const char *otherThan(mode_t mode, FileKind kind) {
  if (S_ISREG(mode) || (S_ISBLK(mode) && kind != FileKind::Regular) ||
      (S_ISCHR(mode) && kind == FileKind::OrDevice))
    return nullptr;
  return S_ISFIFO(mode)   ? "a pipe"
         : S_ISDIR(mode)  ? "a folder"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

const char *trc::otherThanFile(const std::string &path, FileKind kind) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? otherThan(info.st_mode, kind)
                                          : nullptr;
}

Status trc::notAFile(const std::string &path, const char *what, FileKind kind) {
  return Status(TRC_BAD_ARGUMENT,
                "'" + path + "' is " + what + ", not a file" +
                    (kind == FileKind::Regular ? "" : " or block device") +
                    "; remove it, or name another file");
}

static int tryToOpen(const std::string &path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644);
}

/// `fd` is what open() said, errno its error.
static Result<int> checkOpened(int fd, const std::string &path, FileKind kind) {
  if (fd < 0) {
    int error = errno;
    // A pipe nobody reads from, a socket, a folder to write to.
    if (const char *what = otherThanFile(path, kind))
      return notAFile(path, what, kind);
    return Status::ioError("cannot open", path, error);
  }
  struct stat info;
  Status s;
  if (::fstat(fd, &info) != 0)
    s = Status::ioError("cannot open", path, errno);
  else if (const char *what = otherThan(info.st_mode, kind))
    s = notAFile(path, what, kind);
  else if (int now = ::fcntl(fd, F_GETFL);
           now < 0 || ::fcntl(fd, F_SETFL, now & ~O_NONBLOCK) != 0)
    s = Status::ioError("cannot open", path, errno);
  if (s.ok())
    return fd;
  ::close(fd);
  return s;
}

Result<int> trc::openFile(const std::string &path, int flags, FileKind kind) {
  return checkOpened(tryToOpen(path, flags), path, kind);
}

Result<int> trc::openTier(const std::string &path, bool create, FileKind kind,
                          bool &readOnly) {
  int fd = tryToOpen(path, O_RDWR | (create ? O_CREAT : 0));
  // A state that is only read may lie where nothing can be written.
  readOnly = fd < 0 && (errno == EROFS || errno == EACCES);
  if (readOnly)
    fd = tryToOpen(path, O_RDONLY);
  return checkOpened(fd, path, kind);
}
