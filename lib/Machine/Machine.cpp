//===- Machine.cpp - What the hardware can do -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shipped figures, and what follows from measured ones.
//
//===----------------------------------------------------------------------===//
#include "Machine/Machine.h"

#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;
using namespace terrace;
using namespace terrace::machine;

StringRef machine::tierKindName(TierKind kind) {
  static const char *const names[] = {"hbm", "dram", "pmem", "nvme"};
  return names[static_cast<int>(kind)];
}

std::optional<TierKind> machine::parseTierKind(StringRef name) {
  return StringSwitch<std::optional<TierKind>>(name)
      .Case("hbm", TierKind::HBM)
      .Case("dram", TierKind::DRAM)
      .Case("pmem", TierKind::PMem)
      .Case("nvme", TierKind::NVMe)
      .Default(std::nullopt);
}

Machine Machine::conservative() {
  Machine m;
  m.source = "conservative defaults, not measured";
  m.cpuModel.level = "x86-64-v3";
  m.cpuModel.cores = 2;
  m.cpuModel.ingestNsPerId = 6;
  m.cpuModel.uniqueNsPerId = 25;
  m.cpuModel.probeNsPerRow = 30;
  m.cpuModel.dedupNsPerId = 4;
  m.cpuModel.gatherNsPerId = 12;
  m.cpuModel.gatherGBps = 6;
  m.cpuModel.updateNsPerRow = 20;
  m.cpuModel.updateGBps = 4;
  m.cpuModel.copyGBps = 4;
  m.cpuModel.ioNsPerOp = 6000;
  m.cpuModel.flopsG = 10;
  auto &hbm = m.tiers[static_cast<int>(TierKind::HBM)];
  hbm = {1500, 1500, 0.6, 32, {}, {}, {}, {}};
  auto &dram = m.tiers[static_cast<int>(TierKind::DRAM)];
  dram = {10, 8, 0.1, 64, {}, {}, {}, {}};
  auto &pmem = m.tiers[static_cast<int>(TierKind::PMem)];
  pmem = {6, 2, 0.35, 256, {}, {}, {}, {}};
  // A consumer or network-attached SSD; one request costs a 4 KiB block.
  auto &nvme = m.tiers[static_cast<int>(TierKind::NVMe)];
  nvme = {1.5,
          0.8,
          100,
          4096,
          {{1, 9000}, {16, 90000}, {128, 150000}},
          {{1, 9000}, {16, 60000}, {128, 80000}},
          {},
          {}};
  m.depth = 128;
  m.linkGBps = 3;
  // Measured: 9 to 13 MiB of code, libraries, stacks and device buffers.
  m.process = int64_t(16) << 20;
  return m;
}

double Machine::iops(TierKind kind, bool write, int64_t queueDepth) const {
  const TierModel &t = tier(kind);
  if (const Surface &s = write ? t.writes : t.reads; !s.empty())
    return s.at(double(queueDepth), double(t.granule));
  const auto &curve = write ? t.writeIops : t.readIops;
  if (curve.empty())
    return std::numeric_limits<double>::infinity();
  if (queueDepth <= curve.front().first)
    return curve.front().second * double(std::max<int64_t>(1, queueDepth)) /
           double(curve.front().first);
  for (size_t i = 1; i < curve.size(); ++i) {
    auto [d0, v0] = curve[i - 1];
    auto [d1, v1] = curve[i];
    if (queueDepth <= d1)
      return v0 + (v1 - v0) * double(queueDepth - d0) / double(d1 - d0);
  }
  return curve.back().second;
}

double Machine::transferSeconds(TierKind kind, bool write, double ops,
                                double bytesEach) const {
  if (ops <= 0)
    return 0;
  const TierModel &t = tier(kind);
  // Whole granules: a 68 byte row on a 4 KiB block device moves 4 KiB.
  double moved =
      std::ceil(std::max(bytesEach, 1.0) / double(t.granule)) * t.granule;
  if (const Surface &s = write ? t.writes : t.reads; !s.empty()) {
    // A batch of few operations never fills the queue.
    double filled = std::min(ops, double(depth));
    return t.latencyUs * 1e-6 + ops / s.at(filled, moved);
  }
  double gbps = write ? t.writeGBps : t.readGBps;
  double byBytes = ops * moved / (gbps * 1e9);
  double byOps = ops / iops(kind, write, depth);
  return t.latencyUs * 1e-6 + std::max(byBytes, byOps);
}

/// Bytes per second of the largest operations at the deepest queue.
static double bestGBps(const Surface &s) {
  double best = 0;
  for (size_t i = 0; i < s.x.size(); ++i)
    for (size_t j = 0; j < s.y.size(); ++j)
      best = std::max(best, s.values[i * s.y.size() + j] * s.y[j] / 1e9);
  return best;
}

Machine
Machine::calibrated(const CpuModel &cpu,
                    const std::vector<std::pair<TierKind, TierModel>> &tiers,
                    const Measurement &measurement) {
  Machine m = conservative();
  m.source = "calibration";
  m.measured = true;
  m.measurement = measurement;
  m.cpuModel = cpu;
  for (const auto &[kind, tier] : tiers) {
    m.tiers[static_cast<int>(kind)] = tier;
    m.tierGiven[static_cast<int>(kind)] = true;
  }
  m.summarise();
  return m;
}

void Machine::summarise() {
  for (TierModel &t : tiers) {
    if (!t.reads.empty())
      t.readGBps = bestGBps(t.reads);
    if (!t.writes.empty())
      t.writeGBps = bestGBps(t.writes);
  }
  // The line through the smallest and the largest rows.
  auto line = [](const Surface &s, double &ns, double &gbps) {
    double far = s.y.back(), small = s.x.front(), large = s.x.back();
    double low = s.at(small, far), high = s.at(large, far);
    double perByte = large > small ? (high - low) / (large - small) : 0;
    if (perByte <= 0)
      perByte = high / large / 2;
    gbps = 1 / perByte;
    ns = std::max(low - small * perByte, low / 10);
  };
  CpuModel &c = cpuModel;
  if (!c.unique.empty())
    c.uniqueNsPerId = c.unique.at(c.unique.x.back(), c.unique.y.back());
  if (!c.gather.empty())
    line(c.gather, c.gatherNsPerId, c.gatherGBps);
  if (!c.update.empty()) {
    auto rowwise = c.update.find("rowwise_adagrad");
    line((rowwise == c.update.end() ? c.update.begin() : rowwise)->second,
         c.updateNsPerRow, c.updateGBps);
  }
}
