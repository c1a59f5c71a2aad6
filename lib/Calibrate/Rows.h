//===- Rows.h - Sizes of a calibration, and batches for them ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Internal to this folder. Seeds are fixed, so that two calibrations ask for
// the same rows.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CALIBRATE_ROWS_H
#define TERRACE_CALIBRATE_ROWS_H

#include "Calibrate/Trial.h"

#include <algorithm>

namespace terrace::calibrate {

inline constexpr int64_t kBag = 20; // ids of a long bag
inline constexpr int64_t kMiB = int64_t(1) << 20;

/// Bytes of a row of `dim` f32 columns with `state` floats of state.
inline int64_t slotBytes(int64_t dim, int64_t state) {
  return (dim + state) * 4;
}
/// Bags of one id that make 32 MiB of outputs, and no more than 256 Ki.
inline int64_t shortBags(int64_t dim) {
  return std::min<int64_t>(256 << 10, 32 * kMiB / (4 * dim));
}
/// Ids in long bags whose rows take `bytes`, and no more than a million.
inline int64_t idsOf(double bytes, int64_t slot) {
  return std::clamp<int64_t>(int64_t(bytes) / slot, 64, 1 << 20);
}

/// `ids` uniform draws of rows 0 .. rows - 1 in bags of `bag`, `batches` times.
std::vector<Batch> uniformBatches(int batches, int64_t ids, int64_t bag,
                                  int64_t rows, uint64_t seed);
/// As many distinct rows, in no order, other ones in each batch as far as there
/// are others.
std::vector<Batch> distinctBatches(int batches, int64_t ids, int64_t bag,
                                   int64_t rows, uint64_t seed);
double uniqueIn(const Batch &batch);

} // namespace terrace::calibrate

#endif // TERRACE_CALIBRATE_ROWS_H
