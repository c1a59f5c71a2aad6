//===- MachineTest.cpp - Machine files and their figures ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine/Machine.h"
#include "Machine/YamlToJson.h"

#include "llvm/Support/FormatVariadic.h"
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

Surface makeSurface(std::vector<double> x, std::vector<double> y,
                    std::vector<double> values) {
  Surface s;
  s.x = std::move(x);
  s.y = std::move(y);
  s.values = std::move(values);
  return s;
}

TEST(Surface, InterpolatesInLogarithmsAndStaysLevelBeyondTheGrid) {
  Surface s = makeSurface({64, 1024}, {1e6, 1e8}, {1, 5, 3, 9});
  EXPECT_DOUBLE_EQ(s.at(64, 1e6), 1);
  EXPECT_DOUBLE_EQ(s.at(1024, 1e8), 9);
  EXPECT_DOUBLE_EQ(s.at(256, 1e6), 2); // half way between 64 and 1024
  EXPECT_DOUBLE_EQ(s.at(64, 1e7), 3);
  EXPECT_DOUBLE_EQ(s.at(256, 1e7), 4.5);
  EXPECT_DOUBLE_EQ(s.at(1, 1), 1);
  EXPECT_DOUBLE_EQ(s.at(1e6, 1e12), 9);
  EXPECT_DOUBLE_EQ(s.at(0, 0), 1);
  EXPECT_DOUBLE_EQ(Surface().at(1, 1), 0);
}

/// A calibration with every figure set, each to another value.
Machine everyFigure() {
  CpuModel cpu;
  cpu.level = "x86-64-v4";
  cpu.cores = 3;
  double next = 1;
  for (double *figure :
       {&cpu.ingestNsPerId, &cpu.probeNsPerRow, &cpu.dedupNsPerId,
        &cpu.copyGBps, &cpu.ioNsPerOp, &cpu.flopsG, &cpu.ingestNsPerBag,
        &cpu.probeNsPerMiss, &cpu.copyNsPerRow, &cpu.bagNs, &cpu.bagGBps,
        &cpu.handoffGBps, &cpu.stepUs})
    *figure = next += 0.25;
  cpu.unique = makeSurface({1000, 100000}, {0.1, 1}, {1, 2, 3, 4});
  cpu.gather = makeSurface({64, 1024}, {1e6, 1e8}, {5, 6, 70, 80});
  cpu.gradient = makeSurface({64, 1024}, {1e6, 1e8}, {9, 10, 11, 12});
  cpu.update["sgd"] = makeSurface({64}, {1e6}, {13});
  cpu.update["adam"] = makeSurface({192, 1536}, {1e6}, {14, 15});
  TierModel dram, disk;
  dram.readGBps = 11;
  dram.writeGBps = 7;
  dram.latencyUs = 0.12;
  disk.latencyUs = 90;
  disk.granule = 512;
  disk.reads = makeSurface({1, 128}, {512, 16384}, {9000, 8000, 2e5, 1e5});
  disk.writes = makeSurface({1, 128}, {4096}, {7000, 90000});
  return Machine::calibrated(
      cpu, {{TierKind::DRAM, dram}, {TierKind::NVMe, disk}},
      {"2026-11-30T12:00:00Z", "terrace 0.1.0 calibrate", "a CPU, 3 CPUs"});
}

std::string textOf(const Machine &m) {
  return llvm::formatv("{0:2}", m.toJson()).str();
}

TEST(MachineFile, WhatWasWrittenIsRead) {
  Machine m = everyFigure();
  std::string text = textOf(m);
  llvm::Expected<Machine> read = Machine::parse(text, "m.json");
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(textOf(*read), text);
  EXPECT_EQ(read->origin(),
            "m.json, measured 2026-11-30T12:00:00Z on a CPU, 3 CPUs");
  EXPECT_EQ(read->cpu().update.at("adam").at(1536, 1), 15);
  // Only what was measured is there.
  EXPECT_EQ(text.find("pmem"), std::string::npos);
  EXPECT_EQ(text.find("exchange_gbps"), std::string::npos);
  // What passes and remarks know is the same on both sides.
  EXPECT_EQ(read->cpu().gatherGBps, m.cpu().gatherGBps);
  EXPECT_DOUBLE_EQ(m.cpu().gatherGBps, (1024 - 64) / (80.0 - 6.0));
  EXPECT_DOUBLE_EQ(m.tier(TierKind::NVMe).readGBps, 1e5 * 16384 / 1e9);
}

TEST(MachineFile, DeviceOperationsComeByDepthAndSize) {
  Machine m = everyFigure();
  EXPECT_DOUBLE_EQ(m.iops(TierKind::NVMe, false, 128), 2e5);
  // A thousand rows fill the queue; one alone does not.
  EXPECT_NEAR(m.transferSeconds(TierKind::NVMe, false, 1000, 100),
              90e-6 + 1000 / 2e5, 1e-12);
  EXPECT_NEAR(m.transferSeconds(TierKind::NVMe, false, 1, 100),
              90e-6 + 1 / 9000.0, 1e-12);
  EXPECT_NEAR(m.transferSeconds(TierKind::NVMe, false, 1000, 16384),
              90e-6 + 1000 / 1e5, 1e-12);
}

TEST(MachineFile, DamageIsNamed) {
  auto with = [](const std::string &cpu) {
    return errorOf("{terrace_machine: 1, cpu: {" + cpu + "}}");
  };
  EXPECT_EQ(errorOf("{terrace_machine: 7}"),
            "m.yaml: terrace_machine: expected format 1, found 7; terrace "
            "calibrate measures this machine anew");
  EXPECT_EQ(with("gather: 3"),
            "m.yaml: cpu.gather: expected a mapping of row_bytes, "
            "footprint_bytes and ns_per_row");
  EXPECT_EQ(with("gather: {row_bytes: [64, 64], footprint_bytes: [1], "
                 "ns_per_row: [[1], [1]]}"),
            "m.yaml: cpu.gather.row_bytes[1]: the sizes of a grid rise");
  EXPECT_EQ(with("gather: {row_bytes: [64], footprint_bytes: [1, 2], "
                 "ns_per_row: [[1]]}"),
            "m.yaml: cpu.gather.ns_per_row[0]: 1 numbers for 2 of "
            "footprint_bytes");
  EXPECT_EQ(with("gather: {row_bytes: [64, 128], footprint_bytes: [1], "
                 "ns_per_row: [[1]]}"),
            "m.yaml: cpu.gather.ns_per_row: expected a list of 2 lists, one "
            "for each of row_bytes");
  EXPECT_EQ(with("gather: {row_bytes: [64], footprint_bytes: [1], "
                 "ns_per_row: [[-1]]}"),
            "m.yaml: cpu.gather.ns_per_row[0][0]: expected a number from 1e-9 "
            "to 1e15");
  EXPECT_EQ(with("gather: {row_bytes: [], footprint_bytes: [1], ns_per_row: "
                 "[]}"),
            "m.yaml: cpu.gather.row_bytes: expected a list of numbers");
  EXPECT_EQ(with("gather: {rows: [1]}"), "m.yaml: cpu.gather.rows: unknown "
                                         "key");
  EXPECT_EQ(with("update: {adamw: {}}"),
            "m.yaml: cpu.update.adamw: unknown optimizer");
  EXPECT_EQ(with("gather_gbps: 4, gather: {row_bytes: [64], footprint_bytes: "
                 "[1], ns_per_row: [[1]]}"),
            "m.yaml: cpu.gather_gbps: is not used beside cpu.gather; leave "
            "one out");
  EXPECT_EQ(errorOf("{terrace_machine: 1, tiers: {nvme: {read_gbps: 1, read: "
                    "{depth: [1], bytes: [4096], iops: [[1]]}}}}"),
            "m.yaml: tiers.nvme.read_gbps: is not used beside read; leave one "
            "out");
  EXPECT_EQ(errorOf("{terrace_machine: 1, measured: {when: now}}"),
            "m.yaml: measured.when: unknown key");
  EXPECT_EQ(errorOf("{terrace_machine: 1, measured: {at: 3}}"),
            "m.yaml: measured.at: expected a text");
}

TEST(MachineFile, EveryCutOfAFileIsAnError) {
  std::string text = textOf(everyFigure());
  for (size_t length = 0; length + 1 < text.size(); ++length)
    EXPECT_NE(errorOf(text.substr(0, length)), "") << length;
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
