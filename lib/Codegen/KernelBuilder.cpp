//===- KernelBuilder.cpp - Pieces that all kernels are made of --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fma is math.fma throughout: vector.fma becomes llvm.fmuladd, which may or
// may not round in between.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace terrace::codegen;

KernelBuilder::KernelBuilder(ModuleOp module, const KernelConfig &config,
                             const Image &image)
    : config(config), image(image), b(module.getContext()),
      loc(UnknownLoc::get(module.getContext())), module(module) {
  b.setInsertionPointToEnd(module.getBody());
}

func::FuncOp KernelBuilder::begin(StringRef signature) {
  SmallVector<Type> types;
  for (char c : signature)
    types.push_back(c == 'p' ? Type(LLVM::LLVMPointerType::get(b.getContext()))
                             : i64());
  function = func::FuncOp::create(b, loc, config.name() + image.suffix,
                                  b.getFunctionType(types, {}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  unsigned n = types.size();
  // An empty range may come with null arrays.
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                     arg(n - 2), arg(n - 1));
  auto guard = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false);
  func::ReturnOp::create(b, loc);
  b.setInsertionPointToStart(guard.thenBlock());
  return function;
}

VectorType KernelBuilder::vec(Type element, int64_t width) {
  return VectorType::get({width}, element);
}
Value KernelBuilder::constant(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}
Value KernelBuilder::constantI32(int32_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}
Value KernelBuilder::constantF32(float value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}
Value KernelBuilder::zero(Type type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

Value KernelBuilder::byteOffset(Value base, Value bytes) {
  return LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{bytes});
}
Value KernelBuilder::element(Type type, Value base, Value index) {
  return LLVM::GEPOp::create(b, loc, base.getType(), type, base,
                             ArrayRef<LLVM::GEPArg>{index});
}
/// Rows begin at multiples of 4 bytes, narrow weights at those of their size.
static unsigned alignmentOf(Type type) {
  return std::min(4u, getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8);
}
Value KernelBuilder::loadAt(Type type, Value address) {
  return LLVM::LoadOp::create(b, loc, type, address, alignmentOf(type));
}
Value KernelBuilder::load(Type type, Value base, Value index) {
  return loadAt(type, element(type, base, index));
}
void KernelBuilder::storeAt(Value value, Value address) {
  LLVM::StoreOp::create(b, loc, value, address, alignmentOf(value.getType()));
}
Value KernelBuilder::column(Value base, int64_t column) {
  if (column == 0)
    return base;
  return LLVM::GEPOp::create(
      b, loc, base.getType(), f32(), base,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(column)});
}
Value KernelBuilder::columnAddress(Value base, Value firstColumn) {
  return firstColumn ? element(f32(), base, firstColumn) : base;
}
Value KernelBuilder::loadIndex(Value base, Value index) {
  return arith::ExtUIOp::create(b, loc, i64(), load(i32(), base, index));
}
Value KernelBuilder::rowAddress(Value rows, Value pitch, Value slots,
                                Value index) {
  Value slot = loadIndex(slots, index);
  return byteOffset(rows, arith::MulIOp::create(b, loc, slot, pitch));
}

void KernelBuilder::prefetch(Value address, int64_t columns, bool forWrite) {
  // Later lines of a long row are what the hardware's prefetcher is good at;
  // a row that is written is worth more, since its state lies behind it.
  const int64_t maxLines = forWrite ? 32 : 16;
  constexpr int64_t lineColumns = 16;
  for (int64_t c = 0; c < std::min(columns, maxLines * lineColumns);
       c += lineColumns)
    LLVM::Prefetch::create(b, loc, column(address, c), /*rw=*/forWrite,
                           /*hint=*/3, /*cache=*/1);
  // Rows with optimizer state behind them begin anywhere in a line, and then
  // reach into one line more.
  if (columns > 1 && columns <= maxLines * lineColumns)
    LLVM::Prefetch::create(b, loc, column(address, columns - 1),
                           /*rw=*/forWrite, /*hint=*/3, /*cache=*/1);
}

ColumnPlan KernelBuilder::plan(int64_t perPiece, bool operands) const {
  const int64_t step = 32 / image.lanes; // see planColumns
  int64_t pieces = image.registers * (operands ? 3 : 4) / 4 / perPiece;
  return planColumns(config.dim, image.lanes, pieces / step * step);
}

Value KernelBuilder::splat(Value scalar, Type type) {
  if (scalar.getType() == type)
    return scalar;
  return vector::BroadcastOp::create(b, loc, type, scalar);
}
Value KernelBuilder::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
}
Value KernelBuilder::addf(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y);
}
Value KernelBuilder::subf(Value x, Value y) {
  return arith::SubFOp::create(b, loc, x, y);
}
Value KernelBuilder::mulf(Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y);
}
Value KernelBuilder::divf(Value x, Value y) {
  return arith::DivFOp::create(b, loc, x, y);
}
Value KernelBuilder::negf(Value x) { return arith::NegFOp::create(b, loc, x); }
Value KernelBuilder::sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
Value KernelBuilder::addi(Value x, int64_t c) {
  return arith::AddIOp::create(b, loc, x, constant(c));
}
Value KernelBuilder::ahead(Value index, int64_t distance, Value last) {
  return arith::MinSIOp::create(b, loc, addi(index, distance), last);
}

Values KernelBuilder::forLoop(Value from, Value to, ValueRange inits,
                              LoopBody body) {
  auto loop = scf::ForOp::create(
      b, loc, from, to, constant(1), inits,
      [&](OpBuilder &, Location, Value iv, ValueRange carried) {
        // `b` itself builds the body, so that every helper works inside.
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(iv.getParentBlock());
        Values results = body(iv, carried);
        scf::YieldOp::create(b, loc, results);
      });
  return Values(loop.getResults());
}

Values KernelBuilder::forBlocks(const ColumnPlan &plan, ValueRange inits,
                                BlockBody body) {
  Values carried(inits);
  if (plan.blocks == 1)
    carried = body(Value(), plan.block, carried);
  else if (plan.blocks > 1)
    carried = forLoop(constant(0), constant(plan.blocks), carried,
                      [&](Value iv, ValueRange in) {
                        Value first = arith::MulIOp::create(
                            b, loc, iv, constant(plan.blockColumns));
                        return body(first, plan.block, in);
                      });
  if (!plan.tail.empty())
    carried = body(plan.tailStart ? constant(plan.tailStart) : Value(),
                   plan.tail, carried);
  return carried;
}
