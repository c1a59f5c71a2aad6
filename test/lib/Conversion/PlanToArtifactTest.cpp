//===- PlanToArtifactTest.cpp - The runtime reads what we write -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From emb text through both pipelines to JSON, which the runtime's own parser
// must accept; then the schedule in it is rebuilt from the JSON alone, proven
// and run by the simulator.
//
//===----------------------------------------------------------------------===//
#include "Conversion/PlanToArtifact/PlanToArtifact.h"

#include "Pipelines/Pipelines.h"
#include "Schedule/HappensBefore.h"
#include "Schedule/Simulator.h"
#include "dialects/plan/Plan.h"
#include "runtime/core/Plan.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace terrace;

namespace {

/// Three tables: two on disk in one group, one in memory with hashed ids; one
/// dedup group over both.
std::string embText(const std::string &head, int64_t dram = 8388608) {
  std::string bags = "!emb.bags<8, max 16 x i64, ";
  std::string text = R"(
module attributes {emb.model = "toy", emb.seed = 7 : i64, emb.numerics = "strict", emb.on_bad_grad = "error", emb.on_bad_id = "error"} {
  emb.tier @dram dram bytes )" +
                     std::to_string(dram) + R"(
  emb.tier @disk nvme bytes 1073741824 path "toy.store"
  emb.table @a : !emb.state<[40, 4], #emb.row<f32>> ids index optimizer #emb.adam<lr = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8> init #emb.uniform<-0.01, 0.01> placement #emb.placement<home = @disk, cache = @dram, retained = 3, policy = "lru">
  emb.table @b : !emb.state<[9, 4], #emb.row<f32>> ids index optimizer #emb.adam<lr = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8> init #emb.constant<0.5> placement #emb.placement<home = @disk, cache = @dram, retained = 2, policy = "lru">
  emb.table @c : !emb.state<[30, 4], #emb.row<f32>> ids hash optimizer #emb.sgd<lr = 0.1> init #emb.normal<0.0, 0.1> placement #emb.placement<home = @dram>
  emb.step @train batch 8 max_ids 40 worker 0 of 1 {
    %s = emb.scalar "lr_scale" : f32
    %n = emb.samples : index
    %y = emb.feature "label" : tensor<8xf32>
    %r0 = emb.feature "fa" index 0 max_per_bag 2 dedup "d" : RAW
    %r1 = emb.feature "fb" index 1 max_per_bag 2 : RAW
    %r2 = emb.feature "fc" index 2 max_per_bag 2 dedup "d" : RAW
    %k0, %k1, %k2 = emb.check %r0, %r1, %r2 in [@a, @b, @c] on_bad_id "error" : RAW, RAW, RAW -> IDS, IDS, IDS
    %t2 = emb.translate %k2 in @c : IDS
    %d0, %d2, %inv = emb.dedup group "d" %k0, %t2 : IDS, IDS -> UNIQ, UNIQ, !emb.inverse<8>
    %sa = emb.state @a : !emb.state<[40, 4], #emb.row<f32>>
    %sb = emb.state @b : !emb.state<[9, 4], #emb.row<f32>>
    %sc = emb.state @c : !emb.state<[30, 4], #emb.row<f32>>
    %u0 = emb.lookup sum %sa[%d0] : !emb.state<[40, 4], #emb.row<f32>>, UNIQ -> tensor<?x4xf32>
    %p1 = emb.lookup mean %sb[%k1] : !emb.state<[9, 4], #emb.row<f32>>, IDS -> tensor<8x4xf32>
    %u2 = emb.lookup sum %sc[%d2] : !emb.state<[30, 4], #emb.row<f32>>, UNIQ -> tensor<?x4xf32>
    %p0 = emb.expand %u0 by %inv : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
    %p2 = emb.expand %u2 by %inv : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
    HEAD
    %ua = emb.update %sa scale %s pool [sum] bags [%d0 by %inv] grads(%g#0) : !emb.state<[40, 4], #emb.row<f32>>, f32, [UNIQ], (tensor<8x4xf32>)
    %ub = emb.update %sb scale %s pool [mean] bags [%k1] grads(%g#1) : !emb.state<[9, 4], #emb.row<f32>>, f32, [IDS], (tensor<8x4xf32>)
    %uc = emb.update %sc scale %s pool [sum] bags [%d2 by %inv] grads(%g#2) : !emb.state<[30, 4], #emb.row<f32>>, f32, [UNIQ], (tensor<8x4xf32>)
    emb.commit [@a, @b, @c] (%ua, %ub, %uc) : !emb.state<[40, 4], #emb.row<f32>>, !emb.state<[9, 4], #emb.row<f32>>, !emb.state<[30, 4], #emb.row<f32>>
  }
}
)";
  std::string dense =
      "%g:3 = emb.dense @" + head + "(%n, %p0, %p1, %p2" +
      (head == "caller" ? "" : ", %y") +
      ") : (index, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>" +
      (head == "caller" ? "" : ", tensor<8xf32>") +
      ") -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)";
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
         at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("HEAD", dense);
  replace("RAW", bags + "raw>");
  replace("IDS", bags + "checked>");
  replace("UNIQ", "!emb.bags<?, max 16 x i64, checked>");
  return text;
}

class Artifact : public ::testing::Test {
protected:
  Artifact() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<emb::EmbDialect, plan::PlanDialect>();
    handler = std::make_unique<ScopedDiagnosticHandler>(
        &context, [this](Diagnostic &d) {
          if (d.getSeverity() == DiagnosticSeverity::Error)
            errors += d.str() + "\n";
          return success();
        });
    spec.model = std::string("toy");
    spec.head.emplace();
    spec.head->label = std::string("label");
  }

  bool makePlan(const std::string &text, int64_t lookahead) {
    errors.clear();
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return false;
    PassManager manager(&context);
    PlanPipelineOptions options;
    options.lookahead = lookahead;
    buildPlanPipeline(manager, options);
    return succeeded(manager.run(*module));
  }

  MLIRContext context;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  OwningOpRef<ModuleOp> module;
  spec::Spec spec;
  std::string errors;
};

/// The schedule of a parsed artifact as a graph of lib/Schedule.
schedule::Graph graphOf(const trc::Plan &plan) {
  schedule::Graph graph;
  for (const trc::LanePlan &l : plan.lanes)
    graph.lanes.push_back({l.name,
                           l.kind == trc::LaneKind::io ? schedule::LaneKind::Io
                           : l.kind == trc::LaneKind::caller
                               ? schedule::LaneKind::Caller
                               : schedule::LaneKind::Cpu,
                           l.depth});
  for (const trc::GroupPlan &g : plan.groups)
    graph.groups.push_back({g.name, g.cached(), g.rows, g.slots, g.maxUnique});
  for (const trc::RingPlan &r : plan.rings)
    graph.rings.push_back(
        {r.name, schedule::RingRole(int(r.role)), r.group, int(r.depth)});
  for (const trc::OpPlan &o : plan.ops) {
    schedule::Op op;
    op.name = trc::opName(o.kind);
    EXPECT_TRUE(schedule::parse(op.name, op.kind));
    op.group = o.group;
    op.lane = o.lane;
    op.ahead = int(o.ahead);
    for (const trc::WaitPlan &w : o.waits)
      op.waits.push_back({w.op, int(w.distance)});
    graph.ops.push_back(std::move(op));
  }
  schedule::declareEffects(graph);
  return graph;
}

TEST_F(Artifact, RuntimeParsesEveryLookahead) {
  for (const char *head : {"fm", "logistic", "caller"})
    for (int64_t lookahead = 0; lookahead <= 8; ++lookahead) {
      SCOPED_TRACE(std::string(head) + " " + std::to_string(lookahead));
      ASSERT_TRUE(makePlan(embText(head), lookahead)) << errors;
      auto text = planToArtifact(*module, spec, llvm::json::Object());
      ASSERT_TRUE(succeeded(text)) << errors;
      auto parsed = trc::parsePlan(text->json.data(), text->json.size());
      ASSERT_TRUE(parsed.ok()) << parsed.takeStatus().message();
      const trc::Plan &plan = *parsed;
      EXPECT_EQ(plan.model, "toy");
      EXPECT_EQ(plan.lookahead, lookahead);
      EXPECT_EQ(plan.hasHead, std::string(head) != "caller");
      ASSERT_EQ(plan.groups.size(), 2u);
      EXPECT_EQ(plan.groups[0].tables, (std::vector<int>{0, 1}));
      EXPECT_EQ(plan.groups[0].rows, 49);
      EXPECT_EQ(plan.tables[1].rowBase, 40);
      EXPECT_TRUE(plan.groups[0].cached());
      EXPECT_FALSE(plan.groups[1].cached());
      EXPECT_EQ(plan.features[2].dedup, 0);
      EXPECT_EQ(plan.features[1].gather, "gather_pool_4_mean");

      schedule::Graph graph = graphOf(plan);
      auto findings = schedule::verify(graph);
      EXPECT_TRUE(findings.empty()) << findings[0].message;
      for (uint64_t seed = 0; seed < 20; ++seed) {
        schedule::SimulationOptions options;
        options.seed = seed;
        options.batches = 1 + int(seed % 12);
        EXPECT_EQ(schedule::simulate(graph, options).failure, "");
      }
    }
}

TEST_F(Artifact, EveryWaitOfTheJsonIsNeeded) {
  ASSERT_TRUE(makePlan(embText("fm"), 3)) << errors;
  auto text = planToArtifact(*module, spec, llvm::json::Object());
  ASSERT_TRUE(succeeded(text));
  auto parsed = trc::parsePlan(text->json.data(), text->json.size());
  ASSERT_TRUE(parsed.ok());
  schedule::Graph graph = graphOf(*parsed);
  int waits = 0;
  for (auto &op : graph.ops)
    for (size_t k = 0; k < op.waits.size(); ++k, ++waits) {
      schedule::Wait wait = op.waits[k];
      op.waits.erase(op.waits.begin() + long(k));
      EXPECT_FALSE(schedule::verify(graph).empty());
      op.waits.insert(op.waits.begin() + long(k), wait);
    }
  EXPECT_GT(waits, 10);
}

TEST_F(Artifact, SameInputSameBytes) {
  std::string first;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(makePlan(embText("fm"), 2)) << errors;
    auto text = planToArtifact(*module, spec, llvm::json::Object());
    ASSERT_TRUE(succeeded(text));
    EXPECT_EQ(text->hash.size(), 16u);
    EXPECT_NE(text->json.find(text->hash), std::string::npos);
    if (i) {
      EXPECT_EQ(text->json, first);
    }
    first = text->json;
  }
  // Another seed is another plan.
  std::string other = embText("fm");
  other.replace(other.find("emb.seed = 7"), 12, "emb.seed = 8");
  ASSERT_TRUE(makePlan(other, 2));
  auto text = planToArtifact(*module, spec, llvm::json::Object());
  ASSERT_TRUE(succeeded(text));
  EXPECT_NE(text->json, first);
}

TEST_F(Artifact, KernelsAreListedOnce) {
  ASSERT_TRUE(makePlan(embText("fm"), 1)) << errors;
  auto text = planToArtifact(*module, spec, llvm::json::Object());
  ASSERT_TRUE(succeeded(text));
  EXPECT_EQ(text->kernels,
            (std::vector<std::string>{"gather_pool_4_mean", "gather_pool_4_sum",
                                      "segment_update_4_adam",
                                      "segment_update_4_sgd"}));
}

TEST_F(Artifact, OneByteLessIsRefusedWithTheSmallestNumber) {
  ASSERT_TRUE(makePlan(embText("fm"), 2)) << errors;
  auto text = planToArtifact(*module, spec, llvm::json::Object());
  ASSERT_TRUE(succeeded(text));
  auto parsed = trc::parsePlan(text->json.data(), text->json.size());
  ASSERT_TRUE(parsed.ok());
  int64_t need = parsed->bounds[0].bytes;
  EXPECT_TRUE(makePlan(embText("fm", need), 2)) << errors;
  EXPECT_FALSE(makePlan(embText("fm", need - 1), 2));
  EXPECT_NE(errors.find("at least " + std::to_string(need) + " bytes"),
            std::string::npos)
      << errors;
}

TEST_F(Artifact, WhatCannotRunIsALocatedError) {
  std::string text = embText("fm");
  text.replace(text.find("worker 0 of 1"), 13, "worker 0 of 2");
  EXPECT_FALSE(makePlan(text, 1));
  EXPECT_NE(errors.find("distributed exchange"), std::string::npos) << errors;

}

TEST_F(Artifact, AHomeMayBePersistentMemory) {
  std::string text = embText("fm");
  text.replace(text.find("disk nvme"), 9, "disk pmem");
  ASSERT_TRUE(makePlan(text, 1)) << errors;
  errors.clear();
  EXPECT_TRUE(succeeded(planToArtifact(*module, spec, llvm::json::Object())))
      << errors;
}

} // namespace
