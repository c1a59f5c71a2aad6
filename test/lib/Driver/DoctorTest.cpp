//===- DoctorTest.cpp - Findings about this machine -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver/Doctor.h"

#include <gtest/gtest.h>

using namespace terrace::driver;

namespace {

const Finding *find(const std::vector<Finding> &findings, const char *name) {
  for (const Finding &f : findings)
    if (f.name == name)
      return &f;
  return nullptr;
}

TEST(Doctor, SaysWhichFolderCannotBeWritten) {
  std::vector<Finding> findings = examine("/proc");
  const Finding *folder = find(findings, "folder");
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder->level, Finding::Level::Fail);
  EXPECT_NE(folder->detail.find("/proc"), std::string::npos);
  EXPECT_TRUE(anyFailed(findings));
  EXPECT_FALSE(find(findings, "io_uring"));
}

TEST(Doctor, DoesRealIo) {
  std::vector<Finding> findings = examine(::testing::TempDir());
  const Finding *uring = find(findings, "io_uring");
  const Finding *direct = find(findings, "direct I/O");
  ASSERT_TRUE(uring);
  ASSERT_TRUE(direct);
  // Where the kernel forbids it, it is a warning: threads do the work.
  EXPECT_NE(uring->level, Finding::Level::Fail) << uring->detail;
  EXPECT_NE(direct->level, Finding::Level::Fail) << direct->detail;
}

TEST(Doctor, JsonAndTextSayTheSame) {
  std::vector<Finding> findings = {
      {"a", Finding::Level::Ok, "fine", ""},
      {"b", Finding::Level::Warn, "slow", "do this"}};
  EXPECT_FALSE(anyFailed(findings));
  std::string text;
  llvm::raw_string_ostream os(text);
  printFindings(findings, os);
  EXPECT_NE(text.find("warn  b"), std::string::npos) << text;
  EXPECT_NE(text.find("do this"), std::string::npos) << text;
  std::string json;
  llvm::raw_string_ostream(json) << findingsJson(findings);
  EXPECT_EQ(json, R"([{"advice":"","check":"a","detail":"fine","level":"ok"},)"
                  R"({"advice":"do this","check":"b","detail":"slow",)"
                  R"("level":"warn"}])");
}

} // namespace
