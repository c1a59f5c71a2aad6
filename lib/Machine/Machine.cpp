//===- Machine.cpp - What the hardware can do -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A machine file overrides single figures of the conservative default, so an
// old file still works when a figure is added; an unknown key is an error, so a
// misspelt one cannot pass silently.
//
//===----------------------------------------------------------------------===//
#include "Machine/Machine.h"

#include "Machine/YamlToJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MemoryBuffer.h"

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
  hbm = {1500, 1500, 0.6, 32, {}, {}};
  auto &dram = m.tiers[static_cast<int>(TierKind::DRAM)];
  dram = {10, 8, 0.1, 64, {}, {}};
  auto &pmem = m.tiers[static_cast<int>(TierKind::PMem)];
  pmem = {6, 2, 0.35, 256, {}, {}};
  // A consumer or network-attached SSD; one request costs a 4 KiB block.
  auto &nvme = m.tiers[static_cast<int>(TierKind::NVMe)];
  nvme = {1.5,
          0.8,
          100,
          4096,
          {{1, 9000}, {16, 90000}, {128, 150000}},
          {{1, 9000}, {16, 60000}, {128, 80000}}};
  m.depth = 128;
  m.linkGBps = 3;
  // Measured: 9 to 13 MiB of code, libraries, stacks and device buffers.
  m.process = int64_t(16) << 20;
  return m;
}

double Machine::iops(TierKind kind, bool write, int64_t queueDepth) const {
  const TierModel &t = tier(kind);
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
  double gbps = write ? t.writeGBps : t.readGBps;
  double byBytes = ops * moved / (gbps * 1e9);
  double byOps = ops / iops(kind, write, depth);
  return t.latencyUs * 1e-6 + std::max(byBytes, byOps);
}

namespace {

/// Walks one object; the first problem wins.
struct Reader {
  std::string file, error;

  void fail(const Twine &where, const Twine &what) {
    if (error.empty())
      error = (file + ": " + where + ": " + what).str();
  }

  const json::Object *object(const json::Value &value, const Twine &where) {
    const json::Object *o = value.getAsObject();
    if (!o)
      fail(where, "expected a mapping");
    return o;
  }

  bool number(const json::Value &value, const Twine &where, double &out) {
    std::optional<double> v = value.getAsNumber();
    // Seconds and bytes that are computed with these stay finite.
    if (!v || !(*v >= 1e-9) || *v > 1e15) {
      fail(where, "expected a number from 1e-9 to 1e15");
      return false;
    }
    out = *v;
    return true;
  }

  bool integer(const json::Value &value, const Twine &where, int64_t &out) {
    std::optional<int64_t> v = value.getAsInteger();
    if (!v || *v <= 0 || *v > int64_t(1) << 40) {
      fail(where, "expected a whole number from 1 to 2^40");
      return false;
    }
    out = *v;
    return true;
  }

  void curve(const json::Value &value, const Twine &where,
             std::vector<std::pair<int64_t, double>> &out) {
    const json::Object *o = object(value, where);
    if (!o)
      return;
    out.clear();
    for (const auto &entry : *o) {
      int64_t depth;
      double iops;
      if (StringRef(entry.first).getAsInteger(10, depth) || depth < 1)
        return fail(where, "'" + StringRef(entry.first) +
                               "' is not a queue depth of 1 or more");
      if (!number(entry.second, where + "." + StringRef(entry.first), iops))
        return;
      out.emplace_back(depth, iops);
    }
    llvm::sort(out);
  }
};

} // namespace

Expected<Machine> Machine::parse(StringRef text, StringRef name) {
  Expected<json::Value> root = yamlToJson(text, name);
  if (!root)
    return root.takeError();
  Machine m = conservative();
  m.source = name.str();
  m.measured = true;
  Reader r;
  r.file = name.str();

  auto readCpu = [&](const json::Object &o) {
    const std::pair<StringRef, double *> figures[] = {
        {"ingest_ns_per_id", &m.cpuModel.ingestNsPerId},
        {"unique_ns_per_id", &m.cpuModel.uniqueNsPerId},
        {"probe_ns_per_row", &m.cpuModel.probeNsPerRow},
        {"dedup_ns_per_id", &m.cpuModel.dedupNsPerId},
        {"gather_ns_per_id", &m.cpuModel.gatherNsPerId},
        {"gather_gbps", &m.cpuModel.gatherGBps},
        {"update_ns_per_row", &m.cpuModel.updateNsPerRow},
        {"update_gbps", &m.cpuModel.updateGBps},
        {"copy_gbps", &m.cpuModel.copyGBps},
        {"io_ns_per_op", &m.cpuModel.ioNsPerOp},
        {"gflops", &m.cpuModel.flopsG}};
    for (const auto &entry : o) {
      StringRef key = entry.first;
      std::string where = ("cpu." + key).str();
      if (key == "level") {
        if (std::optional<StringRef> s = entry.second.getAsString())
          m.cpuModel.level = s->str();
        else
          r.fail(where, "expected a CPU level, e.g. x86-64-v3");
      } else if (key == "cores") {
        r.integer(entry.second, where, m.cpuModel.cores);
      } else if (const auto *it = llvm::find_if(
                     figures, [&](const auto &f) { return f.first == key; });
                 it != std::end(figures)) {
        r.number(entry.second, where, *it->second);
      } else {
        r.fail(where, "unknown key");
      }
    }
  };
  auto readTier = [&](TierModel &t, StringRef tierName, const json::Object &o) {
    for (const auto &entry : o) {
      StringRef key = entry.first;
      std::string where = ("tiers." + tierName + "." + key).str();
      if (key == "read_gbps")
        r.number(entry.second, where, t.readGBps);
      else if (key == "write_gbps")
        r.number(entry.second, where, t.writeGBps);
      else if (key == "latency_us")
        r.number(entry.second, where, t.latencyUs);
      else if (key == "granule")
        r.integer(entry.second, where, t.granule);
      else if (key == "read_iops")
        r.curve(entry.second, where, t.readIops);
      else if (key == "write_iops")
        r.curve(entry.second, where, t.writeIops);
      else
        r.fail(where, "unknown key");
    }
  };

  const json::Object *o = r.object(*root, "machine file");
  if (o) {
    int64_t version = 0;
    if (const json::Value *v = o->get("terrace_machine"))
      r.integer(*v, "terrace_machine", version);
    if (version != 1)
      r.fail("terrace_machine", "expected format 1");
    for (const auto &entry : *o) {
      StringRef key = entry.first;
      if (key == "terrace_machine" || key == "name")
        continue;
      if (key == "cpu") {
        if (const json::Object *cpu = r.object(entry.second, key))
          readCpu(*cpu);
      } else if (key == "tiers") {
        const json::Object *list = r.object(entry.second, key);
        if (!list)
          continue;
        for (const auto &tierEntry : *list) {
          StringRef kindName = tierEntry.first;
          std::optional<TierKind> kind = parseTierKind(kindName);
          if (!kind)
            r.fail("tiers." + kindName,
                   "unknown kind; there are hbm, dram, pmem, nvme");
          else if (const json::Object *t =
                       r.object(tierEntry.second, "tiers." + kindName))
            readTier(m.tiers[static_cast<int>(*kind)], kindName, *t);
        }
      } else if (key == "queue_depth") {
        r.integer(entry.second, key, m.depth);
      } else if (key == "exchange_gbps") {
        r.number(entry.second, key, m.linkGBps);
      } else if (key == "process_bytes") {
        r.integer(entry.second, key, m.process);
      } else {
        r.fail(key, "unknown key");
      }
    }
  }
  if (!r.error.empty())
    return createStringError(inconvertibleErrorCode(), "%s", r.error.c_str());
  return m;
}

Expected<Machine> Machine::load(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return createStringError(
        buffer.getError(), "cannot read machine file '%s': %s",
        path.str().c_str(), buffer.getError().message().c_str());
  return parse((*buffer)->getBuffer(), path);
}
