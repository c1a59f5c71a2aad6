//===- Mmap.cpp - Random rows of a mapped file ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The natural layout for a mapping: row r at r * payload, so that rows of whole
// pages cost one page each. No readahead. Nothing is verified on reading.
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Peers.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>

using namespace trc;
using namespace trc::bench;

namespace {

class Mmap final : public Variant {
public:
  Mmap(const Workload &workload, const PeerOptions &options)
      : work(workload), options(options), path(options.folder + "/rows.map"),
        bytes(uint64_t(work.rows) * work.payload) {}
  ~Mmap() override {
    if (base)
      ::munmap(base, bytes);
    if (fd >= 0)
      ::close(fd);
    std::error_code ignored;
    std::filesystem::remove_all(options.folder, ignored);
  }

  Status prepare(std::string &note) override {
    TRC_RETURN_IF_ERROR(write());
    void *mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
      return Status::ioError("cannot map", path, errno);
    base = static_cast<char *>(mapped);
    ::madvise(base, bytes, MADV_RANDOM);
    out.resize(uint64_t(work.batchRows) * work.payload);

    auto best = bestTrial(
        work, /*withAsync=*/false, team,
        [this](uint64_t batch, const Trial &) {
          dropPages();
          gather(work.batch(batch));
          return Status();
        },
        note);
    return best.takeStatus();
  }

  Status run(uint64_t number, Measured &sum) override {
    std::vector<uint32_t> rows = work.batch(number);
    dropPages();
    Meter meter;
    gather(rows);
    meter.add(sum);
    sum.rows += rows.size();
    for (size_t i = 0; i < rows.size(); ++i)
      sum.wrong += !work.matches(rows[i], 0, &out[i * work.payload]);
    return {};
  }

private:
  /// Without a limit the whole file would come to stay in the page cache.
  void dropPages() {
    if (options.limited)
      return;
    ::madvise(base, bytes, MADV_DONTNEED);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  }

  void gather(const std::vector<uint32_t> &rows) {
    team->run(
        static_cast<uint32_t>(rows.size()), [&](uint32_t first, uint32_t last) {
          for (uint32_t i = first; i < last; ++i)
            std::memcpy(&out[uint64_t(i) * work.payload],
                        base + uint64_t(rows[i]) * work.payload, work.payload);
        });
  }

  Status write() {
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
      return Status::ioError("cannot create", path, errno);
    uint32_t step = std::max<uint32_t>(1, (4 << 20) / work.payload);
    std::vector<char> content(uint64_t(step) * work.payload);
    for (uint32_t first = 0; first < work.rows; first += step) {
      uint32_t count = std::min(step, work.rows - first);
      for (uint32_t i = 0; i < count; ++i)
        work.fill(first + i, 0, &content[uint64_t(i) * work.payload]);
      uint64_t left = uint64_t(count) * work.payload;
      uint64_t offset = uint64_t(first) * work.payload;
      for (const char *at = content.data(); left > 0;) {
        ssize_t n = ::pwrite(fd, at, left, static_cast<off_t>(offset));
        if (n <= 0)
          return Status::ioError("cannot write", path, n < 0 ? errno : ENOSPC);
        at += n;
        offset += static_cast<uint64_t>(n);
        left -= static_cast<uint64_t>(n);
      }
    }
    if (::fdatasync(fd) != 0)
      return Status::ioError("cannot flush", path, errno);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return {};
  }

  Workload work;
  PeerOptions options;
  std::string path;
  uint64_t bytes;
  int fd = -1;
  char *base = nullptr;
  std::unique_ptr<Team> team;
  std::vector<char> out;
};

} // namespace

std::unique_ptr<Variant> trc::bench::makeMmap(const Workload &workload,
                                              const PeerOptions &options) {
  return std::make_unique<Mmap>(workload, options);
}
