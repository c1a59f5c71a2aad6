//===- Evaluate.cpp - eval and predict: forward only
//-----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// eval measures the held-out part (data.eval) where there is one, else all
// rows; predict writes one probability per row of all rows, in file order.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Output.h"
#include "runtime/model/Verbs.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <sys/stat.h>

namespace trc::model {

static Status needHead(const Run &run) {
  if (run.config.hasHead())
    return Status();
  return Status(TRC_UNSUPPORTED,
                "model '" + run.config.model +
                    "' has no head: it is a library "
                    "for a trainer (only verify, bench and info work on it)");
}

static Result<std::unique_ptr<Session>> openForEval(Run &run) {
  Session::Open how;
  how.artifact = run.artifact;
  how.options = &run.options;
  how.mode = TRC_EVAL;
  how.stateDir = run.stateDir();
  how.log = Report::log;
  how.logUser = run.report;
  return Session::open(how);
}

int runEval(Run &run) {
  Report &report = *run.report;
  if (Status s = needHead(run); !s.ok())
    return report.failure(s);
  Result<DataSplit> split = splitData(run.config, true, false);
  if (!split.ok())
    return report.failure(split.takeStatus());
  data::ReaderOptions options =
      split->hasHeldOut ? split->heldOut : split->train;
  options.epochs = 1;
  options.shuffleBuffer = 0;
  auto session = openForEval(run);
  if (!session.ok())
    return report.failure(session.takeStatus());
  Metrics metrics;
  int64_t done = 0;
  auto start = std::chrono::steady_clock::now();
  Status s = forwardAll(
      **session, options, report,
      [&](const data::BatchData &batch, const float *p) {
        metrics.add(p, batch.labels.data(), batch.samples);
        done += batch.samples;
        if (report.progressDue())
          report.progress("evaluated " + shortCount(double(done)) + " rows",
                          {{"samples", done}});
        return Status();
      });
  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  trc_model_info info = (*session)->info();
  int64_t step = info.step;
  Status closed = (*session)->close();
  if (s.ok())
    s = std::move(closed);
  if (!s.ok())
    return report.failure(s);
  if (int signal = pendingSignal())
    return 128 + signal;
  MetricValues v = metrics.values();
  const char *part = split->hasHeldOut ? "held out" : "all rows";
  nlohmann::json fields = metricsJson(v, run.config.train.metrics);
  fields["step"] = step;
  fields["part"] = split->hasHeldOut ? "held_out" : "all";
  fields["rows_per_second"] = double(v.samples) / seconds;
  report.event("eval",
               "step " + std::to_string(step) + "  " + part + " (" +
                   std::to_string(v.samples) + " rows)  " +
                   metricsText(v, run.config.train.metrics) + "  " +
                   shortCount(double(v.samples) / seconds) + " rows/s",
               fields);
  return 0;
}

namespace {
/// stdout, or a file that appears under its name only when it is complete.
class Output {
public:
  Status open(const std::string &path) {
    if (path.empty()) {
      file = stdout;
      return Status();
    }
    name = path;
    // A device, a pipe or a link must not be replaced by a file.
    struct stat st;
    part = ::lstat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)
               ? path
               : path + ".part";
    if (part != path)
      unfinished = Unfinished(part); // signals that end the process remove it
    file = std::fopen(part.c_str(), "we");
    if (file)
      return Status();
    int err = errno;
    unfinished.keep(); // it is not ours
    return Status::ioError("cannot write", part, err);
  }
  Status write(const float *p, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      if (std::fprintf(file, "%.9g\n", static_cast<double>(p[i])) < 0)
        return failed(errno);
    return Status();
  }
  Status finish() {
    bool ok = std::fflush(file) == 0;
    int err = errno;
    if (!name.empty()) {
      if (std::fclose(file) != 0 && ok) {
        ok = false;
        err = errno;
      }
      if (ok && part != name && std::rename(part.c_str(), name.c_str()) != 0) {
        ok = false;
        err = errno;
      }
      if (ok)
        unfinished.keep();
      else
        unfinished.discard();
    }
    file = nullptr;
    return ok ? Status() : failed(err);
  }
  ~Output() {
    if (!file || name.empty())
      return;
    std::fclose(file); // failed on the way
  }

private:
  Status failed(int err) {
    // As with `| head`: enough was seen.
    if (name.empty() && err == EPIPE) {
      noteSignal(SIGPIPE);
      return Status();
    }
    return Status::ioError("cannot write", name.empty() ? "stdout" : name, err);
  }
  std::string name, part;
  FILE *file = nullptr;
  Unfinished unfinished;
};
} // namespace

static std::string executable() {
  std::error_code ec;
  return std::filesystem::read_symlink("/proc/self/exe", ec).string();
}

int runPredict(Run &run) {
  Report &report = *run.report;
  if (Status s = needHead(run); !s.ok())
    return report.failure(s);
  data::ReaderOptions options = run.config.reader(false);
  auto paths = data::expandPaths(run.config.data.paths);
  if (!paths.ok())
    return report.failure(paths.takeStatus());
  options.files.paths = *paths;
  Status free = refuseInput(run.options.out, *paths);
  if (free.ok())
    free = refuseInput(run.options.out, {executable()});
  if (free.ok())
    free = refuseStateFile(run.options.out, run.stateDir());
  if (!free.ok()) {
    report.failure(free);
    return 2;
  }
  if (run.options.out.empty())
    report.keepStdoutForData();
  auto session = openForEval(run);
  if (!session.ok())
    return report.failure(session.takeStatus());
  Output out;
  Status s = out.open(run.options.out);
  int64_t rows = 0;
  if (s.ok())
    s = forwardAll(**session, options, report,
                   [&](const data::BatchData &batch, const float *p) {
                     rows += batch.samples;
                     return out.write(p, batch.samples);
                   });
  if (s.ok() && !pendingSignal())
    s = out.finish();
  int signal = pendingSignal();
  Status closed = (*session)->close();
  if (s.ok())
    s = std::move(closed);
  if (!s.ok())
    return report.failure(s);
  if (signal)
    return 128 + signal;
  if (!run.options.out.empty())
    report.event("predict",
                 std::to_string(rows) + " predictions in " + run.options.out,
                 {{"samples", rows}, {"out", run.options.out}});
  return 0;
}

} // namespace trc::model
