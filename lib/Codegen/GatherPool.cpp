//===- GatherPool.cpp - The forward kernels ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// trc_gather_pool_fn and trc_gather_rows_fn of include/terrace-rt/artifact.h,
// "Forward" of docs/numerics.md. For each bag and block of columns the
// occurrences are walked once with all columns of the block in registers.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace terrace::codegen;

namespace {
enum Arg { Rows, Pitch, Slots, X, Offsets, Weights, Out, Winner, Begin, End };
constexpr Arg Ids = Slots; // of a direct kernel, which has no x

class GatherPool {
public:
  explicit GatherPool(KernelBuilder &k) : k(k), b(k.b), loc(k.loc) {}
  void build();

private:
  int64_t dim() const { return k.config.dim; }
  bool isWeighted() const { return k.config.weighted; }
  Value arg(Arg a) {
    return k.arg(unsigned(a) - (k.config.direct && a > Slots ? 1 : 0));
  }
  Value row(Value occurrence);
  void prefetchRow(Value occurrence, Value firstColumn, ArrayRef<Piece> pieces);
  Values loadPieces(Value row, Value first, ArrayRef<Piece> pieces);
  void copyRows();
  void sumBag(Value bag, Value from, Value to);
  void maxBag(Value bag, Value from, Value to);
  Value divisor(Value count, Value normalizer);

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  Value last; // occurrence of the whole range
};
} // namespace

static int64_t columnsOf(ArrayRef<Piece> pieces) {
  return pieces.back().column + pieces.back().width;
}

Value GatherPool::row(Value occurrence) {
  if (k.config.direct)
    return k.byteOffset(
        arg(Rows),
        arith::MulIOp::create(b, loc, k.load(k.i64(), arg(Ids), occurrence),
                              arg(Pitch)));
  return k.rowAddress(arg(Rows), arg(Pitch), arg(Slots),
                      k.loadIndex(arg(X), occurrence));
}

/// The same block of columns of a row some occurrences ahead, also across
/// bags: bags are short.
void GatherPool::prefetchRow(Value occurrence, Value firstColumn,
                             ArrayRef<Piece> pieces) {
  Value next =
      k.ahead(occurrence,
              KernelBuilder::lookupsAhead(4 * k.config.weightWords()), last);
  // The first block's line holds the scale too.
  int64_t bytes = k.config.bytesOf(columnsOf(pieces));
  Value address = row(next);
  if (firstColumn)
    address = k.weightAddress(address, firstColumn, 0);
  else
    bytes += k.config.headBytes();
  k.prefetch(address, (bytes + 3) / 4, /*forWrite=*/false);
}

Values GatherPool::loadPieces(Value row, Value first, ArrayRef<Piece> pieces) {
  Values values;
  KernelBuilder::RowScale scale = k.loadScale(row);
  for (const Piece &p : pieces)
    values.push_back(
        k.loadWeights(k.weightAddress(row, first, p.column), p.width, scale));
  return values;
}

void GatherPool::build() {
  // rows pitch, slots x or ids, offsets weights out winner, begin end
  k.begin(k.config.direct ? "pipppppii" : "pippppppii");
  if (k.config.pooling == Pooling::None) {
    last = k.addi(arg(End), -1);
    return copyRows();
  }
  last = k.addi(k.loadIndex(arg(Offsets), arg(End)), -1);
  k.forLoop(arg(Begin), arg(End), {}, [&](Value bag, ValueRange) {
    Value from = k.loadIndex(arg(Offsets), bag);
    Value to = k.loadIndex(arg(Offsets), k.addi(bag, 1));
    if (k.config.pooling == Pooling::Max)
      maxBag(bag, from, to);
    else
      sumBag(bag, from, to);
    return Values();
  });
}

void GatherPool::copyRows() {
  ColumnPlan plan = k.plan(1, false);
  k.forLoop(arg(Begin), arg(End), {}, [&](Value occurrence, ValueRange) {
    Value source = row(occurrence);
    Value target =
        k.element(k.f32(), arg(Out),
                  arith::MulIOp::create(b, loc, occurrence, k.constant(dim())));
    k.forBlocks(plan, {}, [&](Value first, ArrayRef<Piece> pieces, ValueRange) {
      prefetchRow(occurrence, first, pieces);
      Value to = k.columnAddress(target, first);
      Values values = loadPieces(source, first, pieces);
      for (auto [p, value] : llvm::zip_equal(pieces, values))
        k.storeAt(value, k.column(to, p.column));
      return Values();
    });
    return Values();
  });
}

/// What the sum of a bag is divided by; null for sum. 1 for an empty bag, so
/// that its +0 stays +0.
Value GatherPool::divisor(Value count, Value normalizer) {
  Pooling pooling = k.config.pooling;
  if (pooling == Pooling::Sum)
    return Value();
  Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1.0f));
  Value value = normalizer
                    ? normalizer
                    : Value(arith::SIToFPOp::create(b, loc, k.f32(), count));
  if (pooling == Pooling::Sqrtn)
    value = k.sqrt(value);
  Value empty = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count,
                                      k.constant(0));
  return arith::SelectOp::create(b, loc, empty, one, value);
}

void GatherPool::sumBag(Value bag, Value from, Value to) {
  Pooling pooling = k.config.pooling;
  const bool normalized = isWeighted() && (pooling == Pooling::WeightedMean ||
                                           pooling == Pooling::Sqrtn);
  // Also for quantised rows, though scale and bias then push some accumulators
  // of v3 onto the stack: another block would walk the rows of a table that
  // does not fit the caches a second time (dim 128: 27 and 52 M rows/s).
  ColumnPlan plan = k.plan(1, isWeighted());
  Value count = arith::SubIOp::create(b, loc, to, from);
  Value target = k.element(
      k.f32(), arg(Out), arith::MulIOp::create(b, loc, bag, k.constant(dim())));
  k.forBlocks(plan, {}, [&](Value first, ArrayRef<Piece> pieces, ValueRange) {
    Values sums;
    for (const Piece &p : pieces)
      sums.push_back(k.zero(k.vec(k.f32(), p.width)));
    if (normalized) // the sum of w or w^2, the same in each block
      sums.push_back(k.zero(k.f32()));

    sums = k.forLoop(from, to, sums, [&](Value occurrence, ValueRange in) {
      prefetchRow(occurrence, first, pieces);
      Value source = row(occurrence);
      KernelBuilder::RowScale scale = k.loadScale(source);
      Value weight;
      if (isWeighted())
        weight = k.load(k.f32(), arg(Weights), occurrence);
      Values out;
      for (auto [p, sum] : llvm::zip(pieces, in)) {
        Value x = k.loadWeights(k.weightAddress(source, first, p.column),
                                p.width, scale);
        out.push_back(weight ? k.fma(k.splat(weight, x.getType()), x, sum)
                             : k.addf(sum, x));
      }
      if (normalized)
        out.push_back(pooling == Pooling::Sqrtn
                          ? k.fma(weight, weight, in.back())
                          : k.addf(in.back(), weight));
      return out;
    });

    Value by = divisor(count, normalized ? sums.back() : Value());
    Value to = k.columnAddress(target, first);
    for (auto [p, sum] : llvm::zip(pieces, sums))
      k.storeAt(by ? k.divf(sum, k.splat(by, sum.getType())) : sum,
                k.column(to, p.column));
    return Values();
  });
}

void GatherPool::maxBag(Value bag, Value from, Value to) {
  ColumnPlan plan = k.plan(2, true); // the value and its winner
  Value some =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, from, to);
  Value index = arith::MulIOp::create(b, loc, bag, k.constant(dim()));
  Value target = k.element(k.f32(), arg(Out), index);
  Value winners = k.element(k.i32(), arg(Winner), index);
  k.forBlocks(plan, {}, [&](Value first, ArrayRef<Piece> pieces, ValueRange) {
    const size_t n = pieces.size();
    SmallVector<Type> types;
    for (const Piece &p : pieces)
      types.push_back(k.vec(k.f32(), p.width));
    for (const Piece &p : pieces)
      types.push_back(k.vec(k.i32(), p.width));

    auto branch = scf::IfOp::create(b, loc, types, some, /*else=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.elseBlock());
      Values empty;
      for (auto [i, type] : llvm::enumerate(types))
        empty.push_back(i < n ? k.zero(type)
                              : k.splat(k.constantI32(-1), type));
      scf::YieldOp::create(b, loc, empty);

      b.setInsertionPointToStart(branch.thenBlock());
      prefetchRow(from, first, pieces);
      Values best = loadPieces(row(from), first, pieces);
      for (size_t i = n; i < 2 * n; ++i)
        best.push_back(k.zero(types[i]));
      best = k.forLoop(
          k.addi(from, 1), to, best, [&](Value occurrence, ValueRange in) {
            prefetchRow(occurrence, first, pieces);
            Values row32 = loadPieces(row(occurrence), first, pieces);
            Value position = arith::TruncIOp::create(
                b, loc, k.i32(),
                arith::SubIOp::create(b, loc, occurrence, from));
            Values values, places;
            for (size_t i = 0; i < n; ++i) {
              Value wins = arith::CmpFOp::create(
                  b, loc, arith::CmpFPredicate::OGT, row32[i], in[i]);
              values.push_back(
                  arith::SelectOp::create(b, loc, wins, row32[i], in[i]));
              places.push_back(arith::SelectOp::create(
                  b, loc, wins, k.splat(position, types[n + i]), in[n + i]));
            }
            values.append(places);
            return values;
          });
      scf::YieldOp::create(b, loc, best);
    }
    Value out = k.columnAddress(target, first);
    Value place = k.columnAddress(winners, first);
    for (size_t i = 0; i < n; ++i) {
      k.storeAt(branch.getResult(i), k.column(out, pieces[i].column));
      k.storeAt(branch.getResult(n + i), k.column(place, pieces[i].column));
    }
    return Values();
  });
}

void terrace::codegen::buildGatherPool(KernelBuilder &k) {
  GatherPool(k).build();
}
