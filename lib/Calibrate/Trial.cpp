//===- Trial.cpp - A small model, compiled and run to be timed ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Calibrate/Trial.h"

#include "Driver/Compile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <functional>

using namespace llvm;

namespace terrace::calibrate {

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Error failure(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

json::Object specJson(const TrialSpec &spec, const std::string &name) {
  json::Object optimizer{{"kind", spec.optimizer}, {"lr", 0.01}};
  if (spec.optimizer == "momentum_sgd")
    optimizer = json::Object{{"kind", "sgd"}, {"lr", 0.01}, {"momentum", 0.9}};
  json::Object feature{{"name", "f{i}"},          {"count", spec.features},
                       {"table", json::Object{}}, {"pooling", "sum"},
                       {"max_ids", spec.bag},     {"mean_ids", spec.bag}};
  if (spec.dedup)
    feature["dedup"] = "group";
  json::Array tiers{json::Object{
      {"name", "dram"}, {"kind", "dram"}, {"capacity", int64_t(1) << 40}}};
  json::Object place{{"tables", "*"}, {"home", "dram"}};
  if (!spec.store.empty()) {
    tiers.push_back(json::Object{{"name", "disk"},
                                 {"kind", "nvme"},
                                 {"capacity", spec.storeBytes},
                                 {"path", spec.store}});
    place["home"] = "disk";
    place["cache"] = json::Object{{"dram", spec.cacheBytes}};
  }
  json::Object root{
      {"terrace", 1},
      {"model", name},
      {"batch", json::Object{{"size", spec.samples}, {"max_ids", spec.ids}}},
      {"defaults",
       json::Object{
           {"table", json::Object{{"rows", spec.rows},
                                  {"dim", spec.dim},
                                  {"optimizer", std::move(optimizer)}}}}},
      {"features", json::Array{std::move(feature)}},
      {"memory", json::Object{{"tiers", std::move(tiers)}}},
      {"plan", json::Object{{"lookahead", 0},
                            {"place", json::Array{std::move(place)}}}}};
  if (spec.head)
    root["head"] = json::Object{{"kind", "fm"}, {"label", "click"}};
  return root;
}

Error writeFile(const std::string &path, json::Value value) {
  return writeToOutput(path, [&](raw_ostream &os) -> Error {
    os << value;
    return Error::success();
  });
}

DLTensor tensorOf(float *data, int64_t *shape) {
  DLTensor t = {};
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = 2;
  t.dtype = {kDLFloat, 32, 1};
  t.shape = shape;
  return t;
}

std::map<std::string, double> secondsBy(const json::Object &stats,
                                        StringRef key) {
  std::map<std::string, double> by;
  if (const json::Object *o = stats.getObject(key))
    for (const auto &entry : *o)
      by[StringRef(entry.first).str()] =
          entry.second.getAsNumber().value_or(0) / 1e3;
  return by;
}

double middle(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

} // namespace

Expected<std::unique_ptr<Trial>> Trial::open(const TrialSpec &spec,
                                             const std::string &scratch,
                                             const std::string &name) {
  std::unique_ptr<Trial> trial(new Trial(spec));
  std::string base = scratch + "/" + name;
  if (Error error = writeFile(base + ".yaml", specJson(spec, name)))
    return error;
  driver::CompileOptions options;
  options.input.modelFile = base + ".yaml";
  options.emit = driver::Emit::Lib;
  options.output = base + ".so";
  driver::CompileResult compiled = driver::compile(options);
  if (compiled.outcome != driver::Outcome::Ok) {
    std::string text;
    raw_string_ostream os(text);
    compiled.diagnostics.print(os);
    return failure("cannot compile the trial " + name + ": " + text);
  }
  std::string state = base + ".state";
  trc_open_options how = {};
  how.struct_size = sizeof(how);
  how.mode = TRC_TRAIN;
  how.artifact_path = options.output.c_str();
  how.state_dir = state.c_str();
  how.flags = TRC_OPEN_FRESH;
  trc_error error = {};
  error.struct_size = sizeof(error);
  trc_status status = trc_open(&how, &trial->session, &error);
  if (Error failed = trial->check(status, error))
    return failed;
  size_t outputs =
      spec.head ? 1 : size_t(spec.samples * spec.features * spec.dim);
  trial->outputs.assign(outputs, 0);
  trial->gradients.assign(outputs, 1.0f / 1024);
  trial->labels.assign(size_t(spec.samples), 0);
  for (size_t i = 0; i < trial->labels.size(); i += 4)
    trial->labels[i] = 1;
  return trial;
}

Trial::~Trial() {
  trc_error error = {};
  error.struct_size = sizeof(error);
  // The tables are scratch: what cannot be saved is no loss.
  if (session)
    (void)trc_close(session, &error);
}

Error Trial::check(trc_status status, const trc_error &error) const {
  if (status == TRC_OK)
    return Error::success();
  return failure(Twine("the runtime says: ") + error.message);
}

Error Trial::submit(const Batch &batch, trc_ticket &ticket) {
  std::vector<trc_bags> bags(batch.size());
  for (size_t f = 0; f < batch.size(); ++f) {
    bags[f].values = batch[f].ids.data();
    bags[f].offsets = batch[f].offsets.data();
    bags[f].value_count = int64_t(batch[f].ids.size());
    bags[f].value_bits = bags[f].offset_bits = 64;
  }
  trc_batch in = {};
  in.struct_size = sizeof(in);
  in.feature_count = uint32_t(bags.size());
  in.features = bags.data();
  in.samples = batch.front().samples();
  in.labels = spec.head ? labels.data() : nullptr;
  trc_error error = {};
  error.struct_size = sizeof(error);
  return check(trc_submit(session, &in, &ticket, &error), error);
}

Error Trial::train(const Batch &batch, trc_ticket ticket) {
  trc_error error = {};
  error.struct_size = sizeof(error);
  trc_backward_options how = {};
  how.struct_size = sizeof(how);
  how.grad_scale = 1;
  if (spec.head) {
    if (Error e =
            check(trc_forward(session, ticket, nullptr, 0, &error), error))
      return e;
    return check(trc_backward(session, ticket, nullptr, 0, &how, &error),
                 error);
  }
  int64_t shape[2] = {batch.front().samples(), spec.dim};
  std::vector<DLTensor> tensors;
  for (bool gradient : {false, true})
    for (int64_t f = 0; f < spec.features; ++f)
      tensors.push_back(tensorOf((gradient ? gradients : outputs).data() +
                                     f * spec.samples * spec.dim,
                                 shape));
  std::vector<DLTensor *> to;
  for (DLTensor &t : tensors)
    to.push_back(&t);
  uint32_t n = uint32_t(spec.features);
  if (Error e =
          check(trc_forward(session, ticket, to.data(), n, &error), error))
    return e;
  return check(trc_backward(session, ticket, to.data() + n, n, &how, &error),
               error);
}

Error Trial::rest() {
  // Reading a row waits until every lane has nothing to do.
  std::vector<float> row(size_t(spec.dim));
  int64_t first = 0;
  trc_error error = {};
  error.struct_size = sizeof(error);
  return check(trc_read_rows(session, "f0", &first, 1, row.data(), &error),
               error);
}

Error Trial::touchAll() {
  int64_t each = std::min(spec.samples, spec.ids / spec.features);
  for (int64_t begin = 0; begin < spec.rows; begin += each) {
    Bags bags;
    bags.offsets.push_back(0);
    for (int64_t i = 0; i < each; ++i) {
      bags.ids.push_back(std::min(begin + i, spec.rows - 1));
      bags.offsets.push_back(i + 1);
    }
    Batch batch(size_t(spec.features), bags);
    trc_ticket ticket = 0;
    if (Error e = submit(batch, ticket))
      return e;
    // A store has rows only once they were changed.
    if (!spec.store.empty()) {
      if (Error e = train(batch, ticket))
        return e;
      continue;
    }
    trc_error error = {};
    error.struct_size = sizeof(error);
    if (Error e = check(trc_release(session, ticket, &error), error))
      return e;
  }
  return rest();
}

Expected<json::Object> Trial::stats() {
  const char *text = nullptr;
  trc_error error = {};
  error.struct_size = sizeof(error);
  if (Error e = check(trc_stats(session, &text, &error), error))
    return e;
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return value.takeError();
  return std::move(*value->getAsObject());
}

Expected<StepTimes> Trial::step(const Batch &batch) {
  Expected<json::Object> before = stats();
  if (!before)
    return before.takeError();
  trc_ticket ticket = 0;
  double begin = now();
  if (Error e = submit(batch, ticket))
    return e;
  StepTimes times;
  times.ingest = now() - begin;
  if (Error e = train(batch, ticket))
    return e;
  if (Error e = rest())
    return e;
  times.total = now() - begin;
  Expected<json::Object> after = stats();
  if (!after)
    return after.takeError();
  times.rest = times.total - times.ingest;
  auto busyBefore = secondsBy(*before, "busy_ms");
  for (const auto &entry : secondsBy(*after, "busy_ms")) {
    double spent = entry.second - busyBefore[entry.first];
    times.busy[entry.first] = spent;
    times.rest -= spent;
  }
  auto stalledBefore = secondsBy(*before, "stall_ms");
  for (const auto &entry : secondsBy(*after, "stall_ms"))
    times.stalled[entry.first] = entry.second - stalledBefore[entry.first];
  return times;
}

Expected<StepTimes> Trial::median(const std::vector<Batch> &batches, int least,
                                  int most, double seconds) {
  std::vector<StepTimes> all;
  double begin = now();
  for (int i = 0; i <= most; ++i) {
    Expected<StepTimes> one = step(batches[size_t(i) % batches.size()]);
    if (!one)
      return one.takeError();
    if (i > 0)
      all.push_back(std::move(*one));
    if (i >= least && now() - begin > seconds)
      break;
  }
  auto of = [&](const std::function<double(const StepTimes &)> &take) {
    std::vector<double> values;
    for (const StepTimes &t : all)
      values.push_back(take(t));
    return middle(std::move(values));
  };
  StepTimes result;
  result.ingest = of([](const StepTimes &t) { return t.ingest; });
  result.total = of([](const StepTimes &t) { return t.total; });
  result.rest = of([](const StepTimes &t) { return t.rest; });
  for (const auto &entry : all.front().busy) {
    const std::string &op = entry.first;
    result.busy[op] = of([&](const StepTimes &t) { return t.busy.at(op); });
    result.stalled[op] =
        of([&](const StepTimes &t) { return t.stalled.at(op); });
  }
  return result;
}

Expected<std::pair<double, double>> Trial::run(const Batch &batch, int count) {
  Expected<json::Object> before = stats();
  if (!before)
    return before.takeError();
  double begin = now();
  for (int i = 0; i < count; ++i) {
    trc_ticket ticket = 0;
    if (Error e = submit(batch, ticket))
      return e;
    if (Error e = train(batch, ticket))
      return e;
  }
  if (Error e = rest())
    return e;
  double spent = (now() - begin) / count, inside = 0;
  Expected<json::Object> after = stats();
  if (!after)
    return after.takeError();
  for (const auto &entry : secondsBy(*after, "busy_ms"))
    inside += entry.second / count;
  for (const auto &entry : secondsBy(*before, "busy_ms"))
    inside -= entry.second / count;
  return std::make_pair(spent, std::max(0.0, spent - inside));
}

} // namespace terrace::calibrate
