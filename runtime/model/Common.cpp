//===- Common.cpp - Helpers of the verbs ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Verbs.h"

#include "runtime/core/Output.h"

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace trc::model {

static volatile std::sig_atomic_t signalSeen = 0;

void noteSignal(int number) { signalSeen = number; }

/// The same one again ends the process at once, should a step hang.
static void onSignal(int number) {
  if (signalSeen == number)
    endBySignal(number);
  else
    signalSeen = number;
}

void watchSignals() {
  signalSeen = 0;
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup = {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 &&
      hangup.sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

int pendingSignal() { return signalSeen; }

Status locate(Status status, const data::BatchReader &reader,
              const data::BatchData &batch) {
  const Status::Detail *d = status.get();
  if (!d || d->code != TRC_BAD_INPUT)
    return status;
  std::string where = reader.origin(batch, d->sample);
  if (where.empty())
    return status;
  return Status::badInput(where + ": " + d->message, d->feature, d->sample,
                          d->position, d->value);
}

Result<bool> Ahead::submitOne(
    Session &session, bool withLabels, const data::BatchReader *reader,
    const std::function<Result<std::unique_ptr<data::BatchData>>()> &next) {
  if (!waiting) {
    auto got = next();
    if (!got.ok())
      return got.takeStatus();
    waiting = std::move(*got);
    if (!waiting) {
      ended = true;
      return false;
    }
  }
  InFlight f;
  trc_batch view = waiting->view(withLabels);
  f.forwardOnly = !withLabels; // cannot be trained
  if (f.forwardOnly)
    view.flags = TRC_BATCH_FORWARD_ONLY;
  Result<bool> room = session.submit(view, f.ticket);
  if (!room.ok())
    return reader ? locate(room.takeStatus(), *reader, *waiting)
                  : room.takeStatus();
  if (!*room) {
    if (inFlight.empty())
      return Status(TRC_INTERNAL, "the pipeline is full with no batch in it");
    return false;
  }
  f.batch = std::move(waiting);
  inFlight.push_back(std::move(f));
  return true;
}

Status forwardAll(
    Session &session, const data::ReaderOptions &options, Report &report,
    const std::function<Status(const data::BatchData &, const float *)> &each) {
  data::BatchReader reader(options);
  Ahead ahead;
  std::vector<float> probabilities;
  int64_t rows = 0, notNumbers = 0, firstOfThem = 0;
  size_t depth = static_cast<size_t>(session.info().lookahead) + 1;
  Status status;
  while (status.ok() && !pendingSignal()) {
    while (!ahead.ended && ahead.inFlight.size() < depth) {
      Result<bool> more = ahead.submitOne(session, false, &reader,
                                          [&] { return reader.next(); });
      if (!more.ok())
        status = more.takeStatus();
      if (!status.ok() || !*more)
        break;
    }
    if (!status.ok() || ahead.inFlight.empty())
      break;
    InFlight front = std::move(ahead.inFlight.front());
    ahead.inFlight.pop_front();
    probabilities.resize(static_cast<size_t>(front.batch->samples));
    status = session.forward(front.ticket, probabilities.data(),
                             front.batch->samples);
    if (!status.ok()) {
      status = locate(std::move(status), reader, *front.batch);
      break;
    }
    for (float p : probabilities) {
      ++rows;
      if (std::isnan(p) && notNumbers++ == 0)
        firstOfThem = rows;
    }
    status = each(*front.batch, probabilities.data());
    Status released = session.release(front.ticket);
    if (status.ok())
      status = std::move(released);
    reader.recycle(std::move(front.batch));
  }
  for (InFlight &f : ahead.inFlight)
    (void)session.release(f.ticket); // ended early: nothing is applied anyway
  if (notNumbers > 0)
    report.warning(std::to_string(notNumbers) + " of " + std::to_string(rows) +
                   " predictions are NaN, the first for row " +
                   std::to_string(firstOfThem) +
                   " of those read: weights of the model, or of the data, are "
                   "not finite any more (terrace rows shows a table's)");
  std::string first;
  if (int64_t bad = reader.badRows(&first); bad > 0 && status.ok())
    report.warning(std::to_string(bad) +
                   " bad rows were skipped; the first: " + first);
  return status;
}

Result<std::unique_ptr<ScratchFolder>>
ScratchFolder::create(const std::string &near) {
  std::string pattern = near + ".scratch-XXXXXX";
  if (!::mkdtemp(pattern.data())) {
    int beside = errno;
    const char *tmp = std::getenv("TMPDIR");
    pattern =
        std::string(tmp && *tmp ? tmp : "/tmp") + "/terrace-scratch-XXXXXX";
    if (!::mkdtemp(pattern.data()))
      return Status::ioError("cannot make a scratch folder beside", near,
                             beside);
  }
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(pattern));
}

const trc_artifact *ScratchFolder::artifact(const trc_artifact &real) {
  scratch = real;
  nlohmann::json j =
      nlohmann::json::parse(real.plan, real.plan + real.plan_bytes);
  int moved = 0;
  for (auto &tier : j["tiers"])
    if (auto it = tier.find("paths"); it != tier.end() && it->is_array())
      for (auto &path : *it)
        if (path.is_string() && !path.get_ref<std::string &>().empty() &&
            path.get_ref<std::string &>()[0] == '/')
          path = "moved-" + std::to_string(moved++) + ".store";
  if (!moved)
    return &real;
  plan = j.dump();
  scratch.plan = plan.c_str();
  scratch.plan_bytes = plan.size();
  return &scratch;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

} // namespace trc::model
