//===- CleaningTest.cpp - Room is made, or somebody is told ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <fstream>
#include <malloc.h>
#include <random>
#include <thread>

using namespace trc;

namespace {

/// Twice the logical bytes, one retained checkpoint, half of the rows written
/// between two: the promise of the default capacity.
TEST(Cleaning, WritesAtMostHalfAsMuchAgain) {
  StoreFixture f;
  f.payload(500);
  f.options.rows = 20000;
  f.options.maxWrites = 1000;
  f.fit(storeFill(1, 0.5));
  f.open();
  std::mt19937 random(1);
  std::vector<uint32_t> version(f.options.rows, 1);
  for (uint32_t r = 0; r < f.options.rows; r += 1000)
    ASSERT_TRUE(f.write(range(r, r + 1000), 1).ok());
  RowStore::Counters before = f.store->counters();
  Image image;
  for (uint32_t epoch = 2; epoch < 22; ++epoch) {
    for (uint32_t i = 0; i < 20; ++i) {
      std::vector<uint32_t> rows;
      for (uint32_t k = 0; k < 500; ++k)
        rows.push_back(random() % f.options.rows);
      std::sort(rows.begin(), rows.end());
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
      std::shuffle(rows.begin(), rows.end(), random);
      Status s = f.write(rows, epoch);
      ASSERT_TRUE(s.ok()) << s.message();
      for (uint32_t row : rows)
        version[row] = epoch;
    }
    ASSERT_TRUE(f.checkpoint(epoch, image).ok());
    if (epoch > 2) {
      ASSERT_TRUE(f.store->forget(epoch - 1).ok());
    }
  }
  RowStore::Counters after = f.store->counters();
  EXPECT_GT(after.segmentsCleaned, 0u);
  double written =
             static_cast<double>(after.bytesWritten - before.bytesWritten),
         asked = static_cast<double>(after.rowsWritten - before.rowsWritten) *
                 f.options.storeBytes;
  EXPECT_LE(written / asked, 1.5);
  std::printf("write amplification %.3f, index bytes %.3f of it\n",
              written / asked, static_cast<double>(after.bytesIndex) / asked);
  for (uint32_t row = 0; row < f.options.rows; row += 7)
    f.expect({row}, version[row]);
}

TEST(Cleaning, FullIsToldWithTheFill) {
  StoreFixture f;
  f.options.rows = 10000;
  f.options.maxWrites = 10000;
  f.fit(1.2);
  int asked = 0;
  f.options.onFull = [&] {
    ++asked;
    return asked == 1 ? f.store->forget(1)
                      : Status(TRC_FULL, "the policy says no");
  };
  f.open();
  auto all = range(0, 10000);
  std::vector<uint32_t> even;
  for (uint32_t r = 0; r < 10000; r += 2)
    even.push_back(r);
  ASSERT_TRUE(f.write(all, 1).ok());
  Image image;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  Status s = f.write(even, 2); // rows and checkpoint need 1.5
  EXPECT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(asked, 1);
  ASSERT_TRUE(f.checkpoint(2, image).ok());
  s = f.write(even, 3);
  EXPECT_EQ(s.code(), TRC_FULL);
  EXPECT_NE(s.message().find("the policy says no"), std::string::npos)
      << s.message();
  EXPECT_EQ(asked, 2);
  // Nothing is broken: what was there reads, and room helps.
  std::vector<char> out;
  ASSERT_TRUE(f.read(all, out).ok());
  ASSERT_TRUE(f.store->forget(2).ok());
  s = f.write(even, 4);
  EXPECT_TRUE(s.ok()) << s.message();
  f.expect(even, 4);

  f.options.onFull = nullptr;
  f.open();
  ASSERT_TRUE(f.write(all, 1).ok());
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  s = f.write(even, 2);
  EXPECT_EQ(s.code(), TRC_FULL);
  for (const char *part : {"'g16'", "rows'", "current rows hold ",
                           "checkpoints hold ", "more capacity"})
    EXPECT_NE(s.message().find(part), std::string::npos) << s.message();
}

/// A checkpoint is kept while everything around it is cleaned over and over:
/// its moves stay few files, and it stays what it was.
TEST(Cleaning, MovesAreMerged) {
  StoreFixture f;
  f.options.rows = 5000;
  f.options.maxWrites = 5000;
  f.options.mergeMoves = 3;
  f.fit(2.2);
  f.open();
  ASSERT_TRUE(f.write(range(0, 5000), 1).ok());
  Image image;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  std::mt19937 random(5);
  uint64_t made = 0;
  size_t most = 0;
  for (uint32_t v = 2; v < 400; ++v) {
    std::vector<uint32_t> rows;
    for (uint32_t r = random() % 20; r < 5000; r += 1 + random() % 40)
      rows.push_back(r);
    Status s = f.write(rows, v);
    ASSERT_TRUE(s.ok()) << s.message();
    size_t files = 0;
    for (const auto &e : std::filesystem::directory_iterator(f.folder.path)) {
      std::string name = e.path().filename().string();
      if (name.rfind("g16-moves-", 0) != 0 ||
          name.find(".tmp") != std::string::npos)
        continue;
      ++files;
      made = std::max<uint64_t>(made, std::stoull(name.substr(10)));
    }
    most = std::max(most, files);
  }
  EXPECT_GT(made, 30u);
  EXPECT_LE(most, 12u);
  f.reopen();
  Status s = f.store->adopt(image, true);
  ASSERT_TRUE(s.ok()) << s.message();
  f.expect(range(0, 5000), 1);
}

std::vector<uint32_t> joined(std::vector<uint32_t> a,
                             const std::vector<uint32_t> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Records that a checkpoint names fill the cleaner's segment, whose others are
/// dead by then: it is the emptiest, so it is cleaned in the same group, and
/// the file of moves says twice where a row went. The second move's place is
/// below the first one's, so no order but that of their making will do.
TEST(Cleaning, RecordsMoveTwiceInOneGroup) {
  StoreFixture f;
  f.options.rows = 2000;
  f.options.maxWrites = 2000;
  f.options.geometry.segmentBytes = 16384;
  f.options.geometry.segments = 12; // cleaned with less than three free
  const uint32_t each = 204;
  ASSERT_EQ(f.options.geometry.recordsPerSegment(f.options.storeBytes), each);
  f.open();
  auto write = [&](const std::vector<uint32_t> &rows, uint32_t version) {
    Status s = f.write(rows, version);
    EXPECT_TRUE(s.ok()) << s.message();
  };
  auto cleaned = [&](uint64_t segments) {
    for (int i = 0; i < 20000; ++i) {
      if (f.store->counters().segmentsCleaned >= segments)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GE(f.store->counters().segmentsCleaned, segments);
  };
  auto churned = range(0, each), sparse = range(300, 300 + each);
  // Segments 0 to 7: only the last one is of use.
  for (uint32_t v = 1; v <= 8; ++v)
    write(churned, v);
  // 8: 70 live records; 9: full.
  write(sparse, 9);
  write(joined(range(370, 300 + each), range(600, 670)), 10);
  Image image;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  // 10, 11 and 0: 60 live records each, which no checkpoint names; 1 to 3:
  // full.
  std::vector<uint32_t> survivors, rest;
  for (uint32_t begin : {700, 1000, 1300}) {
    write(range(begin, begin + each), 11);
    survivors = joined(survivors, range(begin, begin + 60));
    rest = joined(rest, range(begin + 60, begin + each));
  }
  write(joined(rest, range(1600, 1780)), 12);
  // One more begins segment 4; the three are copied to 5, and die there.
  write({1600}, 13);
  cleaned(3);
  write(survivors, 14);
  // The rest of 4, all of 6, and 10: segment 8 fills 5, and both are cleaned.
  write(joined(churned, range(600, 624)), 15);
  cleaned(5);
  for (uint32_t v = 16; v < 40; ++v)
    write(churned, v);
  f.reopen();
  Status s = f.store->adopt(image, true);
  ASSERT_TRUE(s.ok()) << s.message();
  f.expect(churned, 8);
  f.expect(range(300, 370), 9);
  f.expect(joined(range(370, 300 + each), range(600, 670)), 10);
}

TEST(Cleaning, DamageStopsTheStoreAndIsNamed) {
  StoreFixture f(DeviceOptions::Backend::Threads);
  f.options.rows = 20000;
  f.options.maxWrites = 20000;
  f.fit(1.6);
  f.open();
  ASSERT_TRUE(f.write(range(0, 20000), 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  {
    std::fstream file(f.path("rows"),
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(4096 + 80 * 5 + 20); // row 5
    file.put('?');
  }
  Status s;
  for (uint32_t v = 2; v < 40 && s.ok(); ++v) {
    std::vector<uint32_t> rows;
    for (uint32_t r = v % 2; r < 20000; r += 1 + r % 3)
      if (r != 5)
        rows.push_back(r);
    s = f.write(rows, v);
  }
  EXPECT_EQ(s.code(), TRC_CORRUPT);
  EXPECT_NE(s.message().find("row 5 of group 'g16' at offset 4496"),
            std::string::npos)
      << s.message();
  EXPECT_EQ(f.write({1}, 99).code(), TRC_CORRUPT);
}

/// Reads go on while the segments that they look into are cleaned, freed and
/// written again.
TEST(Cleaning, ReadsUnderWay) {
  StoreFixture f;
  f.options.rows = 5000;
  f.options.maxWrites = 2500;
  f.fit(1.5);
  f.open();
  ASSERT_TRUE(f.write(range(0, 2500), 1).ok());
  ASSERT_TRUE(f.write(range(2500, 5000), 1).ok());
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> reads{0};
  std::thread reader([&] {
    // Row r only ever holds versions of its own: 1, or what is written below.
    std::vector<char> out;
    std::vector<uint32_t> rows;
    for (uint32_t r = 1; r < 5000; r += 13)
      rows.push_back(r);
    while (!stop) {
      Status s = f.read(rows, out);
      ASSERT_TRUE(s.ok()) << s.message();
      ++reads;
    }
  });
  std::mt19937 random(3);
  Status s;
  for (uint32_t v = 2; v < 150 && s.ok(); ++v) {
    uint32_t begin = random() % 4000;
    s = f.write(range(begin, begin + 1000), v);
  }
  stop = true;
  reader.join();
  EXPECT_TRUE(s.ok()) << s.message();
  EXPECT_GT(f.store->counters().segmentsCleaned, 0u);
  EXPECT_GT(reads, 0u);
}

/// What a store holds on the heap stays under what it declares.
TEST(Cleaning, MemoryIsDeclared) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) ||           \
    defined(__has_feature)
  GTEST_SKIP() << "the heap is not glibc's, or the compiler may not say so";
#endif
  StoreFixture f(DeviceOptions::Backend::Threads);
  f.payload(4);
  f.options.rows = 2000000;
  f.options.maxWrites = 20000;
  f.options.writeSlots = 1;
  f.options.retained = 1;
  f.fit(2.2);
  malloc_trim(0);
  auto held = [] {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  size_t before = held();
  f.open();
  uint64_t declared = f.store->memoryBytes();
  size_t peak = 0;
  std::vector<uint32_t> rows(20000);
  std::vector<char> records(rows.size() * f.options.storeBytes);
  size_t own = rows.capacity() * 4 + records.capacity();
  Image image;
  for (uint32_t v = 1; v <= 150; ++v) {
    for (uint32_t i = 0; i < rows.size(); ++i)
      rows[i] = (v * 20000 + i) % f.options.rows;
    for (uint32_t i = 0; i < rows.size(); ++i)
      f.store->seal(rows[i], &records[i * f.options.storeBytes]);
    ASSERT_TRUE(f.store->write(0, rows.data(), 20000, records.data()).ok());
    ASSERT_TRUE(f.store->waitWrites(0).ok());
    peak = std::max(peak, held() - before - own);
    if (v == 100 || v == 125) {
      ASSERT_TRUE(f.store->beginCut(v).ok());
    }
    if (v == 110 || v == 126) {
      ASSERT_TRUE(f.store->finishCut(image).ok());
      f.store->keepCut();
    }
    peak = std::max(peak, held() - before - own);
  }
  EXPECT_LE(peak, declared);
  std::printf("%zu of %lu bytes\n", peak, declared);
}

/// Rows whose home is memory: whatever part of them changes between two
/// checkpoints, there is room for all that are retained, for the closed state
/// that a run began with and for the one that is being made.
TEST(Cleaning, AMemoryHomeHasRoomForWholeCopies) {
  std::mt19937 random(4);
  for (uint32_t keep : {1u, 2u, 5u})
    for (uint32_t rows : {10u, 700u, 5000u}) {
      SCOPED_TRACE(testing::Message() << keep << " of " << rows);
      StoreFixture f;
      f.options.rows = f.options.maxWrites = rows;
      f.options.onlyCuts = true;
      f.options.retained = keep + 1;
      f.payload(rows < 1000 ? 100 : 200);
      f.fit(memoryHomeSpace(storeFill(keep, 0.5), keep, rows,
                            f.options.storeBytes));
      f.open();
      std::vector<uint32_t> version(rows, 0);
      for (uint32_t id = 1; id < 40; ++id) {
        // All of them, or some: that leaves holes everywhere.
        uint32_t part = id % 4 == 0 ? 1 + random() % 9 : 1;
        std::vector<uint32_t> changed;
        std::vector<uint64_t> marks((rows + 63) / 64, 0);
        for (uint32_t r = 0; r < rows; ++r)
          if (id == 1 || random() % part == 0) {
            changed.push_back(r);
            version[r] = id;
            marks[r / 64] |= uint64_t(1) << r % 64;
          }
        ASSERT_TRUE(f.store->beginCutOf(id, marks.data()).ok());
        Status s = f.write(changed, id);
        ASSERT_TRUE(s.ok()) << id << ": " << s.message();
        Image image;
        s = f.store->finishCut(image);
        ASSERT_TRUE(s.ok()) << id << ": " << s.message();
        f.store->keepCut();
        if (id > keep + 1) {
          ASSERT_TRUE(f.store->forget(id - keep - 1).ok());
        }
      }
      for (uint32_t r = 0; r < rows; r += 7)
        f.expect({r}, version[r]);
    }
  // Large ones have what the plan says.
  EXPECT_EQ(memoryHomeSpace(2.5, 2, 1 << 30, 80), 2.5);
  EXPECT_EQ(memoryHomeSpace(9.5, 2, 1000, 80), 9.5);
}

} // namespace
