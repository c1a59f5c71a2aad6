//===- BareLoop.cpp - The store's requests through io_uring by hand -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the device and the kernel give to one thread that does nothing else:
// registered buffers and file, completions deferred to the waiting thread.
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/StoreReads.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

using namespace trc;
using namespace trc::bench;

namespace {

class BareLoop final : public Variant {
public:
  BareLoop(const Workload &workload, StoreReads &reads)
      : work(workload), reads(reads) {}
  ~BareLoop() override {
    if (ready)
      io_uring_queue_exit(&ring);
    if (fd >= 0)
      ::close(fd);
    std::free(buffers);
  }

  Status prepare(std::string &note) override {
    OpenStore &target = reads.target();
    depth = target.io().depth();
    each = (target.io().bufferBytes() + 4095) / 4096 * 4096;
    const std::string path = target.path();
    fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0)
      return unsupported("open for direct reads", errno);
    buffers = static_cast<char *>(
        std::aligned_alloc(4096, static_cast<size_t>(depth) * each));
    if (!buffers)
      return Status(TRC_NO_MEMORY, "no memory for the bare loop's buffers");
    int error = io_uring_queue_init(
        depth, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    if (error != 0) {
      note = "plain ring";
      error = io_uring_queue_init(depth, &ring, 0);
    }
    if (error != 0)
      return unsupported("set io_uring up", -error);
    ready = true;
    iovec vec{buffers, static_cast<size_t>(depth) * each};
    error = io_uring_register_buffers(&ring, &vec, 1);
    if (error == 0)
      error = io_uring_register_files(&ring, &fd, 1);
    if (error != 0)
      return unsupported("register buffers and file", -error);
    for (uint32_t i = 0; i < depth; ++i)
      idle.push_back(i);
    lengths.resize(depth);
    return {};
  }

  Status run(uint64_t batch, Measured &sum) override {
    std::vector<PlannedRead> plan = reads.plan(batch);
    Meter meter;
    TRC_RETURN_IF_ERROR(replay(plan));
    meter.add(sum);
    sum.rows += work.batchRows;
    sum.deviceReads += plan.size();
    return {};
  }

private:
  static Status unsupported(const char *what, int error) {
    return Status(TRC_UNSUPPORTED,
                  std::string("cannot ") + what + ": " + std::strerror(error));
  }

  Status replay(const std::vector<PlannedRead> &plan) {
    size_t next = 0, done = 0;
    int failure = 0;
    while (done < next || (next < plan.size() && failure == 0)) {
      while (next < plan.size() && !idle.empty() && failure == 0) {
        uint32_t b = idle.back();
        idle.pop_back();
        io_uring_sqe *sqe = io_uring_get_sqe(&ring);
        io_uring_prep_read_fixed(sqe, 0, buffers + uint64_t(b) * each,
                                 plan[next].bytes, plan[next].offset, 0);
        io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
        io_uring_sqe_set_data64(sqe, b);
        lengths[b] = plan[next++].bytes;
      }
      int n = io_uring_submit_and_wait(&ring, 1);
      if (n < 0 && n != -EINTR)
        return Status::ioError("io_uring refuses reads of",
                               reads.target().path(), -n);
      io_uring_cqe *cqe;
      while (io_uring_peek_cqe(&ring, &cqe) == 0) {
        uint32_t b = static_cast<uint32_t>(io_uring_cqe_get_data64(cqe));
        if (cqe->res != static_cast<int32_t>(lengths[b]))
          failure = cqe->res < 0 ? -cqe->res : ENODATA;
        idle.push_back(b);
        io_uring_cqe_seen(&ring, cqe);
        ++done;
      }
    }
    return failure
               ? Status::ioError("cannot read", reads.target().path(), failure)
               : Status();
  }

  Workload work;
  StoreReads &reads;
  io_uring ring{};
  bool ready = false;
  int fd = -1;
  uint32_t depth = 0, each = 0;
  char *buffers = nullptr;
  std::vector<uint32_t> idle, lengths;
};

} // namespace

std::unique_ptr<Variant> trc::bench::makeBareLoop(const Workload &workload,
                                                  StoreReads &reads) {
  return std::make_unique<BareLoop>(workload, reads);
}
