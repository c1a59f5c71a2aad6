//===- RowIndexTest.cpp - The list of written rows ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/store/StoreFixture.h"

#include <fstream>

using namespace trc;

namespace {

TEST(RowIndex, Enumerates) {
  StoreFixture f;
  f.options.rows = 200;
  f.open();
  EXPECT_EQ(f.store->nextWritten(0), 200u);
  ASSERT_TRUE(f.write({0, 63, 64, 199}, 1).ok());
  std::vector<uint32_t> rows;
  for (uint32_t r = f.store->nextWritten(0); r < 200;
       r = f.store->nextWritten(r + 1))
    rows.push_back(r);
  EXPECT_EQ(rows, (std::vector<uint32_t>{0, 63, 64, 199}));
  EXPECT_TRUE(f.store->written(64));
  EXPECT_FALSE(f.store->written(65));
  f.store->clear();
  EXPECT_EQ(f.store->nextWritten(0), 200u);
  EXPECT_EQ(f.store->writtenCount(), 0u);
}

TEST(RowIndex, SavedAndTakenBack) {
  StoreFixture f;
  f.options.rows = 1000003; // not whole words
  f.options.maxWrites = 10;
  f.open();
  std::vector<uint32_t> rows{0, 1, 524288, 1000002};
  ASSERT_TRUE(f.write(rows, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  ASSERT_TRUE(f.store->saveIndex(f.path("index")).ok());
  EXPECT_FALSE(std::filesystem::exists(f.path("index.tmp")));
  f.open();
  ASSERT_TRUE(f.store->loadIndex(f.path("index")).ok());
  EXPECT_EQ(f.store->writtenCount(), 4u);
  f.expect(rows, 1);
}

TEST(RowIndex, DamageAndMismatchAreFound) {
  StoreFixture f;
  f.open();
  EXPECT_EQ(f.store->loadIndex(f.path("none")).code(), TRC_NOT_FOUND);
  ASSERT_TRUE(f.write({5}, 1).ok());
  std::string path = f.path("index");
  ASSERT_TRUE(f.store->saveIndex(path).ok());
  std::string good;
  {
    std::ifstream in(path, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  auto tryWith = [&](const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return f.store->loadIndex(path).code();
  };
  EXPECT_EQ(tryWith(good), TRC_OK);
  EXPECT_TRUE(f.store->written(5));
  for (size_t cut : {size_t(0), size_t(7), size_t(60), good.size() - 1}) {
    EXPECT_EQ(tryWith(good.substr(0, cut)), TRC_CORRUPT) << cut;
    EXPECT_EQ(f.store->writtenCount(), 0u);
  }
  std::string flipped = good;
  flipped[50] ^= 1;
  EXPECT_EQ(tryWith(flipped), TRC_CORRUPT);
  ASSERT_EQ(tryWith(good), TRC_OK);
  f.options.rows = 1001;
  f.open();
  Status s = f.store->loadIndex(path);
  EXPECT_EQ(s.code(), TRC_MISMATCH);
  EXPECT_NE(s.message().find("1001"), std::string::npos) << s.message();
}

TEST(RowIndex, UnwritableFolder) {
  StoreFixture f;
  f.open();
  Status s = f.store->saveIndex(f.path("none/index"));
  EXPECT_EQ(s.code(), TRC_NOT_FOUND);
  EXPECT_NE(s.message().find("none/index"), std::string::npos);
}

} // namespace
