//===- CheckpointTest.cpp - Cuts, images, reopening -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

using namespace trc;

namespace {

TEST(Checkpoint, ComesBackAfterReopening) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write(range(0, 500), 1).ok());
  Image first;
  ASSERT_TRUE(f.checkpoint(1, first).ok());
  EXPECT_EQ(first.files, std::vector<std::string>{"g16-base-1"});
  ASSERT_TRUE(f.write(range(100, 110), 2).ok());
  Image second;
  ASSERT_TRUE(f.checkpoint(2, second).ok());
  EXPECT_EQ(second.files,
            (std::vector<std::string>{"g16-base-1", "g16-delta-2"}));
  ASSERT_TRUE(f.write(range(0, 1000), 3).ok()); // lost

  f.reopen();
  EXPECT_EQ(f.store->writtenCount(), 0u);
  Status s = f.store->adopt(second, true);
  ASSERT_TRUE(s.ok()) << s.message();
  ASSERT_TRUE(f.store->removeLeftovers().ok());
  EXPECT_EQ(f.store->writtenCount(), 500u);
  f.expect(range(0, 100), 1);
  f.expect(range(100, 110), 2);
  f.expect(range(110, 500), 1);
  EXPECT_FALSE(f.store->written(500));
  // And goes on from there.
  ASSERT_TRUE(f.write(range(400, 600), 4).ok());
  Image third;
  ASSERT_TRUE(f.checkpoint(3, third).ok());
  f.reopen();
  s = f.store->adopt(third, true);
  ASSERT_TRUE(s.ok()) << s.message();
  f.expect(range(100, 110), 2);
  f.expect(range(400, 600), 4);
}

TEST(Checkpoint, PendingRowsCountWithTheirNextValue) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write(range(0, 100), 1).ok());
  std::vector<uint32_t> pending{7, 3, 500};
  ASSERT_TRUE(f.store->beginCut(1, pending.data(), 3).ok());
  EXPECT_EQ(f.store->cutPending(), 3u);
  ASSERT_TRUE(f.write({50}, 2).ok()); // after the cut
  ASSERT_TRUE(f.write({3, 500}, 2).ok());
  EXPECT_EQ(f.store->cutPending(), 1u);
  Image image;
  Status finished;
  std::thread finish([&] { finished = f.store->finishCut(image); });
  ASSERT_TRUE(f.write({7}, 2).ok());
  ASSERT_TRUE(f.write({7, 3}, 3).ok());
  finish.join();
  ASSERT_TRUE(finished.ok()) << finished.message();
  f.store->keepCut();
  f.expect({3, 7}, 3);
  f.reopen();
  Status s = f.store->adopt(image, true);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(f.store->writtenCount(), 101u);
  f.expect({3, 7, 500}, 2);
  f.expect({50}, 1);
}

TEST(Checkpoint, OrderOfCallsIsChecked) {
  StoreFixture f;
  f.open();
  Image image;
  EXPECT_EQ(f.store->finishCut(image).code(), TRC_OUT_OF_ORDER);
  f.store->keepCut(); // nothing to keep
  f.store->dropCut();
  ASSERT_TRUE(f.write(range(0, 10), 1).ok());
  ASSERT_TRUE(f.store->beginCut(5).ok());
  EXPECT_EQ(f.store->beginCut(6).code(), TRC_OUT_OF_ORDER);
  ASSERT_TRUE(f.store->finishCut(image).ok());
  EXPECT_EQ(f.store->finishCut(image).code(), TRC_OUT_OF_ORDER);
  f.store->keepCut();
  EXPECT_EQ(f.store->beginCut(5).code(), TRC_INTERNAL);
  uint32_t twice[] = {1, 1}, none[] = {1000};
  EXPECT_EQ(f.store->beginCut(6, twice, 2).code(), TRC_INTERNAL);
  EXPECT_EQ(f.store->beginCut(6, none, 1).code(), TRC_INTERNAL);
  EXPECT_EQ(f.store->forget(4).code(), TRC_NOT_FOUND);
  // More than is declared takes more memory, and is no error.
  ASSERT_TRUE(f.checkpoint(6, image).ok());
  ASSERT_TRUE(f.checkpoint(7, image).ok());
  ASSERT_TRUE(f.checkpoint(8, image).ok());
  ASSERT_TRUE(f.store->forget(5).ok());
  EXPECT_EQ(f.store->forget(5).code(), TRC_NOT_FOUND);
  EXPECT_EQ(f.store->adopt(image, true).code(), TRC_INTERNAL);
}

TEST(Checkpoint, SpaceIsHeldAndGivenBack) {
  StoreFixture f;
  f.open();
  uint64_t pitch = f.options.storeBytes;
  ASSERT_TRUE(f.write(range(0, 400), 1).ok());
  Image image;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  EXPECT_EQ(f.store->space().retained, 0u);
  ASSERT_TRUE(f.write(range(0, 300), 2).ok());
  EXPECT_EQ(f.store->space().current, 400 * pitch);
  EXPECT_EQ(f.store->space().retained, 300 * pitch);
  ASSERT_TRUE(f.store->beginCut(2).ok());
  ASSERT_TRUE(f.write(range(0, 100), 3).ok());
  EXPECT_EQ(f.store->space().retained, 400 * pitch);
  f.store->dropCut();
  EXPECT_EQ(f.store->space().retained, 300 * pitch);
  // The value before is not a pending row's value at the cut.
  auto pending = range(0, 50);
  ASSERT_TRUE(f.store->beginCut(2, pending.data(), pending.size()).ok());
  ASSERT_TRUE(f.write(pending, 4).ok());
  EXPECT_EQ(f.store->space().retained, 300 * pitch);
  f.store->dropCut();
  ASSERT_TRUE(f.store->forget(1).ok());
  EXPECT_EQ(f.store->space().retained, 0u);
  EXPECT_EQ(f.store->space().current, 400 * pitch);
}

TEST(Checkpoint, GivingUpWakesWhoFinishes) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write({1}, 1).ok());
  uint32_t never = 9;
  ASSERT_TRUE(f.store->beginCut(1, &never, 1).ok());
  Image image;
  Status finished;
  std::thread finish([&] { finished = f.store->finishCut(image); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  f.store->dropCut();
  finish.join();
  // It may have come too late to have begun.
  EXPECT_TRUE(finished.code() == TRC_CANCELLED ||
              finished.code() == TRC_OUT_OF_ORDER)
      << finished.message();
  ASSERT_TRUE(f.checkpoint(1, image).ok());
}

TEST(Checkpoint, ChangesGoIntoDeltasUntilTheyAreHalfTheBase) {
  StoreFixture f;
  f.options.rows = 20000;
  f.options.maxWrites = 20000;
  f.fit();
  f.open();
  ASSERT_TRUE(f.write(range(0, 20000), 1).ok());
  Image image;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  uint64_t base = f.store->counters().bytesIndex;
  EXPECT_GE(base, 80000u);
  EXPECT_LE(base, 80000u + 2000);
  size_t longest = 0;
  for (uint64_t id = 2; id < 40; ++id) {
    ASSERT_TRUE(f.write(range(100, 600), static_cast<uint32_t>(id)).ok());
    uint64_t before = f.store->counters().bytesIndex;
    ASSERT_TRUE(f.checkpoint(id, image).ok());
    ASSERT_TRUE(f.store->forget(id - 1).ok());
    uint64_t bytes = f.store->counters().bytesIndex - before;
    if (image.files.size() > 1) {
      EXPECT_LE(bytes, 500u * 8 + 1000);
      longest = std::max(longest, image.files.size());
    }
    // What no image names is gone.
    size_t files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(f.folder.path))
      files += entry.path().filename().string().rfind("g16-", 0) == 0;
    EXPECT_EQ(files, image.files.size());
  }
  EXPECT_GE(longest, 6u); // 40,000 / 4,000, less the headers
  EXPECT_LE(longest, 11u);
  f.reopen();
  Status s = f.store->adopt(image, true);
  ASSERT_TRUE(s.ok()) << s.message();
  f.expect(range(100, 600), 39);
  f.expect(range(600, 20000), 1);
}

/// More rows are replaced after the cut than a store remembers, before anybody
/// finishes it: the writers capture the index themselves.
TEST(Checkpoint, ManyWritesBeforeItIsFinished) {
  for (bool delta : {false, true}) {
    StoreFixture f;
    f.payload(4);
    f.options.rows = 200000; // 12,500 are remembered
    f.options.maxWrites = f.options.rows;
    f.fit(3.5);
    f.open();
    auto all = range(0, f.options.rows);
    ASSERT_TRUE(f.write(all, 1).ok());
    Image image;
    uint64_t id = 1;
    if (delta) {
      ASSERT_TRUE(f.checkpoint(id++, image).ok());
      ASSERT_TRUE(f.write(range(0, f.options.rows / 5), 2).ok());
    }
    std::vector<uint32_t> pending{5, 70000, f.options.rows - 1};
    ASSERT_TRUE(f.store->beginCut(id, pending.data(), pending.size()).ok());
    ASSERT_TRUE(f.write(all, 3).ok());
    ASSERT_TRUE(f.write(all, 4).ok());
    Status s = f.store->finishCut(image);
    ASSERT_TRUE(s.ok()) << s.message();
    f.store->keepCut();
    f.reopen();
    s = f.store->adopt(image, true);
    ASSERT_TRUE(s.ok()) << s.message();
    EXPECT_EQ(f.store->writtenCount(), f.options.rows);
    f.expect(pending, 3);
    EXPECT_EQ(image.files.size(), delta ? 2u : 1u);
    f.expect(range(6, 40000), delta ? 2 : 1); // a fifth
    f.expect(range(40000, 70000), 1);
    f.expect(range(70001, f.options.rows - 1), 1);
  }
}

TEST(Checkpoint, BatchesLieWhollyBeforeOrAfterACut) {
  StoreFixture f;
  f.options.rows = 20000; // several parts of one write()
  f.options.maxWrites = 20000;
  f.options.geometry = storeGeometry(20000, f.options.storeBytes, 4);
  f.open();
  auto all = range(0, 20000);
  ASSERT_TRUE(f.write(all, 1).ok());
  std::atomic<bool> stop{false};
  Status written;
  std::thread writer([&] {
    for (uint32_t v = 2; v < 100 && !stop && written.ok(); ++v)
      written = f.write(all, v);
  });
  Image image;
  Status s;
  for (uint64_t id = 1; id <= 5 && s.ok(); ++id) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    s = f.checkpoint(id, image);
    if (s.ok() && id > 1)
      s = f.store->forget(id - 1);
  }
  stop = true;
  writer.join();
  ASSERT_TRUE(s.ok()) << s.message();
  ASSERT_TRUE(written.ok()) << written.message();
  f.reopen();
  s = f.store->adopt(image, true);
  ASSERT_TRUE(s.ok()) << s.message();
  std::vector<char> out;
  ASSERT_TRUE(f.read({0}, out).ok());
  out.resize(f.options.payloadBytes);
  uint32_t version = 1;
  while (version < 100 && out != f.value(0, version))
    ++version;
  f.expect(all, version);
}

TEST(Checkpoint, GoesOnFromAnOlderOne) {
  StoreFixture f;
  f.options.retained = 3;
  f.open();
  std::vector<Image> images(4);
  for (uint32_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(f.write(range(i * 10, i * 10 + 100), i).ok());
    ASSERT_TRUE(f.checkpoint(i, images[i]).ok());
  }
  f.reopen();
  for (uint32_t i = 1; i <= 3; ++i) {
    Status s = f.store->adopt(images[i], i == 2);
    ASSERT_TRUE(s.ok()) << s.message();
  }
  f.expect(range(10, 20), 1);
  f.expect(range(20, 120), 2);
  EXPECT_FALSE(f.store->written(125));
  ASSERT_TRUE(f.store->removeLeftovers().ok());
  ASSERT_TRUE(f.store->forget(1).ok());
  ASSERT_TRUE(f.write(range(0, 15), 4).ok());
  Image fourth;
  ASSERT_TRUE(f.checkpoint(4, fourth).ok());
  f.reopen();
  ASSERT_TRUE(f.store->adopt(images[3], false).ok());
  Status s = f.store->adopt(fourth, true);
  ASSERT_TRUE(s.ok()) << s.message();
  f.expect(range(0, 15), 4);
  f.expect(range(20, 120), 2);
  EXPECT_FALSE(f.store->written(125));
}

TEST(Checkpoint, LeftoversAreRemovedAndStrangersAreNot) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write(range(0, 10), 1).ok());
  Image image;
  ASSERT_TRUE(f.checkpoint(3, image).ok());
  f.reopen();
  ASSERT_TRUE(f.store->adopt(image, true).ok());
  for (const char *name :
       {"g16-base-2", "g16-delta-9", "g16-moves-4", "g16-base-3.tmp",
        "g16-base-x", "g16-base-03", "g1-base-2", "other"})
    std::ofstream(f.path(name)) << "x";
  ASSERT_TRUE(f.store->removeLeftovers().ok());
  for (const char *name :
       {"g16-base-2", "g16-delta-9", "g16-moves-4", "g16-base-3.tmp"})
    EXPECT_FALSE(std::filesystem::exists(f.path(name))) << name;
  for (const char *name :
       {"g16-base-3", "g16-base-x", "g16-base-03", "g1-base-2", "other"})
    EXPECT_TRUE(std::filesystem::exists(f.path(name))) << name;
}

} // namespace
