//===- RowStoreTest.cpp - Reading and writing rows ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/store/Crc32c.h"
#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>

using namespace trc;

namespace {

using Backend = DeviceOptions::Backend;

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xE3069283u); // RFC 3720's check value
  EXPECT_EQ(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xE3069283u);
  EXPECT_EQ(crc32c(0, "", 0), 0u);
}

TEST(RecordFormat, Sizes) {
  static_assert(recordBytes(68) == 80);
  static_assert(recordBytes(256 + 4) == 272);
  static_assert(recordSpan(80, 512) == 1024);
  static_assert(recordSpan(512, 512) == 512);
  static_assert(recordSpan(272, 4096) == 8192);
  static_assert(recordSpan(8208, 512) == 8704);
  // No record touches more.
  for (uint64_t pitch = 16; pitch < 3000; pitch += 16)
    for (uint64_t row = 0; row < 600; ++row) {
      uint64_t begin = row * pitch / 512 * 512;
      uint64_t end = (row * pitch + pitch + 511) / 512 * 512;
      ASSERT_LE(end - begin, recordSpan(pitch, 512));
    }
}

class RowStoreTest : public testing::TestWithParam<Backend> {
protected:
  void SetUp() override {
    if (!f.skip.empty())
      GTEST_SKIP() << f.skip;
  }
  StoreFixture f{GetParam()};
};

TEST_P(RowStoreTest, RowsComeBack) {
  for (uint32_t payload : {4u, 8u, 68u, 260u, 500u, 504u, 508u, 2048u, 8196u}) {
    SCOPED_TRACE(payload);
    f.payload(payload);
    f.options.extents[0].path = f.path(std::to_string(payload).c_str());
    f.open();
    std::vector<uint32_t> rows(f.options.rows);
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), std::mt19937(payload));
    std::vector<uint32_t> some(rows.begin(), rows.begin() + 300);
    ASSERT_TRUE(f.write(some, 1).ok());
    EXPECT_EQ(f.store->writtenCount(), 300u);
    f.expect(some, 1);
    // Their neighbours, in the same blocks.
    std::vector<uint32_t> others(rows.begin() + 300, rows.end());
    ASSERT_TRUE(f.write(others, 2).ok());
    f.expect(some, 1);
    f.expect(others, 2);
    ASSERT_TRUE(f.store->flush().ok());
  }
}

TEST_P(RowStoreTest, NeverWrittenRowsHaveNoBytes) {
  if (GetParam() == Backend::Memory)
    GTEST_SKIP() << "memory has no disk blocks to count";
  f.options.rows = 1 << 20; // 80 MiB
  f.open();
  ASSERT_TRUE(f.write({0, 500000, (1 << 20) - 1}, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  struct stat st;
  ASSERT_EQ(stat(f.path("rows").c_str(), &st), 0);
  EXPECT_EQ(st.st_size, (1 << 20) * 80);
  EXPECT_LE(st.st_blocks * 512, 64 * 1024);
  std::vector<char> out;
  Status s = f.read({0, 1}, out);
  EXPECT_EQ(s.code(), TRC_NOT_FOUND);
  EXPECT_NE(s.message().find("row 1 "), std::string::npos) << s.message();
}

TEST_P(RowStoreTest, NeighboursInFlightDoNotClobber) {
  // Six records share a block; the two ring slots hold alternate rows, and are
  // written over and over without waiting for each other.
  f.options.rows = 60;
  f.options.maxWrites = 60;
  f.open();
  std::vector<uint32_t> even, odd;
  for (uint32_t r = 0; r < 60; ++r)
    (r % 2 ? odd : even).push_back(r);
  std::vector<char> a, b;
  for (uint32_t version = 1; version <= 60; ++version) {
    ASSERT_TRUE(f.store->waitWrites(0).ok());
    a = f.records(even, version);
    ASSERT_TRUE(f.store->write(0, even.data(), 30, a.data()).ok());
    ASSERT_TRUE(f.store->waitWrites(1).ok());
    b = f.records(odd, version);
    ASSERT_TRUE(f.store->write(1, odd.data(), 30, b.data()).ok());
  }
  ASSERT_TRUE(f.store->flush().ok());
  f.expect(even, 60);
  f.expect(odd, 60);
  EXPECT_EQ(f.store->counters().rowsWritten, 3600u);
}

TEST_P(RowStoreTest, ReadsSeeQueuedWrites) {
  f.open();
  std::vector<uint32_t> rows{5, 6, 7, 300};
  ASSERT_TRUE(f.write(rows, 1).ok());
  f.device->hold(); // nothing reaches the device from now on
  auto two = f.records({6, 300}, 2), three = f.records({300}, 3);
  uint32_t r2[] = {6, 300}, r3[] = {300};
  ASSERT_TRUE(f.store->write(0, r2, 2, two.data()).ok());
  ASSERT_TRUE(f.store->write(1, r3, 1, three.data()).ok());
  EXPECT_FALSE(f.store->writesDone(0));
  f.expect({6}, 2);
  f.expect({300}, 3); // the later one
  EXPECT_EQ(f.store->counters().readFromQueue, 2u);
  f.device->release();
  ASSERT_TRUE(f.store->waitWrites(0).ok());
  ASSERT_TRUE(f.store->waitWrites(1).ok());
  EXPECT_TRUE(f.store->writesDone(0));
  f.expect({6}, 2);
  f.expect({300}, 3);
  f.expect({5, 7}, 1);
}

TEST_P(RowStoreTest, NewerBatchNeverEndsBeforeAnOlderOne) {
  // The older batch hangs on its other row. If the newer one were forgotten
  // when it is through, a read would find the older version in the queue.
  f.open();
  f.device->hold(900 * 80 / 512 * 512, UINT64_MAX);
  std::vector<uint32_t> both{5, 900}, one{5};
  auto older = f.records(both, 1), newer = f.records(one, 2);
  ASSERT_TRUE(f.store->write(0, both.data(), 2, older.data()).ok());
  ASSERT_TRUE(f.store->write(1, one.data(), 1, newer.data()).ok());
  while (f.device->writes() < 2)
    std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  f.expect({5}, 2);
  EXPECT_FALSE(f.store->writesDone(1));
  f.device->release();
  ASSERT_TRUE(f.store->waitWrites(1).ok());
  EXPECT_TRUE(f.store->writesDone(0));
  f.expect({5}, 2);
  f.expect({900}, 1);
}

TEST_P(RowStoreTest, SlotInUseIsRefused) {
  f.open();
  f.device->hold();
  auto r = f.records({1}, 1);
  uint32_t row = 1;
  ASSERT_TRUE(f.store->write(0, &row, 1, r.data()).ok());
  EXPECT_EQ(f.store->write(0, &row, 1, r.data()).code(), TRC_INTERNAL);
  f.device->release();
  EXPECT_TRUE(f.store->waitWrites(0).ok());
  EXPECT_TRUE(f.store->write(0, &row, 1, r.data()).ok());
  EXPECT_TRUE(f.store->waitWrites(0).ok());
}

TEST_P(RowStoreTest, DepthIsBounded) {
  f.options.depth = 3;
  f.options.rows = 100000;
  f.options.maxWrites = 2000;
  f.open();
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < 2000; ++i)
    rows.push_back(i * 50); // no two share a transfer
  ASSERT_TRUE(f.write(rows, 1).ok());
  EXPECT_LE(f.device->peakInFlight(), 3u);
  f.expect(rows, 1);
  EXPECT_LE(f.device->peakInFlight(), 3u);
}

TEST_P(RowStoreTest, NeighboursShareTransfers) {
  f.open();
  std::vector<uint32_t> rows(1000);
  std::iota(rows.begin(), rows.end(), 0);
  ASSERT_TRUE(f.write(rows, 1).ok()); // 80,000 bytes through 16 KiB buffers
  EXPECT_LE(f.store->counters().writes, 8u);
  uint64_t before = f.store->counters().reads;
  f.expect(rows, 1);
  EXPECT_LE(f.store->counters().reads - before, 8u);
  EXPECT_EQ(f.store->counters().rowsRead, 1000u);
}

TEST_P(RowStoreTest, CompletionIsTold) {
  f.open();
  std::vector<uint32_t> rows{1, 2, 3};
  ASSERT_TRUE(f.write(rows, 1).ok());
  std::atomic<int> told{0};
  std::vector<char> out(3 * 68);
  ReadBatch batch;
  batch.rows = rows.data();
  batch.count = 3;
  batch.out = out.data();
  batch.pitch = 68;
  batch.onDone = [&] { ++told; };
  for (int i = 1; i <= 5; ++i) {
    f.store->start(batch);
    ASSERT_TRUE(f.store->wait(batch).ok());
    EXPECT_TRUE(f.store->done(batch));
    EXPECT_EQ(told, i);
  }
  batch.count = 0; // nothing to do is done at once
  f.store->start(batch);
  EXPECT_TRUE(f.store->done(batch));
  EXPECT_EQ(told, 6);
}

TEST_P(RowStoreTest, StripesOverFiles) {
  f.options.rows = 5000;
  f.options.maxWrites = 5000;
  f.options.extents = {{f.path("a"), 0}, {f.path("b"), 8192}, {f.path("c"), 0}};
  f.open();
  std::vector<uint32_t> rows(5000);
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), std::mt19937(3));
  std::vector<uint32_t> half(rows.begin(), rows.begin() + 2500);
  ASSERT_TRUE(f.write(half, 1).ok());
  ASSERT_TRUE(f.write({rows.begin() + 2500, rows.end()}, 2).ok());
  f.expect(half, 1);
  f.expect({rows.begin() + 2500, rows.end()}, 2);
  uint64_t each = RowStore::extentBytes(5000, 80, 3);
  EXPECT_LT(each, 5000u * 80u / 3 + 256 * 80 + 4096);
  for (uint32_t i = 0; i < 3; ++i)
    EXPECT_LE(f.device->fileInfo(i).bytes, each + 8192);
}

TEST_P(RowStoreTest, GroupsShareAFile) {
  f.open();
  RowStoreOptions second = f.options;
  second.group = "g4";
  second.extents[0].base = RowStore::extentBytes(1000, f.options.storeBytes);
  auto opened = RowStore::open(*f.device, second);
  ASSERT_TRUE(opened.ok());
  std::vector<uint32_t> rows(1000);
  std::iota(rows.begin(), rows.end(), 0);
  ASSERT_TRUE(f.write(rows, 1).ok());
  std::swap(f.store, *opened);
  ASSERT_TRUE(f.write(rows, 2).ok());
  f.expect(rows, 2);
  std::swap(f.store, *opened);
  f.expect(rows, 1);
}

TEST_P(RowStoreTest, ScanAndLoadStream) {
  f.payload(4000);
  f.options.rows = 3000;
  f.open();
  std::vector<uint32_t> rows;
  std::vector<char> payloads;
  for (uint32_t r = 0; r < 3000; r += r % 7 == 0 ? 5 : 1) {
    rows.push_back(r);
    auto v = f.value(r, 9);
    payloads.insert(payloads.end(), v.begin(), v.end());
  }
  ASSERT_TRUE(f.store
                  ->load(rows.data(), static_cast<uint32_t>(rows.size()),
                         payloads.data())
                  .ok());
  std::vector<uint32_t> seen;
  Status s = f.store->scan(
      0, UINT32_MAX, [&](uint32_t row, const char *payload) -> Status {
        seen.push_back(row);
        auto v = f.value(row, 9);
        EXPECT_EQ(std::memcmp(payload, v.data(), v.size()), 0);
        return {};
      });
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(seen, rows);
  // A part, and the caller's own failure.
  seen.clear();
  s = f.store->scan(100, 200, [&](uint32_t row, const char *) -> Status {
    seen.push_back(row);
    return row >= 150 ? Status(TRC_CANCELLED, "enough") : Status();
  });
  EXPECT_EQ(s.code(), TRC_CANCELLED);
  EXPECT_GE(seen.front(), 100u);
  EXPECT_LE(seen.back(), 155u);
}

TEST_P(RowStoreTest, DestructorWaitsForQueuedWrites) {
  f.open();
  f.device->hold();
  auto r = f.records({1, 2, 900}, 1);
  uint32_t rows[] = {1, 2, 900};
  ASSERT_TRUE(f.store->write(0, rows, 3, r.data()).ok());
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    f.device->release();
  });
  f.store.reset();
  later.join();
  EXPECT_GT(f.device->writes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Backends, RowStoreTest,
                         testing::Values(Backend::Uring, Backend::Threads,
                                         Backend::Memory),
                         [](const auto &info) {
                           return info.param == Backend::Uring     ? "Uring"
                                  : info.param == Backend::Threads ? "Threads"
                                                                   : "Memory";
                         });

/// TERRACE_TEST_BLOCK_DEVICE names a device whose content may be destroyed.
TEST(RowStoreOpen, RawBlockDevice) {
  const char *path = std::getenv("TERRACE_TEST_BLOCK_DEVICE");
  if (!path)
    GTEST_SKIP() << "TERRACE_TEST_BLOCK_DEVICE is not set";
  for (Backend backend : {Backend::Uring, Backend::Threads}) {
    StoreFixture f(backend);
    if (!f.skip.empty())
      continue;
    f.options.extents = {{path, 4096}};
    f.open();
    FileInfo info = f.device->fileInfo(0);
    EXPECT_TRUE(info.blockDevice);
    EXPECT_TRUE(info.direct) << info.note;
    std::vector<uint32_t> even, odd;
    for (uint32_t r = 0; r < 1000; ++r)
      (r % 2 ? odd : even).push_back(r);
    ASSERT_TRUE(f.write(even, 1).ok());
    ASSERT_TRUE(f.write(odd, 2).ok());
    ASSERT_TRUE(f.store->flush().ok());
    f.expect(even, 1);
    f.expect(odd, 2);
    f.options.rows = 1u << 31; // more than it has
    EXPECT_EQ(RowStore::open(*f.device, f.options).takeStatus().code(),
              TRC_NO_SPACE);
  }
}

TEST(RowStoreOpen, RefusesBadOptions) {
  StoreFixture f(Backend::Memory, 4096);
  auto code = [&](RowStoreOptions o) {
    return RowStore::open(*f.device, o).takeStatus().code();
  };
  EXPECT_EQ(code(f.options), TRC_OK);
  RowStoreOptions o = f.options;
  o.storeBytes = 64;
  EXPECT_EQ(code(o), TRC_BAD_ARGUMENT);
  o = f.options;
  o.extents[0].base = 512;
  EXPECT_EQ(code(o), TRC_BAD_ARGUMENT);
  o = f.options;
  o.payloadBytes = 8000; // more than the device's buffers hold
  o.storeBytes = static_cast<uint32_t>(recordBytes(8000));
  EXPECT_EQ(code(o), TRC_BAD_ARGUMENT);
  o = f.options;
  o.extents.clear();
  EXPECT_EQ(code(o), TRC_BAD_ARGUMENT);
}

} // namespace
