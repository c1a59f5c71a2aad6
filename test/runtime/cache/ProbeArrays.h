//===- ProbeArrays.h - A Probe with arrays of its own -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_CACHE_PROBEARRAYS_H
#define TERRACE_TEST_RUNTIME_CACHE_PROBEARRAYS_H

#include "runtime/cache/GroupCache.h"

#include <vector>

namespace trc {

struct ProbeArrays {
  std::vector<uint32_t> rows, slots, missRow, missSlot, victimRow, victimSlot;
  std::vector<BufferPlace> missPlace;
  Probe p;

  ProbeArrays(const GroupCacheOptions &o, std::vector<uint32_t> r,
              uint32_t writeSlot)
      : rows(std::move(r)), slots(o.maxUnique), missRow(o.maxMiss),
        missSlot(o.maxMiss), victimRow(o.maxMiss), victimSlot(o.maxMiss),
        missPlace(o.maxMiss) {
    p.rows = rows.data();
    p.unique = static_cast<uint32_t>(rows.size());
    p.writeSlot = writeSlot;
    p.slots = slots.data();
    p.missRow = missRow.data();
    p.missSlot = missSlot.data();
    p.missPlace = missPlace.data();
    p.victimRow = victimRow.data();
    p.victimSlot = victimSlot.data();
  }
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_CACHE_PROBEARRAYS_H
