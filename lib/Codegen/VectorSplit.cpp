//===- VectorSplit.cpp - A row as vectors and column blocks -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Codegen/VectorSplit.h"

#include "llvm/Support/MathExtras.h"

#include <cassert>

using namespace terrace::codegen;

llvm::SmallVector<Piece> terrace::codegen::splitColumns(int64_t columns,
                                                        int64_t lanes) {
  llvm::SmallVector<Piece> pieces;
  int64_t column = 0;
  for (int64_t width = lanes; width > 0; width /= 2)
    for (; columns - column >= width; column += width)
      pieces.push_back({column, width});
  return pieces;
}

ColumnPlan terrace::codegen::planColumns(int64_t dim, int64_t lanes,
                                         int64_t maxPieces) {
  const int64_t step = 32 / lanes;
  assert(step >= 1 && maxPieces >= step && maxPieces % step == 0);
  ColumnPlan plan;
  llvm::SmallVector<Piece> all = splitColumns(dim, lanes);
  const int64_t pieces = all.size(), full = dim / lanes;
  if (pieces <= maxPieces) {
    plan.tail = std::move(all);
    return plan;
  }
  // The fewest blocks that hold all pieces, then as even as the step allows.
  const int64_t wanted = llvm::divideCeil(pieces, maxPieces);
  int64_t perBlock = std::min<int64_t>(
      maxPieces, llvm::alignTo(llvm::divideCeil(full, wanted), step));
  // What is left may be too much for one tail; smaller blocks leave less.
  auto tailPieces = [&] { return full % perBlock + (pieces - full); };
  while (tailPieces() > maxPieces && perBlock > step)
    perBlock -= step;
  plan.blocks = full / perBlock;
  plan.blockColumns = perBlock * lanes;
  plan.block = splitColumns(plan.blockColumns, lanes);
  plan.tailStart = plan.blocks * plan.blockColumns;
  plan.tail = splitColumns(dim - plan.tailStart, lanes);
  return plan;
}
