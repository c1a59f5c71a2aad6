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

/// Share of a batch's unique rows that miss, by rows cached. Points rise in
/// rows; (0, 1) is implied; past the last point the curve stays level.
using MissCurve = std::vector<std::pair<int64_t, double>>;

struct TableProfile {
  std::string name;
  double idsPerBatch = 0;    // occurrences
  double uniquePerBatch = 0; // distinct rows
  int64_t maxUniquePerBatch = 0;
  MissCurve missCurve;
  /// Accesses by reuse inside a batch: counts 1, 2, 3-4, 5-8, ...
  std::vector<double> reuse;
};

struct FeatureProfile {
  std::string name;
  double meanIds = 0; // ids of a bag
  double samplesPerSession = 1;
  double unchanged = 0; // d: P(bag equals the previous one of its session)
};

struct GroupProfile {
  std::string name;
  double samplesPerSession = 1; // S, inside one batch
  double unchanged = 0;         // d: no member changes
  double uniqueBags = 0;        // distinct tuples of a batch; 0: not measured
};

struct Profile {
  std::string origin; // file name; empty: nothing measured
  int64_t batch = 0;  // samples a batch had when it was measured
  std::vector<TableProfile> tables;
  std::vector<FeatureProfile> features;
  std::vector<GroupProfile> groups;

  const TableProfile *table(llvm::StringRef name) const;
  const FeatureProfile *feature(llvm::StringRef name) const;
  const GroupProfile *group(llvm::StringRef name) const;

  static llvm::Expected<Profile> parse(llvm::StringRef text,
                                       llvm::StringRef name);
  static llvm::Expected<Profile> load(llvm::StringRef path);
};

/// RecD: how many times fewer bags remain, 1 / (1 - d (S-1) / S).
double dedupFactor(double samplesPerSession, double unchanged);

/// Without a profile, for a group that the user named: S = 4, d = 0.9.
inline constexpr double assumedSamplesPerSession = 4;
inline constexpr double assumedUnchanged = 0.9;

/// Expected distinct rows of n uniform draws from `rows`.
double uniformUnique(double draws, double rows);

/// Miss ratio of a cache of `cached` out of `rows` rows: from the curve, or
/// uniform where it is empty. 0 where everything is cached.
double missRatio(const MissCurve &curve, int64_t rows, int64_t cached);

} // namespace terrace::profile

#endif // TERRACE_LIB_PROFILE_PROFILE_H
