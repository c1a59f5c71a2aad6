//===- LibHeaderTest.cpp - The header beside a compiled library -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/LibHeader.h"

#include <gtest/gtest.h>

using namespace terrace;

namespace {

std::string headerOf(const char *text) {
  spec::Diagnostics diagnostics;
  auto spec = spec::parseSpecText(text, "m.yaml", diagnostics);
  EXPECT_TRUE(spec) << diagnostics.str();
  return spec ? driver::libraryHeader(*spec, "m.h") : "";
}

TEST(LibHeader, NamesFollowTheAbisOrder) {
  std::string text = headerOf(R"(terrace: 1
model: shop
batch: {size: 7}
features:
- {name: a, table: {rows: 1, dim: 4}}
- {name: b, table: {rows: 1, dim: 6}, weights: w, max_ids: 3}
)");
  size_t a = text.find("SHOP_FEATURE_A, "), b = text.find("SHOP_FEATURE_B, ");
  EXPECT_NE(a, std::string::npos);
  EXPECT_LT(a, b);
  EXPECT_LT(b, text.find("SHOP_FEATURES\n"));
  EXPECT_NE(text.find("#define SHOP_BATCH 7 "), std::string::npos);
  EXPECT_NE(text.find("{ 4, 6 }"), std::string::npos);
  EXPECT_NE(text.find("at most 3 ids, weighted"), std::string::npos);
}

// Two names that spell the same identifier stay apart; a digit does not begin
// an identifier.
TEST(LibHeader, IdentifiersAreUniqueAndLegal) {
  std::string text = headerOf(R"(terrace: 1
model: 9to5
features:
- {name: a-b, table: {rows: 1, dim: 4}}
- {name: a.b, table: {rows: 1, dim: 4}}
)");
  EXPECT_NE(text.find("M9TO5_FEATURE_A_B,"), std::string::npos) << text;
  EXPECT_NE(text.find("M9TO5_FEATURE_A_B_2,"), std::string::npos) << text;
}

} // namespace
