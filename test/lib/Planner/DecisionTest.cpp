//===- DecisionTest.cpp - Decisions as text -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestProblem.h"

#include "Planner/Decision.h"

#include "gtest/gtest.h"

using namespace terrace::planner;

namespace {

TEST(Decision, ReadsBackWhatItPrints) {
  Problem p = makeProblem({{1000, 16}, {4000000, 16}}, 64, 64 << 20);
  PlanResult r = plan(p);
  const Plan &plan = std::get<Plan>(r);
  std::string text = printDecision(p, plan.decision);
  llvm::Expected<Decision> back = parseDecision(p, text, "d.yaml");
  ASSERT_TRUE(bool(back)) << llvm::toString(back.takeError());
  EXPECT_EQ(printDecision(p, *back), text);
  PlanResult again = planFrom(p, *back);
  ASSERT_TRUE(std::get_if<Plan>(&again));
  EXPECT_EQ(std::get<Plan>(again).footprint.charged(p, 0).total(),
            plan.footprint.charged(p, 0).total());
}

TEST(Decision, NamesWhatIsWrong) {
  Problem p = makeProblem({{1000, 16}, {2000, 16}}, 64, 64 << 20);
  auto errorOf = [&](std::string tables, std::string head = "") {
    llvm::Expected<Decision> d = parseDecision(
        p, "{terrace_decision: 1, " + head + "tables: [" + tables + "]}", "d");
    return d ? std::string() : llvm::toString(d.takeError());
  };
  std::string t1 = ", {name: t1, home: dram}";
  EXPECT_EQ(errorOf("{name: t0, home: dram}" + t1), "");
  EXPECT_EQ(errorOf("{name: t0, home: dram}"), "d: table 't1' is missing");
  EXPECT_EQ(errorOf("{name: t9, home: dram}"),
            "d: table 't9' is not a table of the model");
  EXPECT_EQ(errorOf("{name: t0, home: tape}" + t1),
            "d: table 't0': there is no tier 'tape'");
  EXPECT_EQ(errorOf("{name: t1, home: dram}" + t1),
            "d: table 't1' is given twice");
  EXPECT_EQ(errorOf("{name: t0}" + t1), "d: table 't0': home is missing");
  EXPECT_EQ(errorOf("{name: t0, home: dram}" + t1, "lookahead: 12, "),
            "d: lookahead must lie between 0 and 8");
  EXPECT_EQ(errorOf("{name: t0, home: dram}" + t1, "model: other, "),
            "d: the decision belongs to model 'other', not to 'test'");
}

TEST(Decision, GivenHomesAreChecked) {
  Problem p = makeProblem({{1000, 16}}, 64, 64 << 20);
  Decision d;
  d.tables = {{0, 1, {}}};
  PlanResult r = planFrom(p, d);
  ASSERT_TRUE(std::get_if<PlanError>(&r));
  EXPECT_NE(std::get<PlanError>(r).message.find("needs a cache"),
            std::string::npos);
  d.tables = {{0, 1, {{0, 1000}}}};
  p.tiers[0].capacity = 4096;
  r = planFrom(p, d);
  ASSERT_TRUE(std::get_if<PlanError>(&r));
  EXPECT_EQ(std::get<PlanError>(r).tier, 0);
}

} // namespace
