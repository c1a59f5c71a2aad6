//===- PmemTest.cpp - What persistent memory does beyond the suite --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file stands in for persistent memory, at each granularity that libpmem2 can
// be told to believe in. A SIGBUS anywhere here ends the program.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Device.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <sys/stat.h>
#include <unistd.h>

using namespace trc;
namespace fs = std::filesystem;

namespace {

class Once final : public IoRequest {
public:
  Once(Kind k, uint32_t f, uint64_t o, std::string d) : data(std::move(d)) {
    kind = k;
    file = f;
    offset = o;
    bytes = static_cast<uint32_t>(data.size());
  }
  void begin(char *buffer) override {
    if (kind == Kind::Write)
      std::memcpy(buffer, data.data(), data.size());
  }
  bool complete(int32_t r, char *buffer) override {
    if (kind == Kind::Read && r > 0)
      std::memcpy(data.data(), buffer, static_cast<size_t>(r));
    done.set_value(r);
    return false;
  }
  int32_t run(Device &device) {
    device.submit(*this);
    return done.get_future().get();
  }
  std::string data;

private:
  std::promise<int32_t> done;
};

class PmemTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    path = (fs::temp_directory_path() /
            ("terrace-pmem-" + std::to_string(getpid())))
               .string();
    fs::remove(path);
    ::setenv("PMEM2_FORCE_GRANULARITY", GetParam(), 1);
    open();
  }
  void TearDown() override {
    device.reset();
    fs::remove(path);
    ::unsetenv("PMEM2_FORCE_GRANULARITY");
  }
  void open() {
    device.reset();
    DeviceOptions options;
    options.backend = DeviceOptions::Backend::Pmem;
    options.depth = 4;
    auto opened = openDevice(options);
    if (!opened.ok())
      GTEST_SKIP() << opened.takeStatus().message();
    device = std::move(*opened);
  }
  uint32_t file(uint64_t bytes) {
    auto opened = device->openFile(path, bytes, true);
    if (!opened.ok()) {
      ADD_FAILURE() << opened.takeStatus().message();
      return 0;
    }
    return *opened;
  }
  int32_t write(uint32_t f, uint64_t at, const std::string &data) {
    return Once(IoRequest::Kind::Write, f, at, data).run(*device);
  }

  std::string path;
  std::unique_ptr<Device> device;
};

TEST_P(PmemTest, IsReadInPlaceAndStays) {
  uint32_t f = file(1 << 20);
  bool page = std::string(GetParam()) == "PAGE";
  EXPECT_EQ(device->fileInfo(f).direct, !page);
  EXPECT_EQ(device->fileInfo(f).note.empty(), !page);
  const char *base = device->mapped(f, 0, 1 << 20);
  ASSERT_NE(base, nullptr);
  EXPECT_EQ(std::string(base + 8192, 4), std::string(4, 0));
  std::string data(4096, 'p');
  EXPECT_EQ(write(f, 8192, data), 4096);
  EXPECT_EQ(std::string(base + 8192, 4096), data); // the map is the file
  EXPECT_EQ(device->mapped(f, 8192, 4096), base + 8192);
  ASSERT_TRUE(device->flush(f).ok());
  open();
  f = file(1 << 20);
  ASSERT_NE(device->mapped(f, 8192, 4096), nullptr);
  EXPECT_EQ(std::string(device->mapped(f, 8192, 4096), 4096), data);
}

TEST_P(PmemTest, KnowsItsEnds) {
  uint32_t f = file(65536);
  EXPECT_EQ(device->mapped(f, 65536, 1), nullptr);
  EXPECT_EQ(device->mapped(f, 61440, 8192), nullptr);
  EXPECT_EQ(device->mapped(f, UINT64_MAX - 10, 100), nullptr);
  EXPECT_NE(device->mapped(f, 61440, 4096), nullptr);
  EXPECT_EQ(write(f, 65536, std::string(512, 'x')), -ENOSPC);
}

TEST_P(PmemTest, SpaceIsAllocatedAtOpen) {
  file(1 << 20);
  struct stat st;
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_GE(st.st_blocks * 512, 1 << 20);
  auto huge = device->openFile(path + ".huge", uint64_t(1) << 55, true);
  EXPECT_FALSE(huge.ok());
  EXPECT_NE(huge.takeStatus().message().find(path + ".huge"),
            std::string::npos);
  fs::remove(path + ".huge");
}

TEST_P(PmemTest, ACutFileIsAnErrorAndNoSignal) {
  uint32_t f = file(1 << 20);
  EXPECT_EQ(write(f, 0, std::string(4096, 'a')), 4096);
  ASSERT_EQ(::truncate(path.c_str(), 8192), 0);
  EXPECT_EQ(write(f, 65536, std::string(4096, 'b')), -EIO);
  Once behind(IoRequest::Kind::Read, f, 65536, std::string(4096, 0));
  EXPECT_EQ(behind.run(*device), 0); // short
  Once before(IoRequest::Kind::Read, f, 0, std::string(4096, 0));
  EXPECT_EQ(before.run(*device), 4096);
  EXPECT_EQ(before.data, std::string(4096, 'a'));
}

TEST_P(PmemTest, OthersMapNothing) {
  DeviceOptions options;
  for (auto backend :
       {DeviceOptions::Backend::Auto, DeviceOptions::Backend::Threads,
        DeviceOptions::Backend::Memory}) {
    options.backend = backend;
    auto other = openDevice(options);
    ASSERT_TRUE(other.ok());
    auto f = (*other)->openFile(path, 65536, true);
    ASSERT_TRUE(f.ok());
    EXPECT_EQ((*other)->mapped(*f, 0, 4096), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Granularity, PmemTest,
                         testing::Values("BYTE", "CACHE_LINE", "PAGE"),
                         [](const auto &info) { return info.param; });

} // namespace
