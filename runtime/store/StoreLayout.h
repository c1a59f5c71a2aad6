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

#include "runtime/core/HugeArray.h"
#include "runtime/store/StoreGeometry.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace trc {

/// Divides 32-bit numbers by one that is fixed, without the slow instruction.
class Divider {
public:
  explicit Divider(uint32_t by = 1) : by(by), inverse(UINT64_MAX / by + 1) {}
  uint32_t quotient(uint32_t n) const {
    if (by == 1)
      return n;
    return static_cast<uint32_t>((unsigned __int128)inverse * n >> 64);
  }
  uint32_t divisor() const { return by; }

private:
  uint32_t by;
  uint64_t inverse;
};

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
        divide(each), bases(std::move(bases)) {}

  uint32_t segments() const { return geometry.segments; }
  uint32_t perSegment() const { return each; }
  uint32_t recordPitch() const { return pitch; }
  uint64_t places() const { return uint64_t(geometry.segments) * each; }
  uint32_t segmentOf(uint32_t place) const { return divide.quotient(place); }
  uint32_t indexOf(uint32_t place) const {
    return place - divide.quotient(place) * each;
  }
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
    uint32_t segment = segmentOf(place);
    return position(segment, uint64_t(place - segment * each) * pitch);
  }

private:
  StoreGeometry geometry;
  uint32_t pitch = 0, each = 0;
  Divider divide;
  std::vector<uint64_t> bases;
};

/// A mark per place, in whole words per segment.
class PlaceMarks {
public:
  PlaceMarks() = default;
  explicit PlaceMarks(const StoreLayout &layout)
      : divide(layout.perSegment()),
        perSegment((layout.perSegment() + 63) / 64),
        words(uint64_t(layout.segments()) * perSegment) {}

  bool test(uint32_t place) const {
    Bit b = bit(place);
    return words[b.word] & b.mask;
  }
  /// Returns whether it was not set before.
  bool set(uint32_t place) { return setBit(numbers().bitOf(place)); }
  void clear(uint32_t place) {
    Bit b = bit(place);
    words[b.word] &= ~b.mask;
  }
  void clearAll() { std::fill(words.begin(), words.end(), 0); }

  /// All bits, in the order of the places, with gaps between segments.
  uint64_t bits() const { return words.size() * 64; }
  /// What bits are called; for loops, which it leaves no memory to look at.
  struct Numbers {
    Divider divide;
    uint64_t gap; // at the end of a segment
    uint64_t bitOf(uint32_t place) const {
      return place + divide.quotient(place) * gap;
    }
  };
  Numbers numbers() const {
    return {divide, uint64_t(perSegment) * 64 - divide.divisor()};
  }
  uint32_t placeOf(uint64_t bit) const {
    uint64_t segment = bit / 64 / perSegment;
    return static_cast<uint32_t>(segment * divide.divisor() +
                                 (bit - segment * perSegment * 64));
  }
  void prefetchBit(uint64_t bit) const {
    __builtin_prefetch(&words[bit / 64], 1);
  }
  bool setBit(uint64_t bit) {
    uint64_t &word = words[bit / 64], mask = uint64_t(1) << bit % 64;
    bool fresh = !(word & mask);
    word |= mask;
    return fresh;
  }

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
  struct Bit {
    uint64_t word, mask;
  };
  Bit bit(uint32_t place) const {
    uint32_t segment = divide.quotient(place);
    uint32_t index = place - segment * divide.divisor();
    return {uint64_t(segment) * perSegment + index / 64, uint64_t(1)
                                                             << index % 64};
  }

  Divider divide;
  uint32_t perSegment = 0;
  std::vector<uint64_t, ZeroedAllocator<uint64_t>> words;
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
  std::vector<uint64_t, ZeroedAllocator<uint64_t>> words;
};

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_STORELAYOUT_H
