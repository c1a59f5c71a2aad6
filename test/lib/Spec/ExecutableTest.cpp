//===- ExecutableTest.cpp - What parses but cannot run yet ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "SpecTesting.h"

using namespace terrace::spec;

namespace {

const std::string memory =
    "memory: {tiers: [{name: d, kind: dram, capacity: 1GiB}]}\n";

std::string refusal(const std::string &text) {
  Parsed parsed = parse(text);
  EXPECT_TRUE(parsed.spec) << parsed.errors();
  if (!parsed.spec)
    return "";
  EXPECT_FALSE(checkExecutable(*parsed.spec, parsed.diagnostics)) << text;
  return parsed.errors();
}

void expectIn(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nin: " << text;
}

TEST(SpecExecutable, GoodSpecPasses) {
  Parsed parsed = parse(withLines(memory));
  ASSERT_TRUE(parsed.spec);
  EXPECT_TRUE(checkPlannable(*parsed.spec, parsed.diagnostics));
  EXPECT_TRUE(checkExecutable(*parsed.spec, parsed.diagnostics))
      << parsed.errors();
}

// Memory without a bound is implied.
TEST(SpecExecutable, MemoryMayBeLeftOut) {
  Parsed parsed = parse(withLines(""));
  ASSERT_TRUE(parsed.spec);
  EXPECT_TRUE(checkExecutable(*parsed.spec, parsed.diagnostics))
      << parsed.errors();
}

TEST(SpecExecutable, WarnsOfWhatNothingReads) {
  Parsed parsed = parse(withLines(
      "data: {path: a.tsv, time: t}\nmemory: {tiers: [{name: n, kind: nvme, "
      "capacity: 1GiB, path: x, drive_writes_per_day: 1}]}\n"));
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  EXPECT_TRUE(checkExecutable(*parsed.spec, parsed.diagnostics));
  expectIn(parsed.errors(), "warning: data.time is for dynamic ids");
}

TEST(SpecExecutable, EachLimitIsLocated) {
  expectIn(refusal(withLines(memory + "workers: 4\n")),
           "m.yaml:5:10: error: workers: 4 needs the distributed exchange");
  expectIn(refusal(withLines(memory + "target: {device: gpu, arch: sm_90}\n")),
           "m.yaml:5:18: error: target device 'gpu'");
  expectIn(refusal("terrace: 1\nnumerics: reassociate\nfeatures:\n- {name: a, "
                   "dedup: g, table: {rows: 9, dim: 4}}\n"),
           "m.yaml:2:11: error: numerics 'reassociate' with dedup groups");
  expectIn(refusal(withLines(
               "memory: {tiers: [{name: h, kind: hbm, capacity: 1GiB}]}\n")),
           "m.yaml:4:34: error: tier 'h': hbm needs target: {device: gpu}");
  expectIn(
      refusal(withLines(
          memory + "head: {kind: dlrm, label: y, bottom_mlp: [4], top_mlp: "
                   "[1]}\ndense: [{name: d}]\n")),
      "m.yaml:5:14: error: head 'dlrm'");
  std::string table = "terrace: 1\n" + memory +
                      "features:\n- {name: a, table: {rows: 10, dim: 4, ";
  expectIn(refusal(table + "dtype: int8}}\n"),
           "m.yaml:4:46: error: table 'a': dtype 'int8' is for serving only");
  expectIn(refusal(table + "ids: dynamic}}\n"),
           "m.yaml:4:44: error: table 'a': ids 'dynamic'");
  expectIn(refusal("terrace: 1\n" + memory +
                   "features:\n- {name: a, table: "
                   "{rows: 10, dim: 4096}}\n"),
           "dim 4096 cannot be compiled yet");
  expectIn(refusal("terrace: 1\n" + memory +
                   "batch: {size: 1000000}\nfeatures:\n- {name: a, max_ids: "
                   "100000, table: {rows: 10, dim: 4}}\n"),
           "the sum of all features' bounds, is too large");
}

// Every table takes the type, and none keeps state.
TEST(SpecExecutable, Serving) {
  std::string text = "terrace: 1\n" + memory +
                     "features:\n- {name: a, table: {rows: 10, dim: 4, "
                     "rounding: stochastic, dtype: f16, init: {kind: normal, "
                     "std: ";
  Parsed near = parse(text + "0.1}}}\nserve: {dtype: int8}\n");
  ASSERT_TRUE(near.spec) << near.errors();
  EXPECT_TRUE(checkExecutable(*near.spec, near.diagnostics));
  Spec served = forServing(*near.spec);
  EXPECT_TRUE(checkExecutable(served, near.diagnostics)) << near.errors();
  EXPECT_EQ(served.tables[0].dtype, DType::Int8);
  EXPECT_EQ(served.tables[0].rounding, Rounding::Nearest);
  EXPECT_EQ(served.tables[0].optimizer.kind, OptimizerKind::Sgd);
  EXPECT_EQ(near.spec->tables[0].dtype, DType::F16);

  Parsed far = parse(text + "1e4}}}\nserve: {dtype: int4}\n");
  ASSERT_TRUE(far.spec) << far.errors();
  EXPECT_FALSE(checkExecutable(forServing(*far.spec), far.diagnostics));
  expectIn(far.errors(), "keeps a row's smallest value in f16, but init "
                         "reaches beyond 65504");
}

// A template is one place in the file, though a thousand tables use it.
TEST(SpecExecutable, OnePlaceOneMessage) {
  Parsed parsed = parse("terrace: 1\n" + memory +
                        R"(templates: {t: {rows: 9, dim: 4, dtype: int4}}
features:
- {name: "a{i}", count: 1000, table: {use: t}}
)");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  EXPECT_FALSE(checkExecutable(*parsed.spec, parsed.diagnostics));
  EXPECT_EQ(parsed.diagnostics.list().size(), 1u) << parsed.errors();
}

} // namespace
