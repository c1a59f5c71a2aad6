//===- Lfu.cpp - The row used least often leaves, with ageing -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts batches per row. Slots lie in one list per power of two of their
// count, each list in LRU order, so that a scan of rows used once never drives
// out rows that come back. Once every few sweeps of the cache all counts are
// halved, which is the same as moving every list down by one: O(1) per list.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/Policy.h"
#include "runtime/core/HugeArray.h"

#include <algorithm>

using namespace trc;

namespace {

class Lfu final : public Policy {
public:
  explicit Lfu(uint32_t slots)
      : slots(slots), agePeriod(std::max<uint64_t>(8 * uint64_t(slots), 64)) {}
  bool allocate() {
    if (!nodes.allocate(uint64_t(slots) + lists))
      return false;
    for (uint32_t b = 0; b < lists; ++b)
      nodes[slots + b].prev = nodes[slots + b].next = slots + b;
    return true;
  }

  void insert(uint32_t slot) override {
    nodes[slot].count = 1;
    nodes[slot].epoch = epoch;
    tick();
  }
  void touch(uint32_t slot) override {
    uint32_t count = aged(slot) + 1;
    nodes[slot].count = static_cast<uint16_t>(std::min(count, 0xffffu));
    tick();
  }
  void admit(uint32_t slot) override {
    uint32_t count = aged(slot);
    uint32_t b = count < 2 ? 0 : 31 - __builtin_clz(count);
    uint32_t end = slots + b;
    uint32_t first = nodes[end].next;
    nodes[slot].prev = end;
    nodes[slot].next = first;
    nodes[first].prev = slot;
    nodes[end].next = slot;
  }
  void remove(uint32_t slot) override {
    uint32_t prev = nodes[slot].prev, next = nodes[slot].next;
    nodes[prev].next = next;
    nodes[next].prev = prev;
  }
  uint32_t victim() override {
    for (uint32_t end = slots; end < slots + lists; ++end)
      if (nodes[end].prev != end)
        return nodes[end].prev;
    return none;
  }
  void prefetch(uint32_t slot) const override { nodes.prefetch(slot); }
  void
  forEach(const std::function<void(uint32_t, uint16_t)> &take) const override {
    for (uint32_t end = slots; end < slots + lists; ++end)
      for (uint32_t slot = nodes[end].prev; slot != end;
           slot = nodes[slot].prev)
        take(slot, countNow(nodes[slot]));
  }
  void restore(uint32_t slot, uint16_t heat) override {
    nodes[slot].count = heat;
    nodes[slot].epoch = epoch;
    admit(slot);
  }
  uint64_t age() const override { return ticks; }
  void setAge(uint64_t age) override { ticks = age % agePeriod; }

private:
  struct Node {
    uint32_t prev, next;
    uint16_t count, epoch;
  };
  static_assert(sizeof(Node) <= policySlotBytes);
  static constexpr uint32_t lists = 16;

  uint16_t countNow(const Node &n) const {
    uint16_t passed = static_cast<uint16_t>(epoch - n.epoch);
    return passed < 16 ? static_cast<uint16_t>(n.count >> passed) : 0;
  }
  /// The slot's count, halved once per epoch since it was last looked at.
  uint32_t aged(uint32_t slot) {
    Node &n = nodes[slot];
    n.count = countNow(n);
    n.epoch = epoch;
    return n.count;
  }

  void tick() {
    if (++ticks < agePeriod)
      return;
    ticks = 0;
    ++epoch;
    for (uint32_t b = 1; b < lists; ++b)
      moveDown(slots + b, slots + b - 1);
  }
  /// Puts one list before the most recent end of another.
  void moveDown(uint32_t from, uint32_t to) {
    if (nodes[from].next == from)
      return;
    uint32_t first = nodes[from].next, last = nodes[from].prev;
    uint32_t behind = nodes[to].next;
    nodes[to].next = first;
    nodes[first].prev = to;
    nodes[last].next = behind;
    nodes[behind].prev = last;
    nodes[from].next = nodes[from].prev = from;
  }

  const uint32_t slots;
  const uint64_t agePeriod;
  uint64_t ticks = 0;
  uint16_t epoch = 0;
  HugeArray<Node> nodes;
};

} // namespace

std::unique_ptr<Policy> trc::makeLfu(uint32_t slots) {
  auto lfu = std::make_unique<Lfu>(slots);
  return lfu->allocate() ? std::move(lfu) : nullptr;
}
