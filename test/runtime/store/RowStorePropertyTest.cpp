//===- RowStorePropertyTest.cpp - Random traffic against a model ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random batches of writes and reads overlap as they do under the executor;
// every read must see the last write queued before it, and at the end the
// device must hold exactly the last version of every row.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <random>

using namespace trc;

namespace {

using Backend = DeviceOptions::Backend;

void traffic(Backend backend, uint32_t seed, int batches) {
  std::mt19937 random(seed);
  auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  StoreFixture f(backend, 4096 * (2 + pick(3)));
  if (!f.skip.empty())
    GTEST_SKIP() << f.skip;
  f.payload(4 * (1 + pick(pick(2) ? 40 : 1000)));
  f.options.rows = 1 + pick(400);
  f.options.writeSlots = 1 + pick(3);
  f.options.maxWrites = std::min(f.options.rows, 1 + pick(100));
  f.options.depth = 1 + pick(16);
  for (uint32_t i = pick(3); i > 0; --i)
    f.options.extents.push_back(
        {f.path(std::to_string(i).c_str()), 4096 * pick(3)});
  f.open();
  std::vector<uint32_t> version(f.options.rows, 0);
  std::vector<std::vector<char>> records(f.options.writeSlots);

  struct Reading {
    ReadBatch batch;
    std::vector<uint32_t> rows, versions;
    std::vector<char> out;
    bool active = false;
  };
  Reading readings[2];
  auto finish = [&](Reading &r) {
    if (!r.active)
      return;
    Status s = f.store->wait(r.batch);
    ASSERT_TRUE(s.ok()) << s.message();
    r.active = false;
    for (size_t i = 0; i < r.rows.size(); ++i) {
      auto v = f.value(r.rows[i], r.versions[i]);
      ASSERT_EQ(std::memcmp(r.out.data() + i * v.size(), v.data(), v.size()), 0)
          << "row " << r.rows[i] << " version " << r.versions[i];
    }
  };
  auto sample = [&](uint32_t most, bool written) {
    std::vector<uint32_t> rows;
    for (uint32_t r = 0; r < f.options.rows; ++r)
      if (!written || version[r])
        rows.push_back(r);
    std::shuffle(rows.begin(), rows.end(), random);
    rows.resize(std::min<size_t>(rows.size(), pick(most + 1)));
    return rows;
  };

  for (int b = 0; b < batches && !testing::Test::HasFailure(); ++b) {
    uint32_t slot = b % f.options.writeSlots;
    ASSERT_TRUE(f.store->waitWrites(slot).ok());
    // The executor never writes a row back while it is being fetched.
    auto rows = sample(f.options.maxWrites, false);
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                              [&](uint32_t r) {
                                for (Reading &x : readings)
                                  if (x.active && std::count(x.rows.begin(),
                                                             x.rows.end(), r))
                                    return true;
                                return false;
                              }),
               rows.end());
    records[slot].assign(rows.size() * f.options.storeBytes, 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      auto v = f.value(rows[i], ++version[rows[i]]);
      char *record = records[slot].data() + i * f.options.storeBytes;
      std::memcpy(record + recordHeaderBytes, v.data(), v.size());
      f.store->seal(rows[i], record);
    }
    ASSERT_TRUE(f.store
                    ->write(slot, rows.data(),
                            static_cast<uint32_t>(rows.size()),
                            records[slot].data())
                    .ok());
    Reading &r = readings[b % 2];
    finish(r);
    r.rows = sample(f.options.rows, true);
    r.versions.clear();
    for (uint32_t row : r.rows)
      r.versions.push_back(version[row]);
    r.out.assign(r.rows.size() * f.options.payloadBytes, 0);
    r.batch.rows = r.rows.data();
    r.batch.count = static_cast<uint32_t>(r.rows.size());
    r.batch.out = r.out.data();
    r.batch.pitch = f.options.payloadBytes;
    f.store->start(r.batch);
    r.active = true;
  }
  finish(readings[0]);
  finish(readings[1]);
  ASSERT_TRUE(f.store->flush().ok());

  // A fresh store over the same device.
  ASSERT_TRUE(f.store->saveIndex(f.path("index")).ok());
  uint64_t count = f.store->writtenCount();
  f.open();
  EXPECT_EQ(f.store->writtenCount(), 0u);
  ASSERT_TRUE(f.store->loadIndex(f.path("index")).ok());
  EXPECT_EQ(f.store->writtenCount(), count);
  uint64_t seen = 0;
  Status s = f.store->scan(
      0, f.options.rows, [&](uint32_t row, const char *payload) -> Status {
        ++seen;
        auto v = f.value(row, version[row]);
        EXPECT_EQ(std::memcmp(payload, v.data(), v.size()), 0) << "row " << row;
        return {};
      });
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(seen, count);
}

class RowStoreProperty : public testing::TestWithParam<Backend> {};

TEST_P(RowStoreProperty, RandomTraffic) {
  uint32_t seeds = GetParam() == Backend::Memory ? 150 : 40; // disks are slow
  for (uint32_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    traffic(GetParam(), seed, 25);
    if (testing::Test::HasFailure() || testing::Test::IsSkipped())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RowStoreProperty,
                         testing::Values(Backend::Uring, Backend::Threads,
                                         Backend::Memory),
                         [](const auto &info) {
                           return info.param == Backend::Uring     ? "Uring"
                                  : info.param == Backend::Threads ? "Threads"
                                                                   : "Memory";
                         });

} // namespace
