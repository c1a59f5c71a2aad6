//===- OutputFile.cpp - A file that appears whole -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/OutputFile.h"

#include "runtime/core/OpenFile.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace trc;
using namespace trc::inspect;

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  fd.reset();
  unfinished.discard();
  target.clear();
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : target(std::exchange(other.target, {})),
      unfinished(std::move(other.unfinished)), fd(std::move(other.fd)) {}

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  if (this != &other) {
    discard();
    target = std::exchange(other.target, {});
    unfinished = std::move(other.unfinished);
    fd = std::move(other.fd);
  }
  return *this;
}

Result<OutputFile> OutputFile::create(const std::string &path, uint64_t bytes) {
  struct stat st;
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return Status(TRC_BAD_ARGUMENT,
                  "'" + path + "' is there and no plain file; name another");
  OutputFile file;
  std::string part = path + ".part";
  file.unfinished = Unfinished(part);
  Result<int> fd = openFile(part, O_RDWR | O_CREAT | O_TRUNC);
  if (!fd.ok()) {
    file.unfinished.keep(); // it is not ours
    return fd.takeStatus();
  }
  file.fd = Fd(*fd);
  file.target = path;
  if (bytes && ::fallocate(file.fd.get(), 0, 0, static_cast<off_t>(bytes))) {
    int err = errno;
    if (err != EOPNOTSUPP && err != ENOSYS && err != EINVAL && err != EINTR)
      return Status::ioError("cannot make room for " + std::to_string(bytes) +
                                 " bytes in",
                             path, err);
  }
  return Result<OutputFile>(std::move(file));
}

Status OutputFile::write(uint64_t offset, const void *data, uint64_t bytes) {
  const char *p = static_cast<const char *>(data);
  while (bytes) {
    ssize_t n = ::pwrite(fd.get(), p, std::min<uint64_t>(bytes, 1u << 30),
                         static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return Status::ioError("cannot write", target, errno);
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<uint64_t>(n);
  }
  return Status();
}

Status OutputFile::close() {
  if (::fdatasync(fd.get()) != 0)
    return Status::ioError("cannot sync", target, errno);
  fd.reset();
  return Status();
}

Status OutputFile::publish() {
  if (::rename(part().c_str(), target.c_str()) != 0)
    return Status::ioError("cannot rename", part(), errno);
  unfinished.keep();
  std::string folder = folderOf(target);
  target.clear();
  return syncFolder(folder);
}

Status inspect::refuseStateFolder(const std::string &path) {
  for (const char *name : {"checkpoints", "closed.json", "manifest.json"})
    if (pathExists(path + "/" + name))
      return Status(TRC_BAD_ARGUMENT,
                    "'" + path + "' is the folder of a state (it holds " +
                        name + "); name another for the output");
  return Status();
}
