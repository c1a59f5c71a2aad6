//===- RunTimeKeys.cpp - `train` and `data` of an artifact ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Conversion/PlanToArtifact/RunTimeKeys.h"

using namespace terrace;
namespace json = llvm::json;

/// A number, or {"percent": p}; 0 says never.
static json::Value amount(const spec::Amount &amount) {
  if (amount.percent != 0)
    return json::Object{{"percent", amount.percent}};
  return amount.count;
}

json::Value terrace::trainKeys(const spec::Train &train) {
  json::Array metrics;
  for (const auto &metric : train.metrics)
    metrics.push_back(spec::name(metric.value));
  json::Object stop;
  for (const spec::StopRule &rule : train.stop)
    stop[spec::name(rule.metric)] = *rule.value;
  const spec::LrSchedule &lr = train.lrSchedule;
  return json::Object{
      {"epochs", *train.epochs},
      {"eval_every", amount(*train.evalEvery)},
      {"metrics", std::move(metrics)},
      {"checkpoint",
       json::Object{{"every_steps", *train.checkpoint.everySteps},
                    {"every_seconds", *train.checkpoint.everySeconds},
                    {"keep", *train.checkpoint.keep}}},
      {"lr_schedule", json::Object{{"warmup_steps", *lr.warmupSteps},
                                   {"decay_start", *lr.decayStart},
                                   {"decay_steps", *lr.decaySteps},
                                   {"decay_power", *lr.decayPower},
                                   {"end_scale", *lr.endScale}}},
      {"stop", std::move(stop)}};
}

static json::Array texts(const std::vector<spec::Str> &list) {
  json::Array array;
  for (const spec::Str &text : list)
    array.push_back(*text);
  return array;
}

json::Value terrace::dataKeys(const spec::Spec &spec) {
  if (!spec.data)
    return nullptr;
  const spec::Data &data = *spec.data;
  auto orNull = [](const std::optional<spec::Str> &text) -> json::Value {
    if (!text)
      return nullptr;
    return **text;
  };
  json::Value eval = nullptr;
  if (data.eval) {
    json::Object object;
    const spec::Amount &last = *data.eval->last;
    if (last.percent != 0)
      object["last"] = json::Object{{"percent", last.percent}};
    else if (last.count != 0)
      object["last"] = json::Object{{"rows", last.count}};
    if (!data.eval->paths.empty())
      object["paths"] = texts(data.eval->paths);
    eval = std::move(object);
  }
  json::Value shuffle = nullptr;
  if (data.shuffle)
    shuffle = json::Object{
        {"buffer", *data.shuffle->buffer},
        {"seed", std::to_string(uint64_t(data.shuffle->seed.value))}};
  return json::Object{{"paths", texts(data.paths)},
                      {"session", orNull(data.session)},
                      {"time", orNull(data.time)},
                      {"list_sep", *data.listSep},
                      {"on_bad_row", spec::name(data.onBadRow.value)},
                      {"shuffle", std::move(shuffle)},
                      {"eval", std::move(eval)},
                      {"columns", nullptr}};
}
