//===- Peers.h - What the store is measured against -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mmap and RocksDB, each as good as its knobs make it. Both try 1, 8 and 32
// threads when they are prepared and keep the best; the note has the figures.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_BENCH_STORE_PEERS_H
#define TERRACE_TEST_BENCH_STORE_PEERS_H

#include "test/bench/store/Team.h"
#include "test/bench/store/Variant.h"

namespace trc::bench {

struct PeerOptions {
  std::string folder; // of its own, removed at the end
  uint64_t memory = 0;
  bool limited = false; // a control group sees to it
};

/// Row r at r * payload of a plain file, gathered by memcpy.
std::unique_ptr<Variant> makeMmap(const Workload &workload,
                                  const PeerOptions &options);

/// MultiGet on a table that was loaded sorted and is one level deep.
std::unique_ptr<Variant> makeRocksReads(const Workload &workload,
                                        const PeerOptions &options);

enum class Compaction { Level, Universal };
/// Reads a batch, changes half of it and writes that back; flushes where the
/// store would make a checkpoint.
std::unique_ptr<Variant> makeRocksMix(const Workload &workload,
                                      const PeerOptions &options,
                                      Compaction compaction);

/// Settings that a variant tries on batches of reads before it is measured.
struct Trial {
  uint32_t threads = 1;
  bool async = false;
  double best = 0; // rows per second
};

/// Reads a batch on the team.
using TrialRead = std::function<Status(uint64_t batch, const Trial &trial)>;

/// Takes turns with a new batch each, none of which is measured later. Keeps
/// the best turn of each, for what disturbs only makes slower, and sets up
/// `team` for the fastest, which it returns.
Result<Trial> bestTrial(const Workload &workload, bool withAsync,
                        std::unique_ptr<Team> &team, const TrialRead &read,
                        std::string &note);

} // namespace trc::bench

#endif // TERRACE_TEST_BENCH_STORE_PEERS_H
