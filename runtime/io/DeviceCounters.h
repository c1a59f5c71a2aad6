//===- DeviceCounters.h - How long transfers take ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Latencies in logarithmic buckets, four to each power of two, so that a
// quantile is at most a quarter too high. Adding is a few relaxed atomic adds:
// any thread, no lock. A snapshot taken meanwhile may miss the newest.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_IO_DEVICECOUNTERS_H
#define TERRACE_RUNTIME_IO_DEVICECOUNTERS_H

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace trc {

/// Transfers of one kind, since the device opened.
struct TransferCounters {
  static constexpr uint32_t bucketCount = 252;

  uint64_t count = 0, bytes = 0, errors = 0;
  uint64_t totalNs = 0, maxNs = 0;
  std::array<uint64_t, bucketCount> buckets{};

  static constexpr uint32_t bucketOf(uint64_t ns) {
    if (ns < 4)
      return static_cast<uint32_t>(ns);
    uint32_t power = 63 - static_cast<uint32_t>(__builtin_clzll(ns));
    return (power - 1) * 4 + static_cast<uint32_t>(ns >> (power - 2) & 3);
  }
  /// The largest value of a bucket.
  static constexpr uint64_t bucketEnd(uint32_t bucket) {
    if (bucket < 4)
      return bucket;
    uint32_t power = bucket / 4 + 1;
    return ((uint64_t(bucket % 4) + 5) << (power - 2)) - 1;
  }
  /// An upper bound of the latency of this part (0 to 1) of the transfers; 0
  /// where there were none.
  uint64_t quantile(double part) const {
    uint64_t all = 0, seen = 0;
    for (uint64_t n : buckets)
      all += n;
    for (uint32_t b = 0; b < bucketCount; ++b) {
      seen += buckets[b];
      if (seen > 0 &&
          static_cast<double>(seen) >= part * static_cast<double>(all))
        return bucketEnd(b) < maxNs ? bucketEnd(b) : maxNs;
    }
    return 0;
  }
};

struct DeviceCounters {
  TransferCounters reads, writes;
};

/// Collects them.
class TransferRecorder {
public:
  using Clock = std::chrono::steady_clock;

  /// A transfer that began at `begin` has ended, with bytes or -errno.
  void add(bool write, Clock::time_point begin, int32_t result) {
    uint64_t ns = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() -
                                                             begin)
            .count());
    Kind &k = kinds[write];
    constexpr auto relaxed = std::memory_order_relaxed;
    k.buckets[TransferCounters::bucketOf(ns)].fetch_add(1, relaxed);
    k.totalNs.fetch_add(ns, relaxed);
    if (result < 0)
      k.errors.fetch_add(1, relaxed);
    else
      k.bytes.fetch_add(static_cast<uint64_t>(result), relaxed);
    uint64_t seen = k.maxNs.load(relaxed);
    while (ns > seen && !k.maxNs.compare_exchange_weak(seen, ns, relaxed)) {
    }
  }

  DeviceCounters read() const {
    DeviceCounters all;
    copy(kinds[0], all.reads);
    copy(kinds[1], all.writes);
    return all;
  }

private:
  struct Kind {
    std::array<std::atomic<uint64_t>, TransferCounters::bucketCount> buckets{};
    std::atomic<uint64_t> bytes{0}, errors{0}, totalNs{0}, maxNs{0};
  };
  static void copy(const Kind &from, TransferCounters &to) {
    for (uint32_t b = 0; b < TransferCounters::bucketCount; ++b) {
      to.buckets[b] = from.buckets[b].load(std::memory_order_relaxed);
      to.count += to.buckets[b];
    }
    to.bytes = from.bytes.load(std::memory_order_relaxed);
    to.errors = from.errors.load(std::memory_order_relaxed);
    to.totalNs = from.totalNs.load(std::memory_order_relaxed);
    to.maxNs = from.maxNs.load(std::memory_order_relaxed);
  }

  Kind kinds[2]; // reads, writes
};

} // namespace trc

#endif // TERRACE_RUNTIME_IO_DEVICECOUNTERS_H
