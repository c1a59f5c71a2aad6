//===- Bench.cpp - Times steps on random batches
//---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a scratch state, so that no table of the user changes. Batches are made
// before the clock starts; a tenth of the steps (at least two) warms up.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Synthetic.h"
#include "runtime/model/Verbs.h"

#include <algorithm>

namespace trc::model {

namespace {

struct Benchmark {
  Benchmark(Run &run, Session &session)
      : run(run), session(session), source(run.config, run.options.seed, true) {
  }

  Run &run;
  Session &session;
  SyntheticBatches source;
  std::vector<data::BatchData> batches; // reused in turn
  std::vector<std::vector<float>> outputs, gradients;
  std::vector<Session::Buffer> outBuffers, gradBuffers;

  Status step(trc_ticket ticket, const data::BatchData &batch) {
    if (run.config.hasHead()) {
      outputs.resize(1);
      outputs[0].resize(static_cast<size_t>(batch.samples));
      TRC_RETURN_IF_ERROR(
          session.forward(ticket, outputs[0].data(), batch.samples));
      return run.config.serve() ? session.release(ticket)
                                : session.backward(ticket, {}, 1.0f);
    }
    const nlohmann::json &plan = run.config.plan;
    size_t features = plan.at("features").size();
    outputs.resize(features);
    gradients.resize(features);
    outBuffers.clear();
    gradBuffers.clear();
    for (size_t f = 0; f < features; ++f) {
      const nlohmann::json &feature = plan.at("features").at(f);
      int64_t dim =
          plan.at("tables").at(feature.at("table").get<size_t>()).at("dim");
      int64_t rows = feature.at("pooling") == "none"
                         ? static_cast<int64_t>(batch.features[f].ids.size())
                         : batch.samples;
      size_t size = static_cast<size_t>(rows * dim);
      outputs[f].resize(size);
      gradients[f].assign(size, 1.0f / 1024);
      outBuffers.push_back({outputs[f].data(), rows, dim});
      gradBuffers.push_back({gradients[f].data(), rows, dim});
    }
    TRC_RETURN_IF_ERROR(session.forward(ticket, outBuffers));
    return run.config.serve() ? session.release(ticket)
                              : session.backward(ticket, gradBuffers, 1.0f);
  }
};

} // namespace

int runBench(Run &run) {
  Report &report = *run.report;
  auto scratch = ScratchFolder::create(run.stateDir());
  if (!scratch.ok())
    return report.failure(scratch.takeStatus());
  Session::Open how;
  how.artifact = (*scratch)->artifact(*run.artifact);
  how.options = &run.options;
  how.mode = run.config.serve() ? TRC_SERVE : TRC_TRAIN;
  how.stateDir = (*scratch)->path() + "/state";
  how.fresh = true;
  auto session = Session::open(how);
  if (!session.ok())
    return report.failure(session.takeStatus());
  Benchmark b(run, **session);
  int64_t steps = run.options.steps >= 0 ? run.options.steps : 100;
  int64_t warm = std::max<int64_t>(2, steps / 10);
  b.batches.resize(static_cast<size_t>(std::min<int64_t>(64, warm + steps)));
  for (size_t i = 0; i < b.batches.size(); ++i)
    b.source.make(static_cast<int64_t>(i), b.source.batchSize(), b.batches[i]);

  using Clock = std::chrono::steady_clock;
  std::deque<trc_ticket> tickets;
  std::vector<double> times;
  size_t depth = static_cast<size_t>((*session)->info().lookahead) + 1;
  int64_t submitted = 0, done = 0, ids = 0, rows = 0;
  Status s;
  Clock::time_point start = Clock::now(), last = start;
  auto batchOf = [&](int64_t t) -> data::BatchData & {
    return b.batches[static_cast<size_t>(t) % b.batches.size()];
  };
  while (s.ok() && done < warm + steps && !pendingSignal()) {
    while (s.ok() && submitted < warm + steps && tickets.size() < depth) {
      trc_ticket ticket = 0;
      Result<bool> room =
          (*session)->submit(batchOf(submitted).view(true), ticket);
      if (!room.ok()) {
        s = room.takeStatus();
        break;
      }
      if (!*room)
        break;
      tickets.push_back(ticket);
      ++submitted;
    }
    if (!s.ok())
      break;
    if (tickets.empty()) {
      s = Status(TRC_INTERNAL, "the pipeline is full with no batch in it");
      break;
    }
    data::BatchData &batch = batchOf(done);
    s = b.step(tickets.front(), batch);
    tickets.pop_front();
    ++done;
    Clock::time_point now = Clock::now();
    if (done == warm)
      start = now;
    if (done > warm) {
      times.push_back(std::chrono::duration<double>(now - last).count());
      rows += batch.samples;
      for (const auto &f : batch.features)
        ids += static_cast<int64_t>(f.ids.size());
    }
    last = now;
    if (report.progressDue())
      report.progress("step " + std::to_string(done), {{"step", done}});
  }
  double seconds = std::chrono::duration<double>(last - start).count();
  nlohmann::json stats = (*session)->stats();
  Status closed = (*session)->close();
  if (s.ok())
    s = std::move(closed);
  if (!s.ok())
    return report.failure(s);
  if (int signal = pendingSignal())
    return 128 + signal;
  std::sort(times.begin(), times.end());
  auto quantile = [&](double q) {
    return times.empty()
               ? 0.0
               : 1e3 * times[static_cast<size_t>(
                           q * static_cast<double>(times.size() - 1))];
  };
  double perSecond = 1 / std::max(seconds, 1e-9);
  report.event(
      "bench",
      std::to_string(times.size()) + " steps after " + std::to_string(warm) +
          " to warm up: " + shortCount(static_cast<double>(rows) * perSecond) +
          " rows/s  " + shortCount(static_cast<double>(ids) * perSecond) +
          " ids/s  step p50 " + fixed(quantile(0.5), 3) + " ms, p99 " +
          fixed(quantile(0.99), 3) + " ms" + statsText(stats),
      {{"steps", times.size()},
       {"rows_per_second", static_cast<double>(rows) * perSecond},
       {"ids_per_second", static_cast<double>(ids) * perSecond},
       {"step_ms_p50", quantile(0.5)},
       {"step_ms_p99", quantile(0.99)},
       {"stats", stats}});
  return 0;
}

} // namespace trc::model
