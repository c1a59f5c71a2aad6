//===- SessionLoad.cpp - Lays stores out and takes rows from a state ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every group has a store: on its home tier, or, where home is memory, in a
// file of the state's folder. Rows move by table and row number, so that a
// state loads whatever plan it was trained under.
//
//===----------------------------------------------------------------------===//
#include "runtime/session/Session.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace trc;

std::vector<int> Session::tableMapOf(const Manifest &manifest) const {
  std::vector<int> map;
  for (const ManifestTable &t : manifest.tables)
    map.push_back(plan.findTable(t.name));
  return map;
}

std::vector<std::string> Session::tierFiles() const {
  std::vector<std::string> files;
  for (const TierPlan &t : plan.tiers)
    if (!t.memory())
      files.insert(files.end(), t.paths.begin(), t.paths.end());
  return files;
}

std::vector<std::string> Session::storeFiles() const {
  std::vector<std::string> files = tierFiles();
  files.push_back(memoryStoreFile);
  return files;
}

std::vector<ManifestGroup> Session::layout(uint32_t generation) const {
  std::vector<ManifestGroup> groups;
  std::map<std::string, uint64_t> used; // per file
  for (const GroupPlan &g : plan.groups) {
    ManifestGroup m;
    m.tables = g.tables;
    for (int t : g.tables)
      m.rowBase.push_back(plan.tables[t].rowBase);
    m.rows = g.rows;
    m.payloadBytes = g.slotBytes;
    m.storeBytes =
        static_cast<int64_t>(recordBytes(static_cast<uint64_t>(g.slotBytes)));
    std::vector<std::string> paths = {memoryStoreFile};
    auto rows = static_cast<uint64_t>(m.rows);
    auto pitch = static_cast<uint64_t>(m.storeBytes);
    double space = plan.store.space;
    if (g.cached())
      paths = plan.tiers[g.home].paths;
    else
      space = memoryHomeSpace(space, static_cast<uint64_t>(plan.store.retained),
                              rows, pitch);
    m.geometry =
        storeGeometry(rows, pitch, space, static_cast<uint32_t>(paths.size()));
    uint64_t bytes =
        m.geometry.extentBytes(static_cast<uint32_t>(paths.size()));
    for (const std::string &path : paths) {
      uint64_t &base = used[path];
      m.extents.push_back({generationPath(path, generation), base});
      base += bytes;
    }
    groups.push_back(std::move(m));
  }
  return groups;
}

/// Whether the rows lie where the plan wants them. Sizes of segments and their
/// number are the store's own: they stay as they were made.
bool Session::sameLayout(const Manifest &manifest) const {
  std::vector<ManifestGroup> ours = layout(manifest.generation);
  if (ours.size() != manifest.groups.size())
    return false;
  for (size_t i = 0; i < ours.size(); ++i) {
    const ManifestGroup &a = ours[i], &b = manifest.groups[i];
    if (a.rows != b.rows || a.payloadBytes != b.payloadBytes ||
        a.storeBytes != b.storeBytes || a.rowBase != b.rowBase ||
        a.tables.size() != b.tables.size() ||
        a.extents.size() != b.extents.size())
      return false;
    for (size_t k = 0; k < a.tables.size(); ++k)
      if (plan.tables[a.tables[k]].name != manifest.tables[b.tables[k]].name ||
          plan.tables[a.tables[k]].element !=
              manifest.tables[b.tables[k]].element)
        return false;
    for (size_t k = 0; k < a.extents.size(); ++k)
      if (a.extents[k].path != b.extents[k].path)
        return false;
  }
  return true;
}

/// Takes over what is on the tiers: the rows of the source, and what the other
/// roots retain.
Status Session::adoptRoots(const StateSource &source) {
  bool train = mode == TRC_TRAIN;
  std::vector<Manifest> roots; // of these stores
  if (!train)
    roots.push_back(source.manifest);
  else
    for (StateSource &root : state->roots(nullptr))
      if (root.manifest.generation == generation && root.manifest.key == key &&
          sameLayout(root.manifest))
        roots.push_back(std::move(root.manifest));
  for (size_t g = 0; g < stored.size(); ++g) {
    RowStore &store = *pipeline->groups[g]->store;
    for (const Manifest &root : roots)
      TRC_RETURN_IF_ERROR(
          store.adopt({root.sequence, root.groups[g].index},
                      root.sequence == source.manifest.sequence));
    if (train)
      TRC_RETURN_IF_ERROR(store.removeLeftovers());
    TRC_RETURN_IF_ERROR(loadMemory(*pipeline->groups[g]));
  }
  return Status();
}

/// What memory knows of the store's rows: where home is memory, all of them.
Status Session::loadMemory(GroupRuntime &group) {
  RowStore &store = *group.store;
  if (group.cache) {
    for (uint32_t row = store.nextWritten(0); row < store.rows();
         row = store.nextWritten(row + 1))
      group.cache->setHome(row);
    return Status();
  }
  size_t bytes = static_cast<size_t>(group.plan->slotBytes);
  return store.scan([&](uint32_t row, const char *payload) {
    std::memcpy(group.row(row), payload, bytes);
    group.present.set(row);
    return Status();
  });
}

/// A record of another state as ours keeps it: weights of another type are
/// rounded to nearest, another optimizer's state means nothing to ours.
static Status convertRecord(const ManifestTable &from, const TablePlan &to,
                            uint64_t row, const char *record,
                            std::vector<float> &weights,
                            std::vector<char> &out) {
  size_t state =
      to.optimizer.stateCount() && from.optimizer == to.optimizer.name
          ? from.recordBytes() -
                static_cast<size_t>(stateOffset(from.element, from.dim))
          : 0;
  size_t begin = static_cast<size_t>(stateOffset(to.element, to.dim));
  weights.resize(static_cast<size_t>(to.dim));
  out.resize(begin + state);
  decodeWeights(from.element, record, to.dim, weights.data());
  if (from.element != to.element)
    if (std::string why = whyNotStored(to.element, weights.data(), to.dim);
        !why.empty())
      return Status(TRC_MISMATCH, "table '" + to.name + "', row " +
                                      std::to_string(row) + ", " + why);
  encodeWeights(to.element, weights.data(), to.dim, out.data());
  std::memcpy(out.data() + begin, record + stateOffset(from.element, from.dim),
              state);
  return Status();
}

Status Session::loadRows(const StateSource &source,
                         const std::vector<int> &tableMap) {
  // Rows for a store are collected and written in rising order.
  struct Pending {
    std::vector<std::pair<uint32_t, size_t>> rows; // row, place in payloads
    std::vector<char> payloads;
  };
  std::vector<Pending> pending(pipeline->groups.size());
  std::vector<uint32_t> sorted;
  std::vector<char> moved, converted;
  std::vector<float> weights;
  auto flush = [&](size_t g) {
    Pending &p = pending[g];
    if (p.rows.empty())
      return Status();
    GroupRuntime &group = *pipeline->groups[g];
    size_t pitch = static_cast<size_t>(group.plan->slotBytes);
    std::sort(p.rows.begin(), p.rows.end());
    sorted.clear();
    moved.resize(p.payloads.size());
    for (size_t i = 0; i < p.rows.size(); ++i) {
      sorted.push_back(p.rows[i].first);
      std::memcpy(moved.data() + i * pitch,
                  p.payloads.data() + p.rows[i].second * pitch, pitch);
    }
    TRC_RETURN_IF_ERROR(group.store->load(
        sorted.data(), static_cast<uint32_t>(sorted.size()), moved.data()));
    for (uint32_t row : sorted)
      group.cache->setHome(row);
    p.rows.clear();
    p.payloads.clear();
    return Status();
  };
  Result<std::unique_ptr<StateReader>> reader = StateReader::open(source);
  if (!reader.ok())
    return reader.takeStatus();
  TRC_RETURN_IF_ERROR((*reader)->scan(
      [&](int from, uint64_t row, const char *record, uint32_t bytes) {
        int to = tableMap[from];
        if (to < 0 || row >= static_cast<uint64_t>(plan.tables[to].rows))
          return Status();
        const TablePlan &table = plan.tables[to];
        const ManifestTable &have = source.manifest.tables[from];
        if (have.optimizer != table.optimizer.name ||
            have.element != table.element) {
          TRC_RETURN_IF_ERROR(
              convertRecord(have, table, row, record, weights, converted));
          record = converted.data();
          bytes = static_cast<uint32_t>(converted.size());
        }
        size_t g = static_cast<size_t>(table.group);
        GroupRuntime &group = *pipeline->groups[g];
        uint64_t groupRow = static_cast<uint64_t>(table.rowBase) + row;
        size_t pitch = static_cast<size_t>(group.plan->slotBytes);
        if (!group.cache) {
          char *out = group.row(groupRow);
          std::memcpy(out, record, bytes);
          std::memset(out + bytes, 0, pitch - bytes);
          group.present.set(groupRow);
          group.dirty.set(groupRow);
          return Status();
        }
        Pending &p = pending[g];
        p.rows.emplace_back(static_cast<uint32_t>(groupRow), p.rows.size());
        p.payloads.insert(p.payloads.end(), record, record + bytes);
        p.payloads.resize(p.rows.size() * pitch, 0);
        return p.payloads.size() >= (1u << 20) ? flush(g) : Status();
      }));
  for (size_t g = 0; g < pending.size(); ++g)
    TRC_RETURN_IF_ERROR(flush(g));
  return Status();
}
