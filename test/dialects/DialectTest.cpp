//===- DialectTest.cpp - What text tests cannot see -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declared effects (every happens-before rule follows from them), exactness of
// doubles in text, damaged and future bytecode, interfaces of attributes.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/BytecodeFields.h"
#include "dialects/emb/Emb.h"
#include "dialects/plan/Plan.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;
using namespace terrace;

namespace {

constexpr const char *kPlan = R"mlir(
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.group @m [@u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.kernel @k gather_pool <4 x f32>
plan.kernel @s segment_update <4 x f32>
plan.program @p worker 0 of 1 {
  %0 = plan.ring @dram role ingest bytes 1 depth 1
  %1 = plan.ring @dram role unique bytes 1 depth 1
  %2 = plan.ring @dram role probe bytes 1 depth 1
  %3 = plan.ring @dram role staging bytes 1 depth 1
  %4 = plan.ring @dram role writebuf bytes 1 depth 1
  %5 = plan.ring @dram role pooled bytes 1 depth 1
  %6 = plan.ring @dram role grads bytes 1 depth 1
  %7 = plan.ring @dram role unique bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %0
    %c = plan.check %b on_bad_id "error"
    %u, %x = plan.unique @g %c max 8 into %1
    %n, %y = plan.unique @m %c max 8 into %7
    %p, %m, %v = plan.probe @g %u into %2
    %w = plan.spill @g %v into %4
    %q = plan.store @g %w
    %f = plan.fetch @g %m into %3 after(%w : !plan.buf)
    %r = plan.fill @g %p from %f
    %o = plan.gather_pool @g rows %r[%x] with @k into %5
    %g = plan.call @fm(%b, %o) into %6 -> !plan.buf
    %e = plan.preserve @g rows %r[%x]
    %t = plan.segment_update @g rows %r[%x] with @s grads(%g) after(%e)
    %d = plan.unpin @g %r after(%t)
  }
}
)mlir";

class DialectTest : public testing::Test {
protected:
  DialectTest() {
    context.loadDialect<emb::EmbDialect, plan::PlanDialect>();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return success();
    });
  }
  OwningOpRef<ModuleOp> parse(StringRef text) {
    return parseSourceString<ModuleOp>(text, &context);
  }
  std::string bytecodeOf(ModuleOp module) {
    std::string bytes;
    llvm::raw_string_ostream os(bytes);
    EXPECT_TRUE(succeeded(writeBytecodeToFile(module, os)));
    return bytes;
  }

  MLIRContext context;
  std::string messages;
};

/// `read slots pin @g`, in the order of declaration.
std::string describe(const plan::PlanEffect &effect) {
  static const char *roles[] = {"directory", "slots", "home", "ring", "cut"};
  static const char *sets[] = {"", " pin", " miss", " victim", " all"};
  std::string text = effect.access == plan::Access::Read ? "read " : "write ";
  text += roles[int(effect.role)];
  text += sets[int(effect.rows)];
  if (effect.group)
    text += " @" + effect.group.getValue().str();
  if (auto ring = effect.ring ? effect.ring.getDefiningOp<plan::RingOp>()
                              : plan::RingOp())
    text += " " + plan::stringifyRingRole(*ring.getRole()).str();
  return text;
}

TEST_F(DialectTest, EffectsSayWhatTheArtifactSays) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  ASSERT_TRUE(module) << messages;
  std::string all;
  module->walk([&](plan::PlanEffectsOpInterface op) {
    SmallVector<plan::PlanEffect> effects;
    op.getPlanEffects(effects);
    all += op->getName().stripDialect().str() + ":";
    for (const plan::PlanEffect &effect : effects)
      all += " " + describe(effect) + ";";
    all += "\n";
  });
  EXPECT_EQ(all, R"(ingest: write ring ingest;
check: read ring ingest; write ring ingest;
unique: read ring ingest; write ring unique;
unique: read ring ingest; write ring unique; write directory miss @m; write slots miss @m;
probe: read ring unique; write ring probe; write directory pin @g; write directory victim @g;
spill: read ring probe; write ring writebuf; read slots victim @g; write directory victim @g;
store: read ring writebuf; write home victim @g;
fetch: read ring probe; write ring staging; read directory miss @g; read home miss @g;
fill: read ring probe; read ring staging; write slots miss @g;
gather_pool: read ring probe; read ring unique; write ring pooled; read ring ingest; read slots pin @g;
call: read ring ingest; read ring pooled; write ring grads;
preserve: read ring probe; read ring unique; read slots pin @g; read cut;
segment_update: read ring probe; read ring unique; read ring grads; write slots pin @g;
unpin: read ring probe; write directory pin @g;
)");
}

/// A library: the trainer takes outputs and gives gradients; `pooling` of both
/// features, which share unique bags.
std::string libraryWith(StringRef pooling) {
  return ("emb.tier @dram dram bytes 64\n"
          "plan.group @m [@u] #plan.record<4 x f32, state 0, header 8, slot "
          "16, store 24> home @dram\n"
          "plan.kernel @k gather_pool <4 x f32, " +
          pooling +
          ">\n"
          "plan.program @p worker 0 of 1 {\n"
          "  %0 = plan.ring @dram role ingest bytes 1 depth 1\n"
          "  %1 = plan.ring @dram role dedup bytes 1 depth 1\n"
          "  %2 = plan.ring @dram role unique bytes 1 depth 1\n"
          "  %3 = plan.ring @dram role pooled bytes 1 depth 1\n"
          "  %4 = plan.ring @dram role expanded bytes 1 depth 1\n"
          "  %5 = plan.ring @dram role grads bytes 1 depth 1\n"
          "  plan.pipeline {\n"
          "    %b = plan.ingest features [#plan.feature<name = \"a\", table = "
          "@u, pooling = " +
          pooling +
          ", dedup = \"d\">] into %0\n"
          "    %d, %i = plan.dedup %b [\"a\"] into %1\n"
          "    %n, %y = plan.unique @m %b, %d max 8 into %2\n"
          "    %o = plan.gather_pool @m [%y] with @k into %3\n"
          "    %e = plan.expand %o by %i into %4\n"
          "    %h = plan.handoff(%e)\n"
          "    %go, %g = plan.resume into %5 after(%h) -> !plan.buf\n"
          "  }\n"
          "}\n")
      .str();
}

/// What an op writes must not be reused while another still needs it, also
/// where no operand says so: offsets for `none`, winners for `max`.
TEST_F(DialectTest, TrainersStagesReadWhatTheLayoutNeeds) {
  auto effectsOf = [&](StringRef pooling, StringRef name) {
    OwningOpRef<ModuleOp> module = parse(libraryWith(pooling));
    EXPECT_TRUE(module) << messages;
    std::string text;
    module->walk([&](plan::PlanEffectsOpInterface op) {
      if (op->getName().stripDialect() != name)
        return;
      SmallVector<plan::PlanEffect> effects;
      op.getPlanEffects(effects);
      for (const plan::PlanEffect &effect : effects)
        text += describe(effect) + ";";
    });
    return text;
  };
  EXPECT_EQ(effectsOf("sum", "gather_pool"),
            "read ring unique;write ring pooled;read ring ingest;read ring "
            "dedup;read slots pin @m;");
  EXPECT_EQ(effectsOf("sum", "expand"),
            "read ring pooled;read ring dedup;write ring expanded;");
  EXPECT_EQ(effectsOf("none", "expand"), "read ring pooled;read ring dedup;"
                                         "write ring expanded;read ring "
                                         "ingest;");
  EXPECT_EQ(effectsOf("sum", "handoff"), "read ring expanded;");
  EXPECT_EQ(effectsOf("none", "handoff"),
            "read ring expanded;read ring ingest;");
  EXPECT_EQ(effectsOf("sum", "resume"), "write ring grads;write cut;");
  EXPECT_EQ(effectsOf("none", "resume"),
            "write ring grads;write cut;read ring ingest;");
  EXPECT_EQ(
      effectsOf("max", "resume"),
      "write ring grads;write cut;read ring ingest;read ring pooled;read ring "
      "dedup;");
}

TEST_F(DialectTest, NoStageIsDead) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  ASSERT_TRUE(module) << messages;
  module->walk([&](plan::PlanStageOpInterface op) {
    EXPECT_FALSE(isOpTriviallyDead(op)) << op->getName().getStringRef().str();
  });
}

TEST_F(DialectTest, SchedulesAreEdited) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  ASSERT_TRUE(module) << messages;
  module->walk([&](plan::PlanStageOpInterface op) {
    EXPECT_FALSE(op.getLaneAttr());
    op.setSchedule(FlatSymbolRefAttr::get(&context, "lane"), 3);
    EXPECT_EQ(op.getLaneAttr().getValue(), "lane");
    EXPECT_EQ(op.getAheadOr0(), 3);
    op.setSchedule({}, 5);
    EXPECT_EQ(op.getAheadOr0(), 0);
  });
  EXPECT_TRUE(succeeded(verify(*module))) << messages;
}

TEST_F(DialectTest, DoublesKeepTheirBits) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    double value = emb::F64::fromBits(random());
    if (i % 2) // also numbers as people write them
      value = std::round(value * 1e6) / 1e6;
    if (i % 16 == 0)
      value = std::ldexp(1.0, int(random() % 2100) - 1074);
    if (!std::isfinite(value))
      continue;
    Attribute before = emb::ConstantAttr::get(&context, value);
    std::string text;
    llvm::raw_string_ostream(text) << before;
    Attribute after = parseAttribute(text, &context);
    ASSERT_EQ(before, after) << text << messages;
  }
}

TEST_F(DialectTest, BytecodeKeepsEverything) {
  OwningOpRef<ModuleOp> module = parse(kPlan);
  ASSERT_TRUE(module) << messages;
  std::string bytes = bytecodeOf(*module);
  OwningOpRef<ModuleOp> again = parse(bytes);
  ASSERT_TRUE(again) << messages;
  std::string before, after;
  llvm::raw_string_ostream(before) << *module;
  llvm::raw_string_ostream(after) << *again;
  EXPECT_EQ(before, after);
}

// What version 2 added takes its default when version 1 is read.
TEST_F(DialectTest, BytecodeOfVersion1IsRead) {
  OwningOpRef<ModuleOp> module = parse(R"(
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[9, 4], #emb.row<bf16>> ids index
  optimizer #emb.adam<lr = 0.1, beta1 = 0.9, beta2 = 0.99, eps = 0.5, weight_decay = 0.25>
  init #emb.constant<0.0> placement #emb.placement<home = @dram>
plan.kernel @s segment_update <4 x bf16, adam, decay>
)");
  ASSERT_TRUE(module) << messages;
  BytecodeWriterConfig config;
  config.setDialectVersion("emb", std::make_unique<bytecode::Version>(1));
  config.setDialectVersion("plan", std::make_unique<bytecode::Version>(1));
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  ASSERT_TRUE(succeeded(writeBytecodeToFile(*module, os, config)));
  EXPECT_LT(bytes.size(), bytecodeOf(*module).size());
  OwningOpRef<ModuleOp> again = parse(bytes);
  ASSERT_TRUE(again) << messages;
  std::string before, after;
  llvm::raw_string_ostream(before) << *module;
  llvm::raw_string_ostream(after) << *again;
  EXPECT_EQ(before, after);
}

TEST_F(DialectTest, BytecodeOfTheFutureIsRefused) {
  OwningOpRef<ModuleOp> module = parse("emb.tier @dram dram bytes 64");
  ASSERT_TRUE(module) << messages;
  std::string bytes = bytecodeOf(*module);
  // A version is a varint: 3 is the byte 7, 4 is the byte 9.
  bool refused = false;
  for (size_t i = 0; i < bytes.size() && !refused; ++i) {
    if (bytes[i] != 7)
      continue;
    std::string changed = bytes;
    changed[i] = 9;
    messages.clear();
    OwningOpRef<ModuleOp> read = parse(changed);
    refused = !read &&
              messages.find("dialect emb has version 4") != std::string::npos;
  }
  EXPECT_TRUE(refused);
}

TEST_F(DialectTest, AttributesAnswerThroughInterfaces) {
  auto stateOf = [&](const char *text, int64_t dim) {
    auto optimizer = dyn_cast_or_null<emb::OptimizerAttrInterface>(
        parseAttribute(text, &context));
    EXPECT_TRUE(optimizer) << text << messages;
    return std::make_tuple(
        optimizer.getKindName().str(), optimizer.getStateFloats(dim),
        optimizer.isColumnSeparable(), optimizer.getWeightDecay());
  };
  EXPECT_EQ(stateOf("#emb.sgd<lr = 0.1>", 9),
            std::make_tuple("sgd", 0, true, 0.0));
  EXPECT_EQ(stateOf("#emb.adagrad<lr = 0.1, eps = 0.0>", 9),
            std::make_tuple("adagrad", 9, true, 0.0));
  EXPECT_EQ(stateOf("#emb.rowwise_adagrad<lr = 0.1, eps = 0.0>", 9),
            std::make_tuple("rowwise_adagrad", 1, false, 0.0));
  EXPECT_EQ(stateOf("#emb.adam<lr = 0.1, beta1 = 0.9, beta2 = 0.999, "
                    "eps = 0.0, weight_decay = 0.5>",
                    9),
            std::make_tuple("adam", 18, true, 0.5));
  EXPECT_EQ(stateOf("#emb.momentum_sgd<lr = 0.1, momentum = 0.9>", 9),
            std::make_tuple("momentum_sgd", 9, true, 0.0));
  EXPECT_EQ(stateOf("#emb.partial_rowwise_adam<lr = 0.1, beta1 = 0.9, "
                    "beta2 = 0.9, eps = 0.0>",
                    9),
            std::make_tuple("partial_rowwise_adam", 10, false, 0.0));
  EXPECT_EQ(stateOf("#emb.lamb<lr = 0.1, beta1 = 0.9, beta2 = 0.9, eps = 0.0, "
                    "weight_decay = 0.25>",
                    9),
            std::make_tuple("lamb", 18, false, 0.25));
  EXPECT_EQ(stateOf("#emb.ftrl<lr = 0.1, beta = 1.0, l1 = 1.0>", 9),
            std::make_tuple("ftrl", 18, true, 0.0));
  EXPECT_EQ(stateOf("#emb.ftrl<lr = 0.1, beta = 1.0, clip_norm = 1.0>", 9),
            std::make_tuple("ftrl", 18, false, 0.0));
  auto row = [&](const char *text) {
    return cast<emb::RowAttr>(parseAttribute(text, &context)).getBytes(9);
  };
  EXPECT_EQ(row("#emb.row<f32>"), 36);
  EXPECT_EQ(row("#emb.row<bf16>"), 18);
  EXPECT_EQ(row("#emb.row<i8, scale f16>"), 11);
  EXPECT_EQ(row("#emb.row<i8, scale f16, bias f16>"), 13);
  EXPECT_EQ(row("#emb.row<i4, scale f16, bias f16>"), 9);
  EXPECT_EQ(row("#emb.row<i4, scale f32>"), 9);
  auto kernel = [&](const char *text, plan::KernelKind kind) {
    return cast<plan::KernelConfigAttr>(parseAttribute(text, &context))
        .getKernelName(kind);
  };
  EXPECT_EQ(kernel("#plan.kernel_config<16 x f32, sqrtn, weighted>",
                   plan::KernelKind::GatherPool),
            "gather_pool_16_sqrtn_weighted");
  EXPECT_EQ(kernel("#plan.kernel_config<16 x f32, rowwise_adagrad, decay>",
                   plan::KernelKind::SegmentUpdate),
            "segment_update_16_rowwise_adagrad_decay");
  EXPECT_EQ(kernel("#plan.kernel_config<16 x f32, momentum_sgd, decay, "
                   "decoupled, clip>",
                   plan::KernelKind::SegmentUpdate),
            "segment_update_16_momentum_sgd_decay_decoupled_clip");
  EXPECT_EQ(kernel("#plan.kernel_config<16 x f16, max>",
                   plan::KernelKind::GatherPool),
            "gather_pool_16_f16_max");
  EXPECT_EQ(kernel("#plan.kernel_config<16 x bf16, adam, clip, stochastic>",
                   plan::KernelKind::SegmentUpdate),
            "segment_update_16_bf16_adam_clip_stochastic");
}

} // namespace
