//===- RowStoreHistoryTest.cpp - Random lives of a store ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TERRACE_TEST_SEED plays one seed; TERRACE_TEST_SEEDS so many.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/store/StoreHistory.h"

#include <cstdlib>

using namespace trc;

namespace {

uint64_t number(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

StoreHistory::Seen playSeeds(StoreHistory::Options options, uint64_t count) {
  StoreHistory::Seen seen;
  uint64_t first = number("TERRACE_TEST_SEED", UINT64_MAX);
  uint64_t last = first + 1;
  if (first == UINT64_MAX) {
    first = 0;
    last = number("TERRACE_TEST_SEEDS", count);
  }
  for (options.seed = first; options.seed < last; ++options.seed) {
    SCOPED_TRACE("seed " + std::to_string(options.seed));
    StoreHistory(options, seen).play();
    if (testing::Test::HasFailure())
      break;
  }
  std::printf("crashes %lu, cleaned %lu, moves files %lu (opened with %lu), "
              "checkpoints %lu (deltas %lu, dropped %lu), full %lu, stalls "
              "%lu, older %lu\n",
              seen.crashes, seen.cleaned, seen.moved, seen.openedWithMoves,
              seen.checkpoints, seen.deltas, seen.dropped, seen.full,
              seen.stalls, seen.older);
  return seen;
}

TEST(RowStoreHistory, SurvivesPowerLoss) {
  StoreHistory::Seen seen = playSeeds({}, 300);
  if (testing::Test::HasFailure() || std::getenv("TERRACE_TEST_SEED") ||
      std::getenv("TERRACE_TEST_SEEDS"))
    return;
  // The histories really went where it is dangerous.
  EXPECT_GT(seen.crashes, 100u);
  EXPECT_GT(seen.cleaned, 100u);
  EXPECT_GT(seen.openedWithMoves, 20u);
  EXPECT_GT(seen.deltas, 50u);
  EXPECT_GT(seen.stalls, 20u);
}

TEST(RowStoreHistory, RealFiles) {
  DeviceOptions d;
  d.depth = 8;
  d.bufferBytes = 16384;
  auto device = openDevice(d);
  ASSERT_TRUE(device.ok()) << device.takeStatus().message();
  StoreHistory::Options options;
  options.device = device->get();
  playSeeds(options, 10);
}

} // namespace
