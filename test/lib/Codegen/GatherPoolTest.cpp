//===- GatherPoolTest.cpp - Forward kernels against naive loops -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bit for bit, every pooling and image for each dimension: empty bags,
// duplicates, rows at odd multiples of four bytes, calls that split the range,
// and a page behind every array that must not be touched.
//
//===----------------------------------------------------------------------===//
#include "CompiledKernels.h"
#include "KernelReference.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace terrace;
using namespace terrace::codegen;
using namespace terrace::test;

namespace {
constexpr int64_t bags = 23, tableRows = 40, guardWords = 64;
constexpr float guardFloat = 12345.5f;
constexpr int32_t guardInt = 0x5a5a5a5a;

std::vector<KernelConfig> configsOf(int64_t dim, Element element) {
  std::vector<KernelConfig> configs;
  for (Pooling pooling : {Pooling::Sum, Pooling::Mean, Pooling::WeightedMean,
                          Pooling::Sqrtn, Pooling::Max, Pooling::None}) {
    configs.push_back(KernelConfig::gatherPool(dim, pooling));
    if (pooling != Pooling::Max && pooling != Pooling::None)
      configs.push_back(KernelConfig::gatherPool(dim, pooling, true));
  }
  for (KernelConfig &config : configs)
    config.element = element;
  // By id only a row's address is another, whatever is stored there.
  for (size_t i = 0, n = configs.size(); i < n; ++i)
    if (element == Element::F32 || element == Element::I8)
      configs.push_back(configs[i].byId());
  return configs;
}

/// A batch over a table whose rows start 4 bytes off any larger alignment.
struct Batch {
  explicit Batch(int64_t dim, unsigned seed, Element element = Element::F32) {
    std::mt19937 random(seed);
    auto config = KernelConfig::gatherPool(dim, Pooling::Sum).stored(element);
    const int64_t words = config.weightWords() + 1;
    pitch = 4 * words;
    rows.resize(1 + tableRows * words - 1); // the last without padding
    for (int64_t row = 0; row < tableRows; ++row) {
      char *to = reinterpret_cast<char *>(&rows[1 + row * words]);
      if (config.isQuantized()) { // any bytes are numbers
        _Float16 head[2] = {_Float16(randomFloat(random) / 16),
                            _Float16(randomFloat(random))};
        std::memcpy(to, head, 4);
        for (int64_t i = 0; i < config.bytesOf(dim); ++i)
          to[4 + i] = char(random());
        continue;
      }
      for (int64_t c = 0; c < dim; ++c)
        storeWeight(config, to, c, randomFloat(random));
    }
    for (uint32_t i = 0; i < tableRows; ++i)
      slots.push_back((i * 7 + 3) % tableRows);
    offsets.push_back(0);
    for (int64_t bag = 0; bag < bags; ++bag) {
      // Empty bags first, last and in between; some long, many of one.
      int64_t n = bag % 5 == 0 || bag == bags - 1 ? 0
                  : random() % 2                  ? 1
                                                  : random() % 30;
      for (int64_t j = 0; j < n; ++j) {
        x.push_back(random() % 4 == 0 && j ? x.back() : random() % tableRows);
        weights.push_back(randomFloat(random) + (j == 0 ? 3.0f : 0.0f));
      }
      offsets.push_back(int32_t(x.size()));
    }
    for (uint32_t place : x)
      ids.push_back(slots[place]);
    ids.shrink_to_fit();
    rows.shrink_to_fit();
    weights.shrink_to_fit();
    slots.shrink_to_fit();
    x.shrink_to_fit();
    offsets.shrink_to_fit();
  }
  const char *base() const {
    return reinterpret_cast<const char *>(rows.data() + 1);
  }

  int64_t pitch;
  Guarded<float> rows, weights;
  Guarded<uint32_t> slots, x;
  Guarded<int64_t> ids; // the same rows, by id
  Guarded<int32_t> offsets;
};

struct Output {
  explicit Output(int64_t elements)
      : values(guardWords + elements, guardFloat),
        winners(guardWords + elements, guardInt) {}
  float *out() { return values.data() + guardWords; }
  int32_t *winner() { return winners.data() + guardWords; }
  Guarded<float> values; // guard words before, a guard page behind
  Guarded<int32_t> winners;
};

class GatherPool : public testing::TestWithParam<int64_t> {};

void compare(const CompiledKernels &kernels, const KernelConfig &config,
             const Batch &batch, int image) {
  const bool none = config.pooling == Pooling::None;
  const int64_t count = none ? int64_t(batch.x.size()) : bags;
  Output expected(count * config.dim), actual(count * config.dim);
  const int32_t *offsets = none ? nullptr : batch.offsets.data();
  const float *weights = config.weighted ? batch.weights.data() : nullptr;
  const bool max = config.pooling == Pooling::Max;
  referenceGatherPool(config, batch.base(), batch.pitch, batch.slots.data(),
                      batch.x.data(), offsets, weights, expected.out(),
                      expected.winner(), 0, count);
  void *code = const_cast<void *>(kernels.find(config, image));
  ASSERT_NE(code, nullptr);
  // Two calls and an empty one make up the range, as threads would split it.
  for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, count / 3},
                            {count / 3, count / 3},
                            {count / 3, count}}) {
    int32_t *winner = max ? actual.winner() : nullptr;
    if (config.direct)
      reinterpret_cast<trc_gather_rows_fn>(code)(
          batch.base(), batch.pitch, batch.ids.data(), offsets, weights,
          actual.out(), winner, begin, end);
    else
      reinterpret_cast<trc_gather_pool_fn>(code)(
          batch.base(), batch.pitch, batch.slots.data(), batch.x.data(),
          offsets, weights, actual.out(), winner, begin, end);
  }
  std::string where;
  EXPECT_TRUE(sameFloats(expected.values, actual.values, where))
      << config.name() << allImages()[image].suffix << ": " << where;
  if (max) {
    EXPECT_EQ(expected.winners, actual.winners) << config.name();
  }
}
} // namespace

TEST_P(GatherPool, EqualsTheNaiveLoop) {
  for (Element element :
       {Element::F32, Element::F16, Element::BF16, Element::I8, Element::I4}) {
    std::vector<KernelConfig> configs = configsOf(GetParam(), element);
    auto kernels = CompiledKernels::compile(configs);
    ASSERT_TRUE(kernels);
    Batch batch(GetParam(), unsigned(GetParam()) + 17, element);
    for (const KernelConfig &config : configs)
      for (const Image &image : allImages()) {
        ASSERT_NE(kernels->find(config, image.index), nullptr) << config.name();
        if (canRun(image.index))
          compare(*kernels, config, batch, image.index);
      }
  }
}

TEST_P(GatherPool, NothingIsTouchedForAnEmptyRange) {
  std::vector<KernelConfig> configs = configsOf(GetParam(), Element::F32);
  auto kernels = CompiledKernels::compile(configs);
  ASSERT_TRUE(kernels);
  for (const KernelConfig &config : configs)
    for (const Image &image : allImages())
      if (canRun(image.index)) {
        void *code = const_cast<void *>(kernels->find(config, image.index));
        if (config.direct)
          reinterpret_cast<trc_gather_rows_fn>(code)(
              nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 5, 5);
        else
          reinterpret_cast<trc_gather_pool_fn>(code)(nullptr, 0, nullptr,
                                                     nullptr, nullptr, nullptr,
                                                     nullptr, nullptr, 5, 5);
      }
}

INSTANTIATE_TEST_SUITE_P(Dims, GatherPool, testing::ValuesIn(testedDims),
                         testing::PrintToStringParamName());

// The first value stays where the comparison is not true: NaN never wins, and
// is never beaten once it is first; +0 does not beat -0.
TEST(GatherPoolMax, ComparesOrdered) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const int64_t dim = 17;
  KernelConfig config = KernelConfig::gatherPool(dim, Pooling::Max);
  auto kernels = CompiledKernels::compile(config);
  ASSERT_TRUE(kernels);
  Batch batch(dim, 3);
  batch.offsets = {0, 4};
  batch.x = {0, 1, 2, 1};
  const float columns[][3] = {{nan, 1, 2},
                              {1, nan, 2},
                              {-0.0f, 0.0f, -1},
                              {0.0f, -0.0f, 0.0f},
                              {-INFINITY, -3, INFINITY}};
  for (int row = 0; row < 3; ++row)
    for (int64_t c = 0; c < dim; ++c)
      batch.rows[1 + batch.slots[row] * (dim + 1) + c] = columns[c % 5][row];
  for (const Image &image : allImages()) {
    if (!canRun(image.index))
      continue;
    Output expected(dim), actual(dim);
    referenceGatherPool(config, batch.base(), batch.pitch, batch.slots.data(),
                        batch.x.data(), batch.offsets.data(), nullptr,
                        expected.out(), expected.winner(), 0, 1);
    reinterpret_cast<trc_gather_pool_fn>(
        const_cast<void *>(kernels->find(config, image.index)))(
        batch.base(), batch.pitch, batch.slots.data(), batch.x.data(),
        batch.offsets.data(), nullptr, actual.out(), actual.winner(), 0, 1);
    std::string where;
    EXPECT_TRUE(sameFloats(expected.values, actual.values, where)) << where;
    EXPECT_EQ(expected.winners, actual.winners);
    EXPECT_TRUE(std::isnan(actual.out()[0]));
    EXPECT_EQ(actual.winner()[1], 2);
  }
}
