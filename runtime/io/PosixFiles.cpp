//===- PosixFiles.cpp - Files and block devices, O_DIRECT where it works --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether and how finely O_DIRECT works depends on file system, kernel and
// device. STATX_DIOALIGN says so on newer kernels; in any case one block is
// really read before it is believed.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/OpenFile.h"
#include "runtime/io/Files.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace trc;

void trc::blockSignalsInThisThread() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

BufferArena::BufferArena(uint32_t count, uint32_t each)
    : each(each), total(uint64_t(count) * each) {
  data = static_cast<char *>(std::aligned_alloc(4096, total));
  // Direct I/O may write a buffer whose tail is longer than what is used.
  if (data)
    std::memset(data, 0, total);
}

BufferArena::~BufferArena() { std::free(data); }

namespace {

/// The unit of offsets that the kernel states, or 0 if it does not say.
uint32_t statedAlignment(int fd) {
#if defined(STATX_DIOALIGN) && defined(SYS_statx)
  // glibc 2.36 knows the call but not the fields, so ask the kernel itself.
  struct statx s;
  std::memset(&s, 0, sizeof s);
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &s) == 0 &&
      (s.stx_mask & STATX_DIOALIGN))
    return s.stx_dio_offset_align;
#endif
  return 0;
}

/// 0, or the errno of reading one block at a block's offset.
int tryRead(int fd, uint32_t block) {
  void *buffer = std::aligned_alloc(4096, 4096);
  if (!buffer)
    return ENOMEM;
  ssize_t got = pread(fd, buffer, block, block);
  int error = got < 0 ? errno : 0;
  std::free(buffer);
  return error;
}

/// Block size of direct I/O on `fd`, or 0 with the reason.
uint32_t findDirectBlock(int fd, bool blockDevice, std::string &why) {
  uint32_t stated = statedAlignment(fd);
  if (blockDevice && !stated) {
    int logical = 0;
    if (ioctl(fd, BLKSSZGET, &logical) == 0 && logical > 0)
      stated = static_cast<uint32_t>(logical);
  }
  if (stated > 4096) {
    why = "direct I/O needs blocks of " + std::to_string(stated) + " bytes";
    return 0;
  }
  int error = 0;
  for (uint32_t block : {512u, 4096u}) {
    if (block < stated)
      continue;
    error = tryRead(fd, block);
    if (error == 0)
      return block;
  }
  why = std::string("a direct read failed: ") + std::strerror(error);
  return 0;
}

} // namespace

PosixFiles::~PosixFiles() {
  for (File &file : files)
    if (file.fd >= 0)
      ::close(file.fd);
}

Result<uint32_t> PosixFiles::open(const std::string &path, uint64_t bytes,
                                  bool create) {
  bytes = (bytes + 4095) / 4096 * 4096;
  int flags = O_RDWR | O_CLOEXEC;
  bool readOnly = false;
  Result<int> opened =
      openTier(path, create, FileKind::OrBlockDevice, readOnly);
  if (!opened.ok())
    return opened.takeStatus();
  int fd = *opened;
  if (readOnly)
    flags = O_RDONLY | O_CLOEXEC;

  File file;
  file.fd = fd;
  file.info.path = path;
  struct stat st;
  if (fstat(fd, &st) != 0) {
    int error = errno;
    ::close(fd);
    return Status::ioError("cannot stat", path, error);
  }
  file.info.blockDevice = S_ISBLK(st.st_mode);
  file.info.bytes = static_cast<uint64_t>(st.st_size);
  if (file.info.blockDevice) {
    uint64_t size = 0;
    if (ioctl(fd, BLKGETSIZE64, &size) != 0) {
      int error = errno;
      ::close(fd);
      return Status::ioError("cannot ask the size of", path, error);
    }
    file.info.bytes = size;
    if (size < bytes) {
      ::close(fd);
      return Status(TRC_NO_SPACE, "the block device '" + path + "' has " +
                                      std::to_string(size) + " bytes, but " +
                                      std::to_string(bytes) + " are needed");
    }
  } else if (file.info.bytes < bytes && !readOnly) {
    // Sparse: rows that are never written take no space.
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
      int error = errno;
      ::close(fd);
      return Status::ioError(
          "cannot grow to " + std::to_string(bytes) + " bytes:", path, error);
    }
    file.info.bytes = bytes;
  }

  file.info.blockBytes = 512;
  if (!wantDirect) {
    file.info.note = "direct I/O is switched off";
  } else {
    int direct = ::open(path.c_str(), flags | O_DIRECT);
    if (direct < 0) {
      file.info.note =
          std::string("O_DIRECT was refused: ") + std::strerror(errno);
    } else if (uint32_t block = findDirectBlock(direct, file.info.blockDevice,
                                                file.info.note)) {
      ::close(fd);
      file.fd = direct;
      file.info.direct = true;
      file.info.blockBytes = block;
    } else {
      ::close(direct);
    }
  }

  std::lock_guard<std::mutex> lock(mutex);
  files.push_back(std::move(file));
  return static_cast<uint32_t>(files.size() - 1);
}

Result<int> PosixFiles::makeBuffered(uint32_t id, const std::string &why) {
  std::lock_guard<std::mutex> lock(mutex);
  File &file = files[id];
  int flags = ::fcntl(file.fd, F_GETFL);
  int fd = ::open(file.info.path.c_str(),
                  (flags < 0 ? O_RDWR : flags & O_ACCMODE) | O_CLOEXEC);
  if (fd < 0)
    return Status::ioError("cannot open", file.info.path, errno);
  ::close(file.fd);
  file.fd = fd;
  file.info.direct = false;
  file.info.note = why;
  return fd;
}

void PosixFiles::addNote(uint32_t id, const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string &note = files[id].info.note;
  note += (note.empty() ? "" : ", ") + text;
}

FileInfo PosixFiles::info(uint32_t id) const {
  std::lock_guard<std::mutex> lock(mutex);
  return files[id].info;
}

int PosixFiles::descriptor(uint32_t id) const {
  std::lock_guard<std::mutex> lock(mutex);
  return files[id].fd;
}

int32_t PosixFiles::transfer(IoRequest::Kind kind, uint32_t id, char *data,
                             uint32_t bytes, uint64_t offset) {
  int fd = descriptor(id);
  for (;;) {
    ssize_t n = kind == IoRequest::Kind::Read
                    ? pread(fd, data, bytes, static_cast<off_t>(offset))
                    : pwrite(fd, data, bytes, static_cast<off_t>(offset));
    if (n >= 0)
      return static_cast<int32_t>(n);
    if (errno != EINTR)
      return -errno;
  }
}

Status PosixFiles::flush(uint32_t id) {
  int fd, error;
  std::string path;
  {
    std::lock_guard<std::mutex> lock(mutex);
    fd = files[id].fd;
    path = files[id].info.path;
    error = files[id].flushError;
  }
  if (!error && fdatasync(fd) != 0) {
    error = errno;
    std::lock_guard<std::mutex> lock(mutex);
    files[id].flushError = error;
  }
  return error ? Status::ioError("cannot flush", path, error) : Status();
}
