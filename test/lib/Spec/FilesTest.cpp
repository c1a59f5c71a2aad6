//===- FilesTest.cpp - Whole specs: parse, print, parse again -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface is the files in shared/specs; they are skipped where they are
// not there. The text of `terrace init` and the examples always are.
//
//===----------------------------------------------------------------------===//
#include "SpecTesting.h"

#include "llvm/Support/FileSystem.h"

using namespace terrace::spec;

namespace {

/// Printing is a fixpoint: the printed spec parses to what prints the same.
std::string printTwice(const Spec &spec) {
  std::string once = printSpec(spec);
  Diagnostics diagnostics;
  std::optional<Spec> again = parseSpecText(once, "printed", diagnostics);
  EXPECT_TRUE(again) << diagnostics.str() << once;
  EXPECT_EQ(once, again ? printSpec(*again) : "");
  return once;
}

std::optional<Spec> load(const std::string &model, const std::string &node) {
  Diagnostics diagnostics;
  std::optional<Spec> spec = parseSpec({model, node, {}}, diagnostics);
  EXPECT_TRUE(spec) << diagnostics.str();
  return spec;
}

class SharedSpec : public ::testing::TestWithParam<const char *> {};

TEST_P(SharedSpec, ParsesAndPrintsBack) {
  std::string file = sharedSpecs() + GetParam();
  if (!llvm::sys::fs::exists(file))
    GTEST_SKIP() << file << " is not there";
  if (auto spec = load(file, ""))
    printTwice(*spec);
}

INSTANTIATE_TEST_SUITE_P(All, SharedSpec,
                         ::testing::Values("hello.yaml", "retail.yaml",
                                           "dlrm.yaml", "session.yaml",
                                           "ads1000.yaml",
                                           "ads1000.node.yaml"));

TEST(SpecFiles, NodeFileCompletesAModel) {
  std::string folder = sharedSpecs();
  if (!llvm::sys::fs::exists(folder))
    GTEST_SKIP() << folder << " is not there";
  auto spec = load(folder + "ads1000.yaml", folder + "ads1000.node.yaml");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->tables.size(), 1000u);
  EXPECT_EQ(spec->features.size(), 1000u);
  EXPECT_EQ(spec->tiers.size(), 4u);
  EXPECT_EQ(spec->workers, 8);
  EXPECT_FALSE(spec->nodeOnly);
  // "ctx*" by glob, ad0 by name, no pin for the others.
  ASSERT_TRUE(spec->pinOf("ctx17"));
  EXPECT_EQ(**spec->pinOf("ctx17")->home, "hbm");
  ASSERT_EQ(spec->pinOf("ad0")->cache.size(), 2u);
  EXPECT_EQ(spec->pinOf("ad0")->cache[1].bytes, int64_t(20) << 30);
  EXPECT_FALSE(spec->pinOf("user3"));
  printTwice(*spec);
}

TEST(SpecFiles, InitTextCompilesAsItIs) {
  Parsed parsed = parse(initText("shop"));
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  EXPECT_EQ(*parsed.spec->model, "shop");
  printTwice(*parsed.spec);
  EXPECT_TRUE(checkExecutable(*parsed.spec, parsed.diagnostics))
      << parsed.errors();
}

TEST(SpecFiles, ExamplesParse) {
  for (const char *name : {"01-hello", "02-retail", "04-embed-in-c"}) {
    std::string file =
        std::string(TERRACE_SOURCE_DIR) + "/examples/" + name + "/model.yaml";
    auto spec = load(file, "");
    ASSERT_TRUE(spec) << file;
    printTwice(*spec);
    Diagnostics diagnostics;
    EXPECT_TRUE(checkExecutable(*spec, diagnostics)) << diagnostics.str();
  }
}

TEST(SpecFiles, ReadmesFirstModel) {
  Parsed parsed = parse(R"(terrace: 1
features:
- {name: user, table: {rows: 100000, dim: 16}}
- {name: item, table: {rows: 1000000, dim: 16}}
head: {kind: fm, label: click}
data: {path: clicks.tsv}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 32MiB}
  - {name: disk, kind: nvme, capacity: 1GiB, path: hello.store}
)");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  const Spec &spec = *parsed.spec;
  EXPECT_EQ(*spec.model, "m"); // the file's name
  EXPECT_EQ(spec.batch.size, 2048);
  EXPECT_EQ(spec.batch.maxIds, 4096);
  ASSERT_EQ(spec.tables.size(), 2u);
  EXPECT_EQ(*spec.tables[1].name, "item");
  EXPECT_EQ(spec.tables[1].rows, 1000000);
  EXPECT_EQ(spec.tables[1].optimizer.kind, OptimizerKind::RowwiseAdagrad);
  EXPECT_EQ(spec.tables[1].optimizer.lr, 0.02);
  EXPECT_EQ(spec.features[1].table, 1u);
  EXPECT_EQ(*spec.features[1].column, "item");
  EXPECT_EQ(spec.tiers[1].capacity, int64_t(1) << 30);
  EXPECT_FALSE(spec.plan.lookahead);
  // Every value knows its place; a default has none.
  EXPECT_EQ(spec.tables[1].rows.loc.line, 4u);
  EXPECT_EQ(spec.tables[1].rows.loc.column, 30u);
  EXPECT_TRUE(spec.batch.size.isDefault());
  printTwice(spec);
}

// Every key of DESIGN section 3 at a value that is not its default.
TEST(SpecFiles, EveryKeyPrintsBack) {
  Parsed parsed = parse(R"(terrace: 1
model: all.of-it_1
seed: 18446744073709551615
numerics: reassociate
on_bad_id: drop
on_bad_grad: skip
batch: {size: 7, max_ids: 300}
tables:
- {name: t, rows: 9, dim: 3, dtype: bf16, init: {kind: normal, mean: 0.5, std: 0.25},
   optimizer: {kind: adam, lr: 0.5, eps: 1e-4, beta1: 0.5, beta2: 0.25, weight_decay: 0.125},
   ids: {kind: dynamic, admit: {min_count: 2}, evict: {policy: lfu, ttl: 90min}, on_full: evict}}
- {name: u, rows: 9, dim: 3, dtype: int4, init: {kind: constant, value: -1.5},
   optimizer: {kind: sgd, momentum: 0.9, weight_decay: 0.1, weight_decay_mode: decoupled, clip_norm: 2.5}, ids: hash}
- {name: v, rows: 9, dim: 3, dtype: f16, rounding: stochastic, optimizer: {kind: ftrl, beta: 0.5, l1: 0.25, l2: 0.125}}
features:
- {name: f, column: "a column", table: t, type: string, pooling: weighted_mean, weights: w, max_ids: 5, mean_ids: 2.5,
   overflow: keep_first, dedup: g}
- {name: g, table: u, pooling: max, max_ids: 2, overflow: keep_last, dedup: g}
- {name: h, table: v}
dense: [{name: "d{i}", count: 2, column: "x{i}"}]
head: {kind: dlrm, label: "null", loss: bce, bottom_mlp: [4, 3], top_mlp: [8, 1], interaction: {kind: dcn_v2, layers: 2,
  rank: 6}, optimizer: {kind: adagrad, lr: 0.25}}
train: {epochs: 3, eval_every: 2.5%, metrics: [ne, auc], checkpoint: {every: 2h, keep: 7},
  lr_schedule: {warmup_steps: 1, decay_start: 2, decay_steps: 3, decay_power: 0.5, end_scale: 0.25}, stop: {auc: 0.9, ne: 0.5}}
serve: {dtype: int8}
data: {path: [a.tsv, "b*.tsv"], session: s, time: t, list_sep: ";", on_bad_row: skip, shuffle: {buffer: 10, seed: 3},
  eval: {path: [v.tsv, w.tsv]}}
memory: {tiers: [{name: h, kind: hbm, capacity: 1.5GiB, per: worker}, {name: d, kind: dram, capacity: 1000MB},
  {name: p, kind: pmem, capacity: 3TiB, path: /p}, {name: n, kind: nvme, capacity: 5PiB, path: [/a, /b], drive_writes_per_day: 0.3}]}
workers: 2
target: {device: gpu, arch: sm_90a}
machine: m.yaml
plan: {lookahead: 8, place: [{tables: "[tu]", home: n, cache: {h: 1KiB, d: 12345B}}], together: [[t, u]]}
)");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  const Spec &spec = *parsed.spec;
  EXPECT_EQ(spec.tables[0].ids.ttlSeconds, 5400);
  EXPECT_EQ(spec.tables[1].optimizer.momentum, 0.9);
  EXPECT_EQ(spec.train.checkpoint.everySeconds, 7200);
  EXPECT_EQ(spec.train.evalEvery->percent, 2.5);
  EXPECT_EQ(spec.tiers[0].capacity, int64_t(3) << 29);
  EXPECT_EQ(spec.tiers[1].capacity, 1000000000);
  EXPECT_EQ(spec.plan.place[0].cache[1].bytes, 12345);
  EXPECT_EQ(*spec.plan.lookahead, 8);
  EXPECT_EQ(spec.seed, 18446744073709551615ull);
  std::string text = printTwice(spec);
  for (const char *part : {"numerics: reassociate",
                           "on_bad_id: drop",
                           "on_bad_grad: skip",
                           "dtype: int4",
                           "ttl: 90min",
                           "on_full: evict",
                           "momentum: 0.9",
                           "weight_decay_mode: decoupled, clip_norm: 2.5",
                           "dtype: f16, rounding: stochastic",
                           "beta: 0.5, l1: 0.25, l2: 0.125",
                           "pooling: weighted_mean, weights: w",
                           "column: \"a column\"",
                           "label: \"null\"",
                           "eval_every: 2.5%",
                           "stop: {auc: 0.9, ne: 0.5}",
                           "serve: {dtype: int8}",
                           "capacity: 1536MiB",
                           "per: worker",
                           "drive_writes_per_day: 0.3",
                           "cache: {h: 1KiB, d: 12345B}",
                           "[t, u]",
                           "machine: m.yaml"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

} // namespace
