//===- IndexBytes.h - Stores: bytes on the tier and in memory ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asked from the runtime's own classes, so that bound and use cannot differ.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_COSTMODEL_INDEXBYTES_H
#define TERRACE_LIB_COSTMODEL_INDEXBYTES_H

#include "runtime/cache/GroupCache.h"
#include "runtime/core/RingLayout.h"
#include "runtime/store/RecordFormat.h"
#include "runtime/store/StoreGeometry.h"

namespace terrace::planner {

/// What the store of a group's rows is made of.
struct StoreShape {
  int64_t rows = 0, storeBytes = 0;
  double space = 2;     // capacity as a multiple of the rows' bytes
  int64_t retained = 1; // checkpoints at once
  int extents = 1;
  bool mapped = false;             // read in place
  int64_t depth = trc::storeDepth; // of the I/O lane

  /// As the module says, once the rest is known. `memoryHome`: the rows live in
  /// memory.
  void setSpace(double ofModule, bool memoryHome) {
    space = memoryHome ? trc::memoryHomeSpace(ofModule,
                                              static_cast<uint64_t>(retained),
                                              static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(storeBytes))
                       : ofModule;
  }
  trc::StoreGeometry geometry() const {
    return trc::storeGeometry(static_cast<uint64_t>(rows),
                              static_cast<uint64_t>(storeBytes), space,
                              static_cast<uint32_t>(extents));
  }
  /// On the tier.
  int64_t bytes() const {
    return static_cast<int64_t>(
        geometry().totalBytes(static_cast<uint32_t>(extents)));
  }
  /// In memory: where rows lie, what checkpoints name.
  int64_t indexBytes(int64_t maxWrites, int64_t writeSlots) const {
    return static_cast<int64_t>(trc::storeMemory(
        static_cast<uint64_t>(rows), geometry(),
        static_cast<uint64_t>(storeBytes), static_cast<uint64_t>(retained) + 1,
        static_cast<uint64_t>(writeSlots), static_cast<uint64_t>(maxWrites),
        static_cast<uint64_t>(depth), mapped));
  }
};

/// Of a dirty row while a checkpoint is cut and written.
constexpr int64_t cutRowBytes = 12;

/// Directory and store of a cached group. `writeSlots`: depth of its
/// write-buffer ring.
inline int64_t indexBytes(const StoreShape &store, int64_t slots,
                          int64_t maxMiss, int64_t writeSlots) {
  return static_cast<int64_t>(trc::GroupCache::memoryBytes(
             static_cast<uint64_t>(store.rows), static_cast<uint64_t>(slots),
             static_cast<uint64_t>(maxMiss),
             static_cast<uint64_t>(writeSlots))) +
         store.indexBytes(maxMiss, writeSlots) + slots * cutRowBytes;
}

/// Bookkeeping and store of a group whose home is memory.
inline int64_t memoryHomeIndexBytes(const StoreShape &store) {
  return trc::memoryHomeIndexBytes(store.rows) + store.indexBytes(0, 1);
}

} // namespace terrace::planner

#endif // TERRACE_LIB_COSTMODEL_INDEXBYTES_H
