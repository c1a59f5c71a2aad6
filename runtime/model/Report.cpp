//===- Report.cpp - What the executable says while it works
//----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Report.h"

#include "runtime/model/Signals.h"

#include "terrace-rt/session.h"

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace trc::model {

using Clock = std::chrono::steady_clock;

Report::Report(bool json)
    : json(json), terminal(!json && ::isatty(STDOUT_FILENO) == 1),
      last(Clock::now()) {}

Report::~Report() { clearLine(); }

void Report::clearLine() {
  if (open)
    std::fputs("\r\033[K", stdout);
  open = false;
  flush();
}

/// A reader that went away ends the verb as a signal does: in order.
void Report::flush() {
  bool failed = std::fflush(stdout) != 0 || std::ferror(stdout);
  if (!failed || lost)
    return;
  lost = errno ? errno : EIO;
  std::clearerr(stdout);
  if (lost == EPIPE)
    noteSignal(SIGPIPE);
}

void Report::event(const char *name, const std::string &text,
                   const nlohmann::json &fields) {
  clearLine();
  if (json) {
    nlohmann::json line = {{"event", name}};
    line.update(fields);
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("%s\n", text.c_str());
  }
  flush();
}

bool Report::progressDue() const {
  return Clock::now() - last >=
         std::chrono::milliseconds(terminal ? 200 : 2000);
}

void Report::progress(const std::string &text, const nlohmann::json &fields) {
  last = Clock::now();
  if (!terminal) {
    event("progress", text, fields);
    return;
  }
  clearLine();
  std::fputs(text.c_str(), stdout);
  flush();
  open = true;
}

void Report::warning(const std::string &text) {
  clearLine();
  if (json)
    std::fprintf(stderr, "%s\n",
                 nlohmann::json({{"event", "warning"}, {"message", text}})
                     .dump()
                     .c_str());
  else
    std::fprintf(stderr, "warning: %s\n", text.c_str());
}

int Report::failure(const Status &status) {
  clearLine();
  if (json) {
    nlohmann::json line = {{"event", "error"},
                           {"status", trc_status_name(status.code())},
                           {"message", status.message()}};
    if (const Status::Detail *d = status.get(); d && !d->feature.empty()) {
      line["feature"] = d->feature;
      line["sample"] = d->sample;
      line["position"] = d->position;
      line["value"] = d->value;
    }
    std::fprintf(
        stderr, "%s\n",
        line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
            .c_str());
  } else {
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  }
  return 1;
}

int Report::finish(int code) {
  clearLine();
  if (!lost || code) // a failure has its own message
    return code;
  if (lost == EPIPE)
    return 128 + SIGPIPE;
  return failure(Status::ioError("cannot write the output to", "stdout", lost));
}

void Report::log(void *user, int32_t level, const char *line) {
  Report *report = static_cast<Report *>(user);
  if (level == TRC_LOG_WARNING)
    report->warning(line);
  else if (!report->quiet)
    report->event("log", line, {{"message", line}});
}

std::string fixed(double value, int digits) {
  if (std::isnan(value))
    return "n/a";
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string shortCount(double value) {
  const char *units[] = {"", "k", "M", "G", "T"};
  int u = 0;
  for (; value >= 1000 && u < 4; ++u)
    value /= 1000;
  return fixed(value, u == 0 ? 0 : value < 100 ? 1 : 0) + units[u];
}

std::string shortBytes(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  for (; bytes >= 1024 && u < 4; ++u)
    bytes /= 1024;
  return fixed(bytes, u == 0 ? 0 : 1) + " " + units[u];
}

static double valueOf(const MetricValues &v, const std::string &metric) {
  return metric == "auc" ? v.auc : metric == "ne" ? v.ne : v.loss;
}

nlohmann::json metricsJson(const MetricValues &values,
                           const std::vector<std::string> &metrics) {
  nlohmann::json out = {{"samples", values.samples}};
  auto put = [&](const char *key, double v) {
    out[key] = std::isnan(v) ? nlohmann::json(nullptr) : nlohmann::json(v);
  };
  put("loss", values.loss);
  for (const std::string &m : metrics)
    put(m.c_str(), valueOf(values, m));
  return out;
}

std::string metricsText(const MetricValues &values,
                        const std::vector<std::string> &metrics) {
  std::string out = "loss " + fixed(values.loss, 5);
  for (const std::string &m : metrics)
    if (m != "logloss") // the same as the loss
      out += (m == "auc" ? "  AUC " : "  NE ") + fixed(valueOf(values, m), 4);
  return out;
}

static double numberAt(const nlohmann::json &j, const char *key) {
  auto it = j.find(key);
  return it != j.end() && it->is_number() ? it->get<double>() : 0.0;
}

std::string statsText(const nlohmann::json &stats) {
  std::string out;
  if (!stats.is_object())
    return out;
  for (const auto &t : stats.value("tiers", nlohmann::json::array())) {
    out += "  " + t.value("name", "?") + " ";
    if (t.contains("hit_by_access"))
      out += fixed(100 * numberAt(t, "hit_by_access"), 1) + "% hit (" +
             fixed(100 * numberAt(t, "hit_by_row"), 1) + "% of rows) ";
    out += shortBytes(numberAt(t, "used"));
    if (t.contains("bound"))
      out += "/" + shortBytes(numberAt(t, "bound"));
  }
  if (stats.contains("stall_ms") && stats["stall_ms"].is_object()) {
    std::string stalls;
    for (const auto &[stage, ms] : stats["stall_ms"].items())
      if (ms.is_number() && ms.get<double>() >= 0.5)
        stalls += " " + stage + " " + fixed(ms.get<double>(), 0);
    if (!stalls.empty())
      out += "  stall ms" + stalls;
  }
  return out;
}

} // namespace trc::model
