//===- Rounding.h - Rounding of stored weights ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "Storage" of docs/numerics.md as arithmetic on f64, which holds every
// quotient of an f32 by a last place exactly. No bit of an f16 or bf16 is ever
// made here: a table of the reference keeps the rounded values.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_REFERENCE_ROUNDING_H
#define TERRACE_RUNTIME_REFERENCE_ROUNDING_H

#include "runtime/reference/Program.h"

namespace trc::reference {

float roundNearest(Storage storage, float x);
/// A row as its table keeps it; of i8 and i4 scale * number + bias.
void roundRow(Storage storage, float *row, int64_t dim);
/// `word`: 32 random bits.
float roundStochastic(Storage storage, float x, uint32_t word);
/// Those of a column, from the seed of its row.
uint32_t roundingWord(uint64_t seed, int64_t column);

} // namespace trc::reference

#endif // TERRACE_RUNTIME_REFERENCE_ROUNDING_H
