//===- EngineDevice.cpp - One thread that owns a kernel queue -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Why no wake-up is lost: the engine says that it may sleep in the same locked
// step in which it takes the inbox, and only later waits. Whoever comes after
// that step sees `sleeping` and writes to the eventfd, which stays readable
// until the engine reads it, so a wait that begins after the write ends at
// once. The first to see `sleeping` takes the flag and owes the write; others
// rely on it.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/EngineDevice.h"

#include <cerrno>
#include <cstring>
#include <future>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

using namespace trc;

namespace {

/// Reads one block, to see whether this file really works.
class ProbeRead final : public IoRequest {
public:
  std::promise<int32_t> result;
  bool complete(int32_t r, char *) override {
    result.set_value(r);
    return false;
  }
};

} // namespace

EngineDevice::EngineDevice(const DeviceOptions &options)
    : options(options), files(options.features & IoDirect),
      buffers(options.depth, options.bufferBytes), inbox(options.depth),
      queue(options.depth), slots(options.depth) {
  for (uint32_t i = options.depth; i-- > 0;)
    freeSlots.push_back(i);
}

EngineDevice::~EngineDevice() {
  if (eventFd >= 0)
    ::close(eventFd);
}

Status EngineDevice::startEngine() {
  if (!buffers.base())
    return Status(TRC_NO_MEMORY, "no memory for the device's buffers");
  eventFd = eventfd(0, EFD_CLOEXEC);
  if (eventFd < 0)
    return Status(TRC_UNSUPPORTED,
                  std::string("no eventfd: ") + std::strerror(errno));
  std::promise<Status> ready;
  std::future<Status> started = ready.get_future();
  try {
    engine = std::thread([this, &ready] {
      blockSignalsInThisThread();
      Status s = setUp();
      bool ok = s.ok();
      ready.set_value(std::move(s)); // `ready` is gone after this
      if (ok)
        run();
    });
  } catch (const std::system_error &e) {
    return Status(TRC_NO_MEMORY,
                  std::string("cannot start the I/O thread: ") + e.what());
  }
  return started.get();
}

void EngineDevice::stopEngine() {
  if (!engine.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    stop = true;
  }
  wake();
  engine.join();
}

void EngineDevice::setDescription(std::string text) {
  std::lock_guard<std::mutex> lock(mutex);
  description = std::move(text);
}

std::string EngineDevice::describe() const {
  std::lock_guard<std::mutex> lock(mutex);
  return description;
}

void EngineDevice::wake() {
  uint64_t one = 1;
  // Can only fail when the counter is full, and then the engine is awake.
  [[maybe_unused]] ssize_t n = ::write(eventFd, &one, sizeof one);
}

void EngineDevice::submit(IoRequest &request) {
  bool asleep;
  {
    std::lock_guard<std::mutex> lock(mutex);
    inbox.push(request);
    asleep = sleeping;
    sleeping = false;
  }
  if (asleep)
    wake();
}

void EngineDevice::onEngine(const std::function<void()> &task) {
  std::promise<void> done;
  {
    std::lock_guard<std::mutex> lock(mutex);
    tasks.push_back([&] {
      task();
      done.set_value();
    });
    sleeping = false;
  }
  wake();
  done.get_future().wait();
}

int32_t EngineDevice::probe(uint32_t file) {
  ProbeRead read;
  read.file = file;
  read.bytes = files.info(file).blockBytes;
  std::future<int32_t> result = read.result.get_future();
  submit(read);
  return result.get();
}

Result<uint32_t> EngineDevice::openFile(const std::string &path, uint64_t bytes,
                                        bool create) {
  auto opened = files.open(path, bytes, create);
  if (!opened.ok())
    return opened;
  uint32_t file = *opened;
  auto connect = [&](int fd) {
    onEngine([&] {
      if (descriptors.size() <= file)
        descriptors.resize(file + 1, -1);
      descriptors[file] = fd;
      attach(file);
    });
  };
  connect(files.descriptor(file));
  int32_t result = probe(file);
  if (result < 0 && files.info(file).direct) {
    auto fd = files.makeBuffered(
        file, std::string("a direct read through ") + describe() +
                  " failed: " + std::strerror(-result));
    if (!fd.ok())
      return fd.takeStatus();
    connect(*fd);
    result = probe(file);
  }
  if (result < 0)
    return Status::ioError("cannot read through " + describe() + ":", path,
                           -result);
  return file;
}

void EngineDevice::start(uint32_t slot) {
  slots[slot].begin = TransferRecorder::Clock::now();
  issue(slot);
}

void EngineDevice::finish(uint32_t slot, int32_t result) {
  IoRequest *request = slots[slot].request;
  if (result == -EINTR || result == -EAGAIN) {
    issue(slot);
    return;
  }
  recorder.add(request->kind == IoRequest::Kind::Write, slots[slot].begin,
               result);
  if (request->complete(result, buffer(slot))) {
    start(slot);
    return;
  }
  queue.finished(slots[slot].background);
  slots[slot].request = nullptr;
  freeSlots.push_back(slot);
}

void EngineDevice::run() {
  std::vector<std::function<void()>> now;
  for (;;) {
    bool stopping;
    {
      std::lock_guard<std::mutex> lock(mutex);
      queue.take(inbox);
      now.swap(tasks);
      stopping = stop;
      sleeping = true;
    }
    for (auto &task : now)
      task();
    now.clear();
    while (IoRequest *request = queue.pop()) {
      uint32_t slot = freeSlots.back();
      freeSlots.pop_back();
      slots[slot] = {request, request->background, {}};
      request->begin(buffer(slot));
      start(slot);
    }
    if (stopping && queue.empty() && queue.inFlight() == 0)
      break;
    turn();
  }
  tearDown();
}

Status
trc::testTransfers(const std::string &name, char *buffer,
                   const std::function<int32_t(int fd, bool write)> &transfer) {
  int fd = memfd_create("terrace-probe", MFD_CLOEXEC);
  if (fd < 0)
    return Status(TRC_UNSUPPORTED,
                  "cannot test " + name + ": " + std::strerror(errno));
  constexpr int32_t bytes = testTransferBytes;
  std::memset(buffer, 0x5a, bytes);
  int32_t result = transfer(fd, true);
  if (result == bytes) {
    std::memset(buffer, 0, bytes);
    result = transfer(fd, false);
  }
  ::close(fd);
  if (result == bytes && buffer[0] == 0x5a && buffer[bytes - 1] == 0x5a)
    return {};
  return Status(TRC_UNSUPPORTED,
                name + " moves no bytes here: " +
                    (result < 0 ? std::strerror(-result) : "wrong data"));
}
