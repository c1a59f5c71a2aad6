//===- Weights.cpp - Weights as they are stored, and as f32 -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "Storage" of docs/numerics.md. f16 is converted by the instructions that
// x86-64-v3 has for it; bf16 by integer operations, since those instructions
// would flush denormals, and v3 has none. Random rounding adds random bits
// below the last one that is kept, and truncates. int8 and int4 are widened,
// converted and scaled: one fma to a vector, exact but for its one rounding.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace terrace::codegen;

/// `type` with another element.
static Type like(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value KernelBuilder::constantI32(int32_t value, Type type) {
  return splat(constantI32(value), type);
}
Value KernelBuilder::bitcast(Value value, Type element) {
  return arith::BitcastOp::create(b, loc, like(value.getType(), element),
                                  value);
}

Value KernelBuilder::weightAddress(Value row, Value firstColumn,
                                   int64_t column) {
  Type stored = b.getI8Type();
  if (config.element == Element::F32)
    stored = f32();
  else if (!config.isQuantized())
    stored = b.getI16Type();
  if (firstColumn && config.element == Element::I4) // of an even number
    firstColumn = arith::ShRUIOp::create(b, loc, firstColumn, constant(1));
  if (firstColumn)
    row = element(stored, row, firstColumn);
  if (config.isQuantized())
    column = config.headBytes() + config.bytesOf(column);
  if (column == 0)
    return row;
  return LLVM::GEPOp::create(
      b, loc, row.getType(), stored, row,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(column)});
}

KernelBuilder::RowScale KernelBuilder::loadScale(Value row) {
  if (!config.isQuantized())
    return {};
  Value both = arith::ExtFOp::create(b, loc, vec(f32(), 2),
                                     loadAt(vec(b.getF16Type(), 2), row));
  auto part = [&](int64_t i) -> Value {
    return vector::ExtractOp::create(b, loc, both, i);
  };
  return {part(0), part(1)};
}

/// `width` whole numbers as i8. Of int4 the even column is the lower half of a
/// byte; a piece of one column begins at an even one.
Value KernelBuilder::loadNumbers(Value address, int64_t width) {
  if (config.element == Element::I8)
    return loadAt(vec(b.getI8Type(), width), address);
  Type bytes = vec(b.getI8Type(), (width + 1) / 2);
  Value packed = loadAt(bytes, address);
  auto constantOf = [&](Type type, int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(
            cast<ShapedType>(type),
            b.getIntegerAttr(getElementTypeOrSelf(type), value)));
  };
  if (width == 1)
    return arith::AndIOp::create(b, loc, packed, constantOf(bytes, 15));
  // Each byte becomes two, and every half one of them.
  Type pairs = vec(b.getI16Type(), width / 2);
  Value wide = arith::ExtUIOp::create(b, loc, pairs, packed);
  Value apart = arith::OrIOp::create(
      b, loc, wide, arith::ShLIOp::create(b, loc, wide, constantOf(pairs, 4)));
  return vector::BitCastOp::create(
      b, loc, vec(b.getI8Type(), width),
      arith::AndIOp::create(b, loc, apart, constantOf(pairs, 0x0f0f)));
}

Value KernelBuilder::loadWeights(Value address, int64_t width, RowScale scale) {
  Type wide = vec(f32(), width);
  switch (config.element) {
  case Element::F32:
    return loadAt(wide, address);
  case Element::F16:
    return arith::ExtFOp::create(b, loc, wide,
                                 loadAt(vec(b.getF16Type(), width), address));
  case Element::BF16: {
    Type words = vec(i32(), width);
    Value bits = arith::ExtUIOp::create(
        b, loc, words, loadAt(vec(b.getI16Type(), width), address));
    return bitcast(arith::ShLIOp::create(b, loc, bits, constantI32(16, words)),
                   f32());
  }
  case Element::I8:
  case Element::I4: {
    // Not negative, so that the signed conversion, which is one instruction,
    // will do.
    Value numbers = arith::SIToFPOp::create(
        b, loc, wide,
        arith::ExtUIOp::create(b, loc, vec(i32(), width),
                               loadNumbers(address, width)));
    return fma(splat(scale.scale, wide), numbers, splat(scale.bias, wide));
  }
  }
  llvm_unreachable("covered switch");
}

void KernelBuilder::storeWeights(Value value, Value address, Value noise) {
  switch (config.element) {
  case Element::F32:
    return storeAt(value, address);
  case Element::F16:
    if (noise)
      value = roundF16(value, noise); // then the conversion is exact
    return storeAt(arith::TruncFOp::create(
                       b, loc, like(value.getType(), b.getF16Type()), value),
                   address);
  case Element::BF16:
    return storeAt(roundBF16(value, noise), address);
  case Element::I8:
  case Element::I4:
    break; // KernelConfig::verify refuses updates of such rows
  }
}

/// The upper halves. A carry out of the mantissa is the next exponent, at last
/// infinity, as it should be; NaN keeps its upper bits and is made quiet, so
/// that dropping the lower ones cannot make it infinite.
Value KernelBuilder::roundBF16(Value value, Value noise) {
  Value bits = bitcast(value, i32());
  Type words = bits.getType();
  Value shift = constantI32(16, words);
  Value up = arith::ShRUIOp::create(b, loc, bits, shift);
  Value add;
  if (noise)
    add = arith::ShRUIOp::create(b, loc, noise, shift);
  else // half of the last place, less one unless the last bit is odd
    add = arith::AddIOp::create(
        b, loc, arith::AndIOp::create(b, loc, up, constantI32(1, words)),
        constantI32(0x7fff, words));
  Value rounded = arith::ShRUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, bits, add), shift);
  Value quiet = arith::OrIOp::create(b, loc, up, constantI32(0x40, words));
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  return arith::TruncIOp::create(
      b, loc, like(words, b.getI16Type()),
      arith::SelectOp::create(b, loc, isNaN, quiet, rounded));
}

/// An f32 that f16 holds exactly (or that is too large for it, or NaN).
Value KernelBuilder::roundF16(Value value, Value noise) {
  Value bits = bitcast(value, i32());
  Type words = bits.getType(), floats = value.getType();
  Value random =
      arith::ShRUIOp::create(b, loc, noise, constantI32(19, words)); // 13 bits
  auto aAnd = [&](Value x, int32_t mask) -> Value {
    return arith::AndIOp::create(b, loc, x, constantI32(mask, words));
  };
  Value sign = aAnd(bits, INT32_MIN);
  Value magnitude = aAnd(bits, INT32_MAX);
  Value normal =
      aAnd(arith::AddIOp::create(b, loc, magnitude, random), ~0x1fff);

  // Below 2^-14 the last place is 2^-24 whatever the exponent.
  Value isSmall =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, magnitude,
                            constantI32(0x38800000, words));
  Value small = arith::SelectOp::create(
      b, loc, isSmall, bitcast(magnitude, f32()), zero(floats));
  Value fixed = arith::FPToSIOp::create(
      b, loc, words, mulf(small, splat(constantF32(0x1p37f), floats)));
  fixed = arith::ShRUIOp::create(b, loc,
                                 arith::AddIOp::create(b, loc, fixed, random),
                                 constantI32(13, words));
  Value subnormal = bitcast(mulf(arith::SIToFPOp::create(b, loc, floats, fixed),
                                 splat(constantF32(0x1p-24f), floats)),
                            i32());

  Value rounded = arith::OrIOp::create(
      b, loc, sign,
      arith::SelectOp::create(b, loc, isSmall, subnormal, normal));
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  return arith::SelectOp::create(b, loc, isNaN, value, bitcast(rounded, f32()));
}
