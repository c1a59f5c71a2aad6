//===- SchedulerTest.cpp - Lookaheads, depths, predictions ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Schedule/Scheduler.h"

#include "Schedule/HappensBefore.h"
#include "Schedule/Simulator.h"
#include "Schedule/Stages.h"
#include "Schedule/Step.h"

#include <gtest/gtest.h>

using namespace terrace::schedule;

namespace {

StepShape shapeOf(int64_t slots) {
  StepShape shape;
  shape.groups = {{"disk", true, 40, slots, 4}, {"mem", false, 10, 0, 4}};
  shape.dedup = shape.head = shape.translate = true;
  return shape;
}

std::vector<Cost> costsOf(const Graph &graph, double fetchLatency) {
  std::vector<Cost> costs(graph.ops.size());
  for (size_t i = 0; i < graph.ops.size(); ++i)
    switch (graph.ops[i].kind) {
    case OpKind::Fetch:
      costs[i] = {0.1, fetchLatency};
      break;
    case OpKind::GatherPool:
    case OpKind::SegmentUpdate:
      costs[i] = {0.25, 0};
      break;
    default:
      costs[i] = {0.01, 0};
    }
  return costs;
}

TEST(Scheduler, EveryLookaheadIsProvenAndRuns) {
  for (int lookahead = 0; lookahead <= maxLookahead; ++lookahead)
    for (bool dedup : {false, true})
      for (bool head : {false, true}) {
        StepShape shape = shapeOf(40);
        shape.dedup = dedup;
        shape.head = head;
        Graph graph = makeStep(shape);
        ASSERT_TRUE(applyLookahead(graph, lookahead));
        graph.groups[0].slots = smallestSlots(graph, 0);
        std::vector<Finding> findings = verify(graph);
        ASSERT_TRUE(findings.empty())
            << "lookahead " << lookahead << ": " << findings[0].message;
        for (uint64_t seed = 0; seed < 40; ++seed) {
          SimulationOptions options;
          options.seed = seed;
          options.batches = 1 + int(seed % 14);
          EXPECT_EQ(simulate(graph, options).failure, "")
              << "lookahead " << lookahead << ", seed " << seed;
        }
      }
}

/// Rings need no more than the inequality asks, and have the one more slot
/// that lets the writer run on.
TEST(Scheduler, DepthsCoverTheInequality) {
  for (int lookahead = 0; lookahead <= maxLookahead; ++lookahead) {
    Graph graph = makeStep(shapeOf(40));
    ASSERT_TRUE(applyLookahead(graph, lookahead));
    for (int r = 0; r < int(graph.rings.size()); ++r) {
      EXPECT_GE(graph.rings[r].depth, smallestDepths(graph)[size_t(r)]);
      EXPECT_EQ(graph.rings[r].depth, depthOf(graph.rings[r].role, lookahead))
          << graph.rings[r].name;
    }
  }
}

/// d = 1 hides nothing; a fetch as long as a step needs more.
TEST(Scheduler, LookaheadHidesTheFetch) {
  Graph graph = makeStep(shapeOf(40));
  std::vector<Cost> costs = costsOf(graph, 0.8);
  std::vector<double> seconds;
  for (int lookahead = 0; lookahead <= 3; ++lookahead) {
    Graph candidate = graph;
    ASSERT_TRUE(applyLookahead(candidate, lookahead));
    seconds.push_back(predict(candidate, costs));
  }
  EXPECT_LT(seconds[2], 0.8 * seconds[0]);
  EXPECT_NEAR(seconds[1], seconds[0], 0.2 * seconds[0]);
  // Never below what the work lane alone needs.
  EXPECT_GE(seconds[3], busiestLane(graph, costs).seconds);
  EXPECT_EQ(graph.lanes[busiestLane(graph, costs).lane].name, "work");
}

TEST(Scheduler, ChoosesTheSmallestThatIsFastEnough) {
  Graph graph = makeStep(shapeOf(40));
  Choice slow = chooseLookahead(graph, costsOf(graph, 0.8));
  EXPECT_GE(slow.lookahead, 2);
  EXPECT_EQ(slow.tried.size(), size_t(maxLookahead + 1));
  // Slots for two pin sets only.
  Graph tight = makeStep(shapeOf(8));
  Choice bound = chooseLookahead(tight, costsOf(tight, 10));
  EXPECT_EQ(bound.lookahead, 2);
  EXPECT_LT(bound.tried[3], 0);
  // Nothing to hide: no lookahead.
  StepShape memory;
  memory.groups = {{"mem", false, 10, 0, 4}};
  Graph plain = makeStep(memory);
  std::vector<Cost> costs(plain.ops.size(), {0, 0});
  costs[plain.find(OpKind::GatherPool)] = {1, 0};
  EXPECT_EQ(chooseLookahead(plain, costs).lookahead, 0);
}

} // namespace
