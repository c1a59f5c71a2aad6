//===- MappedRows.cpp - Records that are read where they lie --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/store/MappedRows.h"
#include "runtime/store/RecordFormat.h"

#include <algorithm>
#include <cstring>

using namespace trc;

MappedRows::MappedRows(const Device &device, const StoreLayout &layout,
                       const std::vector<uint32_t> &files)
    : divide(layout.perSegment()), pitch(layout.recordPitch()) {
  if (layout.places() >= verifiedBit - 1)
    return;
  uint64_t used = uint64_t(layout.perSegment()) * pitch;
  std::vector<const char *> found;
  for (uint32_t s = 0; s < layout.segments(); ++s) {
    StoreLayout::Position at = layout.position(s, 0);
    found.push_back(device.mapped(files[at.extent], at.offset, used));
  }
  if (std::any_of(found.begin(), found.end(),
                  [](const char *base) { return base != nullptr; }))
    bases = std::move(found);
}

/// Three rows are at work in each turn, some turns apart: the location of one
/// and the payload of the next are sent for while a third is copied. All at an
/// even pace: the CPU waits for a bounded number of cache lines at once.
void MappedRows::copy(const Gather &g, uint32_t begin, uint32_t end,
                      const Left &left) const {
  constexpr uint32_t aheadBytes = 4096, most = 32, cacheLine = 64;
  const uint32_t ahead = std::clamp(aheadBytes / g.payloadBytes, 1u, most);
  const uint32_t near = std::min(g.payloadBytes, aheadBytes);
  const char *ring[most]; // of the rows ahead
  uint32_t missing[most], missed = 0;
  auto sendForLocation = [&](uint32_t i) {
    if (i < end && g.wanted[i] < g.rows)
      __builtin_prefetch(&g.location[g.wanted[i]]);
  };
  auto sendForPayload = [&](uint32_t i) -> const char * {
    if (i >= end || g.wanted[i] >= g.rows)
      return nullptr;
    uint32_t at = g.location[g.wanted[i]].load(std::memory_order_acquire);
    if (!(at & verifiedBit))
      return nullptr;
    uint32_t place = (at & ~verifiedBit) - 1;
    uint32_t segment = divide.quotient(place);
    uint32_t index = place - segment * divide.divisor();
    const char *base = bases[segment];
    if (!base)
      return nullptr;
    const char *payload = base + uint64_t(index) * pitch + recordHeaderBytes;
    for (uint32_t line = 0; line < near; line += cacheLine)
      __builtin_prefetch(payload + line);
    // It begins anywhere in its first line.
    __builtin_prefetch(payload + near - 1);
    return payload;
  };
  for (uint32_t i = begin; i < begin + 2 * ahead; ++i)
    sendForLocation(i);
  for (uint32_t i = 0; i < ahead; ++i)
    ring[i] = sendForPayload(begin + i);
  for (uint32_t i = begin, turn = 0; i < end; ++i) {
    const char *payload = ring[turn];
    sendForLocation(i + 2 * ahead);
    ring[turn] = sendForPayload(i + ahead);
    turn = turn + 1 == ahead ? 0 : turn + 1;
    if (payload) {
      std::memcpy(g.out + i * g.pitch, payload, g.payloadBytes);
      continue;
    }
    missing[missed++] = i;
    if (missed == most) {
      left(missing, missed);
      missed = 0;
    }
  }
  if (missed > 0)
    left(missing, missed);
}
