//===- SessionLoad.cpp - Takes rows from a state or a checkpoint ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opens the stores of a layout and moves rows by table and row number, so that
// a state loads whatever plan it was trained under.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Session.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace trc;

std::vector<int> Session::tableMapOf(const Manifest &manifest) const {
  std::vector<int> map;
  for (const ManifestTable &t : manifest.tables)
    map.push_back(plan.findTable(t.name));
  return map;
}

/// Holds a tier file for as long as the stores live: two states, or two tiers,
/// that name one file would write over each other.
static Status lockTierFile(const std::string &path, bool write,
                           HomeStores &homes) {
  for (const auto &known : homes.locked)
    if (known == path)
      return Status();
  if (write)
    TRC_RETURN_IF_ERROR(makeFolders(folderOf(path)));
  Fd fd(::open(path.c_str(),
               (write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NONBLOCK,
               0644));
  if (!fd.open())
    return !write && errno == ENOENT
               ? Status(TRC_NOT_FOUND, "the tier file '" + path +
                                           "' of the state is missing; use a "
                                           "checkpoint")
               : Status::ioError("cannot open the tier file", path, errno);
  if (::flock(fd.get(), (write ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0)
    return errno == EWOULDBLOCK
               ? Status(TRC_LOCKED, "the tier file '" + path +
                                        "' is in use by another state, tier or "
                                        "process; every state and tier needs a "
                                        "file of its own")
               : Status::ioError("cannot lock the tier file", path, errno);
  homes.locked.push_back(path);
  homes.locks.push_back(std::move(fd));
  return Status();
}

Result<HomeStores> Session::openStores(const std::vector<ManifestGroup> &groups,
                                       const std::string &folder, bool create,
                                       bool scratch, bool forPlan) {
  HomeStores homes;
  homes.stores.resize(groups.size());
  uint32_t depth = 64;
  for (const LanePlan &lane : plan.lanes)
    if (lane.kind == LaneKind::io)
      depth = static_cast<uint32_t>(std::min(lane.depth, 4096));
  if (!scratch)
    for (const ManifestGroup &group : groups)
      for (const auto &e : group.extents)
        TRC_RETURN_IF_ERROR(
            lockTierFile(inFolder(folder, e.path), create, homes));
  // One device per set of files: the groups of a tier share it.
  std::vector<std::string> keys;
  for (size_t g = 0; g < groups.size(); ++g) {
    const ManifestGroup &group = groups[g];
    if (group.extents.empty())
      continue;
    std::string key;
    uint64_t largest = 0;
    for (const auto &e : group.extents)
      key += e.path + '\n';
    for (const ManifestGroup &other : groups)
      largest = std::max(largest, static_cast<uint64_t>(other.storeBytes));
    auto known = std::find(keys.begin(), keys.end(), key);
    if (known == keys.end()) {
      DeviceOptions options;
      options.depth = depth;
      options.bufferBytes = static_cast<uint32_t>(deviceBufferBytes(largest));
      Result<std::unique_ptr<Device>> device = openDevice(options);
      if (!device.ok())
        return device.takeStatus();
      homes.devices.push_back(std::move(*device));
      keys.push_back(key);
      known = keys.end() - 1;
    }
    Device &device = *homes.devices[static_cast<size_t>(known - keys.begin())];
    RowStoreOptions options;
    for (const auto &e : group.extents) {
      std::string path = inFolder(folder, e.path);
      if (scratch) {
        std::string name = path + ".read-" + std::to_string(::getpid());
        if (::access(folderOf(path).c_str(), W_OK) != 0) {
          const char *tmp = std::getenv("TMPDIR");
          name = std::string(tmp && *tmp ? tmp : "/tmp") + "/terrace-read-" +
                 std::to_string(::getpid()) + "-" +
                 std::to_string(homes.scratch.size());
        }
        if (std::find(homes.scratch.begin(), homes.scratch.end(), name) ==
            homes.scratch.end())
          homes.scratch.push_back(name);
        path = name;
      }
      options.extents.push_back({path, e.base});
    }
    options.group = forPlan ? plan.groups[g].name : "of the closed state";
    options.rows = static_cast<uint32_t>(group.rows);
    options.payloadBytes = static_cast<uint32_t>(group.payloadBytes);
    options.storeBytes = static_cast<uint32_t>(group.storeBytes);
    options.depth = depth;
    options.key = group.key;
    if (forPlan) {
      int ring = plan.findRing(RingRole::writebuf, static_cast<int>(g));
      options.writeSlots =
          ring < 0 ? 1 : static_cast<uint32_t>(plan.rings[ring].depth);
      options.maxWrites = static_cast<uint32_t>(plan.groups[g].maxMiss);
    }
    Result<std::unique_ptr<RowStore>> store = RowStore::open(device, options);
    if (!store.ok()) {
      for (const std::string &file : homes.scratch)
        ::unlink(file.c_str());
      return store.takeStatus();
    }
    homes.stores[g] = std::move(*store);
  }
  // Without a name, a file goes when its last user does, also after a crash.
  for (const std::string &file : homes.scratch)
    ::unlink(file.c_str());
  return Result<HomeStores>(std::move(homes));
}

Status Session::readSource(const StateSource &source, bool withGroups,
                           const RowTaker &take) {
  const Manifest &m = source.manifest;
  if (!m.rowsFile.empty())
    TRC_RETURN_IF_ERROR(trc::readRows(
        source.folder + "/" + m.rowsFile, m.rowsBytes, m.rowsChunks, m.seal,
        [&](const RowsChunk &chunk) {
          if (chunk.table >= m.tables.size() ||
              chunk.recordBytes != m.tables[chunk.table].recordBytes())
            return Status(TRC_CORRUPT, "'" + source.folder + "/" + m.rowsFile +
                                           "' does not fit its manifest");
          for (uint32_t i = 0; i < chunk.count; ++i)
            TRC_RETURN_IF_ERROR(
                take(static_cast<int>(chunk.table), chunk.rows[i],
                     chunk.records + static_cast<size_t>(i) * chunk.recordBytes,
                     chunk.recordBytes));
          return Status();
        }));
  if (!withGroups || m.groups.empty())
    return Status();
  Result<HomeStores> old =
      openStores(m.groups, source.folder, false, false, false);
  if (!old.ok())
    return old.takeStatus();
  for (size_t g = 0; g < m.groups.size(); ++g) {
    const ManifestGroup &group = m.groups[g];
    RowStore &store = *old->stores[g];
    TRC_RETURN_IF_ERROR(
        store.loadIndex(source.folder + "/" + group.index, m.seal));
    TRC_RETURN_IF_ERROR(
        store.scan(0, store.rows(), [&](uint32_t row, const char *payload) {
          size_t k = group.tables.size() - 1;
          while (k > 0 && group.rowBase[k] > static_cast<int64_t>(row))
            --k;
          int table = group.tables[k];
          return take(table, row - static_cast<uint64_t>(group.rowBase[k]),
                      payload, m.tables[table].recordBytes());
        }));
  }
  // Stores end before their devices.
  old->stores.clear();
  return Status();
}

/// A checkpoint of the moment of a closed state, from its files.
Status Session::copyClosed(const StateSource &source, uint64_t asSequence) {
  Result<std::string> folder = state->beginCheckpoint();
  if (!folder.ok())
    return folder.takeStatus();
  Manifest m = source.manifest;
  m.seal = static_cast<uint32_t>(randomKey());
  std::vector<uint32_t> bytes;
  for (const ManifestTable &t : m.tables)
    bytes.push_back(t.recordBytes());
  Status s = [&] {
    Result<std::unique_ptr<RowsWriter>> writer =
        RowsWriter::create(*folder + "/rows.bin", bytes, m.seal);
    if (!writer.ok())
      return writer.takeStatus();
    TRC_RETURN_IF_ERROR(readSource(
        source, true,
        [&](int table, uint64_t row, const char *record, uint32_t) {
          return (*writer)->add(static_cast<uint32_t>(table), row, record);
        }));
    TRC_RETURN_IF_ERROR((*writer)->finish());
    m.rowsFile = "rows.bin";
    m.rowsBytes = (*writer)->bytes();
    m.rowsChunks = (*writer)->chunks();
    m.rowCount = (*writer)->rows();
    m.groups.clear();
    m.sequence = asSequence;
    std::vector<char> old;
    TRC_RETURN_IF_ERROR(source.readBlob(old));
    TRC_RETURN_IF_ERROR(writeBlob(*folder, "blob.bin", old, m));
    return state->commitCheckpoint("ckpt-" + std::to_string(m.step), m);
  }();
  if (!s.ok())
    state->abandonCheckpoint();
  return s;
}

/// Training writes over the rows of a closed state, so a kill before the next
/// checkpoint would lose it: unless a checkpoint holds its moment already, one
/// is made first. It takes the place of the oldest, so their number stays.
Status Session::secureClosed(const StateSource &source) {
  std::vector<StateSource> all = state->checkpoints(nullptr);
  for (const StateSource &c : all)
    if (c.manifest.step == source.manifest.step &&
        c.manifest.samples == source.manifest.samples)
      return Status();
  log(TRC_LOG_INFO, "keeping the closed state as ckpt-" +
                        std::to_string(source.manifest.step) +
                        ", so that a kill cannot lose it");
  // Of the same moment: the closed state itself stays the first choice.
  TRC_RETURN_IF_ERROR(copyClosed(source, source.manifest.sequence));
  return state->prune(static_cast<uint32_t>(std::max<size_t>(1, all.size())));
}

/// Turns a closed state that lies elsewhere into a checkpoint of the same
/// moment, so that its files may be written over.
Status Session::moveToCheckpoint(std::optional<StateSource> &source) {
  log(TRC_LOG_INFO, "the plan lays rows out anew: copying the closed state");
  TRC_RETURN_IF_ERROR(copyClosed(*source, ++sequence));
  Result<StateSource> made =
      state->checkpoint("ckpt-" + std::to_string(source->manifest.step));
  if (!made.ok())
    return made.takeStatus();
  source = std::move(*made);
  return Status();
}

/// A record of another state as ours keeps it: weights of another type are
/// rounded to nearest, another optimizer's state means nothing to ours.
static Status convertRecord(const ManifestTable &from, const TablePlan &to,
                            uint64_t row, const char *record,
                            std::vector<float> &weights,
                            std::vector<char> &out) {
  size_t state =
      from.optimizer == to.optimizer.name
          ? from.recordBytes() -
                static_cast<size_t>(stateOffset(from.element, from.dim))
          : 0;
  size_t begin = static_cast<size_t>(stateOffset(to.element, to.dim));
  weights.resize(static_cast<size_t>(to.dim));
  out.resize(begin + state);
  decodeWeights(from.element, record, to.dim, weights.data());
  for (int64_t c = 0; from.element != to.element && c < to.dim; ++c) {
    float x = weights[static_cast<size_t>(c)];
    if (std::isfinite(x) && !std::isfinite(storedValue(to.element, x)))
      return Status(TRC_MISMATCH, "table '" + to.name + "', row " +
                                      std::to_string(row) + ", column " +
                                      std::to_string(c) + " is " +
                                      std::to_string(x) + ", too large for " +
                                      elementName(to.element));
  }
  encodeWeights(to.element, weights.data(), to.dim, out.data());
  std::memcpy(out.data() + begin, record + stateOffset(from.element, from.dim),
              state);
  return Status();
}

Status Session::loadRows(const StateSource &source, bool withGroups,
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
    TRC_RETURN_IF_ERROR(pipeline->announceWrite());
    TRC_RETURN_IF_ERROR(group.store->load(
        sorted.data(), static_cast<uint32_t>(sorted.size()), moved.data()));
    for (uint32_t row : sorted)
      group.cache->setHome(row);
    p.rows.clear();
    p.payloads.clear();
    return Status();
  };
  TRC_RETURN_IF_ERROR(readSource(
      source, withGroups,
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
          group.written.set(groupRow);
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

/// The closed state, whose rows lie where the plan wants them.
Status Session::loadLive(const StateSource &source) {
  size_t k = 0;
  for (auto &g : pipeline->groups) {
    if (!g->store)
      continue;
    const ManifestGroup &from = source.manifest.groups[k++];
    TRC_RETURN_IF_ERROR(g->store->loadIndex(source.folder + "/" + from.index,
                                            source.manifest.seal));
    for (uint32_t row = g->store->nextWritten(0); row < g->store->rows();
         row = g->store->nextWritten(row + 1))
      g->cache->setHome(row);
  }
  return loadRows(source, false, tableMapOf(source.manifest));
}

Status Session::loadSource(const StateSource &source) {
  step = source.manifest.step;
  samples = source.manifest.samples;
  lrScale = source.manifest.lrScale;
  pipeline->headState = source.manifest.headState;
  TRC_RETURN_IF_ERROR(source.readBlob(blob));
  if (source.clean && sameLayout(source.manifest)) {
    savedIsCurrent = true;
    return loadLive(source);
  }
  return loadRows(source, true, tableMapOf(source.manifest));
}
