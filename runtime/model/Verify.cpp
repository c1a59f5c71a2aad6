//===- Verify.cpp - The real runtime and the reference, side by side ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains a scratch state through the plan (tiers, caches, lookahead, generated
// kernels) and the reference program over plain arrays with the same batches.
// Outputs are compared bit for bit at each step; at the end every byte of
// every row, its optimizer state and the head (of tables beyond 64 MiB: every
// touched row and a sample of the others). NaN equals NaN.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/FloatBits.h"
#include "runtime/model/Synthetic.h"
#include "runtime/model/Verbs.h"
#include "runtime/reference/Interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace trc::model {

namespace {

std::string hex(float x) {
  char text[48];
  std::snprintf(text, sizeof(text), "0x%08x (%.9g)", bitsOf(x),
                static_cast<double>(x));
  return text;
}

bool same(float a, float b) {
  return bitsOf(a) == bitsOf(b) || (std::isnan(a) && std::isnan(b));
}

class Verifier {
public:
  explicit Verifier(Run &run)
      : run(run), report(*run.report),
        synthetic(run.config, run.options.seed, false),
        serve(run.config.serve()),
        useSynthetic(run.options.synthetic || run.config.data.paths.empty() ||
                     (!run.config.hasHead() && run.options.data.empty())) {}

  /// 0 equal, 1 different or failed.
  int go();

private:
  Status open(ScratchFolder &scratch);
  Result<std::unique_ptr<data::BatchData>> nextBatch();
  Result<std::unique_ptr<data::BatchData>> nextEvaluated();
  Status fillPipeline();
  Status step();
  Status compareOutputs(const data::BatchData &batch);
  Status makeGradients();
  Status compareWeightGradients(const std::vector<std::vector<float>> &weights);
  Status compareTables();
  Status compareTable(size_t t);
  Status compareRecords(size_t t, const std::vector<int64_t> &rows);
  Status compareHead();
  Status checkBounds();
  Status mismatch(const std::string &where, float plan, float reference);

  Run &run;
  Report &report;
  SyntheticBatches synthetic;
  const bool serve; // forward only, over initial rows
  bool useSynthetic;
  std::unique_ptr<Session> session;
  std::unique_ptr<reference::Interpreter> reference;
  std::unique_ptr<data::BatchReader> reader;
  Ahead ahead;
  std::vector<std::vector<float>> outputs;
  std::vector<reference::Matrix> gradients;
  int64_t steps = 0, wanted = 20, made = 0, rowsCompared = 0, bytes = 0;
  int64_t evaluated = 0; // batches between the steps that are only looked up
  size_t depth = 1;
  bool different = false;
};

Status Verifier::mismatch(const std::string &where, float plan,
                          float expected) {
  different = true;
  return Status(TRC_MISMATCH, where + ": the runtime has " + hex(plan) +
                                  ", the reference " + hex(expected));
}

Status Verifier::open(ScratchFolder &scratch) {
  auto program = reference::Interpreter::create(
      std::string_view(run.artifact->plan, run.artifact->plan_bytes));
  if (!program.ok())
    return program.takeStatus();
  reference = std::move(*program);
  Session::Open how;
  how.artifact = scratch.artifact(*run.artifact);
  how.options = &run.options;
  how.mode = serve ? TRC_SERVE : TRC_TRAIN;
  how.stateDir = scratch.path() + "/state";
  how.fresh = true;
  auto opened = Session::open(how);
  if (!opened.ok())
    return opened.takeStatus();
  session = std::move(*opened);
  depth = static_cast<size_t>(session->info().lookahead) + 1;
  if (run.options.steps >= 0)
    wanted = run.options.steps;
  if (useSynthetic)
    return Status();
  Result<DataSplit> split = splitData(run.config, true, false);
  if (!split.ok())
    return split.takeStatus();
  reader = std::make_unique<data::BatchReader>(split->train);
  return Status();
}

Result<std::unique_ptr<data::BatchData>> Verifier::nextBatch() {
  if (!useSynthetic)
    return reader->next();
  if (made == wanted)
    return std::unique_ptr<data::BatchData>();
  auto batch = std::make_unique<data::BatchData>();
  // The last batch is partial, and so is every seventh.
  int64_t full = synthetic.batchSize();
  int64_t samples = made + 1 == wanted || made % 7 == 6 ? (full + 1) / 2 : full;
  synthetic.make(made, samples, *batch);
  return batch;
}

Result<std::unique_ptr<data::BatchData>> Verifier::nextEvaluated() {
  constexpr int64_t apart = 1 << 20; // from the batches that are trained
  auto batch = std::make_unique<data::BatchData>();
  synthetic.make(apart + evaluated, synthetic.batchSize(), *batch);
  return batch;
}

Status Verifier::fillPipeline() {
  while (!ahead.ended && ahead.inFlight.size() < depth && made < wanted) {
    // As a trainer does now and then, one in four: rows that no step has seen
    // are looked up, and stay as they are.
    bool only =
        useSynthetic && !serve && made % 4 == 2 && evaluated <= made / 4;
    Result<bool> more =
        ahead.submitOne(*session, !only, reader.get(), [this, only] {
          return only ? nextEvaluated() : nextBatch();
        });
    if (!more.ok())
      return more.takeStatus();
    if (!*more)
      break;
    ++(only ? evaluated : made);
  }
  return Status();
}

Status Verifier::compareOutputs(const data::BatchData &batch) {
  const auto &features = reference->definition().features;
  std::string at = "step " + std::to_string(steps + 1);
  for (size_t o = 0; o < outputs.size(); ++o) {
    const float *expected = reference->hasHead()
                                ? reference->probabilities().data()
                                : reference->output(o).values.data();
    int64_t dim = reference->hasHead() ? 1 : reference->output(o).dim;
    for (size_t i = 0; i < outputs[o].size(); ++i) {
      if (same(outputs[o][i], expected[i]))
        continue;
      int64_t row = static_cast<int64_t>(i) / dim;
      std::string name = reference->hasHead()
                             ? "prediction"
                             : "output of feature '" + features[o].name + "'";
      return mismatch(at + ", " + name + ", row " + std::to_string(row) +
                          ", column " +
                          std::to_string(static_cast<int64_t>(i) % dim),
                      outputs[o][i], expected[i]);
    }
    bytes += static_cast<int64_t>(outputs[o].size()) * 4;
  }
  return Status();
}

Status Verifier::compareWeightGradients(
    const std::vector<std::vector<float>> &weights) {
  for (size_t f = 0; f < weights.size(); ++f) {
    const std::vector<float> &expected = reference->weightGradients(f);
    for (size_t i = 0; i < expected.size(); ++i)
      if (!same(weights[f][i], expected[i]))
        return mismatch("step " + std::to_string(steps + 1) +
                            ", gradient of the weights of feature '" +
                            reference->definition().features[f].name +
                            "', id " + std::to_string(i),
                        weights[f][i], expected[i]);
    bytes += static_cast<int64_t>(expected.size()) * 4;
  }
  return Status();
}

/// A pseudo-random trainer: multiples of 2^-10 in (-1, 1).
Status Verifier::makeGradients() {
  SplitMix random(mix64(run.options.seed ^ 0x67726164) +
                  static_cast<uint64_t>(steps));
  gradients.resize(outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    reference::Matrix &g = gradients[o];
    g = reference::Matrix();
    g.dim = reference->output(o).dim;
    g.values.resize(outputs[o].size());
    for (float &x : g.values)
      x = static_cast<float>(static_cast<int64_t>(random.below(2047)) - 1023) *
          0x1p-10f;
  }
  return Status();
}

Status Verifier::step() {
  InFlight front = std::move(ahead.inFlight.front());
  ahead.inFlight.pop_front();
  data::BatchData &batch = *front.batch;
  double lr = run.config.train.lrSchedule.at(steps + 1);
  float scale = reference->hasHead() || steps % 3 != 2 ? 1.0f : 0.5f;
  TRC_RETURN_IF_ERROR(session->setLr(lr));
  Status expected = reference->forward(batch.view(true));
  Status got;
  std::vector<Session::Buffer> buffers;
  if (reference->hasHead()) {
    outputs.assign(1, std::vector<float>(static_cast<size_t>(batch.samples)));
    got = session->forward(front.ticket, outputs[0].data(), batch.samples);
  } else {
    size_t features = reference->definition().features.size();
    outputs.assign(features, {});
    for (size_t o = 0; expected.ok() && o < features; ++o) {
      const reference::Matrix &m = reference->output(o);
      outputs[o].resize(m.values.size());
      buffers.push_back({outputs[o].data(),
                         static_cast<int64_t>(m.values.size()) / m.dim, m.dim});
    }
    if (expected.ok())
      got = session->forward(front.ticket, buffers);
  }
  if (!expected.ok() || !got.ok()) {
    if (got.ok())
      got = std::move(expected);
    return reader ? locate(std::move(got), *reader, batch) : std::move(got);
  }
  TRC_RETURN_IF_ERROR(compareOutputs(batch));
  if (front.forwardOnly)
    return session->release(front.ticket);
  if (serve) {
    TRC_RETURN_IF_ERROR(session->release(front.ticket));
  } else if (reference->hasHead()) {
    TRC_RETURN_IF_ERROR(session->backward(front.ticket, {}, scale));
    TRC_RETURN_IF_ERROR(reference->backward(nullptr, scale, lr));
  } else {
    TRC_RETURN_IF_ERROR(makeGradients());
    for (size_t o = 0; o < buffers.size(); ++o)
      buffers[o].data = gradients[o].values.data();
    TRC_RETURN_IF_ERROR(reference->backward(&gradients, scale, lr));
    std::vector<std::vector<float>> weights(buffers.size());
    std::vector<float *> pointers(buffers.size(), nullptr);
    for (size_t f = 0; f < buffers.size(); ++f) {
      weights[f].resize(reference->weightGradients(f).size());
      if (!weights[f].empty())
        pointers[f] = weights[f].data();
    }
    TRC_RETURN_IF_ERROR(
        session->backward(front.ticket, buffers, scale, pointers.data()));
    TRC_RETURN_IF_ERROR(compareWeightGradients(weights));
  }
  ++steps;
  if (report.progressDue())
    report.progress("verified " + std::to_string(steps) + " steps",
                    {{"step", steps}});
  if (reader)
    reader->recycle(std::move(front.batch));
  return Status();
}

Status Verifier::compareRecords(size_t t, const std::vector<int64_t> &rows) {
  const reference::TableDef &def = reference->table(t).definition();
  std::vector<std::vector<float>> expected;
  for (int64_t r : rows)
    expected.push_back(reference->table(t).record(r));
  std::vector<int64_t> widths = {def.dim};
  for (int64_t w : def.stateWidths())
    widths.push_back(w);
  std::vector<float> got;
  size_t offset = 0;
  for (size_t part = 0; part < widths.size(); ++part) {
    size_t width = static_cast<size_t>(widths[part]);
    got.assign(rows.size() * width, 0.0f);
    TRC_RETURN_IF_ERROR(
        part == 0 ? session->readRows(def.name, rows, got.data())
                  : session->readState(def.name, static_cast<int>(part) - 1,
                                       rows, got.data()));
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t c = 0; c < width; ++c)
        if (!same(got[i * width + c], expected[i][offset + c]))
          return mismatch("after step " + std::to_string(steps) + ", table '" +
                              def.name + "', row " + std::to_string(rows[i]) +
                              (part == 0 ? std::string()
                                         : ", optimizer state " +
                                               std::to_string(part - 1)) +
                              ", column " + std::to_string(c),
                          got[i * width + c], expected[i][offset + c]);
    bytes += static_cast<int64_t>(got.size()) * 4;
    offset += width;
  }
  rowsCompared += static_cast<int64_t>(rows.size());
  return Status();
}

Status Verifier::compareTable(size_t t) {
  const reference::Table &table = reference->table(t);
  const reference::TableDef &def = table.definition();
  // Every row, those that no step touched too: a stray write may land anywhere.
  // Of a table of gigabytes, those touched and an even sample of the others.
  constexpr int64_t wholeFloats = int64_t(1) << 24, sampled = 4096;
  std::vector<int64_t> rows;
  if (def.rows <= wholeFloats / def.recordFloats()) {
    rows.resize(static_cast<size_t>(def.rows));
    std::iota(rows.begin(), rows.end(), int64_t(0));
  } else {
    rows = table.touched();
    for (int64_t i = 0; i < sampled; ++i)
      rows.push_back(i * (def.rows / sampled));
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  }
  constexpr size_t piece = 4096;
  for (size_t at = 0; at < rows.size(); at += piece) {
    size_t end = std::min(rows.size(), at + piece);
    TRC_RETURN_IF_ERROR(compareRecords(
        t, std::vector<int64_t>(rows.begin() + static_cast<int64_t>(at),
                                rows.begin() + static_cast<int64_t>(end))));
  }
  return Status();
}

Status Verifier::compareHead() {
  if (!reference->hasHead())
    return Status();
  nlohmann::json stats = session->stats();
  const HeadState &head = reference->head();
  for (auto [key, expected] :
       {std::pair<const char *, float>{"bias", head.bias},
        {"bias_squares", head.biasSquares}}) {
    if (!stats.is_object() || !stats.contains("head") ||
        !stats["head"].contains(key))
      return Status(TRC_MISMATCH, "the runtime does not report its head");
    const nlohmann::json &value = stats["head"][key]; // null: NaN
    float got = value.is_number() ? value.get<float>() : NAN;
    if (!same(got, expected))
      return mismatch(std::string("the head's ") + key, got, expected);
    bytes += 4;
  }
  return Status();
}

Status Verifier::compareTables() {
  for (size_t t = 0; t < reference->definition().tables.size(); ++t)
    TRC_RETURN_IF_ERROR(compareTable(t));
  TRC_RETURN_IF_ERROR(compareHead());
  return checkBounds();
}

/// What explain promised is kept too.
Status Verifier::checkBounds() {
  nlohmann::json stats = session->stats();
  for (const nlohmann::json &tier :
       stats.value("tiers", nlohmann::json::array())) {
    if (!tier.contains("bound"))
      continue;
    int64_t used = tier.value("used", int64_t(0)),
            bound = tier.value("bound", int64_t(0));
    if (used > bound) {
      different = true;
      return Status(TRC_MISMATCH, "tier '" + tier.value("name", "") +
                                      "' holds " + std::to_string(used) +
                                      " bytes; the plan says at most " +
                                      std::to_string(bound));
    }
  }
  return Status();
}

int Verifier::go() {
  auto scratch = ScratchFolder::create(run.stateDir());
  if (!scratch.ok())
    return report.failure(scratch.takeStatus());
  Status s = open(**scratch);
  while (s.ok() && !pendingSignal()) {
    s = fillPipeline();
    if (!s.ok() || ahead.inFlight.empty())
      break;
    s = step();
  }
  if (s.ok() && !pendingSignal())
    s = compareTables();
  if (session) {
    Status closed = session->close();
    if (s.ok())
      s = std::move(closed);
  }
  if (different) {
    report.event("verify", "verify: DIFFERENT: " + s.message(),
                 {{"equal", false},
                  {"steps", steps},
                  {"difference", s.message()},
                  {"seed", std::to_string(run.options.seed)}});
    return 1;
  }
  if (!s.ok())
    return report.failure(s);
  if (int signal = pendingSignal())
    return 128 + signal;
  report.event("verify",
               "verify: " + std::to_string(steps) + " steps, " +
                   std::to_string(rowsCompared) + " rows, " +
                   std::to_string(bytes) + " bytes equal",
               {{"equal", true},
                {"steps", steps},
                {"rows", rowsCompared},
                {"bytes", bytes},
                {"source", useSynthetic ? "synthetic" : "data"}});
  return 0;
}

} // namespace

int runVerify(Run &run) { return Verifier(run).go(); }

} // namespace trc::model
