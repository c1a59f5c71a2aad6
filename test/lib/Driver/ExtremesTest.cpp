//===- ExtremesTest.cpp - Numbers at and beyond every limit ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever a user writes as a number is compiled or refused with an error that
// has a place: nothing reaches an attribute or a type whose verifier would end
// the process, or overflows on the way.
//
//===----------------------------------------------------------------------===//
#include "Driver/Compile.h"
#include "DriverTesting.h"

using namespace terrace;
using namespace terrace::driver;

namespace {

const char spec[] = R"(terrace: 1
model: extremes
batch: {size: 64, max_ids: 4096}
tables:
- {name: t, rows: 1000, dim: 8, init: {kind: normal, std: 0.1}, optimizer: {kind: adam}}
- {name: h, rows: 1000, dim: 8, ids: hash, init: {kind: uniform, low: -1, high: 1}, optimizer: {kind: ftrl}}
- {name: m, rows: 1000, dim: 8, init: {kind: constant, value: 0}, optimizer: {kind: sgd, momentum: 0.9}}
features:
- {name: a, table: t, max_ids: 8}
- {name: b, table: h, max_ids: 8, pooling: mean}
- {name: c, table: m}
head: {kind: logistic, label: y}
train: {epochs: 1}
data: {path: x.tsv}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 64MiB}
  - {name: disk, kind: nvme, capacity: 1GiB, path: rows.store}
plan:
  lookahead: 2
  place: [{tables: h, home: disk, cache: {dram: 16KiB}}]
)";

const char *const keys[] = {
    "seed",
    "batch.size",
    "batch.max_ids",
    "tables.t.rows",
    "tables.h.rows",
    "tables.t.dim",
    "tables.t.init.mean",
    "tables.t.init.std",
    "tables.h.init.low",
    "tables.h.init.high",
    "tables.m.init.value",
    "tables.t.optimizer.lr",
    "tables.t.optimizer.eps",
    "tables.t.optimizer.beta1",
    "tables.t.optimizer.beta2",
    "tables.t.optimizer.weight_decay",
    "tables.t.optimizer.clip_norm",
    "tables.h.optimizer.lr",
    "tables.h.optimizer.beta",
    "tables.h.optimizer.l1",
    "tables.h.optimizer.l2",
    "tables.m.optimizer.momentum",
    "features.a.max_ids",
    "features.a.mean_ids",
    "features.a.count",
    "train.epochs",
    "train.eval_every",
    "train.checkpoint.every",
    "train.checkpoint.keep",
    "train.checkpoint.churn",
    "train.lr_schedule.warmup_steps",
    "train.lr_schedule.decay_steps",
    "train.stop.auc",
    "data.shuffle.buffer",
    "data.eval.last",
    "memory.tiers.dram.capacity",
    "memory.tiers.disk.capacity",
    "memory.tiers.disk.drive_writes_per_day",
    "workers",
    "plan.lookahead",
    "plan.place.h.cache.dram",
    "terrace",
};

// Powers around which types and limits end, and what is no number.
const char *const values[] = {
    "0",
    "1",
    "-1",
    "65536",
    "16777216",
    "2147483648",
    "1099511627776",
    "1099511627777",
    "35184372088832",
    "281474976710656",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e-45",
    "1e38",
    "3.5e38",
    "1e308",
    "nan",
    "inf",
    "-inf",
    "8EiB",
    "100%",
    "0x10",
};

class Extremes : public DriverTest,
                 public ::testing::WithParamInterface<const char *> {};

TEST_P(Extremes, AreCompiledOrRefusedWithAPlace) {
  std::string file = write("extremes.yaml", spec);
  for (const char *value : values) {
    CompileOptions options;
    options.input = {file, "", {std::string(GetParam()) + "=" + value}};
    // The planner has the most to compute with.
    options.emit = Emit::Decision;
    CompileResult result = compile(options);
    SCOPED_TRACE(std::string(GetParam()) + "=" + value);
    if (result.outcome == Outcome::Ok)
      continue;
    EXPECT_EQ(result.outcome, Outcome::Error);
    ASSERT_TRUE(result.diagnostics.hasErrors());
    std::string text = result.diagnostics.str();
    EXPECT_EQ(text.find("please report"), std::string::npos) << text;
    // At the edit, or at what does not go with it.
    EXPECT_TRUE(text.find(GetParam()) != std::string::npos ||
                text.find("extremes.yaml:") != std::string::npos)
        << "the error has no place: " << text;
  }
}

using TogetherTest = DriverTest;

// Each within its limit, the product is not.
TEST_F(TogetherTest, LargeNumbersDoNotOverflow) {
  for (const char *head : {"", "head: {kind: fm, label: y}\n"})
    for (const char *memory :
         {"", "memory: {tiers: [{name: dram, kind: dram, capacity: 4GiB}]}\n"})
      for (Emit emit : {Emit::Decision, Emit::Plan}) {
        CompileOptions options;
        options.input.modelFile =
            write("large.yaml",
                  std::string("terrace: 1\nbatch: {size: 16777216}\n") + head +
                      memory +
                      "features:\n"
                      "- {name: 'f{i}', count: 64, max_ids: 2147483648,\n"
                      "   table: {rows: 1099511627776, dim: 2048,\n"
                      "           optimizer: adam}}\n");
        options.emit = emit;
        CompileResult result = compile(options);
        // A petabyte fits nowhere: where there is no bound, 64 bits are one.
        EXPECT_EQ(result.outcome, Outcome::Error) << head << memory;
        std::string text = result.diagnostics.str();
        EXPECT_EQ(text.find("please report"), std::string::npos) << text;
        EXPECT_EQ(text.find(" -"), std::string::npos) << text;
      }
}

INSTANTIATE_TEST_SUITE_P(Keys, Extremes, ::testing::ValuesIn(keys),
                         [](const auto &info) {
                           std::string name = info.param;
                           for (char &c : name)
                             c = c == '.' ? '_' : c;
                           return name;
                         });

} // namespace
