//===- PersistentTable.cpp - Rows read in place ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent memory: the store reads rows that it has verified before from the
// mapping of its device, against a gather of the same rows, at the same
// distance from each other, from a plain array in DRAM. Where there is no such
// memory a file emulates it, through the page cache.
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Sections.h"
#include "test/bench/store/StoreReads.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

using namespace trc;
using namespace trc::bench;

namespace {

/// RowStore::read, after all rows were read once.
class InPlace final : public Variant {
public:
  InPlace(const Workload &workload, StoreReads &reads)
      : work(workload), reads(reads) {}

  Status prepare(std::string &note) override {
    TRC_RETURN_IF_ERROR(reads.prepare(note));
    if (!reads.target().io().mapped(0, 0, 1))
      return Status(TRC_UNSUPPORTED, "the device maps nothing");
    Meter meter;
    std::vector<uint32_t> rows(work.batchRows);
    std::vector<char> out(uint64_t(work.batchRows) * work.payload);
    for (uint32_t first = 0; first < work.rows; first += work.batchRows) {
      ReadBatch batch;
      std::iota(rows.begin(), rows.end(), first);
      batch.rows = rows.data();
      batch.count = std::min(work.batchRows, work.rows - first);
      batch.out = out.data();
      batch.pitch = work.payload;
      TRC_RETURN_IF_ERROR(reads.target().rows().read(batch));
    }
    meter.add(touched);
    touched.rows = work.rows;
    return {};
  }

  Status run(uint64_t number, Measured &sum) override {
    uint64_t before = sum.deviceReads;
    TRC_RETURN_IF_ERROR(reads.run(number, sum));
    if (sum.deviceReads != before)
      return Status(TRC_INTERNAL, "rows that are verified were read through "
                                  "the device once more");
    return {};
  }

  const Measured &firstTouch() const { return touched; }

private:
  Workload work;
  StoreReads &reads;
  Measured touched; // in order, in large pieces
};

/// What a program does whose rows are an array that is found through an index.
class Dram final : public Variant {
public:
  explicit Dram(const Workload &workload) : work(workload) {}

  Status prepare(std::string &) override {
    pitch = recordBytes(work.payload);
    records.resize(work.rows * pitch);
    places.resize(work.rows);
    for (uint32_t row = 0; row < work.rows; ++row) {
      places[row] = row;
      work.fill(row, 0, &records[row * pitch + recordHeaderBytes]);
    }
    return {};
  }

  Status run(uint64_t number, Measured &sum) override {
    std::vector<uint32_t> rows = work.batch(number);
    out.resize(rows.size() * uint64_t(work.payload));
    Meter meter;
    gather(rows);
    meter.add(sum);
    sum.rows += rows.size();
    for (size_t i = 0; i < rows.size(); ++i)
      sum.wrong += !work.matches(rows[i], 0, &out[i * work.payload]);
    return {};
  }

private:
  void gather(const std::vector<uint32_t> &rows) {
    // As far ahead as helps, which depends on the size.
    const uint32_t near = std::min(work.payload, 4096u);
    const size_t ahead = std::clamp(4096 / work.payload, 1u, 32u);
    auto payload = [&](size_t i) {
      return &records[places[rows[i]] * pitch + recordHeaderBytes];
    };
    auto bring = [&](size_t i) {
      for (uint32_t at = 0; at < near && i < rows.size(); at += 64)
        __builtin_prefetch(payload(i) + at);
      if (i < rows.size())
        __builtin_prefetch(payload(i) + near - 1);
    };
    auto find = [&](size_t i) {
      if (i < rows.size())
        __builtin_prefetch(&places[rows[i]]);
    };
    for (size_t i = 0; i < 2 * ahead; ++i)
      find(i);
    for (size_t i = 0; i < ahead; ++i)
      bring(i);
    for (size_t i = 0; i < rows.size(); ++i) {
      find(i + 2 * ahead);
      bring(i + ahead);
      std::memcpy(&out[i * work.payload], payload(i), work.payload);
    }
  }

  Workload work;
  uint64_t pitch = 0;
  std::vector<uint32_t> places;
  std::vector<char> records, out;
};

} // namespace

bool trc::bench::persistentTable(const Settings &settings, uint32_t payload) {
  // Larger than the caches of a CPU is enough, and it must fit into DRAM.
  constexpr uint64_t most = 512 << 20;
  Workload work = settings.workload(payload, std::min(settings.span / 4, most));
  work.seed = 4;
  StoreReads reads(work, settings.folder + "/store", OpenStore::Backend::Pmem);
  InPlace inPlace(work, reads);
  Dram dram(work);
  std::vector<Contender> all;
  all.emplace_back("RowStore::read in place", &inPlace);
  all.emplace_back("gather from DRAM", &dram);
  std::fprintf(stderr, "%u-byte rows, persistent memory\n", payload);
  all[0].prepare();
  if (all[0].status.ok())
    all[1].prepare();
  else
    all[1].status = all[0].status.clone();
  alternate(all, settings.rounds, settings.batches, Turns::Batch);

  std::printf("\n== persistent memory: rows of %u bytes; %u rows; %u rounds of "
              "%u batches of %u rows\n",
              payload, work.rows, settings.rounds, settings.batches,
              work.batchRows);
  if (all[0].status.ok())
    std::printf("device: %s\nfirst touch, all rows in order: %s rows/s, %s CPU "
                "us/row\n",
                all[0].note.c_str(),
                figure(rateOf(inPlace.firstTouch())).c_str(),
                figure(cpuOf(inPlace.firstTouch())).c_str());
  Table table(
      {"", "rows/s", "spread", "CPU us/row", "in place / this", "spread"});
  bool sane = true;
  for (const Contender &c : all) {
    sane &= !c.bad();
    if (!c.status.ok()) {
      table.add({c.name, (c.skipped() ? "skipped: " : "FAILED: ") +
                             c.status.message()});
      continue;
    }
    Spread rate = c.rate(), faster = ratio(all[0], c, rateOf);
    table.add({c.name, figure(rate.median), range(rate),
               figure(c.cpuPerRow().median), figure(faster.median),
               range(faster)});
  }
  table.print();
  return sane;
}
