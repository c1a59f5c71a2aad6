//===- Tiers.cpp - What memory and a folder's disk give -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The disk is driven by the runtime's device, past the page cache where that is
// possible, on extents that were written just before: unwritten ones answer
// without the disk. A cache below the operating system is not seen through.
//
//===----------------------------------------------------------------------===//
#include "Calibrate/Calibrate.h"
#include "Calibrate/Rows.h"

#include "runtime/core/Hash.h"
#include "runtime/exec/ThreadPool.h"
#include "runtime/io/Device.h"

#include "llvm/Support/Error.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <sys/resource.h>

using namespace llvm;

namespace terrace::calibrate {

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double cpuSeconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval &t) {
    return double(t.tv_sec) + double(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// One kind of operation over a file until its time is up.
struct Load {
  Load(trc::IoRequest::Kind kind, uint32_t file, uint32_t bytes, uint64_t span)
      : kind(kind), file(file), bytes(bytes), span(span) {}

  trc::IoRequest::Kind kind;
  uint32_t file;
  uint32_t bytes;
  uint64_t span;     // of the file
  bool once = false; // in order, to the end of the span, then stop
  double seconds = 0;
  double begin = 0;
  std::atomic<uint64_t> next{0}, done{0};
  std::mutex mutex;
  std::condition_variable wake;
  uint32_t open = 0;
  int error = 0;

  /// The next offset; false when it is enough.
  bool offset(trc::SplitMix &random, uint64_t &at) {
    if (now() - begin > seconds)
      return false;
    uint64_t blocks = span / bytes;
    // A log is written in order; rows are read from anywhere.
    uint64_t i =
        kind == trc::IoRequest::Kind::Write ? next++ : random.below(blocks);
    if (once && i >= blocks)
      return false;
    at = i % blocks * bytes;
    return true;
  }
};

class Operation : public trc::IoRequest {
public:
  Operation(Load &load, uint64_t seed) : load(load), random(seed) {
    kind = load.kind;
    file = load.file;
    bytes = load.bytes;
  }
  bool first() { return load.offset(random, offset); }
  void begin(char *buffer) override {
    if (kind == Kind::Write)
      std::memset(buffer, 0x5a, bytes);
  }
  bool complete(int32_t moved, char *) override {
    if (moved == int32_t(bytes)) {
      ++load.done;
      if (load.offset(random, offset))
        return true;
    }
    std::lock_guard<std::mutex> lock(load.mutex);
    if (moved != int32_t(bytes))
      load.error = moved < 0 ? -moved : EIO;
    --load.open;
    load.wake.notify_one();
    return false;
  }

private:
  Load &load;
  trc::SplitMix random;
};

/// Operations per second.
Expected<double> drive(trc::Device &device, uint32_t depth, Load &load) {
  std::vector<std::unique_ptr<Operation>> operations;
  load.begin = now();
  for (uint32_t i = 0; i < depth; ++i) {
    auto op = std::make_unique<Operation>(load, i + 1);
    if (op->first())
      operations.push_back(std::move(op));
  }
  load.open = uint32_t(operations.size());
  for (auto &op : operations)
    device.submit(*op);
  std::unique_lock<std::mutex> lock(load.mutex);
  load.wake.wait(lock, [&] { return load.open == 0; });
  if (load.error)
    return createStringError(
        std::error_code(load.error, std::generic_category()),
        "the folder's disk fails: " +
            std::generic_category().message(load.error));
  return double(load.done) / std::max(1e-6, now() - load.begin);
}

Error failed(trc::Status status) {
  return createStringError(inconvertibleErrorCode(), status.message());
}

struct OpenFile {
  std::unique_ptr<trc::Device> device;
  uint32_t file = 0;
};

Expected<OpenFile> openDepth(
    uint32_t depth, const std::string &path, uint64_t bytes,
    trc::DeviceOptions::Backend backend = trc::DeviceOptions::Backend::Auto) {
  trc::DeviceOptions options;
  options.backend = backend;
  options.depth = depth;
  options.bufferBytes = 64 << 10;
  auto device = trc::openDevice(options);
  if (!device.ok())
    return failed(device.takeStatus());
  OpenFile open;
  open.device = std::move(*device);
  auto file = open.device->openFile(path, bytes, true);
  if (!file.ok())
    return failed(file.takeStatus());
  open.file = *file;
  return open;
}

} // namespace

Expected<machine::TierModel> measureDisk(const Part &part,
                                         machine::CpuModel &cpu) {
  if (Error e = part.begin("disk"))
    return e;
  bool quick = part.options.quick;
  const uint64_t span = uint64_t(quick ? 64 : 256) << 20;
  const std::string path = part.scratch + "/disk";
  const double each = quick ? 0.12 : 0.4;
  machine::TierModel tier;
  Expected<OpenFile> filling = openDepth(32, path, span);
  if (!filling)
    return filling.takeError();
  uint32_t block = filling->device->fileInfo(filling->file).blockBytes;
  uint64_t written = 0;
  {
    Load load(trc::IoRequest::Kind::Write, filling->file, 64 << 10, span);
    load.once = true;
    load.seconds = quick ? 3 : 10;
    Expected<double> rate = drive(*filling->device, 32, load);
    if (!rate)
      return rate.takeError();
    written = uint64_t(load.done) * load.bytes;
    trc::Status flushed = filling->device->flush(filling->file);
    if (!flushed.ok())
      return failed(std::move(flushed));
  }
  filling->device.reset();

  tier.granule = block;
  tier.reads.x = tier.writes.x = {1, 16, 128};
  tier.reads.y = {double(block)};
  for (double bytes : {4096.0, 16384.0, 65536.0}) {
    if (bytes > block)
      tier.reads.y.push_back(bytes);
    tier.writes.y.push_back(bytes);
  }
  for (double depth : tier.reads.x) {
    Expected<OpenFile> open = openDepth(uint32_t(depth), path, span);
    if (!open)
      return open.takeError();
    for (bool write : {false, true})
      for (double bytes : write ? tier.writes.y : tier.reads.y) {
        Load load(write ? trc::IoRequest::Kind::Write
                        : trc::IoRequest::Kind::Read,
                  open->file, uint32_t(bytes), written);
        load.seconds = each;
        double spent = cpuSeconds();
        Expected<double> rate = drive(*open->device, uint32_t(depth), load);
        if (!rate)
          return rate.takeError();
        spent = cpuSeconds() - spent;
        (write ? tier.writes : tier.reads)
            .values.push_back(std::max(*rate, 1.0));
        if (!write && bytes == 4096) {
          if (depth == 1)
            tier.latencyUs = 1e6 / std::max(*rate, 1.0);
          cpu.ioNsPerOp = std::max(
              1.0,
              spent * 1e9 / double(std::max<uint64_t>(1, uint64_t(load.done))));
        }
      }
  }
  return tier;
}

Expected<machine::TierModel>
measurePmem(const Part &part, const std::string &path, int64_t cores) {
  if (Error e = part.begin("persistent memory"))
    return e;
  const uint64_t span = uint64_t(part.options.quick ? 64 : 256) << 20;
  Expected<OpenFile> open =
      openDepth(16, path, span, trc::DeviceOptions::Backend::Pmem);
  if (!open)
    return open.takeError();
  machine::TierModel tier;
  tier.granule = 256; // of the media: a line of 64 bytes costs as much
  // The second time the pages are there.
  for (int round = 0; round < 2; ++round) {
    Load load(trc::IoRequest::Kind::Write, open->file, 64 << 10, span);
    load.once = true;
    load.seconds = part.options.quick ? 2 : 6;
    Expected<double> rate = drive(*open->device, 16, load);
    if (!rate)
      return rate.takeError();
    tier.writeGBps = std::max(1e-3, *rate * load.bytes / 1e9);
  }
  const char *rows = open->device->mapped(open->file, 0, span);
  if (!rows)
    return createStringError(inconvertibleErrorCode(),
                             "'%s' cannot be read in place: %s", path.c_str(),
                             open->device->describe().c_str());
  std::atomic<uint64_t> sink{0};
  double fastest = 1e30;
  trc::ThreadPool pool(static_cast<unsigned>(cores));
  for (int round = 0; round < 3; ++round) {
    double begin = now();
    pool.parallelFor(0, int64_t(span / 8), 4096,
                     [&](int64_t low, int64_t high) {
                       uint64_t sum = 0, word;
                       for (int64_t i = low; i < high; ++i) {
                         std::memcpy(&word, rows + i * 8, 8);
                         sum += word;
                       }
                       sink += sum;
                     });
    fastest = std::min(fastest, now() - begin);
  }
  tier.readGBps = double(span) / fastest / 1e9;
  // Each address follows from the word before it.
  const int hops = 200000;
  uint64_t at = 1, word, blocks = span / 256;
  double begin = now();
  for (int i = 0; i < hops; ++i) {
    std::memcpy(&word, rows + at % blocks * 256, 8);
    at = trc::mix64(at + word);
  }
  tier.latencyUs = std::max(1e-3, (now() - begin) / hops * 1e6);
  sink += at;
  return tier;
}

Expected<machine::TierModel> measureMemory(const Part &part, int64_t cores) {
  if (Error e = part.begin("memory"))
    return e;
  const size_t words = size_t(part.options.quick ? 64 : 256) * kMiB / 8;
  std::vector<uint64_t> memory(words);
  machine::TierModel tier;
  trc::ThreadPool pool(static_cast<unsigned>(cores));
  double fastestWrite = 1e30, fastestRead = 1e30;
  std::atomic<uint64_t> sink{0};
  auto bytes = double(words) * 8;
  for (int round = 0; round < 3; ++round) {
    double begin = now();
    pool.parallelFor(0, int64_t(words), 4096, [&](int64_t low, int64_t high) {
      std::memset(&memory[size_t(low)], round + 1, size_t(high - low) * 8);
    });
    double middle = now();
    pool.parallelFor(0, int64_t(words), 4096, [&](int64_t low, int64_t high) {
      uint64_t sums[8] = {};
      int64_t i = low;
      for (; i + 8 <= high; i += 8)
        for (int64_t k = 0; k < 8; ++k)
          sums[k] += memory[size_t(i + k)];
      sink += std::accumulate(sums, sums + 8, uint64_t(0));
    });
    fastestWrite = std::min(fastestWrite, middle - begin);
    fastestRead = std::min(fastestRead, now() - middle);
  }
  tier.writeGBps = bytes / fastestWrite / 1e9;
  tier.readGBps = bytes / fastestRead / 1e9;
  // One cycle through all lines, in no order.
  const size_t lines = words / 8;
  std::vector<uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0u);
  trc::SplitMix random(1);
  for (size_t i = lines; i > 1; --i)
    std::swap(order[i - 1], order[size_t(random.below(i))]);
  for (size_t i = 0; i < lines; ++i)
    memory[size_t(order[i]) * 8] = uint64_t(order[(i + 1) % lines]) * 8;
  const int hops = 400000;
  double begin = now();
  uint64_t at = 0;
  for (int i = 0; i < hops; ++i)
    at = memory[at];
  double spent = now() - begin;
  sink += at;
  tier.latencyUs = std::max(1e-3, spent / hops * 1e6);
  tier.granule = 64;
  return tier;
}

} // namespace terrace::calibrate
