//===- Manifest.cpp - What a state or a checkpoint is of ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Manifest.h"

#include "runtime/checkpoint/SealedJson.h"
#include "runtime/core/FloatBits.h"

#include <nlohmann/json.hpp>

using namespace trc;
using nlohmann::json;

uint32_t ManifestTable::recordBytes() const {
  int64_t bytes = stateOffset(element, dim);
  for (int64_t w : stateWidths)
    bytes += w * 4;
  return static_cast<uint32_t>(bytes);
}

int Manifest::findTable(const std::string &name) const {
  for (size_t i = 0; i < tables.size(); ++i)
    if (tables[i].name == name)
      return static_cast<int>(i);
  return -1;
}

std::string Manifest::toText() const {
  json j;
  j["format"] = 2;
  j["key"] = std::to_string(key);
  if (!replaces.empty()) {
    j["replaces"] = json::array();
    for (uint64_t other : replaces)
      j["replaces"].push_back(std::to_string(other));
  }
  if (removing)
    j["removing"] = true;
  if (importing)
    j["importing"] = true;
  j["generation"] = generation;
  j["model"] = model;
  j["head"] = head;
  j["sequence"] = sequence;
  j["step"] = step;
  j["samples"] = samples;
  j["lr_scale"] = lrScale;
  j["bias_bits"] = bitsOf(headState.bias);
  j["bias_squares_bits"] = bitsOf(headState.biasSquares);
  j["blob"] = {{"file", blobFile}, {"bytes", blobBytes}, {"crc32c", blobCrc}};
  if (!residentFile.empty())
    j["resident"] = residentFile;
  j["tables"] = json::array();
  for (const ManifestTable &t : tables)
    j["tables"].push_back({{"name", t.name},
                           {"ids", t.ids},
                           {"rows", t.rows},
                           {"dim", t.dim},
                           {"dtype", elementName(t.element)},
                           {"optimizer", t.optimizer},
                           {"state_widths", t.stateWidths},
                           {"init",
                            {{"kind", t.init.kind},
                             {"first", t.init.first},
                             {"second", t.init.second},
                             {"key", std::to_string(t.init.key)}}}});
  j["groups"] = json::array();
  for (const ManifestGroup &g : groups) {
    json extents = json::array();
    for (const ManifestGroup::Extent &e : g.extents)
      extents.push_back({{"path", e.path}, {"base", e.base}});
    j["groups"].push_back({{"tables", g.tables},
                           {"row_base", g.rowBase},
                           {"rows", g.rows},
                           {"payload_bytes", g.payloadBytes},
                           {"store_bytes", g.storeBytes},
                           {"segment_bytes", g.geometry.segmentBytes},
                           {"segments", g.geometry.segments},
                           {"extents", extents},
                           {"index", g.index}});
  }
  return sealJson(std::move(j));
}

/// Fills `m` from the members of `j`.
static Status readManifest(const json &j, const SealedSource &source,
                           Manifest &m) {
  const std::string &path = source.path;
  if (int format = j.at("format").get<int>(); format != 2)
    return Status(TRC_MISMATCH, "'" + path + "' has format " +
                                    std::to_string(format) +
                                    "; this runtime reads 2");
  m.model = j.at("model").get<std::string>();
  m.head = j.at("head").get<std::string>();
  m.sequence = j.at("sequence").get<uint64_t>();
  m.step = j.at("step").get<int64_t>();
  m.samples = j.at("samples").get<int64_t>();
  m.lrScale = j.at("lr_scale").get<double>();
  m.headState.bias = floatOf(j.at("bias_bits").get<uint32_t>());
  m.headState.biasSquares = floatOf(j.at("bias_squares_bits").get<uint32_t>());
  m.blobFile = j.at("blob").at("file").get<std::string>();
  m.blobBytes = j.at("blob").at("bytes").get<uint64_t>();
  m.blobCrc = j.at("blob").at("crc32c").get<uint32_t>();
  m.residentFile = j.value("resident", "");
  m.key = std::stoull(j.at("key").get<std::string>());
  if (j.contains("replaces"))
    for (const json &other : j.at("replaces"))
      m.replaces.push_back(std::stoull(other.get<std::string>()));
  m.removing = j.value("removing", false);
  m.importing = j.value("importing", false);
  m.generation = j.at("generation").get<uint32_t>();
  for (const json &t : j.at("tables")) {
    ManifestTable table;
    table.name = t.at("name").get<std::string>();
    table.ids = t.at("ids").get<std::string>();
    table.rows = t.at("rows").get<int64_t>();
    table.dim = t.at("dim").get<int64_t>();
    // States of the time when there was f32 alone do not name it.
    std::string dtype = t.value("dtype", "f32");
    if (!parseElement(dtype, table.element))
      return Status(TRC_MISMATCH, "'" + path + "': table '" + table.name +
                                      "' is stored as " + dtype +
                                      ", which this runtime does not know");
    table.optimizer = t.at("optimizer").get<std::string>();
    table.stateWidths = t.at("state_widths").get<std::vector<int64_t>>();
    const json &init = t.at("init");
    table.init.kind = init.at("kind").get<std::string>();
    table.init.first = init.at("first").get<double>();
    table.init.second = init.at("second").get<double>();
    table.init.key = std::stoull(init.at("key").get<std::string>());
    m.tables.push_back(std::move(table));
  }
  for (const json &g : j.at("groups")) {
    ManifestGroup group;
    group.tables = g.at("tables").get<std::vector<int>>();
    group.rowBase = g.at("row_base").get<std::vector<int64_t>>();
    group.rows = g.at("rows").get<int64_t>();
    group.payloadBytes = g.at("payload_bytes").get<int64_t>();
    group.storeBytes = g.at("store_bytes").get<int64_t>();
    for (const json &e : g.at("extents"))
      group.extents.push_back(
          {e.at("path").get<std::string>(), e.at("base").get<uint64_t>()});
    group.geometry.segmentBytes = g.at("segment_bytes").get<uint64_t>();
    group.geometry.segments = g.at("segments").get<uint32_t>();
    group.index = g.at("index").get<std::vector<std::string>>();
    for (int t : group.tables)
      if (t < 0 || t >= static_cast<int>(m.tables.size()))
        return corruptJson(source, "a group names a table that is not there");
    if (group.rowBase.size() != group.tables.size())
      return corruptJson(source, "a group's tables and row bases do not match");
    m.groups.push_back(std::move(group));
  }
  if (std::string why = m.fault(); !why.empty())
    return corruptJson(source, why);
  return {};
}

Result<Manifest> Manifest::fromText(const std::string &text,
                                    const std::string &path) {
  SealedSource source{path, "a manifest",
                      "the state is damaged, use a checkpoint"};
  Manifest m;
  TRC_RETURN_IF_ERROR(openSealedJson(
      text, source, [&](const json &j) { return readManifest(j, source, m); }));
  return m;
}

Manifest Manifest::of(const Plan &plan) {
  Manifest m;
  m.model = plan.model;
  m.head = plan.headName;
  for (const TablePlan &t : plan.tables) {
    ManifestTable table;
    table.name = t.name;
    table.ids = t.hash ? "hash" : "index";
    table.rows = t.rows;
    table.dim = t.dim;
    table.element = t.element;
    table.optimizer = t.optimizer.name;
    table.init = t.init;
    for (int s = 0; s < t.optimizer.stateCount(); ++s)
      table.stateWidths.push_back(t.optimizer.stateWidth(s, t.dim));
    m.tables.push_back(std::move(table));
  }
  return m;
}

Status Manifest::matches(const Plan &plan, const std::string &where,
                         bool train) const {
  std::string differences;
  int count = 0;
  auto differ = [&](const std::string &text) {
    if (++count <= 4)
      differences += (count > 1 ? "; " : "") + text;
  };
  Manifest want = of(plan);
  if (model != want.model)
    differ("it is of model '" + model + "', not '" + want.model + "'");
  if (head != want.head)
    differ("its head is '" + (head.empty() ? "none" : head) + "', not '" +
           (want.head.empty() ? "none" : want.head) + "'");
  for (const ManifestTable &t : want.tables) {
    int i = findTable(t.name);
    if (i < 0) {
      differ("it has no table '" + t.name + "'");
      continue;
    }
    const ManifestTable &have = tables[i];
    auto field = [&](const char *what, const std::string &a,
                     const std::string &b) {
      if (a != b)
        differ("table '" + t.name + "' has " + what + " " + a + ", not " + b);
    };
    field("rows", std::to_string(have.rows), std::to_string(t.rows));
    field("dim", std::to_string(have.dim), std::to_string(t.dim));
    if (!plan.serve) { // else rows are converted, and their state left out
      field("dtype", elementName(have.element), elementName(t.element));
      field("optimizer", have.optimizer, t.optimizer);
    }
    field("ids", have.ids, t.ids);
  }
  for (const ManifestTable &t : tables)
    if (want.findTable(t.name) < 0)
      differ("it has a table '" + t.name + "' that the model lacks");
  if (!count)
    return Status();
  if (count > 4)
    differences += "; and " + std::to_string(count - 4) + " more";
  return Status(TRC_MISMATCH,
                "the state at '" + where +
                    "' belongs to another model: " + differences +
                    (train ? "; use init-from to take its rows into a new "
                             "state, or name another state folder"
                           : "; name the folder of a state of this model, or "
                             "use the model that this state was trained with"));
}
