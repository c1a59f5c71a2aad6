//===- Verbs.h - The verbs of the executable --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per verb; each returns the exit code and reports its own
// errors. Shared small helpers are declared below them.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_VERBS_H
#define TERRACE_RUNTIME_MODEL_VERBS_H

#include "runtime/model/Config.h"
#include "runtime/model/Options.h"
#include "runtime/model/Report.h"
#include "runtime/model/Session.h"
#include "runtime/model/Signals.h"

#include <deque>
#include <functional>

namespace trc::model {

struct Run {
  const trc_artifact *artifact;
  ModelConfig config;
  RunOptions options;
  Report *report;

  /// --state, or the default.
  std::string stateDir() const {
    return options.state.empty() ? config.model + ".state" : options.state;
  }
};

int runTrain(Run &run);
int runEval(Run &run);
int runPredict(Run &run);
int runVerify(Run &run);
int runBench(Run &run);
int runInfo(Run &run);

/// A batch between submit and backward or release.
struct InFlight {
  trc_ticket ticket = 0;
  std::unique_ptr<data::BatchData> batch;
  bool forwardOnly = false; // without labels; is released
};

/// The batches of a verb between its source and the end of their tickets.
struct Ahead {
  std::deque<InFlight> inFlight;
  std::unique_ptr<data::BatchData> waiting; // made, but did not fit yet
  bool ended = false;                       // the source has no more

  /// Submits one more batch; false where there is none or no room for it.
  /// `reader`, where the batches come from one, gives errors their lines.
  Result<bool> submitOne(
      Session &session, bool withLabels, const data::BatchReader *reader,
      const std::function<Result<std::unique_ptr<data::BatchData>>()> &next);
};

/// A bad-input error with the file and line of its sample.
Status locate(Status status, const data::BatchReader &reader,
              const data::BatchData &batch);

/// Runs forward only over what `options` reads. `each` gets every batch's
/// probabilities in order. Ends early on a signal.
Status forwardAll(
    Session &session, const data::ReaderOptions &options, Report &report,
    const std::function<Status(const data::BatchData &, const float *)> &each);

/// A folder of its own beside `near`, removed with everything in it at the end.
class ScratchFolder {
public:
  static Result<std::unique_ptr<ScratchFolder>> create(const std::string &near);
  ~ScratchFolder();
  const std::string &path() const { return folder; }

  /// The artifact for a session in this folder: tiers with absolute paths lie
  /// in the folder as well, since a state of the user may be in those files.
  /// Lives as long as this.
  const trc_artifact *artifact(const trc_artifact &real);

private:
  explicit ScratchFolder(std::string path) : folder(std::move(path)) {}
  std::string folder, plan;
  trc_artifact scratch = {};
};

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_VERBS_H
