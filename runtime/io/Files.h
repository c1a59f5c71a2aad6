//===- Files.h - The files behind a device ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a backend needs of its files: open, move bytes at an offset, flush.
// PosixFiles finds out how far O_DIRECT works on each file by trying it;
// MemoryFiles keeps sparse files in memory. Thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_IO_FILES_H
#define TERRACE_RUNTIME_IO_FILES_H

#include "runtime/io/Device.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace trc {

class Files {
public:
  virtual ~Files() = default;
  virtual Result<uint32_t> open(const std::string &path, uint64_t bytes,
                                bool create) = 0;
  virtual FileInfo info(uint32_t file) const = 0;
  /// Bytes moved or -errno.
  virtual int32_t transfer(IoRequest::Kind kind, uint32_t file, char *data,
                           uint32_t bytes, uint64_t offset) = 0;
  virtual Status flush(uint32_t file) = 0;
  /// See Device::mapped.
  virtual const char *mapped(uint32_t file, uint64_t offset,
                             uint64_t bytes) const {
    return nullptr;
  }
};

class PosixFiles final : public Files {
public:
  explicit PosixFiles(bool direct) : wantDirect(direct) {}
  ~PosixFiles() override;

  Result<uint32_t> open(const std::string &path, uint64_t bytes,
                        bool create) override;
  FileInfo info(uint32_t file) const override;
  int32_t transfer(IoRequest::Kind kind, uint32_t file, char *data,
                   uint32_t bytes, uint64_t offset) override;
  Status flush(uint32_t file) override;

  int descriptor(uint32_t file) const;
  /// Goes on with this file through the page cache; returns the descriptor.
  Result<int> makeBuffered(uint32_t file, const std::string &why);
  /// Adds to the reason why the file is not direct.
  void addNote(uint32_t file, const std::string &text);

private:
  struct File {
    int fd = -1;
    FileInfo info;
    int flushError = 0; // sticky
  };
  const bool wantDirect;
  mutable std::mutex mutex;
  std::deque<File> files;
};

class MemoryFiles final : public Files {
public:
  Result<uint32_t> open(const std::string &path, uint64_t bytes,
                        bool create) override;
  FileInfo info(uint32_t file) const override;
  int32_t transfer(IoRequest::Kind kind, uint32_t file, char *data,
                   uint32_t bytes, uint64_t offset) override;
  Status flush(uint32_t file) override { return {}; }

private:
  static constexpr uint64_t chunkBytes = 65536;
  struct File {
    FileInfo info;
    std::map<uint64_t, std::unique_ptr<char[]>> chunks; // holes are absent
  };
  mutable std::mutex mutex;
  std::vector<File> files;
};

/// Threads of a device leave the process's signals to the program.
void blockSignalsInThisThread();

Result<std::unique_ptr<Device>> openThreadDevice(std::unique_ptr<Files> files,
                                                 const DeviceOptions &options,
                                                 std::string name);
Result<std::unique_ptr<Device>> openUringDevice(const DeviceOptions &options);
Result<std::unique_ptr<Device>> openPmemDevice(const DeviceOptions &options);
/// `reasons`: why it is not io_uring, for describe().
Result<std::unique_ptr<Device>> openAioDevice(const DeviceOptions &options,
                                              const std::string &reasons = "");

/// Page-aligned buffers of a device; null if there is no memory.
class BufferArena {
public:
  BufferArena(uint32_t count, uint32_t each);
  ~BufferArena();
  BufferArena(const BufferArena &) = delete;
  BufferArena &operator=(const BufferArena &) = delete;
  char *base() const { return data; }
  char *buffer(uint32_t i) const { return data + uint64_t(i) * each; }
  uint64_t bytes() const { return total; }

private:
  char *data = nullptr;
  uint32_t each;
  uint64_t total;
};

} // namespace trc

#endif // TERRACE_RUNTIME_IO_FILES_H
