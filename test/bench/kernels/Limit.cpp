//===- Limit.cpp - How fast rows can be gathered and summed ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops by hand over the same ids and rows as the benchmark's: what a gather
// costs without plan, check or update. They differ in how far ahead rows are
// prefetched; the best one is the limit. Called from kernels.py.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <cstdint>
#include <immintrin.h>
#include <thread>
#include <vector>

namespace {

struct Job {
  const char *rows; // [count, dim], f32 or f16
  int64_t dim;
  int64_t bytes; // of an element
  const int64_t *ids;
  const int64_t *offsets; // of bags
  float *out;             // [bags, dim]
  int64_t ahead;          // rows to prefetch ahead, 0: none
};

inline __m256 load(const char *at, int64_t bytes) {
  return bytes == 4 ? _mm256_loadu_ps(reinterpret_cast<const float *>(at))
                    : _mm256_cvtph_ps(_mm_loadu_si128(
                          reinterpret_cast<const __m128i *>(at)));
}

inline float loadOne(const char *at, int64_t bytes) {
  if (bytes == 4)
    return *reinterpret_cast<const float *>(at);
  const __m128i half =
      _mm_cvtsi32_si128(*reinterpret_cast<const uint16_t *>(at));
  return _mm_cvtss_f32(_mm_cvtph_ps(half));
}

/// Columns first .. first + 8 * vectors of a bag, in registers.
template <int vectors>
inline void block(const Job &j, int64_t bag, int64_t first) {
  __m256 sum[vectors];
  for (__m256 &s : sum)
    s = _mm256_setzero_ps();
  const int64_t pitch = j.dim * j.bytes;
  for (int64_t i = j.offsets[bag]; i < j.offsets[bag + 1]; ++i) {
    const char *row = j.rows + j.ids[i] * pitch + first * j.bytes;
    for (int v = 0; v < vectors; ++v)
      sum[v] = _mm256_add_ps(sum[v], load(row + 8 * v * j.bytes, j.bytes));
  }
  for (int v = 0; v < vectors; ++v)
    _mm256_storeu_ps(j.out + bag * j.dim + first + 8 * v, sum[v]);
}

void run(const Job &j, int64_t begin, int64_t end) {
  const int64_t pitch = j.dim * j.bytes, last = j.offsets[end] - 1;
  for (int64_t bag = begin; bag < end; ++bag) {
    if (j.ahead)
      for (int64_t i = j.offsets[bag]; i < j.offsets[bag + 1]; ++i) {
        const char *next = j.rows + j.ids[std::min(i + j.ahead, last)] * pitch;
        for (int64_t line = 0; line < pitch; line += 64)
          _mm_prefetch(next + line, _MM_HINT_T0);
      }
    int64_t c = 0;
    for (; c + 128 <= j.dim; c += 128)
      block<16>(j, bag, c);
    for (; c + 64 <= j.dim; c += 64)
      block<8>(j, bag, c);
    for (; c + 16 <= j.dim; c += 16)
      block<2>(j, bag, c);
    for (; c + 8 <= j.dim; c += 8)
      block<1>(j, bag, c);
    for (; c < j.dim; ++c) {
      float sum = 0;
      for (int64_t i = j.offsets[bag]; i < j.offsets[bag + 1]; ++i)
        sum += loadOne(j.rows + j.ids[i] * pitch + c * j.bytes, j.bytes);
      j.out[bag * j.dim + c] = sum;
    }
  }
}

} // namespace

extern "C" void limit_gather(const char *rows, int64_t dim, int64_t bytes,
                             const int64_t *ids, const int64_t *offsets,
                             int64_t bags, float *out, int64_t ahead,
                             int64_t threads) {
  const Job job{rows, dim, bytes, ids, offsets, out, ahead};
  std::vector<std::thread> others;
  const int64_t part = (bags + threads - 1) / threads;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back(run, job, std::min(bags, t * part),
                        std::min(bags, (t + 1) * part));
  run(job, 0, std::min(bags, part));
  for (std::thread &t : others)
    t.join();
}
