//===- CrashDevice.h - A device that forgets like hardware ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files in memory that remember every write since their last flush. crash()
// gives the device as it may be found after a power loss at that moment: what
// was flushed is there; each other write is there, missing or torn, whatever
// became of those before and after it. The same seed and the same writes give
// the same bytes, in whatever order threads brought them.
//
// Combine it with other faults by a FaultDevice in front; one that holds or
// slows a write shows who flushes without waiting for it. Thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_IO_CRASHDEVICE_H
#define TERRACE_TEST_RUNTIME_IO_CRASHDEVICE_H

#include "runtime/io/Device.h"
#include "test/runtime/io/PowerSwitch.h"

#include <memory>
#include <string>

namespace trc {

class CrashFiles;

class CrashDevice final : public Device {
public:
  /// What is written whole or not at all.
  enum class Tear {
    Sectors,   // 512 bytes, so a 4 KiB sector may be torn
    Bytes,     // one byte
    CacheLines // persistent memory: lines of 64 bytes are lost one by one, and
               // a line may be torn between words of 8 bytes
  };
  struct Options {
    uint32_t depth = 4; // transfers at once, each with a thread
    uint32_t bufferBytes = 16384;
    uint32_t blockBytes = 512;
    Tear tear = Tear::Sectors;
    PowerSwitch *power = nullptr; // outlives the device; null: always on
  };

  explicit CrashDevice(const Options &options);
  CrashDevice() : CrashDevice(Options()) {}
  ~CrashDevice() override;

  /// The device after a power loss now. May be called at any moment, also while
  /// requests are under way, and as often as you like: this one goes on. With
  /// `options` the new one differs, e.g. in its switch; it is on by default.
  std::unique_ptr<CrashDevice> crash(uint64_t seed) const;
  std::unique_ptr<CrashDevice> crash(uint64_t seed,
                                     const Options &options) const;

  /// Another device on the same files, for a test that keeps this one at hand
  /// while whoever opens devices (setDeviceOpener) owns and ends the other.
  std::unique_ptr<CrashDevice> again() const;

  /// Writes that a power loss might take, of all files.
  uint64_t unflushed() const;
  uint64_t flushes() const;

  /// What a read would give; shorter where the file ends. Empty where there is
  /// no such file.
  std::string bytes(const std::string &path, uint64_t offset,
                    uint64_t count) const;
  uint64_t size(const std::string &path) const;
  /// Damages a file, durably: for tests of checks.
  void poke(const std::string &path, uint64_t offset, const std::string &data);
  void truncate(const std::string &path, uint64_t bytes);

  Result<uint32_t> openFile(const std::string &path, uint64_t bytes,
                            bool create) override;
  FileInfo fileInfo(uint32_t file) const override;
  void submit(IoRequest &request) override;
  Status flush(uint32_t file) override;
  DeviceCounters counters() const override { return engine->counters(); }
  uint32_t depth() const override { return options.depth; }
  uint32_t bufferBytes() const override { return engine->bufferBytes(); }
  std::string describe() const override { return "memory that may crash"; }

private:
  CrashDevice(const Options &options, std::shared_ptr<CrashFiles> files);

  const Options options;
  std::shared_ptr<CrashFiles> files;
  std::unique_ptr<Device> engine; // ends before the files
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_IO_CRASHDEVICE_H
