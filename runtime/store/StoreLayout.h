//===- StoreLayout.h - Where records lie ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Place numbers, and marks on places. Place = segment * recordsPerSegment +
// index; segments are dealt round robin over the extents. Pure.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_STORELAYOUT_H
#define TERRACE_RUNTIME_STORE_STORELAYOUT_H

#include "runtime/store/StoreGeometry.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace trc {

class StoreLayout {
public:
  struct Position {
    uint32_t extent;
    uint64_t offset; // in the file
  };

  StoreLayout() = default;
  StoreLayout(const StoreGeometry &geometry, uint32_t storeBytes,
              std::vector<uint64_t> bases)
      : geometry(geometry), pitch(storeBytes),
        each(static_cast<uint32_t>(geometry.recordsPerSegment(storeBytes))),
        bases(std::move(bases)) {}

  uint32_t segments() const { return geometry.segments; }
  uint32_t perSegment() const { return each; }
  uint64_t places() const { return uint64_t(geometry.segments) * each; }
  uint32_t segmentOf(uint32_t place) const { return place / each; }
  uint32_t indexOf(uint32_t place) const { return place % each; }
  uint32_t place(uint32_t segment, uint32_t index) const {
    return segment * each + index;
  }
  /// Byte `at` of a segment.
  Position position(uint32_t segment, uint64_t at) const {
    uint32_t n = static_cast<uint32_t>(bases.size());
    return {segment % n, bases[segment % n] + storeSector +
                             segment / n * geometry.segmentBytes + at};
  }
  Position positionOf(uint32_t place) const {
    return position(place / each, uint64_t(place % each) * pitch);
  }

private:
  StoreGeometry geometry;
  uint32_t pitch = 0, each = 0;
  std::vector<uint64_t> bases;
};

/// A mark per place, in whole words per segment.
class PlaceMarks {
public:
  PlaceMarks() = default;
  explicit PlaceMarks(const StoreLayout &layout)
      : each(layout.perSegment()), perSegment((each + 63) / 64),
        words(uint64_t(layout.segments()) * perSegment) {}

  bool test(uint32_t place) const { return *word(place) >> bit(place) & 1; }
  void set(uint32_t place) { *word(place) |= uint64_t(1) << bit(place); }
  void clear(uint32_t place) { *word(place) &= ~(uint64_t(1) << bit(place)); }
  void clearAll() { std::fill(words.begin(), words.end(), 0); }

  uint32_t wordsPerSegment() const { return perSegment; }
  uint64_t *segment(uint32_t s) { return &words[uint64_t(s) * perSegment]; }
  const uint64_t *segment(uint32_t s) const {
    return &words[uint64_t(s) * perSegment];
  }
  bool any(uint32_t s) const {
    const uint64_t *w = segment(s);
    return std::any_of(w, w + perSegment, [](uint64_t x) { return x != 0; });
  }

private:
  uint32_t bit(uint32_t place) const { return place % each % 64; }
  uint64_t *word(uint32_t place) {
    return &words[uint64_t(place / each) * perSegment + place % each / 64];
  }
  const uint64_t *word(uint32_t place) const {
    return const_cast<PlaceMarks *>(this)->word(place);
  }

  uint32_t each = 1, perSegment = 0;
  std::vector<uint64_t> words;
};

/// A mark per row.
class RowMarks {
public:
  RowMarks() = default;
  explicit RowMarks(uint64_t rows) : words((rows + 63) / 64) {}
  bool test(uint32_t row) const { return words[row / 64] >> row % 64 & 1; }
  /// Returns whether it was not set before.
  bool set(uint32_t row) {
    uint64_t &w = words[row / 64], bit = uint64_t(1) << row % 64;
    bool fresh = !(w & bit);
    w |= bit;
    return fresh;
  }
  void clear(uint32_t row) { words[row / 64] &= ~(uint64_t(1) << row % 64); }
  void clearAll() { std::fill(words.begin(), words.end(), 0); }
  /// Rows [64 i, 64 i + 64).
  uint64_t word(uint64_t i) const { return words[i]; }
  void clearWord(uint64_t i) { words[i] = 0; }

private:
  std::vector<uint64_t> words;
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_STORELAYOUT_H
