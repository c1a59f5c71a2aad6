//===- Sections.h - The parts of the benchmark ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each prints a table and returns whether all figures in it can be true. They
// run while this process has one thread.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_SECTIONS_H
#define TERRACE_TEST_BENCH_STORE_SECTIONS_H

#include "test/bench/store/Alternate.h"

namespace trc::bench {

/// What a process takes that holds no rows yet.
constexpr uint64_t rocksProgram = 96 << 20, mmapProgram = 16 << 20;

struct Settings {
  std::string folder; // made for this run, removed at its end
  std::string controlGroup;
  uint64_t span = 0;   // bytes of records
  uint64_t memory = 0; // for rows of a peer; 0: an eighth of the span
  uint32_t rounds = 6, batches = 8, batchRows = 4096;
  uint32_t mixRows = 131072; // at most
  std::vector<uint32_t> sizes{128, 256, 512, 1024, 4096};
  std::vector<uint32_t> mixSizes{512};
  std::vector<uint32_t> reopenRows{20000000, 64000000};

  /// Rows of `span` bytes of records of this payload.
  Workload workload(uint32_t payload, uint64_t span) const;
  /// For rows in a peer's memory.
  uint64_t memoryFor(const Workload &workload) const;
  /// For everything in its process: program, threads and buffers, too.
  uint64_t limitFor(const Workload &workload, uint64_t program) const;
};

/// Random rows against a bare io_uring loop, RocksDB and mmap.
bool readTable(const Settings &settings, uint32_t payload);
/// Reads and write-back against RocksDB.
bool mixTable(const Settings &settings, uint32_t payload);
/// Pause, time and bytes of checkpoints.
bool checkpointTable(const Settings &settings, uint32_t payload);
/// Opening what a checkpoint left: an index of so many rows.
bool reopenTable(const Settings &settings, uint32_t rows);
/// Rows of persistent memory, read in place.
bool persistentTable(const Settings &settings, uint32_t payload);

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_SECTIONS_H
