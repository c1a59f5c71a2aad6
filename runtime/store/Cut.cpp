//===- Cut.cpp - Making a checkpoint --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cut marks the places of its moment, so cleaning and writers leave their
// records be, and then captures row by row where each lies, while writes go on:
// what they replace ahead of the capture is remembered (`special`), and when
// that grows too long the writer captures a part itself. Rows that had no value
// yet come behind, in the section `late`.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStoreImpl.h"

#include <algorithm>

using namespace trc;

namespace {
/// Rows looked at and taken in one step of the capture: what others wait for.
constexpr uint64_t stepRows = 1 << 18, stepTaken = 1 << 13;
/// Files of one image, at most.
constexpr size_t chainFiles = 64;
} // namespace

IndexHeader RowStore::Impl::indexHeader(IndexKind kind, uint64_t id) const {
  IndexHeader h{};
  h.kind = static_cast<uint32_t>(kind);
  h.key = options.key;
  h.segmentBytes = options.geometry.segmentBytes;
  h.segments = options.geometry.segments;
  h.rows = options.rows;
  h.storeBytes = options.storeBytes;
  h.payloadBytes = options.payloadBytes;
  h.id = id;
  return h;
}

Status RowStore::beginCut(uint64_t id, const uint32_t *pending,
                          uint64_t count) {
  Impl &s = *impl;
  TRC_RETURN_IF_ERROR(s.writable("a checkpoint"));
  if (s.options.onlyCuts && count)
    return s.internal("its pending rows are to be given as marks");
  // Sorted by marking: the trainer waits meanwhile.
  RowMarks marked(count ? s.options.rows : 0);
  for (uint64_t i = 0; i < count; ++i) {
    if (pending[i] >= s.options.rows)
      return s.internal("there is no row " + std::to_string(pending[i]));
    if (!marked.set(pending[i]))
      return s.internal("a row is pending twice");
  }
  std::vector<uint32_t> rows;
  rows.reserve(count);
  for (uint64_t w = 0; count && w * 64 < s.options.rows; ++w)
    for (uint64_t word = marked.word(w); word; word &= word - 1)
      rows.push_back(static_cast<uint32_t>(
          w * 64 + static_cast<uint64_t>(__builtin_ctzll(word))));
  return s.startCut(id, std::move(rows), nullptr);
}

Status RowStore::beginCutOf(uint64_t id, const uint64_t *marks) {
  TRC_RETURN_IF_ERROR(impl->writable("a checkpoint"));
  if (!impl->options.onlyCuts)
    return impl->internal("its pending rows are to be given as a list");
  return impl->startCut(id, {}, marks);
}

Status RowStore::Impl::startCut(uint64_t id, std::vector<uint32_t> rows,
                                const uint64_t *marks) {
  Impl &s = *this;
  std::unique_lock<std::mutex> lock(s.mutex);
  s.changed.wait(lock, [&] { return !s.cutWaits; });
  s.cutWaits = true;
  s.changed.wait(lock, [&] { return s.appending == 0; });
  s.cutWaits = false;
  s.changed.notify_all();
  if (!s.failure.ok())
    return s.failure.clone();
  Cut &cut = s.cut;
  if (cut.active)
    return Status(TRC_OUT_OF_ORDER, s.name() + ": checkpoint " +
                                        std::to_string(cut.id) +
                                        " is not through yet");
  if (id <= s.lastId)
    return s.internal("checkpoint " + std::to_string(id) +
                      " is not newer than " + std::to_string(s.lastId));
  s.started = true;
  cut.marks = PlaceMarks();
  if (!s.spare.empty()) {
    cut.marks = std::move(s.spare.back());
    s.spare.pop_back();
  }
  cut.marks = s.current;
  uint64_t count = 0;
  auto pend = [&](uint32_t row) {
    ++count;
    cut.pendingMarks.set(row);
    if (uint32_t place = s.locate(row))
      cut.marks.clear(place - 1);
  };
  for (uint32_t row : rows)
    pend(row);
  for (uint64_t w = 0; marks && w * 64 < s.options.rows; ++w)
    for (uint64_t word = marks[w]; word; word &= word - 1) {
      uint32_t row = static_cast<uint32_t>(
          w * 64 + static_cast<uint64_t>(__builtin_ctzll(word)));
      pend(row);
      // The next append of the row is the cut's, and stays until the next cut.
      if (s.changedRows.set(row))
        ++s.changedCount;
    }
  uint64_t delta = sizeof(IndexHeader) + 8 * (s.changedCount + rows.size()) +
                   8 * s.layout.segments();
  cut.base = s.chain.files.empty() || s.chain.files.size() >= chainFiles ||
             (s.chain.deltaBytes + delta) * 2 > s.chain.baseBytes;
  cut.header = s.indexHeader(cut.base ? IndexKind::Base : IndexKind::Delta, id);
  cut.header.base = cut.base ? id : s.chain.baseId;
  cut.header.previous = cut.base ? id : s.chain.lastId;
  cut.header.dense =
      cut.base && uint64_t(s.options.rows) * 4 <= s.writtenRows * 8;
  cut.active = true;
  cut.finishing = cut.finished = cut.dropped = false;
  cut.failure = Status();
  cut.id = id;
  cut.unresolved = count;
  if (!s.options.onlyCuts) {
    cut.pendingPlaces.assign(rows.size(), 0);
    cut.pending = std::move(rows);
  }
  cut.cursor = cut.pendingCursor = 0;
  cut.special.clear();
  std::swap(cut.changed, s.changedRows);
  s.changedCount = 0;
  return {};
}

uint64_t RowStore::cutPending() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->cut.active ? impl->cut.unresolved : 0;
}

void RowStore::Impl::resolvePending(uint32_t row, uint32_t place) {
  if (!options.onlyCuts) {
    auto at = std::lower_bound(cut.pending.begin(), cut.pending.end(), row);
    cut.pendingPlaces[static_cast<size_t>(at - cut.pending.begin())] =
        place + 1;
  }
  cut.pendingMarks.clear(row);
  cut.marks.set(place);
  if (--cut.unresolved == 0)
    changed.notify_all();
}

/// A record that the cut names, whose index file is not there yet, has moved.
void RowStore::Impl::moveCut(uint32_t row, uint32_t from, uint32_t to,
                             bool isCurrent) {
  if (!cut.failure.ok())
    return;
  auto at = std::lower_bound(cut.pending.begin(), cut.pending.end(), row);
  if (at != cut.pending.end() && *at == row) {
    uint32_t &place =
        cut.pendingPlaces[static_cast<size_t>(at - cut.pending.begin())];
    if (place == from + 1)
      place = to + 1;
    return;
  }
  if (row < cut.cursor) {
    cut.special[row] = to;
    return;
  }
  cut.changed.set(row);
  if (!isCurrent)
    cut.special[row] = to;
}

Result<bool> RowStore::Impl::captureStep() {
  std::lock_guard<std::mutex> one(capture);
  std::unique_lock<std::mutex> lock(mutex);
  if (!cut.active || cut.cursor >= options.rows)
    return false;
  if (!cut.failure.ok())
    return cut.failure.clone();
  std::vector<uint32_t> words;
  uint64_t stop = std::min<uint64_t>(options.rows, cut.cursor + stepRows);
  uint64_t taken = 0;
  for (; cut.cursor < stop && taken < stepTaken;
       cut.cursor += 64) { // `changed` is cleared behind us, for the next cut
    uint64_t named = cut.changed.word(cut.cursor / 64);
    cut.changed.clearWord(cut.cursor / 64);
    if (cut.base)
      named = ~uint64_t(0);
    uint64_t last = std::min<uint64_t>(options.rows, cut.cursor + 64);
    for (uint64_t r = cut.cursor; named && r < last; ++r) {
      uint32_t row = static_cast<uint32_t>(r);
      while (cut.pendingCursor < cut.pending.size() &&
             cut.pending[cut.pendingCursor] < row)
        ++cut.pendingCursor;
      bool late = cut.pendingCursor < cut.pending.size() &&
                  cut.pending[cut.pendingCursor] == row;
      uint32_t place = 0;
      if (named >> r % 64 & 1) {
        uint32_t now = locate(row);
        if (!late && now && cut.marks.test(now - 1)) {
          place = now;
        } else if (!cut.special.empty()) {
          auto old = cut.special.find(row);
          if (old != cut.special.end()) {
            place = late ? 0 : old->second + 1;
            cut.special.erase(old);
          }
        }
        ++taken;
      }
      if (cut.header.dense) {
        words.push_back(place);
      } else if (place) {
        words.push_back(row);
        words.push_back(place - 1);
      }
    }
  }
  cut.cursor = std::min<uint64_t>(cut.cursor, options.rows);
  IndexHeader header = cut.header;
  lock.unlock();

  Status status;
  if (!cut.writer) {
    auto made = IndexWriter::create(
        options.folder,
        indexName(options.prefix, static_cast<IndexKind>(header.kind),
                  header.id),
        header);
    if (made.ok())
      cut.writer = std::move(*made);
    else
      status = made.takeStatus();
  }
  if (status.ok())
    status = cut.writer->append(IndexRows, words.data(), words.size());
  if (status.ok())
    return true;
  lock.lock();
  cut.failure = status.clone();
  cut.special.clear();
  changed.notify_all();
  return status;
}

/// The rest of the index file. Cleaning stands still, all rows have a place.
Status RowStore::Impl::writeIndex() {
  for (;;) {
    Result<bool> more = captureStep();
    if (!more.ok())
      return more.takeStatus();
    if (!*more)
      break;
  }
  std::vector<std::pair<uint32_t, uint32_t>> moved;
  {
    std::lock_guard<std::mutex> lock(mutex);
    moved.assign(cut.special.begin(), cut.special.end());
    cut.special.clear();
  }
  std::sort(moved.begin(), moved.end());
  IndexWriter &writer = *cut.writer;
  auto put = [&](IndexSection section, uint32_t a, uint32_t b) {
    uint32_t words[2] = {a, b};
    return writer.append(section, words, 2);
  };
  size_t m = 0;
  for (size_t p = 0; p <= cut.pending.size(); ++p) {
    uint32_t until = p < cut.pending.size() ? cut.pending[p] : UINT32_MAX;
    for (; m < moved.size() && moved[m].first < until; ++m)
      TRC_RETURN_IF_ERROR(put(IndexLate, moved[m].first, moved[m].second));
    if (p < cut.pending.size())
      TRC_RETURN_IF_ERROR(put(IndexLate, until, cut.pendingPlaces[p] - 1));
  }
  for (uint32_t segment = 0; segment < layout.segments(); ++segment)
    if (cut.marks.any(segment))
      TRC_RETURN_IF_ERROR(
          put(IndexSegments, segment, segments[segment].generation));
  TRC_RETURN_IF_ERROR(writer.finish());
  uint64_t bytes = writer.bytes();
  counts.bytesIndex.fetch_add(bytes, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex); // forget() looks at both
  nextChain = cut.base ? IndexChain() : chain;
  nextChain.files.push_back(indexName(
      options.prefix, static_cast<IndexKind>(cut.header.kind), cut.id));
  (cut.base ? nextChain.baseBytes : nextChain.deltaBytes) += bytes;
  nextChain.baseId = cut.header.base;
  nextChain.lastId = cut.id;
  return {};
}

Status RowStore::finishCut(Image &image) {
  Impl &s = *impl;
  Cut &cut = s.cut;
  std::unique_lock<std::mutex> lock(s.mutex);
  if (!cut.active || cut.finishing || cut.finished)
    return Status(TRC_OUT_OF_ORDER,
                  s.name() + ": there is no checkpoint to finish");
  cut.finishing = true;
  s.changed.wait(lock, [&] {
    return cut.unresolved == 0 || cut.dropped || !s.failure.ok() ||
           !cut.failure.ok();
  });
  auto state = [&] {
    if (!s.failure.ok())
      return s.failure.clone();
    if (cut.dropped)
      return Status(TRC_CANCELLED, s.name() + ": checkpoint " +
                                       std::to_string(cut.id) +
                                       " was given up");
    return cut.failure.clone();
  };
  Status status = state();
  if (status.ok()) {
    lock.unlock();
    std::lock_guard<std::mutex> alone(s.durable);
    lock.lock();
    status = s.flushAll(lock, true);
    lock.unlock();
    if (status.ok())
      status = s.writeIndex();
    lock.lock();
  }
  if (status.ok())
    status = state();
  cut.finishing = false;
  if (status.ok()) {
    cut.finished = true;
    image.id = cut.id;
    image.files = s.nextChain.files;
  } else {
    cut.failure = status.clone();
    cut.special.clear();
  }
  s.changed.notify_all();
  return status;
}

/// With the mutex held; the marks are gone already.
void RowStore::Impl::endCut() {
  cut.active = cut.finished = cut.finishing = cut.dropped = false;
  for (uint32_t row : cut.pending)
    cut.pendingMarks.clear(row);
  if (options.onlyCuts && cut.unresolved > 0)
    cut.pendingMarks = RowMarks(options.rows);
  std::vector<uint32_t>().swap(cut.pending);
  std::vector<uint32_t>().swap(cut.pendingPlaces);
  std::unordered_map<uint32_t, uint32_t>().swap(cut.special);
  cut.unresolved = 0;
  cut.failure = Status();
  cut.writer.reset();
}

void RowStore::keepCut() {
  Impl &s = *impl;
  std::vector<std::string> unused;
  {
    std::lock_guard<std::mutex> one(s.capture);
    std::lock_guard<std::mutex> lock(s.mutex);
    if (!s.cut.active || !s.cut.finished)
      return;
    Checkpoint c;
    c.id = s.cut.id;
    c.files = s.nextChain.files;
    c.marks = std::move(s.cut.marks);
    std::vector<std::string> before = std::move(s.chain.files);
    s.chain = std::move(s.nextChain);
    s.nextChain = {};
    s.lastId = c.id;
    s.retained.push_back(std::move(c));
    s.endCut();
    unused = s.unusedFiles(before);
  }
  // What cannot be removed only takes space, until removeLeftovers().
  for (const std::string &name : unused)
    (void)removeFile(s.options.folder + "/" + name);
}

void RowStore::interruptCut() {
  std::lock_guard<std::mutex> lock(impl->mutex);
  Cut &cut = impl->cut;
  if (!cut.active || cut.finished || !cut.failure.ok())
    return;
  cut.failure =
      Status(TRC_CANCELLED, impl->name() + ": checkpoint " +
                                std::to_string(cut.id) + " was interrupted");
  impl->changed.notify_all();
}

void RowStore::dropCut() {
  Impl &s = *impl;
  std::vector<std::string> unused;
  {
    std::unique_lock<std::mutex> lock(s.mutex);
    if (!s.cut.active)
      return;
    s.cut.dropped = true;
    s.changed.notify_all();
    s.changed.wait(lock, [&] { return !s.cut.finishing; });
  }
  {
    std::lock_guard<std::mutex> one(s.capture); // a writer may help capturing
    std::unique_lock<std::mutex> lock(s.mutex);
    if (!s.cut.active)
      return;
    s.release(s.cut.marks, lock);
    s.returnMarks(std::move(s.cut.marks));
    unused = s.nextChain.files;
    unused.insert(unused.end(), s.chain.files.begin(), s.chain.files.end());
    // Which rows have changed since the last image is not known any more.
    s.nextChain = {};
    s.chain = {};
    s.cut.changed.clearAll();
    s.endCut();
    unused = s.unusedFiles(unused);
  }
  for (const std::string &name : unused)
    (void)removeFile(s.options.folder + "/" + name);
}
