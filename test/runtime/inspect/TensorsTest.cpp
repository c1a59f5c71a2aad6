//===- TensorsTest.cpp - npy and safetensors ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes and values read back exactly, pieces come in any order, files appear
// whole or not at all.
//
//===----------------------------------------------------------------------===//
#include "runtime/inspect/Tensors.h"
#include "test/runtime/exec/ToyModel.h"
#include "test/runtime/inspect/ArrayFiles.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sys/resource.h>

using namespace trc::inspect;
namespace fs = std::filesystem;

namespace {

std::vector<TensorInfo> someTensors() {
  return {{"a", false, {3, 2}},
          {"a.sum", false, {3}},
          {"a.ids", true, {3}},
          {"empty", false, {0, 4}},
          {"empty.ids", true, {0}}};
}

const std::vector<float> values = {1.5f, -0.0f, 3e-41f, 4, 5, 6};
const std::vector<float> sums = {7, 8, 9};
const std::vector<int64_t> ids = {0, -1, int64_t(1) << 40};

void fill(TensorWriter &w) {
  // Back to front: pieces are positioned.
  ASSERT_TRUE(w.write(0, 16, values.data() + 4, 8).ok());
  ASSERT_TRUE(w.write(1, 0, sums.data(), 12).ok());
  ASSERT_TRUE(w.write(0, 0, values.data(), 16).ok());
  ASSERT_TRUE(w.write(2, 0, ids.data(), 24).ok());
}

void check(const std::map<std::string, arrays::Array> &all, bool npy) {
  const arrays::Array &a = all.at("a");
  EXPECT_EQ(npy ? "<f4" : "F32", a.dtype);
  EXPECT_EQ((std::vector<int64_t>{3, 2}), a.shape);
  EXPECT_EQ(0, std::memcmp(values.data(), a.bytes.data(), 24));
  EXPECT_EQ(sums, all.at("a.sum").as<float>());
  EXPECT_EQ(std::vector<int64_t>{3}, all.at("a.sum").shape);
  EXPECT_EQ(npy ? "<i8" : "I64", all.at("a.ids").dtype);
  EXPECT_EQ(ids, all.at("a.ids").as<int64_t>());
  EXPECT_EQ((std::vector<int64_t>{0, 4}), all.at("empty").shape);
}

/// Files in a folder.
std::vector<std::string> filesIn(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &e : fs::recursive_directory_iterator(folder))
    names.push_back(e.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace

TEST(TensorsTest, NpyReadsBack) {
  toy::Folder folder;
  auto w = openNpy(folder / "x/y", someTensors(), {{"step", "7"}});
  ASSERT_TRUE(w.ok()) << w.takeStatus().message();
  fill(**w);
  ASSERT_TRUE((*w)->done(0).ok());
  EXPECT_FALSE(fs::exists(folder / "x/y/a.npy")) << "in place too early";
  ASSERT_TRUE((*w)->finish().ok());
  uint64_t bytes = 0;
  std::map<std::string, arrays::Array> all;
  for (const TensorInfo &t : someTensors())
    all[t.name] = arrays::readNpy(folder / ("x/y/" + t.name + ".npy"));
  for (const auto &e : fs::directory_iterator(folder / "x/y"))
    bytes += e.file_size();
  check(all, true);
  EXPECT_EQ(bytes, (*w)->totalBytes());
  EXPECT_EQ("7", nlohmann::json::parse(
                     arrays::slurp(folder / "x/y/export.json"))["step"]);
}

TEST(TensorsTest, SafetensorsReadsBack) {
  toy::Folder folder;
  std::string path = folder / "t.safetensors";
  auto w = openSafetensors(path, someTensors(), {{"step", "7"}});
  ASSERT_TRUE(w.ok()) << w.takeStatus().message();
  fill(**w);
  EXPECT_FALSE(fs::exists(path)) << "in place too early";
  ASSERT_TRUE((*w)->finish().ok());
  arrays::Safetensors read = arrays::readSafetensors(path);
  check(read.arrays, false);
  EXPECT_EQ("7", read.metadata["step"]);
  EXPECT_EQ(fs::file_size(path), (*w)->totalBytes());
}

TEST(TensorsTest, UnfinishedLeavesNothingAndKeepsWhatWasThere) {
  toy::Folder folder;
  std::ofstream(folder / "t.safetensors") << "old";
  {
    auto w = openSafetensors(folder / "t.safetensors", someTensors(), {});
    ASSERT_TRUE(w.ok());
    fill(**w);
    auto n = openNpy(folder / "n", someTensors(), {});
    ASSERT_TRUE(n.ok());
    fill(**n);
  }
  EXPECT_EQ("old", arrays::slurp(folder / "t.safetensors"));
  EXPECT_EQ(std::vector<std::string>{"t.safetensors"}, filesIn(folder.path()));
}

TEST(TensorsTest, NoRoomIsAStatusAndLeavesNothing) {
  toy::Folder folder;
  struct rlimit before;
  ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &before));
  struct rlimit small = {64 << 10, before.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &small));
  std::vector<TensorInfo> large = {{"a", false, {1 << 20, 4}}};
  auto s = openSafetensors(folder / "t.safetensors", large, {});
  auto n = openNpy(folder / "n", large, {});
  trc::Status wrote = n.ok() ? (*n)->write(0, 0, "1234", 4) : n.takeStatus();
  if (n.ok())
    n = trc::Status(TRC_INTERNAL, "closed");
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(s.ok());
  trc::Status why = s.takeStatus();
  EXPECT_EQ(TRC_NO_SPACE, why.code()) << why.message();
  EXPECT_NE(std::string::npos, why.message().find("t.safetensors"));
  EXPECT_EQ(TRC_NO_SPACE, wrote.code()) << wrote.message();
  EXPECT_TRUE(filesIn(folder.path()).empty());
}

TEST(TensorsTest, RefusesPlacesAndNamesThatCannotBe) {
  toy::Folder folder;
  auto refused = [](auto result) {
    return result.ok() ? TRC_OK : result.takeStatus().code();
  };
  EXPECT_EQ(TRC_BAD_ARGUMENT,
            refused(openSafetensors(folder.path(), someTensors(), {})));
  std::vector<TensorInfo> twice = {{"a", false, {1}}, {"a", false, {1}}};
  EXPECT_EQ(TRC_BAD_ARGUMENT, refused(openNpy(folder / "n", twice, {})));
  fs::create_directories(folder / "state/checkpoints");
  EXPECT_EQ(TRC_BAD_ARGUMENT,
            refused(openNpy(folder / "state", someTensors(), {})));
  std::ofstream(folder / "file") << "x";
  EXPECT_EQ(TRC_IO, refused(openNpy(folder / "file", someTensors(), {})));
}
