//===- GroupCachePropertyTest.cpp - The cache against a naive model -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs random traces through a toy pipeline (probe, spill, store and fetch
// ahead; fill, read, update, unpin in batch order), where every copy of a row
// is a number that counts its updates. Any stale or lost copy shows as a wrong
// number.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cache/ProbeArrays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>

using namespace trc;

namespace {

constexpr int garbage = -1000;

class Toy {
public:
  Toy(uint32_t seed) : random(seed) {
    static const char *const policies[] = {"lru", "clock", "lfu"};
    o.group = "toy";
    o.rows = 1 + pick(60);
    o.maxUnique = std::min(o.rows, 1 + pick(12));
    o.maxMiss = o.maxUnique;
    ahead = pick(9);
    uint32_t window = std::max(1u, ahead) * o.maxUnique;
    o.retained = pick(o.rows + 1);
    // From the smallest legal number of slots on.
    o.slots = std::max(o.retained, std::min(window, o.rows)) +
              (pick(2) ? pick(5) : 0);
    o.writeSlots = 1 + pick(4);
    o.policy = policies[pick(3)];
    auto made = GroupCache::create(o);
    EXPECT_TRUE(made.ok());
    cache = std::move(*made);
    truth.assign(o.rows, 0);
    everDirty.assign(o.rows, false);
    home.assign(o.rows, garbage);
    slots.assign(o.slots, garbage);
    buffer.assign(o.writeSlots, std::vector<int>(o.maxMiss, garbage));
    for (uint32_t r = 0; r < o.rows; ++r)
      if (pick(4) == 0) { // left by an earlier run
        cache->setHome(r);
        home[r] = truth[r] = pick(100);
        everDirty[r] = true;
      }
  }

  void run(int batches) {
    int next = 0;
    for (int tick = 0; tick < batches && !testing::Test::HasFailure();) {
      // Batches tick .. tick + ahead are probed before batch tick runs; batch
      // tick - 1 was unpinned before the last of them.
      while (next <= tick + static_cast<int>(std::max(1u, ahead)) - 1 &&
             next < batches)
        start(next++);
      if (pick(25) == 0) {
        fail();
        tick = next; // what was undone is not run again
        continue;
      }
      finish();
      ++tick;
      checkDirectory();
    }
    while (!flying.empty())
      finish();
    close();
  }

private:
  struct Batch {
    std::unique_ptr<ProbeArrays> a;
    std::vector<int> staging;
    bool spilled = false;
  };

  uint32_t pick(uint32_t n) { return random() % n; }

  void start(int t) {
    std::set<uint32_t> rows;
    uint32_t n = pick(o.maxUnique + 1);
    bool skewed = pick(2);
    while (rows.size() < n)
      rows.insert(skewed && pick(4) ? pick(std::max(1u, o.rows / 4)) % o.rows
                                    : pick(o.rows));
    std::vector<uint32_t> list(rows.begin(), rows.end());
    std::shuffle(list.begin(), list.end(), random);
    if (list.size() > o.maxUnique)
      list.resize(o.maxUnique);
    Batch b;
    b.a = std::make_unique<ProbeArrays>(o, list, t % o.writeSlots);
    Probe &p = b.a->p;
    Status s = cache->probe(p);
    ASSERT_TRUE(s.ok()) << s.message();
    ASSERT_EQ(p.misses, p.fromHome + p.fromBuffer + p.fromInit);
    checkPins(p);

    uint64_t resident = cache->counters().resident;
    uint64_t pinned = cache->counters().pinned;
    if (p.victims < o.maxMiss) { // the write buffer had room to shrink
      ASSERT_LE(resident, std::max<uint64_t>(o.retained, pinned));
    }
    ASSERT_LE(resident, o.slots);

    flying.push_back(std::move(b));
    // The movement of rows follows, in batch order, now or later.
    while (pick(3))
      if (!moveNext())
        break;
  }

  /// Spill, store and fetch of the oldest batch that still has them to do.
  bool moveNext() {
    auto at = std::find_if(flying.begin(), flying.end(),
                           [](const Batch &b) { return !b.spilled; });
    if (at == flying.end())
      return false;
    Probe &p = at->a->p;
    at->spilled = true;
    std::vector<int> &records = buffer[p.writeSlot];
    if (p.victims)
      std::fill(records.begin(), records.end(), garbage);
    for (uint32_t v = 0; v < p.victims; ++v)
      records[v] = slots[p.victimSlot[v]];
    // Queued writes count as done for a later read.
    for (uint32_t v = 0; v < p.victims; ++v)
      home[p.victimRow[v]] = records[v];
    for (uint32_t k = 0; k < p.misses; ++k) {
      if (k < p.fromHome)
        at->staging.push_back(home[p.missRow[k]]);
      else if (k < p.fromHome + p.fromBuffer)
        at->staging.push_back(
            buffer[p.missPlace[k].slot][p.missPlace[k].index]);
      else
        at->staging.push_back(0);
    }
    return true;
  }

  void finish() {
    if (flying.empty())
      return;
    if (!flying.front().spilled)
      moveNext();
    Batch b = std::move(flying.front());
    flying.pop_front();
    Probe &p = b.a->p;
    for (uint32_t k = 0; k < p.misses; ++k)
      slots[p.missSlot[k]] = b.staging[k];
    checkPins(p);
    bool train = pick(3) != 0; // else evaluated or released
    for (uint32_t u = 0; u < p.unique; ++u) {
      ASSERT_EQ(slots[p.slots[u]], truth[p.rows[u]]) << "row " << p.rows[u];
      if (!train)
        continue;
      slots[p.slots[u]] = ++truth[p.rows[u]];
      everDirty[p.rows[u]] = true;
    }
    if (train)
      cache->markDirty(p.slots, 0, p.unique);
    cache->unpin(p);
  }

  /// All batches in flight are given up.
  void fail() {
    while (!flying.empty()) {
      cache->undo(flying.back().a->p, flying.back().spilled);
      flying.pop_back();
    }
    ASSERT_EQ(cache->counters().pinned, 0u);
    checkDirectory();
  }

  void checkPins(const Probe &p) {
    for (uint32_t u = 0; u < p.unique; ++u) {
      GroupCache::Location l = cache->locate(p.rows[u]);
      ASSERT_EQ(l.place, GroupCache::Place::Slot);
      ASSERT_EQ(l.slot, p.slots[u]);
    }
    for (const Batch &b : flying)
      for (uint32_t u = 0; u < b.a->p.unique; ++u)
        ASSERT_EQ(cache->locate(b.a->rows[u]).slot, b.a->slots[u]);
  }

  void checkDirectory() {
    std::set<uint32_t> used;
    for (uint32_t r = 0; r < o.rows; ++r) {
      GroupCache::Location l = cache->locate(r);
      bool fresh =
          l.place != GroupCache::Place::Slot || used.insert(l.slot).second;
      ASSERT_TRUE(fresh) << "two rows in a slot";
    }
    ASSERT_EQ(used.size(), cache->counters().resident);
  }

  /// Writes all back, and compares what is at home with the truth.
  void close() {
    cache->recycleAll();
    uint32_t cursor = 0, rows[5], at[5], n;
    while ((n = cache->collectDirty(&cursor, rows, at, 5))) {
      for (uint32_t i = 0; i < n; ++i)
        home[rows[i]] = slots[at[i]];
      cache->markClean(at, n);
    }
    for (uint32_t r = 0; r < o.rows; ++r) {
      GroupCache::Location l = cache->locate(r);
      bool exists = l.place == GroupCache::Place::Home ||
                    (l.place == GroupCache::Place::Slot && l.atHome);
      ASSERT_EQ(exists, everDirty[r]) << "row " << r;
      ASSERT_EQ(exists ? home[r] : 0, truth[r]) << "row " << r;
    }
  }

  std::mt19937 random;
  GroupCacheOptions o;
  uint32_t ahead;
  std::unique_ptr<GroupCache> cache;
  std::vector<int> truth, home, slots;
  std::vector<bool> everDirty;
  std::vector<std::vector<int>> buffer;
  std::deque<Batch> flying;
};

TEST(GroupCacheProperty, RandomTraces) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Toy(seed).run(60);
    if (testing::Test::HasFailure())
      return;
  }
}

} // namespace
