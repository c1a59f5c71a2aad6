//===- GroupCacheTest.cpp - The cache, case by case -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/cache/ProbeArrays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <random>
#include <set>
#include <thread>

using namespace trc;

namespace {

GroupCacheOptions options(uint32_t rows, uint32_t slots, uint32_t retained,
                          uint32_t batch, uint32_t writeSlots = 2,
                          const char *policy = "lru") {
  GroupCacheOptions o;
  o.group = "g4";
  o.rows = rows;
  o.slots = slots;
  o.retained = retained;
  o.maxUnique = o.maxMiss = batch;
  o.writeSlots = writeSlots;
  o.policy = policy;
  return o;
}

struct Fixture {
  GroupCacheOptions o;
  std::unique_ptr<GroupCache> cache;
  explicit Fixture(const GroupCacheOptions &o) : o(o) {
    auto made = GroupCache::create(o);
    EXPECT_TRUE(made.ok());
    cache = std::move(*made);
  }
  ProbeArrays probe(std::vector<uint32_t> rows, uint32_t writeSlot = 0) {
    ProbeArrays a(o, std::move(rows), writeSlot);
    Status s = cache->probe(a.p);
    EXPECT_TRUE(s.ok()) << s.message();
    return a;
  }
  void train(std::vector<uint32_t> rows, uint32_t writeSlot = 0) {
    ProbeArrays a = probe(std::move(rows), writeSlot);
    cache->markDirty(a.p.slots, 0, a.p.unique);
    cache->unpin(a.p);
  }
};

using Place = GroupCache::Place;

TEST(GroupCache, FirstTouchThenHit) {
  Fixture f(options(10, 4, 4, 4));
  auto a = f.probe({7, 3});
  EXPECT_EQ(a.p.misses, 2u);
  EXPECT_EQ(a.p.fromInit, 2u);
  EXPECT_NE(a.slots[0], a.slots[1]);
  EXPECT_EQ(a.missRow[0], 7u);
  EXPECT_EQ(a.missSlot[0], a.slots[0]);
  auto b = f.probe({3, 8}, 1); // while the first batch is in flight
  EXPECT_EQ(b.p.misses, 1u);
  EXPECT_EQ(b.slots[0], a.slots[1]); // one row, one slot
  f.cache->unpin(a.p);
  f.cache->unpin(b.p);
  CacheCounters c = f.cache->counters();
  EXPECT_EQ(c.lookups, 4u);
  EXPECT_EQ(c.hits, 1u);
  EXPECT_EQ(c.misses, 3u);
  EXPECT_EQ(c.firstTouches, 3u);
  EXPECT_EQ(c.resident, 3u);
  EXPECT_EQ(c.pinned, 0u);
}

TEST(GroupCache, CountsHitsByAccess) {
  Fixture f(options(10, 4, 4, 4));
  f.train({1});
  ProbeArrays a(f.o, {1, 2}, 1);
  int32_t seg[] = {0, 5, 7};
  a.p.seg = seg;
  ASSERT_TRUE(f.cache->probe(a.p).ok());
  EXPECT_EQ(f.cache->counters().accesses, 1u + 7u);
  EXPECT_EQ(f.cache->counters().hitAccesses, 5u);
}

TEST(GroupCache, CleanRowsLeaveWithoutATrace) {
  Fixture f(options(10, 2, 2, 2));
  f.cache->setHome(5);
  auto a = f.probe({5, 6});
  EXPECT_EQ(a.p.fromHome, 1u);
  EXPECT_EQ(a.p.fromInit, 1u);
  f.cache->unpin(a.p);
  auto b = f.probe({1, 2}, 1);
  EXPECT_EQ(b.p.victims, 0u); // nothing to write
  EXPECT_EQ(f.cache->locate(5).place, Place::Home);
  EXPECT_EQ(f.cache->locate(6).place, Place::Never);
  EXPECT_EQ(f.cache->counters().evictions, 2u);
  EXPECT_EQ(f.cache->counters().writes, 0u);
}

TEST(GroupCache, DirtyRowsGoThroughTheWriteBuffer) {
  Fixture f(options(10, 2, 2, 2, /*writeSlots=*/2));
  f.train({5, 6}, 0);
  auto b = f.probe({1, 2}, 1);
  ASSERT_EQ(b.p.victims, 2u);
  GroupCache::Location l = f.cache->locate(b.victimRow[1]);
  ASSERT_EQ(l.place, Place::Buffer);
  EXPECT_EQ(l.buffer.slot, 1u);
  EXPECT_EQ(l.buffer.index, 1u);
  uint32_t again = b.victimRow[1];
  f.cache->unpin(b.p);
  // Ring slot 1 is still in use: the row comes from there.
  auto c = f.probe({again}, 0);
  ASSERT_EQ(c.p.fromBuffer, 1u);
  EXPECT_EQ(c.missPlace[0].slot, 1u);
  EXPECT_EQ(c.missPlace[0].index, 1u);
  f.cache->unpin(c.p);
  // Ring slot 1 is used anew: the other victim is at home now, and the row
  // that came back clean goes home too when it leaves.
  auto d = f.probe({8, 9}, 1);
  EXPECT_EQ(f.cache->locate(again).place, Place::Home);
  EXPECT_EQ(f.cache->locate(again == 5 ? 6 : 5).place, Place::Home);
}

TEST(GroupCache, CleanRowReturnsToItsRecord) {
  Fixture f(options(10, 2, 2, 2, /*writeSlots=*/4));
  f.train({5, 6}, 0);
  f.cache->unpin(f.probe({1, 2}, 1).p); // 5 and 6 lie in ring slot 1
  f.cache->unpin(f.probe({5}, 2).p);    // 5 comes back and stays clean
  f.cache->unpin(f.probe({3, 4}, 3).p); // and leaves
  GroupCache::Location l = f.cache->locate(5);
  EXPECT_EQ(l.place, Place::Buffer);
  EXPECT_EQ(l.buffer.slot, 1u);
}

TEST(GroupCache, PinnedRowsStay) {
  Fixture f(options(10, 3, 1, 2));
  auto a = f.probe({1, 2}, 0);
  auto b = f.probe({3}, 1);
  ProbeArrays c(f.o, {4}, 0);
  Status s = f.cache->probe(c.p); // no slot: the plan rules this out
  EXPECT_EQ(s.code(), TRC_INTERNAL);
  EXPECT_NE(s.message().find("g4"), std::string::npos);
  EXPECT_EQ(f.cache->locate(1).place, Place::Slot);
  EXPECT_EQ(f.cache->counters().pinned, 3u);
  f.cache->unpin(a.p);
  EXPECT_TRUE(f.cache->probe(c.p).ok());
  EXPECT_EQ(f.cache->locate(3).slot, b.slots[0]);
}

TEST(GroupCache, ShrinksToRetained) {
  Fixture f(options(100, 8, 3, 4));
  auto a = f.probe({0, 1, 2, 3}, 0);
  auto b = f.probe({4, 5, 6, 7}, 1);
  EXPECT_EQ(f.cache->counters().resident, 8u);
  f.cache->unpin(a.p);
  f.cache->unpin(b.p);
  auto c = f.probe({8}, 0);
  EXPECT_EQ(f.cache->counters().resident, 3u);
  EXPECT_EQ(c.p.victims, 0u);
}

TEST(GroupCache, UndoPutsEverythingBack) {
  for (bool spilled : {false, true}) {
    Fixture f(options(20, 4, 4, 4, 2));
    f.cache->setHome(9);
    f.train({1, 2, 3, 4}, 0);
    std::vector<GroupCache::Location> before;
    for (uint32_t r = 0; r < 20; ++r)
      before.push_back(f.cache->locate(r));
    auto a = f.probe({1, 9, 10}, 1);
    EXPECT_EQ(a.p.victims, 2u);
    f.cache->undo(a.p, spilled);
    for (uint32_t r = 0; r < 20; ++r) {
      GroupCache::Location l = f.cache->locate(r);
      bool victim = r == a.victimRow[0] || r == a.victimRow[1];
      if (spilled && victim) {
        EXPECT_EQ(l.place, Place::Buffer);
        continue;
      }
      EXPECT_EQ(l.place, before[r].place) << r;
      EXPECT_EQ(l.slot, before[r].slot) << r;
      EXPECT_EQ(l.dirty, before[r].dirty) << r;
    }
    EXPECT_EQ(f.cache->counters().pinned, 0u);
    EXPECT_EQ(f.cache->counters().resident, spilled ? 2u : 4u);
    // And it goes on from there.
    auto b = f.probe({5, 6, 7, 8}, 0);
    EXPECT_EQ(b.p.misses, 4u);
    EXPECT_EQ(b.p.victims, spilled ? 2u : 4u);
  }
}

TEST(GroupCache, CollectsDirtyRowsInPieces) {
  Fixture f(options(20, 8, 8, 8));
  f.train({1, 2, 3, 4, 5}, 0);
  f.cache->unpin(f.probe({6, 7}, 1).p); // clean
  uint32_t cursor = 0, rows[2], slots[2], n;
  std::vector<uint32_t> all;
  while ((n = f.cache->collectDirty(&cursor, rows, slots, 2))) {
    all.insert(all.end(), rows, rows + n);
    f.cache->markClean(slots, n);
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<uint32_t>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(f.cache->locate(3).atHome);
  EXPECT_FALSE(f.cache->locate(3).dirty);
  EXPECT_FALSE(f.cache->locate(6).atHome);
  cursor = 0;
  EXPECT_EQ(f.cache->collectDirty(&cursor, rows, slots, 2), 0u);
}

TEST(GroupCache, RefusesBadOptions) {
  auto code = [](const GroupCacheOptions &o) {
    return GroupCache::create(o).takeStatus().code();
  };
  EXPECT_EQ(code(options(0, 4, 4, 4)), TRC_BAD_ARGUMENT);
  EXPECT_EQ(code(options(10, 0, 0, 4)), TRC_BAD_ARGUMENT);
  EXPECT_EQ(code(options(10, 4, 5, 4)), TRC_BAD_ARGUMENT);
  EXPECT_EQ(code(options(10, 4, 4, 4, 0)), TRC_BAD_ARGUMENT);
  EXPECT_EQ(code(options(10, 4, 4, 4, 1, "fifo")), TRC_BAD_ARGUMENT);
}

TEST(GroupCache, ClearForgetsAll) {
  Fixture f(options(10, 4, 4, 4));
  f.train({1, 2, 3, 4});
  f.train({5, 6}, 1);
  f.cache->clear();
  for (uint32_t r = 0; r < 10; ++r)
    EXPECT_EQ(f.cache->locate(r).place, Place::Never);
  EXPECT_EQ(f.probe({1, 2, 3, 4}).p.fromInit, 4u);
}

// The work lane marks rows while the host lane probes later batches; tokens
// order fill(t) before the marks and the marks before unpin(t). Run it under
// ThreadSanitizer.
TEST(GroupCache, WorkLaneMarksWhileHostLaneProbes) {
  constexpr uint32_t ahead = 3, batches = 400;
  Fixture f(options(200, 80, 20, 20, 2, "lfu"));
  std::vector<std::unique_ptr<ProbeArrays>> all(batches);
  std::mutex mutex;
  std::condition_variable changed;
  uint32_t probed = 0, updated = 0;
  std::thread work([&] {
    for (uint32_t t = 0; t < batches; ++t) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return probed > t; });
      lock.unlock();
      f.cache->markDirty(all[t]->p.slots, 0, all[t]->p.unique / 2);
      f.cache->markDirty(all[t]->p.slots, all[t]->p.unique / 2,
                         all[t]->p.unique);
      (void)f.cache->counters();
      lock.lock();
      updated = t + 1;
      changed.notify_all();
    }
  });
  std::mt19937 random(5);
  uint64_t dirty = 0;
  for (uint32_t t = 0; t < batches + ahead; ++t) {
    if (t >= ahead) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return updated > t - ahead; });
      lock.unlock();
      f.cache->unpin(all[t - ahead]->p);
    }
    if (t >= batches)
      continue;
    std::set<uint32_t> rows;
    while (rows.size() < 20)
      rows.insert(random() % 200);
    auto a = std::make_unique<ProbeArrays>(
        f.o, std::vector<uint32_t>(rows.begin(), rows.end()), t % 2);
    Status s = f.cache->probe(a->p);
    EXPECT_TRUE(s.ok()) << s.message();
    dirty += a->p.victims;
    std::lock_guard<std::mutex> lock(mutex);
    all[t] = std::move(a);
    probed = t + 1;
    changed.notify_all();
  }
  work.join();
  EXPECT_EQ(f.cache->counters().pinned, 0u);
  // Every row that left had been updated.
  EXPECT_EQ(dirty, f.cache->counters().evictions);
  EXPECT_EQ(dirty, f.cache->counters().writes);
}

// Not a gate, but says so when the hot path gets slow.
TEST(GroupCache, ProbeOfAHundredThousandRows) {
  constexpr uint32_t rows = 20u << 20, batch = 100000;
  for (const char *policy : {"lru", "clock", "lfu"}) {
    Fixture f(options(rows, 1 << 20, 900000, batch, 2, policy));
    std::mt19937 random(1);
    double best = 1e9;
    for (int t = 0; t < 20; ++t) {
      std::vector<uint32_t> ids(batch);
      std::geometric_distribution<uint32_t> skew(2e-6);
      for (uint32_t &id : ids)
        id = (skew(random) * 2654435761u) % rows;
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      std::shuffle(ids.begin(), ids.end(), random);
      ProbeArrays a(f.o, std::move(ids), t % 2);
      auto start = std::chrono::steady_clock::now();
      ASSERT_TRUE(f.cache->probe(a.p).ok());
      f.cache->markDirty(a.p.slots, 0, a.p.unique);
      f.cache->unpin(a.p);
      std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      best = std::min(best, took.count());
    }
    CacheCounters c = f.cache->counters();
    std::cout << policy << ": " << best << " ms for " << batch << " rows, hits "
              << 100.0 * c.hits / c.lookups << " %\n";
  }
}

TEST(GroupCache, RestoresWhatItHeld) {
  Fixture f(options(20, 6, 4, 4));
  f.train({1, 2, 3});
  f.train({4, 1}, 1);
  std::vector<ResidentRow> held;
  f.cache->forEachResident([&](ResidentRow r) { held.push_back(r); });
  ASSERT_EQ(held.size(), 4u);
  EXPECT_EQ(held[0].row, 2u); // the first to leave

  Fixture g(options(20, 6, 4, 4));
  for (uint32_t row : {1, 2, 4})
    g.cache->setHome(row);
  g.cache->setPolicyAge(f.cache->policyAge());
  ASSERT_EQ(g.cache->restore(held.data(), 4), 4u);
  EXPECT_EQ(g.cache->counters().warmed, 4u);
  EXPECT_EQ(g.cache->counters().lookups, 0u); // counts no batch
  EXPECT_EQ(g.cache->locate(1).place, Place::Slot);
  EXPECT_TRUE(g.cache->locate(1).atHome);
  EXPECT_FALSE(g.cache->locate(3).atHome); // never written
  EXPECT_FALSE(g.cache->locate(1).dirty);
  auto a = g.probe({7});
  EXPECT_EQ(a.p.victims, 0u); // clean
  EXPECT_EQ(g.cache->locate(2).place, Place::Home);
  auto b = g.probe({1, 3, 4}, 1);
  EXPECT_EQ(b.p.misses, 0u);

  // What cannot be: no such row, one that is there, more than `retained`.
  Fixture h(options(20, 6, 4, 4));
  ResidentRow bad[] = {{5, 1}, {20, 1}};
  EXPECT_EQ(h.cache->restore(bad, 2), 1u);
  EXPECT_EQ(h.cache->restore(bad, 1), 0u);
  ResidentRow more[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}};
  EXPECT_EQ(h.cache->restore(more, 4), 3u);
  h.cache->clear();
  EXPECT_EQ(h.cache->counters().warmed, 0u);
  EXPECT_EQ(h.cache->restore(more, 4), 4u);
}

} // namespace
