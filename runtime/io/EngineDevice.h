//===- EngineDevice.h - One thread that owns a kernel queue -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What io_uring and Linux AIO have in common: a thread owns the queue, so that
// no system call needs a lock and io_uring may be promised a single issuer.
// Others hand requests over and wake it through an eventfd, but only where it
// has said that it may sleep.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_IO_ENGINEDEVICE_H
#define TERRACE_RUNTIME_IO_ENGINEDEVICE_H

#include "runtime/io/Files.h"
#include "runtime/io/IoQueue.h"

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace trc {

class EngineDevice : public Device {
public:
  Result<uint32_t> openFile(const std::string &path, uint64_t bytes,
                            bool create) final;
  FileInfo fileInfo(uint32_t file) const final { return files.info(file); }
  void submit(IoRequest &request) final;
  Status flush(uint32_t file) final { return files.flush(file); }
  DeviceCounters counters() const final { return recorder.read(); }
  uint32_t depth() const final { return options.depth; }
  uint32_t bufferBytes() const final { return options.bufferBytes; }
  std::string describe() const final;

protected:
  explicit EngineDevice(const DeviceOptions &options);
  ~EngineDevice() override; // stopEngine() must have been called

  /// Starts the thread, which calls setUp(); fails as that does.
  Status startEngine();
  /// Ends all requests, then tearDown(), then the thread. For the destructors
  /// of subclasses, whose functions the thread calls.
  void stopEngine();
  void setDescription(std::string text);
  /// Runs `task` on the engine's thread and waits for it.
  void onEngine(const std::function<void()> &task);

  // The rest runs on the engine's thread.
  virtual Status setUp() = 0;
  virtual void tearDown() = 0;
  /// The descriptor of a file is new or has changed.
  virtual void attach(uint32_t file) {}
  /// Queues the transfer of a slot's request.
  virtual void issue(uint32_t slot) = 0;
  /// Starts what was queued, then waits until a transfer has completed or
  /// wake() was called, and calls finish() for each that completed.
  virtual void turn() = 0;

  void finish(uint32_t slot, int32_t result);
  const IoRequest &request(uint32_t slot) const { return *slots[slot].request; }
  char *buffer(uint32_t slot) const { return buffers.buffer(slot); }
  uint32_t inFlight() const { return queue.inFlight(); }

  const DeviceOptions options;
  PosixFiles files;
  BufferArena buffers;
  int eventFd = -1;             // readable: look for requests
  std::vector<int> descriptors; // by file

private:
  struct Slot {
    IoRequest *request = nullptr;
    bool background = false;
    TransferRecorder::Clock::time_point begin;
  };

  void start(uint32_t slot);
  void run();
  void wake();
  int32_t probe(uint32_t file);

  mutable std::mutex mutex; // guards what follows
  std::string description;
  IoQueue inbox;
  std::vector<std::function<void()>> tasks;
  bool sleeping = false;
  bool stop = false;

  TransferRecorder recorder;

  // The engine's alone.
  IoQueue queue;
  std::vector<Slot> slots;
  std::vector<uint32_t> freeSlots;
  std::thread engine;
};

constexpr size_t testTransferBytes = 512;

/// Writes so many bytes to a file in memory and reads them back with `transfer`
/// (bytes moved or -errno). An engine that passes does move bytes here.
Status
testTransfers(const std::string &name, char *buffer,
              const std::function<int32_t(int fd, bool write)> &transfer);

} // namespace trc

#endif // TERRACE_RUNTIME_IO_ENGINEDEVICE_H
