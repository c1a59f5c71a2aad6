//===- Profile.h - Measured statistics of the ids ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `terrace data profile` measured (keys: docs/profile.md), by table,
// feature and dedup group; and what is assumed where nothing was measured.
// Plain values, found by name. The assumptions are pessimistic for caches
// (uniform ids) and stated by explain.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_PROFILE_PROFILE_H
#define TERRACE_LIB_PROFILE_PROFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace terrace::profile {

/// Share of accesses that miss in an LRU cache, by rows cached. Points rise in
/// rows; (0, 1) is implied; past the last point the curve stays level.
using MissCurve = std::vector<std::pair<int64_t, double>>;

/// Statistics of one table's, feature's or dedup group's ids; means are per
/// batch of `batch` samples. 0 or empty: not measured.
struct Stats {
  std::string name;
  int64_t batches = 0, batch = 0;
  double ids = 0; // occurrences
  int64_t maxIds = 0;
  double uniqueIds = 0;
  int64_t maxUniqueIds = 0;
  double uniqueBags = 0;
  double uniqueBagIds = 0; // ids in the unique bags
  double samplesPerSession = 0;
  double unchanged = 0; // d: P(bag equals the previous one of its session)
  int64_t distinctIds = 0;
  int64_t cold = 0;           // accesses without an earlier one
  std::vector<int64_t> reuse; // by powers of two of batches back
  MissCurve missCurve;
};

struct Profile {
  std::string origin; // file name; empty: nothing measured
  std::vector<Stats> tables, features, groups;

  const Stats *table(llvm::StringRef name) const;
  const Stats *feature(llvm::StringRef name) const;
  const Stats *group(llvm::StringRef name) const;

  static llvm::Expected<Profile> parse(llvm::StringRef text,
                                       llvm::StringRef name);
  static llvm::Expected<Profile> load(llvm::StringRef path);
};

/// RecD: how many times fewer bags remain, 1 / (1 - d (S-1) / S).
double dedupFactor(double samplesPerSession, double unchanged);

/// Without a profile, for a group that the user named: S = 16, d = 0.9.
inline constexpr double assumedSamplesPerSession = 16;
inline constexpr double assumedUnchanged = 0.9;

/// Expected distinct rows of n uniform draws from `rows`.
double uniformUnique(double draws, double rows);

/// Rows that a batch of `ids` occurrences and `unique` rows fetches with
/// `cached` of `rows` rows at hand: from the curve, or uniform where it is
/// empty. 0 where everything is cached; never above `unique`.
double missesPerBatch(const MissCurve &curve, int64_t rows, double cached,
                      double ids, double unique);

} // namespace terrace::profile

#endif // TERRACE_LIB_PROFILE_PROFILE_H
