//===- DiffTest.cpp - What changes between two specs or decisions ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Explain.h"
#include "DriverTesting.h"

using namespace terrace;
using namespace terrace::driver;

namespace {

using DiffTest = DriverTest;

TEST_F(DiffTest, EqualSpecsHaveNoChanges) {
  ExplainResult result = diff(options(), options());
  ASSERT_EQ(result.outcome, Outcome::Ok) << result.diagnostics.str();
  EXPECT_NE(result.text.find("the specs are equal"), std::string::npos);
  EXPECT_TRUE(result.json.getAsObject()->getArray("spec")->empty());
  EXPECT_TRUE(result.json.getAsObject()->getArray("tables")->empty());
}

TEST_F(DiffTest, KeysItemsAndPlaces) {
  ExplainResult result =
      diff(options(), options({"batch.size=64", "plan.place.item.home=dram",
                               "plan.place.item.cache=", "dense="}));
  ASSERT_EQ(result.outcome, Outcome::Ok) << result.diagnostics.str();
  EXPECT_NE(result.text.find("~ batch.size: 32 -> 64"), std::string::npos)
      << result.text;
  EXPECT_NE(result.text.find("~ plan.place.item.home: disk -> dram"),
            std::string::npos)
      << result.text;
  EXPECT_NE(result.text.find("- plan.place.item.cache.dram: 4KiB"),
            std::string::npos)
      << result.text;
  EXPECT_NE(result.text.find("table item: disk behind "), std::string::npos)
      << result.text;
  const llvm::json::Array *tables =
      result.json.getAsObject()->getArray("tables");
  ASSERT_TRUE(tables);
  bool found = false;
  for (const llvm::json::Value &table : *tables)
    if (table.getAsObject()->getString("table") == "item") {
      found = true;
      EXPECT_EQ(table.getAsObject()->getString("after"), "dram");
      EXPECT_EQ(table.getAsObject()->getNumber("bytes_per_step_after"), 0.0);
    }
  EXPECT_TRUE(found);
}

TEST_F(DiffTest, ErrorsOfASideAreReported) {
  ExplainResult result = diff(options(), options({"batch.size=zero"}));
  EXPECT_EQ(result.outcome, Outcome::Error);
  EXPECT_NE(result.diagnostics.str().find("--set batch.size=zero: error"),
            std::string::npos);
  CompileOptions missing;
  missing.input.modelFile = path("missing.yaml");
  EXPECT_EQ(diff(options(), missing).outcome, Outcome::Environment);
}

TEST_F(DiffTest, DecisionsByTable) {
  const char *before = "terrace_decision: 1\nlookahead: 2\ntables:\n- {name: "
                       "a, home: dram}\n- {name: b, home: disk, cache: {dram: "
                       "10}}\n";
  const char *after = "terrace_decision: 1\nlookahead: 2\ntables:\n- {name: "
                      "a, home: disk}\n- {name: b, home: disk, cache: {dram: "
                      "12}}\n";
  CompileOptions a, b;
  a.input.modelFile = write("a.yaml", before);
  b.input.modelFile = write("b.yaml", after);
  ExplainResult result = diff(a, b);
  ASSERT_EQ(result.outcome, Outcome::Ok) << result.diagnostics.str();
  EXPECT_EQ(result.text, "~ tables.a.home: dram -> disk\n"
                         "~ tables.b.cache.dram: 10 -> 12\n");
}

} // namespace
