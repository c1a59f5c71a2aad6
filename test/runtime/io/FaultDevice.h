//===- FaultDevice.h - A device that fails on demand ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A test double in front of a real device. Transfers are counted by kind from
// 0; a fault hits every transfer of its kind in [first, first + count). The
// device behind may be a CrashDevice.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_IO_FAULTDEVICE_H
#define TERRACE_TEST_RUNTIME_IO_FAULTDEVICE_H

#include "runtime/io/Device.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace trc {

class FaultDevice final : public Device {
public:
  struct Fault {
    enum Type {
      Error, // -error, nothing is moved
      Short, // only `keep` bytes are moved, and the device says so
      Torn,  // only `keep` bytes are written, and the device claims all
      Lost,  // nothing is written, and the device claims all
      Flip,  // all is moved, but the buffer's bit `keep` is wrong
      Slow   // all is moved, `keep` microseconds late
    };
    Type type = Error;
    IoRequest::Kind kind = IoRequest::Kind::Write;
    uint64_t first = 0, count = 1;
    int error = 5; // EIO
    uint32_t keep = 512;
  };

  explicit FaultDevice(Device &inner) : inner(inner) {}
  ~FaultDevice() override;

  void add(const Fault &fault);
  void clear();
  /// Flushes fail from number `first` on, counted from 0 as they come; error 0
  /// ends it.
  void failFlush(int error, uint64_t first = 0) {
    firstBadFlush = first;
    flushError = error;
  }
  /// Holds back what is submitted from now on and begins at these offsets,
  /// until released.
  void hold(uint64_t begin = 0, uint64_t end = UINT64_MAX);
  void release();

  uint64_t reads() const { return counts[0]; }
  uint64_t writes() const { return counts[1]; }
  uint64_t flushes() const { return flushCount; }
  /// The most transfers that were under way at once.
  uint32_t peakInFlight() const { return peak; }

  Result<uint32_t> openFile(const std::string &path, uint64_t bytes,
                            bool create) override {
    return inner.openFile(path, bytes, create);
  }
  FileInfo fileInfo(uint32_t file) const override {
    return inner.fileInfo(file);
  }
  void submit(IoRequest &request) override;
  Status flush(uint32_t file) override;
  DeviceCounters counters() const override { return inner.counters(); }
  const char *mapped(uint32_t file, uint64_t offset,
                     uint64_t bytes) const override {
    return inner.mapped(file, offset, bytes);
  }
  uint32_t depth() const override { return inner.depth(); }
  uint32_t bufferBytes() const override { return inner.bufferBytes(); }
  std::string describe() const override {
    return "faults before " + inner.describe();
  }

private:
  class Shim;
  bool find(IoRequest::Kind kind, Fault &fault);

  Device &inner;
  std::mutex mutex;
  std::condition_variable idle;
  std::vector<Fault> faults;
  std::vector<Shim *> held;
  uint64_t holdBegin = 0, holdEnd = 0;
  uint32_t shims = 0, flying = 0;
  std::atomic<uint32_t> peak{0};
  std::atomic<uint64_t> counts[2] = {{0}, {0}};
  std::atomic<uint64_t> flushCount{0};
  std::atomic<int> flushError{0};
  std::atomic<uint64_t> firstBadFlush{0};
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_IO_FAULTDEVICE_H
