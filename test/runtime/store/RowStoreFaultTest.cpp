//===- RowStoreFaultTest.cpp - When the device fails ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/io/CrashFolder.h"
#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>

using namespace trc;

namespace {

using Kind = IoRequest::Kind;
using Fault = FaultDevice::Fault;

constexpr uint64_t always = UINT64_MAX;

TEST(RowStoreFault, ReadErrorNamesThePlace) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write({7, 500}, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.device->add({Fault::Error, Kind::Read, f.device->reads(), 1, EIO, 0});
  std::vector<char> out;
  Status s = f.read({7}, out);
  EXPECT_EQ(s.code(), TRC_IO);
  for (const char *part : {"row 7 ", "'g16'", "offset 4096 ", "rows'"})
    EXPECT_NE(s.message().find(part), std::string::npos) << s.message();
  // The device has recovered, and nothing was lost.
  f.expect({7, 500}, 1);
}

TEST(RowStoreFault, FirstFailedRowIsReported) {
  StoreFixture f;
  f.open();
  auto rows = range(100, 900);
  std::reverse(rows.begin(), rows.end());
  ASSERT_TRUE(f.write(rows, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.device->add({Fault::Error, Kind::Read, 0, always, EIO, 0});
  std::vector<char> out;
  Status s = f.read(rows, out);
  EXPECT_EQ(s.code(), TRC_IO);
  EXPECT_NE(s.message().find("row 100 "), std::string::npos) << s.message();
}

TEST(RowStoreFault, FullDiskIsReportedAndSticks) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write(range(0, 10), 1).ok());
  f.device->add({Fault::Error, Kind::Write, f.device->writes(), 1, ENOSPC, 0});
  uint64_t flushes = f.device->flushes();
  Status s = f.write(range(100, 300), 1);
  EXPECT_EQ(s.code(), TRC_NO_SPACE);
  EXPECT_NE(s.message().find("group 'g16'"), std::string::npos) << s.message();
  // The row may be lost: nothing is done or said to be durable any more.
  EXPECT_EQ(f.write({5}, 2).code(), TRC_NO_SPACE);
  EXPECT_EQ(f.store->flush().code(), TRC_NO_SPACE);
  EXPECT_EQ(f.device->flushes(), flushes);
  std::vector<char> out;
  EXPECT_EQ(f.read({5}, out).code(), TRC_NO_SPACE);
}

TEST(RowStoreFault, QueuedBatchesEndAfterAFailure) {
  StoreFixture f;
  f.open();
  f.device->hold();
  auto rows = range(0, 900);
  auto a = f.records(rows, 1), b = f.records(rows, 2);
  ASSERT_TRUE(f.store->write(0, rows.data(), 900, a.data()).ok());
  ASSERT_TRUE(f.store->write(1, rows.data(), 900, b.data()).ok());
  f.device->add({Fault::Error, Kind::Write, 0, always, EIO, 0});
  f.device->release();
  EXPECT_EQ(f.store->waitWrites(1).code(), TRC_IO);
  EXPECT_EQ(f.store->waitWrites(0).code(), TRC_IO);
}

TEST(RowStoreFault, ShortTransfersGoOn) {
  StoreFixture f;
  f.payload(2000);
  f.open();
  f.device->add({Fault::Short, Kind::Write, 0, always, 0, 1024});
  f.device->add({Fault::Short, Kind::Read, 0, always, 0, 512});
  ASSERT_TRUE(f.write(range(3, 40), 1).ok());
  ASSERT_TRUE(f.write(range(40, 80), 2).ok());
  f.expect(range(3, 40), 1);
  f.expect(range(40, 80), 2);
}

TEST(RowStoreFault, TornWriteFailsItsCheck) {
  StoreFixture f;
  f.payload(1200); // three blocks
  f.open();
  f.device->add({Fault::Torn, Kind::Write, f.device->writes(), 1, 0, 512});
  ASSERT_TRUE(f.write({1, 2}, 1).ok());
  ASSERT_TRUE(f.store->flush().ok()); // the device lies
  std::vector<char> out;
  Status s = f.read({1}, out);
  EXPECT_EQ(s.code(), TRC_CORRUPT);
  EXPECT_NE(s.message().find("row 1 of group 'g16' at offset 4096"),
            std::string::npos)
      << s.message();
  ASSERT_TRUE(f.write({0}, 1).ok()); // others live
  ASSERT_TRUE(f.store->flush().ok());
  f.expect({0}, 1);
}

/// A segment's older life must not pass for the write that was lost.
TEST(RowStoreFault, LostWriteFailsItsCheck) {
  StoreFixture f;
  f.options.rows = 20000;
  f.options.maxWrites = 20000;
  f.fit();
  f.open();
  uint32_t each = static_cast<uint32_t>(
      f.options.geometry.recordsPerSegment(f.options.storeBytes));
  auto rows = range(0, each); // a segment full of them, again and again
  uint32_t versions = 0;
  while (f.store->counters().bytesWritten <
         uint64_t(f.options.geometry.segments + 1) *
             f.options.geometry.segmentBytes)
    ASSERT_TRUE(f.write(rows, ++versions).ok());
  f.device->add({Fault::Lost, Kind::Write, f.device->writes(), always, 0, 0});
  ASSERT_TRUE(f.write(rows, versions).ok()); // even the same values
  std::vector<char> out;
  EXPECT_EQ(f.read({8}, out).code(), TRC_CORRUPT);
}

/// Nor must what an earlier run left there, and no checkpoint named.
TEST(RowStoreFault, LostWriteAfterReopeningFailsItsCheck) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write(range(0, 500), 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  f.reopen();
  f.device->add({Fault::Lost, Kind::Write, f.device->writes(), always, 0, 0});
  ASSERT_TRUE(f.write(range(0, 500), 2).ok());
  ASSERT_TRUE(f.store->flush().ok());
  std::vector<char> out;
  EXPECT_EQ(f.read({8}, out).code(), TRC_CORRUPT);
}

TEST(RowStoreFault, EveryFlippedBitIsFound) {
  StoreFixture f(DeviceOptions::Backend::Threads);
  f.payload(20);
  f.open();
  ASSERT_TRUE(f.write({0, 1, 2}, 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  int fd = ::open(f.path("rows").c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  for (int bit = 0; bit < (8 + 20) * 8; ++bit) {
    char c;
    off_t at = storeSector + f.options.storeBytes + bit / 8; // row 1
    ASSERT_EQ(pread(fd, &c, 1, at), 1);
    c ^= 1 << bit % 8;
    ASSERT_EQ(pwrite(fd, &c, 1, at), 1);
    fdatasync(fd); // the store may read around the page cache
    std::vector<char> out;
    ASSERT_EQ(f.read({1}, out).code(), TRC_CORRUPT) << "bit " << bit;
    c ^= 1 << bit % 8;
    ASSERT_EQ(pwrite(fd, &c, 1, at), 1);
  }
  fdatasync(fd);
  ::close(fd);
  f.expect({0, 1, 2}, 1);
}

TEST(RowStoreFault, FailedFlushPoisons) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write({3}, 1).ok());
  uint64_t flushes = f.device->flushes();
  f.device->failFlush(EIO);
  EXPECT_EQ(f.store->flush().code(), TRC_IO);
  EXPECT_EQ(f.device->flushes(), flushes + 1);
  f.device->failFlush(0); // the device is fine again; the pages may be gone
  EXPECT_EQ(f.store->flush().code(), TRC_IO);
  EXPECT_EQ(f.device->flushes(), flushes + 1); // never tried again
  EXPECT_EQ(f.write({4}, 1).code(), TRC_IO);
}

TEST(RowStoreFault, TruncatedFileIsAnError) {
  StoreFixture f(DeviceOptions::Backend::Threads);
  f.open();
  ASSERT_TRUE(f.write({900}, 1).ok());
  RowStore::Image image;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  ASSERT_EQ(truncate(f.path("rows").c_str(), 4096), 0);
  std::vector<char> out;
  Status s = f.read({900}, out);
  EXPECT_EQ(s.code(), TRC_IO);
  EXPECT_NE(s.message().find("row 900 "), std::string::npos) << s.message();
  f.options.create = false;
  s = RowStore::open(*f.device, f.options).takeStatus();
  EXPECT_EQ(s.code(), TRC_CORRUPT);
  EXPECT_NE(s.message().find("cut off"), std::string::npos) << s.message();
}

TEST(RowStoreFault, ScanStopsAtADamagedRow) {
  StoreFixture f;
  f.payload(1200);
  f.open();
  f.device->add({Fault::Torn, Kind::Write, f.device->writes(), 1, 0, 512});
  ASSERT_TRUE(f.write(range(0, 50), 1).ok());
  ASSERT_TRUE(f.store->flush().ok());
  Status s = f.store->scan([](uint32_t, const char *) -> Status { return {}; });
  EXPECT_EQ(s.code(), TRC_CORRUPT);
  EXPECT_NE(s.message().find("row "), std::string::npos) << s.message();
}

/// The file system of the index files is full; the checkpoint before stays.
TEST(RowStoreFault, FullFolderFailsTheCheckpointOnly) {
  StoreFixture f;
  f.open();
  ASSERT_TRUE(f.write(range(0, 100), 1).ok());
  RowStore::Image image, none;
  ASSERT_TRUE(f.checkpoint(1, image).ok());
  ASSERT_TRUE(f.write(range(0, 100), 2).ok());
  uint64_t step = 0; // of creating, writing, syncing, renaming, syncing
  for (Status s(TRC_NO_SPACE, ""); !s.ok(); ++step) {
    CrashFolder folder(f.folder.path.string());
    folder.failAt(step, ENOSPC);
    s = f.checkpoint(2 + step, none);
    if (s.ok())
      continue;
    EXPECT_EQ(s.code(), TRC_NO_SPACE) << step;
    EXPECT_NE(s.message().find(f.folder.path.string()), std::string::npos)
        << s.message();
  }
  EXPECT_GE(step, 6u);
  ASSERT_TRUE(f.store->forget(1 + step).ok());  // the one that went through
  ASSERT_TRUE(f.write(range(50, 100), 3).ok()); // the store goes on
  RowStore::Image third;
  Status s = f.checkpoint(100, third);
  ASSERT_TRUE(s.ok()) << s.message();
  f.reopen();
  ASSERT_TRUE(f.store->adopt(image, false).ok());
  s = f.store->adopt(third, true);
  ASSERT_TRUE(s.ok()) << s.message();
  f.expect(range(0, 50), 2);
  f.expect(range(50, 100), 3);
}

} // namespace
