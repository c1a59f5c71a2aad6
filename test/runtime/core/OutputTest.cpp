//===- OutputTest.cpp - Files that a user asked for -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An output is no input, whole or not there, and gone when the process is.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Output.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;
namespace fs = std::filesystem;

namespace {

class OutputTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder = fs::temp_directory_path() /
             ("terrace-output-" + std::to_string(::getpid()));
    fs::remove_all(folder);
    fs::create_directories(folder / "sub");
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string at(const std::string &name) { return (folder / name).string(); }
  std::string make(const std::string &name, const std::string &text = "old") {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
    return at(name);
  }
  std::string read(const std::string &name) {
    std::ostringstream text;
    text << std::ifstream(folder / name).rdbuf();
    return text.str();
  }
  size_t files() {
    size_t n = 0;
    for (const auto &entry : fs::directory_iterator(folder))
      n += entry.is_regular_file();
    return n;
  }
  fs::path folder;
};

TEST_F(OutputTest, AnInputUnderAnyNameIsRefused) {
  std::string input = make("in");
  fs::create_symlink("in", folder / "soft");
  fs::create_hard_link(input, folder / "hard");
  fs::create_directory_symlink("sub", folder / "linked");
  for (const char *name : {"in", "soft", "hard", "sub/../in", "linked/../in"})
    EXPECT_EQ(refuseInput(at(name), {at("other"), input}).code(),
              TRC_BAD_ARGUMENT)
        << name;
  Status s = refuseInput(at("hard"), {input});
  EXPECT_NE(s.message().find(at("hard")), std::string::npos) << s.message();
  EXPECT_NE(s.message().find("'" + input + "'"), std::string::npos);
}

TEST_F(OutputTest, WhatIsNoInputPasses) {
  std::string input = make("in");
  make("copy");
  for (const std::string &name :
       {at("copy"), at("new"), std::string("-"), std::string()})
    EXPECT_TRUE(refuseInput(name, {input, "", "-"}).ok()) << name;
  // Reading and writing the null device is no conflict.
  EXPECT_TRUE(refuseInput("/dev/null", {"/dev/null"}).ok());
}

TEST_F(OutputTest, FilesOfAStateAreRefused) {
  std::string store = make("elsewhere/big.store");
  make("s/manifest.json", R"({"groups": [{"extents": [{"path": ")" + store +
                              R"("}]}], "crc32c": 1})");
  std::string rows = make("s/rows.store");
  fs::create_directory_symlink("s", folder / "link");
  fs::create_hard_link(rows, folder / "hard");
  fs::create_symlink("s/rows.store", folder / "soft");
  for (const char *name :
       {"s/rows.store", "s/new", "s/deep/new", "link/new", "hard", "soft", "s",
        "elsewhere/big.store", "elsewhere/../s/new"})
    EXPECT_EQ(refuseStateFile(at(name), at("s")).code(), TRC_BAD_ARGUMENT)
        << name;
  for (const char *name : {"new", "elsewhere/new", "s.tsv", "sub/s/new"})
    EXPECT_TRUE(refuseStateFile(at(name), at("s")).ok()) << name;
  EXPECT_TRUE(refuseStateFile(at("none/new"), at("none")).ok());
}

TEST_F(OutputTest, AFileAppearsWholeWithItsMode) {
  mode_t before = ::umask(0027);
  EXPECT_TRUE(writeOutput(at("new"), "text", 0777).ok());
  ::umask(before);
  EXPECT_EQ(read("new"), "text");
  struct stat st;
  ASSERT_EQ(::stat(at("new").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0750u);
  EXPECT_TRUE(writeOutput(at("new"), "").ok());
  EXPECT_EQ(read("new"), "");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputTest, LinksAndDevicesStay) {
  make("target");
  fs::create_symlink("target", folder / "link");
  EXPECT_TRUE(writeOutput(at("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read("target"), "new");
  EXPECT_TRUE(writeOutput("/dev/null", "new").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  Status full = writeOutput("/dev/full", "new");
  EXPECT_FALSE(full.ok());
  EXPECT_NE(full.message().find("/dev/full"), std::string::npos);
  EXPECT_FALSE(writeOutput(at("none/new"), "new").ok());
}

TEST_F(OutputTest, WhatCannotBeWrittenLeavesTheOldFile) {
  make("old", "as it was");
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit was, low;
  ::getrlimit(RLIMIT_FSIZE, &was);
  low = {4096, was.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &low);
  Status s = writeOutput(at("old"), std::string(100000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &was);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(read("old"), "as it was");
  EXPECT_EQ(files(), 1u);
}

TEST_F(OutputTest, UnfinishedFilesGoAway) {
  Unfinished finished(at("finished"));
  make("finished");
  finished.keep();
  {
    Unfinished dropped(at("dropped"));
    make("dropped");
    Unfinished moved = std::move(dropped);
    EXPECT_TRUE(fs::exists(at("dropped")));
  }
  EXPECT_FALSE(fs::exists(at("dropped")));
  std::vector<Unfinished> many;
  for (int i = 0; i < 20; ++i) {
    std::string name = "part" + std::to_string(i);
    many.emplace_back(at(name));
    make(name);
  }
  removeUnfinished(); // as a signal's handler does
  EXPECT_EQ(files(), 1u);
  make("part3"); // somebody else's by now
  many.clear();
  EXPECT_TRUE(fs::exists(at("part3")));
}

} // namespace
