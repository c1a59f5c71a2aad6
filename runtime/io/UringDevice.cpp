//===- UringDevice.cpp - I/O through io_uring -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One engine thread owns the ring, so that the kernel may be promised a single
// issuer; others hand requests over and wake it through an eventfd that the
// ring itself reads. Buffers and files are registered. Each feature is tried
// when the device opens, by moving real bytes, and left out with a recorded
// reason where the kernel refuses it.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Files.h"
#include "runtime/io/IoQueue.h"

#include <cerrno>
#include <cstring>
#include <functional>
#include <future>
#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <unistd.h>

using namespace trc;

namespace {

constexpr unsigned registeredFileLimit = 256;
constexpr uint64_t registeredBufferLimit = uint64_t(1) << 30; // the kernel's

/// Reads one block, to see whether this file really works.
class ProbeRead final : public IoRequest {
public:
  std::promise<int32_t> result;
  bool complete(int32_t r, char *) override {
    result.set_value(r);
    return false;
  }
};

class UringDevice final : public Device {
public:
  explicit UringDevice(const DeviceOptions &options)
      : options(options), files(options.features & IoDirect),
        inbox(options.depth), queue(options.depth),
        buffers(options.depth, options.bufferBytes), slots(options.depth) {}

  ~UringDevice() override {
    if (engine.joinable()) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        stop = true;
      }
      wake();
      engine.join();
    }
    if (eventFd >= 0)
      ::close(eventFd);
  }

  Status start();
  Result<uint32_t> openFile(const std::string &path, uint64_t bytes,
                            bool create) override;
  FileInfo fileInfo(uint32_t file) const override { return files.info(file); }

  void submit(IoRequest &request) override {
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

  Status flush(uint32_t file) override { return files.flush(file); }
  uint32_t depth() const override { return options.depth; }
  uint32_t bufferBytes() const override { return options.bufferBytes; }
  std::string describe() const override { return description; }

private:
  struct Slot {
    IoRequest *request = nullptr;
    bool background = false;
  };

  Status setUp();    // engine thread
  Status selfTest(); // engine thread, before the loop
  void run();        // engine thread
  void issue(uint32_t slot);
  void finish(uint32_t slot, int32_t result);
  /// Runs `task` on the engine thread and waits for it.
  void onEngine(const std::function<void()> &task);
  void wake() {
    uint64_t one = 1;
    // Can only fail when the counter is full, and then the engine is awake.
    [[maybe_unused]] ssize_t n = ::write(eventFd, &one, sizeof one);
  }

  const DeviceOptions options;
  PosixFiles files;
  std::string description;
  int eventFd = -1;
  std::thread engine;

  std::mutex mutex; // guards inbox, tasks, sleeping and stop
  IoQueue inbox;
  std::vector<std::function<void()>> tasks;
  bool sleeping = false;
  bool stop = false;

  // The engine's alone.
  IoQueue queue;
  io_uring ring{};
  BufferArena buffers;
  std::vector<Slot> slots;
  std::vector<uint32_t> freeSlots;
  std::vector<int> descriptors;
  uint64_t eventValue = 0;
  bool fixedBuffers = false, fixedFiles = false;
};

} // namespace

Status UringDevice::setUp() {
  if (!buffers.base())
    return Status(TRC_NO_MEMORY, "no memory for the device's buffers");
  struct Mode {
    unsigned flags;
    const char *name;
  };
  std::vector<Mode> modes;
  bool single = options.features & IoSingleIssuer;
  if (single && (options.features & IoDeferTaskrun))
    modes.push_back({IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                     "single issuer, deferred completions"});
  if (single)
    modes.push_back({IORING_SETUP_SINGLE_ISSUER, "single issuer"});
  modes.push_back({0, "plain ring"});

  int error = 0;
  std::string notes;
  for (const Mode &mode : modes) {
    // One entry more than transfers: the read that wakes us up.
    error = io_uring_queue_init(options.depth + 1, &ring, mode.flags);
    if (error == 0) {
      description = std::string("io_uring (") + mode.name;
      break;
    }
    notes += std::string("; no ") + mode.name + ": " + std::strerror(-error);
  }
  if (error != 0)
    return Status(TRC_UNSUPPORTED, std::string("io_uring is not available: ") +
                                       std::strerror(-error));

  if (options.features & IoRegisteredBuffers) {
    iovec vec{buffers.base(), buffers.bytes()};
    int e = buffers.bytes() > registeredBufferLimit
                ? -EFBIG
                : io_uring_register_buffers(&ring, &vec, 1);
    fixedBuffers = e == 0;
    if (e == 0)
      description += ", registered buffers";
    else
      notes += std::string("; buffers not registered: ") + std::strerror(-e);
  }
  if (options.features & IoRegisteredFiles) {
    int e = io_uring_register_files_sparse(&ring, registeredFileLimit);
    fixedFiles = e == 0;
    if (e == 0)
      description += ", registered files";
    else
      notes += std::string("; files not registered: ") + std::strerror(-e);
  }
  description += ")" + notes;

  for (uint32_t i = options.depth; i-- > 0;)
    freeSlots.push_back(i);
  Status tested = selfTest();
  if (!tested.ok())
    io_uring_queue_exit(&ring);
  return tested;
}

Status UringDevice::selfTest() {
  int fd = memfd_create("terrace-probe", MFD_CLOEXEC);
  if (fd < 0)
    return Status(TRC_UNSUPPORTED,
                  std::string("cannot test io_uring: ") + std::strerror(errno));
  auto move = [&](bool write) {
    io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    if (write && fixedBuffers)
      io_uring_prep_write_fixed(sqe, fd, buffers.base(), 512, 512, 0);
    else if (write)
      io_uring_prep_write(sqe, fd, buffers.base(), 512, 512);
    else if (fixedBuffers)
      io_uring_prep_read_fixed(sqe, fd, buffers.base(), 512, 512, 0);
    else
      io_uring_prep_read(sqe, fd, buffers.base(), 512, 512);
    int e = io_uring_submit_and_wait(&ring, 1);
    if (e < 0)
      return e;
    io_uring_cqe *cqe = nullptr;
    e = io_uring_wait_cqe(&ring, &cqe);
    if (e < 0)
      return e;
    int result = cqe->res;
    io_uring_cqe_seen(&ring, cqe);
    return result;
  };
  std::memset(buffers.base(), 0x5a, 512);
  int result = move(true);
  if (result == 512) {
    std::memset(buffers.base(), 0, 512);
    result = move(false);
  }
  bool good =
      result == 512 && buffers.base()[0] == 0x5a && buffers.base()[511] == 0x5a;
  ::close(fd);
  if (good)
    return {};
  return Status(TRC_UNSUPPORTED,
                std::string("io_uring moves no bytes here: ") +
                    (result < 0 ? std::strerror(-result) : "wrong data"));
}

Status UringDevice::start() {
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

void UringDevice::onEngine(const std::function<void()> &task) {
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

Result<uint32_t> UringDevice::openFile(const std::string &path, uint64_t bytes,
                                       bool create) {
  auto opened = files.open(path, bytes, create);
  if (!opened.ok())
    return opened;
  uint32_t file = *opened;
  auto attach = [&](int fd) {
    onEngine([&, fd] {
      if (descriptors.size() <= file)
        descriptors.resize(file + 1, -1);
      descriptors[file] = fd;
      if (fixedFiles && file < registeredFileLimit) {
        int copy = fd;
        // Where this fails the plain descriptor still works.
        if (io_uring_register_files_update(&ring, file, &copy, 1) < 0)
          fixedFiles = false;
      }
    });
  };
  auto probe = [&] {
    ProbeRead read;
    read.file = file;
    read.bytes = files.info(file).blockBytes;
    std::future<int32_t> result = read.result.get_future();
    submit(read);
    return result.get();
  };
  attach(files.descriptor(file));
  int32_t result = probe();
  if (result < 0 && files.info(file).direct) {
    auto fd = files.makeBuffered(
        file, std::string("a direct read through io_uring failed: ") +
                  std::strerror(-result));
    if (!fd.ok())
      return fd.takeStatus();
    attach(*fd);
    result = probe();
  }
  if (result < 0)
    return Status::ioError("cannot read through io_uring", path, -result);
  return file;
}

void UringDevice::issue(uint32_t slot) {
  const IoRequest &r = *slots[slot].request;
  io_uring_sqe *sqe = io_uring_get_sqe(&ring);
  if (!sqe) { // cannot be: the ring has an entry per slot
    io_uring_submit(&ring);
    sqe = io_uring_get_sqe(&ring);
  }
  bool fixedFile = fixedFiles && r.file < registeredFileLimit;
  int fd = fixedFile ? static_cast<int>(r.file) : descriptors[r.file];
  char *data = buffers.buffer(slot) + r.at;
  bool read = r.kind == IoRequest::Kind::Read;
  if (fixedBuffers && read)
    io_uring_prep_read_fixed(sqe, fd, data, r.bytes, r.offset, 0);
  else if (fixedBuffers)
    io_uring_prep_write_fixed(sqe, fd, data, r.bytes, r.offset, 0);
  else if (read)
    io_uring_prep_read(sqe, fd, data, r.bytes, r.offset);
  else
    io_uring_prep_write(sqe, fd, data, r.bytes, r.offset);
  if (fixedFile)
    io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
  io_uring_sqe_set_data64(sqe, slot + 1);
}

void UringDevice::finish(uint32_t slot, int32_t result) {
  IoRequest *request = slots[slot].request;
  if (result == -EINTR || result == -EAGAIN) {
    issue(slot);
    return;
  }
  if (request->complete(result, buffers.buffer(slot))) {
    issue(slot);
    return;
  }
  queue.finished(slots[slot].background);
  slots[slot].request = nullptr;
  freeSlots.push_back(slot);
}

void UringDevice::run() {
  bool armed = false;
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
      slots[slot] = {request, request->background};
      request->begin(buffers.buffer(slot));
      issue(slot);
    }
    if (stopping && queue.empty() && queue.inFlight() == 0)
      break;
    if (!armed) {
      io_uring_sqe *sqe = io_uring_get_sqe(&ring);
      io_uring_prep_read(sqe, eventFd, &eventValue, sizeof eventValue, 0);
      io_uring_sqe_set_data64(sqe, 0);
      armed = true;
    }
    // Failures here (EINTR, a full completion queue) leave entries queued; the
    // next round submits them. With transfers in flight the wait has an end: a
    // direct write in one of the kernel's workers may wait for another's
    // completion, which is ours to run (deferred completions), and under load
    // that wake-up was seen to come only with the next signal.
    io_uring_cqe *cqe = nullptr;
    __kernel_timespec patience = {0, 10 * 1000 * 1000};
    if (queue.inFlight() > 0 && (ring.features & IORING_FEAT_EXT_ARG))
      io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &patience, nullptr);
    else
      io_uring_submit_and_wait(&ring, 1);
    while (io_uring_peek_cqe(&ring, &cqe) == 0) {
      uint64_t data = io_uring_cqe_get_data64(cqe);
      int32_t result = cqe->res;
      io_uring_cqe_seen(&ring, cqe);
      if (data == 0)
        armed = false;
      else
        finish(static_cast<uint32_t>(data - 1), result);
    }
  }
  // The kernel must not write the wake-up word after we are gone.
  if (armed) {
    wake();
    io_uring_cqe *cqe = nullptr;
    if (io_uring_wait_cqe(&ring, &cqe) == 0)
      io_uring_cqe_seen(&ring, cqe);
  }
  io_uring_queue_exit(&ring);
}

Result<std::unique_ptr<Device>>
trc::openUringDevice(const DeviceOptions &options) {
  auto device = std::make_unique<UringDevice>(options);
  if (Status s = device->start(); !s.ok())
    return s;
  return std::unique_ptr<Device>(std::move(device));
}
