//===- Crc32c.cpp - Checksum of records -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/store/Crc32c.h"

#include <cstring>
#include <nmmintrin.h>

uint32_t trc::crc32c(uint32_t crc, const void *data, size_t bytes) {
  const char *p = static_cast<const char *>(data);
  uint64_t c = ~crc;
  for (; bytes >= 8; bytes -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    c = _mm_crc32_u64(c, word);
  }
  uint32_t low = static_cast<uint32_t>(c);
  for (; bytes; --bytes, ++p)
    low = _mm_crc32_u8(low, static_cast<uint8_t>(*p));
  return ~low;
}
