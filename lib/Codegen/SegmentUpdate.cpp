//===- SegmentUpdate.cpp - The backward kernels -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// trc_segment_update_fn of include/terrace-rt/artifact.h, "Backward" and
// "Update" of docs/numerics.md: the contributions of a unique row are summed
// in registers and go straight into the optimizer. Row-wise Adagrad needs the
// whole gradient before it changes any column: where that exceeds the
// registers, it waits in a buffer on the stack.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace terrace::codegen;

namespace {
enum Arg { Rows, Pitch, Slots, Seg, Occ, Coef, Grads, Hp, Begin, End };

class SegmentUpdate {
public:
  explicit SegmentUpdate(KernelBuilder &k) : k(k), b(k.b), loc(k.loc) {}
  void build();

private:
  int64_t dim() const { return k.config.dim; }
  void prefetchRow(Value unique);
  Values gradient(Value row, Value from, Value to, Value first,
                  ArrayRef<Piece> pieces);
  Value rowScale(Value row, ValueRange lanes);
  void updateRow(Value unique);
  void updateRowwise(Value unique);
  Value update(Value w, Value g, Value address);

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  ColumnPlan plan;
  Values hp;        // scalars; null where the kernel does not read one
  Value buffer;     // of the gradient, where it does not fit the registers
  Value lastUnique; // of the range
  Value lastContribution;
};
} // namespace

void SegmentUpdate::build() {
  func::FuncOp function = k.begin("pipppppp" // rows pitch slots seg occ coef
                                  "ii");     // grads hp begin end
  plan = k.plan(1, true);
  const Optimizer optimizer = k.config.optimizer;
  const int count = optimizer == Optimizer::Sgd       ? 2
                    : optimizer == Optimizer::Adagrad ? 3
                    : optimizer == Optimizer::Adam    ? 5
                                                      : 4;
  for (int i = 0; i < count; ++i)
    hp.push_back(i == 1 && !k.config.decay
                     ? Value()
                     : k.loadAt(k.f32(), k.column(k.arg(Hp), i)));
  if (optimizer == Optimizer::RowwiseAdagrad && !plan.isSingleBlock()) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    buffer = LLVM::AllocaOp::create(b, loc, k.arg(Rows).getType(), k.f32(),
                                    k.constant(dim()), /*alignment=*/64);
  }
  lastUnique = k.addi(k.arg(End), -1);
  lastContribution = k.addi(k.loadIndex(k.arg(Seg), k.arg(End)), -1);
  k.forLoop(k.arg(Begin), k.arg(End), {}, [&](Value unique, ValueRange) {
    prefetchRow(unique);
    if (optimizer == Optimizer::RowwiseAdagrad)
      updateRowwise(unique);
    else
      updateRow(unique);
    return Values();
  });
}

void SegmentUpdate::prefetchRow(Value unique) {
  // Rows come from anywhere in the table; their gradients were just written.
  Value next = k.ahead(unique, KernelBuilder::rowsAhead, lastUnique);
  k.prefetch(k.rowAddress(k.arg(Rows), k.arg(Pitch), k.arg(Slots), next),
             dim() + k.config.stateFloats(), /*forWrite=*/true);
}

/// The summed gradient of a block of columns, with weight decay.
Values SegmentUpdate::gradient(Value row, Value from, Value to, Value first,
                               ArrayRef<Piece> pieces) {
  Values sums;
  for (const Piece &p : pieces)
    sums.push_back(k.zero(k.vec(k.f32(), p.width)));
  sums = k.forLoop(from, to, sums, [&](Value contribution, ValueRange in) {
    auto grads = [&](Value at) {
      Value index = arith::MulIOp::create(b, loc, k.loadIndex(k.arg(Occ), at),
                                          k.constant(dim()));
      return k.columnAddress(k.element(k.f32(), k.arg(Grads), index), first);
    };
    k.prefetch(grads(k.ahead(contribution, KernelBuilder::occurrencesAhead,
                             lastContribution)),
               pieces.back().column + pieces.back().width, /*forWrite=*/false);
    Value address = grads(contribution);
    Value coef = k.load(k.f32(), k.arg(Coef), contribution);
    Values out;
    for (auto [p, sum] : llvm::zip_equal(pieces, in)) {
      Type type = sum.getType();
      out.push_back(k.fma(k.splat(coef, type),
                          k.loadAt(type, k.column(address, p.column)), sum));
    }
    return out;
  });
  if (!k.config.decay)
    return sums;
  Value weights = k.columnAddress(row, first);
  for (auto [p, sum] : llvm::zip_equal(pieces, sums)) {
    Type type = sum.getType();
    Value w = k.loadAt(type, k.column(weights, p.column));
    sum = k.fma(k.splat(hp[1], type), w, sum);
  }
  return sums;
}

/// New weights of one piece; `address` is that of its old ones.
Value SegmentUpdate::update(Value w, Value g, Value address) {
  Type type = w.getType();
  auto hyper = [&](int i) { return k.splat(hp[i], type); };
  switch (k.config.optimizer) {
  case Optimizer::Sgd:
    return k.fma(hyper(0), g, w);
  case Optimizer::Adagrad: {
    Value at = k.column(address, dim());
    Value s = k.fma(g, g, k.loadAt(type, at));
    k.storeAt(s, at);
    Value denominator = k.addf(k.sqrt(s), hyper(2));
    return k.fma(hyper(0), k.divf(g, denominator), w);
  }
  case Optimizer::Adam: {
    Value atM = k.column(address, dim()), atV = k.column(address, 2 * dim());
    Value m = k.loadAt(type, atM), v = k.loadAt(type, atV);
    m = k.fma(hyper(3), arith::SubFOp::create(b, loc, g, m), m);
    v = k.fma(hyper(4), k.fma(g, g, k.negf(v)), v);
    k.storeAt(m, atM);
    k.storeAt(v, atV);
    Value denominator = k.addf(k.sqrt(v), hyper(2));
    return k.fma(hyper(0), k.divf(m, denominator), w);
  }
  case Optimizer::RowwiseAdagrad:
    break;
  }
  llvm_unreachable("row-wise Adagrad has its own path");
}

void SegmentUpdate::updateRow(Value unique) {
  Value row = k.rowAddress(k.arg(Rows), k.arg(Pitch), k.arg(Slots), unique);
  Value from = k.loadIndex(k.arg(Seg), unique);
  Value to = k.loadIndex(k.arg(Seg), k.addi(unique, 1));
  k.forBlocks(plan, {}, [&](Value first, ArrayRef<Piece> pieces, ValueRange) {
    Values g = gradient(row, from, to, first, pieces);
    Value weights = k.columnAddress(row, first);
    for (auto [p, sum] : llvm::zip_equal(pieces, g)) {
      Value address = k.column(weights, p.column);
      Value w = k.loadAt(sum.getType(), address);
      k.storeAt(update(w, sum, address), address);
    }
    return Values();
  });
}

/// Updates the row's state; returns -lr / (sqrt(S) + eps).
Value SegmentUpdate::rowScale(Value row, ValueRange lanes) {
  Value mean = k.divf(RowSum(k).finish(lanes), hp[3]);
  Value at = k.column(row, dim());
  Value s = k.addf(k.loadAt(k.f32(), at), mean);
  k.storeAt(s, at);
  return k.negf(k.divf(hp[0], k.addf(k.sqrt(s), hp[2])));
}

void SegmentUpdate::updateRowwise(Value unique) {
  Value row = k.rowAddress(k.arg(Rows), k.arg(Pitch), k.arg(Slots), unique);
  Value from = k.loadIndex(k.arg(Seg), unique);
  Value to = k.loadIndex(k.arg(Seg), k.addi(unique, 1));
  RowSum rowSum(k);

  Values whole; // the gradient, where it fits the registers
  Values lanes = k.forBlocks(
      plan, rowSum.init(),
      [&](Value first, ArrayRef<Piece> pieces, ValueRange in) {
        Values g = gradient(row, from, to, first, pieces);
        if (plan.isSingleBlock())
          whole = g;
        else
          for (auto [p, sum] : llvm::zip_equal(pieces, g))
            k.storeAt(sum, k.column(k.columnAddress(buffer, first), p.column));
        return rowSum.add(pieces, g, in);
      });

  Value scale = rowScale(row, lanes);
  k.forBlocks(plan, {}, [&](Value first, ArrayRef<Piece> pieces, ValueRange) {
    for (auto [i, p] : llvm::enumerate(pieces)) {
      Type type = k.vec(k.f32(), p.width);
      Value address = k.column(k.columnAddress(row, first), p.column);
      Value g = plan.isSingleBlock()
                    ? whole[i]
                    : k.loadAt(type, k.column(k.columnAddress(buffer, first),
                                              p.column));
      Value w = k.loadAt(type, address);
      k.storeAt(k.fma(k.splat(scale, type), g, w), address);
    }
    return Values();
  });
}

void terrace::codegen::buildSegmentUpdate(KernelBuilder &k) {
  SegmentUpdate(k).build();
}
