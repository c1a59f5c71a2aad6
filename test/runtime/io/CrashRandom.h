//===- CrashRandom.h - What becomes of a write, by a seed -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers that depend on what is asked about (a path, an offset), not
// on the order of asking, so that a crash is the same whatever threads did.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_IO_CRASHRANDOM_H
#define TERRACE_TEST_RUNTIME_IO_CRASHRANDOM_H

#include <cstdint>
#include <string>

namespace trc {

inline uint64_t crashMix(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15ull * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

inline uint64_t crashMix(uint64_t a, const std::string &text) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : text)
    h = (h ^ c) * 0x100000001b3ull;
  return crashMix(a, h);
}

enum class Fate { Kept, Lost, Torn };

/// How a crash treats what was not durable. The mood is the crash's: extremes
/// (all is kept, all is lost) and near misses are as likely as a fair mix, for
/// they are what protocols get wrong.
class CrashFates {
public:
  explicit CrashFates(uint64_t seed) : seed(crashMix(seed, 0x5eed)) {
    struct Mood {
      uint32_t lost, torn; // of 16
    };
    static constexpr Mood moods[] = {{0, 0},  {16, 0}, {1, 1}, {14, 1},
                                     {2, 12}, {6, 4},  {8, 0}, {6, 4}};
    const Mood &mood = moods[this->seed % 8];
    lost = mood.lost;
    torn = mood.torn;
  }

  uint64_t key(const std::string &what) const { return crashMix(seed, what); }
  Fate of(uint64_t key) const {
    uint64_t roll = crashMix(seed, key) % 16;
    return roll < lost          ? Fate::Lost
           : roll < lost + torn ? Fate::Torn
                                : Fate::Kept;
  }
  /// Whether something that is all or nothing happened.
  bool happened(uint64_t key) const {
    Fate fate = of(key);
    return fate == Fate::Kept || (fate == Fate::Torn && key % 2);
  }

private:
  uint64_t seed;
  uint32_t lost, torn;
};

} // namespace trc

#endif // TERRACE_TEST_RUNTIME_IO_CRASHRANDOM_H
