//===- MachineTest.cpp - Machine files and their figures ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine/Machine.h"
#include "Machine/YamlToJson.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace terrace;
using namespace terrace::machine;

namespace {

std::string errorOf(llvm::StringRef text) {
  llvm::Expected<Machine> m = Machine::parse(text, "m.yaml");
  if (m)
    return "";
  return llvm::toString(m.takeError());
}

TEST(Machine, DefaultSaysThatNothingWasMeasured) {
  Machine m = Machine::conservative();
  EXPECT_FALSE(m.isMeasured());
  EXPECT_EQ(m.origin(), "conservative defaults, not measured");
  EXPECT_GT(m.processBytes(), 0);
}

TEST(Machine, FileOverridesSingleFigures) {
  llvm::Expected<Machine> m = Machine::parse(R"(
terrace_machine: 1
name: box
cpu: {level: x86-64-v4, cores: 8, gather_gbps: 12.5}
tiers:
  nvme: {read_gbps: 6, read_iops: {1: 10000, 64: 640000}}
queue_depth: 64
)",
                                             "m.yaml");
  ASSERT_TRUE(bool(m));
  EXPECT_TRUE(m->isMeasured());
  EXPECT_EQ(m->cpu().level, "x86-64-v4");
  EXPECT_EQ(m->cpu().cores, 8);
  EXPECT_EQ(m->cpu().gatherGBps, 12.5);
  EXPECT_EQ(m->tier(TierKind::NVMe).readGBps, 6);
  // What the file does not say stays as shipped.
  EXPECT_EQ(m->tier(TierKind::NVMe).writeGBps,
            Machine::conservative().tier(TierKind::NVMe).writeGBps);
}

TEST(Machine, IopsAreLinearBetweenMeasuredDepths) {
  llvm::Expected<Machine> m = Machine::parse(
      "{terrace_machine: 1, tiers: {nvme: {read_iops: {2: 20000, 10: 60000}}}}",
      "m");
  ASSERT_TRUE(bool(m));
  EXPECT_DOUBLE_EQ(m->iops(TierKind::NVMe, false, 1), 10000);
  EXPECT_DOUBLE_EQ(m->iops(TierKind::NVMe, false, 6), 40000);
  EXPECT_DOUBLE_EQ(m->iops(TierKind::NVMe, false, 100), 60000);
  EXPECT_TRUE(std::isinf(m->iops(TierKind::DRAM, false, 1)));
}

TEST(Machine, SmallTransfersPayWholeGranules) {
  llvm::Expected<Machine> m =
      Machine::parse("{terrace_machine: 1, queue_depth: 1, tiers: {nvme: "
                     "{read_gbps: 1, granule: 4096, latency_us: 100, "
                     "read_iops: {1: 1000000}}}}",
                     "m");
  ASSERT_TRUE(bool(m));
  // 10,000 rows of 80 bytes move 10,000 blocks: 41 ms at 1 GB/s, and the ops
  // themselves would take 10 ms.
  EXPECT_NEAR(m->transferSeconds(TierKind::NVMe, false, 10000, 80),
              100e-6 + 40.96e-3, 1e-9);
  EXPECT_EQ(m->transferSeconds(TierKind::NVMe, false, 0, 80), 0);
}

TEST(Machine, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(errorOf("{}").find("expected format 1"), std::string::npos);
  EXPECT_EQ(errorOf("{terrace_machine: 1, cpu: {coers: 2}}"),
            "m.yaml: cpu.coers: unknown key");
  EXPECT_EQ(errorOf("{terrace_machine: 1, tiers: {ssd: {}}}"),
            "m.yaml: tiers.ssd: unknown kind; there are hbm, dram, pmem, nvme");
  EXPECT_EQ(
      errorOf("{terrace_machine: 1, tiers: {nvme: {read_gbps: 0}}}"),
      "m.yaml: tiers.nvme.read_gbps: expected a number from 1e-9 to 1e15");
  EXPECT_NE(errorOf("terrace_machine: [1").find("m.yaml:"), std::string::npos);
}

TEST(Machine, RefusesHostileNumbersWithTheirKey) {
  for (const char *value : {"-1", "0", "nan", "inf", "-inf", "1e-300", "1e300",
                            "18446744073709551616", "x", "[]"}) {
    for (const char *key : {"queue_depth", "process_bytes", "exchange_gbps"})
      EXPECT_EQ(errorOf("{terrace_machine: 1, " + std::string(key) + ": " +
                        value + "}")
                    .find("m.yaml: " + std::string(key) + ": expected"),
                0u)
          << key << ": " << value;
    for (const char *key : {"latency_us", "granule", "write_gbps"})
      EXPECT_NE(errorOf("{terrace_machine: 1, tiers: {nvme: {" +
                        std::string(key) + ": " + value + "}}}"),
                "")
          << key << ": " << value;
    EXPECT_NE(errorOf("{terrace_machine: 1, tiers: {nvme: {read_iops: {8: " +
                      std::string(value) + "}}}}"),
              "")
        << value;
  }
}

TEST(YamlToJson, RefusesDeepNesting) {
  std::string deep = std::string(5000, '[') + std::string(5000, ']');
  llvm::Expected<llvm::json::Value> v = yamlToJson(deep, "t");
  ASSERT_FALSE(bool(v));
  EXPECT_NE(llvm::toString(v.takeError()).find("nested"), std::string::npos);
}

TEST(YamlToJson, TypesPlainScalarsAndKeepsQuotedText) {
  llvm::Expected<llvm::json::Value> v = yamlToJson(
      "{a: 1, b: 2.5, c: true, d: null, e: '7', f: x y, g: [1, {h: -3}]}", "t");
  ASSERT_TRUE(bool(v));
  llvm::json::Object want{
      {"a", 1},
      {"b", 2.5},
      {"c", true},
      {"d", nullptr},
      {"e", "7"},
      {"f", "x y"},
      {"g", llvm::json::Array{1, llvm::json::Object{{"h", -3}}}}};
  EXPECT_EQ(*v, llvm::json::Value(std::move(want)));
}

TEST(YamlToJson, NamesThePlaceOfATwinKeyAndOfAnAlias) {
  llvm::Expected<llvm::json::Value> twice = yamlToJson("a: 1\na: 2\n", "t");
  ASSERT_FALSE(bool(twice));
  EXPECT_EQ(llvm::toString(twice.takeError()), "t:2:1: 'a' is given twice");
  llvm::Expected<llvm::json::Value> alias = yamlToJson("a: &x 1\nb: *x\n", "t");
  ASSERT_FALSE(bool(alias));
  EXPECT_EQ(llvm::toString(alias.takeError()),
            "t:3:1: anchors and aliases are not supported");
}

} // namespace
