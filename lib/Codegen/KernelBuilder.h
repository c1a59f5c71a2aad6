//===- KernelBuilder.h - Pieces that all kernels are made of ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thin layer over OpBuilder for one kernel on one image: addresses, vector
// loads and stores of a row's pieces, loops, and the arithmetic of
// docs/numerics.md. It chooses vector widths; the kinds of kernels
// (GatherPool.cpp, SegmentUpdate.cpp) choose what is computed.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CODEGEN_KERNELBUILDER_H
#define TERRACE_CODEGEN_KERNELBUILDER_H

#include "Codegen/Codegen.h"
#include "Codegen/VectorSplit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace terrace::codegen {

using Values = llvm::SmallVector<mlir::Value>;

class KernelBuilder {
public:
  KernelBuilder(mlir::ModuleOp module, const KernelConfig &config,
                const Image &image);

  /// Starts the function `<name><suffix>` of pointers and two i64 at the end,
  /// and enters `begin < end`. `signature`: 'p' a pointer, 'i' an i64.
  mlir::func::FuncOp begin(llvm::StringRef signature);
  mlir::Value arg(unsigned i) { return function.getArgument(i); }

  // Types and constants.
  mlir::Type f32() { return b.getF32Type(); }
  mlir::Type i32() { return b.getI32Type(); }
  mlir::Type i64() { return b.getI64Type(); }
  mlir::VectorType vec(mlir::Type element, int64_t width);
  mlir::Value constant(int64_t value);
  mlir::Value constantI32(int32_t value);
  mlir::Value constantF32(float value);
  /// +0 of a float type, 0 of an integer type; scalar or vector.
  mlir::Value zero(mlir::Type type);

  // Addresses and memory. Everything in rows, gradients and outputs is only
  // known to be aligned to 4 bytes, weights of 2 bytes to 2.
  mlir::Value byteOffset(mlir::Value base, mlir::Value bytes);
  mlir::Value element(mlir::Type type, mlir::Value base, mlir::Value index);
  mlir::Value load(mlir::Type type, mlir::Value base, mlir::Value index);
  mlir::Value loadAt(mlir::Type type, mlir::Value address);
  void storeAt(mlir::Value value, mlir::Value address);
  /// base + 4 * column
  mlir::Value column(mlir::Value base, int64_t column);
  mlir::Value columnAddress(mlir::Value base, mlir::Value firstColumn);
  /// The same of weights, by the size that they are stored with.
  mlir::Value weightAddress(mlir::Value row, mlir::Value firstColumn,
                            int64_t column);
  /// Scale and bias of a quantised row, as f32; null for other rows.
  struct RowScale {
    mlir::Value scale, bias;
  };
  RowScale loadScale(mlir::Value row);
  /// `width` weights as f32.
  mlir::Value loadWeights(mlir::Value address, int64_t width,
                          RowScale scale = {});
  /// Rounded to the stored type: to nearest even, or by `noise`, 32 random bits
  /// to a weight.
  void storeWeights(mlir::Value value, mlir::Value address,
                    mlir::Value noise = {});
  /// rows + slots[index] * pitch
  mlir::Value rowAddress(mlir::Value rows, mlir::Value pitch, mlir::Value slots,
                         mlir::Value index);
  /// A u32 or non-negative i32 in memory, as i64.
  mlir::Value loadIndex(mlir::Value base, mlir::Value index);
  /// Prefetches the first cache lines of `columns` words of 4 bytes.
  void prefetch(mlir::Value address, int64_t columns, bool forWrite);

  // Arithmetic; never with fast-math flags.
  mlir::Value splat(mlir::Value scalar, mlir::Type type);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value addf(mlir::Value a, mlir::Value b);
  mlir::Value subf(mlir::Value a, mlir::Value b);
  mlir::Value mulf(mlir::Value a, mlir::Value b);
  mlir::Value divf(mlir::Value a, mlir::Value b);
  mlir::Value negf(mlir::Value a);
  mlir::Value sqrt(mlir::Value a);
  mlir::Value addi(mlir::Value a, int64_t constant);
  mlir::Value constantI32(int32_t value, mlir::Type type);
  mlir::Value bitcast(mlir::Value value, mlir::Type element);
  /// min(index + distance, last)
  mlir::Value ahead(mlir::Value index, int64_t distance, mlir::Value last);

  // Control.
  using LoopBody =
      llvm::function_ref<Values(mlir::Value iv, mlir::ValueRange carried)>;
  Values forLoop(mlir::Value from, mlir::Value to, mlir::ValueRange inits,
                 LoopBody body);
  /// body(first column as a value or null for 0, its pieces, carried) for each
  /// block of the plan in order; a loop where there are several equal blocks.
  using BlockBody = llvm::function_ref<Values(
      mlir::Value firstColumn, llvm::ArrayRef<Piece>, mlir::ValueRange)>;
  Values forBlocks(const ColumnPlan &plan, mlir::ValueRange inits,
                   BlockBody body);

  const KernelConfig &config;
  const Image &image;
  mlir::OpBuilder b;
  mlir::Location loc;

  /// The columns of a row for a loop that keeps `perPiece` accumulators to a
  /// piece and, unless it only adds from memory, some registers for operands.
  ColumnPlan plan(int64_t perPiece, bool operands) const;

  /// Occurrences, and unique rows, that a prefetch runs ahead (measured).
  static constexpr int64_t occurrencesAhead = 16, rowsAhead = 8;
  /// The same of rows of so many bytes that are only read: of short ones, more
  /// have to be under way at once.
  static int64_t lookupsAhead(int64_t bytes) {
    return bytes <= 64 ? 48 : bytes <= 256 ? 32 : occurrencesAhead;
  }

private:
  mlir::Value loadNumbers(mlir::Value address, int64_t width);
  mlir::Value roundBF16(mlir::Value value, mlir::Value noise);
  mlir::Value roundF16(mlir::Value value, mlir::Value noise);

  mlir::ModuleOp module;
  mlir::func::FuncOp function;
};

/// The bodies, one file each.
void buildGatherPool(KernelBuilder &k);
void buildSegmentUpdate(KernelBuilder &k);

/// Exact sum of squares of docs/numerics.md over 32 virtual lanes.
class RowSum {
public:
  explicit RowSum(KernelBuilder &k) : k(k) {}
  Values init();
  /// Adds the squares of a block's pieces, which starts at a multiple of 32.
  Values add(llvm::ArrayRef<Piece> pieces, mlir::ValueRange values,
             mlir::ValueRange lanes);
  /// The fold; a scalar.
  mlir::Value finish(mlir::ValueRange lanes);

private:
  mlir::Value shuffle(mlir::Value a, mlir::Value b,
                      llvm::ArrayRef<int64_t> mask);
  KernelBuilder &k;
};

} // namespace terrace::codegen

#endif // TERRACE_CODEGEN_KERNELBUILDER_H
