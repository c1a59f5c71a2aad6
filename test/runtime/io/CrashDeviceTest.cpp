//===- CrashDeviceTest.cpp - The test double forgets as it says -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A double that is too kind proves nothing, so what a power loss may do is
// looked for: over the seeds each outcome must really occur, and no other.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/io/CrashDevice.h"
#include "test/runtime/io/FaultDevice.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <set>
#include <thread>
#include <vector>

using namespace trc;

namespace {

class Once final : public IoRequest {
public:
  Once(Kind k, uint64_t at, uint32_t n, char fill) : fill(fill) {
    kind = k;
    offset = at;
    bytes = n;
  }
  void begin(char *buffer) override {
    if (kind == Kind::Write)
      std::memset(buffer, fill, bytes);
  }
  bool complete(int32_t r, char *) override {
    done.set_value(r);
    return false;
  }
  int32_t run(Device &device) {
    device.submit(*this);
    return done.get_future().get();
  }

private:
  char fill;
  std::promise<int32_t> done;
};

int32_t put(Device &device, uint64_t at, uint32_t bytes, char fill) {
  return Once(IoRequest::Kind::Write, at, bytes, fill).run(device);
}

constexpr uint64_t seeds = 400;

TEST(CrashDevice, KeepsWhatWasFlushedInEveryMode) {
  for (auto tear : {CrashDevice::Tear::Sectors, CrashDevice::Tear::Bytes,
                    CrashDevice::Tear::CacheLines}) {
    CrashDevice::Options options;
    options.tear = tear;
    CrashDevice device(options);
    ASSERT_TRUE(device.openFile("x", 65536, true).ok());
    EXPECT_EQ(put(device, 4096, 8192, 'a'), 8192);
    EXPECT_EQ(device.unflushed(), 1u);
    ASSERT_TRUE(device.flush(0).ok());
    EXPECT_EQ(device.unflushed(), 0u);
    EXPECT_EQ(put(device, 16384, 4096, 'b'), 4096);
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      auto after = device.crash(seed);
      EXPECT_EQ(after->size("x"), 65536u);
      EXPECT_EQ(after->bytes("x", 0, 16384), std::string(4096, 0) +
                                                 std::string(8192, 'a') +
                                                 std::string(4096, 0));
      EXPECT_EQ(after->unflushed(), 0u);
    }
  }
}

/// Which of the two writes are whole (2), gone (0) or torn (1).
TEST(CrashDevice, KeepsLosesAndTearsInAnyOrder) {
  CrashDevice device;
  ASSERT_TRUE(device.openFile("x", 65536, true).ok());
  ASSERT_TRUE(device.flush(0).ok());
  EXPECT_EQ(put(device, 0, 4096, 'a'), 4096);
  EXPECT_EQ(put(device, 8192, 4096, 'b'), 4096);
  std::set<std::pair<int, int>> seen;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    auto after = device.crash(seed);
    auto state = [&](uint64_t at, char fill) {
      std::string bytes = after->bytes("x", at, 4096);
      for (size_t s = 0; s < bytes.size(); s += 512) {
        std::string sector = bytes.substr(s, 512);
        EXPECT_TRUE(sector == std::string(512, fill) ||
                    sector == std::string(512, 0)); // sectors are whole
      }
      return bytes == std::string(4096, fill) ? 2
             : bytes == std::string(4096, 0)  ? 0
                                              : 1;
    };
    seen.insert({state(0, 'a'), state(8192, 'b')});
    EXPECT_EQ(after->bytes("x", 0, 65536),
              device.crash(seed)->bytes("x", 0, 65536)); // of the seed alone
  }
  EXPECT_EQ(seen.size(), 9u);
}

TEST(CrashDevice, AnOlderWriteOfAPlaceMaySurviveTheNewer) {
  CrashDevice device;
  ASSERT_TRUE(device.openFile("x", 4096, true).ok());
  ASSERT_TRUE(device.flush(0).ok());
  EXPECT_EQ(put(device, 0, 512, 'a'), 512);
  EXPECT_EQ(put(device, 0, 512, 'b'), 512);
  std::set<char> seen;
  for (uint64_t seed = 0; seed < seeds; ++seed)
    seen.insert(device.crash(seed)->bytes("x", 0, 1)[0]);
  EXPECT_EQ(seen, (std::set<char>{0, 'a', 'b'}));
}

TEST(CrashDevice, TearsBytesAndWordsOfCacheLines) {
  for (auto tear : {CrashDevice::Tear::Bytes, CrashDevice::Tear::CacheLines}) {
    CrashDevice::Options options;
    options.tear = tear;
    CrashDevice device(options);
    ASSERT_TRUE(device.openFile("x", 4096, true).ok());
    ASSERT_TRUE(device.flush(0).ok());
    EXPECT_EQ(put(device, 0, 1024, 'a'), 1024);
    bool oddByte = false, insideLine = false;
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      std::string bytes = device.crash(seed)->bytes("x", 0, 1024);
      for (size_t i = 1; i < bytes.size(); ++i)
        if (bytes[i] != bytes[i - 1]) {
          oddByte |= i % 8 != 0;
          insideLine |= i % 64 != 0;
        }
    }
    EXPECT_EQ(oddByte, tear == CrashDevice::Tear::Bytes);
    EXPECT_TRUE(insideLine);
  }
}

TEST(CrashDevice, AFileThatWasNeverFlushedMayBeMissing) {
  CrashDevice device;
  ASSERT_TRUE(device.openFile("x", 8192, true).ok());
  std::set<uint64_t> sizes;
  bool missing = false;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    auto after = device.crash(seed);
    auto opened = after->openFile("x", 0, false);
    if (opened.ok())
      sizes.insert(after->size("x"));
    else
      missing = opened.takeStatus().code() == TRC_NOT_FOUND;
  }
  EXPECT_TRUE(missing);
  EXPECT_TRUE(sizes.count(8192));
}

TEST(CrashDevice, AFlushLeavesOutWhatIsStillUnderWay) {
  CrashDevice inner;
  FaultDevice device(inner);
  ASSERT_TRUE(device.openFile("x", 4096, true).ok());
  device.hold(0, 512);
  Once held(IoRequest::Kind::Write, 0, 512, 'a');
  std::promise<int32_t> done;
  std::thread writer([&] { done.set_value(held.run(device)); });
  EXPECT_EQ(put(device, 512, 512, 'b'), 512);
  ASSERT_TRUE(device.flush(0).ok());
  device.release();
  EXPECT_EQ(done.get_future().get(), 512);
  writer.join();
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    std::string bytes = inner.crash(seed)->bytes("x", 511, 2);
    seen.insert(bytes);
    EXPECT_EQ(bytes[1], 'b');
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(CrashDevice, TheSwitchStopsAtTheOperationItWasSetTo) {
  for (uint64_t n = 0; n <= 5; ++n) {
    PowerSwitch power;
    power.cutAt(n);
    CrashDevice::Options options;
    options.power = &power;
    CrashDevice device(options);
    ASSERT_TRUE(device.openFile("x", 65536, true).ok());
    // Operations 0..4.
    int32_t first = put(device, 0, 4096, 'a');
    Status flushed = device.flush(0);
    int32_t second = put(device, 4096, 4096, 'b');
    Status again = device.flush(0);
    int32_t third = put(device, 8192, 4096, 'c');
    EXPECT_EQ(first, n > 0 ? 4096 : -EIO);
    EXPECT_EQ(flushed.ok(), n > 1);
    EXPECT_EQ(second, n > 2 ? 4096 : -EIO);
    EXPECT_EQ(again.ok(), n > 3);
    EXPECT_EQ(third, n > 4 ? 4096 : -EIO);
    EXPECT_EQ(power.gone(), n < 5);
    EXPECT_EQ(power.operations(), std::min<uint64_t>(n + 1, 5));
    EXPECT_EQ(Once(IoRequest::Kind::Read, 0, 512, 0).run(device),
              n < 5 ? -EIO : 512);
    // What was under way may be there; what came later is not.
    bool there = false;
    for (uint64_t seed = 0; seed < 64; ++seed) {
      auto after = device.crash(seed);
      if (n > 1) {
        EXPECT_EQ(after->bytes("x", 0, 4096), std::string(4096, 'a'));
      } else {
        EXPECT_NE(after->bytes("x", 4096, 1), "b");
      }
      there |= after->bytes("x", 4096, 1) == "b";
    }
    EXPECT_EQ(there, n >= 2);
  }
}

TEST(CrashDevice, ThreadsDoNotChangeWhatASeedGives) {
  auto story = [](uint64_t seed) {
    CrashDevice::Options options;
    options.depth = 8;
    CrashDevice device(options);
    EXPECT_TRUE(device.openFile("x", 1 << 20, true).ok());
    std::vector<std::thread> pool;
    for (int t = 0; t < 4; ++t)
      pool.emplace_back([&device, t] {
        for (int i = 0; i < 16; ++i)
          put(device, (t * 16 + i) * 4096, 4096, static_cast<char>('a' + t));
      });
    for (auto &t : pool)
      t.join();
    return device.crash(seed)->bytes("x", 0, 1 << 20);
  };
  for (uint64_t seed = 0; seed < 8; ++seed)
    EXPECT_EQ(story(seed), story(seed));
}

TEST(CrashDevice, StandsInForADeviceThatSomebodyElseOpens) {
  CrashDevice disk;
  setDeviceOpener([&](const DeviceOptions &) {
    return Result<std::unique_ptr<Device>>(disk.again());
  });
  auto opened = openDevice({});
  setDeviceOpener(nullptr);
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE((*opened)->openFile("x", 4096, true).ok());
  EXPECT_EQ(put(**opened, 0, 512, 'a'), 512);
  ASSERT_TRUE((*opened)->flush(0).ok());
  opened->reset();
  EXPECT_EQ(disk.crash(0)->bytes("x", 0, 1), "a");
  auto real = openDevice({});
  ASSERT_TRUE(real.ok());
  EXPECT_NE((*real)->describe(), disk.describe());
}

TEST(CrashDevice, GoesOnAfterACrashAndTellsDamage) {
  CrashDevice device;
  ASSERT_TRUE(device.openFile("x", 4096, true).ok());
  EXPECT_EQ(put(device, 0, 4096, 'a'), 4096);
  ASSERT_TRUE(device.flush(0).ok());
  auto after = device.crash(1);
  ASSERT_TRUE(after->openFile("x", 8192, false).ok());
  EXPECT_EQ(put(*after, 4096, 4096, 'b'), 4096);
  ASSERT_TRUE(after->flush(0).ok());
  EXPECT_EQ(device.size("x"), 4096u); // apart from the one it came from
  after->poke("x", 1, "Z");
  after->truncate("x", 6000);
  auto last = after->crash(2);
  EXPECT_EQ(last->size("x"), 6000u);
  EXPECT_EQ(last->bytes("x", 0, 3), "aZa");
  EXPECT_EQ(last->bytes("x", 5999, 100), "b");
  EXPECT_EQ(last->bytes("nothing", 0, 1), "");
}

} // namespace
