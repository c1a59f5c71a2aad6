//===- SessionSave.cpp - Checkpoints and the clean close ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A checkpoint holds the logical rows of all tables and leaves the tiers as
// they are. A clean close writes dirty rows back to their tiers and puts a
// marker last; what it needs besides lies in files whose names carry the
// sequence number, so that an older marker stays true until it is replaced.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Session.h"
#include "runtime/store/Crc32c.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

using namespace trc;

Status Session::writeBlob(const std::string &folder, const std::string &name,
                          const std::vector<char> &data, Manifest &manifest) {
  manifest.blobFile.clear();
  manifest.blobBytes = data.size();
  manifest.blobCrc = crc32c(0, data.data(), data.size());
  if (data.empty())
    return Status();
  manifest.blobFile = name;
  return writeFile(folder + "/" + name, data.data(), data.size());
}

/// Every written row, wherever its current copy is.
Status Session::eachRow(const RowTaker &take, bool memoryHomesOnly) {
  for (auto &g : pipeline->groups) {
    uint64_t rows = static_cast<uint64_t>(g->plan->rows);
    auto give = [&](uint64_t row, const char *record) {
      int table = g->plan->tables[g->tableOf(plan, row)];
      return take(table,
                  row - static_cast<uint64_t>(plan.tables[table].rowBase),
                  record, static_cast<uint32_t>(g->plan->recordBytes()));
    };
    if (!g->cache) {
      for (uint64_t row = g->written.next(0, rows); row < rows;
           row = g->written.next(row + 1, rows))
        TRC_RETURN_IF_ERROR(give(row, g->row(row)));
      continue;
    }
    if (memoryHomesOnly)
      continue;
    TRC_RETURN_IF_ERROR(g->store->scan(
        0, static_cast<uint32_t>(rows), [&](uint32_t row, const char *payload) {
          GroupCache::Location at = g->cache->locate(row);
          return give(row, at.place == GroupCache::Place::Slot ? g->row(at.slot)
                                                               : payload);
        }));
    // Updated rows that have never been at home.
    for (uint32_t row = 0; row < rows; ++row) {
      if (g->store->written(row))
        continue;
      GroupCache::Location at = g->cache->locate(row);
      if (at.place == GroupCache::Place::Slot && at.dirty)
        TRC_RETURN_IF_ERROR(give(row, g->row(at.slot)));
    }
  }
  return Status();
}

/// Brings every dirty row home.
Status Session::writeBack() {
  for (auto &g : pipeline->groups) {
    if (!g->cache)
      continue;
    constexpr uint32_t most = 1024;
    size_t pitch = static_cast<size_t>(g->plan->slotBytes);
    std::vector<uint32_t> rows(most), slots(most), order, sorted;
    std::vector<char> payloads(most * pitch);
    uint32_t cursor = 0;
    while (uint32_t n = g->cache->collectDirty(&cursor, rows.data(),
                                               slots.data(), most)) {
      TRC_RETURN_IF_ERROR(pipeline->announceWrite());
      order.clear();
      for (uint32_t i = 0; i < n; ++i)
        order.push_back(i);
      std::sort(order.begin(), order.end(),
                [&](uint32_t a, uint32_t b) { return rows[a] < rows[b]; });
      sorted.clear();
      for (uint32_t i : order) {
        std::memcpy(payloads.data() + sorted.size() * pitch, g->row(slots[i]),
                    pitch);
        sorted.push_back(rows[i]);
      }
      TRC_RETURN_IF_ERROR(g->store->load(sorted.data(), n, payloads.data()));
      g->cache->markClean(slots.data(), n);
    }
  }
  return Status();
}

Status Session::save() {
  if (savedIsCurrent)
    return Status(); // nothing has changed since it was closed
  TRC_RETURN_IF_ERROR(writeBack());
  Manifest m = Manifest::of(plan);
  m.sequence = ++sequence;
  m.seal = static_cast<uint32_t>(randomKey());
  m.step = step;
  m.samples = samples;
  m.lrScale = lrScale;
  m.headState = pipeline->headState;
  std::string number = std::to_string(m.sequence);
  const std::string &folder = state->path();
  std::vector<ManifestGroup> groups = layout();
  for (size_t g = 0; g < groups.size(); ++g) {
    GroupRuntime &group = *pipeline->groups[g];
    if (!group.store)
      continue;
    TRC_RETURN_IF_ERROR(group.store->flush());
    groups[g].index = "index-" + number + "-" + std::to_string(g);
    groups[g].key = storeKeys[g];
    TRC_RETURN_IF_ERROR(
        group.store->saveIndex(folder + "/" + groups[g].index, m.seal));
    m.groups.push_back(groups[g]);
  }
  std::vector<uint32_t> bytes;
  bool memoryHomes = false;
  for (const ManifestTable &t : m.tables)
    bytes.push_back(t.recordBytes());
  for (auto &g : pipeline->groups)
    memoryHomes |= !g->cache;
  if (memoryHomes) {
    m.rowsFile = "live-" + number + ".rows";
    Result<std::unique_ptr<RowsWriter>> writer =
        RowsWriter::create(folder + "/" + m.rowsFile, bytes, m.seal);
    if (!writer.ok())
      return writer.takeStatus();
    TRC_RETURN_IF_ERROR(eachRow(
        [&](int table, uint64_t row, const char *record, uint32_t) {
          return (*writer)->add(static_cast<uint32_t>(table), row, record);
        },
        true));
    TRC_RETURN_IF_ERROR((*writer)->finish());
    m.rowsBytes = (*writer)->bytes();
    m.rowsChunks = (*writer)->chunks();
    m.rowCount = (*writer)->rows();
  }
  TRC_RETURN_IF_ERROR(writeBlob(folder, "live-" + number + ".blob", blob, m));
  TRC_RETURN_IF_ERROR(state->writeClean(m));
  state->removeLeftovers(m.sequence);
  savedIsCurrent = true;
  return Status();
}

Status Session::checkpoint(const void *data, uint64_t bytes, uint32_t keep) {
  if (mode != TRC_TRAIN)
    return Status(TRC_BAD_ARGUMENT,
                  "checkpoint in a session that was not opened to train");
  if (bytes && !data)
    return Status(TRC_BAD_ARGUMENT, "blob is null but blob_bytes is not 0");
  std::unique_lock<std::mutex> producerRole(producer, std::try_to_lock);
  std::unique_lock<std::mutex> trainerRole(trainer, std::try_to_lock);
  if (!producerRole || !trainerRole)
    return Status(TRC_OUT_OF_ORDER,
                  "checkpoint while another thread is in a call");
  TRC_RETURN_IF_ERROR(usable());
  TRC_RETURN_IF_ERROR(quiet());
  std::vector<char> newBlob(static_cast<const char *>(data),
                            static_cast<const char *>(data) + bytes);
  Result<std::string> folder = state->beginCheckpoint();
  if (!folder.ok())
    return folder.takeStatus();
  Manifest m = Manifest::of(plan);
  m.seal = static_cast<uint32_t>(randomKey());
  Status s = [&] {
    std::vector<uint32_t> sizes;
    for (const ManifestTable &t : m.tables)
      sizes.push_back(t.recordBytes());
    Result<std::unique_ptr<RowsWriter>> writer =
        RowsWriter::create(*folder + "/rows.bin", sizes, m.seal);
    if (!writer.ok())
      return writer.takeStatus();
    TRC_RETURN_IF_ERROR(eachRow(
        [&](int table, uint64_t row, const char *record, uint32_t) {
          return (*writer)->add(static_cast<uint32_t>(table), row, record);
        },
        false));
    TRC_RETURN_IF_ERROR((*writer)->finish());
    m.sequence = sequence + 1;
    m.step = step;
    m.samples = samples;
    m.lrScale = lrScale;
    m.headState = pipeline->headState;
    m.rowsFile = "rows.bin";
    m.rowsBytes = (*writer)->bytes();
    m.rowsChunks = (*writer)->chunks();
    m.rowCount = (*writer)->rows();
    TRC_RETURN_IF_ERROR(writeBlob(*folder, "blob.bin", newBlob, m));
    return state->commitCheckpoint("ckpt-" + std::to_string(m.step), m);
  }();
  if (!s.ok()) {
    // The session goes on, and so do the checkpoints that are there.
    state->abandonCheckpoint();
    return s;
  }
  sequence = m.sequence;
  blob = std::move(newBlob);
  savedIsCurrent = false;
  return state->prune(keep);
}

Status Session::getBlob(void *data, uint64_t *bytes) {
  if (!bytes)
    return Status(TRC_BAD_ARGUMENT, "bytes is null");
  uint64_t room = *bytes;
  *bytes = blob.size();
  if (!data)
    return Status();
  if (room < blob.size())
    return Status(TRC_BAD_ARGUMENT,
                  "the blob has " + std::to_string(blob.size()) +
                      " bytes, the buffer " + std::to_string(room));
  std::memcpy(data, blob.data(), blob.size());
  return Status();
}
