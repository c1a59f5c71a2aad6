//===- VectorSplit.h - A row as vectors and column blocks -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any dimension is a sum of powers of two: vectors of 130 floats spill badly,
// 128 + 2 do not. Rows wider than the register file are cut into blocks of
// columns, so that the accumulators of a block stay in registers. Neither
// choice changes a bit of any result: a column never meets another one.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CODEGEN_VECTORSPLIT_H
#define TERRACE_CODEGEN_VECTORSPLIT_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace terrace::codegen {

/// Columns [column, column + width) of a block; width is a power of two and
/// column a multiple of it.
struct Piece {
  int64_t column;
  int64_t width;
};

/// `columns` as vectors of `lanes` floats, then ever smaller powers of two.
llvm::SmallVector<Piece> splitColumns(int64_t columns, int64_t lanes);

/// A row as `blocks` equal blocks of `blockColumns`, then a tail.
struct ColumnPlan {
  int64_t blocks = 0; // 0 where the whole row is the tail
  int64_t blockColumns = 0;
  llvm::SmallVector<Piece> block; // columns count from the block's first
  int64_t tailStart = 0;
  llvm::SmallVector<Piece> tail; // empty where the blocks cover the row

  bool isSingleBlock() const { return blocks == 0; }
};

/// At most `maxPieces` vectors to a block; maxPieces is a multiple of
/// 32 / lanes, and blocks start at multiples of 32 columns (the virtual lanes
/// of docs/numerics.md). A tail may have a few pieces more where maxPieces is
/// as small as that. Blocks are balanced: each one walks all rows again.
ColumnPlan planColumns(int64_t dim, int64_t lanes, int64_t maxPieces);

} // namespace terrace::codegen

#endif // TERRACE_CODEGEN_VECTORSPLIT_H
