//===- ThreadDevice.cpp - A pool of threads that read and write -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fallback where io_uring is missing, and the engine of the devices in
// memory: each thread has one buffer and moves one request at a time.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Files.h"
#include "runtime/io/IoQueue.h"

#include <algorithm>
#include <condition_variable>
#include <system_error>
#include <thread>

using namespace trc;

namespace {

class ThreadDevice final : public Device {
public:
  ThreadDevice(std::unique_ptr<Files> files, uint32_t threads,
               uint32_t bufferBytes, std::string name)
      : files(std::move(files)), count(threads), each(bufferBytes),
        name(std::move(name)), queue(threads), buffers(threads, bufferBytes) {}

  ~ThreadDevice() override {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
    }
    ready.notify_all();
    for (std::thread &t : pool)
      t.join();
  }

  Status start() {
    if (!buffers.base())
      return Status(TRC_NO_MEMORY, "no memory for the device's buffers");
    for (uint32_t i = 0; i < count; ++i) {
      try {
        pool.emplace_back([this, i] { run(buffers.buffer(i)); });
      } catch (const std::system_error &e) {
        if (pool.empty())
          return Status(TRC_NO_MEMORY,
                        std::string("cannot start an I/O thread: ") + e.what());
        break; // fewer will do
      }
    }
    return {};
  }

  Result<uint32_t> openFile(const std::string &path, uint64_t bytes,
                            bool create) override {
    return files->open(path, bytes, create);
  }
  FileInfo fileInfo(uint32_t file) const override { return files->info(file); }

  void submit(IoRequest &request) override {
    {
      std::lock_guard<std::mutex> lock(mutex);
      queue.push(request);
    }
    ready.notify_one();
  }

  Status flush(uint32_t file) override { return files->flush(file); }
  const char *mapped(uint32_t file, uint64_t offset,
                     uint64_t bytes) const override {
    return files->mapped(file, offset, bytes);
  }
  uint32_t depth() const override { return count; }
  uint32_t bufferBytes() const override { return each; }
  std::string describe() const override { return name; }

private:
  void run(char *buffer) {
    blockSignalsInThisThread();
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      IoRequest *request = queue.pop();
      if (!request) {
        if (stop && queue.empty() && queue.inFlight() == 0)
          break;
        ready.wait(lock);
        continue;
      }
      bool background = request->background;
      lock.unlock();
      request->begin(buffer);
      while (request->complete(files->transfer(request->kind, request->file,
                                               buffer + request->at,
                                               request->bytes, request->offset),
                               buffer)) {
      }
      lock.lock();
      queue.finished(background);
      // A paced write may start now, or all may end.
      if (!queue.empty() || stop)
        ready.notify_all();
    }
  }

  std::unique_ptr<Files> files;
  const uint32_t count, each;
  const std::string name;
  std::mutex mutex;
  std::condition_variable ready;
  bool stop = false;
  IoQueue queue;
  BufferArena buffers;
  std::vector<std::thread> pool;
};

} // namespace

Result<std::unique_ptr<Device>>
trc::openThreadDevice(std::unique_ptr<Files> files,
                      const DeviceOptions &options, std::string name) {
  uint32_t threads =
      options.threads ? options.threads : std::min(options.depth, 16u);
  auto device =
      std::make_unique<ThreadDevice>(std::move(files), std::max(1u, threads),
                                     options.bufferBytes, std::move(name));
  if (Status s = device->start(); !s.ok())
    return s;
  return std::unique_ptr<Device>(std::move(device));
}
