//===- ResolveTest.cpp - Defaults, templates, count, inline tables --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "SpecTesting.h"

using namespace terrace::spec;

namespace {

// The item's own key wins over its template, that over the defaults.
TEST(SpecResolve, DefaultsBelowTemplateBelowItem) {
  Parsed parsed = parse(R"(terrace: 1
defaults:
  table: {dim: 8, optimizer: {kind: adagrad, lr: 0.5, eps: 0.25}}
  feature: {max_ids: 6, pooling: mean}
templates:
  big: {rows: 1000, dim: 16, optimizer: {lr: 0.125}}
features:
- {name: a, table: {use: big}}
- {name: b, table: {use: big, dim: 4, optimizer: adam}, max_ids: 2}
- {name: c, table: {rows: 5}}
)");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  const auto &tables = parsed.spec->tables;
  EXPECT_EQ(tables[0].dim, 16);
  EXPECT_EQ(tables[0].optimizer.kind, OptimizerKind::Adagrad);
  EXPECT_EQ(tables[0].optimizer.lr, 0.125); // merged key by key
  EXPECT_EQ(tables[0].optimizer.eps, 0.25);
  EXPECT_EQ(tables[1].dim, 4);
  EXPECT_EQ(tables[1].optimizer.kind, OptimizerKind::Adam);
  EXPECT_EQ(tables[1].optimizer.lr, 0.001); // another kind keeps nothing
  EXPECT_EQ(tables[1].optimizer.eps, 1e-8);
  EXPECT_EQ(tables[2].dim, 8);
  EXPECT_EQ(parsed.spec->features[0].maxIds, 6);
  EXPECT_EQ(parsed.spec->features[0].meanIds, 6.0);
  EXPECT_EQ(parsed.spec->features[1].maxIds, 2);
  EXPECT_EQ(parsed.spec->features[1].pooling, Pooling::Mean);
}

TEST(SpecResolve, CountReplacesAndPicks) {
  Parsed parsed = parse(R"(terrace: 1
features:
- {name: "c{i}", count: 3, column: "col{i}", dedup: "g{i}", table: {rows: [4, 5, 6], dim: 2}, max_ids: [1, 2, 3]}
- {name: d, table: c1}
)");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  const Spec &spec = *parsed.spec;
  ASSERT_EQ(spec.features.size(), 4u);
  EXPECT_EQ(*spec.features[2].name, "c2");
  EXPECT_EQ(*spec.features[2].column, "col2");
  EXPECT_EQ(**spec.features[2].dedup, "g2");
  EXPECT_EQ(spec.features[2].maxIds, 3);
  EXPECT_EQ(spec.tables[2].rows, 6);
  EXPECT_EQ(spec.features[3].table, 1u); // an inline table can be shared
  EXPECT_EQ(spec.dedupGroups(), (std::vector<std::string>{"g0", "g1", "g2"}));
  EXPECT_EQ(spec.batch.maxIds, 2048 * (1 + 2 + 3 + 1));
}

// A feature may name the inline table of a later feature.
TEST(SpecResolve, InlineTableOfALaterFeature) {
  Parsed parsed = parse(R"(terrace: 1
features:
- {name: a, table: b}
- {name: b, table: {rows: 3, dim: 1}}
)");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  EXPECT_EQ(parsed.spec->features[0].table, parsed.spec->features[1].table);
}

TEST(SpecResolve, LastMatchingPinCounts) {
  Parsed parsed = parse(withLines(R"(memory:
  tiers:
  - {name: d, kind: dram, capacity: 1MiB}
  - {name: n, kind: nvme, capacity: 1GiB, path: x}
plan:
  place:
  - {tables: "*", home: n}
  - {tables: a, home: d}
)"));
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  EXPECT_EQ(**parsed.spec->pinOf("a")->home, "d");
  EXPECT_EQ(**parsed.spec->pinOf("other")->home, "n");
}

TEST(SpecResolve, LargeBoundsSaturate) {
  Parsed parsed = parse(R"(terrace: 1
batch: {size: 16777216}
features:
- {name: "f{i}", count: 5000, max_ids: 2147483648, table: {rows: 9, dim: 1}}
)");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  EXPECT_EQ(parsed.spec->batch.maxIds, int64_t(1) << 62);
}

TEST(SpecResolve, JsonIsYaml) {
  Parsed parsed = parse(
      R"({"terrace": 1, "model": "j", "features": [{"name": "a", "table": {"rows": 10, "dim": 4}}],
 "head": {"kind": "fm", "label": "y"}})");
  ASSERT_TRUE(parsed.spec) << parsed.errors();
  EXPECT_EQ(*parsed.spec->model, "j");
}

} // namespace
