//===- Config.h - The artifact's run-time keys: train and data --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the executable's main reads of the plan's JSON (docs/artifact.md) for
// itself: `train` and `data`, which `--set` may change, and a few facts of the
// plan that it prints or feeds to the synthetic batches.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_CONFIG_H
#define TERRACE_RUNTIME_MODEL_CONFIG_H

#include "runtime/core/Status.h"
#include "runtime/data/BatchReader.h"
#include "runtime/model/LrSchedule.h"
#include "terrace-rt/artifact.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace trc::model {

/// A number of steps or rows, or a share of the rows; none of both: never.
struct Amount {
  int64_t count = 0;
  double percent = 0;
  bool none() const { return count == 0 && percent == 0; }
  /// In rows (or steps) of a whole; a share is rounded down.
  int64_t of(int64_t whole) const;
};

struct StopRule {
  std::string metric; // auc (at least), logloss, ne (at most)
  double value = 0;
};

struct TrainConfig {
  int64_t epochs = 1;
  Amount evalEvery; // steps, or a share of the training rows
  std::vector<std::string> metrics = {"auc", "logloss", "ne"};
  int64_t checkpointSteps = 0, checkpointSeconds = 0, checkpointKeep = 3;
  LrSchedule lrSchedule;
  std::vector<StopRule> stop;
};

struct DataConfig {
  std::vector<std::string> paths, evalPaths, columns;
  Amount evalLast;
  std::string listSep = ",";
  bool skipBadRows = false;
  int64_t shuffleBuffer = 0;
  uint64_t shuffleSeed = 0;
};

struct ModelConfig {
  nlohmann::json plan; // without `reference` and `ops`
  TrainConfig train;
  DataConfig data;
  std::string model, label;

  static Result<ModelConfig> parse(const trc_artifact &artifact);
  /// `--set key=value`: keys of `train` and `data`; a compiled-in key is an
  /// error that names it.
  Status set(const std::string &assignment);
  /// All of them, and then whether they make sense together.
  Status setAll(const std::vector<std::string> &assignments);

  bool hasHead() const { return !label.empty(); }
  /// Compiled with --serve: forward only.
  bool serve() const { return plan.value("serve", false); }
  /// How rows become batches; `needLabel` false: the label may be missing.
  data::ReaderOptions reader(bool needLabel) const;
};

/// The rows that train and the rows that are held out, as reader options.
struct DataSplit {
  data::ReaderOptions train, heldOut;
  bool hasHeldOut = false;
  int64_t trainRows = -1; // -1: not counted
};
/// Expands the paths and, where a share is asked for, counts the rows.
Result<DataSplit> splitData(const ModelConfig &config, bool needLabel,
                            bool countTrainRows);

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_CONFIG_H
