//===- RowStoreImpl.h - Inside of the row store -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mutex guards everything that is not marked otherwise. It may be held
// while a request is submitted, never across I/O or callbacks. Orders of locks:
// durable, capture, mutex.
//
// A place is live while the location of a row, the pending cut, a retained
// checkpoint or a scan names it; a segment whose live places are gone is free
// when the reads that may have looked it up before are through.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_ROWSTOREIMPL_H
#define TERRACE_RUNTIME_STORE_ROWSTOREIMPL_H

#include "runtime/core/HugeArray.h"
#include "runtime/store/IndexFile.h"
#include "runtime/store/MappedRows.h"
#include "runtime/store/RowStore.h"
#include "runtime/store/StoreLayout.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace trc {

/// A record of a batch and its position there.
struct BatchItem {
  uint32_t place, index;
  uint32_t row; // unknownRow: the header says
};
constexpr uint32_t unknownRow = UINT32_MAX;

/// Neighbouring items [first, last) that one transfer covers: whole blocks
/// [begin, end) of one file.
struct BatchRun {
  uint32_t first = 0, last = 0;
  uint32_t extent = 0;
  uint64_t begin = 0, end = 0;
};

/// Records at places in a row that lie in memory.
struct Piece {
  uint32_t place = 0, count = 0;
  const char *records = nullptr;
  bool mixed = false; // as they are to lie on the device
};

/// The records that one ring slot holds.
struct WriteBatch {
  uint32_t runs = 0;      // not completed
  bool appending = false; // write() is not through
  bool pending() const { return appending || runs > 0; }
};

/// Whole sectors [begin, end) of a segment that are being written, and the
/// records in them: those that waited in a tail, then a batch's.
struct WriteRun {
  uint64_t ticket = 0; // rises
  uint32_t segment = 0;
  uint32_t begin = 0, end = 0, cursor = 0; // bytes before cursor are taken
  uint32_t left = 0;                       // bytes that are not on the device
  Piece pieces[2];
  std::vector<char> head; // of the first piece
  WriteBatch *batch = nullptr;
};

struct Segment {
  enum class State : uint8_t { Free, Open, Full, Retired };
  uint32_t generation = 0;
  uint32_t live = 0;    // places
  uint32_t pending = 0; // bytes that are being written
  State state = State::Free;
  bool held = false; // by cleaning: not retired even without live places
};

/// A place in the log where records are appended.
struct Stream {
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t segment = none;
  uint32_t next = 0;   // index of the next record
  uint32_t issued = 0; // bytes of the segment before it are in runs
  /// Records of the last sector, which is not full: on the device in part at
  /// most.
  std::vector<char> tail;
  uint32_t tailPlace = 0, tailCount = 0;
};

/// Files of an index, base first.
struct IndexChain {
  std::vector<std::string> files;
  uint64_t baseId = 0, lastId = 0;
  uint64_t baseBytes = 0, deltaBytes = 0;
};

struct Checkpoint {
  uint64_t id = 0;
  std::vector<std::string> files;
  PlaceMarks marks;
  bool leaving = false; // being forgotten
};

/// The cut that is being made.
struct Cut {
  bool active = false, finishing = false, finished = false, dropped = false;
  Status failure; // of its index file
  uint64_t id = 0;
  PlaceMarks marks;              // places with a value at the cut
  RowMarks pendingMarks;         // rows that have none yet
  std::vector<uint32_t> pending; // rows, sorted
  std::vector<uint32_t> pendingPlaces;
  uint64_t unresolved = 0;
  // Capturing the locations, by row: rows before the cursor are in the file.
  bool base = false;
  IndexHeader header{};
  RowMarks changed; // delta: the rows to capture
  uint64_t cursor = 0, pendingCursor = 0;
  /// Not captured: the place at the cut of rows written since. Captured: the
  /// place to which a record has moved since.
  std::unordered_map<uint32_t, uint32_t> special;
  std::unique_ptr<IndexWriter> writer; // guarded by `capture`
};

struct Move {
  uint32_t row, from, fromGeneration, to, toGeneration;
};
struct MovesFile {
  uint64_t number, lastId, bytes;
};

/// Cleaning whose moves could not be written. The records are copied, but their
/// old places, which checkpoints on disk name, cannot be used again before it
/// is said where the copies are.
struct PutOff {
  Status why; // OK: there is none
  std::vector<Move> moved;
  std::vector<uint32_t> victims;
  std::chrono::steady_clock::time_point tryAt;
};

class WriteOp;

struct RowStore::Impl {
  Device &device;
  RowStoreOptions options;
  StoreLayout layout;
  std::vector<uint32_t> files; // ids, per extent
  std::vector<std::string> paths;
  std::vector<uint64_t> holders; // of the files when they were opened
  uint32_t block = 0;            // largest of the files
  uint32_t depth = 0;            // of one batch
  uint32_t pad = 0; // places that closing a tail may waste, at most

  mutable std::mutex mutex;
  std::condition_variable changed;
  Status failure; // sticky

  // Rows. Locations are place + 1, 0: never written; written with the mutex
  // held, released, read from anywhere. Above placeBits: see MappedRows.
  HugeArray<std::atomic<uint32_t>> location;
  uint32_t placeBits = UINT32_MAX;
  std::atomic<uint64_t> writtenRows{0};
  RowMarks changedRows; // since the last cut
  uint64_t changedCount = 0;

  // Places.
  std::vector<Segment> segments;
  uint32_t freeSegments = 0, nextFree = 0;
  uint32_t generation = 0; // the last one given
  PlaceMarks current;
  std::list<Checkpoint> retained; // by id
  std::vector<PlaceMarks> spare;  // to use again, all clear
  Cut cut;
  PlaceMarks *scanMarks = nullptr;
  MappedRows mapped; // no lock; a read that holds an epoch may use addresses

  // Reads under way, by the epoch in which they began; segments retired before
  // the last change of epochs wait for the older ones.
  uint32_t epoch = 0;
  uint32_t epochReads[2] = {0, 0};
  std::vector<uint32_t> retiredNow, retiredBefore;

  // Writes.
  std::vector<WriteBatch> batches; // the caller's slots, then two of load()'s
  uint32_t appending = 0;          // write() calls that are not through
  bool cutWaits = false;           // for them; new ones wait for the cut
  Stream user, cleaner;
  std::list<WriteRun> runs; // oldest first
  uint64_t nextTicket = 1;
  std::vector<std::unique_ptr<WriteOp>> ops;
  std::vector<WriteOp *> idleOps;
  std::mutex loading, scanning; // one load() and one scan() at a time
  std::vector<char> appends[storeAppends]; // records under way
  uint32_t nextAppend = 0;

  // Checkpoints.
  std::mutex durable; // finishCut's and cleaning's durable steps
  std::mutex capture; // one part of a cut's index at a time
  IndexChain chain;   // of the last kept checkpoint; empty: next is a base
  IndexChain nextChain;
  uint64_t lastId = 0;
  std::vector<MovesFile> moves;
  uint64_t nextMoves = 1;
  bool movesListed = false;

  // Cleaning.
  std::thread thread;
  std::condition_variable work;
  bool stop = false;
  bool started = false; // all is adopted: rows are written, segments cleaned
  PutOff putOff;        // changed by the thread alone
  uint32_t waiters = 0;
  uint64_t asked = 0, answered = 0; // answered: nothing to gain since then
  uint64_t forgotten = 0;           // times that a checkpoint gave room

  struct {
    std::atomic<uint64_t> rowsRead{0}, rowsWritten{0}, reads{0}, writes{0},
        bytesRead{0}, bytesWritten{0}, bytesCleaned{0}, segmentsCleaned{0},
        bytesIndex{0}, stallNs{0}, readFromQueue{0}, readInPlace{0};
  } counts;

  Impl(Device &device, const RowStoreOptions &options);
  ~Impl();

  uint32_t locate(uint32_t row) const {
    return location[row].load(std::memory_order_relaxed) & placeBits;
  }
  std::string name() const { return "store of group '" + options.group + "'"; }
  Status internal(const std::string &what) const {
    return Status(TRC_INTERNAL, name() + ": " + what);
  }
  /// Refuses on a store that is opened to be read only.
  Status writable(const char *what) const;

  // Records (no lock).
  uint32_t checksum(uint32_t row, const char *payload) const;
  /// Turns the check of a sealed record into that of one at `place`, or back.
  void mix(uint32_t place, char *record) const;
  /// `row` may be unknownRow.
  bool verify(uint32_t row, uint32_t place, const char *record) const;
  /// "row 7 of group 'g'", or what the options call it.
  std::string rowName(uint32_t row) const;
  /// "cannot read row 7 of group 'g' at offset 560 of" + file.
  Status placeError(const char *what, uint32_t row, uint32_t place,
                    int error) const;
  Status corrupt(uint32_t row, uint32_t place) const;

  // Reads.
  /// The run that starts at items[first]; joins items whose blocks are at most
  /// `gap` bytes apart, as far as a buffer goes.
  BatchRun makeRun(const std::vector<BatchItem> &items, uint32_t first,
                   uint64_t gap) const;
  /// `raw`: batch.rows are places, and whole records are wanted as seal() made
  /// them.
  void startItems(ReadBatch &batch, bool raw);
  Status waitBatch(ReadBatch &batch);
  void readInPlace(const ReadBatch &batch, std::vector<BatchItem> &others);
  /// The record at a place, if it lies in memory.
  const char *inMemory(uint32_t place, bool &mixed) const;

  // Writes; all with the mutex held.
  uint32_t roomFor(const Stream &stream, uint32_t reserve) const;
  void openSegment(Stream &stream);
  /// Appends as many as the open segment takes; gives the first place.
  uint32_t append(Stream &stream, WriteBatch *batch, const char *records,
                  uint32_t count, uint32_t &first);
  void keepTail(Stream &stream, uint32_t from, const char *records,
                uint32_t count);
  /// Writes what is left in the tail; the next record begins in a fresh sector.
  void closeTail(Stream &stream);
  void addRun(WriteRun run);
  bool takeWrite(WriteOp &op);
  void startWrites();
  void finishBytes(WriteRun &run, uint32_t bytes);
  void fail(Status status);
  /// The record of a row lies at a new place.
  void assign(uint32_t row, uint32_t place);
  Status waitRoom(std::unique_lock<std::mutex> &lock);
  Status fullStatus() const;
  /// Waits for all runs up to now, the tails' too, then fdatasync (without the
  /// mutex).
  Status flushAll(std::unique_lock<std::mutex> &lock, bool withUser);

  // Places; with the mutex held.
  bool namedApart(uint32_t place) const; // by anything but a location
  void dropLive(uint32_t segment);
  void mayRetire(uint32_t segment);
  void advanceEpoch();
  /// 64 places of a segment: which anything but `except` names.
  uint64_t liveWord(uint32_t segment, uint32_t word,
                    const PlaceMarks *except) const;
  uint32_t countLive(uint32_t segment) const;
  /// Clears marks, which must be among those that count, and drops the places
  /// that nothing else names. Lets the mutex go between segments.
  void returnMarks(PlaceMarks marks);
  void releaseSegment(PlaceMarks &marks, uint32_t segment);
  void release(PlaceMarks &marks, std::unique_lock<std::mutex> &lock);

  // Cuts.
  Status startCut(uint64_t id, std::vector<uint32_t> rows,
                  const uint64_t *marks);
  IndexHeader indexHeader(IndexKind kind, uint64_t id) const;
  /// Captures some more rows; false when all are in. Takes `capture`.
  Result<bool> captureStep();
  Status writeIndex();
  void resolvePending(uint32_t row, uint32_t place);
  void endCut();
  void moveCut(uint32_t row, uint32_t from, uint32_t to, bool isCurrent);
  /// Files that no image names any more; with the mutex held.
  std::vector<std::string> unusedFiles(const std::vector<std::string> &of);
  void dropMoves(std::vector<std::string> &names);

  // Images (at open).
  Status listMoves();
  Status badImage(const Image &image, const std::string &what) const;
  /// Fills in the marks and, if current, the locations; `lives` are the
  /// generations + 1 that segments must have, where that is known.
  Status loadImage(const Image &image, bool isCurrent, Checkpoint &into,
                   IndexChain &from, std::vector<uint64_t> &lives);

  // Cleaning.
  void clean();
  uint32_t lowWater() const;
  uint32_t leastGain() const;
  uint32_t pickVictim(uint32_t most) const;
  uint32_t nextVictim(uint64_t copied) const;
  bool mayGainLater() const;
  Status cleanGroup(std::unique_lock<std::mutex> &lock);
  Status copyGroup(std::unique_lock<std::mutex> &lock,
                   std::vector<uint32_t> &victims, std::vector<Move> &moved);
  void freeVictims(const std::vector<uint32_t> &victims);
  void retryMoves(std::unique_lock<std::mutex> &lock, bool awaited);
  Status cleanSegment(std::unique_lock<std::mutex> &lock, uint32_t segment,
                      std::vector<Move> &moved, bool &noted);
  Status commitMoves(std::unique_lock<std::mutex> &lock,
                     std::vector<Move> &moved);
  Status moveRecord(uint32_t row, uint32_t from, uint32_t to,
                    std::vector<Move> &moved);
  Status writeMoves(std::vector<Move> &moved, uint64_t last);
  Status mergeMoves();
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_ROWSTOREIMPL_H
