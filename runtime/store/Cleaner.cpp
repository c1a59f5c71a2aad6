//===- Cleaner.cpp - Making segments free again ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Greedy: the segments with the fewest live places first. Live records are
// copied to the cleaner's own stream, and whatever named the old place names
// the new one. Where that is a checkpoint, whose index file stays as it is, the
// old segments are free only when the copies and a moves file are durable; so
// segments are cleaned in groups that fill about one segment.
//
// One free segment is the cleaner's: with it, it can always go on.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <cstring>

using namespace trc;

namespace {
constexpr uint64_t pieceBytes = storePiece; // read, then written
} // namespace

uint32_t RowStore::Impl::lowWater() const {
  return std::max(3u, layout.segments() / 16);
}

/// Dead places that a victim must have: more than closing the tail may waste,
/// and so many that copying for nothing ends; more while nobody waits.
uint32_t RowStore::Impl::leastGain() const {
  uint32_t each = layout.perSegment();
  return std::max(pad + 2, waiters > 0 ? each / 32 : each / 8);
}

/// The segment with the fewest live places, or none.
uint32_t RowStore::Impl::pickVictim(uint32_t most) const {
  uint32_t best = Stream::none, bestLive = 0;
  most = std::min(most, layout.perSegment() -
                            std::min(leastGain(), layout.perSegment()));
  for (uint32_t i = 0; i < layout.segments(); ++i) {
    const Segment &s = segments[i];
    if (s.state != Segment::State::Full || s.pending > 0 || s.held ||
        s.live > most || (best != Stream::none && s.live >= bestLive))
      continue;
    if (scanMarks && scanMarks->any(i))
      continue;
    best = i;
    bestLive = s.live;
  }
  return best;
}

/// One more for a group that has copied so many records; room for them is in
/// the rest of the cleaner's segment and one more.
uint32_t RowStore::Impl::nextVictim(uint64_t copied) const {
  uint32_t each = layout.perSegment();
  if (copied >= each)
    return Stream::none;
  uint64_t room = (freeSegments > 0 ? each : 0) +
                  (cleaner.segment == Stream::none ? 0 : each - cleaner.next);
  return pickVictim(
      static_cast<uint32_t>(std::min<uint64_t>(room, each - copied)));
}

/// Whether segments get free, or victims, without anybody doing anything.
bool RowStore::Impl::mayGainLater() const {
  if (scanMarks || !retiredNow.empty() || !retiredBefore.empty())
    return true;
  uint32_t most =
      layout.perSegment() - std::min(leastGain(), layout.perSegment());
  return std::any_of(segments.begin(), segments.end(), [&](const Segment &s) {
    return s.state == Segment::State::Full && s.pending > 0 && s.live <= most;
  });
}

void RowStore::Impl::clean() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!stop) {
    // Moves of a cut whose capture has begun are remembered; see there.
    bool crowded = cut.active && !cut.finished &&
                   cut.special.size() >= storeCutRows(options.rows) / 2;
    bool awaited = waiters > 0 && roomFor(user, 1) == 0;
    if (!putOff.why.ok() && failure.ok()) {
      retryMoves(lock, awaited);
      continue;
    }
    bool wanted = awaited || (freeSegments < lowWater() && started && !crowded);
    if (!failure.ok() || !wanted || nextVictim(0) == Stream::none) {
      if (awaited && answered < asked && !mayGainLater()) {
        answered = asked;
        changed.notify_all();
      }
      work.wait(lock);
      continue;
    }
    lock.unlock();
    std::lock_guard<std::mutex> alone(durable);
    lock.lock();
    if (stop || !failure.ok())
      continue;
    Status status = cleanGroup(lock);
    if (!status.ok())
      fail(std::move(status));
  }
}

/// Nothing is cleaned until the moves are written, tried every second and when
/// somebody waits for room, who is told why there is none.
void RowStore::Impl::retryMoves(std::unique_lock<std::mutex> &lock,
                                bool awaited) {
  using Clock = std::chrono::steady_clock;
  if (!awaited && Clock::now() < putOff.tryAt) {
    work.wait_until(lock, putOff.tryAt);
    return;
  }
  lock.unlock();
  std::lock_guard<std::mutex> alone(durable);
  lock.lock();
  if (stop || !failure.ok())
    return;
  uint64_t question = asked;
  if (commitMoves(lock, putOff.moved).ok()) {
    freeVictims(putOff.victims);
    putOff.victims.clear();
    changed.notify_all();
    return;
  }
  putOff.tryAt = Clock::now() + std::chrono::seconds(1);
  if (awaited && answered < question && !mayGainLater()) {
    answered = question;
    changed.notify_all();
  }
  // Not again for those who have their answer.
  if (waiters > 0 && asked == question)
    work.wait_until(lock, putOff.tryAt);
}

void RowStore::Impl::freeVictims(const std::vector<uint32_t> &victims) {
  for (uint32_t victim : victims) {
    segments[victim].held = false;
    mayRetire(victim);
  }
}

Status RowStore::Impl::cleanGroup(std::unique_lock<std::mutex> &lock) {
  std::vector<uint32_t> victims;
  std::vector<Move> moved;
  Status status = copyGroup(lock, victims, moved);
  if (status.ok())
    status = commitMoves(lock, moved);
  if (!status.ok()) {
    if (!failure.ok() || putOff.why.ok())
      return status;
    // Only space waits for the file; there may be enough without it.
    putOff.moved = std::move(moved);
    putOff.victims = std::move(victims);
    putOff.tryAt = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    return {};
  }
  freeVictims(victims);
  if (!victims.empty()) {
    lock.unlock();
    // Files that stay apart only take space, and time at the next open.
    while (mergeMoves().ok()) {
    }
    lock.lock();
  }
  return {};
}

/// Copies the live records of some segments; `victims`: those that hold places
/// that checkpoints name.
Status RowStore::Impl::copyGroup(std::unique_lock<std::mutex> &lock,
                                 std::vector<uint32_t> &victims,
                                 std::vector<Move> &moved) {
  uint64_t copied = 0;
  for (;;) {
    uint32_t enough = lowWater() + 1;
    if (!victims.empty() && freeSegments + victims.size() >= enough)
      break;
    uint32_t victim = nextVictim(copied);
    if (victim == Stream::none)
      break;
    copied += segments[victim].live;
    segments[victim].held = true;
    victims.push_back(victim);
    bool noted = false;
    TRC_RETURN_IF_ERROR(cleanSegment(lock, victim, moved, noted));
    counts.segmentsCleaned.fetch_add(1, std::memory_order_relaxed);
    if (!noted) { // no checkpoint looks there
      victims.pop_back();
      segments[victim].held = false;
      mayRetire(victim);
      if (waiters == 0 && freeSegments >= enough)
        break;
    }
  }
  return {};
}

Status RowStore::Impl::cleanSegment(std::unique_lock<std::mutex> &lock,
                                    uint32_t segment, std::vector<Move> &moved,
                                    bool &noted) {
  const uint32_t size = options.storeBytes, each = layout.perSegment();
  const uint64_t most = std::max<uint64_t>(1, pieceBytes / size);
  std::vector<uint32_t> places;
  std::vector<char> records;
  ReadBatch batch;
  for (uint32_t index = 0; index < each;) {
    places.clear();
    for (; index < each && places.size() < most; ++index)
      if (liveWord(segment, index / 64, nullptr) >> index % 64 & 1)
        places.push_back(layout.place(segment, index));
    if (places.empty())
      break;
    lock.unlock();
    records.resize(places.size() * size);
    batch.rows = places.data();
    batch.count = static_cast<uint32_t>(places.size());
    batch.out = records.data();
    batch.pitch = size;
    startItems(batch, true);
    Status status = waitBatch(batch);
    lock.lock();
    TRC_RETURN_IF_ERROR(status.clone());
    if (!failure.ok()) // nothing is written any more
      return failure.clone();

    // Some may be dead by now.
    size_t kept = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      uint32_t at = layout.indexOf(places[i]);
      if (!(liveWord(segment, at / 64, scanMarks) >> at % 64 & 1))
        continue;
      if (kept != i)
        std::memcpy(&records[kept * size], &records[i * size], size);
      places[kept++] = places[i];
    }
    size_t before = moved.size();
    WriteBatch own;
    for (size_t at = 0; at < kept && status.ok();) {
      if (roomFor(cleaner, 0) == 0) {
        status = internal("cleaning has no segment left");
        break;
      }
      uint32_t first = 0;
      uint32_t n = append(cleaner, &own, &records[at * size],
                          static_cast<uint32_t>(kept - at), first);
      for (uint32_t i = 0; i < n && status.ok(); ++i) {
        RecordHeader header;
        std::memcpy(&header, &records[(at + i) * size], sizeof header);
        status = moveRecord(header.row, places[at + i], first + i, moved);
      }
      at += n;
    }
    counts.bytesCleaned.fetch_add(kept * size, std::memory_order_relaxed);
    startWrites();
    changed.wait(lock, [&] { return !own.pending(); });
    TRC_RETURN_IF_ERROR(std::move(status));
    if (!failure.ok())
      return failure.clone();
    noted = noted || moved.size() > before;
    if (moved.size() >= storeMoves(layout.places()))
      TRC_RETURN_IF_ERROR(commitMoves(lock, moved));
  }
  return {};
}

/// Makes copies durable, then a file that says where the records are. Where
/// only the file fails, `putOff` says why, and the moves stay.
Status RowStore::Impl::commitMoves(std::unique_lock<std::mutex> &lock,
                                   std::vector<Move> &moved) {
  if (moved.empty())
    return {};
  uint64_t last = cut.active && cut.finished ? cut.id : lastId;
  TRC_RETURN_IF_ERROR(flushAll(lock, false));
  lock.unlock();
  Status status = writeMoves(moved, last);
  lock.lock();
  putOff.why = status.clone();
  if (status.ok())
    moved.clear();
  return status;
}

/// Whoever names `from` names `to`, where the same record is being written.
Status RowStore::Impl::moveRecord(uint32_t row, uint32_t from, uint32_t to,
                                  std::vector<Move> &moved) {
  bool isCurrent = current.test(from), noted = false;
  if (isCurrent) {
    if (locate(row) != from + 1)
      return corrupt(row, from);
    location[row].store(to + 1, std::memory_order_release);
    current.clear(from);
    current.set(to);
    if (changedRows.set(row))
      ++changedCount;
  }
  if (cut.active && cut.marks.test(from)) {
    cut.marks.clear(from);
    cut.marks.set(to);
    if (cut.finished)
      noted = true;
    else
      moveCut(row, from, to, isCurrent);
  }
  for (Checkpoint &c : retained)
    if (c.marks.test(from)) {
      c.marks.clear(from);
      c.marks.set(to);
      noted = true;
    }
  uint32_t source = layout.segmentOf(from), target = layout.segmentOf(to);
  ++segments[target].live;
  if (!namedApart(from))
    --segments[source].live;
  if (noted)
    moved.push_back({row, from, segments[source].generation, to,
                     segments[target].generation});
  return {};
}

Status RowStore::Impl::writeMoves(std::vector<Move> &moved, uint64_t last) {
  // The segment that a record was copied to may be cleaned in the same group.
  // Its second move applies only behind the first: moves of a row stay in the
  // order in which they were made, which is that of the segments they went to.
  uint32_t latest;
  {
    std::lock_guard<std::mutex> lock(mutex);
    latest = generation; // numbers wrap around
  }
  std::sort(moved.begin(), moved.end(), [&](const Move &a, const Move &b) {
    uint32_t ageA = latest - a.toGeneration, ageB = latest - b.toGeneration;
    if (a.row != b.row)
      return a.row < b.row;
    return ageA != ageB ? ageA > ageB : a.from < b.from;
  });
  uint64_t number = nextMoves++;
  IndexHeader header = indexHeader(IndexKind::Moves, number);
  header.base = last;
  auto writer = IndexWriter::create(
      options.folder, indexName(options.prefix, IndexKind::Moves, number),
      header);
  if (!writer.ok())
    return writer.takeStatus();
  static_assert(sizeof(Move) == 20);
  TRC_RETURN_IF_ERROR((*writer)->append(
      IndexRows, reinterpret_cast<const uint32_t *>(moved.data()),
      moved.size() * 5));
  TRC_RETURN_IF_ERROR((*writer)->finish());
  uint64_t bytes = (*writer)->bytes();
  counts.bytesIndex.fetch_add(bytes, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex);
  moves.push_back({number, last, bytes});
  return {};
}

/// Makes one file of the newest ones, where there are many of similar size.
/// Other than OK: there was nothing to do, or it did not work out.
///
/// Moves of a row keep their order. That both the old files and the new one are
/// found after a power loss, or only some of the old ones, does no harm.
Status RowStore::Impl::mergeMoves() {
  std::vector<MovesFile> from;
  {
    std::lock_guard<std::mutex> lock(mutex);
    size_t first = moves.size();
    while (first > 0 &&
           moves[first - 1].bytes < moves.back().bytes * options.mergeMoves)
      --first;
    if (stop || moves.size() - first < std::max(2u, options.mergeMoves))
      return Status(TRC_WOULD_BLOCK, "too few files of moves");
    from.assign(moves.begin() + static_cast<ptrdiff_t>(first), moves.end());
  }
  std::vector<std::unique_ptr<IndexReader>> readers;
  std::vector<IndexReader::Cursor> cursors;
  uint64_t last = 0;
  for (const MovesFile &file : from) {
    auto opened = IndexReader::open(
        options.folder + "/" +
            indexName(options.prefix, IndexKind::Moves, file.number),
        indexHeader(IndexKind::Moves, file.number));
    if (!opened.ok())
      return opened.takeStatus(); // e.g. forgotten meanwhile
    cursors.emplace_back(**opened, IndexRows, 5);
    readers.push_back(std::move(*opened));
    last = std::max(last, file.lastId);
  }
  uint64_t number = nextMoves++;
  IndexHeader header = indexHeader(IndexKind::Moves, number);
  header.base = last;
  std::string name = indexName(options.prefix, IndexKind::Moves, number);
  auto writer = IndexWriter::create(options.folder, name, header);
  if (!writer.ok())
    return writer.takeStatus();
  for (;;) {
    // The smallest row, of the oldest file that has it.
    IndexReader::Cursor *least = nullptr;
    for (IndexReader::Cursor &c : cursors) {
      Result<bool> more = c.more();
      if (!more.ok())
        return more.takeStatus();
      if (*more && (!least || c.at()[0] < least->at()[0]))
        least = &c;
    }
    if (!least)
      break;
    TRC_RETURN_IF_ERROR((*writer)->append(IndexRows, least->at(), 5));
    least->next();
  }
  TRC_RETURN_IF_ERROR((*writer)->finish());
  uint64_t bytes = (*writer)->bytes();
  counts.bytesIndex.fetch_add(bytes, std::memory_order_relaxed);
  std::vector<std::string> unused;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto merged = [&](const MovesFile &m) {
      return std::any_of(from.begin(), from.end(), [&](const MovesFile &f) {
        return f.number == m.number;
      });
    };
    moves.erase(std::remove_if(moves.begin(), moves.end(), merged),
                moves.end());
    moves.push_back({number, last, bytes});
    dropMoves(unused); // perhaps nobody needs them by now
  }
  for (const MovesFile &file : from)
    unused.push_back(indexName(options.prefix, IndexKind::Moves, file.number));
  for (const std::string &file : unused)
    (void)removeFile(options.folder + "/" + file);
  return {};
}
