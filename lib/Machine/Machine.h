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

#include "Machine/Surface.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <map>
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
  /// Operations per second by queue depth and bytes of one; instead of both
  /// bandwidth and readIops, writeIops where they are there.
  Surface reads, writes;
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

  // What a calibration adds; 0 or empty where only the figures above are known.
  // Kernels: nanoseconds of one core while all of them work.
  double ingestNsPerBag = 0;
  double probeNsPerMiss = 0; // a victim and a slot, on top of the look-up
  double copyNsPerRow = 0;   // seal or fill one row, on top of its bytes
  double bagNs = 0;          // start and end of one bag, on top of its rows
  double bagGBps = 0;        // its output
  double handoffGBps = 0;    // outputs and gradients, from and to the trainer
  double stepUs = 0;         // what lanes wait for each other, in a step
  Surface unique;            // ns of an id: ids, share that is distinct
  Surface gather;            // ns of a row: its bytes, bytes of all rows
  Surface gradient;          // ns of a further contribution: bytes, of all
  std::map<std::string, Surface> update; // by optimizer: ns of a row
};

/// When and where a file's figures were measured.
struct Measurement {
  std::string at; // UTC, e.g. 2026-11-30T20:44:47Z; empty: not said
  std::string by; // the program
  std::string on; // the machine
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

  /// What a calibration found; tiers that it did not measure stay as shipped.
  static Machine
  calibrated(const CpuModel &cpu,
             const std::vector<std::pair<TierKind, TierModel>> &tiers,
             const Measurement &measurement);
  /// The whole file; parse() of it gives this machine again.
  llvm::json::Value toJson() const;

  const CpuModel &cpu() const { return cpuModel; }
  const TierModel &tier(TierKind kind) const {
    return tiers[static_cast<int>(kind)];
  }
  int64_t queueDepth() const { return depth; }
  /// Bytes per second between workers, each way.
  double exchangeGBps() const { return linkGBps; }

  /// Operations per second at a queue depth, of one granule each; infinity
  /// where the tier is not bound by operations. Linear between the measured
  /// depths.
  double iops(TierKind kind, bool write, int64_t queueDepth) const;
  /// Seconds to move `ops` pieces of `bytesEach` in one direction.
  double transferSeconds(TierKind kind, bool write, double ops,
                         double bytesEach) const;

  /// Outside every tier: code, libraries, stacks, reader, metrics.
  int64_t processBytes() const { return process; }

private:
  /// The IR's machine attribute has single figures: what the surfaces come to
  /// for rows in memory that no cache holds.
  void summarise();

  std::string source;
  bool measured = false;
  Measurement measurement;
  CpuModel cpuModel;
  TierModel tiers[4];
  bool tierGiven[4] = {}; // else as shipped
  int64_t depth = 128;
  double linkGBps = 0;
  int64_t process = 0;
};

} // namespace terrace::machine

#endif // TERRACE_LIB_MACHINE_MACHINE_H
