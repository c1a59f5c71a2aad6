//===- Quantize.h - Rows of whole numbers with a scale ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "Storage: tables in int8 and int4" of docs/numerics.md: a row is a scale and
// a bias, both f16, and one whole number per column. Rows are quantised when a
// serving session takes them from a trained state, and are never updated.
// Thread-safe.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_QUANTIZE_H
#define TERRACE_RUNTIME_CORE_QUANTIZE_H

#include <cstdint>
#include <string>

namespace trc {

/// Scale and bias, in front of a row's numbers.
constexpr int64_t rowScaleBytes = 4;

/// What keeps the row from being stored with `bits` (8 or 4) to a column:
/// "column 3 is nan"; empty where nothing does.
std::string whyNotQuantized(const float *row, int64_t dim, int bits);
/// Of a row that whyNotQuantized let pass. Writes rowScaleBytes and the
/// numbers, without any bytes behind them.
void quantizeRow(const float *row, int64_t dim, int bits, char *to);
void dequantizeRow(const char *from, int64_t dim, int bits, float *to);

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_QUANTIZE_H
