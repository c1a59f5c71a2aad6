//===- PolicyTest.cpp - Which row leaves ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/Policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

using namespace trc;

namespace {

std::unique_ptr<Policy> make(const char *name, uint32_t slots) {
  bool noMemory = false;
  auto policy = makePolicy(name, slots, noMemory);
  EXPECT_NE(policy, nullptr);
  return policy;
}

void fill(Policy &p, uint32_t slots) {
  for (uint32_t s = 0; s < slots; ++s)
    p.insert(s);
  for (uint32_t s = 0; s < slots; ++s)
    p.admit(s);
}

void use(Policy &p, uint32_t slot) {
  p.remove(slot);
  p.touch(slot);
  p.admit(slot);
}

uint32_t evict(Policy &p) {
  uint32_t s = p.victim();
  if (s != Policy::none)
    p.remove(s);
  return s;
}

TEST(Policy, UnknownName) {
  bool noMemory = true;
  EXPECT_EQ(makePolicy("random", 4, noMemory), nullptr);
  EXPECT_FALSE(noMemory);
}

TEST(Policy, LruTakesTheOldest) {
  auto p = make("lru", 4);
  EXPECT_EQ(p->victim(), Policy::none);
  fill(*p, 4);
  use(*p, 0);
  use(*p, 2);
  EXPECT_EQ(evict(*p), 1u);
  EXPECT_EQ(evict(*p), 3u);
  EXPECT_EQ(evict(*p), 0u);
  EXPECT_EQ(evict(*p), 2u);
  EXPECT_EQ(evict(*p), Policy::none);
}

TEST(Policy, ClockGivesASecondChance) {
  auto p = make("clock", 4);
  fill(*p, 4);
  use(*p, 0);
  use(*p, 2);
  EXPECT_EQ(evict(*p), 1u);
  EXPECT_EQ(evict(*p), 3u);
  std::set<uint32_t> last{evict(*p), evict(*p)};
  EXPECT_EQ(last, (std::set<uint32_t>{0, 2}));
  EXPECT_EQ(evict(*p), Policy::none);
}

TEST(Policy, LfuKeepsRowsThatComeBack) {
  auto p = make("lfu", 8);
  fill(*p, 8);
  for (int i = 0; i < 3; ++i)
    use(*p, 5);
  // A scan through all the other places does not drive it out.
  for (int i = 0; i < 30; ++i) {
    uint32_t s = evict(*p);
    ASSERT_NE(s, 5u);
    p->insert(s);
    p->admit(s);
  }
}

TEST(Policy, LfuForgets) {
  auto p = make("lfu", 8);
  fill(*p, 8);
  for (int i = 0; i < 20; ++i)
    use(*p, 5);
  // Never used again: after enough other traffic it leaves.
  bool left = false;
  for (int i = 0; i < 2000 && !left; ++i) {
    uint32_t s = evict(*p);
    left = s == 5;
    p->insert(s);
    p->touch(s);
    p->touch(s);
    p->admit(s);
  }
  EXPECT_TRUE(left);
}

TEST(Policy, VictimIsAlwaysAdmitted) {
  for (const char *name : {"lru", "clock", "lfu"})
    for (uint32_t seed = 0; seed < 50; ++seed) {
      std::mt19937 random(seed);
      uint32_t slots = 1 + random() % 20;
      auto p = make(name, slots);
      std::set<uint32_t> in, out;
      for (uint32_t s = 0; s < slots; ++s) {
        p->insert(s);
        out.insert(s);
      }
      for (int i = 0; i < 3000; ++i) {
        uint32_t s = random() % slots;
        switch (random() % 4) {
        case 0:
          p->touch(s);
          break;
        case 1:
          if (out.erase(s)) {
            p->admit(s);
            in.insert(s);
          }
          break;
        case 2:
          if (in.erase(s)) {
            p->remove(s);
            out.insert(s);
          }
          break;
        default:
          s = p->victim();
          ASSERT_EQ(s == Policy::none, in.empty()) << name;
          ASSERT_TRUE(in.empty() || in.count(s) == 1) << name;
        }
      }
    }
}

// What forEach() says is all that a policy knows: another one that is told so
// takes the same decisions from there on.
TEST(Policy, GoesOnElsewhere) {
  for (const char *name : {"lru", "clock", "lfu"})
    for (uint32_t seed = 0; seed < 30; ++seed) {
      std::mt19937 random(seed);
      uint32_t slots = 1 + random() % 24;
      auto p = make(name, slots);
      fill(*p, slots);
      auto trade = [](Policy &in, uint32_t slot) { // a new row for the oldest
        in.insert(slot);
        in.admit(slot);
      };
      auto skewed = [&] { return std::min(random(), random()) % slots; };
      for (uint32_t i = 0; i < random() % 3000; ++i)
        if (random() % 4)
          use(*p, skewed());
        else
          trade(*p, evict(*p));
      auto q = make(name, slots);
      q->setAge(p->age());
      std::vector<uint32_t> there(slots, Policy::none);
      uint32_t next = 0;
      p->forEach([&](uint32_t slot, uint16_t heat) {
        there[slot] = next;
        q->restore(next++, heat);
      });
      ASSERT_EQ(next, slots) << name;
      ASSERT_EQ(there[p->victim()], q->victim()) << name;
      for (int i = 0; i < 2000; ++i) {
        if (random() % 4) {
          uint32_t slot = skewed();
          use(*p, slot);
          use(*q, there[slot]);
          continue;
        }
        uint32_t slot = evict(*p);
        ASSERT_EQ(there[slot], evict(*q)) << name << ", seed " << seed;
        trade(*p, slot);
        trade(*q, there[slot]);
      }
    }
}

} // namespace
