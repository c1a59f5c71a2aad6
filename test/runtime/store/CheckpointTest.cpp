//===- CheckpointTest.cpp - Cuts, images, reopening -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <numeric>
#include <thread>

using namespace trc;

namespace {

using Image = RowStore::Image;

std::vector<uint32_t> range(uint32_t begin, uint32_t end) {
  std::vector<uint32_t> v(end - begin);
  std::iota(v.begin(), v.end(), begin);
  return v;
}

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

} // namespace
