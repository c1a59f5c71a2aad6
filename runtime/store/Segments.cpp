//===- Segments.cpp - Which places and segments are in use ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A segment that nothing names any more may still be read by batches that
// looked its places up before. They are counted by two epochs: what is retired
// waits until the epoch before the last change has no reads left.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/RowStoreImpl.h"

using namespace trc;

bool RowStore::Impl::namedApart(uint32_t place) const {
  if (cut.active && cut.marks.test(place))
    return true;
  for (const Checkpoint &c : retained)
    if (c.marks.test(place))
      return true;
  return scanMarks && scanMarks->test(place);
}

void RowStore::Impl::dropLive(uint32_t segment) {
  --segments[segment].live;
  mayRetire(segment);
}

void RowStore::Impl::mayRetire(uint32_t segment) {
  Segment &s = segments[segment];
  if (s.state != Segment::State::Full || s.live > 0 || s.pending > 0 || s.held)
    return;
  s.state = Segment::State::Retired;
  retiredNow.push_back(segment);
  advanceEpoch();
}

void RowStore::Impl::advanceEpoch() {
  while (!retiredNow.empty() || !retiredBefore.empty()) {
    if (epochReads[epoch ^ 1] > 0)
      return;
    for (uint32_t segment : retiredBefore) {
      segments[segment].state = Segment::State::Free;
      ++freeSegments;
    }
    retiredBefore.clear();
    retiredBefore.swap(retiredNow);
    // Nobody is in the other epoch: reads from now on are counted there.
    if (!retiredBefore.empty())
      epoch ^= 1;
    changed.notify_all();
  }
}

uint64_t RowStore::Impl::liveWord(uint32_t segment, uint32_t w,
                                  const PlaceMarks *except) const {
  uint64_t word = 0;
  auto add = [&](const PlaceMarks &marks) {
    if (&marks != except)
      word |= marks.segment(segment)[w];
  };
  add(current);
  if (cut.active)
    add(cut.marks);
  for (const Checkpoint &c : retained)
    add(c.marks);
  if (scanMarks)
    add(*scanMarks);
  return word;
}

uint32_t RowStore::Impl::countLive(uint32_t segment) const {
  uint32_t n = 0;
  for (uint32_t w = 0; w < current.wordsPerSegment(); ++w)
    n += static_cast<uint32_t>(
        __builtin_popcountll(liveWord(segment, w, nullptr)));
  return n;
}

void RowStore::Impl::releaseSegment(PlaceMarks &marks, uint32_t segment) {
  uint64_t *words = marks.segment(segment);
  uint32_t dead = 0;
  for (uint32_t w = 0; w < marks.wordsPerSegment(); ++w) {
    if (words[w])
      dead += static_cast<uint32_t>(
          __builtin_popcountll(words[w] & ~liveWord(segment, w, &marks)));
    words[w] = 0;
  }
  if (dead == 0)
    return;
  segments[segment].live -= dead;
  mayRetire(segment);
}

void RowStore::Impl::release(PlaceMarks &marks,
                             std::unique_lock<std::mutex> &lock) {
  // Cleaning may move a record to a segment that we have passed, and a writer
  // give a row of a cut its place there: through only when none is left.
  for (bool found = true; found;) {
    found = false;
    for (uint32_t s = 0; s < layout.segments(); ++s) {
      if (!marks.any(s))
        continue;
      found = true;
      releaseSegment(marks, s);
      lock.unlock(); // others wait no longer than for one segment
      lock.lock();
    }
  }
  work.notify_all();
}

/// Clear ones, to use again.
void RowStore::Impl::returnMarks(PlaceMarks marks) {
  if (spare.size() + retained.size() <= options.retained)
    spare.push_back(std::move(marks));
}
