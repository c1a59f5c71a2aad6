//===- StoreReads.cpp - Random rows through the store ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/StoreReads.h"

using namespace trc;
using namespace trc::bench;

static ReadBatch &fillBatch(ReadBatch &batch, const std::vector<uint32_t> &rows,
                            std::vector<char> &out, uint32_t payload) {
  out.resize(rows.size() * uint64_t(payload));
  batch.rows = rows.data();
  batch.count = static_cast<uint32_t>(rows.size());
  batch.out = out.data();
  batch.pitch = payload;
  return batch;
}

Status StoreReads::prepare(std::string &note) {
  TRC_RETURN_IF_ERROR(opened.open());
  FileInfo info = opened.io().fileInfo(0);
  note = opened.io().describe() + "; blocks of " +
         std::to_string(info.blockBytes) + " bytes, " +
         (info.direct ? "O_DIRECT" : "NOT direct: " + info.note);
  return {};
}

Status StoreReads::run(uint64_t number, Measured &sum) {
  std::vector<uint32_t> rows = work.batch(number);
  ReadBatch batch;
  fillBatch(batch, rows, out, work.payload);
  uint64_t before = opened.rows().counters().reads;
  Meter meter;
  TRC_RETURN_IF_ERROR(opened.rows().read(batch));
  meter.add(sum);
  sum.rows += rows.size();
  sum.deviceReads += opened.rows().counters().reads - before;
  for (size_t i = 0; i < rows.size(); ++i)
    sum.wrong += !work.matches(rows[i], 0, &out[i * work.payload]);
  return {};
}

std::vector<PlannedRead> StoreReads::plan(uint64_t number) {
  std::vector<uint32_t> rows = work.batch(number);
  ReadBatch batch;
  fillBatch(batch, rows, out, work.payload);
  opened.io().beginPlanning();
  // Fails, since zeros do not pass for rows; the requests are what we want.
  Status expected = opened.rows().read(batch);
  return opened.io().endPlanning();
}
