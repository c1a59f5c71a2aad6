//===- PersistentTable.cpp - Rows read in place ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What pooling sees of persistent memory: rows are added up where they lie in
// the device's mapping, found through an index of places as the store has it,
// against the same loop over a copy in DRAM. Every record is compared before.
// Where there is no such memory a file emulates it, through the page cache.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/StoreLayout.h"
#include "test/bench/store/Sections.h"
#include "test/bench/store/StoreReads.h"

#include <algorithm>
#include <cstdio>

using namespace trc;
using namespace trc::bench;

namespace {

/// Adds up rows: row r at base + 16 * places[r].
class Pool : public Variant {
public:
  explicit Pool(const Workload &workload)
      : work(workload), sum(workload.payload / 4) {}

  Status run(uint64_t number, Measured &total) final {
    std::vector<uint32_t> rows = work.batch(number);
    std::fill(sum.begin(), sum.end(), 0);
    Meter meter;
    for (uint32_t row : rows) {
      const char *payload =
          base + uint64_t(places[row]) * recordAlign + recordHeaderBytes;
      for (size_t i = 0; i < sum.size(); ++i) {
        uint32_t x;
        std::memcpy(&x, payload + 4 * i, 4);
        sum[i] += x;
      }
    }
    meter.add(total);
    total.rows += rows.size();
    if (!right(rows))
      total.wrong += rows.size();
    return {};
  }

protected:
  Workload work;
  const char *base = nullptr;
  std::vector<uint32_t> places; // in units of recordAlign

private:
  bool right(const std::vector<uint32_t> &rows) const {
    std::vector<uint32_t> wanted(sum.size(), 0), content(sum.size());
    for (uint32_t row : rows) {
      work.fill(row, 0, reinterpret_cast<char *>(content.data()));
      for (size_t i = 0; i < sum.size(); ++i)
        wanted[i] += content[i];
    }
    return wanted == sum;
  }

  std::vector<uint32_t> sum;
};

class InPlace final : public Pool {
public:
  InPlace(const Workload &workload, StoreReads &reads)
      : Pool(workload), target(reads.target()) {}

  Status prepare(std::string &note) override {
    FileInfo info = target.io().fileInfo(0);
    base = target.io().mapped(0, 0, info.bytes);
    if (!base)
      return Status(TRC_UNSUPPORTED, "the device maps nothing");
    StoreLayout layout(target.geometry(), target.storeBytes(), {0});
    places.assign(work.rows, 0);
    uint32_t found = 0;
    for (uint32_t place = 0; place < layout.places(); ++place) {
      uint64_t offset = layout.positionOf(place).offset;
      RecordHeader header;
      std::memcpy(&header, base + offset, sizeof header);
      if (header.row >= work.rows ||
          !work.matches(header.row, 0, base + offset + recordHeaderBytes))
        continue;
      places[header.row] = static_cast<uint32_t>(offset / recordAlign);
      ++found;
    }
    if (found != work.rows)
      return Status(TRC_CORRUPT, std::to_string(found) + " of " +
                                     std::to_string(work.rows) +
                                     " rows lie in the mapping");
    note = info.note;
    return {};
  }

private:
  OpenStore &target;
};

class Dram final : public Pool {
public:
  using Pool::Pool;
  Status prepare(std::string &) override {
    uint64_t pitch = recordBytes(work.payload);
    records.resize(work.rows * pitch);
    places.resize(work.rows);
    for (uint32_t row = 0; row < work.rows; ++row) {
      work.fill(row, 0, &records[row * pitch + recordHeaderBytes]);
      places[row] = static_cast<uint32_t>(row * pitch / recordAlign);
    }
    base = records.data();
    return {};
  }

private:
  std::vector<char> records;
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
  all.emplace_back("in place", &inPlace);
  all.emplace_back("gather from DRAM", &dram);
  all.emplace_back("RowStore::read", &reads);
  std::fprintf(stderr, "%u-byte rows, persistent memory\n", payload);
  for (size_t i : {2, 0, 1}) {
    if (all[2].status.ok())
      all[i].prepare();
    else
      all[i].status = all[2].status.clone();
  }
  alternate(all, settings.rounds, settings.batches, Turns::Batch);

  std::printf("\n== persistent memory: rows of %u bytes; %u rows, added up; %u "
              "rounds of %u batches of %u rows\n",
              payload, work.rows, settings.rounds, settings.batches,
              work.batchRows);
  if (all[2].status.ok())
    std::printf("device: %s%s%s\n", reads.target().io().describe().c_str(),
                all[0].note.empty() ? "" : "; ", all[0].note.c_str());
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
