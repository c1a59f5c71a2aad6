//===- CheckpointTable.cpp - What a checkpoint costs ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// At the level of the store: a tenth of the rows is written, then the store is
// cut with a fiftieth of them dirty in a cache above (pending), and the
// checkpoint is made by another thread while this one goes on reading.
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/OpenStore.h"
#include "test/bench/store/Sections.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <thread>

using namespace trc;
using namespace trc::bench;

namespace {

class Checkpoints {
public:
  Checkpoints(const Workload &workload, const std::string &folder)
      : work(workload), opened(workload, folder) {}

  Status run(uint32_t count, Table &table);

private:
  /// Distinct rows spread over the table, others for each `salt`.
  std::vector<uint32_t> some(uint32_t one_in, uint64_t salt) const;
  /// Writes the next version of these rows through the ring.
  Status write(const std::vector<uint32_t> &rows, uint32_t version);
  /// Milliseconds of a batch of reads.
  Result<double> read();
  Result<double> readSome(uint32_t count);
  Status one(uint64_t id, Table &table);

  Workload work;
  OpenStore opened;
  std::vector<char> records, out;
  uint64_t nextBatch = 0;
};

} // namespace

std::vector<uint32_t> Checkpoints::some(uint32_t oneIn, uint64_t salt) const {
  std::vector<uint32_t> rows;
  for (uint32_t first = 0; first + oneIn <= work.rows; first += oneIn)
    rows.push_back(first + static_cast<uint32_t>(
                               Workload::hash(salt << 32 | first) % oneIn));
  return rows;
}

Status Checkpoints::write(const std::vector<uint32_t> &rows, uint32_t version) {
  uint64_t slotBytes = uint64_t(work.batchRows) * opened.storeBytes();
  records.resize(writeSlots * slotBytes);
  RowStore &store = opened.rows();
  for (uint32_t first = 0, n = 0; first < rows.size(); ++n) {
    uint32_t count = std::min<uint32_t>(
        work.batchRows, static_cast<uint32_t>(rows.size()) - first);
    uint32_t slot = n % writeSlots;
    TRC_RETURN_IF_ERROR(store.waitWrites(slot));
    char *base = &records[slot * slotBytes];
    for (uint32_t i = 0; i < count; ++i) {
      char *record = base + uint64_t(i) * opened.storeBytes();
      work.fill(rows[first + i], version, record + recordHeaderBytes);
      store.seal(rows[first + i], record);
    }
    TRC_RETURN_IF_ERROR(store.write(slot, &rows[first], count, base));
    first += count;
  }
  for (uint32_t slot = 0; slot < writeSlots; ++slot)
    TRC_RETURN_IF_ERROR(store.waitWrites(slot));
  return {};
}

Result<double> Checkpoints::read() {
  std::vector<uint32_t> rows = work.batch(nextBatch++);
  out.resize(rows.size() * work.payload);
  ReadBatch batch;
  batch.rows = rows.data();
  batch.count = static_cast<uint32_t>(rows.size());
  batch.out = out.data();
  batch.pitch = work.payload;
  double start = wallSeconds();
  TRC_RETURN_IF_ERROR(opened.rows().read(batch));
  return (wallSeconds() - start) * 1e3;
}

Result<double> Checkpoints::readSome(uint32_t count) {
  std::vector<double> times;
  while (times.size() < count) {
    Result<double> ms = read();
    if (!ms.ok())
      return ms;
    times.push_back(*ms);
  }
  return spread(std::move(times)).median;
}

Status Checkpoints::one(uint64_t id, Table &table) {
  RowStore &store = opened.rows();
  RowStore::Counters before = store.counters();
  std::vector<uint32_t> changed = some(10, 2 * id);
  std::vector<uint32_t> pending = some(50, 2 * id + 1);
  uint32_t version = static_cast<uint32_t>(2 * id);
  TRC_RETURN_IF_ERROR(write(changed, version));
  Result<double> alone = readSome(5);
  if (!alone.ok())
    return alone.takeStatus();

  double start = wallSeconds();
  TRC_RETURN_IF_ERROR(store.beginCut(id, pending.data(), pending.size()));
  double pause = (wallSeconds() - start) * 1e3, drained = 0;
  RowStore::Image image;
  image.id = id;
  std::atomic<bool> done{false};
  Status failure;
  std::thread drain([&] {
    failure = write(pending, version + 1);
    if (failure.ok())
      failure = store.finishCut(image);
    drained = (wallSeconds() - start) * 1e3;
    done = true;
  });
  std::vector<double> beside;
  Status reads;
  while (!done && reads.ok()) {
    Result<double> ms = read();
    if (ms.ok())
      beside.push_back(*ms);
    else
      reads = ms.takeStatus();
  }
  drain.join();
  TRC_RETURN_IF_ERROR(failure.clone());
  TRC_RETURN_IF_ERROR(reads.clone());
  store.keepCut();
  if (id > 1)
    TRC_RETURN_IF_ERROR(store.forget(id - 1));

  RowStore::Counters c = store.counters();
  double rows = static_cast<double>(changed.size() + pending.size());
  double index = static_cast<double>(c.bytesIndex - before.bytesIndex);
  double cleaned = static_cast<double>(c.bytesCleaned - before.bytesCleaned);
  double written =
      static_cast<double>(c.bytesWritten - before.bytesWritten) - cleaned;
  Spread during = spread(std::move(beside));
  table.add({std::to_string(id), figure(rows), figure(pause), figure(drained),
             size(written),
             size(index) + (image.files.size() == 1 ? " base" : " delta"),
             figure((written + index) / (rows * opened.storeBytes() + index)),
             size(cleaned), figure(*alone), figure(during.median),
             figure(during.high)});
  return {};
}

Status Checkpoints::run(uint32_t count, Table &table) {
  TRC_RETURN_IF_ERROR(opened.open());
  for (uint32_t id = 1; id <= count; ++id)
    TRC_RETURN_IF_ERROR(one(id, table));
  return {};
}

bool trc::bench::checkpointTable(const Settings &settings, uint32_t payload) {
  Workload work = settings.workload(payload, settings.span / 4);
  work.seed = 3;
  std::fprintf(stderr, "%u-byte rows, checkpoints\n", payload);
  Table table({"checkpoint", "changed rows", "pause ms", "drain ms", "records",
               "index", "written / needed", "cleaned", "read ms alone",
               "beside it", "worst"});
  Status status;
  {
    Checkpoints bench(work, settings.folder + "/store");
    status = bench.run(settings.rounds, table);
  }
  std::printf(
      "\n== checkpoints: rows of %u bytes; %u rows, a tenth changed and "
      "a fiftieth dirty at each cut; reads are batches of %u rows\n",
      payload, work.rows, work.batchRows);
  if (!status.ok())
    table.add({"FAILED", status.message()});
  table.print();
  return status.ok();
}
