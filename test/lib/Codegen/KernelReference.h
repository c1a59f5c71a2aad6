//===- KernelReference.h - docs/numerics.md as naive loops ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written from docs/numerics.md alone, one scalar at a time, with the calling
// convention of the kernels. Compiled without contraction.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_CODEGEN_KERNELREFERENCE_H
#define TERRACE_TEST_CODEGEN_KERNELREFERENCE_H

#include "Codegen/KernelConfig.h"

namespace terrace::test {

void referenceGatherPool(const codegen::KernelConfig &config, const char *rows,
                         int64_t pitch, const uint32_t *slots,
                         const uint32_t *x, const int32_t *offsets,
                         const float *weights, float *out, int32_t *winner,
                         int64_t begin, int64_t end);

void referenceSegmentUpdate(const codegen::KernelConfig &config, char *rows,
                            int64_t pitch, const uint32_t *slots,
                            const int32_t *seg, const uint32_t *occ,
                            const float *coef, const float *grads,
                            const float *hp, const uint64_t *seeds,
                            int64_t begin, int64_t end);

/// One weight of a row as it is stored; `seed` is the row's, where rounding is
/// stochastic.
float loadWeight(const codegen::KernelConfig &config, const char *row,
                 int64_t column);
void storeWeight(const codegen::KernelConfig &config, char *row, int64_t column,
                 float value, const uint64_t *seed = nullptr);

} // namespace terrace::test

#endif // TERRACE_TEST_CODEGEN_KERNELREFERENCE_H
