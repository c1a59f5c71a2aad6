//===- RowSum.cpp - Sum of squares over 32 virtual lanes --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row-wise Adagrad needs the one sum that crosses columns. docs/numerics.md
// fixes its order for every vector width: 32 lanes, then a fold. Here the
// lanes are 32 / L vectors of L. Missing columns are squared as +0, which is
// exact: a lane is never -0.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace terrace::codegen;

Value RowSum::shuffle(Value x, Value y, ArrayRef<int64_t> mask) {
  return vector::ShuffleOp::create(k.b, k.loc, x, y, mask);
}

Values RowSum::init() {
  const int64_t lanes = k.image.lanes;
  return Values(32 / lanes, k.zero(k.vec(k.f32(), lanes)));
}

Values RowSum::add(ArrayRef<Piece> pieces, ValueRange values,
                   ValueRange lanes) {
  const int64_t width = k.image.lanes;
  Values sums(lanes);
  auto addTo = [&](int64_t group, Value x) {
    sums[group] = k.fma(x, x, sums[group]);
  };
  // The pieces below the full width lie in one vector, the row's last.
  Value rest;
  int64_t restGroup = 0;
  for (auto [p, value] : llvm::zip_equal(pieces, values)) {
    const int64_t group = p.column % 32 / width;
    if (p.width == width) {
      addTo(group, value);
      continue;
    }
    const int64_t offset = p.column % width;
    SmallVector<int64_t> widen(width, -1), merge;
    for (int64_t i = 0; i < width; ++i) {
      bool inside = i >= offset && i < offset + p.width;
      if (inside)
        widen[i] = i - offset;
      merge.push_back(inside ? width + i : i);
    }
    if (!rest)
      rest = k.zero(k.vec(k.f32(), width));
    rest = shuffle(rest, shuffle(value, value, widen), merge);
    restGroup = group;
  }
  if (rest)
    addTo(restGroup, rest);
  return sums;
}

Value RowSum::finish(ValueRange lanes) {
  Values sums(lanes);
  for (; sums.size() > 1; sums.resize(sums.size() / 2))
    for (size_t i = 0, half = sums.size() / 2; i < half; ++i)
      sums[i] = k.addf(sums[i], sums[i + half]);
  Value sum = sums.front();
  for (int64_t half = k.image.lanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(half + i);
    }
    sum = k.addf(shuffle(sum, sum, low), shuffle(sum, sum, high));
  }
  return vector::ExtractOp::create(k.b, k.loc, sum, 0);
}
