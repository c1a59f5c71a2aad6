//===- Policy.h - Which row leaves a cache ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A policy orders the slots that hold a row nobody pins. It changes speed,
// never results. Host lane only.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CACHE_POLICY_H
#define TERRACE_RUNTIME_CACHE_POLICY_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace trc {

class Policy {
public:
  static constexpr uint32_t none = UINT32_MAX;

  virtual ~Policy() = default;
  /// A new row came into the slot, pinned.
  virtual void insert(uint32_t slot) = 0;
  /// A batch found its row there.
  virtual void touch(uint32_t slot) = 0;
  /// The last pin is gone: the slot may be evicted.
  virtual void admit(uint32_t slot) = 0;
  /// It is pinned again, or its row has left.
  virtual void remove(uint32_t slot) = 0;
  /// The admitted slot to evict next, still admitted; none if there is none.
  virtual uint32_t victim() = 0;
  virtual void prefetch(uint32_t slot) const = 0;

  //--- A warm restart: the same order again, elsewhere ----------------------
  /// Every admitted slot, the one to evict first first, with its heat: what the
  /// policy knows of it besides its place in this order.
  virtual void forEach(
      const std::function<void(uint32_t slot, uint16_t heat)> &take) const = 0;
  /// Admits a slot behind those that were restored before. A heat of 1 is a row
  /// of which nothing is known.
  virtual void restore(uint32_t slot, uint16_t heat) = 0;
  /// What ages all slots at once: a number to hand to another policy of the
  /// same kind and size.
  virtual uint64_t age() const { return 0; }
  virtual void setAge(uint64_t) {}
};

/// Null for an unknown name, or with `noMemory` set where memory is short.
std::unique_ptr<Policy> makePolicy(const std::string &name, uint32_t slots,
                                   bool &noMemory);

std::unique_ptr<Policy> makeLru(uint32_t slots);
std::unique_ptr<Policy> makeClock(uint32_t slots);
std::unique_ptr<Policy> makeLfu(uint32_t slots);

/// Bytes per slot of the hungriest policy.
constexpr uint64_t policySlotBytes = 12;

} // namespace trc

#endif // TERRACE_RUNTIME_CACHE_POLICY_H
