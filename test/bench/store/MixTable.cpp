//===- MixTable.cpp - Reads and write-back, the store and RocksDB ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Child.h"
#include "test/bench/store/Mix.h"
#include "test/bench/store/OpenStore.h"
#include "test/bench/store/Peers.h"
#include "test/bench/store/Sections.h"

#include <algorithm>
#include <cstdio>

using namespace trc;
using namespace trc::bench;

/// Per byte of rows written, over all rounds: cleaning and compaction come in
/// gusts.
static double amplification(const Contender &c, uint64_t Measured::*bytes,
                            uint32_t payload) {
  Measured all;
  for (const Measured &m : c.rounds)
    all += m;
  return static_cast<double>(all.*bytes) /
         (static_cast<double>(all.dirty) * payload);
}

bool trc::bench::mixTable(const Settings &settings, uint32_t payload) {
  uint64_t span = std::min<uint64_t>(settings.span / 4,
                                     settings.mixRows * recordBytes(payload));
  Workload work = settings.workload(payload, span);
  work.seed = 2;
  // A quarter of the rows is written per round: a checkpoint every second one.
  uint32_t batches = std::max(1u, work.rows / 4 / (work.batchRows / 2));
  uint64_t memory = settings.memoryFor(work);
  uint64_t limit = settings.limitFor(work, rocksProgram);
  MemoryLimit limits[] = {{settings.controlGroup, limit},
                          {settings.controlGroup, limit}};
  PeerOptions level{settings.folder + "/level", memory,
                    limits[0].why().empty()};
  PeerOptions universal{settings.folder + "/universal", memory,
                        limits[1].why().empty()};
  Child rocksLevel(
      limits[0], [&] { return makeRocksMix(work, level, Compaction::Level); });
  Child rocksUniversal(limits[1], [&] {
    return makeRocksMix(work, universal, Compaction::Universal);
  });
  std::unique_ptr<Variant> store =
      makeStoreMix(work, settings.folder + "/store");

  std::vector<Contender> all;
  all.emplace_back("Terrace store", store.get());
  all.emplace_back("RocksDB, level", &rocksLevel);
  all.emplace_back("RocksDB, universal", &rocksUniversal);
  std::fprintf(stderr, "%u-byte rows, half of each batch written back\n",
               payload);
  for (Contender &c : all)
    c.prepare();
  alternate(all, settings.rounds, batches, Turns::Round);

  double bytes = static_cast<double>(work.rows) *
                 static_cast<double>(recordBytes(payload));
  std::printf("\n== reads and write-back, half of the rows dirty: rows of %u "
              "bytes; %u rows, %s of records in %.1f times the space; %u "
              "rounds of %u batches of %u rows\n",
              payload, work.rows, size(bytes).c_str(), spaceFactor,
              settings.rounds, batches, work.batchRows);
  std::printf("all rows were overwritten once before; durable each time half "
              "of the rows were written: a checkpoint of the store, a flush of "
              "RocksDB (no log)\n");
  std::printf("memory: RocksDB %s for rows%s\n",
              size(static_cast<double>(memory)).c_str(),
              limits[0].why().empty()
                  ? ", by a control group"
                  : (", NOT limited: " + limits[0].why()).c_str());
  for (const Contender &c : all)
    if (c.status.ok())
      std::printf("%s: %s\n", c.name.c_str(), c.note.c_str());

  Table table({"", "rows/s", "spread", "CPU us/row", "written / rows",
               "cleaned / rows", "store / this", "spread", "CPU store / this"});
  bool sane = true;
  for (const Contender &c : all) {
    sane &= !c.bad();
    if (!c.status.ok()) {
      table.add({c.name, (c.skipped() ? "skipped: " : "FAILED: ") +
                             c.status.message()});
      continue;
    }
    Spread rate = c.rate(), cpu = c.cpuPerRow();
    Spread faster = ratio(all[0], c, rateOf), dearer = ratio(all[0], c, cpuOf);
    double written = amplification(c, &Measured::writtenBytes, payload);
    // All that was written in a round is on the device when it ends.
    sane &= written == 0 || written > 0.9;
    table.add({c.name, figure(rate.median), range(rate), figure(cpu.median),
               written > 0 ? figure(written) : "not counted",
               &c == &all[0]
                   ? figure(amplification(c, &Measured::cleanedBytes, payload))
                   : "-",
               figure(faster.median), range(faster), figure(dearer.median)});
  }
  table.print();
  return sane;
}
