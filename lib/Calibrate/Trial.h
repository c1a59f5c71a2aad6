//===- Trial.h - A small model, compiled and run to be timed ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a model costs is best told by a model: a spec is compiled in process to
// a library, opened through the runtime's C ABI, and stepped without lookahead,
// so that stages do not overlap and the runtime's own clock around each op
// tells them apart. One thread.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CALIBRATE_TRIAL_H
#define TERRACE_CALIBRATE_TRIAL_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include "terrace-rt/session.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace terrace::calibrate {

/// All features are alike, each with a table of its own.
struct TrialSpec {
  int64_t dim = 16, rows = 1, features = 1;
  int64_t bag = 1;     // ids of a bag, at most
  int64_t samples = 1; // at most
  int64_t ids = 1;     // of a batch over all features, at most
  std::string optimizer = "rowwise_adagrad"; // or "momentum_sgd"
  bool head = false;                         // fm
  bool dedup = false;                        // all features in one group
  /// Tables at home in a store there, behind a DRAM cache of so many bytes.
  std::string store;
  int64_t cacheBytes = 0, storeBytes = 0;
};

/// The bags of one feature.
struct Bags {
  std::vector<int64_t> ids, offsets;
  int64_t samples() const { return int64_t(offsets.size()) - 1; }
};
/// One entry per feature.
using Batch = std::vector<Bags>;

/// Seconds of one step.
struct StepTimes {
  double ingest = 0; // submit into an empty pipeline
  double total = 0;  // until all lanes rest
  double rest = 0;   // neither ingest nor inside an op
  std::map<std::string, double> busy, stalled; // by op
  double at(const char *op) const {
    auto found = busy.find(op);
    return found == busy.end() ? 0 : found->second;
  }
};

class Trial {
public:
  /// Files go to a new folder inside `scratch`, which is the caller's to
  /// remove.
  static llvm::Expected<std::unique_ptr<Trial>> open(const TrialSpec &spec,
                                                     const std::string &scratch,
                                                     const std::string &name);
  ~Trial();

  /// Touches every row once, so that no step has to make one.
  llvm::Error touchAll();
  /// Forward, backward and update of one batch, from rest to rest.
  llvm::Expected<StepTimes> step(const Batch &batch);
  /// The medians of `times` over steps through `batches` in turn, of at least
  /// `least` and, while `seconds` last, at most `most`; one more warms up.
  llvm::Expected<StepTimes> median(const std::vector<Batch> &batches, int least,
                                   int most, double seconds);
  /// Seconds of a step in a run of `count` that does not come to rest, and how
  /// much of that no op took.
  llvm::Expected<std::pair<double, double>> run(const Batch &batch, int count);
  /// The runtime's counters.
  llvm::Expected<llvm::json::Object> stats();

private:
  explicit Trial(const TrialSpec &spec) : spec(spec) {}
  llvm::Error submit(const Batch &batch, trc_ticket &ticket);
  llvm::Error train(const Batch &batch, trc_ticket ticket);
  llvm::Error rest();
  llvm::Error check(trc_status status, const trc_error &error) const;

  TrialSpec spec;
  trc_session *session = nullptr;
  std::vector<float> outputs, gradients, labels;
};

} // namespace terrace::calibrate

#endif // TERRACE_CALIBRATE_TRIAL_H
