//===- Spec.h - A resolved, validated model spec ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the user wrote in YAML, as plain structs: `count` expanded, templates
// and defaults applied, inline tables made, every default filled in, every
// reference checked. Each value knows where it was written, so that later
// stages can point at it. No MLIR here: LLVM's Support library only.
//
// parse(print(spec)) == spec. Structs are values: copy and edit them freely.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SPEC_SPEC_H
#define TERRACE_SPEC_SPEC_H

#include "Spec/Diagnostics.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace terrace::spec {

/// A value and where it was written; `loc` is invalid for a default.
template <typename T> struct Value {
  T value{};
  Loc loc{};

  Value() = default;
  Value(T value, Loc loc = {}) : value(std::move(value)), loc(loc) {}
  operator const T &() const { return value; }
  const T &operator*() const { return value; }
  const T *operator->() const { return &value; }
  bool isDefault() const { return !loc.isValid(); }
};
using Str = Value<std::string>;
using Int = Value<int64_t>;
using Real = Value<double>;

enum class Numerics { Strict, Reassociate };
enum class OnBadId { Error, Drop };
enum class OnBadGrad { Error, Skip };
enum class OnBadRow { Error, Skip };
enum class OnStoreFull { Error, DropOldest };
enum class OnWear { Error, Warn };
enum class DType { F32, F16, BF16, Int8, Int4 };
enum class Rounding { Nearest, Stochastic };
enum class InitKind { Uniform, Normal, Constant };
enum class OptimizerKind {
  Sgd,
  Adagrad,
  RowwiseAdagrad,
  Adam,
  PartialRowwiseAdam,
  Lamb,
  Ftrl
};
enum class DecayMode { L2, Decoupled };
enum class IdsKind { Index, Hash, Dynamic };
enum class EvictPolicy { Lru, Lfu };
enum class OnFull { Error, Evict };
enum class Pooling { Sum, Mean, WeightedMean, Sqrtn, Max, None };
enum class Overflow { Error, KeepFirst, KeepLast };
enum class IdType { Int, String };
enum class HeadKind { Logistic, Fm, Dlrm };
enum class Loss { Bce };
enum class InteractionKind { Dot, DcnV2 };
enum class Metric { Auc, Logloss, Ne };
enum class TierKind { Hbm, Dram, Pmem, Nvme }; ///< fastest first
enum class TierScope { Node, Worker };
enum class Device { Cpu, Gpu };

/// The words of the spec, e.g. "rowwise_adagrad"; one overload per enum.
llvm::StringRef name(Numerics);
llvm::StringRef name(OnBadId);
llvm::StringRef name(OnBadGrad);
llvm::StringRef name(OnBadRow);
llvm::StringRef name(OnStoreFull);
llvm::StringRef name(OnWear);
llvm::StringRef name(DType);
llvm::StringRef name(Rounding);
llvm::StringRef name(InitKind);
llvm::StringRef name(OptimizerKind);
llvm::StringRef name(DecayMode);
llvm::StringRef name(IdsKind);
llvm::StringRef name(EvictPolicy);
llvm::StringRef name(OnFull);
llvm::StringRef name(Pooling);
llvm::StringRef name(Overflow);
llvm::StringRef name(IdType);
llvm::StringRef name(HeadKind);
llvm::StringRef name(Loss);
llvm::StringRef name(InteractionKind);
llvm::StringRef name(Metric);
llvm::StringRef name(TierKind);
llvm::StringRef name(TierScope);
llvm::StringRef name(Device);

struct Batch {
  Int size = 2048; ///< samples of a step, at most
  Int maxIds = 0;  ///< ids of a batch over all features, at most
};

struct Init {
  Value<InitKind> kind = InitKind::Uniform;
  Real low = -0.01, high = 0.01; ///< uniform
  Real mean = 0.0, std = 0.01;   ///< normal
  Real value = 0.0;              ///< constant
};

/// Only the values that the kind knows are meaningful (and printed).
struct Optimizer {
  Value<OptimizerKind> kind = OptimizerKind::RowwiseAdagrad;
  Real lr = 0.02;
  Real eps = 1e-8;                 ///< all but sgd and ftrl
  Real beta1 = 0.9, beta2 = 0.999; ///< adam, partial_rowwise_adam, lamb
  Real momentum = 0.0;             ///< sgd
  Real beta = 1.0;                 ///< ftrl
  Real l1 = 0.0, l2 = 0.0;         ///< ftrl
  Real weightDecay = 0.0;          ///< all but ftrl
  Value<DecayMode> weightDecayMode = DecayMode::L2; ///< all but ftrl and lamb
  Real clipNorm = 0.0; ///< of a row's gradient; 0: none

  bool hasEps() const {
    return kind != OptimizerKind::Sgd && kind != OptimizerKind::Ftrl;
  }
  bool hasMoments() const {
    return kind == OptimizerKind::Adam || kind == OptimizerKind::Lamb ||
           kind == OptimizerKind::PartialRowwiseAdam;
  }
};

struct Ids {
  Value<IdsKind> kind = IdsKind::Index;
  // dynamic only:
  Int admitMinCount = 1;
  Value<EvictPolicy> evictPolicy = EvictPolicy::Lru;
  Int ttlSeconds = 0; ///< 0: never
  Value<OnFull> onFull = OnFull::Error;
};

struct Table {
  Loc loc;
  Str name;
  Int rows = 0; ///< capacity where ids are dynamic
  Int dim = 0;
  Value<DType> dtype = DType::F32;
  Value<Rounding> rounding = Rounding::Nearest; ///< of updates in f16 and bf16
  Init init;
  Optimizer optimizer;
  Ids ids;
};

struct Feature {
  Loc loc;
  Str name;
  Str column;
  unsigned table = 0; ///< index into Spec::tables
  Loc tableLoc;
  Value<IdType> type = IdType::Int;
  Value<Pooling> pooling = Pooling::Sum;
  std::optional<Str> weights; ///< a column
  Int maxIds = 1;             ///< of one bag
  Real meanIds = 1.0;         ///< expected; defaults to max_ids
  Value<Overflow> overflow = Overflow::Error;
  std::optional<Str>
      dedup; ///< features of one group have bags that repeat together
};

struct DenseFeature {
  Loc loc;
  Str name;
  Str column;
};

struct Head {
  Loc loc;
  Value<HeadKind> kind = HeadKind::Fm;
  Str label; ///< a column of 0 and 1
  Value<Loss> loss = Loss::Bce;
  // dlrm only:
  std::vector<Int> bottomMlp, topMlp;
  Value<InteractionKind> interaction = InteractionKind::Dot;
  Int interactionLayers = 3, interactionRank = 512; ///< dcn_v2
  Optimizer optimizer;
};

/// A number of steps or rows, or a share of the rows; none of both: never.
struct Amount {
  int64_t count = 0;
  double percent = 0;
  bool isNone() const { return count == 0 && percent == 0; }
};

struct Checkpoint {
  Int everySteps = 0;   ///< 0: not by steps
  Int everySeconds = 0; ///< 0: not by time
  Int keep = 3;
  Real churn = 0.5; ///< rows written between two checkpoints, as a part of all
  Value<OnStoreFull> onFull = OnStoreFull::Error;
};

struct LrSchedule {
  Int warmupSteps = 0, decayStart = 0, decaySteps = 0; ///< decaySteps 0: none
  Real decayPower = 1.0, endScale = 0.0;
};

struct StopRule {
  Metric metric;
  Real value; ///< auc: at least; logloss, ne: at most
};

struct Train {
  Int epochs = 1;
  Value<Amount> evalEvery; ///< steps or % of the rows; none: at the end only
  std::vector<Value<Metric>> metrics = {Metric::Auc, Metric::Logloss,
                                        Metric::Ne};
  Checkpoint checkpoint;
  LrSchedule lrSchedule;
  std::vector<StopRule> stop;
};

struct Shuffle {
  Int buffer = 0; ///< rows
  Value<uint64_t> seed = uint64_t(0);
};

struct DataEval {
  Value<Amount> last;     ///< rows at the end of the data, or %
  std::vector<Str> paths; ///< or files of their own
};

struct Data {
  Loc loc;
  std::vector<Str> paths;           ///< may hold globs; read in this order
  std::optional<Str> session, time; ///< columns
  Str listSep = std::string(",");
  Value<OnBadRow> onBadRow = OnBadRow::Error;
  std::optional<Shuffle> shuffle; ///< none: file order
  std::optional<DataEval> eval;
};

struct Tier {
  Loc loc;
  Str name;
  Value<TierKind> kind = TierKind::Dram;
  Int capacity = 0; ///< bytes: rows, index, cache and staging
  Value<TierScope> per = TierScope::Node;
  std::vector<Str> paths;                ///< pmem, nvme; several are striped
  std::optional<Real> driveWritesPerDay; ///< nvme
  Value<OnWear> onWear = OnWear::Error;
};

struct CachePin {
  Str tier;
  Int bytes = 0;
};

struct PlacePin {
  Loc loc;
  Str tables; ///< glob over table names
  std::optional<Str> home;
  std::vector<CachePin> cache;
  bool matches(llvm::StringRef table) const;
};

struct Pins {
  std::optional<Int> lookahead; ///< none: auto
  Loc lookaheadLoc;
  std::vector<PlacePin> place; ///< the last entry that matches a table counts
  std::vector<std::vector<Str>> together; ///< tables on one worker
};

struct Target {
  Value<Device> device = Device::Cpu;
  std::vector<Str> arch; ///< cpu: x86-64-v3, x86-64-v4; gpu: sm_90, ...
};

struct Spec {
  std::vector<Source> sources; ///< what Loc::file points into
  bool nodeOnly = false;       ///< a node file alone: no model in it

  Str model;
  Value<uint64_t> seed = uint64_t(0);
  Value<Numerics> numerics = Numerics::Strict;
  Value<OnBadId> onBadId = OnBadId::Error;
  Value<OnBadGrad> onBadGrad = OnBadGrad::Error;
  Batch batch;
  std::vector<Table> tables;
  std::vector<Feature> features;
  std::vector<DenseFeature> dense;
  std::optional<Head> head; ///< none: a library for a trainer
  Train train;
  std::optional<Value<DType>> serveDType; ///< of all tables that are served
  bool serving = false;                   ///< made by forServing: forward only
  std::optional<Data> data;

  std::vector<Tier> tiers; ///< empty: no memory declared, nothing bounds it
  Int workers = 1;
  Target target;
  std::optional<Str> machine; ///< a file
  Pins plan;

  const Tier *tier(llvm::StringRef name) const;
  /// Index of a table by name, or -1.
  int tableIndex(llvm::StringRef name) const;
  /// The pin that counts for a table, or null.
  const PlacePin *pinOf(llvm::StringRef table) const;
  /// Names of the dedup groups, in order of first use.
  std::vector<std::string> dedupGroups() const;
};

/// What makes up a spec. `edits` are `key=value`, applied last: keys are
/// dotted, list items are addressed by name (memory.tiers.dram.capacity=4GiB).
struct SpecInput {
  std::string modelFile;
  std::string nodeFile; ///< empty: none
  std::vector<std::string> edits;
};

/// Reads, merges, expands and validates. All errors go to `diagnostics`;
/// none where there were any. An unreadable file is an error without line.
std::optional<Spec> parseSpec(const SpecInput &input, Diagnostics &diagnostics);
/// The same from text; `fileName` is what locations show.
std::optional<Spec> parseSpecText(llvm::StringRef text,
                                  llvm::StringRef fileName,
                                  Diagnostics &diagnostics,
                                  llvm::StringRef nodeText = {},
                                  llvm::StringRef nodeName = {},
                                  llvm::ArrayRef<std::string> edits = {});

/// Canonical YAML: everything expanded, all defaults filled in.
void printSpec(const Spec &spec, llvm::raw_ostream &os);
std::string printSpec(const Spec &spec);

/// The model as `--serve` compiles it: rows as `serve.dtype` says, no optimizer
/// state, no training step. What it locates is where `spec` has it.
Spec forServing(const Spec &spec);

/// The file of `machine`, which must be given: relative to the file that names
/// it, or of a --set to where the command runs.
std::string machinePath(const Spec &spec);

/// For stages that decide a plan (decision, explain and all after them).
bool checkPlannable(const Spec &spec, Diagnostics &diagnostics);
/// For stages that make code (obj, lib, exe): what cannot run yet is a located
/// error here. Includes checkPlannable.
bool checkExecutable(const Spec &spec, Diagnostics &diagnostics);

/// The commented spec that `terrace init` writes.
std::string initText(llvm::StringRef model);

} // namespace terrace::spec

#endif // TERRACE_SPEC_SPEC_H
