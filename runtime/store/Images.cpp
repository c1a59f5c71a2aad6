//===- Images.cpp - Retained checkpoints ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which images a store retains and which files they take: taking them over at
// open (ImageLoad.cpp reads them), and letting them go.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStoreImpl.h"

#include <algorithm>
#include <new>

using namespace trc;

namespace {
/// Numbers of moves files that leave room to count on.
constexpr uint64_t largestNumber = uint64_t(1) << 62;
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
