//===- FuzzTest.cpp - Verifier and simulator against each other -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mutates proven schedules. What the verifier accepts must never fail in the
// simulator; what it rejects and never failed is counted as conservative. More
// by environment: TERRACE_FUZZ_MUTANTS, TERRACE_FUZZ_RUNS, TERRACE_FUZZ_SEED.
//
//===----------------------------------------------------------------------===//
#include "Schedule/HappensBefore.h"
#include "Schedule/Scheduler.h"
#include "Schedule/Simulator.h"
#include "Schedule/Step.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

using namespace terrace::schedule;

namespace {

int setting(const char *name, int otherwise) {
  const char *text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

Graph randomStep(std::mt19937_64 &random) {
  StepShape shape;
  int groups = 1 + int(random() % 2);
  for (int g = 0; g < groups; ++g) {
    Group group;
    group.name = "g" + std::to_string(g);
    group.cached = g == 0 || random() % 2;
    group.maxUnique = 2 + int64_t(random() % 2);
    group.rows = 6 + int64_t(random() % 4);
    shape.groups.push_back(group);
  }
  shape.translate = random() % 4 == 0;
  shape.dedup = random() % 2;
  shape.head = random() % 2;
  Graph graph = makeStep(shape);
  // The pipeline is the same for every group; slots follow the lookahead.
  EXPECT_TRUE(applyLookahead(graph, int(random() % 4)));
  for (int g = 0; g < groups; ++g)
    graph.groups[g].slots = smallestSlots(graph, g) + int64_t(random() % 2);
  return graph;
}

std::string mutate(Graph &graph, std::mt19937_64 &random) {
  for (;;) {
    int op = int(random() % graph.ops.size());
    Op &o = graph.ops[op];
    switch (random() % 8) {
    case 0:
    case 1:
      if (o.waits.empty())
        continue;
      {
        size_t k = random() % o.waits.size();
        std::string what =
            "drop wait of " + o.name + " for " + graph.ops[o.waits[k].op].name;
        o.waits.erase(o.waits.begin() + long(k));
        return what;
      }
    case 2:
      if (o.waits.empty())
        continue;
      {
        Wait &w = o.waits[random() % o.waits.size()];
        w.distance += random() % 2 || w.distance == 0 ? 1 : -1;
        return "distance of a wait of " + o.name + " is " +
               std::to_string(w.distance);
      }
    case 3:
    case 4:
      o.ahead += random() % 2 || o.ahead == 0 ? 1 : -1;
      return o.name + " runs " + std::to_string(o.ahead) + " ahead";
    case 5: {
      Ring &ring = graph.rings[random() % graph.rings.size()];
      ring.depth += random() % 2 || ring.depth == 1 ? 1 : -1;
      return "ring " + ring.name + " has depth " + std::to_string(ring.depth);
    }
    case 6: {
      int lane = int(random() % graph.lanes.size());
      if (lane == o.lane)
        continue;
      o.lane = lane;
      return o.name + " moves to " + graph.lanes[lane].name;
    }
    default: {
      Group &group = graph.groups[random() % graph.groups.size()];
      if (!group.cached || group.slots < 2)
        continue;
      --group.slots;
      return "one slot less in " + group.name;
    }
    }
  }
}

TEST(ScheduleFuzz, AcceptedNeverFails) {
  int mutants = setting("TERRACE_FUZZ_MUTANTS", 1000);
  int runs = setting("TERRACE_FUZZ_RUNS", 250);
  uint64_t seed = uint64_t(setting("TERRACE_FUZZ_SEED", 1));
  std::mt19937_64 random(seed);
  int accepted = 0, rejectedFailed = 0, conservative = 0;
  std::map<std::string, int> conservativeRules;
  for (int m = 0; m < mutants; ++m) {
    Graph graph = randomStep(random);
    ASSERT_TRUE(verify(graph).empty()) << verify(graph)[0].message;
    std::string what = mutate(graph, random);
    if (random() % 3 == 0)
      what += "; " + mutate(graph, random);
    std::vector<Finding> findings = verify(graph);
    std::string failure;
    uint64_t bad = 0;
    for (int r = 0; r < runs && failure.empty(); ++r) {
      SimulationOptions options;
      options.seed = uint64_t(m) * 1000003 + uint64_t(r);
      options.batches = 2 + int(options.seed % 9);
      failure = simulate(graph, options).failure;
      bad = options.seed;
    }
    if (findings.empty()) {
      ++accepted;
      EXPECT_EQ(failure, "")
          << "mutant " << m << ": " << what << ", seed " << bad;
    } else if (failure.empty()) {
      ++conservative;
      ++conservativeRules[findings[0].rule];
      if (std::getenv("TERRACE_FUZZ_VERBOSE"))
        std::printf("conservative: %s: %s\n", what.c_str(),
                    findings[0].message.c_str());
    } else {
      ++rejectedFailed;
    }
  }
  std::printf("seed %llu: %d mutants x %d interleavings: %d accepted, %d "
              "rejected and failed, %d rejected only (conservative):",
              static_cast<unsigned long long>(seed), mutants, runs, accepted,
              rejectedFailed, conservative);
  for (auto &[rule, count] : conservativeRules)
    std::printf(" %s %d", rule.c_str(), count);
  std::printf("\n");
  // The fuzz is worth something only if all three kinds occur.
  EXPECT_GT(accepted, mutants / 20);
  EXPECT_GT(rejectedFailed, mutants / 4);
}

/// What the verifier prints as a bad interleaving can be run.
TEST(ScheduleFuzz, InterleavingsAreLegal) {
  std::mt19937_64 random(7);
  int replayed = 0;
  for (int m = 0; m < 60; ++m) {
    Graph graph = randomStep(random);
    mutate(graph, random);
    for (const Finding &f : verify(graph)) {
      if (f.rule != "order")
        continue;
      SimulationOptions options;
      options.batches = f.distance + 1;
      options.prefix = f.interleaving;
      std::string failure = simulate(graph, options).failure;
      EXPECT_NE(failure.substr(0, 9), "not legal") << f.message;
      for (const Instance &i : f.interleaving)
        EXPECT_FALSE(i.op == f.other && i.batch == 0) << f.message;
      ++replayed;
    }
  }
  EXPECT_GT(replayed, 10);
}

} // namespace
