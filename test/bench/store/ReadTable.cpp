//===- ReadTable.cpp - Random rows, the store and its peers ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Child.h"
#include "test/bench/store/Peers.h"
#include "test/bench/store/Sections.h"
#include "test/bench/store/StoreReads.h"

#include <algorithm>
#include <cstdio>

using namespace trc;
using namespace trc::bench;

Workload Settings::workload(uint32_t payload, uint64_t span) const {
  Workload w;
  w.payload = payload;
  w.rows = static_cast<uint32_t>(
      std::min<uint64_t>(span / recordBytes(payload), UINT32_MAX / 2));
  w.batchRows = std::min(batchRows, w.rows / 4);
  return w;
}

uint64_t Settings::memoryFor(const Workload &workload) const {
  return memory ? memory
                : uint64_t(workload.rows) * recordBytes(workload.payload) / 8;
}

uint64_t Settings::limitFor(const Workload &workload, uint64_t program) const {
  uint64_t batch = uint64_t(workload.batchRows) * workload.payload;
  return memoryFor(workload) + program + 2 * batch;
}

bool trc::bench::readTable(const Settings &settings, uint32_t payload) {
  Workload work = settings.workload(payload, settings.span);
  uint64_t memory = settings.memoryFor(work);
  MemoryLimit rocksLimit(settings.controlGroup,
                         settings.limitFor(work, rocksProgram));
  MemoryLimit mmapLimit(settings.controlGroup,
                        settings.limitFor(work, mmapProgram));
  PeerOptions rocksOptions{settings.folder + "/rocks", memory,
                           rocksLimit.why().empty()};
  PeerOptions mmapOptions{settings.folder + "/mmap", memory,
                          mmapLimit.why().empty()};
  // Children first: they are forked, and the store has threads.
  Child rocks(rocksLimit, [&] { return makeRocksReads(work, rocksOptions); });
  Child mapped(mmapLimit, [&] { return makeMmap(work, mmapOptions); });
  StoreReads store(work, settings.folder + "/store");
  std::unique_ptr<Variant> bare = makeBareLoop(work, store);

  std::vector<Contender> all;
  all.emplace_back("Terrace store", &store);
  all.emplace_back("bare io_uring loop", bare.get());
  all.emplace_back("RocksDB MultiGet", &rocks);
  all.emplace_back("mmap", &mapped);
  std::fprintf(stderr, "%u-byte rows\n", payload);
  for (Contender &c : all)
    if (all[0].status.ok())
      c.prepare();
  alternate(all, settings.rounds, settings.batches, Turns::Batch);

  double span = static_cast<double>(work.rows) *
                static_cast<double>(recordBytes(payload));
  std::printf("\n== reads: rows of %u bytes; %u rows, %s of records; %u rounds "
              "of %u batches of %u rows\n",
              payload, work.rows, size(span).c_str(), settings.rounds,
              settings.batches, work.batchRows);
  std::printf("store: %s\n", all[0].note.c_str());
  if (all[0].status.ok())
    std::printf("memory: store %s (index, marks, I/O buffers; no cache); peers "
                "%s for rows%s\n",
                size(static_cast<double>(store.target().memoryBytes())).c_str(),
                size(static_cast<double>(memory)).c_str(),
                rocksLimit.why().empty()
                    ? ", by a control group"
                    : (", NOT limited: " + rocksLimit.why() +
                       "; mmap drops its pages before each batch instead")
                          .c_str());
  for (size_t i : {2, 3})
    if (all[i].status.ok())
      std::printf("%s: %s\n", all[i].name.c_str(), all[i].note.c_str());

  Table table({"", "rows/s", "spread", "CPU us/row", "reads/row",
               "store / this", "spread", "CPU store / this"});
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
    double reads = c.over([](const Measured &m) {
                      return static_cast<double>(m.deviceReads) /
                             static_cast<double>(m.rows);
                    }).median;
    uint64_t wrong = 0;
    for (const Measured &m : c.rounds)
      wrong += m.wrong;
    table.add({c.name + (wrong ? " (" + std::to_string(wrong) + " WRONG)" : ""),
               figure(rate.median), range(rate), figure(cpu.median),
               reads > 0 ? figure(reads) : "-", figure(faster.median),
               range(faster), figure(dearer.median)});
  }
  table.print();
  return sane;
}
