//===- Clock.cpp - A second chance for what was used again ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/Policy.h"
#include "runtime/core/HugeArray.h"

using namespace trc;

namespace {

class Clock final : public Policy {
public:
  explicit Clock(uint32_t slots) : slots(slots) {}
  bool allocate() { return states.allocate(slots); }

  void insert(uint32_t slot) override { states[slot] = 0; }
  void touch(uint32_t slot) override { states[slot] |= used; }
  void admit(uint32_t slot) override {
    states[slot] |= admitted;
    ++count;
  }
  void remove(uint32_t slot) override {
    states[slot] &= ~admitted;
    --count;
  }
  uint32_t victim() override {
    if (count == 0)
      return none;
    // At most two rounds: the first takes every second chance away.
    for (;; hand = hand + 1 == slots ? 0 : hand + 1) {
      uint8_t &state = states[hand];
      if (!(state & admitted))
        continue;
      if (!(state & used))
        return hand;
      state &= ~used;
    }
  }
  void prefetch(uint32_t slot) const override { states.prefetch(slot); }
  /// From the hand on: a policy whose slots are taken in this order, with its
  /// hand at the first, goes on alike.
  void
  forEach(const std::function<void(uint32_t, uint16_t)> &take) const override {
    for (uint32_t n = 0, slot = hand; n < slots;
         ++n, slot = slot + 1 == slots ? 0 : slot + 1)
      if (states[slot] & admitted)
        take(slot, states[slot] & used ? 1 : 0);
  }
  void restore(uint32_t slot, uint16_t heat) override {
    states[slot] = heat ? used : 0;
    admit(slot);
  }

private:
  static constexpr uint8_t admitted = 1, used = 2;
  const uint32_t slots;
  uint32_t hand = 0, count = 0;
  HugeArray<uint8_t> states;
};

} // namespace

std::unique_ptr<Policy> trc::makeClock(uint32_t slots) {
  auto clock = std::make_unique<Clock>(slots);
  return clock->allocate() ? std::move(clock) : nullptr;
}
