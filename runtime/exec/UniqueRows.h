//===- UniqueRows.h - Distinct rows of a batch, numbered --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The distinct rows of one table in order of first appearance, and for each id
// the number of its row. A table has places of its own, so that the few ids of
// a short feature stay in the nearest cache; a table with no more rows than
// places needs no hashing. No branch asks whether a row is new: half the time
// it is.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_EXEC_UNIQUEROWS_H
#define TERRACE_RUNTIME_EXEC_UNIQUEROWS_H

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace trc {

/// Rows of a group are numbered across its tables; one object per table.
class RowNumbers {
public:
  /// Places for `ids` ids of a table of `tableRows` rows, at most.
  static uint64_t placesFor(uint64_t ids, uint64_t tableRows) {
    return std::min(tableRows, 2 * ids);
  }

  RowNumbers() = default;
  /// `places`: placesFor of them, for as long as rows are numbered.
  RowNumbers(uint32_t *places, uint64_t ids, uint64_t tableRows)
      : places(places), count(placesFor(ids, tableRows)),
        dense(tableRows <= 2 * ids) {
    std::memset(places, 0xff, static_cast<size_t>(count) * 4);
  }
  bool begun() const { return places != nullptr; }

  /// x[j] becomes the number of row `base + ids[j]`, 0 <= ids[j] < table rows;
  /// rows[k] is row number k. `known` rows have numbers; returns how many have
  /// now. rows[known + new] is written to, whatever stood there.
  uint32_t number(const int64_t *ids, int64_t n, uint64_t base, uint32_t *rows,
                  uint32_t known, uint32_t *x) const {
    return dense ? byPlace(ids, n, base, rows, known, x)
                 : byHash(ids, n, base, rows, known, x);
  }

private:
  static constexpr uint32_t none = ~0u;
  static constexpr int64_t ahead = 12; // ids, of a prefetch

  uint32_t byPlace(const int64_t *ids, int64_t n, uint64_t base, uint32_t *rows,
                   uint32_t known, uint32_t *x) const {
    for (int64_t j = 0; j < n; ++j) {
      if (j + ahead < n)
        __builtin_prefetch(places + ids[j + ahead], 1);
      uint32_t *place = places + ids[j];
      uint32_t found = *place;
      bool fresh = found == none;
      found = fresh ? known : found;
      *place = found;
      rows[known] = static_cast<uint32_t>(base + static_cast<uint64_t>(ids[j]));
      known += fresh;
      x[j] = found;
    }
    return known;
  }

  uint64_t home(uint64_t row) const {
    uint64_t hash = (row * 0x9e3779b97f4a7c15ull) >> 32;
    return hash * count >> 32;
  }

  uint32_t byHash(const int64_t *ids, int64_t n, uint64_t base, uint32_t *rows,
                  uint32_t known, uint32_t *x) const {
    for (int64_t j = 0; j < n; ++j) {
      if (j + ahead < n)
        __builtin_prefetch(
            places + home(base + static_cast<uint64_t>(ids[j + ahead])), 1);
      uint32_t row =
          static_cast<uint32_t>(base + static_cast<uint64_t>(ids[j]));
      uint64_t e = home(row);
      uint32_t found = places[e];
      // A place that is free is compared with the row that may become the next.
      rows[known] = row;
      while (rows[found == none ? known : found] != row) {
        e = e + 1 == count ? 0 : e + 1;
        found = places[e];
      }
      bool fresh = found == none;
      found = fresh ? known : found;
      places[e] = found;
      known += fresh;
      x[j] = found;
    }
    return known;
  }

  uint32_t *places = nullptr;
  uint64_t count = 0;
  bool dense = false;
};

} // namespace trc

#endif // TERRACE_RUNTIME_EXEC_UNIQUEROWS_H
