//===- Machine.h - What the hardware can do ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only place with figures of a device: cores, bandwidths, latencies, IOPS
// by queue depth, granules, and what one id or one byte costs on this CPU. Read
// from a machine file (JSON or YAML, docs in lib/Machine/README.md), or
// Machine::conservative(), which says that nothing was measured. Immutable
// after it was made, so safe to share between threads.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_MACHINE_MACHINE_H
#define TERRACE_LIB_MACHINE_MACHINE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace::machine {

enum class TierKind { HBM, DRAM, PMem, NVMe };
llvm::StringRef tierKindName(TierKind kind);
std::optional<TierKind> parseTierKind(llvm::StringRef name);

/// Memory is addressed by the kernels; NVMe only through fetch and store.
inline bool isMemory(TierKind kind) { return kind != TierKind::NVMe; }

struct TierModel {
  double readGBps = 0, writeGBps = 0; // 1e9 bytes per second
  double latencyUs = 0;               // one access, nothing else running
  int64_t granule = 64;               // a smaller access costs this much
  /// Operations per second by queue depth, rising; empty: bandwidth alone
  /// bounds the tier.
  std::vector<std::pair<int64_t, double>> readIops, writeIops;
};

/// What bookkeeping and arithmetic cost on one core.
struct CpuModel {
  std::string level = "x86-64-v3";
  int64_t cores = 1;
  double ingestNsPerId = 0; // copy, check, translate
  double uniqueNsPerId = 0; // sort or hash one occurrence
  double probeNsPerRow = 0; // directory look-up and pin of one unique row
  double dedupNsPerId = 0;  // hash and compare one id of a bag
  double gatherNsPerId = 0; // start of one row of a bag, on top of its bytes
  double gatherGBps = 0;    // row bytes pooled by one core
  double updateNsPerRow = 0;
  double updateGBps = 0; // row + gradient bytes of the fused update, one core
  double copyGBps = 0;   // staging <-> slots, one core
  double ioNsPerOp = 0;  // CPU time of one read or write request
  double flopsG = 0;     // of the head, all cores
};

class Machine {
public:
  /// Shipped figures for a small cloud node, on the slow side.
  static Machine conservative();
  static llvm::Expected<Machine> parse(llvm::StringRef text,
                                       llvm::StringRef name);
  static llvm::Expected<Machine> load(llvm::StringRef path);

  /// "conservative defaults, not measured" or the file's name.
  const std::string &origin() const { return source; }
  bool isMeasured() const { return measured; }

  const CpuModel &cpu() const { return cpuModel; }
  const TierModel &tier(TierKind kind) const {
    return tiers[static_cast<int>(kind)];
  }
  int64_t queueDepth() const { return depth; }
  /// Bytes per second between workers, each way.
  double exchangeGBps() const { return linkGBps; }

  /// Operations per second at a queue depth; infinity where the tier is not
  /// bound by operations. Linear between the measured depths.
  double iops(TierKind kind, bool write, int64_t queueDepth) const;
  /// Seconds to move `ops` pieces of `bytesEach` in one direction.
  double transferSeconds(TierKind kind, bool write, double ops,
                         double bytesEach) const;

  /// Outside every tier: code, libraries, stacks, reader, metrics.
  int64_t processBytes() const { return process; }

private:
  std::string source;
  bool measured = false;
  CpuModel cpuModel;
  TierModel tiers[4];
  int64_t depth = 128;
  double linkGBps = 0;
  int64_t process = 0;
};

} // namespace terrace::machine

#endif // TERRACE_LIB_MACHINE_MACHINE_H
