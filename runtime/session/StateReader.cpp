//===- StateReader.cpp - The rows that a root names -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/session/StateReader.h"

#include "runtime/checkpoint/Claims.h"

#include <algorithm>
#include <cstring>

using namespace trc;

/// Which of the group's tables has the row.
static size_t positionOf(const ManifestGroup &group, uint32_t row) {
  size_t k = group.tables.size() - 1;
  while (k > 0 && group.rowBase[k] > static_cast<int64_t>(row))
    --k;
  return k;
}

Result<std::unique_ptr<StateReader>>
StateReader::open(const StateSource &source, bool decoded) {
  std::unique_ptr<StateReader> reader(new StateReader());
  reader->source = source.manifest;
  for (ManifestTable &t : reader->source.tables) {
    reader->stored.push_back(t.element);
    if (decoded)
      t.element = Element::f32;
  }
  StoresOptions options;
  options.key = source.manifest.key;
  options.readOnly = true;
  options.generation = source.manifest.generation;
  // A checkpoint's folder lies two below that of its state.
  options.folder =
      source.closed ? source.folder : folderOf(folderOf(source.folder));
  options.holders = holdersIn(options.folder, options.generation);
  // The reader outlives its stores.
  options.rowName = [r = reader.get()](size_t g, uint32_t row) {
    const ManifestGroup &group = r->source.groups[g];
    size_t k = positionOf(group, row);
    return "row " + std::to_string(row - group.rowBase[k]) + " of table '" +
           r->source.tables[group.tables[k]].name + "'";
  };
  Result<HomeStores> opened = openStores(source.manifest.groups, options);
  if (!opened.ok())
    return opened.takeStatus();
  reader->homes = std::move(*opened);
  for (size_t g = 0; g < source.manifest.groups.size(); ++g)
    TRC_RETURN_IF_ERROR(reader->homes.stores[g]->adopt(
        {source.manifest.sequence, source.manifest.groups[g].index}, true));
  return Result<std::unique_ptr<StateReader>>(std::move(reader));
}

StateReader::Place StateReader::placeOf(int table) const {
  for (size_t g = 0; g < source.groups.size(); ++g)
    for (size_t k = 0; k < source.groups[g].tables.size(); ++k)
      if (source.groups[g].tables[k] == table)
        return {g, static_cast<uint32_t>(source.groups[g].rowBase[k])};
  return {};
}

const char *StateReader::shape(int table, const char *record) {
  const ManifestTable &t = source.tables[table];
  Element from = stored[static_cast<size_t>(table)];
  if (from == t.element)
    return record;
  size_t begin = static_cast<size_t>(stateOffset(t.element, t.dim));
  shaped.resize(t.recordBytes());
  decodeWeights(from, record, t.dim, reinterpret_cast<float *>(shaped.data()));
  std::memcpy(shaped.data() + begin, record + stateOffset(from, t.dim),
              shaped.size() - begin);
  return shaped.data();
}

Status StateReader::scanGroup(size_t g, int only, const RowTaker &take) {
  const ManifestGroup &group = source.groups[g];
  return homes.stores[g]->scan([&](uint32_t row, const char *payload) {
    size_t k = positionOf(group, row);
    int table = group.tables[k];
    if (only >= 0 && table != only)
      return Status();
    return take(table, row - static_cast<uint64_t>(group.rowBase[k]),
                shape(table, payload), source.tables[table].recordBytes());
  });
}

Status StateReader::scan(const RowTaker &take) {
  for (size_t g = 0; g < source.groups.size(); ++g)
    TRC_RETURN_IF_ERROR(scanGroup(g, -1, take));
  return Status();
}

Status StateReader::scan(int table, const RowTaker &take) {
  return scanGroup(placeOf(table).group, table, take);
}

bool StateReader::written(int table, int64_t row) const {
  Place at = placeOf(table);
  return homes.stores[at.group]->written(at.base + static_cast<uint32_t>(row));
}

int64_t StateReader::nextWritten(int table, int64_t row) const {
  Place at = placeOf(table);
  int64_t rows = source.tables[table].rows;
  if (row >= rows)
    return rows;
  uint32_t next =
      homes.stores[at.group]->nextWritten(at.base + static_cast<uint32_t>(row));
  return std::min(rows, static_cast<int64_t>(next) - at.base);
}

uint64_t StateReader::writtenCount(int table) const {
  uint64_t n = 0;
  int64_t rows = source.tables[table].rows;
  for (int64_t row = nextWritten(table, 0); row < rows;
       row = nextWritten(table, row + 1))
    ++n;
  return n;
}

uint64_t StateReader::writtenCount() const {
  uint64_t n = 0;
  for (const auto &store : homes.stores)
    n += store->writtenCount();
  return n;
}

Status StateReader::read(
    int table, const int64_t *rows, int64_t count,
    const std::function<void(int64_t i, const char *record)> &take) {
  constexpr size_t most = 4096; // rows of a batch of reads
  const ManifestTable &t = source.tables[table];
  Place at = placeOf(table);
  RowStore &store = *homes.stores[at.group];
  uint32_t bytes = t.recordBytes();
  RowInit init = t.init.make();
  std::vector<char> record(bytes);
  std::vector<float> weights(static_cast<size_t>(t.dim));
  std::vector<uint32_t> wanted;
  std::vector<int64_t> index;
  std::vector<char> payloads;
  for (int64_t i = 0; i < count;) {
    wanted.clear();
    index.clear();
    for (; i < count && wanted.size() < most; ++i) {
      uint32_t row = at.base + static_cast<uint32_t>(rows[i]);
      if (store.written(row)) {
        wanted.push_back(row);
        index.push_back(i);
        continue;
      }
      std::fill(record.begin(), record.end(), 0);
      init.fill(rows[i], t.dim, weights.data());
      // As a row would keep it.
      roundWeights(stored[static_cast<size_t>(table)], weights.data(), t.dim);
      encodeWeights(t.element, weights.data(), t.dim, record.data());
      take(i, record.data());
    }
    ReadBatch batch;
    batch.rows = wanted.data();
    batch.count = static_cast<uint32_t>(wanted.size());
    batch.pitch = store.payloadBytes();
    payloads.resize(wanted.size() * batch.pitch);
    batch.out = payloads.data();
    TRC_RETURN_IF_ERROR(store.read(batch));
    for (size_t k = 0; k < index.size(); ++k)
      take(index[k], shape(table, payloads.data() + k * batch.pitch));
  }
  return Status();
}
