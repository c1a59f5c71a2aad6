//===- FloatBits.h - A float and its bits -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_FLOATBITS_H
#define TERRACE_RUNTIME_CORE_FLOATBITS_H

#include <cstdint>
#include <cstring>

namespace trc {

inline uint32_t bitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

inline float floatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_FLOATBITS_H
