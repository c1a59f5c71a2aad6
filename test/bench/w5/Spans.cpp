//===- Spans.cpp - What the device gives to a bare loop -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Unwritten extents would answer without the device, so offsets are drawn from
// the ranges that the file system calls data.
//
//===----------------------------------------------------------------------===//
#include "test/bench/w5/Spans.h"

#include "runtime/checkpoint/FileUtil.h"
#include "runtime/core/Hash.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <liburing.h>
#include <memory>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace trc;
using namespace trc::w5;

namespace {

constexpr uint32_t depth = 128;

double cpuSeconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  auto s = [](const timeval &t) {
    return double(t.tv_sec) + 1e-6 * double(t.tv_usec);
  };
  return s(u.ru_utime) + s(u.ru_stime);
}

struct Transfer {
  uint64_t offset;
  uint32_t bytes;
};

/// One file, `depth` transfers in flight at most.
class Loop {
public:
  ~Loop() {
    if (ready)
      io_uring_queue_exit(&ring);
    std::free(buffers);
  }
  Status open(const std::string &name, int flags, uint32_t most) {
    path = name;
    each = (most + 4095) / 4096 * 4096;
    fd = Fd(::open(path.c_str(), flags | O_DIRECT | O_CLOEXEC, 0644));
    if (!fd.open())
      return Status::ioError("cannot open for direct I/O", path, errno);
    buffers = static_cast<char *>(
        std::aligned_alloc(4096, static_cast<size_t>(depth) * each));
    if (!buffers)
      return Status(TRC_NO_MEMORY, "no memory for the bare loop's buffers");
    std::memset(buffers, 1, static_cast<size_t>(depth) * each);
    int error = io_uring_queue_init(
        depth, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    if (error != 0)
      error = io_uring_queue_init(depth, &ring, 0);
    if (error != 0)
      return Status::ioError("cannot set io_uring up for", path, -error);
    ready = true;
    iovec vec{buffers, static_cast<size_t>(depth) * each};
    int file = fd.get();
    error = io_uring_register_buffers(&ring, &vec, 1);
    if (error == 0)
      error = io_uring_register_files(&ring, &file, 1);
    if (error != 0)
      return Status::ioError("cannot register buffers and", path, -error);
    for (uint32_t i = 0; i < depth; ++i)
      idle.push_back(i);
    return Status();
  }

  Status run(const std::vector<Transfer> &work, bool write) {
    size_t next = 0, done = 0;
    int failure = 0;
    while (done < next || (next < work.size() && !failure)) {
      while (next < work.size() && !idle.empty() && !failure) {
        uint32_t b = idle.back();
        idle.pop_back();
        const Transfer &t = work[next++];
        io_uring_sqe *sqe = io_uring_get_sqe(&ring);
        char *buffer = buffers + uint64_t(b) * each;
        if (write)
          io_uring_prep_write_fixed(sqe, 0, buffer, t.bytes, t.offset, 0);
        else
          io_uring_prep_read_fixed(sqe, 0, buffer, t.bytes, t.offset, 0);
        io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
        io_uring_sqe_set_data64(sqe, uint64_t(b) << 32 | t.bytes);
      }
      int n = io_uring_submit_and_wait(&ring, 1);
      if (n < 0 && n != -EINTR)
        return Status::ioError("io_uring refuses I/O of", path, -n);
      io_uring_cqe *cqe;
      while (io_uring_peek_cqe(&ring, &cqe) == 0) {
        uint64_t data = io_uring_cqe_get_data64(cqe);
        if (cqe->res != static_cast<int32_t>(data & 0xffffffffu))
          failure = cqe->res < 0 ? -cqe->res : ENODATA;
        idle.push_back(static_cast<uint32_t>(data >> 32));
        io_uring_cqe_seen(&ring, cqe);
        ++done;
      }
    }
    return failure ? Status::ioError("cannot do I/O of", path, failure)
                   : Status();
  }
  int file() const { return fd.get(); }

private:
  std::string path;
  Fd fd;
  io_uring ring{};
  bool ready = false;
  uint32_t each = 0;
  char *buffers = nullptr;
  std::vector<uint32_t> idle;
};

/// Byte ranges that hold data.
std::vector<Transfer> dataPieces(int fd, uint64_t piece) {
  std::vector<Transfer> pieces;
  off_t at = 0, end = ::lseek(fd, 0, SEEK_END);
  while (at < end) {
    off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0)
      break;
    off_t hole = ::lseek(fd, data, SEEK_HOLE);
    for (at = data; at + static_cast<off_t>(piece) <= hole;
         at += static_cast<off_t>(piece))
      pieces.push_back({static_cast<uint64_t>(at), 0});
    at = std::max(hole, data + 1);
  }
  return pieces;
}

class Watch {
public:
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  Rates rates(uint64_t transfers, uint64_t bytes) const {
    double s = seconds(), n = static_cast<double>(transfers);
    return {n / s, static_cast<double>(bytes) / s,
            1e6 * (cpuSeconds() - cpu) / n};
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  double cpu = cpuSeconds();
};

} // namespace

Result<Rates> w5::readSpan(const std::string &path, uint32_t bytes,
                           uint32_t count, double seconds) {
  constexpr uint64_t piece = 1 << 20;
  bytes = std::max<uint32_t>(512, (bytes + 511) / 512 * 512);
  Loop loop;
  TRC_RETURN_IF_ERROR(loop.open(path, O_RDONLY, bytes));
  std::vector<Transfer> pieces = dataPieces(loop.file(), piece);
  if (pieces.empty() || bytes > piece)
    return Status(TRC_NOT_FOUND, "'" + path + "' holds no MiB of data");
  // Half a sector is a transfer of its own where the device has small blocks.
  uint32_t block = 512;
  if (Status s = loop.run({{pieces[0].offset + 512, bytes}}, false); !s.ok()) {
    block = 4096;
    bytes = (bytes + 4095) / 4096 * 4096;
  }
  SplitMix random(7);
  std::vector<std::vector<Transfer>> batches(8);
  uint64_t transfers = 0;
  double left = 0, spent = 0;
  auto draw = [&] {
    for (auto &batch : batches) {
      batch.resize(count);
      for (Transfer &t : batch)
        t = {pieces[random.below(pieces.size())].offset +
                 random.below((piece - bytes) / block + 1) * block,
             bytes};
      std::sort(batch.begin(), batch.end(),
                [](const Transfer &a, const Transfer &b) {
                  return a.offset < b.offset;
                });
    }
  };
  Rates sum;
  double cpu = 0;
  do {
    draw(); // not on the clock
    Watch watch;
    for (const auto &batch : batches) {
      TRC_RETURN_IF_ERROR(loop.run(batch, false));
      transfers += batch.size();
      left = watch.seconds();
      if (spent + left >= seconds)
        break;
    }
    spent += watch.seconds();
    cpu += watch.rates(1, 0).cpuUs;
  } while (spent < seconds);
  double n = static_cast<double>(transfers);
  sum.perSecond = n / spent;
  sum.bytesPerSecond = n * bytes / spent;
  sum.cpuUs = cpu / n;
  return sum;
}

Result<Rates> w5::writeSpan(const std::string &path, uint64_t total) {
  constexpr uint32_t bytes = 1 << 18;
  std::vector<Transfer> work;
  for (uint64_t at = 0; at + bytes <= total; at += bytes)
    work.push_back({at, bytes});
  Loop loop;
  TRC_RETURN_IF_ERROR(loop.open(path, O_RDWR | O_CREAT | O_TRUNC, bytes));
  Status s = loop.run(work, true); // now the extents are written ones
  Watch watch;
  if (s.ok())
    s = loop.run(work, true);
  Rates rates = watch.rates(work.size(), work.size() * bytes);
  (void)removeFile(path);
  if (!s.ok())
    return s;
  return rates;
}
