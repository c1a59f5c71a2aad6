//===- Tables.h - Tables of the reference, and their optimizers -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table holds the records (weights, then optimizer state) of the rows that
// were touched; any other row is its initial value and zero state. The update
// of one row is docs/numerics.md written out as plain loops.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_REFERENCE_TABLES_H
#define TERRACE_RUNTIME_REFERENCE_TABLES_H

#include "runtime/reference/Program.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace trc::reference {

/// The table's scalars at one step.
struct StepScale {
  double lrScale = 1;
  int64_t step = 1; // the global step, 1 for the first
};

class Table {
public:
  explicit Table(const TableDef &def) : def(&def) {}

  /// The row's record as it is now.
  std::vector<float> record(int64_t row) const;
  /// The first `dim` floats of the record, without a copy where it is stored.
  const float *weights(int64_t row, std::vector<float> &scratch) const;
  void store(int64_t row, const std::vector<float> &record);
  /// The row's record after one step from its summed gradient (which changes),
  /// its weights rounded to what the table stores.
  std::vector<float> updated(int64_t row, const StepScale &scale,
                             std::vector<float> &gradient) const;

  /// Rows that were ever stored, ascending.
  std::vector<int64_t> touched() const;
  const TableDef &definition() const { return *def; }

private:
  void initial(int64_t row, float *out) const;

  const TableDef *def;
  std::unordered_map<int64_t, std::vector<float>> rows;
};

/// Applies the summed gradient (dim floats; changed by clipping and decay), in
/// f32.
void updateRow(const TableDef &def, const StepScale &scale,
               std::vector<float> &gradient, std::vector<float> &record);

} // namespace trc::reference

#endif // TERRACE_RUNTIME_REFERENCE_TABLES_H
