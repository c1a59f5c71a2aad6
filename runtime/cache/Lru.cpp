//===- Lru.cpp - The row that was used longest ago leaves -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/Policy.h"
#include "runtime/core/HugeArray.h"

using namespace trc;

namespace {

class Lru final : public Policy {
public:
  explicit Lru(uint32_t slots) : end(slots) {}
  bool allocate() {
    if (!nodes.allocate(uint64_t(end) + 1))
      return false;
    nodes[end] = {end, end};
    return true;
  }

  void insert(uint32_t) override {}
  void touch(uint32_t) override {} // admit() orders by the end of use
  void admit(uint32_t slot) override {
    uint32_t first = nodes[end].next;
    nodes[slot] = {end, first};
    nodes[first].prev = slot;
    nodes[end].next = slot;
  }
  void remove(uint32_t slot) override {
    Node n = nodes[slot];
    nodes[n.prev].next = n.next;
    nodes[n.next].prev = n.prev;
  }
  uint32_t victim() override {
    uint32_t last = nodes[end].prev;
    return last == end ? none : last;
  }
  void prefetch(uint32_t slot) const override { nodes.prefetch(slot); }
  void
  forEach(const std::function<void(uint32_t, uint16_t)> &take) const override {
    for (uint32_t slot = nodes[end].prev; slot != end; slot = nodes[slot].prev)
      take(slot, 1);
  }
  void restore(uint32_t slot, uint16_t) override { admit(slot); }

private:
  struct Node {
    uint32_t prev, next;
  };
  const uint32_t end; // the sentinel of the ring
  HugeArray<Node> nodes;
};

} // namespace

std::unique_ptr<Policy> trc::makeLru(uint32_t slots) {
  auto lru = std::make_unique<Lru>(slots);
  return lru->allocate() ? std::move(lru) : nullptr;
}
