//===- UringDevice.cpp - I/O through io_uring -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engine's thread is the ring's single issuer. Buffers and files are
// registered. Each feature is tried when the device opens, by moving real
// bytes, and left out with a recorded reason where the kernel refuses it;
// polling for completions goes on until a device refuses it, for only blocks
// that really exist can tell.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/EngineDevice.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <liburing.h>
#include <unistd.h>

using namespace trc;

namespace {

constexpr unsigned registeredFileLimit = 256;
constexpr uint64_t registeredBufferLimit = uint64_t(1) << 30; // the kernel's

/// A ring with what it was set up with.
struct Ring {
  io_uring ring{};
  bool open = false;
  bool polled = false; // for completions: no interrupts, no eventfd in the ring
  bool fixedBuffers = false, fixedFiles = false;
  std::string description;
};

class UringDevice final : public EngineDevice {
public:
  explicit UringDevice(const DeviceOptions &options) : EngineDevice(options) {}
  ~UringDevice() override { stopEngine(); }
  using EngineDevice::startEngine;

private:
  Status setUp() override;
  void tearDown() override;
  void attach(uint32_t file) override;
  void issue(uint32_t slot) override;
  void turn() override;

  Status setUpRing(Ring &r, bool polled, const std::string &why);
  Status selfTest(Ring &r);
  void reap();
  void leavePolling();
  void prepare(Ring &r, io_uring_sqe *sqe, bool read, int fd, char *data,
               uint32_t bytes, uint64_t offset);

  Ring current;
  bool armed = false; // the ring reads the eventfd
  uint64_t eventValue = 0;
  std::vector<uint32_t> refused; // slots, by a device that cannot be polled
};

} // namespace

Status UringDevice::setUp() {
  return setUpRing(current, options.features & IoPollCompletions, "");
}

Status UringDevice::setUpRing(Ring &r, bool polled, const std::string &why) {
  struct Mode {
    unsigned flags;
    const char *name;
  };
  std::vector<Mode> modes;
  bool single = options.features & IoSingleIssuer;
  unsigned base = polled ? IORING_SETUP_IOPOLL : 0u;
  // The kernel's submitting thread takes the place of deferred completions.
  if (options.features & IoPollSubmissions)
    modes.push_back({base | IORING_SETUP_SQPOLL |
                         (single ? IORING_SETUP_SINGLE_ISSUER : 0u),
                     "polled submissions"});
  if (single && (options.features & IoDeferTaskrun))
    modes.push_back(
        {base | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
         "single issuer, deferred completions"});
  if (single)
    modes.push_back({base | IORING_SETUP_SINGLE_ISSUER, "single issuer"});
  modes.push_back({base, "plain ring"});

  std::string notes = why;
  Status last;
  for (const Mode &mode : modes) {
    io_uring_params params{};
    params.flags = mode.flags;
    params.sq_thread_idle = 5; // ms, so that an idle device costs nothing
    // One entry more than transfers: the read that wakes us up.
    int error = io_uring_queue_init_params(options.depth + 1, &r.ring, &params);
    if (error != 0) {
      last =
          Status(TRC_UNSUPPORTED, std::string("io_uring is not available: ") +
                                      std::strerror(-error));
      notes += std::string("; no ") + mode.name + ": " + std::strerror(-error);
      continue;
    }
    r.open = true;
    r.polled = polled;
    r.description = std::string("io_uring (") + mode.name;
    if (polled)
      r.description += ", polled completions";
    std::string registration;
    if (options.features & IoRegisteredBuffers) {
      iovec vec{buffers.base(), buffers.bytes()};
      int e = buffers.bytes() > registeredBufferLimit
                  ? -EFBIG
                  : io_uring_register_buffers(&r.ring, &vec, 1);
      r.fixedBuffers = e == 0;
      if (e == 0)
        r.description += ", registered buffers";
      else
        registration +=
            std::string("; buffers not registered: ") + std::strerror(-e);
    }
    if (options.features & IoRegisteredFiles) {
      int e = io_uring_register_files_sparse(&r.ring, registeredFileLimit);
      r.fixedFiles = e == 0;
      if (e == 0)
        r.description += ", registered files";
      else
        registration +=
            std::string("; files not registered: ") + std::strerror(-e);
    }
    // Files in memory know no polling.
    last = polled ? Status() : selfTest(r);
    if (last.ok()) {
      r.description += ")" + notes + registration;
      setDescription(r.description);
      return last;
    }
    notes += std::string("; no ") + mode.name + ": " + last.message();
    io_uring_queue_exit(&r.ring);
    r = Ring();
  }
  return last;
}

void UringDevice::prepare(Ring &r, io_uring_sqe *sqe, bool read, int fd,
                          char *data, uint32_t bytes, uint64_t offset) {
  if (r.fixedBuffers && read)
    io_uring_prep_read_fixed(sqe, fd, data, bytes, offset, 0);
  else if (r.fixedBuffers)
    io_uring_prep_write_fixed(sqe, fd, data, bytes, offset, 0);
  else if (read)
    io_uring_prep_read(sqe, fd, data, bytes, offset);
  else
    io_uring_prep_write(sqe, fd, data, bytes, offset);
}

Status UringDevice::selfTest(Ring &r) {
  return testTransfers("io_uring", buffers.base(), [&](int fd, bool write) {
    prepare(r, io_uring_get_sqe(&r.ring), !write, fd, buffers.base(), 512, 512);
    int e = io_uring_submit_and_wait(&r.ring, 1);
    if (e < 0)
      return e;
    io_uring_cqe *cqe = nullptr;
    e = io_uring_wait_cqe(&r.ring, &cqe);
    if (e < 0)
      return e;
    int result = cqe->res;
    io_uring_cqe_seen(&r.ring, cqe);
    return result;
  });
}

void UringDevice::attach(uint32_t file) {
  int copy = descriptors[file];
  // Where this fails the plain descriptor still works.
  if (current.fixedFiles && file < registeredFileLimit && copy >= 0 &&
      io_uring_register_files_update(&current.ring, file, &copy, 1) < 0)
    current.fixedFiles = false;
}

/// One ring polls for all its files or for none: a ring without takes over.
void UringDevice::leavePolling() {
  while (inFlight() > refused.size()) { // what else is under way
    io_uring_submit_and_wait(&current.ring, 1);
    reap();
  }
  // The new ring's test moves bytes through the first transfer's buffer, and
  // that may be one of those which wait here.
  std::vector<char> kept(buffers.base(), buffers.base() + testTransferBytes);
  uint32_t file = request(refused[0]).file;
  Ring next;
  Status s = setUpRing(next, false,
                       "; no polled completions: the device of '" +
                           files.info(file).path + "' cannot");
  std::copy(kept.begin(), kept.end(), buffers.base());
  if (!s.ok()) {
    std::vector<uint32_t> failed;
    failed.swap(refused);
    for (uint32_t slot : failed)
      finish(slot, -EOPNOTSUPP);
    return;
  }
  io_uring_queue_exit(&current.ring);
  current = next;
  for (uint32_t f = 0; f < descriptors.size(); ++f)
    attach(f);
  for (uint32_t slot : refused)
    issue(slot);
  refused.clear();
}

void UringDevice::issue(uint32_t slot) {
  const IoRequest &r = request(slot);
  io_uring_sqe *sqe = io_uring_get_sqe(&current.ring);
  while (!sqe) { // polled submissions lag; otherwise there is one per slot
    io_uring_submit(&current.ring);
    sqe = io_uring_get_sqe(&current.ring);
  }
  bool fixedFile = current.fixedFiles && r.file < registeredFileLimit;
  prepare(current, sqe, r.kind == IoRequest::Kind::Read,
          fixedFile ? static_cast<int>(r.file) : descriptors[r.file],
          buffer(slot) + r.at, r.bytes, r.offset);
  if (fixedFile)
    io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
  io_uring_sqe_set_data64(sqe, slot + 1);
}

void UringDevice::turn() {
  if (current.polled && inFlight() == 0) {
    uint64_t count;
    [[maybe_unused]] ssize_t n = ::read(eventFd, &count, sizeof count);
    return;
  }
  if (!current.polled && !armed) {
    io_uring_sqe *sqe = io_uring_get_sqe(&current.ring);
    while (!sqe) {
      io_uring_submit(&current.ring);
      sqe = io_uring_get_sqe(&current.ring);
    }
    io_uring_prep_read(sqe, eventFd, &eventValue, sizeof eventValue, 0);
    io_uring_sqe_set_data64(sqe, 0);
    armed = true;
  }
  // Failures here (EINTR, a full completion queue) leave entries queued; the
  // next round submits them. Our own wake-ups cannot be lost
  // (EngineDevice.cpp), and hammering that window without an end to the wait
  // never stalled. But completions that are deferred to us may be what one of
  // the kernel's workers waits for (a direct write that waits for the inode's
  // others), and a stall under load was once seen to end with a signal: so with
  // transfers in flight the wait has an end, which costs 100 calls a second at
  // most.
  io_uring_cqe *cqe = nullptr;
  __kernel_timespec patience = {0, 10 * 1000 * 1000};
  if (inFlight() > 0 && !current.polled &&
      (current.ring.features & IORING_FEAT_EXT_ARG))
    io_uring_submit_and_wait_timeout(&current.ring, &cqe, 1, &patience,
                                     nullptr);
  else
    io_uring_submit_and_wait(&current.ring, 1);
  reap();
  if (!refused.empty())
    leavePolling();
}

void UringDevice::reap() {
  io_uring_cqe *cqe = nullptr;
  while (io_uring_peek_cqe(&current.ring, &cqe) == 0) {
    uint64_t data = io_uring_cqe_get_data64(cqe);
    int32_t result = cqe->res;
    io_uring_cqe_seen(&current.ring, cqe);
    if (data == 0)
      armed = false;
    else if (result == -EOPNOTSUPP && current.polled)
      refused.push_back(static_cast<uint32_t>(data - 1));
    else
      finish(static_cast<uint32_t>(data - 1), result);
  }
}

void UringDevice::tearDown() {
  // The kernel must not write the wake-up word after we are gone.
  if (armed) {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t n = ::write(eventFd, &one, sizeof one);
    io_uring_submit(&current.ring);
    io_uring_cqe *cqe = nullptr;
    if (io_uring_wait_cqe(&current.ring, &cqe) == 0)
      io_uring_cqe_seen(&current.ring, cqe);
  }
  io_uring_queue_exit(&current.ring);
}

Result<std::unique_ptr<Device>>
trc::openUringDevice(const DeviceOptions &options) {
  auto device = std::make_unique<UringDevice>(options);
  if (Status s = device->startEngine(); !s.ok())
    return s;
  return std::unique_ptr<Device>(std::move(device));
}
