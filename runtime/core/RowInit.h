//===- RowInit.h - The value of a row that was never written ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pure function of (key, row, column), docs/numerics.md "Row
// initialisation": tables need no bytes for rows that no step has touched.
// Optimizer state always starts at +0 and is not this file's business.
// Thread-safe: fill() reads only its own object.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_ROWINIT_H
#define TERRACE_RUNTIME_CORE_ROWINIT_H

#include <cstdint>

namespace trc {

class RowInit {
public:
  enum class Kind { Uniform, Normal, Constant };

  static RowInit uniform(uint64_t key, double low, double high) {
    return RowInit(Kind::Uniform, key, low, high);
  }
  static RowInit normal(uint64_t key, double mean, double std) {
    return RowInit(Kind::Normal, key, mean, std);
  }
  static RowInit constant(double value) {
    return RowInit(Kind::Constant, 0, value, 0);
  }
  RowInit() : RowInit(Kind::Constant, 0, 0, 0) {}

  /// Writes the `dim` floats of row `row` of the table (not of its group).
  void fill(int64_t row, int64_t dim, float *out) const {
    fill(row, 0, dim, out);
  }
  /// Columns begin .. end - 1 of it; begin is a multiple of 4.
  void fill(int64_t row, int64_t begin, int64_t end, float *out) const;

  Kind kind() const { return kind_; }
  uint64_t key() const { return key_; }

private:
  RowInit(Kind kind, uint64_t key, double first, double second);

  Kind kind_;
  uint64_t key_;
  double mean = 0, std = 0;  // normal
  float base = 0, scale = 0; // uniform: low and high - low; constant: value
};

/// One block of Philox4x32-10 (Salmon et al., SC'11); exposed for its tests.
void philox4x32(const uint32_t counter[4], const uint32_t key[2],
                uint32_t out[4]);

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_ROWINIT_H
