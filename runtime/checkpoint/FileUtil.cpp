//===- FileUtil.cpp - Durable small files and folders ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// POSIX calls with the error's place kept.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/FileUtil.h"

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

bool trc::pathExists(const std::string &path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0;
}

Status trc::makeFolders(const std::string &path) {
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '/')
      continue;
    std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0777) == 0 || errno == EEXIST)
      continue;
    int err = errno;
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
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open())
    return Status::ioError("cannot open folder", path, errno);
  if (::fsync(fd.get()) != 0)
    return Status::ioError("cannot sync folder", path, errno);
  return Status();
}

Status trc::writeAll(int fd, const void *data, uint64_t bytes,
                     const std::string &path) {
  const char *p = static_cast<const char *>(data);
  while (bytes) {
    ssize_t n = ::write(fd, p, std::min<uint64_t>(bytes, 1u << 30));
    if (n < 0) {
      if (errno == EINTR)
        continue;
      return Status::ioError("cannot write", path, errno);
    }
    p += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return Status();
}

Status trc::writeFile(const std::string &path, const void *data,
                      uint64_t bytes) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd.open())
    return Status::ioError("cannot create", path, errno);
  TRC_RETURN_IF_ERROR(writeAll(fd.get(), data, bytes, path));
  if (::fdatasync(fd.get()) != 0)
    return Status::ioError("cannot sync", path, errno);
  return Status();
}

Status trc::replaceFile(const std::string &folder, const std::string &name,
                        const std::string &text) {
  std::string path = folder + "/" + name, temporary = path + ".tmp";
  Status s = writeFile(temporary, text.data(), text.size());
  if (s.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    s = Status::ioError("cannot rename", temporary, errno);
  if (!s.ok()) {
    ::unlink(temporary.c_str());
    return s;
  }
  return syncFolder(folder);
}

Result<std::string> trc::readFile(const std::string &path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.open())
    return Status::ioError("cannot open", path, errno);
  std::string text;
  char buffer[65536];
  while (true) {
    ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
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
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return Status::ioError("cannot remove", path, errno);
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
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT)
    return Status::ioError("cannot remove folder", path, errno);
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
