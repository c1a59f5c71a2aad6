//===- Hash.h - The hashes of ids, strings and tables ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The few hash functions that docs/numerics.md fixes for good: a row of a
// `hash` table, the 64-bit id of a string and the key of a table's row
// initialiser depend on them, so stored states do too. Header only and free
// of dependencies: the compiler includes it as well.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_CORE_HASH_H
#define TERRACE_RUNTIME_CORE_HASH_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trc {

/// The finalizer of SplitMix64: a bijection of 64 bits.
inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Row of `id` in a `hash` table: the high half of mix64(id) * rows.
inline int64_t hashRow(int64_t id, int64_t rows) {
  return static_cast<int64_t>(
      (static_cast<unsigned __int128>(mix64(static_cast<uint64_t>(id))) *
       static_cast<uint64_t>(rows)) >>
      64);
}

inline uint64_t fnv1a64(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (char c : text)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

/// The 64-bit id of a string feature's value.
inline int64_t hashString(std::string_view text) {
  return static_cast<int64_t>(mix64(fnv1a64(text)));
}

/// Key of a table's row initialiser (`init_key` of the artifact). The manifest
/// stores it, so that a renamed or reseeded table keeps its unwritten rows.
inline uint64_t tableInitKey(uint64_t seed, std::string_view table) {
  return mix64(mix64(seed + 0x9e3779b97f4a7c15ull) ^ fnv1a64(table));
}

/// The SplitMix64 generator: a small, seedable stream for synthetic data.
class SplitMix {
public:
  explicit SplitMix(uint64_t seed) : state(seed) {}
  uint64_t next() { return mix64(state += 0x9e3779b97f4a7c15ull); }
  /// Uniform in 0 .. bound - 1; bound > 0.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  /// Uniform in [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

} // namespace trc

#endif // TERRACE_RUNTIME_CORE_HASH_H
