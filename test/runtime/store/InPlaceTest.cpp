//===- InPlaceTest.cpp - Rows that are read where they lie ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On a file that stands in for persistent memory. Transfers are counted, so
// what is read in place shows.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/StoreLayout.h"
#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <random>
#include <thread>

using namespace trc;

namespace {

using Fault = FaultDevice::Fault;
using Kind = IoRequest::Kind;

class InPlace : public testing::Test {
protected:
  void SetUp() override {
    if (!f.skip.empty())
      GTEST_SKIP() << f.skip;
  }
  uint64_t reads() const { return f.device->reads(); }
  uint64_t inPlace() const { return f.store->counters().readInPlace; }
  /// Inverts a byte of the file behind the store's back.
  void damage(uint64_t offset) {
    int fd = ::open(f.path("rows").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    char byte = 0;
    ASSERT_EQ(::pread(fd, &byte, 1, static_cast<off_t>(offset)), 1);
    byte = static_cast<char>(~byte);
    ASSERT_EQ(::pwrite(fd, &byte, 1, static_cast<off_t>(offset)), 1);
    ::close(fd);
  }
  static Status nothing(uint32_t, const char *) { return {}; }

  StoreFixture f{DeviceOptions::Backend::Pmem};
};

TEST_F(InPlace, FromTheSecondReadOn) {
  for (uint32_t payload : {4u, 68u, 500u, 4096u, 8196u}) {
    SCOPED_TRACE(payload);
    f.payload(payload);
    f.options.extents[0].path = f.path(std::to_string(payload).c_str());
    f.open();
    std::vector<uint32_t> rows = range(0, 1000);
    std::shuffle(rows.begin(), rows.end(), std::mt19937(payload));
    std::vector<uint32_t> some(rows.begin(), rows.begin() + 300);
    ASSERT_TRUE(f.write(rows, 1).ok());
    ASSERT_TRUE(f.store->flush().ok());
    f.expect(some, 1);
    EXPECT_EQ(inPlace(), 0u);
    uint64_t before = reads();
    f.expect(some, 1);
    EXPECT_EQ(inPlace(), 300u);
    EXPECT_EQ(reads(), before);
    // Some of each kind in one batch.
    f.expect(rows, 1);
    EXPECT_EQ(inPlace(), 600u);
    EXPECT_GT(reads(), before);
    before = reads();
    f.expect(rows, 1);
    EXPECT_EQ(inPlace(), 1600u);
    EXPECT_EQ(reads(), before);
  }
}

TEST_F(InPlace, AWrittenRowIsVerifiedAnew) {
  f.open();
  std::vector<uint32_t> rows = range(0, 1000);
  ASSERT_TRUE(f.write(rows, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.expect(rows, 1);
  f.expect(rows, 1);
  ASSERT_EQ(inPlace(), 1000u);
  // Every place is used again some times over.
  for (uint32_t version = 2; version < 20; ++version) {
    ASSERT_TRUE(f.write(rows, version).ok());
    uint64_t before = inPlace();
    ASSERT_TRUE(f.store->flush().ok());
    f.expect(rows, version);
    EXPECT_EQ(inPlace(), before) << version;
    f.expect(rows, version);
    EXPECT_EQ(inPlace(), before + 1000) << version;
  }
}

/// A lost write leaves a place as it was in an older life, when it had been
/// verified: that must not pass.
TEST_F(InPlace, AnOlderLifeDoesNotCount) {
  f.options.rows = 64;
  f.options.maxWrites = 64;
  f.payload(1008); // four to a sector
  f.open();
  std::vector<uint32_t> rows = range(0, 64);
  std::vector<char> out;
  uint32_t version = 1;
  for (; version < 12; ++version) { // each segment has had several lives
    ASSERT_TRUE(f.write(rows, version).ok());
    ASSERT_TRUE(f.store->flush().ok());
    f.expect(rows, version);
    f.expect(rows, version);
  }
  f.device->add(
      {Fault::Lost, Kind::Write, f.device->writes(), UINT64_MAX, 0, 0});
  ASSERT_TRUE(f.write(rows, version).ok());
  ASSERT_TRUE(f.store->flush().ok());
  Status s = f.read(rows, out);
  EXPECT_EQ(s.code(), TRC_CORRUPT);
  EXPECT_NE(s.message().find("row 0 of group 'g16'"), std::string::npos)
      << s.message();
}

TEST_F(InPlace, AFailedFirstTouchIsTriedAgain) {
  f.open();
  ASSERT_TRUE(f.write({7, 500}, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.device->add({Fault::Error, Kind::Read, reads(), 1, EIO, 0});
  std::vector<char> out;
  Status s = f.read({7, 500}, out);
  EXPECT_EQ(s.code(), TRC_IO);
  f.expect({7, 500}, 1);
  EXPECT_EQ(inPlace(), 0u);
  f.device->add({Fault::Flip, Kind::Read, reads(), 1, 0, 8 * 40});
  f.expect({7, 500}, 1); // no transfer that could fail
  EXPECT_EQ(inPlace(), 2u);
}

TEST_F(InPlace, ScansCheckAndMarkNothing) {
  f.open();
  std::vector<uint32_t> rows = range(0, 1000);
  ASSERT_TRUE(f.write(rows, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  ASSERT_TRUE(f.store->scan(nothing).ok());
  uint64_t before = reads();
  f.expect({3}, 1);
  EXPECT_EQ(reads(), before + 1);
  f.expect({3}, 1);
  EXPECT_EQ(reads(), before + 1);
  ASSERT_TRUE(f.store->scan(nothing).ok());
  EXPECT_GT(reads(), before + 1);
}

/// What is damaged behind a verified row: the read does not notice, and all
/// that goes through transfers does.
TEST_F(InPlace, DamageAfterTheFirstTouch) {
  f.open();
  ASSERT_TRUE(f.write(range(0, 1000), 1).ok());
  RowStore::Image image;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  f.expect({0}, 1);
  // Places follow the order of the rows: row 0 is the first record.
  damage(storeSector + recordHeaderBytes);
  std::vector<char> out;
  ASSERT_TRUE(f.read({0}, out).ok());
  EXPECT_EQ(out[0], static_cast<char>(~f.value(0, 1)[0]));
  Status s = f.store->scan(nothing);
  EXPECT_EQ(s.code(), TRC_CORRUPT);
  EXPECT_NE(s.message().find("row 0 of group 'g16'"), std::string::npos)
      << s.message();
  // Damage before it, and after the next open, is an error of the read.
  damage(storeSector + f.options.storeBytes + recordHeaderBytes);
  EXPECT_EQ(f.read({1}, out).code(), TRC_CORRUPT);
  EXPECT_EQ(f.read({1}, out).code(), TRC_CORRUPT);
  f.reopen();
  ASSERT_TRUE(f.store->adopt(image, true).ok());
  EXPECT_EQ(f.read({0}, out).code(), TRC_CORRUPT);
  f.expect(range(2, 1000), 1);
}

TEST_F(InPlace, RowsThatWereNeverWritten) {
  f.open();
  ASSERT_TRUE(f.write({0, 2}, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.expect({0, 2}, 1);
  std::vector<char> out;
  for (uint32_t row : {1u, 1000u, UINT32_MAX}) {
    Status s = f.read({0, row, 2}, out);
    EXPECT_EQ(s.code(), TRC_NOT_FOUND);
    // The last number stands for a row that is not known.
    EXPECT_NE(s.message().find(row == UINT32_MAX
                                   ? "a row of"
                                   : "row " + std::to_string(row) + " of"),
              std::string::npos)
        << s.message();
  }
}

TEST_F(InPlace, NothingIsReadAfterAFailure) {
  f.open();
  ASSERT_TRUE(f.write({0}, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.expect({0}, 1);
  f.device->failFlush(EIO);
  EXPECT_FALSE(f.store->flush().ok());
  std::vector<char> out;
  EXPECT_EQ(f.read({0}, out).code(), TRC_IO);
}

/// Parts on several threads, in any order, down to single rows.
TEST_F(InPlace, SpreadOverThreads) {
  f.open();
  std::vector<uint32_t> rows = range(0, 1000);
  std::shuffle(rows.begin(), rows.end(), std::mt19937(3));
  ASSERT_TRUE(f.write(rows, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.expect(range(0, 500), 1);
  uint64_t pitch = f.options.payloadBytes;
  for (uint32_t each : {1u, 7u, 400u}) {
    std::vector<char> out(rows.size() * pitch);
    ReadBatch batch;
    batch.rows = rows.data();
    batch.count = static_cast<uint32_t>(rows.size());
    batch.out = out.data();
    batch.pitch = pitch;
    batch.spread = [&](uint32_t count, const ReadBatch::Part &part) {
      auto half = [&](uint32_t which) {
        for (uint32_t at = which * each; at < count; at += 2 * each)
          part(at, std::min(at + each, count));
      };
      std::thread other(half, 1);
      half(0);
      other.join();
    };
    ASSERT_TRUE(f.store->read(batch).ok());
    for (size_t i = 0; i < rows.size(); ++i)
      ASSERT_EQ(std::memcmp(&out[i * pitch], f.value(rows[i], 1).data(), pitch),
                0)
          << rows[i];
  }
  EXPECT_EQ(inPlace(), 500u + 1000u + 1000u);
}

/// Segments are cleaned and written again under reads in place.
TEST_F(InPlace, ReadsBesideWritesAndCleaning) {
  f.options.rows = 2000;
  f.options.maxWrites = 2000;
  f.fit(1.6);
  f.open();
  std::vector<uint32_t> all = range(0, 2000);
  ASSERT_TRUE(f.write(all, 0).ok());
  std::vector<std::atomic<uint32_t>> begun(2000), done(2000);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> batches{0};
  auto reader = [&](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<char> out;
    while (!stop) {
      std::vector<uint32_t> rows, least;
      for (uint32_t r = random() % 7; r < 2000; r += 1 + random() % 13) {
        rows.push_back(r);
        least.push_back(done[r]);
      }
      Status s = f.read(rows, out);
      ASSERT_TRUE(s.ok()) << s.message();
      uint64_t pitch = f.options.payloadBytes + 4;
      for (size_t i = 0; i < rows.size(); ++i) {
        bool found = false;
        for (uint32_t v = least[i]; v <= begun[rows[i]] && !found; ++v)
          found = std::memcmp(&out[i * pitch], f.value(rows[i], v).data(),
                              f.options.payloadBytes) == 0;
        ASSERT_TRUE(found) << "row " << rows[i];
      }
      ++batches;
    }
  };
  std::thread a(reader, 1), b(reader, 2);
  std::mt19937 random(9);
  for (uint32_t turn = 0; (turn < 150 || batches < 20) && !HasFailure();
       ++turn) {
    std::vector<uint32_t> some;
    for (uint32_t r : all)
      if (random() % 3 == 0)
        some.push_back(r);
    // One version per turn and row.
    std::vector<char> records(some.size() * f.options.storeBytes);
    for (size_t i = 0; i < some.size(); ++i) {
      uint32_t version = ++begun[some[i]];
      char *record = &records[i * f.options.storeBytes];
      std::vector<char> v = f.value(some[i], version);
      std::memcpy(record + recordHeaderBytes, v.data(), v.size());
      f.store->seal(some[i], record);
    }
    Status s = f.store->write(
        0, some.data(), static_cast<uint32_t>(some.size()), records.data());
    for (uint32_t r : some)
      done[r] = begun[r].load();
    Status waited = f.store->waitWrites(0);
    EXPECT_TRUE(s.ok() && waited.ok()) << s.message() << waited.message();
    if (!s.ok() || !waited.ok())
      break;
  }
  stop = true;
  a.join();
  b.join();
  EXPECT_GT(inPlace(), 0u);
  EXPECT_GT(f.store->counters().segmentsCleaned, 0u);
}

TEST_F(InPlace, MemoryIsDeclared) {
  f.open();
  uint64_t mapped = f.store->memoryBytes();
  StoreFixture other;
  other.open();
  EXPECT_EQ(mapped - other.store->memoryBytes(),
            8 * f.options.geometry.segments);
}

} // namespace
