//===- Config.cpp - The artifact's run-time keys: train and data
//-----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>

namespace trc::model {

using nlohmann::json;

int64_t Amount::of(int64_t whole) const {
  if (count)
    return count;
  return static_cast<int64_t>(
      std::floor(static_cast<double>(whole) * percent / 100));
}

static Amount amountOf(const json &j) {
  Amount a;
  if (j.is_number())
    a.count = j.get<int64_t>();
  else if (j.is_object()) {
    a.percent = j.value("percent", 0.0);
    for (const char *key : {"rows", "steps", "count"})
      if (j.contains(key))
        a.count = j.at(key).get<int64_t>();
  }
  return a;
}

static std::string textOf(const json &j, const char *key) {
  auto it = j.find(key);
  return it != j.end() && it->is_string() ? it->get<std::string>()
                                          : std::string();
}

static void parseTrain(const json &j, TrainConfig &t) {
  t.epochs = j.value("epochs", int64_t(1));
  if (j.contains("eval_every"))
    t.evalEvery = amountOf(j.at("eval_every"));
  if (j.contains("metrics"))
    t.metrics = j.at("metrics").get<std::vector<std::string>>();
  if (j.contains("checkpoint") && j.at("checkpoint").is_object()) {
    const json &c = j.at("checkpoint");
    t.checkpointSteps = c.value("every_steps", int64_t(0));
    t.checkpointSeconds = c.value("every_seconds", int64_t(0));
    t.checkpointKeep = c.value("keep", int64_t(3));
  }
  if (j.contains("lr_schedule") && j.at("lr_schedule").is_object()) {
    const json &s = j.at("lr_schedule");
    t.lrSchedule.warmupSteps = s.value("warmup_steps", int64_t(0));
    t.lrSchedule.decayStart = s.value("decay_start", int64_t(0));
    t.lrSchedule.decaySteps = s.value("decay_steps", int64_t(0));
    t.lrSchedule.decayPower = s.value("decay_power", 1.0);
    t.lrSchedule.endScale = s.value("end_scale", 0.0);
  }
  if (j.contains("stop") && j.at("stop").is_object())
    for (const auto &[metric, value] : j.at("stop").items())
      t.stop.push_back({metric, value.get<double>()});
}

static void parseData(const json &j, DataConfig &d) {
  if (!j.is_object())
    return;
  d.paths = j.value("paths", std::vector<std::string>());
  if (j.contains("list_sep") && j.at("list_sep").is_string())
    d.listSep = j.at("list_sep");
  d.skipBadRows = textOf(j, "on_bad_row") == "skip";
  if (j.contains("shuffle") && j.at("shuffle").is_object()) {
    const json &s = j.at("shuffle");
    d.shuffleBuffer = s.value("buffer", int64_t(0));
    if (s.contains("seed"))
      d.shuffleSeed = s.at("seed").is_string()
                          ? std::stoull(s.at("seed").get<std::string>())
                          : s.at("seed").get<uint64_t>();
  }
  if (j.contains("eval") && j.at("eval").is_object()) {
    const json &e = j.at("eval");
    if (e.contains("last"))
      d.evalLast = amountOf(e.at("last"));
    if (e.contains("paths"))
      d.evalPaths = e.at("paths").get<std::vector<std::string>>();
  }
  if (j.contains("columns") && j.at("columns").is_array())
    d.columns = j.at("columns").get<std::vector<std::string>>();
}

Result<ModelConfig> ModelConfig::parse(const trc_artifact &artifact) {
  if (artifact.magic != TRC_ARTIFACT_MAGIC || artifact.abi != TRC_ARTIFACT_ABI)
    return Status(TRC_MISMATCH, "this executable holds no artifact of this "
                                "runtime; compile the model again");
  try {
    ModelConfig c;
    c.plan = json::parse(artifact.plan, artifact.plan + artifact.plan_bytes);
    c.plan.erase("reference");
    c.model = c.plan.at("model");
    if (c.plan.contains("head") && c.plan.at("head").is_object())
      c.label = c.plan.at("head").at("label");
    if (c.plan.contains("train") && c.plan.at("train").is_object())
      parseTrain(c.plan.at("train"), c.train);
    if (c.plan.contains("data"))
      parseData(c.plan.at("data"), c.data);
    return c;
  } catch (const std::exception &e) {
    return Status(TRC_MISMATCH,
                  std::string("the artifact's plan cannot be read: ") +
                      e.what() + "; compile the model again");
  }
}

namespace {

/// A value that does not fit its key.
struct SetError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The limits are the spec's (lib/Spec/DecodeRun.cpp): a key means the same
// here. In addition 0 turns off what a spec turns off by leaving the key out:
// data.eval.last, data.shuffle.buffer and train.eval_every.
constexpr int64_t mostSteps = int64_t(1) << 48;
constexpr int64_t mostBuffer = int64_t(1) << 40;

/// Of the whole text; a '+' in front is fine.
template <typename T> bool parses(const std::string &text, T &out) {
  const char *begin = text.data(), *end = begin + text.size();
  if (text.size() > 1 && *begin == '+' && text[1] != '-')
    ++begin;
  auto [at, error] = std::from_chars(begin, end, out);
  return begin != end && at == end && error == std::errc();
}

int64_t wholeOf(const std::string &text, int64_t low, int64_t high) {
  int64_t v = 0;
  if (!parses(text, v) || v < low || v > high)
    throw SetError("'" + text + "' is no whole number from " +
                   std::to_string(low) + " to " + std::to_string(high));
  return v;
}

uint64_t seedOf(const std::string &text) {
  uint64_t v = 0;
  if (!parses(text, v))
    throw SetError("'" + text + "' is no whole number from 0 to 2^64 - 1");
  return v;
}

double realOf(const std::string &text, double low, double high) {
  double v = 0;
  if (!parses(text, v) || !std::isfinite(v) || v < low || v > high)
    throw SetError("'" + text + "' is no number of at least " + shortest(low) +
                   (std::isfinite(high) ? " and at most " + shortest(high)
                                        : std::string()));
  return v;
}

Amount amountOfText(const std::string &text) {
  Amount a;
  if (!text.empty() && text.back() == '%')
    a.percent = realOf(text.substr(0, text.size() - 1), 0, 100);
  else
    a.count = wholeOf(text, 0, std::numeric_limits<int64_t>::max());
  return a;
}

/// "a" or "[a, b]" as a list.
std::vector<std::string> listOf(std::string text) {
  std::vector<std::string> out;
  if (!text.empty() && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  else
    return {text};
  size_t from = 0;
  while (from <= text.size()) {
    size_t to = std::min(text.find(',', from), text.size());
    std::string item = text.substr(from, to - from);
    while (!item.empty() && item.front() == ' ')
      item.erase(0, 1);
    while (!item.empty() && item.back() == ' ')
      item.pop_back();
    if (!item.empty())
      out.push_back(item);
    from = to + 1;
  }
  return out;
}

void setCheckpointEvery(TrainConfig &t, const std::string &v) {
  static const std::map<std::string, int64_t> units = {
      {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
  size_t digits = v.find_first_not_of("0123456789.");
  if (digits == std::string::npos) {
    int64_t steps = wholeOf(v, 1, mostSteps);
    t.checkpointSteps = steps;
    t.checkpointSeconds = 0;
    return;
  }
  auto unit = units.find(v.substr(digits));
  if (unit == units.end())
    throw SetError("'" + v +
                   "' is neither a number of steps nor a time "
                   "such as 30s, 10min, 2h");
  double seconds =
      realOf(v.substr(0, digits), 0, 1e12) * static_cast<double>(unit->second);
  if (seconds < 1 || seconds > 1e12 || seconds != std::floor(seconds))
    throw SetError("'" + v + "' is no whole number of seconds from 1 to 10^12");
  t.checkpointSteps = 0;
  t.checkpointSeconds = static_cast<int64_t>(seconds);
}

void setMetrics(TrainConfig &t, const std::string &v) {
  t.metrics = listOf(v);
  for (size_t i = 0; i < t.metrics.size(); ++i) {
    const std::string &m = t.metrics[i];
    if (m != "auc" && m != "logloss" && m != "ne")
      throw SetError("'" + m + "' is none of auc, logloss, ne");
    if (std::find(t.metrics.begin(), t.metrics.begin() + long(i), m) !=
        t.metrics.begin() + long(i))
      throw SetError("'" + m + "' is given twice");
  }
}

void setStop(TrainConfig &t, const char *metric, const std::string &v) {
  double most = std::string(metric) == "auc"
                    ? 1
                    : std::numeric_limits<double>::infinity();
  double value = realOf(v, 0, most);
  for (StopRule &r : t.stop)
    if (r.metric == metric) {
      r.value = value;
      return;
    }
  t.stop.push_back({metric, value});
}

void setEvalLast(DataConfig &d, const std::string &v) {
  Amount last = amountOfText(v);
  if (last.percent == 100)
    throw SetError("100% leaves no row to train on");
  d.evalLast = last;
  d.evalPaths.clear();
}

std::vector<std::string> pathsOf(const std::string &v) {
  std::vector<std::string> paths = listOf(v);
  if (paths.empty() || (paths.size() == 1 && paths[0].empty()))
    throw SetError("no file is named");
  return paths;
}

void setListSep(DataConfig &d, const std::string &v) {
  if (v.size() != 1 || std::strchr("\t\n\"-.", v[0]) || std::isalnum(v[0]))
    throw SetError("'" + v +
                   "' is not one character that is part of no number and no "
                   "line, as in \",\" or \"|\"");
  d.listSep = v;
}

using Setter = void (*)(ModelConfig &, const std::string &);
const std::map<std::string, Setter> &setters() {
  using C = ModelConfig;
  using S = const std::string;
  static const std::map<std::string, Setter> table = {
      {"train.epochs",
       [](C &c, S &v) { c.train.epochs = wholeOf(v, 1, 1 << 30); }},
      {"train.eval_every",
       [](C &c, S &v) { c.train.evalEvery = amountOfText(v); }},
      {"train.metrics", [](C &c, S &v) { setMetrics(c.train, v); }},
      {"train.checkpoint.every",
       [](C &c, S &v) { setCheckpointEvery(c.train, v); }},
      {"train.checkpoint.keep",
       [](C &c, S &v) { c.train.checkpointKeep = wholeOf(v, 1, 1000000); }},
      {"train.lr_schedule.warmup_steps",
       [](C &c, S &v) {
         c.train.lrSchedule.warmupSteps = wholeOf(v, 0, mostSteps);
       }},
      {"train.lr_schedule.decay_start",
       [](C &c, S &v) {
         c.train.lrSchedule.decayStart = wholeOf(v, 0, mostSteps);
       }},
      {"train.lr_schedule.decay_steps",
       [](C &c, S &v) {
         c.train.lrSchedule.decaySteps = wholeOf(v, 0, mostSteps);
       }},
      {"train.lr_schedule.decay_power",
       [](C &c, S &v) { c.train.lrSchedule.decayPower = realOf(v, 0, 100); }},
      {"train.lr_schedule.end_scale",
       [](C &c, S &v) { c.train.lrSchedule.endScale = realOf(v, 0, 1); }},
      {"train.stop.auc", [](C &c, S &v) { setStop(c.train, "auc", v); }},
      {"train.stop.logloss",
       [](C &c, S &v) { setStop(c.train, "logloss", v); }},
      {"train.stop.ne", [](C &c, S &v) { setStop(c.train, "ne", v); }},
      {"data.path", [](C &c, S &v) { c.data.paths = pathsOf(v); }},
      {"data.list_sep", [](C &c, S &v) { setListSep(c.data, v); }},
      {"data.on_bad_row",
       [](C &c, S &v) {
         if (v != "error" && v != "skip")
           throw SetError("'" + v + "' is neither error nor skip");
         c.data.skipBadRows = v == "skip";
       }},
      {"data.shuffle.buffer",
       [](C &c, S &v) { c.data.shuffleBuffer = wholeOf(v, 0, mostBuffer); }},
      {"data.shuffle.seed", [](C &c, S &v) { c.data.shuffleSeed = seedOf(v); }},
      {"data.eval.last", [](C &c, S &v) { setEvalLast(c.data, v); }},
      {"data.eval.path",
       [](C &c, S &v) {
         c.data.evalPaths = pathsOf(v);
         c.data.evalLast = Amount();
       }},
      {"data.columns", [](C &c, S &v) { c.data.columns = listOf(v); }},
  };
  return table;
}

} // namespace

Status ModelConfig::set(const std::string &assignment) {
  size_t eq = assignment.find('=');
  if (eq == std::string::npos || eq == 0)
    return Status(TRC_BAD_ARGUMENT,
                  "--set '" + assignment + "' is not key=value");
  std::string key = assignment.substr(0, eq), value = assignment.substr(eq + 1);
  auto it = setters().find(key);
  if (it == setters().end()) {
    // What was most likely meant: epochs for train.epochs.
    for (const auto &entry : setters())
      if (size_t dot = entry.first.find('.');
          entry.first.compare(dot + 1, std::string::npos, key) == 0)
        return Status(TRC_BAD_ARGUMENT, "--set " + key +
                                            ": no such key; did you mean '" +
                                            entry.first + "'?");
    if (key.compare(0, 6, "train.") != 0 && key.compare(0, 5, "data.") != 0)
      return Status(TRC_BAD_ARGUMENT,
                    "--set " + key +
                        ": this key is compiled in; compile the "
                        "model again with --set " +
                        assignment + " (train.* and data.* can be set here)");
    std::string keys;
    for (const auto &entry : setters())
      keys += (keys.empty() ? "" : ", ") + entry.first;
    return Status(TRC_BAD_ARGUMENT,
                  "--set " + key + ": no such key; there are: " + keys);
  }
  try {
    it->second(*this, value);
    return Status();
  } catch (const SetError &e) {
    return Status(TRC_BAD_ARGUMENT, "--set " + key + ": " + e.what());
  }
}

Status ModelConfig::setAll(const std::vector<std::string> &assignments) {
  for (const std::string &assignment : assignments)
    TRC_RETURN_IF_ERROR(set(assignment));
  if (train.lrSchedule.decaySteps > 0)
    return Status();
  for (const std::string &assignment : assignments)
    for (const char *key : {"decay_start", "decay_power", "end_scale"}) {
      std::string path = std::string("train.lr_schedule.") + key;
      if (assignment.compare(0, path.size() + 1, path + "=") == 0)
        return Status(TRC_BAD_ARGUMENT,
                      "--set " + path +
                          ": means nothing without "
                          "train.lr_schedule.decay_steps; set that, too");
    }
  return Status();
}

data::ReaderOptions ModelConfig::reader(bool needLabel) const {
  data::ReaderOptions o;
  o.files.columns = data.columns;
  o.files.skipBadRows = data.skipBadRows;
  for (const json &f : plan.at("features")) {
    data::FeatureColumn c;
    c.name = f.at("name");
    c.column = textOf(f, "column");
    if (c.column.empty())
      c.column = c.name;
    c.weights = textOf(f, "weights");
    c.strings = textOf(f, "type") == "string";
    const json &table = plan.at("tables").at(f.at("table").get<size_t>());
    c.anyId = table.at("ids") == "hash";
    o.format.features.push_back(std::move(c));
  }
  o.format.label = label;
  o.format.labelOptional = !needLabel;
  o.format.listSep = data.listSep;
  o.batch = plan.at("batch");
  return o;
}

Result<DataSplit> splitData(const ModelConfig &config, bool needLabel,
                            bool countTrainRows) {
  DataSplit split;
  split.train = split.heldOut = config.reader(needLabel);
  Result<std::vector<std::string>> paths = data::expandPaths(config.data.paths);
  if (!paths.ok())
    return paths.takeStatus();
  split.train.files.paths = split.heldOut.files.paths = *paths;
  split.train.epochs = config.train.epochs;
  split.train.shuffleBuffer = config.data.shuffleBuffer;
  split.train.shuffleSeed = config.data.shuffleSeed;
  bool last = !config.data.evalLast.none();
  if (last || countTrainRows) {
    Result<int64_t> rows =
        data::countRows(split.train.files, split.train.format);
    if (!rows.ok())
      return rows.takeStatus();
    split.trainRows = *rows;
    if (last) {
      const Amount &a = config.data.evalLast;
      // A share is rounded so that the training part is the lower one.
      int64_t train =
          a.count ? *rows - a.count : Amount{0, 100 - a.percent}.of(*rows);
      if (train <= 0)
        return Status(TRC_BAD_INPUT, "data.eval holds out all of the " +
                                         std::to_string(*rows) +
                                         " rows; nothing is left to "
                                         "train on");
      split.trainRows = split.train.last = split.heldOut.first = train;
      split.hasHeldOut = train < *rows;
    }
  }
  if (!config.data.evalPaths.empty()) {
    Result<std::vector<std::string>> eval =
        data::expandPaths(config.data.evalPaths);
    if (!eval.ok())
      return eval.takeStatus();
    split.heldOut.files.paths = *eval;
    split.hasHeldOut = true;
  }
  return split;
}

} // namespace trc::model
