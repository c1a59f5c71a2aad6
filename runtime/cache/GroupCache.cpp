//===- GroupCache.cpp - Directory and slots of one group ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The directory holds one code per row: never written, at home, a record of
// the write buffer, or a slot. A slot remembers its row's code from before, so
// that a clean row can leave without a trace.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/GroupCache.h"
#include "runtime/cache/Policy.h"
#include "runtime/core/HugeArray.h"

#include <algorithm>
#include <atomic>
#include <vector>

using namespace trc;

namespace {

constexpr uint32_t codeNever = 0, codeHome = 1, firstBufferCode = 2;
constexpr uint32_t slotFlag = 0x80000000u;
constexpr uint32_t noRow = UINT32_MAX;

bool isSlot(uint32_t code) { return code & slotFlag; }
bool isBuffer(uint32_t code) {
  return code >= firstBufferCode && !isSlot(code);
}

struct SlotInfo {
  uint32_t row;
  uint32_t home; // where the row goes if it leaves clean
  uint32_t pins;
};

/// Written by the host lane only, read by anybody.
class Counter {
public:
  void add(uint64_t n) { set(get() + n); }
  void set(uint64_t n) { value.store(n, std::memory_order_relaxed); }
  uint64_t get() const { return value.load(std::memory_order_relaxed); }

private:
  std::atomic<uint64_t> value{0};
};

} // namespace

std::unique_ptr<Policy> trc::makePolicy(const std::string &name, uint32_t slots,
                                        bool &noMemory) {
  std::unique_ptr<Policy> policy;
  noMemory = true;
  if (name == "lru")
    policy = makeLru(slots);
  else if (name == "clock")
    policy = makeClock(slots);
  else if (name == "lfu")
    policy = makeLfu(slots);
  else
    noMemory = false;
  if (policy)
    noMemory = false;
  return policy;
}

struct GroupCache::Impl {
  GroupCacheOptions options;
  HugeArray<uint32_t> directory; // [rows]
  HugeArray<SlotInfo> info;      // [slots]
  HugeArray<uint8_t> dirty;      // [slots], marked by the work lane
  HugeArray<uint64_t> pending;   // a bit per slot, while cutting
  bool cutting = false;
  HugeArray<uint32_t> freeSlots; // [slots], a stack
  uint32_t freeCount = 0;
  HugeArray<uint32_t> buffer;        // [writeSlots * maxMiss]
  std::vector<uint32_t> bufferCount; // [writeSlots]
  std::unique_ptr<Policy> policy;
  uint32_t pinned = 0; // slots with a pin

  struct {
    Counter accesses, hitAccesses, lookups, hits, misses, firstTouches,
        bufferFetches, evictions, writes, resident, pinned, peakResident,
        warmed;
  } counters;

  uint32_t resident() const { return options.slots - freeCount; }
  uint32_t bufferCode(uint32_t slot, uint32_t index) const {
    return firstBufferCode + slot * options.maxMiss + index;
  }
  BufferPlace bufferPlace(uint32_t code) const {
    uint32_t n = code - firstBufferCode;
    return {n / options.maxMiss, n % options.maxMiss};
  }

  bool pin(uint32_t slot) {
    if (info[slot].pins++ != 0)
      return false;
    policy->remove(slot);
    ++pinned;
    return true;
  }
  void unpinSlot(uint32_t slot) {
    if (--info[slot].pins != 0)
      return;
    policy->admit(slot);
    --pinned;
  }

  void recycle(uint32_t writeSlot);
  void evict(uint32_t slot, Probe &probe);
  uint32_t lookUp(Probe &probe, uint64_t &hitAccesses);
  void place(Probe &probe);
  void publish() {
    counters.resident.set(resident());
    counters.pinned.set(pinned);
    counters.peakResident.set(
        std::max<uint64_t>(counters.peakResident.get(), resident()));
  }
};

GroupCache::GroupCache(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
GroupCache::~GroupCache() = default;

uint64_t GroupCache::memoryBytes(uint64_t rows, uint64_t slots,
                                 uint64_t maxMiss, uint64_t writeSlots) {
  return rows * sizeof(uint32_t) +
         slots * (sizeof(SlotInfo) + sizeof(uint8_t) + sizeof(uint32_t) +
                  policySlotBytes) +
         (slots + 63) / 64 * sizeof(uint64_t) +
         writeSlots * (maxMiss * sizeof(uint32_t) + sizeof(uint32_t));
}

Result<std::unique_ptr<GroupCache>>
GroupCache::create(const GroupCacheOptions &o) {
  auto bad = [&](const std::string &what) {
    return Status(TRC_BAD_ARGUMENT,
                  "cache of group '" + o.group + "': " + what);
  };
  if (o.rows == 0 || o.rows >= noRow)
    return bad("rows must be between 1 and 2^32 - 2, not " +
               std::to_string(o.rows));
  if (o.slots == 0 || o.slots >= slotFlag || o.retained > o.slots)
    return bad("slots must be between max(1, retained = " +
               std::to_string(o.retained) + ") and 2^31 - 1, not " +
               std::to_string(o.slots));
  if (o.writeSlots == 0 ||
      uint64_t(o.writeSlots) * o.maxMiss + firstBufferCode >= slotFlag)
    return bad("the write buffer has " + std::to_string(o.writeSlots) + " x " +
               std::to_string(o.maxMiss) +
               " records; at least one slot and fewer than 2^31 are possible");
  auto impl = std::make_unique<Impl>();
  impl->options = o;
  bool noMemory = false;
  impl->policy = makePolicy(o.policy, o.slots, noMemory);
  if (!impl->policy && !noMemory)
    return bad("policy '" + o.policy + "' is none of lru, clock, lfu");
  if (noMemory || !impl->directory.allocate(o.rows) ||
      !impl->info.allocate(o.slots) || !impl->dirty.allocate(o.slots) ||
      !impl->freeSlots.allocate(o.slots) ||
      !impl->pending.allocate((uint64_t(o.slots) + 63) / 64) ||
      !impl->buffer.allocate(uint64_t(o.writeSlots) * o.maxMiss))
    return Status(TRC_NO_MEMORY,
                  "cache of group '" + o.group + "': no memory for " +
                      std::to_string(memoryBytes(o.rows, o.slots, o.maxMiss,
                                                 o.writeSlots)) +
                      " bytes of directory");
  impl->bufferCount.assign(o.writeSlots, 0);
  for (uint32_t s = 0; s < o.slots; ++s) {
    impl->info[s].row = noRow;
    impl->freeSlots[s] = o.slots - 1 - s; // slot 0 first
  }
  impl->freeCount = o.slots;
  return std::unique_ptr<GroupCache>(new GroupCache(std::move(impl)));
}

/// The ring slot is used anew: what it held is at home by now, unless the row
/// has moved on.
void GroupCache::Impl::recycle(uint32_t writeSlot) {
  for (uint32_t i = 0; i < bufferCount[writeSlot]; ++i) {
    uint32_t code = bufferCode(writeSlot, i);
    uint32_t &at = directory[buffer[code - firstBufferCode]];
    if (at == code)
      at = codeHome;
    else if (isSlot(at) && info[at & ~slotFlag].home == code)
      info[at & ~slotFlag].home = codeHome;
  }
  bufferCount[writeSlot] = 0;
}

void GroupCache::Impl::evict(uint32_t slot, Probe &probe) {
  policy->remove(slot);
  SlotInfo &s = info[slot];
  if (dirty[slot]) {
    uint32_t v = probe.victims++;
    probe.victimRow[v] = s.row;
    probe.victimSlot[v] = slot;
    uint32_t code = bufferCode(probe.writeSlot, v);
    buffer[code - firstBufferCode] = s.row;
    directory[s.row] = code;
    dirty[slot] = 0;
    // It goes to the store as it is.
    pending[slot / 64] &= ~(uint64_t(1) << (slot % 64));
  } else {
    directory[s.row] = s.home;
  }
  s.row = noRow;
  freeSlots[freeCount++] = slot;
  counters.evictions.add(1);
}

/// Pins the hits; marks the others in `slots` with noRow and counts them by
/// source.
uint32_t GroupCache::Impl::lookUp(Probe &probe, uint64_t &hitAccesses) {
  constexpr uint32_t far = 32, near = 12;
  uint32_t n = probe.unique, missing = 0;
  for (uint32_t u = 0; u < std::min(n, far); ++u)
    directory.prefetch(probe.rows[u]);
  for (uint32_t u = 0; u < n; ++u) {
    if (u + far < n)
      directory.prefetch(probe.rows[u + far]);
    if (u + near < n) {
      uint32_t code = directory[probe.rows[u + near]];
      if (isSlot(code)) {
        info.prefetch(code & ~slotFlag);
        policy->prefetch(code & ~slotFlag);
      }
    }
    uint32_t code = directory[probe.rows[u]];
    if (isSlot(code)) {
      uint32_t slot = code & ~slotFlag;
      probe.slots[u] = slot;
      pin(slot);
      hitAccesses += probe.seg ? probe.seg[u + 1] - probe.seg[u] : 1;
      continue;
    }
    probe.slots[u] = noRow;
    ++missing;
    if (code == codeNever)
      ++probe.fromInit;
    else if (code == codeHome)
      ++probe.fromHome;
    else
      ++probe.fromBuffer;
  }
  return missing;
}

/// Gives every missing row a free slot.
void GroupCache::Impl::place(Probe &probe) {
  uint32_t atHome = 0, atBuffer = probe.fromHome,
           atInit = probe.fromHome + probe.fromBuffer;
  for (uint32_t u = 0; u < probe.unique; ++u) {
    if (probe.slots[u] != noRow) {
      policy->touch(probe.slots[u]);
      continue;
    }
    uint32_t row = probe.rows[u];
    uint32_t code = directory[row];
    uint32_t &at = code == codeNever  ? atInit
                   : code == codeHome ? atHome
                                      : atBuffer;
    uint32_t slot = freeSlots[--freeCount];
    probe.slots[u] = slot;
    probe.missRow[at] = row;
    probe.missSlot[at] = slot;
    if (isBuffer(code))
      probe.missPlace[at] = bufferPlace(code);
    ++at;
    directory[row] = slot | slotFlag;
    info[slot] = {row, code, 1};
    ++pinned;
    policy->insert(slot);
  }
}

Status GroupCache::probe(Probe &p) {
  Impl &c = *impl;
  const GroupCacheOptions &o = c.options;
  p.misses = p.fromHome = p.fromBuffer = p.fromInit = p.victims = 0;
  if (p.unique > o.maxUnique || p.writeSlot >= o.writeSlots)
    return Status(TRC_INTERNAL,
                  "cache of group '" + o.group + "': a batch of " +
                      std::to_string(p.unique) + " rows exceeds the plan's " +
                      std::to_string(o.maxUnique));
  c.recycle(p.writeSlot);

  uint64_t hitAccesses = 0;
  uint32_t missing = c.lookUp(p, hitAccesses);
  if (missing > o.maxMiss || uint64_t(c.pinned) + missing > o.slots) {
    for (uint32_t u = 0; u < p.unique; ++u)
      if (p.slots[u] != noRow)
        c.unpinSlot(p.slots[u]);
    p.fromHome = p.fromBuffer = p.fromInit = 0;
    return Status(TRC_INTERNAL, "cache of group '" + o.group +
                                    "': " + std::to_string(missing) +
                                    " rows are missing; the plan "
                                    "allows " +
                                    std::to_string(o.maxMiss) + " and " +
                                    std::to_string(o.slots - c.pinned) +
                                    " of " + std::to_string(o.slots) +
                                    " slots are not pinned");
  }

  // Evict until there is a slot for every miss, and down to `retained` as far
  // as the write buffer has room for it.
  uint64_t after = uint64_t(c.resident()) + missing;
  uint64_t goal = std::max<uint64_t>(o.retained, c.pinned + missing);
  for (uint64_t n = after; n > goal; --n) {
    uint32_t slot = c.policy->victim();
    if (slot == Policy::none ||
        (n <= o.slots && c.dirty[slot] && p.victims == o.maxMiss))
      break;
    c.evict(slot, p);
  }
  c.bufferCount[p.writeSlot] = p.victims;
  p.misses = missing;
  c.place(p);

  uint64_t accesses = p.seg && p.unique ? p.seg[p.unique] - p.seg[0] : p.unique;
  c.counters.accesses.add(accesses);
  c.counters.hitAccesses.add(hitAccesses);
  c.counters.lookups.add(p.unique);
  c.counters.hits.add(p.unique - missing);
  c.counters.misses.add(missing);
  c.counters.firstTouches.add(p.fromInit);
  c.counters.bufferFetches.add(p.fromBuffer);
  c.counters.writes.add(p.victims);
  c.publish();
  return {};
}

void GroupCache::markDirty(const uint32_t *slots, uint32_t begin,
                           uint32_t end) {
  for (uint32_t u = begin; u < end; ++u)
    impl->dirty[slots[u]] = 1;
}

void GroupCache::unpin(const Probe &p) {
  Impl &c = *impl;
  constexpr uint32_t ahead = 16;
  for (uint32_t u = 0; u < p.unique; ++u) {
    if (u + ahead < p.unique) {
      c.info.prefetch(p.slots[u + ahead]);
      c.policy->prefetch(p.slots[u + ahead]);
    }
    c.unpinSlot(p.slots[u]);
  }
  c.publish();
}

void GroupCache::undo(const Probe &p, bool spilled) {
  Impl &c = *impl;
  for (uint32_t k = 0; k < p.misses; ++k) {
    uint32_t slot = p.missSlot[k];
    c.directory[p.missRow[k]] = c.info[slot].home;
    c.info[slot] = {noRow, codeNever, 0};
    c.dirty[slot] = 0;
    --c.pinned;
    c.freeSlots[c.freeCount++] = slot;
  }
  for (uint32_t u = 0; u < p.unique; ++u)
    if (c.info[p.slots[u]].row == p.rows[u]) // not one of the above
      c.unpinSlot(p.slots[u]);
  if (!spilled && p.victims) {
    for (uint32_t v = 0; v < p.victims; ++v) {
      uint32_t row = p.victimRow[v], slot = p.victimSlot[v];
      c.directory[row] = slot | slotFlag;
      // Dirty, so where it was before does not matter any more.
      c.info[slot] = {row, codeNever, 0};
      c.dirty[slot] = 1;
      // Perhaps it was; once more does no harm.
      if (c.cutting)
        c.pending[slot / 64] |= uint64_t(1) << (slot % 64);
      c.policy->insert(slot);
      c.policy->admit(slot);
    }
    c.bufferCount[p.writeSlot] = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c.freeCount; ++i)
      if (c.info[c.freeSlots[i]].row == noRow)
        c.freeSlots[kept++] = c.freeSlots[i];
    c.freeCount = kept;
  }
  c.publish();
}

void GroupCache::beginCut(const bool *stored,
                          const std::function<void(uint32_t)> &take) {
  Impl &c = *impl;
  c.cutting = true;
  for (uint32_t s = 0; s < c.options.slots; ++s)
    if (c.dirty[s] && c.info[s].row != noRow) {
      c.pending[s / 64] |= uint64_t(1) << (s % 64);
      take(c.info[s].row);
    }
  for (uint32_t w = 0; w < c.options.writeSlots; ++w)
    for (uint32_t i = 0; !stored[w] && i < c.bufferCount[w]; ++i)
      take(c.buffer[c.bufferCode(w, i) - firstBufferCode]);
}

bool GroupCache::takePending(uint32_t slot) {
  uint64_t &word = impl->pending[slot / 64];
  uint64_t bit = uint64_t(1) << (slot % 64);
  if (!(word & bit))
    return false;
  word &= ~bit;
  return true;
}

uint32_t GroupCache::drainPending(uint32_t *cursor, uint32_t *rows,
                                  uint32_t *slots, uint32_t max) {
  Impl &c = *impl;
  uint32_t n = 0;
  while (n < max && *cursor < c.options.slots) {
    uint64_t &word = c.pending[*cursor / 64];
    uint64_t left = word & (~uint64_t(0) << (*cursor % 64));
    if (!left) {
      *cursor = (*cursor / 64 + 1) * 64;
      continue;
    }
    uint32_t slot =
        *cursor / 64 * 64 + static_cast<uint32_t>(__builtin_ctzll(left));
    word &= ~(uint64_t(1) << (slot % 64));
    rows[n] = c.info[slot].row;
    slots[n++] = slot;
    *cursor = slot + 1;
  }
  return n;
}

void GroupCache::endCut() {
  impl->cutting = false;
  for (uint64_t w = 0; w < (uint64_t(impl->options.slots) + 63) / 64; ++w)
    impl->pending[w] = 0;
}

GroupCache::Location GroupCache::locate(uint32_t row) const {
  uint32_t code = impl->directory[row];
  Location l{};
  if (isSlot(code)) {
    l.place = Place::Slot;
    l.slot = code & ~slotFlag;
    l.dirty = impl->dirty[l.slot];
    l.atHome = !l.dirty && impl->info[l.slot].home != codeNever;
  } else if (isBuffer(code)) {
    l.place = Place::Buffer;
    l.buffer = impl->bufferPlace(code);
  } else {
    l.place = code == codeHome ? Place::Home : Place::Never;
  }
  return l;
}

void GroupCache::setHome(uint32_t row) { impl->directory[row] = codeHome; }

void GroupCache::recycleAll() {
  for (uint32_t s = 0; s < impl->options.writeSlots; ++s)
    impl->recycle(s);
}

uint32_t GroupCache::collectDirty(uint32_t *cursor, uint32_t *rows,
                                  uint32_t *slots, uint32_t max) const {
  uint32_t n = 0;
  for (; *cursor < impl->options.slots && n < max; ++*cursor) {
    if (impl->info[*cursor].row == noRow || !impl->dirty[*cursor])
      continue;
    rows[n] = impl->info[*cursor].row;
    slots[n++] = *cursor;
  }
  return n;
}

void GroupCache::markClean(const uint32_t *slots, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    impl->dirty[slots[i]] = 0;
    impl->info[slots[i]].home = codeHome;
  }
}

void GroupCache::markDirtyRow(uint32_t row) {
  uint32_t code = impl->directory[row];
  if (isSlot(code))
    impl->dirty[code & ~slotFlag] = 1;
}

void GroupCache::forEachResident(
    const std::function<void(ResidentRow)> &take) const {
  impl->policy->forEach([&](uint32_t slot, uint16_t heat) {
    take({impl->info[slot].row, heat});
  });
}

uint64_t GroupCache::policyAge() const { return impl->policy->age(); }
void GroupCache::setPolicyAge(uint64_t age) { impl->policy->setAge(age); }
const GroupCacheOptions &GroupCache::options() const { return impl->options; }

uint32_t GroupCache::restore(const ResidentRow *rows, uint32_t count) {
  Impl &c = *impl;
  uint32_t taken = 0;
  for (; taken < count && c.resident() < c.options.retained; ++taken) {
    auto [row, heat] = rows[taken];
    if (row >= c.options.rows || isSlot(c.directory[row]))
      break;
    uint32_t slot = c.freeSlots[--c.freeCount];
    c.info[slot] = {row, c.directory[row], 0};
    c.directory[row] = slot | slotFlag;
    c.policy->restore(slot, heat);
  }
  c.counters.warmed.add(taken);
  c.publish();
  return taken;
}

void GroupCache::clear() {
  Impl &c = *impl;
  for (uint32_t s = 0; s < c.options.slots; ++s)
    if (c.info[s].row != noRow) {
      c.policy->remove(s);
      c.info[s].row = noRow;
      c.dirty[s] = 0;
      c.freeSlots[c.freeCount++] = s;
    }
  for (uint64_t r = 0; r < c.options.rows; ++r)
    c.directory[r] = codeNever;
  std::fill(c.bufferCount.begin(), c.bufferCount.end(), 0);
  c.counters.warmed.set(0);
  c.publish();
}

CacheCounters GroupCache::counters() const {
  const auto &c = impl->counters;
  CacheCounters out;
  out.accesses = c.accesses.get();
  out.hitAccesses = c.hitAccesses.get();
  out.lookups = c.lookups.get();
  out.hits = c.hits.get();
  out.misses = c.misses.get();
  out.firstTouches = c.firstTouches.get();
  out.bufferFetches = c.bufferFetches.get();
  out.evictions = c.evictions.get();
  out.writes = c.writes.get();
  out.resident = c.resident.get();
  out.pinned = c.pinned.get();
  out.peakResident = c.peakResident.get();
  out.warmed = c.warmed.get();
  return out;
}
