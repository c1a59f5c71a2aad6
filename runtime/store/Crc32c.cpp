//===- Crc32c.cpp - Checksum of records -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instruction takes 8 bytes and three cycles, but one can start in each
// cycle: so three parts of a record are taken side by side, and what the first
// two leave is carried over the bytes behind them by a carry-less product.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/Crc32c.h"

#include <array>
#include <cpuid.h>
#include <cstring>
#include <immintrin.h>

using namespace trc;

namespace {

/// Bit 31 is x^0, as the instruction has it.
constexpr uint32_t polynomial = 0x82F63B78;

/// Words of one part, at most: a table of 2 KiB.
constexpr size_t mostWords = 256;
/// What is shorter is not worth a product.
constexpr size_t leastWords = 5;

/// [n]: x^(64 n - 33), the factor that moves a checksum over n words when its
/// product, 63 bits, goes through the instruction, which multiplies by x^33.
constexpr auto shifts = [] {
  std::array<uint32_t, 2 * mostWords + 1> table{};
  uint32_t power = 0x80000000u; // x^0
  for (unsigned bits = 0; bits <= 64 * 2 * mostWords - 33; ++bits) {
    if ((bits + 33) % 64 == 0)
      table[(bits + 33) / 64] = power;
    power = power >> 1 ^ (power & 1 ? polynomial : 0);
  }
  return table;
}();

uint64_t word(const char *p) {
  uint64_t w;
  std::memcpy(&w, p, 8);
  return w;
}

/// Not in x86-64-v3 by name, though no CPU of that kind is known to lack it. By
/// hand: __builtin_cpu_supports needs libgcc.a, which a compiled model is
/// linked without.
const bool hasProducts = [] {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_PCLMUL);
}();

__attribute__((target("pclmul"))) uint64_t product(uint64_t crc,
                                                   uint32_t factor) {
  __m128i x = _mm_clmulepi64_si128(
      _mm_cvtsi64_si128(static_cast<int64_t>(crc)),
      _mm_cvtsi64_si128(static_cast<int64_t>(uint64_t(factor))), 0);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(x));
}

/// Three parts of `words` each.
__attribute__((target("pclmul"))) uint64_t threeParts(uint64_t crc,
                                                      const char *p,
                                                      size_t words) {
  uint64_t a = crc, b = 0, c = 0;
  const char *q = p + 8 * words, *r = q + 8 * words;
  for (size_t i = 0; i + 1 < words; ++i) {
    a = _mm_crc32_u64(a, word(p + 8 * i));
    b = _mm_crc32_u64(b, word(q + 8 * i));
    c = _mm_crc32_u64(c, word(r + 8 * i));
  }
  size_t last = 8 * (words - 1);
  a = _mm_crc32_u64(a, word(p + last));
  b = _mm_crc32_u64(b, word(q + last));
  return _mm_crc32_u64(c, word(r + last) ^ product(a, shifts[2 * words]) ^
                              product(b, shifts[words]));
}

} // namespace

uint32_t trc::crc32c(uint32_t crc, const void *data, size_t bytes) {
  const char *p = static_cast<const char *>(data);
  uint64_t c = ~crc;
  while (hasProducts && bytes >= 3 * 8 * leastWords) {
    size_t words = bytes / 24 < mostWords ? bytes / 24 : mostWords;
    c = threeParts(c, p, words);
    p += 24 * words;
    bytes -= 24 * words;
  }
  for (; bytes >= 8; bytes -= 8, p += 8)
    c = _mm_crc32_u64(c, word(p));
  uint32_t low = static_cast<uint32_t>(c);
  for (; bytes; --bytes, ++p)
    low = _mm_crc32_u8(low, static_cast<uint8_t>(*p));
  return ~low;
}
