//===- CrashFolderTest.cpp - A folder forgets as it says ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As for the device: each outcome that a power loss may have must occur over
// the seeds. Then the protocols of FileUtil and StateDir are swept, every
// operation and several seeds each, and must hold.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/io/CrashFolder.h"
#include "runtime/checkpoint/FileUtil.h"
#include "runtime/checkpoint/StateDir.h"
#include "runtime/store/Crc32c.h"
#include "test/runtime/io/CrashDevice.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <unistd.h>

using namespace trc;
namespace fs = std::filesystem;

namespace {

class CrashFolderTest : public testing::Test {
protected:
  void SetUp() override {
    // In memory where there is a folder for that: these are thousands of small
    // files, and nothing here asks the disk to keep them.
    fs::path parent = "/dev/shm";
    if (::access(parent.c_str(), W_OK | X_OK) != 0)
      parent = fs::temp_directory_path();
    base = parent / ("terrace-crash-" + std::to_string(getpid()));
    fs::remove_all(base);
    root = base / "now";
    after = base / "after";
    fs::create_directories(root);
  }
  void TearDown() override { fs::remove_all(base); }

  /// Calls `look` for the folder after a crash with each seed.
  void crashes(const CrashFolder &folder, uint64_t seeds,
               const std::function<void(uint64_t seed)> &look,
               uint64_t first = 0) {
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
      fs::remove_all(after);
      folder.crashInto(after.string(), seed);
      look(seed);
    }
  }
  /// The file's text after the crash; "-" where there is none.
  std::string text(const std::string &name) {
    Result<std::string> read = readFile((after / name).string());
    return read.ok() ? *read : "-";
  }
  std::string at(const std::string &name) { return (root / name).string(); }

  fs::path base, root, after;
};

TEST_F(CrashFolderTest, NamesGoOneByOneUntilTheFolderIsSynced) {
  CrashFolder folder(root.string());
  for (const char *name : {"a", "b"})
    ASSERT_TRUE(writeFile(at(name), "x", 1).ok());
  std::set<std::string> seen;
  crashes(folder, 200, [&](uint64_t) { seen.insert(text("a") + text("b")); });
  EXPECT_EQ(seen, (std::set<std::string>{"xx", "x-", "-x", "--"}));
  ASSERT_TRUE(syncFolder(root.string()).ok());
  EXPECT_EQ(folder.unsynced(), 0u);
  // A rename and a removal, and the old names may be back.
  ASSERT_TRUE(renameFile(at("a"), at("c")).ok());
  ASSERT_TRUE(removeFile(at("b")).ok());
  seen.clear();
  crashes(folder, 200,
          [&](uint64_t) { seen.insert(text("a") + text("b") + text("c")); });
  EXPECT_EQ(seen, (std::set<std::string>{"xx-", "x--", "-xx", "--x"}));
}

TEST_F(CrashFolderTest, UnsyncedContentsAreOldNewOrMixed) {
  std::string before(2048, 'a'), now(3000, 'b');
  std::optional<CrashFolder> folder(std::in_place, root.string());
  ASSERT_TRUE(writeFile(at("f"), before.data(), before.size()).ok());
  ASSERT_TRUE(syncFolder(root.string()).ok());
  Result<Fd> fd = createFile(at("f"));
  ASSERT_TRUE(fd.ok());
  ASSERT_TRUE(writeAll(fd->get(), now.data(), now.size(), "f").ok());
  bool sawOld = false, sawNew = false, sawMixed = false, sawZero = false;
  crashes(*folder, 300, [&](uint64_t) {
    std::string got = text("f");
    sawOld |= got == before;
    sawNew |= got == now;
    sawMixed |= got.find('a') != got.npos && got.find('b') != got.npos;
    sawZero |= got.find('\0') != got.npos;
  });
  EXPECT_TRUE(sawOld && sawNew && sawMixed && sawZero);
  ASSERT_TRUE(syncFile(fd->get(), "f").ok());
  crashes(*folder, 50, [&](uint64_t) { EXPECT_EQ(text("f"), now); });
}

TEST_F(CrashFolderTest, ReplacingAFileGivesTheOldOrTheNew) {
  std::string before(5000, 'a'), now(7000, 'b');
  auto story = [&](bool &done) {
    Status s = replaceFile(root.string(), "f", before);
    if (!s.ok())
      return 0;
    s = replaceFile(root.string(), "f", now);
    done = s.ok();
    return 1;
  };
  uint64_t operations = 0;
  for (uint64_t n = 0; n <= operations; ++n) {
    fs::remove_all(root);
    fs::create_directories(root);
    PowerSwitch power;
    if (n)
      power.cutAt(n - 1);
    CrashFolder folder(root.string(), &power);
    bool done = false;
    int returned = story(done);
    if (n == 0) {
      operations = power.operations();
      ASSERT_TRUE(done);
      ASSERT_GE(operations, 10u);
    }
    crashes(folder, 24, [&](uint64_t seed) {
      std::string got = text("f");
      bool good =
          got == now || (!done && got == before) || (!returned && got == "-");
      EXPECT_TRUE(good) << "cut at " << n << ", seed " << seed << ": "
                        << got.size() << " bytes";
    });
  }
}

TEST_F(CrashFolderTest, WithoutASyncTheReplacementIsFoundOut) {
  // The same without the sync of the contents: the sweep above can fail.
  CrashFolder folder(root.string());
  ASSERT_TRUE(replaceFile(root.string(), "f", std::string(5000, 'a')).ok());
  Result<Fd> fd = createFile(at("f.tmp"));
  ASSERT_TRUE(fd.ok());
  std::string now(7000, 'b');
  ASSERT_TRUE(writeAll(fd->get(), now.data(), now.size(), "f").ok());
  ASSERT_TRUE(renameFile(at("f.tmp"), at("f")).ok());
  ASSERT_TRUE(syncFolder(root.string()).ok());
  int bad = 0;
  crashes(folder, 50, [&](uint64_t) { bad += text("f") != now; });
  EXPECT_GT(bad, 10);
}

TEST_F(CrashFolderTest, FoldersAreDurableWhenMade) {
  CrashFolder folder(root.string());
  ASSERT_TRUE(makeFolders(at("x/y/z")).ok());
  crashes(folder, 50,
          [&](uint64_t) { EXPECT_TRUE(fs::is_directory(after / "x/y/z")); });
}

TEST_F(CrashFolderTest, FailsOneOperationWhichDoesNothing) {
  for (uint64_t n = 0; n < 5; ++n) { // create, write, sync, rename, sync
    CrashFolder folder(root.string());
    folder.failAt(n, ENOSPC);
    Status s = replaceFile(root.string(), "f", std::to_string(n));
    EXPECT_EQ(s.code(), TRC_NO_SPACE);
    EXPECT_EQ(pathExists(at("f")), n == 4);
    EXPECT_FALSE(pathExists(at("f.tmp")));
  }
}

TEST_F(CrashFolderTest, CountsWithADevice) {
  PowerSwitch power;
  power.cutAt(6);
  CrashFolder folder(root.string(), &power);
  CrashDevice::Options options;
  options.power = &power;
  CrashDevice device(options);
  ASSERT_TRUE(device.openFile("t", 4096, true).ok());
  EXPECT_TRUE(device.flush(0).ok());                         // 0
  EXPECT_TRUE(replaceFile(root.string(), "f", "old").ok());  // 1..5
  EXPECT_FALSE(device.flush(0).ok());                        // 6
  EXPECT_FALSE(replaceFile(root.string(), "f", "new").ok()); // gone
  EXPECT_EQ(power.operations(), 7u);
  crashes(folder, 20, [&](uint64_t) { EXPECT_EQ(text("f"), "old"); });
}

/// Checkpoints are made, replaced and pruned; a power loss at any operation
/// leaves a newest one that is at least the last that returned.
TEST_F(CrashFolderTest, CheckpointsSurviveAPowerLossAtEveryOperation) {
  auto manifest = [](uint64_t sequence, const std::string &blob) {
    Manifest m;
    m.model = "m";
    m.sequence = sequence;
    m.blobFile = "blob.bin";
    m.blobBytes = blob.size();
    m.blobCrc = crc32c(0, blob.data(), blob.size());
    return m;
  };
  auto blobOf = [](uint64_t sequence) {
    return std::string(1000 + sequence * 700,
                       static_cast<char>('a' + sequence));
  };
  uint64_t returned = 0, begun = 0;
  auto story = [&]() -> Status {
    auto dir = StateDir::open(at("m.state"), true, true);
    if (!dir.ok())
      return dir.takeStatus();
    // The third replaces the second (same step), the others prune.
    const char *names[] = {"ckpt-1", "ckpt-2", "ckpt-2", "ckpt-3", "ckpt-4"};
    for (uint64_t i = 0; i < 5; ++i) {
      begun = i + 1;
      Result<std::string> folder = (*dir)->beginCheckpoint();
      if (!folder.ok())
        return folder.takeStatus();
      std::string blob = blobOf(begun);
      TRC_RETURN_IF_ERROR(
          writeFile(*folder + "/blob.bin", blob.data(), blob.size()));
      bool inDoubt = false;
      TRC_RETURN_IF_ERROR(
          (*dir)->commitCheckpoint(names[i], manifest(begun, blob), inDoubt));
      returned = begun;
      std::vector<uint64_t> removed;
      TRC_RETURN_IF_ERROR((*dir)->prune(2, removed));
    }
    return Status();
  };
  uint64_t operations = 0;
  for (uint64_t n = 0; n <= operations; ++n) {
    fs::remove_all(root);
    fs::create_directories(root);
    PowerSwitch power;
    if (n)
      power.cutAt(n - 1);
    CrashFolder folder(root.string(), &power);
    returned = begun = 0;
    Status s = story();
    // Removing what the last prune left over may fail: all had returned then.
    EXPECT_TRUE(n == 0 ? s.ok() : !s.ok() || returned == 5) << s.message();
    if (n == 0)
      operations = power.operations();
    crashes(
        folder, 4,
        [&](uint64_t seed) {
          auto dir = StateDir::open((after / "m.state").string(), false, false);
          if (!dir.ok()) {
            EXPECT_EQ(returned, 0u);
            return;
          }
          std::vector<StateSource> all =
              (*dir)->checkpoints([&](const std::string &) {});
          uint64_t newest = all.empty() ? 0 : all.back().manifest.sequence;
          EXPECT_TRUE(newest >= returned && newest <= begun)
              << "cut at " << n << ", seed " << seed << ": checkpoint "
              << newest << ", but " << returned << " had returned";
          for (const StateSource &source : all) {
            std::vector<char> blob;
            Status read = source.readBlob(blob);
            EXPECT_TRUE(read.ok()) << "cut at " << n << ", seed " << seed
                                   << ": " << read.message();
            EXPECT_EQ(std::string(blob.begin(), blob.end()),
                      blobOf(source.manifest.sequence));
          }
        },
        n * 4);
  }
  EXPECT_GT(operations, 40u);
}

} // namespace
