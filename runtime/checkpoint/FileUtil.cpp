//===- FileUtil.cpp - Durable small files and folders ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// System calls with the error's place kept; those that change what is on disk
// go through fileSystem().
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/FileUtil.h"
#include "runtime/checkpoint/FileSystem.h"
#include "runtime/core/OpenFile.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;

Fd::~Fd() { reset(); }

void Fd::reset() {
  if (fd >= 0)
    ::close(fd);
  fd = -1;
}

Fd &Fd::operator=(Fd &&other) noexcept {
  std::swap(fd, other.fd);
  return *this;
}

Result<Fd> trc::openToRead(const std::string &path) {
  Result<int> fd = openFile(path, O_RDONLY);
  if (!fd.ok())
    return fd.takeStatus();
  return Fd(*fd);
}

bool trc::pathExists(const std::string &path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0;
}

Status trc::makeFolders(const std::string &path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '/')
      continue;
    std::string part = path.substr(0, at);
    int err = -fileSystem().makeFolder(part);
    if (err == 0) {
      // Else a power loss takes the folder, and what is durable in it.
      TRC_RETURN_IF_ERROR(syncFolder(folderOf(part)));
      continue;
    }
    if (err == EEXIST)
      continue;
    // A parent that cannot be written may exist all the same.
    struct stat st;
    if (::stat(part.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
      continue;
    return Status::ioError("cannot create folder", part, err);
  }
  struct stat st;
  if (::stat(path.c_str(), &st) != 0)
    return Status::ioError("cannot open folder", path, errno);
  if (!S_ISDIR(st.st_mode))
    return Status::ioError("cannot use as a folder", path, ENOTDIR);
  return Status();
}

Status trc::syncFolder(const std::string &path) {
  if (int r = fileSystem().syncFolder(path); r < 0)
    return Status::ioError("cannot sync folder", path, -r);
  return Status();
}

Result<Fd> trc::createFile(const std::string &path) {
  if (const char *what = otherThanFile(path))
    return notAFile(path, what, FileKind::Regular);
  int fd = fileSystem().create(path);
  if (fd < 0)
    return Status::ioError("cannot create", path, -fd);
  return Fd(fd);
}

Status trc::writeAll(int fd, const void *data, uint64_t bytes,
                     const std::string &path) {
  const char *p = static_cast<const char *>(data);
  while (bytes) {
    int64_t n = fileSystem().write(fd, p, bytes);
    if (n < 0) {
      if (n == -EINTR)
        continue;
      return Status::ioError("cannot write", path, static_cast<int>(-n));
    }
    p += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return Status();
}

Status trc::syncFile(int fd, const std::string &path) {
  if (int r = fileSystem().sync(fd); r < 0)
    return Status::ioError("cannot sync", path, -r);
  return Status();
}

Status trc::renameFile(const std::string &from, const std::string &to) {
  if (int r = fileSystem().rename(from, to); r < 0)
    return Status::ioError("cannot rename", from, -r);
  return Status();
}

Status trc::writeFile(const std::string &path, const void *data,
                      uint64_t bytes) {
  Result<Fd> fd = createFile(path);
  if (!fd.ok())
    return fd.takeStatus();
  TRC_RETURN_IF_ERROR(writeAll(fd->get(), data, bytes, path));
  return syncFile(fd->get(), path);
}

Status trc::replaceFile(const std::string &folder, const std::string &name,
                        const std::string &text) {
  std::string path = folder + "/" + name, temporary = path + ".tmp";
  Status s = writeFile(temporary, text.data(), text.size());
  if (s.ok())
    s = renameFile(temporary, path);
  if (!s.ok()) {
    (void)removeFile(temporary);
    return s;
  }
  return syncFolder(folder);
}

Result<std::string> trc::readFile(const std::string &path) {
  Result<Fd> fd = openToRead(path);
  if (!fd.ok())
    return fd.takeStatus();
  std::string text;
  char buffer[65536];
  while (true) {
    ssize_t n = ::read(fd->get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return Status::ioError("cannot read", path, errno);
    if (n == 0)
      return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

Status trc::removeFile(const std::string &path) {
  if (int r = fileSystem().unlink(path); r < 0 && r != -ENOENT)
    return Status::ioError("cannot remove", path, -r);
  return Status();
}

std::vector<std::string> trc::listFolder(const std::string &path) {
  std::vector<std::string> names;
  DIR *dir = ::opendir(path.c_str());
  if (!dir)
    return names;
  while (dirent *entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..")
      names.push_back(std::move(name));
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

Status trc::removeFlatFolder(const std::string &path) {
  for (const std::string &name : listFolder(path))
    TRC_RETURN_IF_ERROR(removeFile(path + "/" + name));
  if (int r = fileSystem().removeFolder(path); r < 0 && r != -ENOENT)
    return Status::ioError("cannot remove folder", path, -r);
  return Status();
}

std::string trc::inFolder(const std::string &folder, const std::string &path) {
  return !path.empty() && path[0] == '/' ? path : folder + "/" + path;
}

std::string trc::folderOf(const std::string &path) {
  size_t at = path.rfind('/');
  if (at == std::string::npos)
    return ".";
  return at == 0 ? "/" : path.substr(0, at);
}
