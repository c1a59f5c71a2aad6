//===- Grain.h - The least that a thread is worth ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How loops over outputs are cut; the compiler's cost model counts with the
// same figure.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_EXEC_GRAIN_H
#define TERRACE_RUNTIME_EXEC_GRAIN_H

#include <algorithm>
#include <cstdint>

namespace trc {

/// Outputs of about 16384 floats make a part worth a thread.
constexpr int64_t kernelGrain(int64_t dim) {
  return std::max<int64_t>(16, 16384 / std::max<int64_t>(1, dim));
}

} // namespace trc

#endif // TERRACE_RUNTIME_EXEC_GRAIN_H
