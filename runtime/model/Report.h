//===- Report.h - What the executable says while it works -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One place for text and JSON lines: on a terminal progress is one line that
// is overwritten, elsewhere a plain line every few seconds, with --json one
// object a line. Results go to stdout, warnings and errors to stderr.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_REPORT_H
#define TERRACE_RUNTIME_MODEL_REPORT_H

#include "runtime/core/Status.h"
#include "runtime/model/Metrics.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>

namespace trc::model {

class Report {
public:
  explicit Report(bool json);
  ~Report();

  /// A line that stays. JSON: `fields` with "event".
  void event(const char *name, const std::string &text,
             const nlohmann::json &fields);
  /// True where it is time for the next progress().
  bool progressDue() const;
  void progress(const std::string &text, const nlohmann::json &fields);
  void warning(const std::string &text);
  /// "error: ..." (or a JSON line on stderr); returns the exit code 1.
  int failure(const Status &status);
  /// The exit code of a verb that ended with `code`: what stdout did not take
  /// is an error, but of a reader who went away nothing is said.
  int finish(int code);
  bool isJson() const { return json; }
  /// Drops the session's informative log lines: stdout is for data.
  void keepStdoutForData() { quiet = true; }

  /// For trc_open_options::log; `user` is the Report.
  static void log(void *user, int32_t level, const char *line);

private:
  void clearLine();
  void flush();
  bool json, terminal, open = false, quiet = false;
  int lost = 0; // errno of the first write that stdout did not take
  std::chrono::steady_clock::time_point last;
};

/// Only the metrics that the spec lists.
nlohmann::json metricsJson(const MetricValues &values,
                           const std::vector<std::string> &metrics);
std::string metricsText(const MetricValues &values,
                        const std::vector<std::string> &metrics);

/// "12.3k", "4.56M".
std::string shortCount(double value);
/// "1.5 MiB".
std::string shortBytes(double bytes);
std::string fixed(double value, int digits);

/// The tiers' part of the log line from trc_stats: hit rates and use.
std::string statsText(const nlohmann::json &stats);

} // namespace trc::model

#endif // TERRACE_RUNTIME_MODEL_REPORT_H
