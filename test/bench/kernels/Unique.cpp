//===- Unique.cpp - Distinct rows of a batch, and of whom else ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's numbering of rows beside absl::flat_hash_map over the same ids:
// one map for each table and one for all, each with room for its ids from the
// start; the script shows the better one. Called from unique.py.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/UniqueRows.h"

#ifdef TERRACE_BENCH_ABSL
#include <absl/container/flat_hash_map.h>
#endif

extern "C" {

/// Table t has ids begins[t] .. begins[t + 1] - 1 and `tableRows[t]` rows. Rows
/// get numbers in order of first appearance; `places`: two to an id.
int64_t unique_runtime(const int64_t *ids, const int64_t *begins,
                       const int64_t *tableRows, int64_t tables, uint32_t *rows,
                       uint32_t *x, uint32_t *places) {
  uint32_t known = 0;
  uint64_t base = 0;
  for (int64_t t = 0; t < tables; ++t) {
    const int64_t n = begins[t + 1] - begins[t];
    const uint64_t own = static_cast<uint64_t>(tableRows[t]);
    trc::RowNumbers numbers(places, static_cast<uint64_t>(n), own);
    known =
        numbers.number(ids + begins[t], n, base, rows, known, x + begins[t]);
    places += trc::RowNumbers::placesFor(static_cast<uint64_t>(n), own);
    base += own;
  }
  return known;
}

#ifdef TERRACE_BENCH_ABSL
/// The same; -1 where absl was not there to build with.
int64_t unique_absl(const int64_t *ids, const int64_t *begins,
                    const int64_t *tableRows, int64_t tables, uint32_t *rows,
                    uint32_t *x, int64_t together) {
  uint32_t known = 0;
  int64_t base = 0;
  absl::flat_hash_map<int64_t, uint32_t> all;
  if (together)
    all.reserve(static_cast<size_t>(begins[tables]));
  for (int64_t t = 0; t < tables; ++t) {
    absl::flat_hash_map<int64_t, uint32_t> own;
    if (!together)
      own.reserve(static_cast<size_t>(begins[t + 1] - begins[t]));
    auto &map = together ? all : own;
    for (int64_t j = begins[t]; j < begins[t + 1]; ++j) {
      auto [found, fresh] = map.try_emplace(base + ids[j], known);
      if (fresh)
        rows[known++] = static_cast<uint32_t>(base + ids[j]);
      x[j] = found->second;
    }
    base += tableRows[t];
  }
  return known;
}
#else
int64_t unique_absl(const int64_t *, const int64_t *, const int64_t *, int64_t,
                    uint32_t *, uint32_t *, int64_t) {
  return -1;
}
#endif

} // extern "C"
