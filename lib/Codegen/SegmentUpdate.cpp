//===- SegmentUpdate.cpp - The backward kernels -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// trc_segment_update_fn of include/terrace-rt/artifact.h, "Backward" and
// "Update" of docs/numerics.md: the contributions of a unique row are summed
// in registers and go straight into the optimizer. Row-wise optimizers, LAMB
// and clipping need the whole gradient before they change any column: where
// that exceeds the registers, it waits in a buffer on the stack.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace terrace::codegen;

namespace {
enum Arg { Rows, Pitch, Slots, Seg, Occ, Coef, Grads, Hp, Seeds, Begin, End };

/// Places of hp that do not depend on the optimizer (docs/artifact.md).
enum CommonHp { DecayHp = 1, KeepHp = 8, ClipHp = 9 };

class SegmentUpdate {
public:
  explicit SegmentUpdate(KernelBuilder &k) : k(k), b(k.b), loc(k.loc) {}
  void build();

private:
  int64_t dim() const { return k.config.dim; }
  void prefetchRow(Value unique);
  Values gradient(Value from, Value to, Value first, ArrayRef<Piece> pieces);
  Value decayed(Value g, Value first, const Piece &piece);
  Value updated(Value w, Value g, Value first, const Piece &piece);
  Value ftrl(Value w, Value g, Value first, const Piece &piece);
  void updateColumns(Value first, ArrayRef<Piece> pieces, ValueRange g);
  void updateRow(Value from, Value to);
  void updateWholeRow(Value from, Value to);
  Values summed(Value first, ArrayRef<Piece> pieces, ValueRange g,
                ValueRange lanes);
  Value moment(Value g, Value first, const Piece &piece);
  Value direction(Value m, Value g, Value w, Value first, const Piece &piece);
  Value clipFactor(ValueRange lanes);
  Value rowScale(ValueRange lanes);

  void hold(Value first, ArrayRef<Piece> pieces, ValueRange values);
  Values held(Value first, ArrayRef<Piece> pieces);
  Value loadWeight(Value first, const Piece &piece) {
    return k.loadWeights(k.weightAddress(row, first, piece.column),
                         piece.width);
  }
  /// The weight that a formula starts from: decoupled decay comes first.
  Value startWeight(Value first, const Piece &piece);
  void storeWeight(Value w, Value first, const Piece &piece);
  Value noise(Value first, const Piece &piece);
  /// Of the state's part that starts `floats` behind the weights.
  Value stateAddress(Value first, const Piece &piece, int64_t floats) {
    return k.column(k.columnAddress(row, first),
                    k.config.weightWords() + floats + piece.column);
  }
  Value splatHp(int i, Type type) { return k.splat(hp[i], type); }

  KernelBuilder &k;
  OpBuilder &b;
  Location loc;
  ColumnPlan plan;
  SmallVector<Value, 10> hp; // scalars; null where the kernel reads none
  Value row;                 // address of the one that is updated
  Value seed[2];             // of its rounding: the low and the high word
  Values whole;              // of a row that waits in registers
  Value buffer;              // of a row that does not fit them
  Value lastUnique;          // of the range
  Value lastContribution;
};
} // namespace

/// The scalars that an optimizer reads, apart from the common ones.
static ArrayRef<int> scalarsOf(Optimizer optimizer) {
  static constexpr int sgd[] = {0}, momentum[] = {0, 3}, adagrad[] = {0, 2},
                       rowwise[] = {0, 2, 3}, adam[] = {0, 2, 3, 4},
                       partial[] = {0, 2, 3, 4, 5, 6},
                       lamb[] = {0, 2, 3, 4, 5, 6}, ftrl[] = {0, 2, 3, 4, 5};
  switch (optimizer) {
  case Optimizer::Sgd:
    return sgd;
  case Optimizer::MomentumSgd:
    return momentum;
  case Optimizer::Adagrad:
    return adagrad;
  case Optimizer::RowwiseAdagrad:
    return rowwise;
  case Optimizer::Adam:
    return adam;
  case Optimizer::PartialRowwiseAdam:
    return partial;
  case Optimizer::Lamb:
    return lamb;
  case Optimizer::Ftrl:
    return ftrl;
  }
  llvm_unreachable("covered switch");
}

void SegmentUpdate::build() {
  func::FuncOp function = k.begin("pipppppp" // rows pitch slots seg occ coef
                                  "pii");    // grads hp seeds begin end
  plan = k.plan(1, true);
  hp.resize(10);
  auto read = [&](int i) { hp[i] = k.loadAt(k.f32(), k.column(k.arg(Hp), i)); };
  for (int i : scalarsOf(k.config.optimizer))
    read(i);
  if (k.config.decay)
    read(DecayHp);
  if (k.config.decoupled)
    read(KeepHp);
  if (k.config.clip)
    read(ClipHp);
  const bool whole = k.config.needsWholeRow();
  if (whole && !plan.isSingleBlock()) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    buffer = LLVM::AllocaOp::create(b, loc, k.arg(Rows).getType(), k.f32(),
                                    k.constant(dim()), /*alignment=*/64);
  }
  lastUnique = k.addi(k.arg(End), -1);
  lastContribution = k.addi(k.loadIndex(k.arg(Seg), k.arg(End)), -1);
  k.forLoop(k.arg(Begin), k.arg(End), {}, [&](Value unique, ValueRange) {
    prefetchRow(unique);
    row = k.rowAddress(k.arg(Rows), k.arg(Pitch), k.arg(Slots), unique);
    if (k.config.stochastic) {
      Value at = k.element(k.i64(), k.arg(Seeds),
                           arith::SubIOp::create(b, loc, unique, k.arg(Begin)));
      for (int half : {0, 1})
        seed[half] = k.loadAt(k.i32(), k.column(at, half));
    }
    Value from = k.loadIndex(k.arg(Seg), unique);
    Value to = k.loadIndex(k.arg(Seg), k.addi(unique, 1));
    if (whole)
      updateWholeRow(from, to);
    else
      updateRow(from, to);
    return Values();
  });
}

void SegmentUpdate::prefetchRow(Value unique) {
  // Rows come from anywhere in the table; their gradients were just written.
  Value next = k.ahead(unique, KernelBuilder::rowsAhead, lastUnique);
  k.prefetch(k.rowAddress(k.arg(Rows), k.arg(Pitch), k.arg(Slots), next),
             k.config.weightWords() + k.config.stateFloats(),
             /*forWrite=*/true);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// The summed gradient of a block of columns.
Values SegmentUpdate::gradient(Value from, Value to, Value first,
                               ArrayRef<Piece> pieces) {
  Values sums;
  for (const Piece &p : pieces)
    sums.push_back(k.zero(k.vec(k.f32(), p.width)));
  return k.forLoop(from, to, sums, [&](Value contribution, ValueRange in) {
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
}

/// With weight decay; LAMB adds it to its direction instead.
Value SegmentUpdate::decayed(Value g, Value first, const Piece &piece) {
  if (!k.config.decay || k.config.optimizer == Optimizer::Lamb)
    return g;
  return k.fma(splatHp(DecayHp, g.getType()), loadWeight(first, piece), g);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value SegmentUpdate::startWeight(Value first, const Piece &piece) {
  Value w = loadWeight(first, piece);
  return k.config.decoupled ? k.mulf(splatHp(KeepHp, w.getType()), w) : w;
}

void SegmentUpdate::storeWeight(Value w, Value first, const Piece &piece) {
  k.storeWeights(w, k.weightAddress(row, first, piece.column),
                 k.config.stochastic ? noise(first, piece) : Value());
}

/// The word of each column, from the row's seed ("Storage" of
/// docs/numerics.md).
Value SegmentUpdate::noise(Value first, const Piece &piece) {
  VectorType type = k.vec(k.i32(), piece.width);
  constexpr uint32_t golden = 0x9e3779b9;
  SmallVector<int32_t> steps;
  for (int64_t i = 0; i < piece.width; ++i)
    steps.push_back(
        static_cast<int32_t>(static_cast<uint32_t>(piece.column + i) * golden));
  Value x = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, ArrayRef<int32_t>(steps)));
  Value low = seed[0];
  if (first)
    low = arith::AddIOp::create(
        b, loc, low,
        arith::MulIOp::create(b, loc,
                              arith::TruncIOp::create(b, loc, k.i32(), first),
                              k.constantI32(static_cast<int32_t>(golden))));
  x = arith::AddIOp::create(b, loc, x, k.splat(low, type));
  auto mixDown = [&](int shift) {
    x = arith::XOrIOp::create(
        b, loc, x,
        arith::ShRUIOp::create(b, loc, x, k.constantI32(shift, type)));
  };
  auto multiply = [&](uint32_t by) {
    x = arith::MulIOp::create(b, loc, x,
                              k.constantI32(static_cast<int32_t>(by), type));
  };
  mixDown(16);
  multiply(0x7feb352d);
  x = arith::XOrIOp::create(b, loc, x, k.splat(seed[1], type));
  mixDown(15);
  multiply(0x846ca68b);
  mixDown(16);
  return x;
}

//===----------------------------------------------------------------------===//
// Optimizers that need one column at a time
//===----------------------------------------------------------------------===//

/// M of Adam and its kin, which is updated in the row.
Value SegmentUpdate::moment(Value g, Value first, const Piece &piece) {
  Value at = stateAddress(first, piece, 0);
  Value m = k.loadAt(g.getType(), at);
  m = k.fma(splatHp(3, g.getType()), k.subf(g, m), m);
  k.storeAt(m, at);
  return m;
}

/// New weights of one piece, from the decayed gradient.
Value SegmentUpdate::updated(Value w, Value g, Value first,
                             const Piece &piece) {
  Type type = w.getType();
  switch (k.config.optimizer) {
  case Optimizer::Sgd:
    return k.fma(splatHp(0, type), g, w);
  case Optimizer::MomentumSgd: {
    Value at = stateAddress(first, piece, 0);
    Value velocity = k.fma(splatHp(3, type), k.loadAt(type, at), g);
    k.storeAt(velocity, at);
    return k.fma(splatHp(0, type), velocity, w);
  }
  case Optimizer::Adagrad: {
    Value at = stateAddress(first, piece, 0);
    Value s = k.fma(g, g, k.loadAt(type, at));
    k.storeAt(s, at);
    Value denominator = k.addf(k.sqrt(s), splatHp(2, type));
    return k.fma(splatHp(0, type), k.divf(g, denominator), w);
  }
  case Optimizer::Adam: {
    Value m = moment(g, first, piece);
    Value at = stateAddress(first, piece, dim());
    Value v = k.loadAt(type, at);
    v = k.fma(splatHp(4, type), k.fma(g, g, k.negf(v)), v);
    k.storeAt(v, at);
    Value denominator = k.addf(k.sqrt(v), splatHp(2, type));
    return k.fma(splatHp(0, type), k.divf(m, denominator), w);
  }
  case Optimizer::Ftrl:
    return ftrl(w, g, first, piece);
  case Optimizer::RowwiseAdagrad:
  case Optimizer::PartialRowwiseAdam:
  case Optimizer::Lamb:
    break;
  }
  llvm_unreachable("optimizers of whole rows have their own path");
}

Value SegmentUpdate::ftrl(Value w, Value g, Value first, const Piece &piece) {
  Type type = w.getType();
  Value zero = k.zero(type), scale = splatHp(0, type), beta = splatHp(2, type),
        l1 = splatHp(3, type), l2 = splatHp(4, type), lr = splatHp(5, type);
  Value atZ = stateAddress(first, piece, 0);
  Value atN = stateAddress(first, piece, dim());
  Value oldZ = k.loadAt(type, atZ), oldN = k.loadAt(type, atN);
  Value n = k.fma(g, g, oldN), root = k.sqrt(n);
  Value sigma = k.divf(k.subf(root, k.sqrt(oldN)), lr);
  Value z = k.fma(k.negf(sigma), w, k.fma(scale, g, oldZ));
  auto select = [&](arith::CmpFPredicate predicate, Value x, Value y,
                    Value then, Value otherwise) -> Value {
    Value is = arith::CmpFOp::create(b, loc, predicate, x, y);
    return arith::SelectOp::create(b, loc, is, then, otherwise);
  };
  using P = arith::CmpFPredicate;
  Value shrunk = select(P::OGT, z, l1, k.subf(z, l1),
                        select(P::OLT, z, k.negf(l1), k.addf(z, l1), zero));
  Value denominator = k.addf(k.divf(k.addf(beta, root), lr), l2);
  Value next = k.divf(k.subf(zero, shrunk), denominator);
  // A row keeps its initial weights until it has seen a gradient.
  k.storeAt(select(P::OEQ, n, zero, oldZ, z), atZ);
  k.storeAt(n, atN);
  return select(P::OEQ, n, zero, w, next);
}

void SegmentUpdate::updateColumns(Value first, ArrayRef<Piece> pieces,
                                  ValueRange g) {
  for (auto [p, sum] : llvm::zip_equal(pieces, g)) {
    Value d = decayed(sum, first, p);
    storeWeight(updated(startWeight(first, p), d, first, p), first, p);
  }
}

void SegmentUpdate::updateRow(Value from, Value to) {
  k.forBlocks(plan, {}, [&](Value first, ArrayRef<Piece> pieces, ValueRange) {
    updateColumns(first, pieces, gradient(from, to, first, pieces));
    return Values();
  });
}

//===----------------------------------------------------------------------===//
// What needs the whole gradient before it changes a column
//===----------------------------------------------------------------------===//

void SegmentUpdate::hold(Value first, ArrayRef<Piece> pieces,
                         ValueRange values) {
  if (plan.isSingleBlock()) {
    whole.assign(values.begin(), values.end());
    return;
  }
  for (auto [p, value] : llvm::zip_equal(pieces, values))
    k.storeAt(value, k.column(k.columnAddress(buffer, first), p.column));
}

Values SegmentUpdate::held(Value first, ArrayRef<Piece> pieces) {
  if (plan.isSingleBlock())
    return whole;
  Values values;
  for (const Piece &p : pieces)
    values.push_back(
        k.loadAt(k.vec(k.f32(), p.width),
                 k.column(k.columnAddress(buffer, first), p.column)));
  return values;
}

/// R of LAMB; V is updated in the row.
Value SegmentUpdate::direction(Value m, Value g, Value w, Value first,
                               const Piece &piece) {
  Type type = g.getType();
  Value at = stateAddress(first, piece, dim());
  Value v = k.loadAt(type, at);
  v = k.fma(splatHp(4, type), k.fma(g, g, k.negf(v)), v);
  k.storeAt(v, at);
  Value denominator =
      k.addf(k.sqrt(k.divf(v, splatHp(6, type))), splatHp(2, type));
  Value r = k.divf(k.divf(m, splatHp(5, type)), denominator);
  return k.config.decay ? k.fma(splatHp(DecayHp, type), w, r) : r;
}

/// Holds what the last pass multiplies, and adds the row sums that its factor
/// is made of.
Values SegmentUpdate::summed(Value first, ArrayRef<Piece> pieces, ValueRange g,
                             ValueRange lanes) {
  RowSum rowSum(k);
  Values decayedG, multiplied, weights;
  for (auto [p, sum] : llvm::zip_equal(pieces, g)) {
    Value d = decayed(sum, first, p);
    decayedG.push_back(d);
    if (k.config.optimizer == Optimizer::RowwiseAdagrad) {
      multiplied.push_back(d);
      continue;
    }
    Value m = moment(d, first, p);
    if (k.config.optimizer == Optimizer::Lamb) {
      weights.push_back(loadWeight(first, p));
      m = direction(m, d, weights.back(), first, p);
    }
    multiplied.push_back(m);
  }
  hold(first, pieces, multiplied);
  if (k.config.optimizer != Optimizer::Lamb)
    return rowSum.add(pieces, decayedG, lanes);
  const size_t half = lanes.size() / 2;
  Values sums = rowSum.add(pieces, weights, lanes.take_front(half));
  sums.append(rowSum.add(pieces, multiplied, lanes.drop_front(half)));
  return sums;
}

/// min(1, clip_norm / norm), and 1 for a gradient of zeros.
Value SegmentUpdate::clipFactor(ValueRange lanes) {
  Value norm = k.sqrt(RowSum(k).finish(lanes));
  Value longer = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, norm,
                                       hp[ClipHp]);
  return arith::SelectOp::create(b, loc, longer, k.divf(hp[ClipHp], norm),
                                 k.constantF32(1.0f));
}

/// Updates what state a row has as a whole; returns the factor of what is held.
Value SegmentUpdate::rowScale(ValueRange lanes) {
  RowSum rowSum(k);
  switch (k.config.optimizer) {
  case Optimizer::RowwiseAdagrad: {
    Value at = k.column(row, k.config.weightWords());
    Value s =
        k.addf(k.loadAt(k.f32(), at), k.divf(rowSum.finish(lanes), hp[3]));
    k.storeAt(s, at);
    return k.negf(k.divf(hp[0], k.addf(k.sqrt(s), hp[2])));
  }
  case Optimizer::PartialRowwiseAdam: {
    Value at = k.column(row, k.config.weightWords() + dim());
    Value v = k.loadAt(k.f32(), at);
    Value mean = k.divf(rowSum.finish(lanes), hp[6]);
    v = k.fma(hp[4], k.subf(mean, v), v);
    k.storeAt(v, at);
    Value denominator = k.addf(k.sqrt(k.divf(v, hp[5])), hp[2]);
    return k.negf(k.divf(hp[0], denominator));
  }
  default: { // LAMB
    const size_t half = lanes.size() / 2;
    Value length = k.sqrt(rowSum.finish(lanes.take_front(half)));
    Value step = k.sqrt(rowSum.finish(lanes.drop_front(half)));
    auto isPositive = [&](Value x) -> Value {
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x,
                                   k.zero(k.f32()));
    };
    Value both =
        arith::AndIOp::create(b, loc, isPositive(length), isPositive(step));
    Value ratio = arith::SelectOp::create(b, loc, both, k.divf(length, step),
                                          k.constantF32(1.0f));
    return k.negf(k.mulf(hp[0], ratio));
  }
  }
}

void SegmentUpdate::updateWholeRow(Value from, Value to) {
  RowSum rowSum(k);
  const bool clip = k.config.clip;
  Values inits = rowSum.init();
  if (k.config.optimizer == Optimizer::Lamb)
    inits.append(rowSum.init());

  Values lanes =
      k.forBlocks(plan, clip ? rowSum.init() : inits,
                  [&](Value first, ArrayRef<Piece> pieces, ValueRange in) {
                    Values g = gradient(from, to, first, pieces);
                    if (!clip)
                      return summed(first, pieces, g, in);
                    hold(first, pieces, g);
                    return rowSum.add(pieces, g, in);
                  });
  if (clip) {
    Value factor = clipFactor(lanes);
    auto clipped = [&](Value first, ArrayRef<Piece> pieces) {
      Values g = held(first, pieces);
      for (Value &x : g)
        x = k.mulf(k.splat(factor, x.getType()), x);
      return g;
    };
    if (k.config.isColumnwise()) {
      k.forBlocks(plan, {},
                  [&](Value first, ArrayRef<Piece> pieces, ValueRange) {
                    updateColumns(first, pieces, clipped(first, pieces));
                    return Values();
                  });
      return;
    }
    lanes = k.forBlocks(
        plan, inits, [&](Value first, ArrayRef<Piece> pieces, ValueRange in) {
          return summed(first, pieces, clipped(first, pieces), in);
        });
  }

  Value scale = rowScale(lanes);
  k.forBlocks(plan, {}, [&](Value first, ArrayRef<Piece> pieces, ValueRange) {
    for (auto [p, x] : llvm::zip_equal(pieces, held(first, pieces))) {
      Value w = startWeight(first, p);
      storeWeight(k.fma(k.splat(scale, w.getType()), x, w), first, p);
    }
    return Values();
  });
}

void terrace::codegen::buildSegmentUpdate(KernelBuilder &k) {
  SegmentUpdate(k).build();
}
