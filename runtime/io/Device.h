//===- Device.h - Aligned I/O at offsets of files ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One device drives the files (or raw block devices) of one tier: a queue of
// bounded depth, with one buffer per transfer in flight, so that all I/O goes
// through aligned (and, on io_uring, registered) memory of a fixed size.
// Backends: io_uring, Linux AIO, a pool of threads with pread/pwrite, mapped
// persistent memory, and memory.
//
// Threads: every function may be called from any thread. Requests are called
// back on the device's own threads, never inside submit().
// Lifetime: a request belongs to its submitter and must stay alive until its
// complete() returned false. The device outlives its requests; its destructor
// waits for what was submitted.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_IO_DEVICE_H
#define TERRACE_RUNTIME_IO_DEVICE_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace trc {

/// One transfer, or a chain of them on the same buffer. Subclass it.
class IoRequest {
public:
  enum class Kind : uint8_t { Read, Write };

  virtual ~IoRequest() = default;

  Kind kind = Kind::Read;
  /// Write-back: gives way to reads that wait.
  bool background = false;
  uint32_t file = 0;
  /// Offset in the file and bytes: multiples of the file's blockBytes, the
  /// buffer offset `at` too; at + bytes <= Device::bufferBytes().
  uint64_t offset = 0;
  uint32_t bytes = 0;
  uint32_t at = 0;

  /// Called once before the first transfer, with the buffer that the request
  /// keeps until it ends. A write fills it here.
  virtual void begin(char *buffer) {}
  /// Called after each transfer with the bytes moved, which may be fewer than
  /// asked for, or -errno. Returns true to go on with the same buffer after
  /// changing the fields above, false when done: the device does not touch the
  /// request again, not even by the time complete() returns.
  virtual bool complete(int32_t result, char *buffer) = 0;

private:
  friend class IoQueue;
  IoRequest *next = nullptr;
};

struct FileInfo {
  std::string path;
  uint32_t blockBytes = 0; // unit of offsets and sizes
  uint64_t bytes = 0;      // size of the file or the block device
  bool direct = false;     // bypasses the page cache
  bool blockDevice = false;
  std::string note; // why it is not direct; empty where it is
};

class Device {
public:
  virtual ~Device() = default;

  /// Opens a file, growing it (sparse, nothing is allocated) to at least
  /// `bytes`; creates it if `create`. The id is valid until the device ends.
  virtual Result<uint32_t> openFile(const std::string &path, uint64_t bytes,
                                    bool create) = 0;
  virtual FileInfo fileInfo(uint32_t file) const = 0;

  /// Queues the request. Requests may start and end in any order.
  virtual void submit(IoRequest &request) = 0;

  /// Makes everything that has completed durable (fdatasync); blocks. After a
  /// failure the pages may be gone: never retry, give the file up.
  virtual Status flush(uint32_t file) = 0;

  /// Where the bytes lie in memory, to be read in place for as long as the
  /// device lives; null where they do not, or must not be read without care. A
  /// load from media that has gone bad since is a SIGBUS: read through a
  /// request what has not been verified since open. Writes go through requests.
  virtual const char *mapped(uint32_t file, uint64_t offset,
                             uint64_t bytes) const {
    return nullptr;
  }

  virtual uint32_t depth() const = 0;
  virtual uint32_t bufferBytes() const = 0;
  /// One line for logs: backend, features in use, and the reason for each
  /// fallback.
  virtual std::string describe() const = 0;
};

/// Features that can be switched off one by one (for tests and for kernels
/// that misbehave). Each is tried by real I/O and left out where it fails.
enum IoFeature : uint32_t {
  IoDirect = 1, // O_DIRECT
  IoRegisteredBuffers = 2,
  IoRegisteredFiles = 4,
  IoSingleIssuer = 8,  // one submitting task is promised to the kernel
  IoDeferTaskrun = 16, // completions run when we ask for them
  IoDefaultFeatures = 31,
  // Polling spends a core to save interrupts (completions) or system calls
  // (submissions): only for a machine with cores to spare, so off by default.
  IoPollCompletions = 32,
  IoPollSubmissions = 64,
  IoAllFeatures = 127
};

struct DeviceOptions {
  enum class Backend { Auto, Uring, Threads, Memory, Aio, Pmem };
  /// Auto: io_uring if it really does I/O here, else Linux AIO if that does,
  /// else threads.
  Backend backend = Backend::Auto;
  uint32_t features = IoDefaultFeatures;
  uint32_t depth = 128;         // transfers in flight, at most
  uint32_t bufferBytes = 16384; // rounded up to 4096; see deviceBufferBytes
  uint32_t threads = 0;         // of the thread pool; 0: min(depth, 16)
};

/// Opens a device. Auto never fails for want of a feature; naming a backend
/// that this machine lacks is TRC_UNSUPPORTED with the reason.
Result<std::unique_ptr<Device>> openDevice(const DeviceOptions &options);

/// For tests: openDevice() calls this instead, until it is set to nothing. Set
/// it only while nobody opens a device.
using DeviceOpener =
    std::function<Result<std::unique_ptr<Device>>(const DeviceOptions &)>;
void setDeviceOpener(DeviceOpener opener);

/// Memory that a device with these options holds for its buffers.
constexpr uint64_t deviceMemory(uint64_t depth, uint64_t bufferBytes) {
  return depth * ((bufferBytes + 4095) / 4096 * 4096);
}

} // namespace trc

#endif // TERRACE_RUNTIME_IO_DEVICE_H
