//===- RowInit.cpp - Counter-based initial rows
//----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/core/RowInit.h"

#include "runtime/core/Math.h"

#include <algorithm>
#include <cmath>

namespace trc {

void philox4x32(const uint32_t counter[4], const uint32_t key[2],
                uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53u) * c0;
    uint64_t b = uint64_t(0xCD9E8D57u) * c2;
    uint32_t n0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    uint32_t n2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

RowInit::RowInit(Kind kind, uint64_t key, double first, double second)
    : kind_(kind), key_(key) {
  switch (kind) {
  case Kind::Uniform:
    base = static_cast<float>(first);
    scale = static_cast<float>(second - first);
    break;
  case Kind::Normal:
    mean = first;
    std = second;
    break;
  case Kind::Constant:
    base = static_cast<float>(first);
    break;
  }
}

void RowInit::fill(int64_t row, int64_t begin, int64_t end, float *out) const {
  if (kind_ == Kind::Constant) {
    std::fill(out, out + (end - begin), base);
    return;
  }
  const uint32_t key[2] = {static_cast<uint32_t>(key_),
                           static_cast<uint32_t>(key_ >> 32)};
  uint32_t counter[4] = {
      static_cast<uint32_t>(row),
      static_cast<uint32_t>(static_cast<uint64_t>(row) >> 32), 0, 0};
  for (int64_t column = begin; column < end; column += 4, out += 4) {
    uint32_t words[4];
    counter[2] = static_cast<uint32_t>(column / 4);
    philox4x32(counter, key, words);
    int64_t n = std::min<int64_t>(4, end - column);
    for (int64_t i = 0; i < n; ++i) {
      if (kind_ == Kind::Uniform) {
        float u = static_cast<float>(words[i] >> 8) * 0x1p-24f;
        out[i] = std::fma(scale, u, base);
      } else {
        double u = (static_cast<double>(words[i]) + 0.5) * 0x1p-32;
        out[i] = static_cast<float>(mean + std * math::normalQuantile(u));
      }
    }
  }
}

} // namespace trc
