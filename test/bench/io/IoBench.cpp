//===- IoBench.cpp - Random row reads against a bare io_uring loop --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much of what the device can do reaches a batch of row reads. TMPDIR
// chooses the file system; TERRACE_BENCH_ROWS the size of the file.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStore.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <liburing.h>
#include <numeric>
#include <random>
#include <unistd.h>

using namespace trc;

namespace {

constexpr uint32_t payload = 260, batchRows = 20000, depth = 128;

struct Setup {
  std::filesystem::path path;
  std::unique_ptr<Device> device;
  std::unique_ptr<RowStore> store;
  uint32_t rows = 2000000;
  std::mt19937 random{1};

  explicit Setup(DeviceOptions::Backend backend) {
    if (const char *n = std::getenv("TERRACE_BENCH_ROWS"))
      rows = std::max<uint32_t>(batchRows, std::strtoul(n, nullptr, 10));
    path = std::filesystem::temp_directory_path() /
           ("terrace-io-bench-" + std::to_string(getpid()));
    DeviceOptions d;
    d.backend = backend;
    d.depth = depth;
    d.bufferBytes = deviceBufferBytes(recordBytes(payload));
    auto opened = openDevice(d);
    if (!opened.ok())
      return;
    device = std::move(*opened);
    RowStoreOptions o;
    o.group = "bench";
    o.extents = {{path.string(), 0}};
    o.rows = rows;
    o.payloadBytes = payload;
    o.storeBytes = recordBytes(payload);
    o.maxWrites = batchRows;
    o.depth = depth;
    auto store = RowStore::open(*device, o);
    if (!store.ok())
      return;
    this->store = std::move(*store);
    std::vector<uint32_t> all(65536);
    std::vector<char> data(all.size() * payload, 'r');
    for (uint32_t at = 0; at < rows; at += all.size()) {
      std::iota(all.begin(), all.end(), at);
      uint32_t n = std::min<uint32_t>(all.size(), rows - at);
      if (!this->store->load(all.data(), n, data.data()).ok())
        this->store.reset();
      if (!this->store)
        return;
    }
    if (!this->store->flush().ok())
      this->store.reset();
  }
  ~Setup() {
    store.reset();
    device.reset();
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  std::vector<uint32_t> pick() {
    std::vector<uint32_t> v(batchRows + batchRows / 8);
    for (uint32_t &r : v)
      r = random() % rows;
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
    std::shuffle(v.begin(), v.end(), random);
    v.resize(std::min<size_t>(v.size(), batchRows));
    return v;
  }
};

void rowReads(benchmark::State &state, DeviceOptions::Backend backend) {
  Setup s(backend);
  if (!s.store) {
    state.SkipWithError("no store");
    return;
  }
  state.SetLabel(s.device->describe());
  std::vector<char> out(uint64_t(batchRows) * payload);
  uint64_t rows = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto pick = s.pick();
    state.ResumeTiming();
    ReadBatch batch;
    batch.rows = pick.data();
    batch.count = static_cast<uint32_t>(pick.size());
    batch.out = out.data();
    batch.pitch = payload;
    if (Status r = s.store->read(batch); !r.ok())
      state.SkipWithError(r.message().c_str());
    rows += pick.size();
  }
  state.counters["rows"] =
      benchmark::Counter(rows, benchmark::Counter::kIsRate);
}

/// The same reads by hand: sorted, 4 KiB each at most, nothing verified.
void bareLoop(benchmark::State &state) {
  Setup s(DeviceOptions::Backend::Uring);
  io_uring ring;
  int fd = s.store ? ::open(s.path.c_str(), O_RDONLY | O_DIRECT) : -1;
  if (fd < 0 || io_uring_queue_init(depth, &ring,
                                    IORING_SETUP_SINGLE_ISSUER |
                                        IORING_SETUP_DEFER_TASKRUN) != 0) {
    state.SkipWithError("no io_uring with O_DIRECT");
    return;
  }
  uint32_t block = s.device->fileInfo(0).blockBytes;
  uint64_t pitch = recordBytes(payload);
  char *buffers = static_cast<char *>(std::aligned_alloc(4096, depth * 8192));
  iovec vec{buffers, depth * 8192};
  bool fixed = io_uring_register_buffers(&ring, &vec, 1) == 0 &&
               io_uring_register_files(&ring, &fd, 1) == 0;
  uint64_t rows = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto pick = s.pick();
    state.ResumeTiming();
    std::sort(pick.begin(), pick.end());
    std::vector<unsigned> free(depth);
    std::iota(free.begin(), free.end(), 0u);
    size_t next = 0, done = 0;
    while (done < pick.size()) {
      while (next < pick.size() && !free.empty()) {
        unsigned b = free.back();
        free.pop_back();
        uint64_t begin = pick[next] * pitch / block * block;
        uint64_t end = (pick[next] * pitch + pitch + block - 1) / block * block;
        io_uring_sqe *sqe = io_uring_get_sqe(&ring);
        if (fixed) {
          io_uring_prep_read_fixed(sqe, 0, buffers + b * 8192, end - begin,
                                   begin, 0);
          io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
        } else {
          io_uring_prep_read(sqe, fd, buffers + b * 8192, end - begin, begin);
        }
        io_uring_sqe_set_data64(sqe, b);
        ++next;
      }
      io_uring_submit_and_wait(&ring, 1);
      io_uring_cqe *cqe;
      while (io_uring_peek_cqe(&ring, &cqe) == 0) {
        free.push_back(static_cast<unsigned>(io_uring_cqe_get_data64(cqe)));
        io_uring_cqe_seen(&ring, cqe);
        ++done;
      }
    }
    rows += pick.size();
  }
  state.counters["rows"] =
      benchmark::Counter(rows, benchmark::Counter::kIsRate);
  io_uring_queue_exit(&ring);
  ::close(fd);
  std::free(buffers);
}

} // namespace

BENCHMARK(bareLoop)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(rowReads, uring, DeviceOptions::Backend::Uring)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(rowReads, threads, DeviceOptions::Backend::Threads)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_MAIN();
