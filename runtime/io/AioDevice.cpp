//===- AioDevice.cpp - I/O through Linux AIO ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For where io_uring is forbidden, as in most containers: the older calls are
// in their default filters. By system calls, for libaio adds nothing to them.
// Completions and submitters signal one eventfd, on which the engine sleeps.
// AIO is asynchronous for direct I/O alone; a transfer through the page cache
// holds the engine up until it is done, and the file's note says so.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/EngineDevice.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace trc;

namespace {

class AioDevice final : public EngineDevice {
public:
  AioDevice(const DeviceOptions &options, const std::string &reasons)
      : EngineDevice(options), reasons(reasons), blocks(options.depth),
        events(options.depth) {}
  ~AioDevice() override { stopEngine(); }
  using EngineDevice::startEngine;

private:
  Status setUp() override;
  void tearDown() override { ::syscall(SYS_io_destroy, context); }
  void attach(uint32_t file) override {
    if (!files.info(file).direct)
      files.addNote(file, "so Linux AIO makes one transfer at a time");
  }
  void issue(uint32_t slot) override;
  void turn() override;
  /// True where a transfer was ended on the spot.
  bool submitQueued();
  bool reap();

  const std::string reasons;
  aio_context_t context = 0;
  std::vector<iocb> blocks;     // by slot
  std::vector<iocb *> waiting;  // issued, not yet submitted
  std::vector<io_event> events; // room for what completes
};

} // namespace

Status AioDevice::setUp() {
  if (::syscall(SYS_io_setup, options.depth, &context) != 0)
    return Status(
        TRC_UNSUPPORTED,
        std::string("Linux AIO is not available: ") + std::strerror(errno) +
            (errno == EAGAIN ? " (raise /proc/sys/fs/aio-max-nr)" : ""));
  Status tested =
      testTransfers("Linux AIO", buffers.base(), [&](int fd, bool write) {
        iocb block = {};
        block.aio_fildes = static_cast<uint32_t>(fd);
        block.aio_lio_opcode = write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
        block.aio_buf = reinterpret_cast<uint64_t>(buffers.base());
        block.aio_nbytes = block.aio_offset = 512;
        iocb *list[] = {&block};
        io_event event = {};
        if (::syscall(SYS_io_submit, context, 1, list) != 1)
          return -errno;
        if (::syscall(SYS_io_getevents, context, 1, 1, &event, nullptr) != 1)
          return -errno;
        return static_cast<int32_t>(event.res);
      });
  if (!tested.ok()) {
    ::syscall(SYS_io_destroy, context);
    return tested;
  }
  setDescription("Linux AIO" + reasons);
  return {};
}

void AioDevice::issue(uint32_t slot) {
  const IoRequest &r = request(slot);
  iocb &block = blocks[slot];
  block = {};
  block.aio_data = slot;
  block.aio_lio_opcode =
      r.kind == IoRequest::Kind::Read ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
  block.aio_fildes = static_cast<uint32_t>(descriptors[r.file]);
  block.aio_buf = reinterpret_cast<uint64_t>(buffer(slot) + r.at);
  block.aio_nbytes = r.bytes;
  block.aio_offset = static_cast<int64_t>(r.offset);
  block.aio_flags = IOCB_FLAG_RESFD;
  block.aio_resfd = static_cast<uint32_t>(eventFd);
  waiting.push_back(&block);
}

bool AioDevice::submitQueued() {
  bool ended = false;
  std::vector<iocb *> list;
  list.swap(waiting); // finish() may issue more
  size_t at = 0;
  while (at < list.size()) {
    long n = ::syscall(SYS_io_submit, context,
                       static_cast<long>(list.size() - at), list.data() + at);
    if (n > 0) {
      at += static_cast<size_t>(n);
      continue;
    }
    int error = n < 0 ? errno : EAGAIN;
    if (error == EINTR)
      continue;
    bool others = inFlight() > list.size() - at + waiting.size();
    if (error == EAGAIN && others) // the kernel is short of room: a completion
      break;                       // makes some
    // The first of the list is refused: by the old way, or with its error.
    iocb &block = *list[at++];
    uint32_t slot = static_cast<uint32_t>(block.aio_data);
    const IoRequest &r = request(slot);
    finish(slot, error == EAGAIN
                     ? files.transfer(r.kind, r.file, buffer(slot) + r.at,
                                      r.bytes, r.offset)
                     : -error);
    ended = true;
  }
  waiting.insert(waiting.begin(), list.begin() + static_cast<long>(at),
                 list.end());
  return ended;
}

bool AioDevice::reap() {
  long n = ::syscall(SYS_io_getevents, context, 0L,
                     static_cast<long>(events.size()), events.data(), nullptr);
  for (long i = 0; i < n; ++i)
    finish(static_cast<uint32_t>(events[static_cast<size_t>(i)].data),
           static_cast<int32_t>(events[static_cast<size_t>(i)].res));
  return n > 0;
}

void AioDevice::turn() {
  if (!waiting.empty()) {
    bool ended = submitQueued();
    // What went through the page cache is complete already. Either way the
    // depth has room, and requests may wait for it.
    if (reap() || ended)
      return;
  }
  uint64_t count;
  [[maybe_unused]] ssize_t n = ::read(eventFd, &count, sizeof count);
  reap();
}

Result<std::unique_ptr<Device>> trc::openAioDevice(const DeviceOptions &options,
                                                   const std::string &reasons) {
  auto device = std::make_unique<AioDevice>(options, reasons);
  if (Status s = device->startEngine(); !s.ok())
    return s;
  return std::unique_ptr<Device>(std::move(device));
}
