//===- MarkBuckets.h - Many marks in random order ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The marks of a large store exceed the caches of a CPU, and an image names its
// places in no order. So what is to be marked is gathered first, apart for each
// part of the marks that a CPU's own cache holds, and a part is marked when
// there is much for it. Several threads gather, each for itself; a part is
// marked by one at a time.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_MARKBUCKETS_H
#define TERRACE_RUNTIME_STORE_MARKBUCKETS_H

#include "runtime/store/StoreLayout.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace trc {

/// The parts of some marks, for all threads.
class MarkParts {
public:
  explicit MarkParts(PlaceMarks &marks) : marks(marks) {
    // 256 KiB of marks, or more where that made too many parts: what gathers
    // for them should not exceed a cache, either.
    constexpr uint32_t bitsOfPart = 21, most = 128;
    for (shift = bitsOfPart; (marks.bits() >> shift) >= most;)
      ++shift;
    parts = static_cast<uint32_t>(marks.bits() >> shift) + 1;
    locks = std::make_unique<std::mutex[]>(parts);
  }

private:
  friend class MarkBuckets;
  PlaceMarks &marks;
  std::unique_ptr<std::mutex[]> locks;
  uint32_t shift, parts;
};

/// Of one thread.
class MarkBuckets {
public:
  static constexpr uint64_t none = UINT64_MAX;

  /// Gathers up to `entries` marks, 4 bytes each, and some more for few parts.
  MarkBuckets(MarkParts &of, uint64_t entries) : of(of) {
    for (each = line; each * 2 * of.parts <= entries;)
      each *= 2;
    gathered = Gathered(of.parts * each);
    for (uint64_t part = 0; part < of.parts; ++part)
      ends.push_back(part * each);
  }

  /// Marks places, sooner or later; they come plus one, and 0 is none. Gives a
  /// bit of the marks that was to be set twice, or `none`.
  uint64_t add(const uint32_t *places, uint64_t count) {
    const PlaceMarks::Numbers number = of.marks.numbers();
    const uint32_t shift = of.shift;
    const uint64_t mask = (uint64_t(1) << shift) - 1, full = each - 1;
    uint32_t *const to = gathered.data();
    uint64_t *const next = ends.data();
    for (uint64_t i = 0; i < count; ++i) {
      if (!places[i])
        continue;
      uint64_t bit = number.bitOf(places[i] - 1);
      uint64_t part = bit >> shift, at = next[part]++;
      to[at] = static_cast<uint32_t>(bit & mask);
      if (at % line != line - 1)
        continue;
      // More streams than a CPU follows by itself.
      __builtin_prefetch(to + at + line + 1, 1);
      if ((at & full) == full)
        if (uint64_t twice = mark(part); twice != none)
          return twice;
    }
    return none;
  }
  /// Sets all that is left.
  uint64_t finish() {
    uint64_t twice = none;
    for (uint64_t part = 0; part < of.parts; ++part)
      twice = std::min(twice, mark(part));
    return twice;
  }

private:
  uint64_t mark(uint64_t part) {
    uint64_t twice = none, base = part << of.shift;
    const uint32_t *entry = &gathered[part * each];
    const uint64_t count = ends[part] - part * each;
    std::lock_guard<std::mutex> lock(of.locks[part]);
    for (uint64_t i = 0; i < count; ++i) {
      if (i + ahead < count)
        of.marks.prefetchBit(base + entry[i + ahead]);
      if (!of.marks.setBit(base + entry[i]))
        twice = std::min(twice, base + entry[i]);
    }
    ends[part] = part * each;
    return twice;
  }

  static constexpr uint64_t line = 16, ahead = 32; // entries
  MarkParts &of;
  uint64_t each; // of a part; a power of two, whole lines
  using Gathered = std::vector<uint32_t, ZeroedAllocator<uint32_t>>;
  Gathered gathered;
  std::vector<uint64_t> ends;
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_MARKBUCKETS_H
