//===- MachineFile.cpp - Machine files, read and written ------------------===//
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

using namespace llvm;
using namespace terrace;
using namespace terrace::machine;

namespace {

constexpr SurfaceKeys uniqueKeys{"ids", "distinct", "ns_per_id"};
constexpr SurfaceKeys gatherKeys{"row_bytes", "footprint_bytes", "ns_per_row"};
constexpr SurfaceKeys gradientKeys{"row_bytes", "footprint_bytes", "ns_per_id"};
constexpr SurfaceKeys updateKeys{"slot_bytes", "batch_bytes", "ns_per_row"};
constexpr SurfaceKeys transferKeys{"depth", "bytes", "iops"};

constexpr StringRef optimizerNames[] = {
    "sgd",  "adagrad",      "rowwise_adagrad",      "adam",
    "lamb", "momentum_sgd", "partial_rowwise_adam", "ftrl"};

/// Figures that nobody reads where the surface is there.
constexpr std::pair<const char *, const char *> supersededFigures[] = {
    {"unique_ns_per_id", "unique"},
    {"gather_ns_per_id", "gather"},
    {"gather_gbps", "gather"},
    {"update_ns_per_row", "update"},
    {"update_gbps", "update"}};

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

  void surface(const json::Value &value, const Twine &where,
               const SurfaceKeys &keys, Surface &out) {
    std::string wrong = readSurface(value, keys, out);
    if (!wrong.empty() && error.empty())
      error = (file + ": " + where + wrong).str();
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
        {"gflops", &m.cpuModel.flopsG},
        {"ingest_ns_per_bag", &m.cpuModel.ingestNsPerBag},
        {"probe_ns_per_miss", &m.cpuModel.probeNsPerMiss},
        {"copy_ns_per_row", &m.cpuModel.copyNsPerRow},
        {"bag_ns", &m.cpuModel.bagNs},
        {"bag_gbps", &m.cpuModel.bagGBps},
        {"handoff_gbps", &m.cpuModel.handoffGBps},
        {"step_us", &m.cpuModel.stepUs}};
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
      } else if (key == "unique") {
        r.surface(entry.second, where, uniqueKeys, m.cpuModel.unique);
      } else if (key == "gather") {
        r.surface(entry.second, where, gatherKeys, m.cpuModel.gather);
      } else if (key == "gradient") {
        r.surface(entry.second, where, gradientKeys, m.cpuModel.gradient);
      } else if (key == "update") {
        if (const json::Object *list = r.object(entry.second, where))
          for (const auto &one : *list) {
            StringRef optimizer = one.first;
            if (!llvm::is_contained(optimizerNames, optimizer))
              r.fail(where + "." + optimizer, "unknown optimizer");
            r.surface(one.second, where + "." + optimizer, updateKeys,
                      m.cpuModel.update[optimizer.str()]);
          }
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
      else if (key == "read")
        r.surface(entry.second, where, transferKeys, t.reads);
      else if (key == "write")
        r.surface(entry.second, where, transferKeys, t.writes);
      else
        r.fail(where, "unknown key");
    }
    // One figure for one thing: what is measured leaves no room for the other.
    for (const char *way : {"read", "write"}) {
      for (const char *figure : {"_gbps", "_iops"})
        if (o.get(way) && o.get((Twine(way) + figure).str()))
          r.fail("tiers." + tierName + "." + way + figure,
                 Twine("is not used beside ") + way + "; leave one out");
    }
  };

  const json::Object *o = r.object(*root, "machine file");
  if (o) {
    int64_t version = 0;
    if (const json::Value *v = o->get("terrace_machine"))
      r.integer(*v, "terrace_machine", version);
    if (version != 1)
      r.fail("terrace_machine",
             "expected format 1" +
                 (version ? ", found " + Twine(version) : Twine()) +
                 "; terrace calibrate measures this machine anew");
    for (auto [linear, surface] : supersededFigures)
      if (const json::Object *cpu = o->getObject("cpu"))
        if (cpu->get(linear) && cpu->get(surface))
          r.fail(Twine("cpu.") + linear, Twine("is not used beside cpu.") +
                                             surface + "; leave one out");
    for (const auto &entry : *o) {
      StringRef key = entry.first;
      if (key == "terrace_machine" || key == "name")
        continue;
      if (key == "measured") {
        if (const json::Object *how = r.object(entry.second, key))
          for (const auto &word : *how) {
            std::string *to = StringSwitch<std::string *>(StringRef(word.first))
                                  .Case("at", &m.measurement.at)
                                  .Case("by", &m.measurement.by)
                                  .Case("on", &m.measurement.on)
                                  .Default(nullptr);
            std::optional<StringRef> text = word.second.getAsString();
            std::string where = ("measured." + StringRef(word.first)).str();
            if (!to)
              r.fail(where, "unknown key");
            else if (!text || text->empty())
              r.fail(where, "expected a text");
            else
              *to = text->str();
          }
      } else if (key == "cpu") {
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
                       r.object(tierEntry.second, "tiers." + kindName)) {
            readTier(m.tiers[static_cast<int>(*kind)], kindName, *t);
            m.tierGiven[static_cast<int>(*kind)] = true;
          }
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
  m.summarise();
  if (!m.measurement.at.empty())
    m.source += ", measured " + m.measurement.at +
                (m.measurement.on.empty() ? "" : " on " + m.measurement.on);
  return m;
}

json::Value Machine::toJson() const {
  const CpuModel &c = cpuModel;
  json::Object cpu{{"level", c.level}, {"cores", c.cores}};
  // Keys are owned: a StringRef would only be looked at.
  auto add = [](json::Object &to, std::string key, double value) {
    if (value > 0)
      to.try_emplace(std::move(key), value);
  };
  auto addSurface = [](json::Object &to, std::string key, const Surface &s,
                       const SurfaceKeys &keys) {
    if (!s.empty())
      to[std::move(key)] = surfaceJson(s, keys);
  };
  add(cpu, "ingest_ns_per_id", c.ingestNsPerId);
  add(cpu, "ingest_ns_per_bag", c.ingestNsPerBag);
  add(cpu, "probe_ns_per_row", c.probeNsPerRow);
  add(cpu, "probe_ns_per_miss", c.probeNsPerMiss);
  add(cpu, "dedup_ns_per_id", c.dedupNsPerId);
  add(cpu, "copy_ns_per_row", c.copyNsPerRow);
  add(cpu, "copy_gbps", c.copyGBps);
  add(cpu, "io_ns_per_op", c.ioNsPerOp);
  add(cpu, "bag_ns", c.bagNs);
  add(cpu, "bag_gbps", c.bagGBps);
  add(cpu, "handoff_gbps", c.handoffGBps);
  add(cpu, "step_us", c.stepUs);
  add(cpu, "gflops", c.flopsG);
  if (c.unique.empty())
    add(cpu, "unique_ns_per_id", c.uniqueNsPerId);
  if (c.gather.empty()) {
    add(cpu, "gather_ns_per_id", c.gatherNsPerId);
    add(cpu, "gather_gbps", c.gatherGBps);
  }
  if (c.update.empty()) {
    add(cpu, "update_ns_per_row", c.updateNsPerRow);
    add(cpu, "update_gbps", c.updateGBps);
  }
  addSurface(cpu, "unique", c.unique, uniqueKeys);
  addSurface(cpu, "gather", c.gather, gatherKeys);
  addSurface(cpu, "gradient", c.gradient, gradientKeys);
  json::Object update;
  for (const auto &[name, surface] : c.update)
    addSurface(update, name, surface, updateKeys);
  if (!update.empty())
    cpu["update"] = std::move(update);

  json::Object all;
  for (TierKind kind :
       {TierKind::HBM, TierKind::DRAM, TierKind::PMem, TierKind::NVMe}) {
    if (!tierGiven[static_cast<int>(kind)])
      continue;
    const TierModel &t = tier(kind);
    json::Object o{{"latency_us", t.latencyUs}, {"granule", t.granule}};
    for (bool write : {false, true}) {
      std::string way = write ? "write" : "read";
      const Surface &s = write ? t.writes : t.reads;
      addSurface(o, way, s, transferKeys);
      if (!s.empty())
        continue;
      add(o, way + "_gbps", write ? t.writeGBps : t.readGBps);
      json::Object curve;
      for (auto [depth, iops] : write ? t.writeIops : t.readIops)
        curve[std::to_string(depth)] = iops;
      if (!curve.empty())
        o[way + "_iops"] = std::move(curve);
    }
    all[tierKindName(kind)] = std::move(o);
  }
  json::Object root{{"terrace_machine", 1},
                    {"cpu", std::move(cpu)},
                    {"tiers", std::move(all)},
                    {"queue_depth", depth}};
  // Nobody measures these; they are there where a file gave them.
  Machine shipped = conservative();
  if (linkGBps != shipped.linkGBps)
    root["exchange_gbps"] = linkGBps;
  if (process != shipped.process)
    root["process_bytes"] = process;
  json::Object how;
  for (auto [key, text] :
       {std::pair<const char *, const std::string *>{"at", &measurement.at},
        {"by", &measurement.by},
        {"on", &measurement.on}})
    if (!text->empty())
      how[key] = *text;
  if (!how.empty())
    root["measured"] = std::move(how);
  return root;
}

Expected<Machine> Machine::load(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return createStringError(
        buffer.getError(), "cannot read machine file '%s': %s",
        path.str().c_str(), buffer.getError().message().c_str());
  return parse((*buffer)->getBuffer(), path);
}
