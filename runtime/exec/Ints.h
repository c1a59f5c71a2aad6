//===- Ints.h - A caller's ids or offsets of either width -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_EXEC_INTS_H
#define TERRACE_RUNTIME_EXEC_INTS_H

#include <cstdint>
#include <string>

namespace trc {

struct Ints {
  const void *data;
  bool wide;
  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t *>(data)[i]
                : static_cast<const int32_t *>(data)[i];
  }
};

inline bool isWidth(int32_t bits) { return bits == 32 || bits == 64; }
/// What to say of one that is none.
inline std::string badWidth(const char *field, int32_t bits) {
  return std::string(field) + " is " + std::to_string(bits) + "; use 32 or 64";
}

} // namespace trc

#endif // TERRACE_RUNTIME_EXEC_INTS_H
