//===- DeviceTest.cpp - One conformance suite for every backend -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each backend, and io_uring with its features switched off one by one, must
// behave the same. A backend that this machine lacks is skipped with its
// reason.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace trc;

namespace {

struct Config {
  const char *name;
  DeviceOptions::Backend backend;
  uint32_t features;
};

const Config configs[] = {
    {"UringAll", DeviceOptions::Backend::Uring, IoDefaultFeatures},
    {"UringNoDirect", DeviceOptions::Backend::Uring,
     IoDefaultFeatures & ~IoDirect},
    {"UringNoRegisteredBuffers", DeviceOptions::Backend::Uring,
     IoDefaultFeatures & ~IoRegisteredBuffers},
    {"UringNoRegisteredFiles", DeviceOptions::Backend::Uring,
     IoDefaultFeatures & ~IoRegisteredFiles},
    {"UringNoDeferTaskrun", DeviceOptions::Backend::Uring,
     IoDefaultFeatures & ~IoDeferTaskrun},
    {"UringNoSingleIssuer", DeviceOptions::Backend::Uring,
     IoDefaultFeatures & ~IoSingleIssuer},
    {"UringPollSubmissions", DeviceOptions::Backend::Uring,
     IoDefaultFeatures | IoPollSubmissions},
    {"UringPollCompletions", DeviceOptions::Backend::Uring,
     IoDefaultFeatures | IoPollCompletions},
    {"UringPollBoth", DeviceOptions::Backend::Uring, IoAllFeatures},
    {"UringPollBuffered", DeviceOptions::Backend::Uring,
     IoAllFeatures & ~IoDirect},
    {"UringPlain", DeviceOptions::Backend::Uring, 0},
    {"Aio", DeviceOptions::Backend::Aio, IoDefaultFeatures},
    {"AioNoDirect", DeviceOptions::Backend::Aio, 0},
    {"Threads", DeviceOptions::Backend::Threads, IoDefaultFeatures},
    {"ThreadsNoDirect", DeviceOptions::Backend::Threads, 0},
    {"Pmem", DeviceOptions::Backend::Pmem, IoDefaultFeatures},
    {"Memory", DeviceOptions::Backend::Memory, IoDefaultFeatures},
    {"Auto", DeviceOptions::Backend::Auto, IoDefaultFeatures}};

/// Counts down requests; the test waits for zero.
class Latch {
public:
  void expect(int n) { left += n; }
  void down() {
    std::lock_guard<std::mutex> lock(mutex);
    if (--left == 0)
      zero.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    zero.wait(lock, [&] { return left <= 0; });
  }

private:
  std::mutex mutex;
  std::condition_variable zero;
  std::atomic<int> left{0};
};

class Simple final : public IoRequest {
public:
  Simple(Kind k, uint32_t f, uint64_t o, std::vector<char> d, Latch &l)
      : data(std::move(d)), latch(l) {
    kind = k;
    file = f;
    offset = o;
    bytes = static_cast<uint32_t>(data.size());
    background = k == Kind::Write;
    latch.expect(1);
  }
  void begin(char *buffer) override {
    ++begins;
    if (kind == Kind::Write)
      std::memcpy(buffer, data.data(), data.size());
  }
  bool complete(int32_t r, char *buffer) override {
    result = r;
    if (kind == Kind::Read && r > 0)
      std::memcpy(data.data(), buffer, r);
    latch.down();
    return false;
  }
  std::vector<char> data;
  int begins = 0;
  int32_t result = 0;

private:
  Latch &latch;
};

std::vector<char> pattern(size_t bytes, uint32_t seed) {
  std::vector<char> v(bytes);
  std::mt19937 random(seed);
  for (char &c : v)
    c = static_cast<char>(random());
  return v;
}

class DeviceTest : public testing::TestWithParam<Config> {
protected:
  void SetUp() override { start(16); }
  void start(uint32_t depth) {
    device.reset();
    folder = std::filesystem::temp_directory_path() /
             ("terrace-device-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    DeviceOptions options;
    options.backend = GetParam().backend;
    options.features = GetParam().features;
    options.depth = depth;
    options.bufferBytes = 8192;
    auto opened = openDevice(options);
    if (!opened.ok())
      GTEST_SKIP() << opened.takeStatus().message();
    device = std::move(*opened);
  }
  void TearDown() override {
    device.reset();
    std::filesystem::remove_all(folder);
  }
  uint32_t open(const char *name, uint64_t bytes) {
    auto file = device->openFile((folder / name).string(), bytes, true);
    EXPECT_TRUE(file.ok());
    if (!file.ok())
      ADD_FAILURE() << file.takeStatus().message();
    return *file;
  }
  std::vector<char> readBack(uint32_t file, uint64_t offset, uint32_t bytes) {
    Latch latch;
    Simple r(IoRequest::Kind::Read, file, offset, std::vector<char>(bytes),
             latch);
    device->submit(r);
    latch.wait();
    EXPECT_EQ(r.result, static_cast<int32_t>(bytes));
    return r.data;
  }

  std::filesystem::path folder;
  std::unique_ptr<Device> device;
};

TEST_P(DeviceTest, SaysWhatItIs) {
  EXPECT_FALSE(device->describe().empty());
  uint32_t file = open("a", 10000);
  FileInfo info = device->fileInfo(file);
  EXPECT_EQ(info.bytes, 12288u); // whole pages
  EXPECT_TRUE(info.blockBytes == 512 || info.blockBytes == 4096);
  EXPECT_NE(info.direct, !info.note.empty()); // no fallback without a reason
  if (GetParam().features & IoPollCompletions) {
    Latch latch;
    Simple w(IoRequest::Kind::Write, file, 0, pattern(4096, 1), latch);
    device->submit(w);
    latch.wait();
    EXPECT_EQ(readBack(file, 0, 4096), w.data);
    // Either it polls, or it says why not.
    EXPECT_NE(device->describe().find("polled completions"), std::string::npos);
  }
  RecordProperty("device", device->describe());
}

TEST_P(DeviceTest, HolesReadAsZeroesAndWritesComeBack) {
  uint32_t file = open("a", 1 << 20);
  EXPECT_EQ(readBack(file, 4096, 8192), std::vector<char>(8192));
  Latch latch;
  Simple w(IoRequest::Kind::Write, file, 8192, pattern(4096, 1), latch);
  device->submit(w);
  latch.wait();
  EXPECT_EQ(w.result, 4096);
  EXPECT_EQ(w.begins, 1);
  EXPECT_EQ(readBack(file, 8192, 4096), w.data);
  EXPECT_EQ(readBack(file, 4096, 4096), std::vector<char>(4096));
  EXPECT_TRUE(device->flush(file).ok());
}

TEST_P(DeviceTest, FilesAreApart) {
  uint32_t a = open("a", 65536), b = open("b", 65536);
  ASSERT_NE(a, b);
  Latch latch;
  Simple wa(IoRequest::Kind::Write, a, 0, pattern(4096, 1), latch);
  Simple wb(IoRequest::Kind::Write, b, 0, pattern(4096, 2), latch);
  device->submit(wa);
  device->submit(wb);
  latch.wait();
  EXPECT_EQ(readBack(a, 0, 4096), wa.data);
  EXPECT_EQ(readBack(b, 0, 4096), wb.data);
}

TEST_P(DeviceTest, ManyRequestsFromManyThreads) {
  constexpr int threads = 4, each = 50;
  uint32_t block = 4096;
  // Several devices: with the first reads of blocks that exist one may find out
  // that it cannot be polled, and goes on in another way amidst writes.
  for (int life = 0; life < 6; ++life) {
    start(16);
    ASSERT_TRUE(device);
    uint32_t file = open(("a" + std::to_string(life)).c_str(),
                         uint64_t(threads) * each * block);
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; ++t)
      pool.emplace_back([&, t] {
        Latch latch;
        std::vector<std::unique_ptr<Simple>> writes;
        for (int i = 0; i < each; ++i) {
          uint64_t n = uint64_t(t) * each + i;
          writes.push_back(std::make_unique<Simple>(IoRequest::Kind::Write,
                                                    file, n * block,
                                                    pattern(block, n), latch));
          device->submit(*writes.back());
        }
        latch.wait();
        for (int i = 0; i < each; ++i) {
          EXPECT_EQ(writes[i]->result, static_cast<int32_t>(block));
          uint64_t n = uint64_t(t) * each + i;
          ASSERT_EQ(readBack(file, n * block, block), pattern(block, n));
        }
      });
    for (auto &t : pool)
      t.join();
  }
}

TEST_P(DeviceTest, ChainKeepsItsBuffer) {
  // Read a block, change a byte, write it back: one request, one buffer.
  class Bump final : public IoRequest {
  public:
    explicit Bump(Latch &latch) : latch(latch) { latch.expect(1); }
    bool complete(int32_t result, char *buffer) override {
      good = good && result == static_cast<int32_t>(bytes);
      if (kind == Kind::Read) {
        buffer[at + 7] += 1;
        kind = Kind::Write;
        return true;
      }
      latch.down();
      return false;
    }
    bool good = true;

  private:
    Latch &latch;
  };
  uint32_t file = open("a", 65536);
  for (int i = 0; i < 3; ++i) {
    Latch latch;
    Bump bump(latch);
    bump.file = file;
    bump.offset = 4096;
    bump.bytes = 4096;
    bump.at = 4096; // the second half of the buffer
    device->submit(bump);
    latch.wait();
    EXPECT_TRUE(bump.good);
  }
  EXPECT_EQ(readBack(file, 4096, 4096)[7], 3);
}

TEST_P(DeviceTest, DepthIsNeverExceeded) {
  class Counting final : public IoRequest {
  public:
    Counting(std::atomic<int> &now, std::atomic<int> &peak, Latch &latch)
        : now(now), peak(peak), latch(latch) {
      latch.expect(1);
    }
    void begin(char *) override {
      int n = ++now;
      int seen = peak;
      while (n > seen && !peak.compare_exchange_weak(seen, n)) {
      }
    }
    bool complete(int32_t, char *) override {
      --now;
      latch.down();
      return false;
    }

  private:
    std::atomic<int> &now, &peak;
    Latch &latch;
  };
  uint32_t file = open("a", 1 << 20);
  std::atomic<int> now{0}, peak{0};
  Latch latch;
  std::vector<std::unique_ptr<Counting>> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(std::make_unique<Counting>(now, peak, latch));
    all.back()->file = file;
    all.back()->bytes = 4096;
    all.back()->background = i % 3 == 0;
    device->submit(*all.back());
  }
  latch.wait();
  EXPECT_GT(peak, 0);
  EXPECT_LE(static_cast<uint32_t>(peak), device->depth());
}

TEST_P(DeviceTest, EndOfFileIsShort) {
  uint32_t file = open("a", 65536);
  Latch latch;
  Simple r(IoRequest::Kind::Read, file, 65536, std::vector<char>(4096), latch);
  device->submit(r);
  latch.wait();
  EXPECT_EQ(r.result, 0);
}

TEST_P(DeviceTest, MissingFileIsNotFound) {
  std::string path = (folder / "none" / "x").string();
  auto file = device->openFile(path, 4096, false);
  ASSERT_FALSE(file.ok());
  Status s = file.takeStatus();
  EXPECT_EQ(s.code(), TRC_NOT_FOUND);
  EXPECT_NE(s.message().find(path), std::string::npos);
}

TEST_P(DeviceTest, KeepsWhatWasThere) {
  if (GetParam().backend == DeviceOptions::Backend::Memory)
    GTEST_SKIP() << "memory does not outlive the device";
  std::string path = (folder / "old").string();
  std::vector<char> data = pattern(8192, 9);
  std::ofstream(path, std::ios::binary).write(data.data(), data.size());
  auto file = device->openFile(path, 100000, false);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(readBack(*file, 0, 8192), data);
  EXPECT_EQ(readBack(*file, 8192, 4096), std::vector<char>(4096));
  EXPECT_EQ(std::filesystem::file_size(path), 102400u);
}

TEST_P(DeviceTest, RefusesAFolder) {
  if (GetParam().backend == DeviceOptions::Backend::Memory)
    GTEST_SKIP() << "memory has no folders";
  auto file = device->openFile(folder.string(), 4096, false);
  EXPECT_FALSE(file.ok());
}

TEST_P(DeviceTest, DestructorWaitsForRequests) {
  uint32_t file = open("a", 1 << 20);
  Latch latch;
  std::vector<std::unique_ptr<Simple>> writes;
  for (int i = 0; i < 64; ++i) {
    writes.push_back(std::make_unique<Simple>(
        IoRequest::Kind::Write, file, i * 4096, pattern(4096, i), latch));
    device->submit(*writes.back());
  }
  device.reset();
  for (auto &w : writes)
    EXPECT_EQ(w->result, 4096);
}

TEST_P(DeviceTest, CountsTransfersAndTheirTimes) {
  uint32_t file = open("a", 1 << 20);
  DeviceCounters before = device->counters(); // the probes of files
  Latch latch;
  std::vector<std::unique_ptr<Simple>> writes;
  for (int i = 0; i < 40; ++i) {
    writes.push_back(std::make_unique<Simple>(
        IoRequest::Kind::Write, file, i * 4096, pattern(4096, i), latch));
    device->submit(*writes.back());
  }
  latch.wait();
  for (int i = 0; i < 10; ++i)
    readBack(file, i * 8192, 8192);
  DeviceCounters after = device->counters();
  EXPECT_EQ(after.writes.count - before.writes.count, 40u);
  EXPECT_EQ(after.writes.bytes - before.writes.bytes, 40u * 4096);
  EXPECT_EQ(after.reads.count - before.reads.count, 10u);
  EXPECT_EQ(after.reads.bytes - before.reads.bytes, 10u * 8192);
  EXPECT_EQ(after.reads.errors + after.writes.errors, 0u);
  for (const TransferCounters *c : {&after.reads, &after.writes}) {
    EXPECT_GT(c->quantile(0.5), 0u);
    EXPECT_LE(c->quantile(0.5), c->quantile(0.99));
    EXPECT_EQ(c->quantile(1), c->maxNs);
    EXPECT_GE(c->totalNs, c->maxNs);
  }
}

TEST(DeviceCounters, BucketsAreWithinAQuarter) {
  for (uint64_t ns :
       {uint64_t(0), uint64_t(1), uint64_t(3), uint64_t(4), uint64_t(1023),
        uint64_t(1024), uint64_t(98765), uint64_t(1) << 40, UINT64_MAX}) {
    uint32_t b = TransferCounters::bucketOf(ns);
    ASSERT_LT(b, TransferCounters::bucketCount);
    uint64_t end = TransferCounters::bucketEnd(b);
    EXPECT_GE(end, ns);
    EXPECT_LE(end - ns, ns / 4);
    if (b > 0) {
      EXPECT_LT(TransferCounters::bucketEnd(b - 1), ns);
    }
  }
  TransferCounters c;
  EXPECT_EQ(c.quantile(0.5), 0u);
  c.buckets[TransferCounters::bucketOf(1000)] = 99;
  c.buckets[TransferCounters::bucketOf(50000)] = 1;
  c.maxNs = 50000;
  EXPECT_LT(c.quantile(0.99), 1250u);
  EXPECT_EQ(c.quantile(0.999), 50000u);
}

/// The window between an engine's last look at its inbox and its wait: requests
/// come one at a time, so that the engine goes to sleep after nearly each, from
/// threads that wait for nothing but their own. New blocks make the kernel hand
/// writes to its workers, and writes wait for each other there.
TEST_P(DeviceTest, NoWakeUpIsMissed) {
  class Ping final : public IoRequest {
  public:
    std::promise<void> done;
    void begin(char *buffer) override { std::memset(buffer, 1, bytes); }
    bool complete(int32_t r, char *) override {
      EXPECT_EQ(r, static_cast<int32_t>(bytes));
      done.set_value();
      return false;
    }
  };
  constexpr int threads = 3;
  // Small: to remove many single blocks takes seconds where the file system
  // discards them one by one.
  constexpr uint32_t blocks = 512;
  uint32_t file = open("a", blocks * 4096);
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
  std::atomic<bool> stuck{false};
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      std::mt19937 random(t);
      while (!stuck && std::chrono::steady_clock::now() < end) {
        auto ping = std::make_unique<Ping>();
        ping->file = file;
        ping->bytes = 4096;
        ping->offset = random() % blocks * 4096;
        ping->kind = t == 0 ? IoRequest::Kind::Read : IoRequest::Kind::Write;
        ping->background = t == 2;
        std::future<void> done = ping->done.get_future();
        device->submit(*ping);
        if (done.wait_for(std::chrono::seconds(20)) !=
            std::future_status::ready) {
          stuck = true;
          (void)ping.release(); // the device still has it
        }
        if (random() % 4 == 0)
          std::this_thread::yield();
      }
    });
  for (auto &t : pool)
    t.join();
  EXPECT_FALSE(stuck) << device->describe() << " let a request wait for 20 s";
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceTest, testing::ValuesIn(configs),
                         [](const auto &info) { return info.param.name; });

} // namespace
