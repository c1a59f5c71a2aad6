//===- RowStoreTest.cpp - Reading and writing rows ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/store/StoreLayout.h"
#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>

using namespace trc;

namespace {

using Backend = DeviceOptions::Backend;

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
    // Their neighbours, in the same sectors.
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
  if (GetParam() == Backend::Pmem)
    GTEST_SKIP() << "persistent memory is allocated at open";
  f.options.rows = 1 << 20; // 80 MiB
  f.fit();
  f.open();
  ASSERT_TRUE(f.write({0, 500000, (1 << 20) - 1}, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  struct stat st;
  ASSERT_EQ(stat(f.path("rows").c_str(), &st), 0);
  EXPECT_EQ(static_cast<uint64_t>(st.st_size),
            f.options.geometry.extentBytes(1));
  EXPECT_LE(st.st_blocks * 512, 64 * 1024);
  std::vector<char> out;
  Status s = f.read({0, 1}, out);
  EXPECT_EQ(s.code(), TRC_NOT_FOUND);
  EXPECT_NE(s.message().find("row 1 "), std::string::npos) << s.message();
}

TEST_P(RowStoreTest, NeighboursInFlightDoNotClobber) {
  // Many records share a sector; the two ring slots hold alternate rows, and
  // are written over and over without waiting for each other.
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
  std::vector<uint32_t> all(300), some(200);
  std::iota(all.begin(), all.end(), 0);
  std::iota(some.begin(), some.end(), 50);
  ASSERT_TRUE(f.write(all, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.device->hold(); // nothing reaches the device from now on
  auto two = f.records(all, 2), three = f.records(some, 3);
  ASSERT_TRUE(f.store->write(0, all.data(), 300, two.data()).ok());
  ASSERT_TRUE(f.store->write(1, some.data(), 200, three.data()).ok());
  EXPECT_FALSE(f.store->writesDone(0));
  EXPECT_FALSE(f.store->writesDone(1));
  f.expect(some, 3); // the later one
  f.expect({0, 1, 49, 250, 299}, 2);
  EXPECT_EQ(f.store->counters().readFromQueue, 205u);
  f.device->release();
  ASSERT_TRUE(f.store->waitWrites(0).ok());
  ASSERT_TRUE(f.store->waitWrites(1).ok());
  EXPECT_TRUE(f.store->writesDone(0));
  f.expect(some, 3);
  f.expect({0, 1, 49, 250, 299}, 2);
}

TEST_P(RowStoreTest, SmallBatchesWaitInTheTail) {
  f.open();
  ASSERT_TRUE(f.write({1}, 1).ok());
  for (uint32_t v = 2; v < 40; ++v)
    ASSERT_TRUE(f.write({1, 2}, v).ok()); // 77 records of 80 bytes
  EXPECT_EQ(f.store->counters().writes, 1u);
  EXPECT_EQ(f.store->counters().bytesWritten, 4096u);
  f.expect({1, 2}, 39);
  ASSERT_TRUE(f.store->flush().ok());
  EXPECT_EQ(f.store->counters().bytesWritten, 8192u);
  ASSERT_TRUE(f.store->flush().ok()); // nothing new
  EXPECT_EQ(f.store->counters().bytesWritten, 8192u);
  f.expect({1, 2}, 39);
}

TEST_P(RowStoreTest, SlotInUseIsRefused) {
  f.open();
  f.device->hold();
  std::vector<uint32_t> rows(100);
  std::iota(rows.begin(), rows.end(), 0);
  auto r = f.records(rows, 1);
  ASSERT_TRUE(f.store->write(0, rows.data(), 100, r.data()).ok());
  EXPECT_EQ(f.store->write(0, rows.data(), 100, r.data()).code(), TRC_INTERNAL);
  f.device->release();
  EXPECT_TRUE(f.store->waitWrites(0).ok());
  EXPECT_TRUE(f.store->write(0, rows.data(), 100, r.data()).ok());
  EXPECT_TRUE(f.store->waitWrites(0).ok());
}

TEST_P(RowStoreTest, DepthIsBounded) {
  f.options.depth = 3;
  f.options.rows = 100000;
  f.options.maxWrites = 50000;
  f.fit();
  f.open();
  std::vector<uint32_t> all(50000), rows;
  std::iota(all.begin(), all.end(), 0);
  for (uint32_t i = 0; i < 50000; i += 130)
    rows.push_back(i); // no two share a transfer
  ASSERT_TRUE(f.write(all, 1).ok());
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
  ASSERT_TRUE(f.store->flush().ok());
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
  f.fit();
  f.open();
  std::vector<uint32_t> rows(5000);
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), std::mt19937(3));
  std::vector<uint32_t> half(rows.begin(), rows.begin() + 2500);
  ASSERT_TRUE(f.write(half, 1).ok());
  ASSERT_TRUE(f.write({rows.begin() + 2500, rows.end()}, 2).ok());
  f.expect(half, 1);
  f.expect({rows.begin() + 2500, rows.end()}, 2);
  ASSERT_TRUE(f.store->flush().ok());
  f.expect(half, 1);
  // Each holds a third of the segments.
  uint64_t each = f.options.geometry.extentBytes(3);
  EXPECT_EQ(f.device->fileInfo(0).bytes, each);
  EXPECT_EQ(f.device->fileInfo(1).bytes, each + 8192);
}

TEST_P(RowStoreTest, GroupsShareAFile) {
  f.open();
  RowStoreOptions second = f.options;
  second.group = "g4";
  second.key = 43;
  second.prefix = "g4-";
  second.extents[0].base = f.options.geometry.extentBytes(1);
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
  f.fit();
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
  Status s = f.store->scan([&](uint32_t row, const char *payload) -> Status {
    seen.push_back(row);
    auto v = f.value(row, 9);
    EXPECT_EQ(std::memcmp(payload, v.data(), v.size()), 0);
    return {};
  });
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(seen, rows); // they lie as they were loaded
  // The caller's own failure.
  seen.clear();
  s = f.store->scan([&](uint32_t row, const char *) -> Status {
    seen.push_back(row);
    return row >= 150 ? Status(TRC_CANCELLED, "enough") : Status();
  });
  EXPECT_EQ(s.code(), TRC_CANCELLED);
  EXPECT_LE(seen.back(), 155u);
}

TEST_P(RowStoreTest, ScanTakesWhatIsWanted) {
  f.options.rows = 3000;
  f.fit();
  f.open();
  std::vector<uint32_t> rows(2000), seen, want;
  std::iota(rows.begin(), rows.end(), 0);
  ASSERT_TRUE(f.write({rows.begin(), rows.begin() + 1000}, 1).ok());
  ASSERT_TRUE(f.write({rows.begin() + 1000, rows.end()}, 1).ok());
  ASSERT_TRUE(f.write({40, 1999}, 2).ok()); // they lie last now
  auto wanted = [](uint32_t row) { return row % 40 == 0 || row >= 1990; };
  for (uint32_t row : rows)
    if (wanted(row))
      want.push_back(row); // rows from 2000 on were never written
  Status s = f.store->scan(
      [&](uint32_t row, const char *payload) -> Status {
        seen.push_back(row);
        auto v = f.value(row, row == 40 || row == 1999 ? 2 : 1);
        EXPECT_EQ(std::memcmp(payload, v.data(), v.size()), 0) << row;
        return {};
      },
      wanted);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(seen.back(), 1999u); // by place
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, want);
  // None at all.
  s = f.store->scan(
      [](uint32_t, const char *) { return Status(TRC_INTERNAL, "a row"); },
      [](uint32_t) { return false; });
  EXPECT_TRUE(s.ok()) << s.message();
}

TEST_P(RowStoreTest, ScanSeesOneMoment) {
  f.open();
  std::vector<uint32_t> rows(1000);
  std::iota(rows.begin(), rows.end(), 0);
  ASSERT_TRUE(f.write(rows, 1).ok());
  ASSERT_TRUE(f.write({5, 6}, 2).ok()); // in the tail
  uint32_t seen = 0;
  Status s = f.store->scan([&](uint32_t row, const char *payload) -> Status {
    // Others go on; see that the scan does not.
    if (seen++ == 0)
      std::thread([&] { EXPECT_TRUE(f.write({5, 999}, 3).ok()); }).join();
    auto v = f.value(row, row == 5 || row == 6 ? 2 : 1);
    EXPECT_EQ(std::memcmp(payload, v.data(), v.size()), 0) << row;
    return {};
  });
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(seen, 1000u);
  f.expect({5, 999}, 3);
}

TEST_P(RowStoreTest, RowsCanBeEnumerated) {
  f.options.rows = 200;
  f.fit();
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
  EXPECT_EQ(f.store->space().current, 0u);
}

TEST_P(RowStoreTest, DestructorWaitsForQueuedWrites) {
  f.open();
  f.device->hold();
  std::vector<uint32_t> rows(100);
  std::iota(rows.begin(), rows.end(), 0);
  auto r = f.records(rows, 1);
  ASSERT_TRUE(f.store->write(0, rows.data(), 100, r.data()).ok());
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    f.device->release();
  });
  f.store.reset();
  later.join();
  EXPECT_GT(f.device->writes(), 0u);
}

TEST_P(RowStoreTest, OverwrittenSegmentsAreUsedAgain) {
  f.options.rows = 2000;
  f.fit();
  f.open();
  std::vector<uint32_t> rows(1000);
  std::iota(rows.begin(), rows.end(), 0);
  for (uint32_t v = 1; v <= 60; ++v)
    ASSERT_TRUE(f.write(rows, v).ok()) << v;
  f.expect(rows, 60);
  // Nothing was copied: whole segments died.
  EXPECT_GE(f.store->counters().bytesWritten, 60u * 80 * 1000);
  RowStore::Space space = f.store->space();
  EXPECT_EQ(space.current, 80u * 1000);
  EXPECT_EQ(space.retained, 0u);
  EXPECT_GT(f.store->counters().bytesWritten, space.capacity);
}

INSTANTIATE_TEST_SUITE_P(Backends, RowStoreTest,
                         testing::Values(Backend::Uring, Backend::Threads,
                                         Backend::Memory, Backend::Pmem),
                         [](const auto &info) {
                           return info.param == Backend::Uring     ? "Uring"
                                  : info.param == Backend::Pmem    ? "Pmem"
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
    f.fit();
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
  o = f.options;
  o.geometry.segmentBytes += 512;
  EXPECT_EQ(code(o), TRC_BAD_ARGUMENT);
  o = f.options;
  o.geometry.segments = 2;
  EXPECT_EQ(code(o), TRC_BAD_ARGUMENT);
  o = f.options;
  o.geometry.segments = UINT32_MAX; // of 819 records each
  EXPECT_EQ(code(o), TRC_BAD_ARGUMENT);
}

TEST(RowStoreOpen, ReadOnlyStoresRefuseWrites) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write({1, 2}, 1).ok());
  RowStore::Image image;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  f.options.readOnly = true;
  f.reopen();
  Status s = f.store->adopt(image, true);
  ASSERT_TRUE(s.ok()) << s.message();
  uint64_t writes = f.device->writes();
  f.expect({1, 2}, 1);
  EXPECT_EQ(f.write({1}, 2).code(), TRC_BAD_ARGUMENT);
  EXPECT_EQ(f.store->flush().code(), TRC_BAD_ARGUMENT);
  EXPECT_EQ(f.store->beginCut(2).code(), TRC_BAD_ARGUMENT);
  EXPECT_EQ(f.store->removeLeftovers().code(), TRC_BAD_ARGUMENT);
  f.expect({1, 2}, 1);
  EXPECT_EQ(f.device->writes(), writes);
}

TEST(StoreGeometry, HoldsWhatItSays) {
  for (uint64_t pitch : {16u, 80u, 272u, 4112u, 70000u, 40u << 20})
    for (uint64_t rows : {1u, 1000u, 3000000u})
      for (uint32_t extents : {1u, 3u}) {
        StoreGeometry g = storeGeometry(rows, pitch, 2, extents);
        EXPECT_EQ(g.segmentBytes % storeSector, 0u);
        EXPECT_GE(g.recordsPerSegment(pitch), 8u);
        EXPECT_GE(g.segments * g.recordsPerSegment(pitch), 2 * rows);
        EXPECT_EQ(g.segments % extents, 0u);
        EXPECT_GE(g.extentBytes(extents),
                  g.segments / extents * g.segmentBytes + storeSector);
      }
}

TEST(StoreLayout, DividesExactly) {
  for (uint32_t by : {1u, 2u, 3u, 7u, 51u, 64u, 4097u, 209715u, 1048576u,
                      4294967291u, 4294967295u}) {
    Divider divide(by);
    for (uint64_t n = 0; n <= UINT32_MAX; n += 1 + n / 97)
      for (uint64_t m : {n, n / by * by, n / by * by + by - 1})
        if (m <= UINT32_MAX) {
          ASSERT_EQ(divide.quotient(static_cast<uint32_t>(m)), m / by);
        }
  }
}

TEST(StoreLayout, PlacesDoNotOverlap) {
  StoreGeometry g;
  g.segmentBytes = 8192;
  g.segments = 5;
  StoreLayout layout(g, 80, {0, 40960});
  std::vector<std::pair<uint64_t, uint64_t>> seen[2];
  for (uint32_t place = 0; place < layout.places(); ++place) {
    auto at = layout.positionOf(place);
    EXPECT_EQ(layout.place(layout.segmentOf(place), layout.indexOf(place)),
              place);
    uint64_t base = at.extent ? 40960 : 0;
    EXPECT_GE(at.offset, base + storeSector);
    EXPECT_LE(at.offset + 80, base + g.extentBytes(2));
    seen[at.extent].push_back({at.offset, at.offset + 80});
  }
  for (auto &extent : seen) {
    std::sort(extent.begin(), extent.end());
    for (size_t i = 1; i < extent.size(); ++i)
      EXPECT_LE(extent[i - 1].second, extent[i].first);
  }
}

} // namespace
