//===- HappensBeforeTest.cpp - Each rule refuses what breaks it -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Schedule/HappensBefore.h"

#include "Schedule/Scheduler.h"
#include "Schedule/Step.h"
#include "Schedule/Waits.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace terrace::schedule;

namespace {

Graph proven(int lookahead, bool head = true) {
  StepShape shape;
  shape.groups = {{"g64", true, 100, 40, 5}, {"g32", false, 100, 0, 5}};
  shape.dedup = true;
  shape.head = head;
  Graph graph = makeStep(shape);
  EXPECT_TRUE(applyLookahead(graph, lookahead));
  EXPECT_TRUE(verify(graph).empty());
  return graph;
}

bool refuses(const Graph &graph, const std::string &rule,
             const std::string &part) {
  for (const Finding &f : verify(graph))
    if (f.rule == rule && f.message.find(part) != std::string::npos)
      return true;
  for (const Finding &f : verify(graph))
    std::printf("%s: %s\n", f.rule.c_str(), f.message.c_str());
  return false;
}

bool waitsFor(const Graph &graph, OpKind op, OpKind other, int distance,
              int group = -1) {
  const Op &o = graph.ops[graph.find(op, group)];
  return std::find(o.waits.begin(), o.waits.end(),
                   Wait{graph.find(other, group), distance}) != o.waits.end();
}

/// Removing any wait of a derived schedule is an error.
TEST(HappensBefore, EveryWaitIsEssential) {
  for (int lookahead = 0; lookahead <= 4; ++lookahead)
    for (bool head : {false, true}) {
      Graph graph = proven(lookahead, head);
      for (size_t i = 0; i < graph.ops.size(); ++i)
        for (size_t k = 0; k < graph.ops[i].waits.size(); ++k) {
          Graph less = graph;
          less.ops[i].waits.erase(less.ops[i].waits.begin() + long(k));
          EXPECT_FALSE(verify(less).empty())
              << graph.ops[i].name << " need not wait for "
              << graph.ops[graph.ops[i].waits[k].op].name;
        }
    }
}

TEST(HappensBefore, WaitsOfATieredGroup) {
  Graph graph = proven(2);
  EXPECT_TRUE(waitsFor(graph, OpKind::Store, OpKind::Spill, 0));
  EXPECT_TRUE(waitsFor(graph, OpKind::Fill, OpKind::Fetch, 0));
  // Rows of the batch before lie in the write buffer, older ones at home.
  EXPECT_TRUE(waitsFor(graph, OpKind::Fetch, OpKind::Spill, 1));
  EXPECT_TRUE(waitsFor(graph, OpKind::Fetch, OpKind::Store, 2));
  // The lane orders updates and gathers; unpin of the group waits for update.
  EXPECT_FALSE(
      waitsFor(graph, OpKind::GatherPool, OpKind::SegmentUpdate, 1, 0));
  EXPECT_TRUE(waitsFor(graph, OpKind::Unpin, OpKind::SegmentUpdate, 0, 0));
}

TEST(HappensBefore, InequalityIsReportedWithNumbers) {
  Graph graph = proven(2);
  graph.ops[graph.find(OpKind::Fill)].ahead = 3;
  EXPECT_TRUE(refuses(graph, "inequality", "2 + 0 < 3"));
}

TEST(HappensBefore, LaneCapability) {
  Graph graph = proven(1);
  graph.ops[graph.find(OpKind::Fetch)].lane = graph.lane("work");
  EXPECT_TRUE(refuses(graph, "lane", "needs io"));
}

TEST(HappensBefore, RingDepth) {
  Graph graph = proven(3);
  for (Ring &ring : graph.rings)
    if (ring.role == RingRole::Probe)
      ring.depth = 2;
  EXPECT_TRUE(refuses(graph, "ring-depth", "it needs 3"));
}

TEST(HappensBefore, OneFillAndOneUnpin) {
  Graph graph = proven(1);
  graph.ops[graph.find(OpKind::Unpin)].kind = OpKind::Other;
  EXPECT_TRUE(refuses(graph, "pins", "has 0 unpin ops"));
}

/// The trainer may cut until its word to go on: what is preserved earlier, or
/// not before the update, is not what the checkpoint is to hold.
TEST(HappensBefore, PreserveBetweenResumeAndUpdate) {
  for (int lookahead : {0, 2}) {
    Graph graph = proven(lookahead);
    int resume = graph.find(OpKind::Resume);
    Op &preserve = graph.ops[graph.find(OpKind::Preserve)];
    EXPECT_TRUE(waitsFor(graph, OpKind::Preserve, OpKind::Resume, 0));
    std::vector<Wait> waits = preserve.waits;
    preserve.waits.clear();
    for (const Wait &w : waits)
      if (w.op != resume)
        preserve.waits.push_back(w);
    EXPECT_TRUE(refuses(graph, "order", "the cut of a checkpoint"));
    preserve.waits = waits;
    preserve.lane = graph.lane("copy");
    EXPECT_TRUE(refuses(graph, "order", "preserve"));
  }
}

TEST(HappensBefore, ProbeAndUnpinShareALane) {
  Graph graph = proven(1);
  graph.ops[graph.find(OpKind::Unpin)].lane = graph.lane("copy");
  EXPECT_TRUE(refuses(graph, "pins", "lanes host and copy"));
}

TEST(HappensBefore, SlotsNameTheSmallestNumber) {
  Graph graph = proven(3);
  graph.groups[0].slots = smallestSlots(graph, 0) - 1;
  EXPECT_EQ(smallestSlots(graph, 0), 15);
  EXPECT_TRUE(refuses(graph, "slots", "it needs 15"));
}

/// The capacity of a table caps the pins.
TEST(HappensBefore, SlotsNeverExceedTheRows) {
  Graph graph = proven(3);
  graph.groups[0].rows = 7;
  EXPECT_EQ(smallestSlots(graph, 0), 7);
}

TEST(HappensBefore, DeepWriteBufferCouldReorderWrites) {
  Graph graph = proven(1);
  for (Ring &ring : graph.rings)
    if (ring.role == RingRole::Writebuf)
      ring.depth = 3;
  deriveWaits(graph);
  EXPECT_TRUE(refuses(graph, "write-buffer", "at most 2"));
}

/// A spill awaits earlier fetches, so these must not stand behind it.
TEST(HappensBefore, SpillMustNotOvertakeFetch) {
  Graph graph = proven(1);
  for (OpKind kind : {OpKind::Ingest, OpKind::Check})
    graph.ops[graph.find(kind)].ahead = 4;
  for (OpKind kind :
       {OpKind::Dedup, OpKind::Unique, OpKind::Probe, OpKind::Spill})
    graph.ops[graph.find(kind)].ahead = 3;
  std::vector<int> least = smallestDepths(graph);
  for (size_t r = 0; r < graph.rings.size(); ++r)
    graph.rings[r].depth = std::max(graph.rings[r].depth, least[r]);
  deriveWaits(graph);
  EXPECT_TRUE(refuses(graph, "write-buffer", "comes later"));
}

/// A proof through batch t + 2 of a pair at distance 1 would be wrong when
/// batch t + 1 is the last.
TEST(HappensBefore, NoProofThroughBatchesThatMayNotExist) {
  Graph graph;
  graph.lanes = {{"a", LaneKind::Cpu, 0}, {"b", LaneKind::Cpu, 0}};
  graph.groups = {{"g", false, 10, 0, 2}};
  // writer(t) -> helper(t + 2) -> reader(t + 1), where helper runs far ahead.
  Op writer, helper, reader;
  writer.name = "writer";
  writer.effects = {{Role::Home, 0, RowSet::Pin, true}};
  helper.name = "helper";
  helper.ahead = 2;
  helper.waits = {{0, 2}};
  reader.name = "reader";
  reader.lane = 1;
  reader.effects = {{Role::Home, 0, RowSet::Pin, false}};
  helper.lane = 1;
  graph.ops = {writer, helper, reader};
  std::vector<Finding> findings = verify(graph);
  ASSERT_FALSE(findings.empty());
  bool next = false;
  for (const Finding &f : findings)
    next |= f.rule == "order" && f.distance == 1 && f.other == 0 && f.op == 2;
  EXPECT_TRUE(next);
  // The same graph with a wait that stays inside.
  graph.ops[2].waits = {{0, 0}};
  graph.ops[0].waits = {{2, 1}};
  EXPECT_TRUE(verify(graph).empty());
}

TEST(HappensBefore, MessageShowsTheBadInterleaving) {
  Graph graph = proven(2);
  Op &fill = graph.ops[graph.find(OpKind::Fill)];
  fill.waits.clear();
  std::vector<Finding> findings = verify(graph);
  ASSERT_FALSE(findings.empty());
  bool shown = false;
  for (const Finding &f : findings)
    shown |= f.message.find("this may run:") != std::string::npos &&
             f.message.find("fill @g64 (batch 0) while fetch @g64 (batch 0) "
                            "has not") != std::string::npos &&
             !f.interleaving.empty();
  EXPECT_TRUE(shown) << findings[0].message;
}

} // namespace
