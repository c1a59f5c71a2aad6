//===- Problem.h - What the planner decides about ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables, features, tiers and pins as plain values, indexed instead of named.
// Made from an emb module (lib/Transforms/Emb/ProblemFromIR.h); unit tests make
// their own. Cost model, footprint and planner share it; none changes it.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_LIB_COSTMODEL_PROBLEM_H
#define TERRACE_LIB_COSTMODEL_PROBLEM_H

#include "Machine/Machine.h"
#include "Profile/Profile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace terrace::planner {

struct Tier {
  std::string name;
  machine::TierKind kind = machine::TierKind::DRAM;
  int64_t capacity = 0; // bytes
  bool perWorker = false;
  bool implied = false;         // no `memory:` was given: nothing bounds it
  double driveWritesPerDay = 0; // 0: not bounded
  bool warnOfWear = false;      // beyond that: a warning, not an error
  int extents = 1;              // files or devices, striped
};

enum class Optimizer {
  Sgd,
  Adagrad,
  RowwiseAdagrad,
  Adam,
  MomentumSgd,
  PartialRowwiseAdam,
  Lamb,
  Ftrl
};

struct Table {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  Optimizer optimizer = Optimizer::RowwiseAdagrad;
  bool weightDecay = false; // the kernel has a _decay variant
  bool hashed = false;      // ids are translated
  /// Optimizer with all its parameters: tables that differ share no kernel
  /// call.
  int recordClass = 0;
  int64_t weightsBytes = 0; // of one row; 0: dim f32
  /// Floats of optimizer state in a row.
  int64_t stateFloats() const;
  int64_t rowBytes() const { return weightsBytes ? weightsBytes : dim * 4; }
  /// W, then the state: the pitch of a row in a slot or a memory home.
  int64_t slotBytes() const {
    return (rowBytes() + 3) / 4 * 4 + stateFloats() * 4;
  }
  /// The pitch in a file: 8 bytes of header, whole 16 bytes.
  int64_t storeBytes() const { return (slotBytes() + 8 + 15) / 16 * 16; }
  profile::Stats stats; // zeros: assumed
};

enum class Pooling { Sum, Mean, WeightedMean, Sqrtn, Max, None };

struct Feature {
  std::string name;
  int table = 0;
  Pooling pooling = Pooling::Sum;
  bool weighted = false;
  bool keepLast = false; // overflow: keep_last
  int64_t maxIds = 1;    // of a bag
  double meanIds = 1;
  int dedup = -1; // into Problem::dedup: chosen groups only
};

/// A group of features whose bags emb-dedup made unique.
struct DedupGroup {
  std::string name;
  std::vector<int> features;
  double factor = 1; // samples per unique bag, expected
};

struct CachePin {
  int tier = 0;
  int64_t bytes = 0; // of retained rows, over all tables of the pin
};

/// One `plan.place` entry, resolved: it counts for exactly these tables.
struct Pin {
  std::vector<int> tables;
  int home = -1; // -1: the planner's choice
  bool cacheGiven = false;
  std::vector<CachePin> caches; // fastest first
  std::string text;             // as the user wrote it, for messages
};

enum class Head { None, Logistic, Fm, Other };

struct Problem {
  std::string model;
  int64_t batch = 0;
  int64_t maxIds = 0; // of a batch over all features
  int workers = 1;
  bool gpu = false;
  double storeSpace = 2;     // of a store, as a multiple of its rows' bytes
  int64_t storeRetained = 1; // checkpoints that stores retain at once
  Head head = Head::None;
  bool serve = false; // forward only: no row changes
  std::vector<Table> tables;
  std::vector<Feature> features;
  std::vector<DedupGroup> dedup;
  std::vector<Tier> tiers; // fastest kind first, else as declared
  std::vector<Pin> pins;
  std::optional<int64_t> lookahead;       // pinned
  std::vector<std::vector<int>> together; // tables on one worker
  machine::Machine machine = machine::Machine::conservative();
  std::string profileOrigin; // empty: nothing measured

  int tierIndex(llvm::StringRef name) const;
  /// Where rings, staging and outputs lie: the first dram tier, or -1.
  int ringTier() const;
};

/// The deepest lookahead that the executor runs.
inline constexpr int64_t maxLookahead = 8;

} // namespace terrace::planner

#endif // TERRACE_LIB_COSTMODEL_PROBLEM_H
