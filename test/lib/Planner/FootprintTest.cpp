//===- FootprintTest.cpp - Groups, slots, rings ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestProblem.h"

#include "Schedule/Stages.h"

#include "gtest/gtest.h"

using namespace terrace::planner;

namespace {

Decision allAt(const Problem &p, int home, int64_t lookahead,
               int64_t retained = -1) {
  Decision d;
  d.lookahead = lookahead;
  d.tables.resize(p.tables.size());
  for (TableDecision &t : d.tables) {
    t.home = home;
    if (retained >= 0)
      t.caches = {{0, retained}};
  }
  return d;
}

TEST(Footprint, PitchesOfARow) {
  Table t = makeTable("t", 1, 16);
  EXPECT_EQ(t.slotBytes(), 68);
  EXPECT_EQ(t.storeBytes(), 80);
  t.optimizer = Optimizer::Adam;
  EXPECT_EQ(t.slotBytes(), 192);
  t.optimizer = Optimizer::Sgd;
  t.dim = 2;
  EXPECT_EQ(t.slotBytes(), 8);
  EXPECT_EQ(t.storeBytes(), 16);
}

// retail.yaml: 2048 samples of three features; country has only 38 rows.
TEST(Footprint, GroupOfOneRecordClass) {
  Problem p = makeProblem({{4070, 16}, {4373, 16}, {38, 16}}, 2048, 8 << 20);
  std::vector<Group> groups = formGroups(p, allAt(p, 1, 2, 321));
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].name, "g16");
  EXPECT_EQ(groups[0].rows, 8481);
  EXPECT_EQ(groups[0].maxOccurrences, 6144);
  EXPECT_EQ(groups[0].maxUnique, 4134);
  EXPECT_EQ(groups[0].retained[0], 963);
  EXPECT_EQ(groups[0].slots, 8481); // 963 + 2 * 4134, at most the rows
}

TEST(Footprint, TablesThatDifferShareNoGroup) {
  Problem p = makeProblem({{10, 16}, {10, 8}, {10, 16}, {10, 16}}, 4, 1 << 20);
  p.tables[2].recordClass = 1; // another learning rate
  Decision d = allAt(p, 0, 0);
  std::vector<Group> groups = formGroups(p, d);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].tables, (std::vector<int>{0, 3}));
  EXPECT_EQ(groups[2].name, "g16_1");
  // Another home splits further.
  d.tables[3].home = 1;
  d.tables[3].caches = {{0, 0}};
  EXPECT_EQ(formGroups(p, d).size(), 4u);
}

TEST(Footprint, GroupsStayWithinThirtyTwoBitRows) {
  Problem p = makeProblem({{int64_t(2) << 30, 4}, {int64_t(2) << 30, 4}}, 4,
                          int64_t(1) << 50);
  EXPECT_EQ(formGroups(p, allAt(p, 0, 0)).size(), 2u);
}

TEST(Footprint, OverflowSlotsFollowTheStaticRule) {
  EXPECT_EQ(overflowSlots(0, 100, 1000), 100);
  EXPECT_EQ(overflowSlots(1, 100, 1000), 100);
  EXPECT_EQ(overflowSlots(3, 100, 1000), 300);
  EXPECT_EQ(overflowSlots(8, 100, 250), 250);
}

// One truth with the runtime: every ring's bytes come from RingLayout.h.
TEST(Footprint, RingsAreSizedByTheSharedLayout) {
  Problem p = makeProblem({{100000, 16}, {50, 8}}, 64, 1 << 30);
  p.dedup = {{"g", {0}, 2.0}};
  p.features[0].dedup = 0;
  Decision d = allAt(p, 1, 3, 10);
  d.tables[1] = {};
  Footprint fp = computeFootprint(p, d);
  trc::ModelShape shape = modelShape(p, d, fp.groups, 0);
  int64_t arena = 0;
  std::vector<std::string> roles;
  for (const Ring &r : fp.rings) {
    EXPECT_EQ(r.bytes, trc::ringBytes(shape, r.role, r.group));
    roles.push_back(trc::ringRoleName(r.role));
    arena += (r.bytes * r.depth + 4095) / 4096 * 4096;
  }
  EXPECT_EQ(roles,
            (std::vector<std::string>{"ingest", "dedup", "unique", "probe",
                                      "staging", "writebuf", "pooled", "unique",
                                      "pooled", "expanded", "grads"}));
  EXPECT_EQ(fp.use[0][0].rings, arena);
  EXPECT_EQ(fp.rings[0].depth, 5);
  EXPECT_EQ(fp.rings[6].depth, 1);
}

TEST(Footprint, NodeTiersAddUpAndWorkerTiersTakeTheLargest) {
  Problem p = makeProblem({{1000, 16}, {3000, 16}}, 8, 1 << 30);
  p.workers = 2;
  Decision d = allAt(p, 0, 0);
  d.tables[1].worker = 1;
  Footprint fp = computeFootprint(p, d);
  EXPECT_EQ(fp.charged(p, 0).rows, 4000 * 68);
  p.tiers[0].perWorker = true;
  EXPECT_EQ(fp.charged(p, 0).rows, 3000 * 68);
}

} // namespace
