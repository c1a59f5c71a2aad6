//===- Interpreter.h - The step, run naively over plain arrays --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executes the artifact's reference program (docs/artifact.md) one op after
// the other: no tiers, no cache, no lookahead, no generated code. What a plan
// computes is right if it equals this, bit for bit. Only the definitions of
// runtime/core/{RowInit,Head,Hash,Math} are shared with the executor.
//
// forward() takes a batch up to the head; backward() applies the step. A batch
// that is not to be applied is simply followed by the next forward(). One
// thread; memory grows with the rows touched.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_REFERENCE_INTERPRETER_H
#define TERRACE_RUNTIME_REFERENCE_INTERPRETER_H

#include "runtime/reference/Tables.h"
#include "terrace-rt/session.h"

#include <memory>

namespace trc::reference {

/// Bags of ids; after `check` the ones that remain.
struct Bags {
  int feature = -1;
  std::vector<int64_t> ids, offsets;
  std::vector<float> weights; // empty where the feature has none
  int64_t count() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

/// Rows of floats: one per sample (or unique bag), or per id for `none`.
struct Matrix {
  int64_t dim = 0;
  std::vector<float> values;
  std::vector<int64_t> offsets; // none only: the bags' ranges of rows
  const float *row(int64_t r) const { return values.data() + r * dim; }
  float *row(int64_t r) { return values.data() + r * dim; }
};

class Interpreter {
public:
  static Result<std::unique_ptr<Interpreter>> create(std::string_view planJson);

  /// Runs up to the head. Bad input leaves everything as it was.
  Status forward(const trc_batch &batch);

  /// What trc_forward hands out. Head models: probabilities(); else output(i).
  const std::vector<float> &probabilities() const { return p; }
  const Matrix &output(size_t feature) const;
  bool hasHead() const { return !program.denseOp().caller; }
  /// Mean loss of the last forward that had labels.
  double loss() const { return lastLoss; }
  int64_t samples() const { return n; }

  /// Applies the step. `gradients`: one per feature, shaped as its output
  /// (models without a head); else null.
  Status backward(const std::vector<Matrix> *gradients, float gradScale,
                  double lrScale);

  /// Of the weights of a feature's bags, one per id that remained, by the last
  /// backward that was applied; empty where the feature has none.
  const std::vector<float> &weightGradients(size_t feature) const {
    return weightGrads[feature];
  }

  const Program &definition() const { return program; }
  const Table &table(size_t t) const { return tables[t]; }
  const HeadState &head() const { return headState; }
  int64_t step() const { return steps; }
  int64_t droppedIds() const { return dropped; }
  int64_t skippedSteps() const { return skipped; }

private:
  using Rows = std::unordered_map<int64_t, std::vector<float>>;
  struct Value {
    Bags bags;
    Matrix matrix;
    std::vector<int64_t> index; // inverse of dedup, or winners of max
    int table = -1;             // a state
    Rows rows;                  // of a state: the records that differ
  };

  explicit Interpreter(Program program);
  Status takeFeature(const Op &op, const trc_batch &batch);
  Status check(const Op &op);
  Status checkBags(const FeatureDef &feature, const TableDef &table,
                   const Bags &in, Bags &out, int64_t &droppedHere) const;
  void translate(const Op &op);
  void lookup(const Op &op);
  void dedup(const Op &op);
  void expand(const Op &op);
  void denseForward(const trc_batch &batch);
  void denseBackward(double lrScale);
  Status checkGradients();
  void update(const Op &op, const StepScale &scale);
  void gradWeights(const Bags &bags, int64_t sample, size_t begin, size_t end,
                   const Table &table, const float *gradient);
  void commit(const Op &op);

  Program program;
  std::vector<Table> tables;
  std::vector<Value> values;
  std::vector<std::vector<float>> weightGrads; // per feature
  HeadState headState, pendingHead;
  int64_t steps = 0, n = 0, dropped = 0, skipped = 0;
  bool labelled = false;
  std::vector<float> z, p, labels;
  double lastLoss = 0;
  float gradScale = 1;
};

} // namespace trc::reference

#endif // TERRACE_RUNTIME_REFERENCE_INTERPRETER_H
