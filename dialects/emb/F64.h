//===- F64.h - A double as a parameter of an attribute ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hyper-parameters and measured figures are doubles that must print, parse,
// compare and hash without loss. Two values are equal when their bits are.
// Printing gives the shortest text that reads back to the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DIALECTS_EMB_F64_H
#define TERRACE_DIALECTS_EMB_F64_H

#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/Hashing.h"

#include <cstdint>
#include <cstring>

namespace terrace::emb {

struct F64 {
  F64() = default;
  F64(double value) : value(value) {}
  operator double() const { return value; }
  uint64_t bits() const {
    uint64_t result;
    std::memcpy(&result, &value, sizeof result);
    return result;
  }
  static F64 fromBits(uint64_t bits) {
    F64 result;
    std::memcpy(&result.value, &bits, sizeof bits);
    return result;
  }
  bool operator==(const F64 &other) const { return bits() == other.bits(); }
  bool operator!=(const F64 &other) const { return bits() != other.bits(); }

  double value = 0;
};

inline llvm::hash_code hash_value(const F64 &x) {
  return llvm::hash_value(x.bits());
}

/// `2.0e-2`, `-1.0`, also an integer such as `3`.
mlir::FailureOr<F64> parseF64(mlir::AsmParser &parser);
void printF64(mlir::AsmPrinter &printer, F64 value);

/// `[1.0, 2.5]`.
mlir::FailureOr<llvm::SmallVector<F64>> parseF64List(mlir::AsmParser &parser);
void printF64List(mlir::AsmPrinter &printer, llvm::ArrayRef<F64> values);

/// `[1, 2]`.
mlir::FailureOr<llvm::SmallVector<int64_t>>
parseI64List(mlir::AsmParser &parser);
void printI64List(mlir::AsmPrinter &printer, llvm::ArrayRef<int64_t> values);

} // namespace terrace::emb

#endif // TERRACE_DIALECTS_EMB_F64_H
