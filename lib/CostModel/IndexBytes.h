//===- IndexBytes.h - Memory of a group's directory -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the bound calls `index`, asked from the runtime's own cache and store,
// so that planned and used bytes are one number. Link TerraceRtCache.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_COSTMODEL_INDEXBYTES_H
#define TERRACE_LIB_COSTMODEL_INDEXBYTES_H

#include "runtime/cache/GroupCache.h"
#include "runtime/store/RecordFormat.h"

namespace terrace::planner {

/// `writeSlots`: depth of the group's write-buffer ring.
inline int64_t indexBytes(int64_t rows, int64_t slots, int64_t maxMiss,
                          int64_t writeSlots) {
  constexpr uint64_t transfers = 64; // of one batch in flight, at most
  uint64_t r = static_cast<uint64_t>(rows),
           miss = static_cast<uint64_t>(maxMiss),
           depth = static_cast<uint64_t>(writeSlots);
  return static_cast<int64_t>(
      trc::GroupCache::memoryBytes(r, static_cast<uint64_t>(slots), miss,
                                   depth) +
      trc::rowStoreMemory(r, depth, miss, transfers));
}

} // namespace terrace::planner

#endif // TERRACE_LIB_COSTMODEL_INDEXBYTES_H
