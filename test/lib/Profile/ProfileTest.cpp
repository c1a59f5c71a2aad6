//===- ProfileTest.cpp - RecD's factor, unique ids, miss ratios -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Profile/Profile.h"

#include "gtest/gtest.h"

using namespace terrace::profile;

namespace {

// The table of the RecD notes: samples per session against d.
TEST(Profile, DedupFactorFollowsTheFormula) {
  EXPECT_NEAR(dedupFactor(1.15, 0.5), 1.07, 0.005);
  EXPECT_NEAR(dedupFactor(4, 0.8), 2.50, 0.005);
  EXPECT_NEAR(dedupFactor(16.5, 0.95), 9.30, 0.005);
  EXPECT_NEAR(dedupFactor(16.5, 1), 16.5, 1e-9);
  EXPECT_EQ(dedupFactor(1, 1), 1);
  EXPECT_EQ(dedupFactor(0.3, 2), 1); // out of range: clamped
}

TEST(Profile, UniformUniqueIsBoundedByDrawsAndRows) {
  EXPECT_NEAR(uniformUnique(2048, 38), 38, 1e-6);
  EXPECT_NEAR(uniformUnique(1, 1e9), 1, 1e-6);
  EXPECT_NEAR(uniformUnique(1000, 1000), 632.3, 0.5);
  EXPECT_EQ(uniformUnique(0, 10), 0);
  EXPECT_NEAR(uniformUnique(5, 1), 1, 1e-6);
}

TEST(Profile, MissesFollowTheCurveAndStayBelowUnique) {
  MissCurve curve{{100, 0.5}, {1000, 0.1}};
  EXPECT_EQ(missesPerBatch(curve, 5000, 0, 400, 300), 300);
  EXPECT_NEAR(missesPerBatch(curve, 5000, 100, 400, 300), 200, 1e-9);
  EXPECT_NEAR(missesPerBatch(curve, 5000, 550, 400, 300), 120, 1e-9);
  EXPECT_NEAR(missesPerBatch(curve, 5000, 4000, 400, 300), 40, 1e-9);
  EXPECT_EQ(missesPerBatch(curve, 5000, 5000, 400, 300), 0);
  EXPECT_NEAR(missesPerBatch({}, 1000, 250, 400, 300), 225, 1e-9);
}

TEST(Profile, ReadsTheFile) {
  llvm::Expected<Profile> p = Profile::parse(R"({"terrace_profile": 1,
    "tables": [{"name": "stock", "batch": 2048, "ids": 2048, "unique_ids": 1048,
                "cache_rows": [64, 512], "miss_ratio": [0.9, 0.4],
                "newer_figure": 3}],
    "groups": [{"name": "basket", "samples_per_session": 20.9,
                "unique_bags": 98}]})",
                                             "p.json");
  ASSERT_TRUE(bool(p));
  ASSERT_TRUE(p->table("stock"));
  EXPECT_EQ(p->table("stock")->uniqueIds, 1048);
  EXPECT_EQ(p->table("stock")->missCurve.size(), 2u);
  EXPECT_EQ(p->group("basket")->uniqueBags, 98);
  EXPECT_EQ(p->table("other"), nullptr);
}

TEST(Profile, RefusesAFallingCurveAndWrongTypes) {
  auto errorOf = [](llvm::StringRef text) {
    llvm::Expected<Profile> p = Profile::parse(text, "p");
    return p ? std::string() : llvm::toString(p.takeError());
  };
  EXPECT_NE(errorOf(R"({"tables": []})").find("terrace_profile: 1"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"terrace_profile": 1, "tables": [{"name": "a",
    "cache_rows": [9, 9], "miss_ratio": [0.5, 0.4]}]})")
                .find("rising rows"),
            std::string::npos);
  EXPECT_EQ(errorOf(R"({"terrace_profile": 1, "tables": [{"name": "a",
    "unique_ids": "many"}]})"),
            "p: tables.a.unique_ids: expected a number from 0 to 1e18, found "
            "'many'");
}

TEST(Profile, RefusesHostileNumbersWithTheirKey) {
  auto errorOf = [](const std::string &fields) {
    llvm::Expected<Profile> p = Profile::parse(
        "terrace_profile: 1\ntables: [{name: t, " + fields + "}]\n", "p.yaml");
    return p ? std::string() : llvm::toString(p.takeError());
  };
  const char *const notCounts[] = {"-1",
                                   "1.5",
                                   "9007199254740994",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "1e300",
                                   ".nan",
                                   "nan",
                                   "inf",
                                   "-inf",
                                   "x",
                                   "[]",
                                   "true"};
  for (const char *key : {"batches", "batch", "max_ids", "max_unique_ids",
                          "distinct_ids", "cold"})
    for (const char *value : notCounts) {
      std::string error = errorOf(std::string(key) + ": " + value);
      EXPECT_NE(error.find("p.yaml: tables.t." + std::string(key) + ": "),
                std::string::npos)
          << key << ": " << value << ": " << error;
    }
  for (const char *value : notCounts) {
    EXPECT_NE(errorOf(std::string("reuse: [1, ") + value + "]"), "") << value;
    EXPECT_NE(
        errorOf(std::string("miss_ratio: [0.5], cache_rows: [") + value + "]"),
        "")
        << value;
  }
  for (const char *key : {"ids", "unique_ids", "unique_bags", "unique_bag_ids",
                          "samples_per_session", "unchanged"})
    for (const char *value : {"-0.5", "nan", "inf", "-inf", "1e19", "x", "{}"})
      EXPECT_NE(errorOf(std::string(key) + ": " + value).find(key),
                std::string::npos)
          << key << ": " << value;
  for (const char *value : {"nan", "inf", "-0.1", "1.1", "x"})
    EXPECT_NE(
        errorOf(std::string("cache_rows: [8], miss_ratio: [") + value + "]"),
        "")
        << value;
  EXPECT_NE(errorOf("unchanged: 1.5"), "");
  EXPECT_NE(errorOf("reuse: 3"), "");
  std::string deep(1000, '[');
  EXPECT_NE(errorOf("newer: " + deep + std::string(1000, ']')).find("nested"),
            std::string::npos);
  EXPECT_EQ(errorOf("max_ids: 9007199254740992, batch: 64.0, unchanged: 1"),
            "");
}

} // namespace
