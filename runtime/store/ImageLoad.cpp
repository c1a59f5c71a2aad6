//===- ImageLoad.cpp - Reading what a checkpoint names --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads an image: base, deltas, and the moves that cleaning made since, merged
// in slices of rows, so that memory stays small. A move applies where the row
// lies at its old place in the same life (generation) of that segment, so it
// never matters whether a move was made before or after the image.
//
// Some threads share the work: one at a time reads and merges the next slice,
// while the others note where the rows of theirs lie.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Files.h"
#include "runtime/store/MarkBuckets.h"
#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <new>
#include <system_error>

using namespace trc;

namespace {

/// A slice stays in the CPU's cache.
constexpr uint64_t sliceRows = 1 << 16;
/// More threads would wait for the one that reads. Each is to have some slices.
constexpr uint64_t mostThreads = 3, threadRows = 4 * sliceRows;
/// Marks that all threads gather, 4 bytes each.
constexpr uint64_t gatheredMarks = 2 << 20;

using Cursor = IndexReader::Cursor;

/// Where the rows of a slice lie.
struct Slice {
  uint64_t begin = 0, end = 0;
  std::vector<uint32_t> places; // + 1
  std::vector<uint64_t> lives;  // generation + 1, 0: not known
};

/// A section whose entries begin with a row, in order.
class RowSection {
public:
  RowSection(const IndexReader &file, IndexSection section, uint32_t words)
      : cursor(file, section, words), words(words) {}

  /// Of a dense section: puts the entries of rows [begin, end) at `to`. It
  /// holds one for each row.
  Status copy(uint64_t begin, uint64_t end, uint64_t places, uint32_t *to) {
    while (begin < end) {
      Result<bool> more = cursor.more();
      if (!more.ok())
        return more.takeStatus();
      if (!*more)
        return cursor.corrupt("row " + std::to_string(begin) + " is missing");
      const uint32_t *entry = cursor.at();
      size_t count = std::min<uint64_t>(cursor.ready(), end - begin);
      uint32_t most = 0;
      for (size_t i = 0; i < count; ++i) {
        to[i] = entry[i];
        most = std::max(most, entry[i]);
      }
      if (most > places) {
        cursor.next(static_cast<size_t>(
            std::find_if(entry, entry + count,
                         [&](uint32_t place) { return place > places; }) -
            entry));
        return cursor.corrupt("there is no place " + std::to_string(place()));
      }
      cursor.next(count);
      begin += count;
      to += count;
    }
    return {};
  }

  /// Calls take(row, entry) for the entries below `end`; it returns whether
  /// the store has the place that the entry names.
  template <typename Take>
  Status below(uint64_t end, uint32_t rows, Take take) {
    for (;;) {
      Result<bool> more = cursor.more();
      if (!more.ok())
        return more.takeStatus();
      if (!*more)
        return {};
      // What is in memory goes by without any checks but those of the rows.
      const uint32_t *entry = cursor.at();
      size_t ready = cursor.ready(), done = 0;
      for (; done < ready; ++done, entry += words) {
        uint64_t row = entry[0];
        if (row >= rows || row < from || row >= end)
          break;
        from = row;
        if (!take(static_cast<uint32_t>(row), entry)) {
          cursor.next(done);
          return cursor.corrupt("there is no place " + std::to_string(place()));
        }
      }
      cursor.next(done);
      if (done == ready)
        continue;
      uint64_t row = entry[0];
      if (row >= rows)
        return cursor.corrupt("there is no row " + std::to_string(row));
      if (row < from)
        return cursor.corrupt("row " + std::to_string(row) +
                              " is out of order");
      return {};
    }
  }

private:
  /// That the current entry names: the last one of a move's two.
  uint32_t place() const {
    return words == 1 ? cursor.at()[0] - 1 : cursor.at()[words == 5 ? 3 : 1];
  }

  Cursor cursor;
  const uint32_t words;
  uint64_t from = 0;
};

/// The rows of one image, from the first to the last.
class ImageWalk {
public:
  using Image = RowStore::Image;

  /// `from` gets the files.
  ImageWalk(RowStore::Impl &store, const Image &image, IndexChain &from)
      : store(store), layout(store.layout), image(image), from(from) {}

  Status open();
  /// The next slice; empty at the end. `changed`: is told of each row that a
  /// move has moved.
  template <typename Changed> Status next(Slice &slice, Changed changed);

  /// Whether slices come with the lives of their places' segments.
  bool moved() const { return !movesSections.empty(); }
  /// Of the segment, as the image has it: generation + 1, or 0.
  uint64_t life(uint32_t segment) const { return named[segment]; }

private:
  Status mismatch(const std::string &what) const {
    return store.badImage(image, what);
  }

  RowStore::Impl &store;
  const StoreLayout &layout;
  const Image &image;
  IndexChain &from;
  std::vector<std::unique_ptr<IndexReader>> readers, movesReaders;
  std::vector<RowSection> sections, movesSections;
  std::vector<uint64_t> named;
  uint64_t at = 0;
};

} // namespace

Status ImageWalk::open() {
  if (image.files.empty())
    return mismatch("it has no index file");
  for (const std::string &file : image.files) {
    auto opened = IndexReader::open(store.options.folder + "/" + file,
                                    store.indexHeader(IndexKind::Base, 0));
    if (!opened.ok())
      return opened.takeStatus();
    const IndexReader &r = **opened;
    const IndexHeader &h = r.header();
    bool base = readers.empty();
    if (r.kind() != (base ? IndexKind::Base : IndexKind::Delta) ||
        h.base != (base ? h.id : from.baseId) ||
        h.previous != (base ? h.id : from.lastId))
      return mismatch("'" + r.path() + "' does not follow on the file before");
    from.files.push_back(file);
    if (base)
      from.baseId = h.id;
    from.lastId = h.id;
    (base ? from.baseBytes : from.deltaBytes) += r.bytes();
    readers.push_back(std::move(*opened));
  }
  if (from.lastId != image.id)
    return mismatch("'" + readers.back()->path() + "' is of checkpoint " +
                    std::to_string(from.lastId));

  // The last file says which life of each segment its places mean.
  named.assign(layout.segments(), 0);
  for (const auto &r : readers) {
    std::fill(named.begin(), named.end(), 0);
    Cursor table(*r, IndexSegments, 2);
    for (;; table.next()) {
      Result<bool> more = table.more();
      if (!more.ok())
        return more.takeStatus();
      if (!*more)
        break;
      uint32_t segment = table.at()[0];
      if (segment >= layout.segments() || named[segment])
        return table.corrupt("segment " + std::to_string(segment) +
                             " cannot be here");
      named[segment] = uint64_t(table.at()[1]) + 1;
    }
  }

  for (const auto &r : readers) {
    sections.emplace_back(*r, IndexRows, r->header().dense ? 1 : 2);
    sections.emplace_back(*r, IndexLate, 2);
  }
  for (const MovesFile &file : store.moves) {
    if (file.lastId < image.id)
      continue; // made before the image
    auto opened = IndexReader::open(
        store.options.folder + "/" +
            indexName(store.options.prefix, IndexKind::Moves, file.number),
        store.indexHeader(IndexKind::Moves, file.number));
    if (!opened.ok())
      return opened.takeStatus();
    movesSections.emplace_back(**opened, IndexRows, 5);
    movesReaders.push_back(std::move(*opened));
  }
  return {};
}

template <typename Changed>
Status ImageWalk::next(Slice &slice, Changed changed) {
  slice.begin = at;
  slice.end = at = std::min<uint64_t>(store.options.rows, at + sliceRows);
  const bool dense = !readers.empty() && readers[0]->header().dense;
  if (dense) {
    slice.places.resize(slice.end - slice.begin);
    TRC_RETURN_IF_ERROR(sections[0].copy(slice.begin, slice.end,
                                         layout.places(), slice.places.data()));
  } else {
    slice.places.assign(slice.end - slice.begin, 0);
  }
  for (size_t i = dense; i < sections.size(); ++i) {
    TRC_RETURN_IF_ERROR(sections[i].below(
        slice.end, store.options.rows,
        [&](uint32_t row, const uint32_t *entry) {
          uint64_t place = uint64_t(entry[1]) + 1;
          slice.places[row - slice.begin] = static_cast<uint32_t>(place);
          return place <= layout.places();
        }));
  }
  if (!moved())
    return {};
  slice.lives.assign(slice.end - slice.begin, 0);
  for (uint64_t i = 0; i < slice.places.size(); ++i)
    if (slice.places[i])
      slice.lives[i] = named[layout.segmentOf(slice.places[i] - 1)];
  auto move = [&](uint32_t row, const uint32_t *entry) {
    uint64_t i = row - slice.begin;
    if (entry[3] >= layout.places())
      return false;
    if (slice.places[i] != uint64_t(entry[1]) + 1 ||
        slice.lives[i] != uint64_t(entry[2]) + 1)
      return true;
    slice.places[i] = entry[3] + 1;
    slice.lives[i] = uint64_t(entry[4]) + 1;
    changed(row);
    return true;
  };
  for (RowSection &section : movesSections)
    TRC_RETURN_IF_ERROR(section.below(slice.end, store.options.rows, move));
  return {};
}

namespace {

/// Notes the places of one image's rows, on several threads.
class ImageLoad {
public:
  ImageLoad(RowStore::Impl &store, ImageWalk &walk, bool isCurrent,
            PlaceMarks &marks, std::vector<uint64_t> &lives)
      : store(store), walk(walk), isCurrent(isCurrent), marks(marks),
        parts(marks), lives(lives) {}

  Status run();
  uint64_t writtenRows() const { return written; }
  /// The place that cannot be, where run() says TRC_CORRUPT without a message.
  uint32_t badPlace() const { return bad; }

private:
  struct Worker {
    Worker(MarkParts &parts, uint64_t entries, uint32_t segments, bool moved)
        : buckets(parts, entries), lives(moved ? segments : 0, 0) {}
    Slice slice;
    MarkBuckets buckets;
    std::vector<uint64_t> lives; // that moved records have shown
    uint64_t written = 0;
  };

  void work(Worker &w);
  /// Whether all is well.
  bool note(Worker &w);
  bool refuse(uint32_t place) {
    std::lock_guard<std::mutex> lock(mutex);
    bad = std::min(bad, place);
    failed = true;
    return false;
  }
  bool settle(uint32_t segment, uint64_t life) {
    uint64_t &known = lives[segment];
    if (!life || (known && known != life))
      return false;
    known = life;
    return true;
  }
  Status agree(const std::vector<std::unique_ptr<Worker>> &workers);

  static constexpr uint32_t noPlace = UINT32_MAX;
  RowStore::Impl &store;
  ImageWalk &walk;
  const bool isCurrent;
  PlaceMarks &marks;
  MarkParts parts;
  std::vector<uint64_t> &lives;
  std::mutex reading; // who has it calls walk.next()
  std::mutex mutex;   // guards what follows
  std::atomic<bool> failed{false};
  Status failure;
  uint32_t bad = noPlace;
  uint64_t written = 0;
};

} // namespace

bool ImageLoad::note(Worker &w) {
  const Slice &slice = w.slice;
  const uint64_t rows = slice.places.size();
  for (uint64_t i = 0; walk.moved() && i < rows; ++i) {
    if (!slice.places[i])
      continue;
    uint64_t &life = w.lives[store.layout.segmentOf(slice.places[i] - 1)];
    if (!slice.lives[i] || (life && life != slice.lives[i]))
      return refuse(slice.places[i] - 1);
    life = slice.lives[i];
  }
  // Nothing is written where nothing is said: memory that is not touched is not
  // taken.
  for (uint64_t i = 0; i < rows; ++i)
    if (slice.places[i]) {
      ++w.written;
      if (isCurrent)
        store.location[slice.begin + i].store(slice.places[i],
                                              std::memory_order_relaxed);
    }
  uint64_t twice = w.buckets.add(slice.places.data(), rows);
  return twice == MarkBuckets::none || refuse(marks.placeOf(twice));
}

void ImageLoad::work(Worker &w) {
  Status status;
  try {
    while (!failed) {
      {
        std::lock_guard<std::mutex> lock(reading);
        status = walk.next(w.slice, [&](uint32_t row) {
          // The next delta has to say it: its image skips these moves.
          if (isCurrent && store.changedRows.set(row))
            ++store.changedCount;
        });
      }
      if (!status.ok() || w.slice.places.empty() || !note(w))
        break;
    }
    if (uint64_t twice = w.buckets.finish(); twice != MarkBuckets::none)
      refuse(marks.placeOf(twice));
  } catch (const std::bad_alloc &) {
    status = Status(TRC_NO_MEMORY, store.name() + ": no memory to read the "
                                                  "index of a checkpoint");
  }
  std::lock_guard<std::mutex> lock(mutex);
  written += w.written;
  if (status.ok())
    return;
  failed = true;
  if (failure.ok())
    failure = std::move(status);
}

Status ImageLoad::run() {
  uint64_t count = std::clamp<uint64_t>(
      std::min<uint64_t>(std::thread::hardware_concurrency(),
                         store.options.rows / threadRows),
      1, mostThreads);
  uint64_t entries =
      std::min<uint64_t>(store.options.rows, gatheredMarks / count);
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < count; ++i)
    workers.push_back(std::make_unique<Worker>(
        parts, entries, store.layout.segments(), walk.moved()));
  std::vector<std::thread> threads;
  threads.reserve(count - 1);
  try {
    while (threads.size() + 1 < count)
      threads.emplace_back([this, &w = *workers[threads.size() + 1]] {
        blockSignalsInThisThread();
        work(w);
      });
  } catch (const std::system_error &) { // NOLINT(bugprone-empty-catch)
    // Then with those that there are.
  }
  work(*workers[0]);
  for (std::thread &t : threads)
    t.join();
  if (!failure.ok())
    return std::move(failure);
  return bad != noPlace ? Status(TRC_CORRUPT, "") : agree(workers);
}

/// Every segment has one life, whoever has seen a place of it.
Status ImageLoad::agree(const std::vector<std::unique_ptr<Worker>> &workers) {
  for (uint32_t s = 0; s < store.layout.segments(); ++s) {
    bool fits = true;
    if (walk.moved()) {
      for (const auto &w : workers)
        fits = fits && (!w->lives[s] || settle(s, w->lives[s]));
    } else if (marks.any(s)) {
      fits = settle(s, walk.life(s));
    }
    if (fits)
      continue;
    uint32_t index = 0;
    while (!marks.test(store.layout.place(s, index)))
      ++index;
    bad = store.layout.place(s, index);
    return Status(TRC_CORRUPT, "");
  }
  return {};
}

Status RowStore::Impl::badImage(const Image &image,
                                const std::string &what) const {
  return Status(TRC_CORRUPT, "checkpoint " + std::to_string(image.id) +
                                 " of group '" + options.group + "': " + what +
                                 "; go back to an older checkpoint");
}

Status RowStore::Impl::loadImage(const Image &image, bool isCurrent,
                                 Checkpoint &into, IndexChain &from,
                                 std::vector<uint64_t> &lives) {
  ImageWalk walk(*this, image, from);
  TRC_RETURN_IF_ERROR(walk.open());
  ImageLoad load(*this, walk, isCurrent, into.marks, lives);
  Status status = load.run();
  if (status.ok() && isCurrent)
    writtenRows = load.writtenRows();
  if (load.badPlace() == UINT32_MAX || status.code() != TRC_CORRUPT)
    return status;
  // Once more, for the last of the rows that claim the place.
  IndexChain again;
  ImageWalk search(*this, image, again);
  TRC_RETURN_IF_ERROR(search.open());
  uint64_t row = options.rows;
  for (Slice slice;;) {
    TRC_RETURN_IF_ERROR(search.next(slice, [](uint32_t) {}));
    if (slice.places.empty())
      break;
    for (uint64_t i = 0; i < slice.places.size(); ++i)
      if (slice.places[i] == uint64_t(load.badPlace()) + 1)
        row = slice.begin + i;
  }
  return badImage(image, "its index names place " +
                             std::to_string(load.badPlace()) + " for row " +
                             std::to_string(row) +
                             ", which is not its to name");
}
