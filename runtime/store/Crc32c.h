//===- Crc32c.h - Checksum of records ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CRC32C (Castagnoli) by the CPU's instruction, which every x86-64-v3 has:
// about 30 bytes per ns for records of some hundred bytes and more.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_CRC32C_H
#define TERRACE_RUNTIME_STORE_CRC32C_H

#include <cstddef>
#include <cstdint>

namespace trc {

/// Continues a checksum; start with 0. crc32c(crc32c(0, a), b) is that of a
/// followed by b.
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_CRC32C_H
