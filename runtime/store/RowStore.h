//===- RowStore.h - The rows of one group on their home tier ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes the rows of a group by number. Records are appended to
// segments (a log), so a row moves with every write, and what a checkpoint
// names stays where it is until the checkpoint is forgotten.
//
// Order: a read sees every write that was queued before it, also one that the
// device has not completed; two writes of a row take effect in the order in
// which they were queued. An append never shares a sector with durable data.
//
// Checkpoints. A cut is one moment of the rows: what is written at beginCut(),
// plus the rows named `pending` there, whose value at the cut is the next one
// that is written (the caller sees to it that it is). finishCut() makes the cut
// durable but for its root: segments, then an index file. The caller makes its
// root durable, then says keepCut(); from then on the cut is retained, its
// records survive cleaning, until forget(). Recovery reads roots and index
// files, never segments: adopt() each retained image.
//
// Where the device is mapped, a row that a read has verified is read in place
// from then on, inside start(): no transfer, no check, until it is written
// again (MappedRows.h says what that means for damage).
//
// Cleaning runs on a thread of the store when free segments get few: live
// records (of the current rows, of a retained or of the pending cut) are copied
// on; moves of retained records are made durable in a file of their own before
// the old segment is used again.
//
// Threads: every function may be called from any thread.
// Lifetime: a batch and the memory it names belong to the caller until wait()
// (reads) or waitWrites() (writes) returned. The device outlives the store;
// the destructor waits for everything in flight.
// Errors name file, offset and row, by group or as the options say. After a
// failed write or flush, all further reads, writes and flushes return that
// error: what was queued may be lost, so the caller gives the state up and
// opens the last checkpoint.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_ROWSTORE_H
#define TERRACE_RUNTIME_STORE_ROWSTORE_H

#include "runtime/io/Device.h"
#include "runtime/store/RecordFormat.h"
#include "runtime/store/StoreGeometry.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trc {

struct RowStoreOptions {
  /// Where a part of the segments lies: a file or a raw block device; several
  /// groups may share one at different base offsets (multiples of 4096). Each
  /// has geometry.extentBytes() there.
  struct Extent {
    std::string path;
    uint64_t base = 0;
  };
  std::string group; // for messages
  /// What messages call a row, e.g. "row 3 of table 't'"; empty: by number and
  /// group.
  std::function<std::string(uint32_t row)> rowName;
  std::vector<Extent> extents;
  uint32_t rows = 0;
  uint32_t payloadBytes = 0; // weights + state = slot_bytes
  uint32_t storeBytes = 0;   // recordBytes(payloadBytes)
  uint32_t writeSlots = 1;   // depth of the write-buffer ring
  uint32_t maxWrites = 0;    // records in one batch of writes, at most
  uint32_t depth = 64;       // transfers of one batch in flight, at most
  StoreGeometry geometry;
  /// Checkpoints retained at once for which memory is declared; each further
  /// one takes storeMarkBytes() more.
  uint32_t retained = 1;
  /// Files of moves of similar size that become one (memory: 60 KiB each).
  uint32_t mergeMoves = 16;
  /// Rows are written by cuts alone, as pending ones (and by load() before the
  /// first cut): then a cut remembers them in marks, not in a list.
  bool onlyCuts = false;
  /// Of the state: part of every CRC and of the superblocks, so that files and
  /// records of another state fail.
  uint64_t key = 0;
  /// Writes superblocks; otherwise they must be there and fit. A superblock of
  /// another state is never written over (TRC_MISMATCH says whose it is).
  bool create = false;
  /// With `create`: the keys of states that were given up, whose superblocks
  /// may be written over, too.
  std::vector<uint64_t> replaces;
  /// Who may have claimed these files last (claim()), as the folder of the
  /// state knows it: where it was somebody else, another folder's state goes on
  /// in them (TRC_MISMATCH). Nothing: nobody knows, and anybody may have.
  std::optional<std::vector<uint64_t>> holders;
  /// With `create`: who claims them from the start; 0: nobody.
  uint64_t holder = 0;
  /// Nothing is written, by nobody: appends, cuts and cleaning are refused.
  bool readOnly = false;
  /// Where index files and moves lie; their names begin with `prefix`.
  std::string folder, prefix;
  /// Asked when nothing is left to clean: make room (forget a checkpoint) and
  /// return OK, or say why not. Called without locks on the writing thread;
  /// must not begin a cut, which waits for this write.
  /// Empty: TRC_FULL.
  std::function<Status()> onFull;
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
  /// Runs `part` over all of [0, count), on several threads if it likes; done
  /// when it returns. For rows that are read in place, which start() copies.
  /// Empty: on the thread that calls start().
  using Part = std::function<void(uint32_t begin, uint32_t end)>;
  std::function<void(uint32_t count, const Part &part)> spread;

  struct State; // internal

private:
  friend class RowStore;
  std::unique_ptr<State> state;
};

class RowStore {
public:
  /// Opens the store, empty; adopt() takes over what is on the device.
  static Result<std::unique_ptr<RowStore>> open(Device &device,
                                                const RowStoreOptions &options);
  ~RowStore();

  /// Who had claimed the files when they were opened; empty: nobody.
  const std::vector<uint64_t> &holders() const;
  /// Makes `holder` the one that goes on in these files, durably; before
  /// anything is written. The caller's folder knows the name durably before, so
  /// that a power loss at any instant leaves one that it knows. Copies of the
  /// folder from before do not: they are turned away from now on.
  Status claim(uint64_t holder);

  /// Memory that this store holds, without the device's buffers
  /// (rowStoreMemory).
  uint64_t memoryBytes() const;

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
  /// storeBytes() bytes. The generation of the segment is mixed in when it is
  /// appended, not here. Pure: call it in spill, in parallel if you like.
  void seal(uint32_t row, char *record) const;

  /// Queues `count` sealed records, storeBytes() apart, as the content of ring
  /// slot `slot` (no duplicates among rows). Returns when they are queued,
  /// which takes a while where cleaning has to make room first; the records
  /// must stay untouched until waitWrites(slot). After TRC_FULL the first ones
  /// may have been written; to queue all of them again does no harm.
  Status write(uint32_t slot, const uint32_t *rows, uint32_t count,
               const char *records);
  /// Blocks until the device has completed the writes of that ring slot;
  /// returns at once where there are none. Never takes a slot's failure away.
  Status waitWrites(uint32_t slot);
  bool writesDone(uint32_t slot) const;

  /// Waits for all writes, then makes them durable (fdatasync).
  Status flush();

  /// What ended the store: a write or a flush that failed. OK until then.
  Status failure() const;

  //--- Which rows exist -----------------------------------------------------
  bool written(uint32_t row) const;
  /// The first written row at or after `row`; rows() where there is none.
  uint32_t nextWritten(uint32_t row) const;
  uint64_t writtenCount() const;
  /// Forgets all rows. Nothing may be in flight.
  void clear();

  //--- Checkpoints ----------------------------------------------------------
  /// An index on disk: files in `folder`, base first, then deltas.
  struct Image {
    uint64_t id = 0; // rises from checkpoint to checkpoint
    std::vector<std::string> files;
  };
  /// Starts a cut: one at a time, and at most `retained` + 1 checkpoints with
  /// it, TRC_OUT_OF_ORDER otherwise. No I/O: copies a mark per record place. A
  /// write() lies wholly before or after the cut, so this waits for those that
  /// are being queued; they go on while the cut is made.
  Status beginCut(uint64_t id, const uint32_t *pending = nullptr,
                  uint64_t count = 0);
  /// The same for a store of onlyCuts: the pending rows as one bit each.
  Status beginCutOf(uint64_t id, const uint64_t *marks);
  /// Pending rows whose value at the cut has not been written yet.
  uint64_t cutPending() const;
  /// Waits for the pending rows and the writes up to the cut, makes them
  /// durable, then writes the index file (a delta, or a base when the deltas
  /// exceed half of it), durable as well. TRC_CANCELLED after a dropCut() on
  /// another thread; after any failure the cut is there until dropCut().
  Status finishCut(Image &image);
  /// The root that names the image is durable.
  void keepCut();
  /// Pending rows will not come any more: finishCut() fails, now or later. A
  /// cut that is finished stays. From any thread.
  void interruptCut();
  /// The cut was given up: what it holds is free again. The next one writes a
  /// base.
  void dropCut();
  /// A retained checkpoint has lost its root: its records are free, files that
  /// no other image names are removed.
  Status forget(uint64_t id);
  /// At open, before anything else, rising ids: retains the image of a
  /// checkpoint; with `current` the rows go on from it. TRC_CORRUPT,
  /// TRC_MISMATCH or TRC_NOT_FOUND with file and place where it cannot be; the
  /// store is as before then. Records are checked when they are read.
  Status adopt(const Image &image, bool current);
  /// After the last adopt(): removes index and move files that nothing names.
  /// From here on, or from the first write or cut, segments are cleaned.
  Status removeLeftovers();

  //--- Streaming (checkpoints, export) --------------------------------------
  /// Calls `take(row, payload)` for every written row, in the order in which
  /// they lie, reading in large pieces; stops at the first failure of either.
  /// The rows are those of the moment of the call. `take` must not write to
  /// this store. With `want`, only rows that it says yes to; it is asked in
  /// rising order, under a lock: it must be quick and not call the store.
  Status
  scan(const std::function<Status(uint32_t row, const char *payload)> &take,
       const std::function<bool(uint32_t row)> &want = {});
  /// Writes `count` rows (no duplicates, payloads payloadBytes() apart) and
  /// returns when the device has completed them. Uses memory of its own; for
  /// loading.
  Status load(const uint32_t *rows, uint32_t count, const char *payloads);

  /// Queues `count` rows, at most appendRows(), from payloads `pitch` apart,
  /// which are copied: returns without waiting for the device, as long as that
  /// keeps up. Order as for write(); flush() waits for them. One thread at a
  /// time.
  Status append(const uint32_t *rows, uint32_t count,
                const char *const *payloads);
  uint32_t appendRows() const;

  uint32_t rows() const;
  uint32_t payloadBytes() const;
  uint32_t storeBytes() const;

  /// Totals since open; from any thread.
  struct Counters {
    uint64_t rowsRead = 0, rowsWritten = 0;
    uint64_t reads = 0, writes = 0; // transfers
    uint64_t bytesRead = 0, bytesWritten = 0;
    uint64_t bytesCleaned = 0; // of bytesWritten: copied by cleaning
    uint64_t segmentsCleaned = 0;
    uint64_t bytesIndex = 0;    // index and move files
    uint64_t stallNs = 0;       // writers waited for a free segment
    uint64_t readFromQueue = 0; // rows taken from a write still in flight
    uint64_t readInPlace = 0;   // rows copied from the device's mapping
  };
  Counters counters() const;

  struct Space {
    uint64_t capacity = 0; // of all segments
    uint64_t current = 0;  // bytes of records that hold a current row
    uint64_t retained = 0; // of records that only checkpoints name
    uint32_t freeSegments = 0, segments = 0;
  };
  Space space() const;

  struct Impl; // internal

private:
  explicit RowStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_ROWSTORE_H
