//===- Mix.cpp - Reads and write-back, half of the rows dirty -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/bench/store/Mix.h"
#include "test/bench/store/OpenStore.h"

using namespace trc;
using namespace trc::bench;

void MixVariant::change(std::vector<uint32_t> &rows) {
  rows.resize(rows.size() / 2);
  contents.resize(rows.size() * work.payload);
  for (size_t i = 0; i < rows.size(); ++i)
    work.fill(rows[i], ++versions[rows[i]], &contents[i * work.payload]);
}

Status MixVariant::write(const std::vector<uint32_t> &rows) {
  TRC_RETURN_IF_ERROR(writeBack(rows, contents.data()));
  sinceCheckpoint += rows.size();
  if (sinceCheckpoint < work.rows / 2)
    return {};
  sinceCheckpoint = 0;
  return checkpoint();
}

Status MixVariant::age() {
  constexpr uint64_t firstBatch = uint64_t(1) << 41;
  uint64_t number = firstBatch;
  for (uint64_t written = 0; written < work.rows;) {
    std::vector<uint32_t> rows = work.batch(number++);
    change(rows);
    TRC_RETURN_IF_ERROR(write(rows));
    written += rows.size();
  }
  TRC_RETURN_IF_ERROR(settle());
  writtenBefore = writtenBytes();
  cleanedBefore = cleanedBytes();
  return {};
}

Status MixVariant::run(uint64_t number, Measured &sum) {
  Meter meter;
  meter.pause();
  std::vector<uint32_t> rows = work.batch(number);
  out.resize(rows.size() * work.payload);
  meter.resume();
  TRC_RETURN_IF_ERROR(read(rows, out.data()));
  meter.pause(); // the trainer's part: check, and make new contents
  sum.rows += rows.size();
  for (size_t i = 0; i < rows.size(); ++i)
    sum.wrong +=
        !work.matches(rows[i], versions[rows[i]], &out[i * work.payload]);
  change(rows);
  meter.resume();
  TRC_RETURN_IF_ERROR(write(rows));
  meter.add(sum);
  sum.dirty += rows.size();
  return {};
}

Status MixVariant::endRound(Measured &sum) {
  Meter meter;
  TRC_RETURN_IF_ERROR(settle());
  meter.add(sum);
  // From end to end, for work in the background goes on between batches.
  uint64_t written = writtenBytes(), cleaned = cleanedBytes();
  sum.writtenBytes += written - writtenBefore;
  sum.cleanedBytes += cleaned - cleanedBefore;
  writtenBefore = written;
  cleanedBefore = cleaned;
  return {};
}

namespace {

class StoreMix final : public MixVariant {
public:
  StoreMix(const Workload &workload, const std::string &folder)
      : MixVariant(workload), opened(workload, folder) {}

  Status prepare(std::string &note) override {
    TRC_RETURN_IF_ERROR(opened.open());
    // Records lie in the ring until they are written, as training's do.
    records.resize(uint64_t(writeSlots) * slotBytes());
    rowsOf.resize(writeSlots);
    TRC_RETURN_IF_ERROR(age());
    note = opened.io().describe();
    return {};
  }

protected:
  Status read(const std::vector<uint32_t> &rows, char *out) override {
    ReadBatch batch;
    batch.rows = rows.data();
    batch.count = static_cast<uint32_t>(rows.size());
    batch.out = out;
    batch.pitch = work.payload;
    return opened.rows().read(batch);
  }

  Status writeBack(const std::vector<uint32_t> &rows,
                   const char *contents) override {
    uint32_t slot = next++ % writeSlots;
    TRC_RETURN_IF_ERROR(opened.rows().waitWrites(slot));
    char *base = &records[slot * slotBytes()];
    rowsOf[slot] = rows;
    for (size_t i = 0; i < rows.size(); ++i) {
      char *record = base + i * opened.storeBytes();
      std::memcpy(record + recordHeaderBytes, contents + i * work.payload,
                  work.payload);
      opened.rows().seal(rows[i], record);
    }
    return opened.rows().write(slot, rowsOf[slot].data(),
                               static_cast<uint32_t>(rows.size()), base);
  }

  Status checkpoint() override {
    RowStore &store = opened.rows();
    RowStore::Image image;
    image.id = ++lastId;
    TRC_RETURN_IF_ERROR(store.beginCut(image.id));
    TRC_RETURN_IF_ERROR(store.finishCut(image));
    store.keepCut();
    return image.id > 1 ? store.forget(image.id - 1) : Status();
  }

  Status settle() override {
    for (uint32_t i = 0; i < writeSlots; ++i)
      TRC_RETURN_IF_ERROR(opened.rows().waitWrites(i));
    TRC_RETURN_IF_ERROR(opened.rows().flush());
    opened.settle();
    return {};
  }

  uint64_t cleanedBytes() override {
    return opened.rows().counters().bytesCleaned;
  }

private:
  uint64_t slotBytes() const {
    return uint64_t(work.batchRows) * opened.storeBytes();
  }

  OpenStore opened;
  std::vector<char> records;
  std::vector<std::vector<uint32_t>> rowsOf;
  uint32_t next = 0;
  uint64_t lastId = 0;
};

} // namespace

std::unique_ptr<Variant> trc::bench::makeStoreMix(const Workload &workload,
                                                  const std::string &folder) {
  return std::make_unique<StoreMix>(workload, folder);
}
