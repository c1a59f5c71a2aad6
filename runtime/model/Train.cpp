//===- Train.cpp - The training loop of the executable --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Submits batches ahead up to the plan's lookahead, but never across an
// evaluation or the last step, which need an empty pipeline. Checkpoints are
// cut between two steps and written while training goes on.
// A resumed run passes over the samples that the state has seen, so the
// sequence of steps is the same however a run is cut.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Verbs.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace trc::model {

using Clock = std::chrono::steady_clock;
static constexpr int64_t never = std::numeric_limits<int64_t>::max();

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {

class Trainer {
public:
  Trainer(Run &run, DataSplit split)
      : run(run), config(run.config), report(*run.report),
        split(std::move(split)) {}

  Status open();
  Status loop();
  Status finish();
  Status close();
  int exitCode() const { return signal ? 128 + signal : 0; }

private:
  Status fillPipeline();
  Status runStep();
  Status atBoundary();
  Status evaluate();
  Status beginCheckpoint();
  Status endCheckpoint(bool block);
  void planBoundary();
  bool checkpointDue() const {
    return config.train.checkpointSeconds > 0 &&
           secondsSince(lastCheckpointTime) >=
               static_cast<double>(config.train.checkpointSeconds);
  }
  void showProgress(bool force);
  nlohmann::json stepFields();
  int64_t evalEverySteps() const;
  void warnOfIdleKeys();
  /// The next multiple of `every` after the current step.
  int64_t nextMultiple(int64_t every) const {
    return every > 0 ? (step / every + 1) * every : never;
  }

  Run &run;
  const ModelConfig &config;
  Report &report;
  DataSplit split;
  std::unique_ptr<Session> session;
  std::unique_ptr<data::BatchReader> reader;
  Ahead ahead;
  std::vector<float> probabilities;

  int64_t step = 0, samples = 0, startStep = 0, startSamples = 0;
  int64_t lastStep = never, boundary = never, nextEval = never,
          nextCheckpoint = never, evaluatedAt = -1;
  int64_t writing = -1, writingSamples = 0; // the checkpoint under way
  size_t depth = 1;
  bool stopped = false;
  int signal = 0;
  Metrics progressive;
  MetricValues heldOut;
  double lastLoss = 0, trainSeconds = 0, pauseMs = 0;
  Clock::time_point lastCheckpointTime = Clock::now();
};

Status Trainer::open() {
  Session::Open how;
  how.artifact = run.artifact;
  how.options = &run.options;
  how.mode = TRC_TRAIN;
  how.stateDir = run.stateDir();
  how.fresh = run.options.fresh;
  how.warm = run.options.warm;
  how.log = Report::log;
  how.logUser = run.report;
  auto opened = Session::open(how);
  if (!opened.ok())
    return opened.takeStatus();
  session = std::move(*opened);
  trc_model_info info = session->info();
  step = startStep = info.step;
  samples = startSamples = info.samples;
  depth = static_cast<size_t>(info.lookahead) + 1;
  if (run.options.steps >= 0)
    lastStep = step + run.options.steps;
  data::ReaderOptions options = split.train;
  options.skip = samples;
  reader = std::make_unique<data::BatchReader>(std::move(options));
  nextEval = nextMultiple(evalEverySteps());
  nextCheckpoint = nextMultiple(config.train.checkpointSteps);
  evaluatedAt = step;
  std::string from = step > 0 ? "resuming " + how.stateDir + " at step " +
                                    std::to_string(step) + ", row " +
                                    std::to_string(samples)
                              : "training into " + how.stateDir;
  report.event("start", config.model + ": " + from,
               {{"model", config.model},
                {"state", how.stateDir},
                {"step", step},
                {"samples", samples},
                {"lookahead", info.lookahead},
                {"stats", session->stats()},
                {"hash", info.hash ? info.hash : ""}});
  warnOfIdleKeys();
  return Status();
}

/// Keys that do nothing with these data are no error, but nobody should wait
/// for what they promise.
void Trainer::warnOfIdleKeys() {
  const TrainConfig &t = config.train;
  if (!split.hasHeldOut) {
    const char *why = " has no effect: data.eval holds no rows out";
    if (!t.evalEvery.none())
      report.warning(std::string("train.eval_every") + why);
    if (!t.stop.empty())
      report.warning(std::string("train.stop") + why);
  } else if (!t.stop.empty() && t.evalEvery.none()) {
    report.warning("train.stop has no effect before the end: give "
                   "train.eval_every");
  }
}

int64_t Trainer::evalEverySteps() const {
  if (!split.hasHeldOut || config.train.evalEvery.none())
    return 0;
  if (config.train.evalEvery.count)
    return config.train.evalEvery.count;
  // A share of the training rows, in steps.
  int64_t rows = config.train.evalEvery.of(split.trainRows);
  return std::max<int64_t>(1, rows / split.train.batch);
}

/// The step that nothing may be submitted across.
void Trainer::planBoundary() { boundary = std::min(lastStep, nextEval); }

Status Trainer::fillPipeline() {
  while (!ahead.ended && ahead.inFlight.size() < depth &&
         step + static_cast<int64_t>(ahead.inFlight.size()) < boundary) {
    Result<bool> more = ahead.submitOne(*session, true, reader.get(),
                                        [this] { return reader->next(); });
    if (!more.ok())
      return more.takeStatus();
    if (!*more)
      break;
  }
  return Status();
}

Status Trainer::runStep() {
  InFlight front = std::move(ahead.inFlight.front());
  ahead.inFlight.pop_front();
  data::BatchData &batch = *front.batch;
  probabilities.resize(static_cast<size_t>(batch.samples));
  TRC_RETURN_IF_ERROR(session->setLr(config.train.lrSchedule.at(step + 1)));
  Status s =
      session->forward(front.ticket, probabilities.data(), batch.samples);
  if (s.ok())
    s = session->backward(front.ticket, {}, 1.0f);
  if (!s.ok())
    return locate(std::move(s), *reader, batch);
  progressive.add(probabilities.data(), batch.labels.data(), batch.samples);
  double sum = 0;
  for (int64_t i = 0; i < batch.samples; ++i)
    sum += probabilityLoss(probabilities[static_cast<size_t>(i)],
                           batch.labels[static_cast<size_t>(i)]);
  lastLoss = sum / static_cast<double>(std::max<int64_t>(1, batch.samples));
  samples += batch.samples;
  ++step;
  reader->recycle(std::move(front.batch));
  return Status();
}

Status Trainer::evaluate() {
  Metrics metrics;
  Status s = forwardAll(*session, split.heldOut, report,
                        [&](const data::BatchData &batch, const float *p) {
                          metrics.add(p, batch.labels.data(), batch.samples);
                          return Status();
                        });
  if (!s.ok() || pendingSignal())
    return s;
  heldOut = metrics.values();
  evaluatedAt = step;
  nlohmann::json fields = metricsJson(heldOut, config.train.metrics);
  fields["step"] = step;
  report.event("eval",
               "step " + std::to_string(step) + "  held out  " +
                   metricsText(heldOut, config.train.metrics),
               fields);
  for (const StopRule &rule : config.train.stop) {
    double v = rule.metric == "auc"  ? heldOut.auc
               : rule.metric == "ne" ? heldOut.ne
                                     : heldOut.loss;
    if (rule.metric == "auc" ? v >= rule.value : v <= rule.value) {
      stopped = true;
      report.event("stop",
                   "stopping: held-out " + rule.metric + " " + fixed(v, 4) +
                       " reached train.stop." + rule.metric + " " +
                       fixed(rule.value, 4),
                   {{"metric", rule.metric}, {"value", v}, {"step", step}});
    }
  }
  return Status();
}

/// Batches may be in flight: the cut is between two steps.
Status Trainer::beginCheckpoint() {
  TRC_RETURN_IF_ERROR(endCheckpoint(true));
  TRC_RETURN_IF_ERROR(session->beginCheckpoint(
      static_cast<uint32_t>(config.train.checkpointKeep)));
  pauseMs = session->stats().value("cut_ms", 0.0);
  lastCheckpointTime = Clock::now();
  writing = step;
  writingSamples = samples;
  return Status();
}

/// Reports the checkpoint under way once it is durable.
Status Trainer::endCheckpoint(bool block) {
  if (writing < 0)
    return Status();
  Status s = session->checkpointOutcome(block);
  if (s.code() == TRC_WOULD_BLOCK)
    return Status();
  int64_t at = writing;
  writing = -1;
  if (!s.ok()) {
    // The checkpoints before stay, and all steps are still here. A session that
    // cannot go on says so itself, at the next step.
    report.warning("the checkpoint of step " + std::to_string(at) +
                   " failed: " + s.message() +
                   "; training goes on, older checkpoints stay");
    return Status();
  }
  double seconds = secondsSince(lastCheckpointTime);
  report.event("checkpoint", "step " + std::to_string(at) + "  checkpoint",
               {{"step", at},
                {"samples", writingSamples},
                {"pause_ms", pauseMs},
                {"seconds", seconds}});
  return Status();
}

Status Trainer::atBoundary() {
  if (step >= nextEval) {
    showProgress(true);
    nextEval = nextMultiple(evalEverySteps());
    TRC_RETURN_IF_ERROR(evaluate());
  }
  return Status();
}

nlohmann::json Trainer::stepFields() {
  double rate = static_cast<double>(samples - startSamples) /
                std::max(trainSeconds, 1e-9);
  return {{"step", step},
          {"samples", samples},
          {"loss", lastLoss},
          {"rows_per_second", rate},
          {"stats", session->stats()}};
}

void Trainer::showProgress(bool force) {
  if (!force && !report.progressDue())
    return;
  nlohmann::json fields = stepFields();
  std::string text =
      "step " + std::to_string(step) + "  loss " + fixed(lastLoss, 5) + "  " +
      shortCount(fields["rows_per_second"].get<double>()) + " samples/s";
  int64_t target =
      split.trainRows < 0 ? never : split.trainRows * split.train.epochs;
  // Steps beyond what 64 bits of samples hold are no limit.
  if (run.options.steps >= 0 &&
      run.options.steps <= (never - startSamples) / split.train.batch)
    target =
        std::min(target, startSamples + run.options.steps * split.train.batch);
  if (target != never && target > samples) {
    double left = static_cast<double>(target - samples) /
                  std::max(fields["rows_per_second"].get<double>(), 1.0);
    fields["eta_seconds"] = left;
    text += "  ETA " + fixed(left, 0) + " s";
  }
  text += statsText(fields["stats"]);
  report.progress(text, fields);
}

Status Trainer::loop() {
  while (!stopped && step < lastStep) {
    signal = pendingSignal();
    if (signal)
      break;
    Clock::time_point start = Clock::now();
    planBoundary();
    TRC_RETURN_IF_ERROR(fillPipeline());
    if (ahead.inFlight.empty()) {
      if (ahead.ended)
        break;
      // The boundary was reached before anything was submitted.
      TRC_RETURN_IF_ERROR(atBoundary());
      continue;
    }
    TRC_RETURN_IF_ERROR(runStep());
    trainSeconds += secondsSince(start);
    showProgress(false);
    TRC_RETURN_IF_ERROR(endCheckpoint(false));
    if (step >= nextCheckpoint || checkpointDue()) {
      nextCheckpoint = nextMultiple(config.train.checkpointSteps);
      TRC_RETURN_IF_ERROR(beginCheckpoint());
    }
    if (ahead.inFlight.empty() && step >= nextEval)
      TRC_RETURN_IF_ERROR(atBoundary());
  }
  TRC_RETURN_IF_ERROR(endCheckpoint(true));
  // Batches that were submitted but not trained are not part of the state.
  for (InFlight &f : ahead.inFlight)
    TRC_RETURN_IF_ERROR(session->release(f.ticket));
  ahead.inFlight.clear();
  return Status();
}

/// A disk that is full for a moment costs no steps.
Status Trainer::close() {
  Status s = session->close();
  for (int seconds : {1, 2, 4, 8}) {
    if (s.ok() || !session->open())
      return s;
    report.warning(s.message() + "; trying again in " +
                   std::to_string(seconds) + " s");
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    s = session->close();
  }
  return s;
}

Status Trainer::finish() {
  if (!signal && split.hasHeldOut && !stopped &&
      (evaluatedAt != step || heldOut.samples == 0))
    TRC_RETURN_IF_ERROR(evaluate());
  if (!signal)
    signal = pendingSignal();
  if (ahead.ended && step == startStep && !signal)
    report.warning("no step was trained: the state has seen all of the data (" +
                   std::to_string(startSamples) +
                   " rows); --epochs N makes more passes, --fresh starts anew");
  nlohmann::json fields = stepFields();
  std::string first;
  if (int64_t bad = reader->badRows(&first); bad > 0) {
    report.warning(std::to_string(bad) +
                   " bad rows were skipped; the first: " + first);
    fields["bad_rows"] = bad;
  }
  TRC_RETURN_IF_ERROR(close());
  session.reset();
  MetricValues seen = progressive.values();
  double rate = fields["rows_per_second"];
  fields["seconds"] = trainSeconds;
  fields["progressive"] = metricsJson(seen, config.train.metrics);
  fields["signal"] = signal;
  std::string text = std::string(signal ? "interrupted" : "done") +
                     " at step " + std::to_string(step) + " (" +
                     std::to_string(step - startStep) + " steps, " +
                     std::to_string(seen.samples) + " rows)\n";
  if (seen.samples > 0)
    text += "progressive  " + metricsText(seen, config.train.metrics) + "\n";
  if (heldOut.samples > 0) {
    fields["held_out"] = metricsJson(heldOut, config.train.metrics);
    text += "held out     " + metricsText(heldOut, config.train.metrics) + "\n";
  }
  text += "speed        " + shortCount(rate) + " rows/s";
  std::string tiers = statsText(fields["stats"]);
  if (!tiers.empty())
    text += "\ntiers        " + tiers.substr(2);
  report.event("end", text, fields);
  return Status();
}

} // namespace

int runTrain(Run &run) {
  Report &report = *run.report;
  if (!run.config.hasHead())
    return report.failure(
        Status(TRC_UNSUPPORTED,
               "model '" + run.config.model +
                   "' has no head: it is a library "
                   "for a trainer (only verify, bench and info work on it)"));
  if (run.config.serve())
    return report.failure(
        Status(TRC_UNSUPPORTED,
               "model '" + run.config.model +
                   "' was compiled with --serve: it predicts and evaluates, "
                   "but has no optimizers; compile it without --serve to "
                   "train"));
  if (run.options.epochs > 0)
    run.config.train.epochs = run.options.epochs;
  bool share = run.config.train.evalEvery.percent > 0;
  // Everything about the data that can be wrong is found before the state is
  // touched.
  Result<DataSplit> split = splitData(run.config, true, share);
  if (!split.ok())
    return report.failure(split.takeStatus());
  for (const data::ReaderOptions *part : {&split->train, &split->heldOut})
    for (const std::string &path : part->files.paths) {
      auto columns = data::columnsOf(path, part->files.columns);
      if (!columns.ok())
        return report.failure(columns.takeStatus());
      auto parser = data::RowParser::create(part->format, *columns,
                                            data::separatorOf(path), path);
      if (!parser.ok())
        return report.failure(parser.takeStatus());
    }
  Trainer trainer(run, std::move(*split));
  Status s = trainer.open();
  if (s.ok())
    s = trainer.loop();
  if (s.ok())
    s = trainer.finish();
  return s.ok() ? trainer.exitCode() : report.failure(s);
}

} // namespace trc::model
