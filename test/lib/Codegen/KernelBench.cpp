//===- KernelBench.cpp - Generated kernels against loops by hand *- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gather_pool_128_sum over bags of 20 ids, from a table that fits the cache and
// from one that does not, against the same loop written with AVX2 intrinsics:
// once plain, once with the kernel's prefetch; and the kernels of the narrower
// types over as many rows. Counters: rows and bytes of rows a second. Run on an
// idle machine.
//
//===----------------------------------------------------------------------===//
#include "CompiledKernels.h"

#include <benchmark/benchmark.h>
#include <immintrin.h>

using namespace terrace;
using namespace terrace::codegen;
using namespace terrace::test;

namespace {
constexpr int64_t dim = 128, bags = 10000, bagSize = 20;

/// Of a row and the 4 bytes that a row-wise optimizer adds.
int64_t pitchOf(const KernelConfig &config) {
  return 4 * config.weightWords() + 4;
}

struct Batch {
  Batch(int64_t count, int64_t pitch) : rows(size_t(count * pitch / 4)) {
    std::mt19937 random(7);
    for (float &value : rows)
      value = float(random() % 1000);
    for (int64_t i = 0; i < bags * bagSize; ++i) {
      slots.push_back(random() % count);
      x.push_back(random() % (bags * bagSize));
    }
    for (int64_t b = 0; b <= bags; ++b)
      offsets.push_back(int32_t(b * bagSize));
    out.resize(bags * dim);
  }
  std::vector<float> rows, out;
  std::vector<uint32_t> slots, x;
  std::vector<int32_t> offsets;
};

template <bool prefetch>
__attribute__((target("avx2,fma"))) void
byHand(const char *rows, int64_t pitch, const uint32_t *slots,
       const uint32_t *x, const int32_t *offsets, const float *, float *out,
       int32_t *, int64_t begin, int64_t end) {
  constexpr int vectors = dim / 8;
  const int32_t last = offsets[end] - 1;
  for (int64_t bag = begin; bag < end; ++bag) {
    __m256 sum[vectors];
    for (__m256 &s : sum)
      s = _mm256_setzero_ps();
    for (int32_t j = offsets[bag]; j < offsets[bag + 1]; ++j) {
      if (prefetch) {
        const char *next =
            rows + int64_t(slots[x[std::min(j + 16, last)]]) * pitch;
        for (int64_t line = 0; line < 4 * dim; line += 64)
          _mm_prefetch(next + line, _MM_HINT_T0);
      }
      auto *row =
          reinterpret_cast<const float *>(rows + int64_t(slots[x[j]]) * pitch);
#pragma GCC unroll 16
      for (int i = 0; i < vectors; ++i)
        sum[i] = _mm256_add_ps(sum[i], _mm256_loadu_ps(row + 8 * i));
    }
#pragma GCC unroll 16
    for (int i = 0; i < vectors; ++i)
      _mm256_storeu_ps(out + bag * dim + 8 * i, sum[i]);
  }
}

void run(benchmark::State &state, const KernelConfig &config,
         trc_gather_pool_fn kernel) {
  const int64_t pitch = pitchOf(config);
  const int64_t whole = pitchOf(KernelConfig::gatherPool(dim, Pooling::Sum));
  Batch batch((state.range(0) << 20) / whole, pitch);
  for (auto _ : state) {
    kernel(reinterpret_cast<const char *>(batch.rows.data()), pitch,
           batch.slots.data(), batch.x.data(), batch.offsets.data(), nullptr,
           batch.out.data(), nullptr, 0, bags);
    benchmark::ClobberMemory();
  }
  const int64_t rows = state.iterations() * bags * bagSize;
  state.SetItemsProcessed(rows);
  state.SetBytesProcessed(rows * 4 * config.weightWords());
}
} // namespace

int main(int argc, char **argv) {
  std::vector<KernelConfig> configs;
  for (Element element :
       {Element::F32, Element::F16, Element::BF16, Element::I8, Element::I4})
    configs.push_back(
        KernelConfig::gatherPool(dim, Pooling::Sum).stored(element));
  auto kernels = CompiledKernels::compile(configs);
  if (!kernels)
    return 1;
  auto add = [&](const std::string &name, const KernelConfig &config,
                 trc_gather_pool_fn kernel) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [config, kernel](benchmark::State &state) {
                                   run(state, config, kernel);
                                 })
        ->Arg(1)
        ->Arg(512)
        ->ArgName("MiB")
        ->Unit(benchmark::kMillisecond);
  };
  if (canRun(TRC_CPU_V3)) {
    add("by hand, AVX2", configs[0], byHand<false>);
    add("by hand, AVX2, prefetch", configs[0], byHand<true>);
  }
  for (const KernelConfig &config : configs)
    for (const Image &image : allImages())
      if (canRun(image.index))
        add(config.name() + image.suffix, config,
            reinterpret_cast<trc_gather_pool_fn>(
                const_cast<void *>(kernels->find(config, image.index))));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
