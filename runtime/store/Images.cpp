//===- Images.cpp - Retained checkpoints ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads an image: base, deltas, and the moves that cleaning made since, merged
// in slices of rows, so that memory stays small. A move applies where the row
// lies at its old place in the same life (generation) of that segment, so it
// never matters whether a move was made before or after the image.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <new>

using namespace trc;

namespace {

/// A slice stays in the CPU's cache.
constexpr uint64_t sliceRows = 1 << 16, aheadRows = 32;
/// Numbers of moves files that leave room to count on.
constexpr uint64_t largestNumber = uint64_t(1) << 62;

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
  RowSection(const IndexReader &file, IndexSection section, uint32_t words,
             bool dense)
      : cursor(file, section, words), words(words), dense(dense) {}

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
        uint64_t row = dense ? cursor.index() + done : entry[0];
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
      uint64_t row = dense ? cursor.index() : entry[0];
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
    return dense ? cursor.at()[0] - 1 : cursor.at()[words == 5 ? 3 : 1];
  }

  Cursor cursor;
  const uint32_t words;
  const bool dense;
  uint64_t from = 0;
};

} // namespace

Status RowStore::Impl::listMoves() {
  if (movesListed)
    return {};
  std::vector<MovesFile> found;
  for (const std::string &file : listFolder(options.folder)) {
    IndexKind kind;
    uint64_t number;
    bool temporary;
    if (!parseIndexName(options.prefix, file, kind, number, temporary) ||
        kind != IndexKind::Moves || temporary)
      continue;
    auto reader = IndexReader::open(options.folder + "/" + file,
                                    indexHeader(IndexKind::Moves, number));
    if (!reader.ok())
      return reader.takeStatus();
    const IndexHeader &h = (*reader)->header();
    if ((*reader)->kind() != IndexKind::Moves || h.id != number ||
        number > largestNumber)
      return (*reader)->corrupt(0, "it is not what its name says");
    found.push_back({number, h.base, (*reader)->bytes()});
  }
  std::sort(found.begin(), found.end(),
            [](const MovesFile &a, const MovesFile &b) {
              return a.number < b.number;
            });
  moves = std::move(found);
  if (!moves.empty())
    nextMoves = moves.back().number + 1;
  movesListed = true;
  return {};
}

Status RowStore::Impl::loadImage(const Image &image, bool isCurrent,
                                 Checkpoint &into, IndexChain &from,
                                 std::vector<uint64_t> &lives) {
  auto mismatch = [&](const std::string &what) {
    return Status(TRC_CORRUPT, "checkpoint " + std::to_string(image.id) +
                                   " of group '" + options.group + "': " +
                                   what + "; go back to an older checkpoint");
  };
  if (image.files.empty())
    return mismatch("it has no index file");
  std::vector<std::unique_ptr<IndexReader>> readers;
  for (const std::string &file : image.files) {
    auto opened = IndexReader::open(options.folder + "/" + file,
                                    indexHeader(IndexKind::Base, 0));
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
  std::vector<uint64_t> named(layout.segments(), 0);
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

  std::vector<RowSection> sections;
  for (const auto &r : readers) {
    bool dense = r->header().dense;
    sections.emplace_back(*r, IndexRows, dense ? 1 : 2, dense);
    sections.emplace_back(*r, IndexLate, 2, false);
  }
  std::vector<std::unique_ptr<IndexReader>> movesReaders;
  std::vector<RowSection> movesSections;
  for (const MovesFile &file : moves) {
    if (file.lastId < image.id)
      continue; // made before the image
    auto opened = IndexReader::open(
        options.folder + "/" +
            indexName(options.prefix, IndexKind::Moves, file.number),
        indexHeader(IndexKind::Moves, file.number));
    if (!opened.ok())
      return opened.takeStatus();
    movesSections.emplace_back(**opened, IndexRows, 5, false);
    movesReaders.push_back(std::move(*opened));
  }

  Slice slice;
  uint64_t written = 0;
  for (slice.begin = 0; slice.begin < options.rows; slice.begin = slice.end) {
    slice.end = std::min<uint64_t>(options.rows, slice.begin + sliceRows);
    slice.places.assign(slice.end - slice.begin, 0);
    for (size_t i = 0; i < sections.size(); ++i) {
      bool dense = i % 2 == 0 && readers[i / 2]->header().dense;
      TRC_RETURN_IF_ERROR(sections[i].below(
          slice.end, options.rows, [&](uint32_t row, const uint32_t *entry) {
            uint64_t place = dense ? entry[0] : uint64_t(entry[1]) + 1;
            slice.places[row - slice.begin] = static_cast<uint32_t>(place);
            return place <= layout.places();
          }));
    }
    const bool moved = !movesSections.empty();
    if (moved)
      slice.lives.assign(slice.end - slice.begin, 0);
    for (uint64_t i = 0; moved && i < slice.places.size(); ++i)
      if (slice.places[i])
        slice.lives[i] = named[layout.segmentOf(slice.places[i] - 1)];
    for (RowSection &section : movesSections)
      TRC_RETURN_IF_ERROR(section.below(
          slice.end, options.rows, [&](uint32_t row, const uint32_t *entry) {
            uint64_t i = row - slice.begin;
            if (entry[3] >= layout.places())
              return false;
            if (slice.places[i] != uint64_t(entry[1]) + 1 ||
                slice.lives[i] != uint64_t(entry[2]) + 1)
              return true;
            slice.places[i] = entry[3] + 1;
            slice.lives[i] = uint64_t(entry[4]) + 1;
            // The next delta has to say it: its image skips these moves.
            if (isCurrent && changedRows.set(row))
              ++changedCount;
            return true;
          }));
    for (uint64_t i = 0; i < slice.places.size(); ++i) {
      // Neighbouring rows may lie anywhere.
      if (i + aheadRows < slice.places.size() && slice.places[i + aheadRows])
        into.marks.prefetch(slice.places[i + aheadRows] - 1);
      if (!slice.places[i])
        continue;
      uint32_t row = static_cast<uint32_t>(slice.begin + i);
      uint32_t place = slice.places[i] - 1;
      uint32_t segment = layout.segmentOf(place);
      uint64_t &life = lives[segment];
      uint64_t its = moved ? slice.lives[i] : named[segment];
      if (!its || !into.marks.set(segment, place - layout.place(segment, 0)) ||
          (life && life != its))
        return mismatch("its index names place " + std::to_string(place) +
                        " for row " + std::to_string(row) +
                        ", which is not its to name");
      life = its;
      if (isCurrent)
        location[row].store(place + 1, std::memory_order_relaxed);
      ++written;
    }
  }
  if (isCurrent)
    writtenRows = written;
  return {};
}

Status RowStore::adopt(const Image &image, bool current) {
  Impl &s = *impl;
  if (s.started || (current && s.writtenRows > 0) || image.id <= s.lastId)
    return s.internal("checkpoint " + std::to_string(image.id) +
                      " is adopted out of order");
  TRC_RETURN_IF_ERROR(s.listMoves());
  try {
    Checkpoint c;
    c.id = image.id;
    c.files = image.files;
    if (s.spare.empty()) {
      c.marks = PlaceMarks(s.layout);
    } else {
      c.marks = std::move(s.spare.back());
      s.spare.pop_back();
    }
    IndexChain chain;
    // What all adopted images agree on.
    std::vector<uint64_t> lives(s.layout.segments(), 0);
    for (uint32_t i = 0; i < s.layout.segments(); ++i)
      if (s.segments[i].state != Segment::State::Free)
        lives[i] = uint64_t(s.segments[i].generation) + 1;
    Status status = s.loadImage(image, current, c, chain, lives);
    if (!status.ok()) {
      for (uint32_t r = 0; current && r < s.options.rows; ++r)
        s.location[r].store(0, std::memory_order_relaxed);
      if (current) {
        s.writtenRows = 0;
        s.changedRows.clearAll();
        s.changedCount = 0;
      }
      c.marks.clearAll();
      s.returnMarks(std::move(c.marks));
      return status;
    }
    std::lock_guard<std::mutex> lock(s.mutex);
    if (current) {
      s.current = c.marks;
      s.chain = std::move(chain);
    }
    s.lastId = image.id;
    s.retained.push_back(std::move(c));
    for (uint32_t i = 0; i < s.layout.segments(); ++i) {
      Segment &segment = s.segments[i];
      if (!lives[i])
        continue;
      if (segment.state == Segment::State::Free) {
        segment.state = Segment::State::Full;
        --s.freeSegments;
      }
      segment.generation = static_cast<uint32_t>(lives[i] - 1);
      segment.live = s.countLive(i);
    }
    return {};
  } catch (const std::bad_alloc &) {
    return Status(TRC_NO_MEMORY,
                  s.name() + ": no memory for the marks of checkpoint " +
                      std::to_string(image.id));
  }
}

std::vector<std::string>
RowStore::Impl::unusedFiles(const std::vector<std::string> &of) {
  std::vector<std::string> unused;
  auto in = [](const std::vector<std::string> &files, const std::string &name) {
    return std::find(files.begin(), files.end(), name) != files.end();
  };
  for (const std::string &name : of) {
    bool used = in(chain.files, name) || in(nextChain.files, name);
    for (const Checkpoint &c : retained)
      used = used || in(c.files, name);
    if (!used && !in(unused, name))
      unused.push_back(name);
  }
  return unused;
}

/// Moves that no image needs any more.
void RowStore::Impl::dropMoves(std::vector<std::string> &names) {
  auto needed = [&](const MovesFile &file) {
    if (cut.active && cut.finished && cut.id <= file.lastId)
      return true;
    return std::any_of(
        retained.begin(), retained.end(),
        [&](const Checkpoint &c) { return c.id <= file.lastId; });
  };
  for (auto i = moves.begin(); i != moves.end();) {
    if (needed(*i)) {
      ++i;
      continue;
    }
    names.push_back(indexName(options.prefix, IndexKind::Moves, i->number));
    i = moves.erase(i);
  }
}

Status RowStore::forget(uint64_t id) {
  Impl &s = *impl;
  std::vector<std::string> unused;
  {
    std::unique_lock<std::mutex> lock(s.mutex);
    auto c = std::find_if(
        s.retained.begin(), s.retained.end(),
        [&](const Checkpoint &x) { return x.id == id && !x.leaving; });
    if (c == s.retained.end())
      return Status(TRC_NOT_FOUND,
                    s.name() + " retains no checkpoint " + std::to_string(id));
    c->leaving = true;
    s.release(c->marks, lock);
    PlaceMarks marks = std::move(c->marks);
    std::vector<std::string> files = std::move(c->files);
    s.retained.erase(c);
    s.returnMarks(std::move(marks));
    unused = s.unusedFiles(files);
    s.dropMoves(unused);
    ++s.forgotten;
    s.work.notify_all();
  }
  if (!s.options.readOnly)
    for (const std::string &name : unused)
      (void)removeFile(s.options.folder + "/" + name);
  return {};
}

Status RowStore::removeLeftovers() {
  Impl &s = *impl;
  TRC_RETURN_IF_ERROR(s.writable("removing files"));
  std::vector<std::string> unused;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.started = true;
    std::vector<std::string> old;
    s.dropMoves(old);
  }
  for (const std::string &file : listFolder(s.options.folder)) {
    IndexKind kind;
    uint64_t id;
    bool temporary;
    if (!parseIndexName(s.options.prefix, file, kind, id, temporary))
      continue;
    std::lock_guard<std::mutex> lock(s.mutex);
    bool used =
        kind == IndexKind::Moves
            ? std::any_of(s.moves.begin(), s.moves.end(),
                          [&](const MovesFile &m) { return m.number == id; })
            : s.unusedFiles({file}).empty();
    if (temporary || !used)
      unused.push_back(file);
  }
  for (const std::string &file : unused)
    TRC_RETURN_IF_ERROR(removeFile(s.options.folder + "/" + file));
  return {};
}
