//===- Rocks.cpp - A RocksDB full of rows ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Rocks.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <thread>

using namespace trc;
using namespace trc::bench;

namespace {

constexpr uint64_t mebibyte = 1 << 20;

/// Sorts as the row does.
struct Key {
  char bytes[4];
  explicit Key(uint32_t row)
      : bytes{static_cast<char>(row >> 24), static_cast<char>(row >> 16),
              static_cast<char>(row >> 8), static_cast<char>(row)} {}
  rocksdb::Slice slice() const { return {bytes, sizeof bytes}; }
};

} // namespace

Rocks::Rocks(const Workload &workload, const PeerOptions &options)
    : work(workload), options(options), path(options.folder + "/db") {}

Rocks::~Rocks() {
  opened.reset();
  std::error_code ignored;
  std::filesystem::remove_all(options.folder, ignored);
}

Status Rocks::check(const rocksdb::Status &status, const char *what) const {
  if (status.ok())
    return {};
  return Status(TRC_IO, std::string("RocksDB cannot ") + what + " in '" + path +
                            "': " + status.ToString());
}

Status Rocks::open(Compaction compaction, bool writes) {
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  uint64_t span = uint64_t(work.rows) * work.payload;
  uint64_t memtable = std::clamp(span / 32, mebibyte, 64 * mebibyte);

  db.create_if_missing = true;
  db.error_if_exists = true;
  db.compression = rocksdb::kNoCompression;
  db.use_direct_reads = true;
  db.use_direct_io_for_flush_and_compaction = true;
  db.max_open_files = -1;
  db.max_background_jobs =
      std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  db.write_buffer_size = memtable;
  db.max_write_buffer_number = 3;
  db.target_file_size_base = memtable;
  db.max_bytes_for_level_base = 4 * memtable;
  db.level_compaction_dynamic_level_bytes = true;
  db.optimize_filters_for_hits = true; // every row exists
  if (compaction == Compaction::Universal) {
    db.compaction_style = rocksdb::kCompactionStyleUniversal;
    // As much space as the store has: twice the rows.
    db.compaction_options_universal.max_size_amplification_percent = 100;
  }

  rocksdb::BlockBasedTableOptions table;
  table.block_size = 4096;
  // A block of small rows is one page then; one large row would become two.
  table.block_align = work.payload <= 1024;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.data_block_index_type =
      rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  // The rest of its memory is for memtables, or for indexes and filters.
  uint64_t cache = options.memory / 4 * 3;
  if (writes)
    cache -= std::min(cache, 2 * memtable);
  table.block_cache = rocksdb::NewLRUCache(std::max(cache, mebibyte));
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

  rocksdb::DB *raw = nullptr;
  TRC_RETURN_IF_ERROR(check(rocksdb::DB::Open(db, path, &raw), "open"));
  opened.reset(raw);
  team = std::make_unique<Team>(1);
  return load();
}

Status Rocks::load() {
  uint32_t each = static_cast<uint32_t>(
      std::max<uint64_t>(1, db.target_file_size_base / work.payload));
  std::vector<std::string> files;
  std::vector<char> content(work.payload);
  for (uint32_t first = 0; first < work.rows;) {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(db), db);
    files.push_back(options.folder + "/load-" + std::to_string(first) + ".sst");
    TRC_RETURN_IF_ERROR(check(writer.Open(files.back()), "load"));
    for (uint32_t end = first + std::min(each, work.rows - first); first < end;
         ++first) {
      work.fill(first, 0, content.data());
      TRC_RETURN_IF_ERROR(
          check(writer.Put(Key(first).slice(), {content.data(), work.payload}),
                "load"));
    }
    TRC_RETURN_IF_ERROR(check(writer.Finish(), "load"));
  }
  rocksdb::IngestExternalFileOptions ingest;
  ingest.move_files = true;
  return check(opened->IngestExternalFile(files, ingest), "load");
}

Status Rocks::calibrate(std::string &note) {
  std::vector<char> out(uint64_t(work.batchRows) * work.payload);
  auto best = bestTrial(
      work, /*withAsync=*/true, team,
      [&](uint64_t batch, const Trial &trial) {
        reads.async_io = trial.async;
        return get(work.batch(batch), out.data());
      },
      note);
  if (!best.ok())
    return best.takeStatus();
  reads.async_io = best->async;
  return {};
}

Status Rocks::get(const std::vector<uint32_t> &rows, char *out) {
  std::vector<std::pair<uint32_t, uint32_t>> order(rows.size());
  for (uint32_t i = 0; i < rows.size(); ++i)
    order[i] = {rows[i], i};
  std::sort(order.begin(), order.end());
  std::mutex mutex;
  rocksdb::Status failure;
  team->run(static_cast<uint32_t>(rows.size()), [&](uint32_t first,
                                                    uint32_t last) {
    uint32_t count = last - first;
    std::vector<Key> keys;
    std::vector<rocksdb::Slice> slices;
    keys.reserve(count);
    for (uint32_t i = first; i < last; ++i) {
      keys.emplace_back(order[i].first);
      slices.push_back(keys.back().slice());
    }
    std::vector<rocksdb::PinnableSlice> values(count);
    std::vector<rocksdb::Status> results(count);
    opened->MultiGet(reads, opened->DefaultColumnFamily(), count, slices.data(),
                     values.data(), results.data(), true);
    for (uint32_t i = 0; i < count; ++i) {
      if (results[i].ok() && values[i].size() == work.payload) {
        std::memcpy(out + uint64_t(order[first + i].second) * work.payload,
                    values[i].data(), work.payload);
        continue;
      }
      std::lock_guard<std::mutex> lock(mutex);
      if (failure.ok())
        failure = results[i].ok()
                      ? rocksdb::Status::Corruption("a row has another size")
                      : results[i];
    }
  });
  return check(failure, "read");
}

Status Rocks::put(const std::vector<uint32_t> &rows, const char *contents) {
  std::mutex mutex;
  rocksdb::Status failure;
  team->run(static_cast<uint32_t>(rows.size()), [&](uint32_t first,
                                                    uint32_t last) {
    rocksdb::WriteBatch batch;
    rocksdb::Status status;
    for (uint32_t i = first; i < last && status.ok(); ++i)
      status = batch.Put(Key(rows[i]).slice(),
                         {contents + uint64_t(i) * work.payload, work.payload});
    rocksdb::WriteOptions writes;
    writes.disableWAL = true;
    if (status.ok())
      status = opened->Write(writes, &batch);
    std::lock_guard<std::mutex> lock(mutex);
    if (failure.ok())
      failure = status;
  });
  return check(failure, "write");
}

Status Rocks::flush() {
  return check(opened->Flush(rocksdb::FlushOptions()), "flush");
}

Status Rocks::settle() {
  TRC_RETURN_IF_ERROR(flush());
  // Universal compaction may have work "pending" that it never starts: quiet
  // for a while will do.
  constexpr int quietLooks = 10;
  for (int quiet = 0; quiet < quietLooks; ++quiet) {
    uint64_t running = 0, pending = 0;
    auto add = [&](const char *name, uint64_t &sum) {
      uint64_t value = 0;
      bool known = opened->GetIntProperty(name, &value);
      sum += value;
      return known;
    };
    if (!add("rocksdb.num-running-compactions", running) ||
        !add("rocksdb.num-running-flushes", running) ||
        !add("rocksdb.compaction-pending", pending) ||
        !add("rocksdb.mem-table-flush-pending", pending))
      return Status(TRC_UNSUPPORTED,
                    "this RocksDB does not tell what it is doing");
    if (running == 0 && pending == 0)
      return {};
    if (running != 0)
      quiet = -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}
