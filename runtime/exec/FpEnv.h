//===- FpEnv.h - The floating-point environment of compute ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/numerics.md asks for round to nearest and for denormals. A trainer may
// have set FTZ or DAZ on its thread (PyTorch does on request), and threads
// inherit it, so every thread that computes sets its own control word.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_EXEC_FPENV_H
#define TERRACE_RUNTIME_EXEC_FPENV_H

#include <immintrin.h>

namespace trc {

/// All exceptions masked, round to nearest, neither FTZ nor DAZ.
constexpr unsigned strictMxcsr = 0x1f80;

inline void setStrictFp() { _mm_setcsr(strictMxcsr); }

/// For a thread that belongs to the caller: restores its word at the end.
class ScopedStrictFp {
public:
  ScopedStrictFp() : saved(_mm_getcsr()) { _mm_setcsr(strictMxcsr); }
  ~ScopedStrictFp() { _mm_setcsr(saved); }
  ScopedStrictFp(const ScopedStrictFp &) = delete;
  ScopedStrictFp &operator=(const ScopedStrictFp &) = delete;

private:
  unsigned saved;
};

} // namespace trc

#endif // TERRACE_RUNTIME_EXEC_FPENV_H
