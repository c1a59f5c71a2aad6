//===- Rocks.h - A RocksDB full of rows -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opened the way that suits rows of fixed size best, as far as its knobs are
// public; README.md lists what is set and why. Removes its files.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_ROCKS_H
#define TERRACE_TEST_BENCH_STORE_ROCKS_H

#include "test/bench/store/Peers.h"

#include <rocksdb/db.h>
#include <rocksdb/options.h>

namespace trc::bench {

class Rocks {
public:
  Rocks(const Workload &workload, const PeerOptions &options);
  ~Rocks();

  /// Opens an empty database and loads version 0 of all rows, sorted, below all
  /// levels. `writes`: memory is kept for memtables.
  Status open(Compaction compaction, bool writes);
  /// Tries threads and asynchronous I/O on batches of reads, keeps the best.
  Status calibrate(std::string &note);

  /// Reads rows[i] to out + i * payload, on all threads.
  Status get(const std::vector<uint32_t> &rows, char *out);
  /// Writes contents + i * payload as rows[i], without a log.
  Status put(const std::vector<uint32_t> &rows, const char *contents);
  /// Makes all writes durable.
  Status flush();
  /// Waits for the compactions that are due.
  Status settle();

private:
  Status load();
  Status check(const rocksdb::Status &status, const char *what) const;

  Workload work;
  PeerOptions options;
  std::string path;
  rocksdb::Options db;
  rocksdb::ReadOptions reads;
  std::unique_ptr<rocksdb::DB> opened;
  std::unique_ptr<Team> team;
};

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_ROCKS_H
