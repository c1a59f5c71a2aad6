//===- RowStore.h - The rows of one group on their home tier ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes the rows of a group by number. Where they lie is the
// store's business: this one gives every row a fixed place in one file, or
// round robin over several, until a log-structured store takes its place
// behind the same interface.
//
// Order: a read sees every write that was queued before it, also one that the
// device has not completed; two writes of a row take effect in the order in
// which they were queued. Neighbouring records share device blocks; the store
// sees to it that concurrent writes never clobber each other.
//
// Threads: every function may be called from any thread.
// Lifetime: a batch and the memory it names belong to the caller until wait()
// (reads) or waitWrites() (writes) returned. The device outlives the store;
// the destructor waits for everything in flight.
// Errors name file, offset, group and row. After a failed write or flush, all
// further reads, writes and flushes return that error: what was queued may be
// lost, so the caller gives the state up and opens the last checkpoint.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_ROWSTORE_H
#define TERRACE_RUNTIME_STORE_ROWSTORE_H

#include "runtime/io/Device.h"
#include "runtime/store/RecordFormat.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trc {

struct RowStoreOptions {
  /// Where a part of the rows lies: a file or a raw block device; several
  /// groups may share one at different base offsets (multiples of 4096).
  struct Extent {
    std::string path;
    uint64_t base = 0;
  };
  std::string group; // for messages
  std::vector<Extent> extents;
  uint32_t rows = 0;
  uint32_t payloadBytes = 0; // weights + state = slot_bytes
  uint32_t storeBytes = 0;   // recordBytes(payloadBytes)
  uint32_t writeSlots = 1;   // depth of the write-buffer ring
  uint32_t maxWrites = 0;    // records in one batch of writes, at most
  uint32_t depth = 64;       // transfers of one batch in flight, at most
  /// Part of every CRC: records of another state at the same place fail.
  uint64_t key = 0;
};

/// A batch of reads; reusable, also for another store.
class ReadBatch {
public:
  ReadBatch();
  ~ReadBatch();
  ReadBatch(const ReadBatch &) = delete;
  ReadBatch &operator=(const ReadBatch &) = delete;

  /// Rows to read, each written before, in any order, no duplicates. The
  /// payload of rows[i] is verified and goes to out + i * pitch.
  const uint32_t *rows = nullptr;
  uint32_t count = 0;
  char *out = nullptr;
  uint64_t pitch = 0; // at least payloadBytes; no alignment is needed
  /// Called once when all is done, on a device thread or inside start(), just
  /// before wait() lets go; must be quick and must not touch the batch (tell
  /// another thread to call wait()). May be empty.
  std::function<void()> onDone;

  struct State; // internal

private:
  friend class RowStore;
  std::unique_ptr<State> state;
};

class RowStore {
public:
  /// Opens the store, empty; loadIndex() takes over what is on the device.
  static Result<std::unique_ptr<RowStore>> open(Device &device,
                                                const RowStoreOptions &options);
  ~RowStore();

  /// Bytes of the device that `rows` take (per extent when striped over n).
  static uint64_t extentBytes(uint64_t rows, uint64_t storeBytes,
                              uint64_t extents = 1);
  /// Memory that a store holds, without the device's buffers.
  static uint64_t memoryBytes(uint64_t rows, uint64_t writeSlots,
                              uint64_t maxWrites, uint64_t depth);

  //--- Reads ----------------------------------------------------------------
  /// Starts the batch and returns at once. A row that was never written is an
  /// error of the batch.
  void start(ReadBatch &batch);
  /// Blocks until all is done; the first failure by row order.
  Status wait(ReadBatch &batch);
  bool done(const ReadBatch &batch) const;
  Status read(ReadBatch &batch) {
    start(batch);
    return wait(batch);
  }

  //--- Writes ---------------------------------------------------------------
  /// Puts the header before a payload that already lies at
  /// record + recordHeaderBytes, and zeroes the padding after it. `record` has
  /// storeBytes() bytes. Pure: call it in spill, in parallel if you like.
  void seal(uint32_t row, char *record) const;

  /// Queues `count` sealed records, storeBytes() apart, as the content of ring
  /// slot `slot` (no duplicates among rows). Returns when they are queued; the
  /// records must stay untouched until waitWrites(slot).
  Status write(uint32_t slot, const uint32_t *rows, uint32_t count,
               const char *records);
  /// Blocks until the device has completed the writes of that ring slot;
  /// returns at once where there are none. Never takes a slot's failure away.
  Status waitWrites(uint32_t slot);
  bool writesDone(uint32_t slot) const;

  /// Waits for all writes, then makes them durable (fdatasync).
  Status flush();

  //--- Which rows exist -----------------------------------------------------
  bool written(uint32_t row) const;
  /// The first written row at or after `row`; rows() where there is none.
  uint32_t nextWritten(uint32_t row) const;
  uint64_t writtenCount() const;
  /// Forgets all rows. Nothing may be in flight.
  void clear();

  /// Writes the list of written rows to a file of its own (temporary file,
  /// fdatasync, rename), and takes it back at the next open. loadIndex fails
  /// with TRC_NOT_FOUND where there is none, TRC_MISMATCH where it belongs to
  /// another geometry or key, TRC_CORRUPT where it is damaged. Call flush()
  /// before, remove the file before the first write of the next run. The list
  /// of another moment fails, too: it was saved with another seal.
  Status saveIndex(const std::string &path, uint32_t seal = 0) const;
  Status loadIndex(const std::string &path, uint32_t seal = 0);

  //--- Streaming (checkpoints, export) --------------------------------------
  /// Calls `take(row, payload)` for every written row in [begin, end) in rising
  /// order, reading in large pieces; stops at the first failure of either.
  Status
  scan(uint32_t begin, uint32_t end,
       const std::function<Status(uint32_t row, const char *payload)> &take);
  /// Writes `count` rows (rising, payloads payloadBytes() apart) and returns
  /// when the device has completed them. Uses memory of its own; for loading.
  Status load(const uint32_t *rows, uint32_t count, const char *payloads);

  uint32_t rows() const;
  uint32_t payloadBytes() const;
  uint32_t storeBytes() const;

  /// Totals since open; from any thread.
  struct Counters {
    uint64_t rowsRead = 0, rowsWritten = 0;
    uint64_t reads = 0, writes = 0; // transfers
    uint64_t bytesRead = 0, bytesWritten = 0;
    uint64_t blocksMerged = 0;  // transfers that read before they wrote
    uint64_t readFromQueue = 0; // rows taken from a write still in flight
  };
  Counters counters() const;

  struct Impl; // internal

private:
  explicit RowStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_ROWSTORE_H
