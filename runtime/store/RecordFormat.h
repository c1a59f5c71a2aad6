//===- RecordFormat.h - A row as it lies on a device ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A record is an 8-byte header and the payload (weights, then optimizer
// state), padded to the store pitch. The header holds a CRC32C over a key of
// the state, the row and the payload, mixed with where and when the record was
// appended, so that torn, stale, misdirected and lost writes fail on reading.
// Pure and header-only: the compiler sizes rings and buffers with it.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_STORE_RECORDFORMAT_H
#define TERRACE_RUNTIME_STORE_RECORDFORMAT_H

#include <cstdint>

namespace trc {

struct RecordHeader {
  uint32_t crc;
  uint32_t row;
};
constexpr uint64_t recordHeaderBytes = sizeof(RecordHeader);
constexpr uint64_t recordAlign = 16;

/// store_bytes of docs/artifact.md: the pitch of records with this payload.
constexpr uint64_t recordBytes(uint64_t payloadBytes) {
  return (recordHeaderBytes + payloadBytes + recordAlign - 1) / recordAlign *
         recordAlign;
}

/// Whole blocks that one record may touch, in bytes.
constexpr uint64_t recordSpan(uint64_t storeBytes, uint64_t block) {
  // Records start at multiples of 16, so the worst start is block - 16.
  return storeBytes == 0 || block % storeBytes == 0
             ? block
             : (storeBytes + block - recordAlign + block - 1) / block * block;
}

/// DeviceOptions::bufferBytes for a device whose largest records have this
/// pitch, whatever the block size of its files (up to 4096). Appends go in
/// transfers of this size: a file system that allocates as it is written pays
/// for each.
constexpr uint64_t deviceBufferBytes(uint64_t largestStoreBytes) {
  constexpr uint64_t append = 64 << 10;
  uint64_t span = recordSpan(largestStoreBytes, 4096);
  return span > append ? span : append;
}

/// What the checksum of a sealed record is XORed with when it becomes record
/// `index` of a segment. For each index a bijection of the generation, so an
/// older life of the segment never passes.
constexpr uint32_t recordMix(uint32_t generation, uint32_t index) {
  uint32_t x = generation * 0x9E3779B1u ^ index * 0x85EBCA6Bu;
  return x ^ x >> 15;
}

} // namespace trc

#endif // TERRACE_RUNTIME_STORE_RECORDFORMAT_H
