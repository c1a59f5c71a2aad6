//===- RowStoreImpl.h - Inside of the row store -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mutex guards everything that is not marked otherwise. It may be held
// while a request is submitted, never while one calls back into the executor.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_ROWSTOREIMPL_H
#define TERRACE_RUNTIME_STORE_ROWSTOREIMPL_H

#include "runtime/store/RowStore.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace trc {

/// Where the record of a row lies: a pure function of the row.
class RowLayout {
public:
  /// Rows that stay together when striped. A multiple of 256 rows of a pitch
  /// that is a multiple of 16 is whole 4 KiB pages, so files share no block.
  static constexpr uint32_t stripeRows = 256;

  struct Place {
    uint32_t extent;
    uint64_t offset; // in the file
  };

  RowLayout() = default;
  RowLayout(uint32_t storeBytes, std::vector<uint64_t> bases)
      : pitch(storeBytes), bases(std::move(bases)) {}

  Place operator()(uint32_t row) const {
    uint32_t n = static_cast<uint32_t>(bases.size());
    if (n == 1)
      return {0, bases[0] + uint64_t(row) * pitch};
    uint32_t unit = row / stripeRows;
    uint64_t local = uint64_t(unit / n) * stripeRows + row % stripeRows;
    return {unit % n, bases[unit % n] + local * pitch};
  }
  uint32_t storeBytes() const { return pitch; }

private:
  uint32_t pitch = 0;
  std::vector<uint64_t> bases;
};

/// A row of a batch and its position there.
struct BatchItem {
  uint32_t row, index;
};

/// Neighbouring items [first, last) that one transfer covers: whole blocks
/// [begin, end) of one file.
struct BatchRun {
  uint32_t first = 0, last = 0;
  uint32_t extent = 0;
  uint64_t begin = 0, end = 0;
};

class WriteOp;

struct RowStore::Impl {
  Device &device;
  RowStoreOptions options;
  RowLayout layout;
  std::vector<uint32_t> files; // ids, per extent
  std::vector<std::string> paths;
  uint32_t block = 0; // largest of the files
  uint32_t depth = 0; // of one batch

  mutable std::mutex mutex;
  std::condition_variable changed;
  Status failure; // sticky
  uint32_t activeReads = 0;

  // Which rows exist; a bit is set when a write is queued.
  std::unique_ptr<std::atomic<uint64_t>[]> bits;
  std::atomic<uint64_t> writtenRows{0};

  struct WriteBatch {
    std::vector<BatchItem> items; // by row
    const char *records = nullptr;
    uint32_t cursor = 0;    // items before it have a transfer
    uint32_t remaining = 0; // items that are not on the device
    bool pending = false;
  };
  /// The caller's ring slots, then two of load()'s.
  std::vector<WriteBatch> batches;
  std::deque<uint32_t> queue; // pending ones, oldest first
  std::vector<std::unique_ptr<WriteOp>> ops;
  std::vector<WriteOp *> idleOps;
  std::mutex loading; // one load() at a time

  struct {
    std::atomic<uint64_t> rowsRead{0}, rowsWritten{0}, reads{0}, writes{0},
        bytesRead{0}, bytesWritten{0}, blocksMerged{0}, readFromQueue{0};
  } counts;

  Impl(Device &device, const RowStoreOptions &options);
  ~Impl();

  uint64_t words() const { return (uint64_t(options.rows) + 63) / 64; }
  bool isWritten(uint32_t row) const {
    return bits[row / 64].load(std::memory_order_relaxed) >> (row % 64) & 1;
  }
  bool setWritten(uint32_t row) {
    uint64_t bit = uint64_t(1) << (row % 64);
    return !(bits[row / 64].fetch_or(bit, std::memory_order_relaxed) & bit);
  }

  uint32_t checksum(uint32_t row, const char *payload) const;
  bool verify(uint32_t row, const char *record) const;
  /// "cannot read row 7 of group 'g' at offset 560 of" + file.
  Status rowError(const char *what, uint32_t row, int error) const;
  Status corrupt(uint32_t row) const;

  /// The run that starts at items[first]; joins items whose blocks are at most
  /// `gap` bytes apart, as far as a buffer goes.
  BatchRun makeRun(const std::vector<BatchItem> &items, uint32_t first,
                   uint64_t gap) const;

  // Writes; all with the mutex held.
  bool takeWrite(WriteOp &op);
  void startWrites();
  void finishItems(uint32_t slot, uint32_t count);
  void fail(Status status);
  /// Copies rows that queued writes hold, and takes them off `items`.
  void readQueued(std::vector<BatchItem> &items, char *out, uint64_t pitch);
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_ROWSTOREIMPL_H
