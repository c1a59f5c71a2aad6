//===- Common.cpp - Helpers of the verbs
//-----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Verbs.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace trc::model {

static volatile std::sig_atomic_t signalSeen = 0;

static void noteSignal(int number) { signalSeen = number; }

void watchSignals() {
  struct sigaction action = {};
  action.sa_handler = noteSignal;
  // A second signal ends the process at once, should a step hang.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
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
    status = each(*front.batch, probabilities.data());
    Status released = session.release(front.ticket);
    if (status.ok())
      status = std::move(released);
    reader.recycle(std::move(front.batch));
  }
  for (InFlight &f : ahead.inFlight)
    (void)session.release(f.ticket); // ended early: nothing is applied anyway
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

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

} // namespace trc::model
