//===- FaultDeviceTest.cpp - The test double does what it says ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/io/FaultDevice.h"
#include "test/runtime/io/CrashDevice.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>

using namespace trc;

namespace {

class Once final : public IoRequest {
public:
  Once(Kind k, char fill) : fill(fill) {
    kind = k;
    bytes = 2048;
  }
  void begin(char *buffer) override { std::memset(buffer, fill, bytes); }
  bool complete(int32_t r, char *buffer) override {
    std::memcpy(seen, buffer, sizeof seen);
    done.set_value(r);
    return false;
  }
  int32_t run(Device &device) {
    device.submit(*this);
    return done.get_future().get();
  }
  char seen[2048];

private:
  char fill;
  std::promise<int32_t> done;
};

TEST(FaultDevice, EachFaultHitsOnceWhereItShould) {
  DeviceOptions options;
  options.backend = DeviceOptions::Backend::Memory;
  auto inner = openDevice(options);
  ASSERT_TRUE(inner.ok());
  FaultDevice device(**inner);
  ASSERT_TRUE(device.openFile("x", 65536, true).ok());

  using Kind = IoRequest::Kind;
  using Fault = FaultDevice::Fault;
  EXPECT_EQ(Once(Kind::Write, 'a').run(device), 2048); // write 0
  device.add({Fault::Error, Kind::Write, 1, 1, ENOSPC, 0});
  device.add({Fault::Lost, Kind::Write, 2, 1, 0, 0});
  device.add({Fault::Torn, Kind::Write, 3, 1, 0, 1024});
  device.add({Fault::Short, Kind::Read, 2, 1, 0, 512});

  Once refused(Kind::Write, 'b');
  EXPECT_EQ(refused.run(device), -ENOSPC);
  EXPECT_EQ(std::string(refused.seen, 2048), std::string(2048, 'b'));
  EXPECT_EQ(Once(Kind::Write, 'c').run(device), 2048); // lost
  Once r0(Kind::Read, 0);
  EXPECT_EQ(r0.run(device), 2048);
  EXPECT_EQ(std::string(r0.seen, 2048), std::string(2048, 'a'));

  EXPECT_EQ(Once(Kind::Write, 'd').run(device), 2048); // torn
  Once r1(Kind::Read, 0);
  EXPECT_EQ(r1.run(device), 2048);
  EXPECT_EQ(std::string(r1.seen, 2048),
            std::string(1024, 'd') + std::string(1024, 'a'));
  EXPECT_EQ(Once(Kind::Read, 0).run(device), 512); // short

  device.failFlush(EIO, 1);
  EXPECT_TRUE(device.flush(0).ok());
  EXPECT_EQ(device.flush(0).code(), TRC_IO);
  device.failFlush(0);
  EXPECT_TRUE(device.flush(0).ok());
}

TEST(FaultDevice, FlipsBitsAndTakesItsTime) {
  CrashDevice inner;
  FaultDevice device(inner);
  ASSERT_TRUE(device.openFile("x", 65536, true).ok());
  using Kind = IoRequest::Kind;
  using Fault = FaultDevice::Fault;
  device.add({Fault::Flip, Kind::Write, 0, 1, 0, 9});
  device.add({Fault::Flip, Kind::Read, 1, 1, 0, 2});
  device.add({Fault::Slow, Kind::Read, 2, 1, 0, 20000});
  EXPECT_EQ(Once(Kind::Write, 'a').run(device), 2048);
  Once r0(Kind::Read, 0);
  EXPECT_EQ(r0.run(device), 2048);
  EXPECT_EQ(std::string(r0.seen, 3), "aca"); // what was written is wrong
  Once r1(Kind::Read, 0);
  EXPECT_EQ(r1.run(device), 2048);
  EXPECT_EQ(std::string(r1.seen, 3), "eca"); // and what is read
  auto start = std::chrono::steady_clock::now();
  Once r2(Kind::Read, 0);
  EXPECT_EQ(r2.run(device), 2048);
  EXPECT_EQ(std::string(r2.seen, 3), "aca");
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(20));
}

} // namespace
