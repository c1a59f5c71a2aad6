//===- SegmentUpdateTest.cpp - Optimizers against naive loops ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bit for bit, every optimizer with and without decay and each image, for each
// dimension, over several steps so that the state counts: long and empty
// segments, gradients shared by rows, rows at odd multiples of four bytes,
// calls that split the range, a guard word behind every row, and a page behind
// every array that must not be touched.
//
//===----------------------------------------------------------------------===//
#include "CompiledKernels.h"
#include "KernelReference.h"

#include "gtest/gtest.h"

using namespace terrace;
using namespace terrace::codegen;
using namespace terrace::test;

namespace {
constexpr int64_t tableRows = 31, unique = 19, bags = 12;
constexpr float guard = 54321.25f;

std::vector<KernelConfig> configsOf(int64_t dim) {
  std::vector<KernelConfig> configs;
  for (Optimizer optimizer :
       {Optimizer::Sgd, Optimizer::Adagrad, Optimizer::RowwiseAdagrad,
        Optimizer::Adam, Optimizer::MomentumSgd, Optimizer::PartialRowwiseAdam,
        Optimizer::Lamb, Optimizer::Ftrl})
    for (int variant = 0; variant < 8; ++variant) {
      auto config = KernelConfig::segmentUpdate(dim, optimizer, variant & 1,
                                                variant & 2, variant & 4);
      // Each combination at some dimensions, each option at all of them.
      const bool all = dim == 7 || dim == 130;
      if (llvm::Error error = config.verify())
        llvm::consumeError(std::move(error));
      else if (all || variant == 0 || variant == 1 || variant == 4 ||
               variant == 6)
        configs.push_back(config);
    }
  // Stored narrow: what an optimizer does before it rounds is the same.
  for (size_t i = 0, wide = configs.size(); i < wide; ++i)
    for (Element element : {Element::F16, Element::BF16})
      for (bool stochastic : {false, true})
        if (i % 5 == 0 || dim == 7)
          configs.push_back(configs[i].stored(element, stochastic));
  return configs;
}

/// hp as docs/artifact.md orders it; what a kernel has no business with is NaN,
/// which shows in the result if it is ever read.
Guarded<float> hyperparameters(const KernelConfig &config) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const float dim = float(config.dim);
  auto own = [&]() -> std::vector<float> {
    switch (config.optimizer) {
    case Optimizer::Sgd:
      return {-0.05f};
    case Optimizer::MomentumSgd:
      return {-0.05f, none, none, 0.9f};
    case Optimizer::Adagrad:
      return {-0.05f, none, 1e-8f};
    case Optimizer::RowwiseAdagrad:
      return {0.05f, none, 1e-8f, dim};
    case Optimizer::Adam:
      return {-0.05f, none, 1e-8f, 0.1f, 0.001f};
    case Optimizer::PartialRowwiseAdam:
      return {0.05f, none, 1e-8f, 0.1f, 0.001f, 0.002f, dim};
    case Optimizer::Lamb:
      return {0.05f, none, 1e-8f, 0.1f, 0.001f, 0.19f, 0.002f};
    case Optimizer::Ftrl:
      return {0.75f, none, 0.5f, 0.25f, 0.125f, 0.05f};
    }
    return {};
  }();
  own.resize(10, none);
  if (config.decay)
    own[1] = 0.0125f;
  if (config.decoupled)
    own[8] = 0.9995f;
  if (config.clip)
    own[9] = 0.75f;
  Guarded<float> hp;
  for (float x : own)
    hp.push_back(x);
  hp.shrink_to_fit();
  return hp;
}

struct Step {
  Step(int64_t dim, std::mt19937 &random) {
    for (int64_t i = 0; i < bags * dim; ++i)
      grads.push_back(randomFloat(random));
    seg.push_back(0);
    for (int64_t u = 0; u < unique; ++u) {
      slots.push_back(uint32_t((u * 5 + 2) % tableRows));
      int64_t n = u == 4 ? 0 : random() % 3 == 0 ? random() % 40 : 1;
      for (int64_t k = 0; k < n; ++k) {
        occ.push_back(random() % bags);
        coef.push_back(random() % 2 ? 1.0f : randomFloat(random));
      }
      seg.push_back(int32_t(occ.size()));
      seeds.push_back(uint64_t(random()) << 32 | random());
    }
    grads.shrink_to_fit();
    seeds.shrink_to_fit();
    coef.shrink_to_fit();
    slots.shrink_to_fit();
    occ.shrink_to_fit();
    seg.shrink_to_fit();
  }
  Guarded<float> grads, coef;
  Guarded<uint64_t> seeds;
  Guarded<uint32_t> slots, occ;
  Guarded<int32_t> seg;
};

class SegmentUpdate : public testing::TestWithParam<int64_t> {};

void compare(const CompiledKernels &kernels, const KernelConfig &config,
             int image) {
  std::mt19937 random(unsigned(config.dim) * 31 + unsigned(config.optimizer));
  const int64_t words = config.weightWords();
  const int64_t width = words + config.stateFloats() + 1;
  // The last row ends where the array does, without its guard word.
  Guarded<float> expected(1 + tableRows * width - 1, 0.0f);
  for (int64_t row = 0; row < tableRows; ++row) {
    float *at = &expected[1 + row * width];
    for (int64_t c = 0; c < config.dim; ++c)
      storeWeight(config.stored(config.element), reinterpret_cast<char *>(at),
                  c, randomFloat(random));
    if (row < tableRows - 1)
      at[width - 1] = guard;
  }
  auto kernel = reinterpret_cast<trc_segment_update_fn>(
      const_cast<void *>(kernels.find(config, image)));
  ASSERT_NE(kernel, nullptr);
  Guarded<float> actual = expected, hp = hyperparameters(config);
  for (int number = 0; number < 3; ++number) {
    Step step(config.dim, random);
    referenceSegmentUpdate(config, reinterpret_cast<char *>(&expected[1]),
                           4 * width, step.slots.data(), step.seg.data(),
                           step.occ.data(), step.coef.data(), step.grads.data(),
                           hp.data(), step.seeds.data(), 0, unique);
    for (auto [begin, end] :
         {std::pair<int64_t, int64_t>{0, 7}, {7, 7}, {7, unique}})
      kernel(reinterpret_cast<char *>(&actual[1]), 4 * width, step.slots.data(),
             step.seg.data(), step.occ.data(), step.coef.data(),
             step.grads.data(), hp.data(),
             config.stochastic ? step.seeds.data() + begin : nullptr, begin,
             end);
    std::string where;
    // Words that hold two weights are compared as weights.
    auto floatsOf = [&](const Guarded<float> &rows) {
      Guarded<float> floats(rows.begin(), rows.end());
      for (int64_t row = 0; row < tableRows; ++row) {
        const auto *at = reinterpret_cast<const char *>(&rows[1 + row * width]);
        for (int64_t c = 0; c < config.dim; ++c)
          floats.push_back(loadWeight(config, at, c));
        for (int64_t c = 0; c < (config.element == Element::F32 ? 0 : words);
             ++c)
          floats[1 + row * width + c] = 0;
      }
      return floats;
    };
    ASSERT_TRUE(sameFloats(floatsOf(expected), floatsOf(actual), where))
        << config.name() << allImages()[image].suffix << " step " << number
        << ": " << where;
  }
}
} // namespace

TEST_P(SegmentUpdate, EqualsTheNaiveLoop) {
  std::vector<KernelConfig> configs = configsOf(GetParam());
  auto kernels = CompiledKernels::compile(configs);
  ASSERT_TRUE(kernels);
  for (const KernelConfig &config : configs)
    for (const Image &image : allImages()) {
      ASSERT_NE(kernels->find(config, image.index), nullptr) << config.name();
      if (!canRun(image.index))
        continue;
      // An empty range may come without arrays.
      reinterpret_cast<trc_segment_update_fn>(const_cast<void *>(kernels->find(
          config, image.index)))(nullptr, 0, nullptr, nullptr, nullptr, nullptr,
                                 nullptr, nullptr, nullptr, 3, 3);
      compare(*kernels, config, image.index);
    }
}

INSTANTIATE_TEST_SUITE_P(Dims, SegmentUpdate, testing::ValuesIn(testedDims),
                         testing::PrintToStringParamName());
