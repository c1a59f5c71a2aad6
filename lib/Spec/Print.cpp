//===- Print.cpp - A spec as canonical YAML -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every default is written out; templates, counts and inline tables are gone.
// Parsing the text gives the same spec, and printing that the same text.
//
//===----------------------------------------------------------------------===//
#include "Spec/Fields.h"
#include "Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/YAMLParser.h"

namespace terrace::spec {

namespace {

std::string quote(llvm::StringRef text) {
  bool plain = !text.empty() &&
               (llvm::isAlpha(text[0]) || text[0] == '_' || text[0] == '/');
  for (char c : text)
    plain &= llvm::isAlnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
  // Words that this parser, or another, reads as something else than text.
  plain &= !llvm::is_contained(
      {"null", "true", "false", "yes", "no", "on", "off", "y", "n"},
      text.lower());
  return plain ? text.str() : "\"" + llvm::yaml::escape(text, false) + "\"";
}

/// A flow map, written key by key.
class Flow {
public:
  Flow &add(llvm::StringRef key, const llvm::Twine &value) {
    text += (text.empty() ? "" : ", ") + key.str() + ": " + value.str();
    return *this;
  }
  Flow &text_(llvm::StringRef key, llvm::StringRef value) {
    return add(key, quote(value));
  }
  Flow &real(llvm::StringRef key, double value) {
    return add(key, printReal(value));
  }
  Flow &whole(llvm::StringRef key, int64_t value) {
    return add(key, llvm::Twine(value));
  }
  std::string str() const { return "{" + text + "}"; }

private:
  std::string text;
};

std::string list(llvm::ArrayRef<Str> values) {
  std::string out;
  for (const Str &value : values)
    out += (out.empty() ? "" : ", ") + quote(*value);
  return "[" + out + "]";
}

std::string oneOrList(llvm::ArrayRef<Str> values) {
  return values.size() == 1 ? quote(*values[0]) : list(values);
}

std::string printAmount(const Amount &amount) {
  return amount.percent != 0 ? printReal(amount.percent) + "%"
                             : std::to_string(amount.count);
}

std::string printInit(const Init &init) {
  Flow flow;
  flow.add("kind", name(init.kind.value));
  switch (init.kind.value) {
  case InitKind::Uniform:
    flow.real("low", init.low).real("high", init.high);
    break;
  case InitKind::Normal:
    flow.real("mean", init.mean).real("std", init.std);
    break;
  case InitKind::Constant:
    flow.real("value", init.value);
    break;
  }
  return flow.str();
}

std::string printOptimizer(const Optimizer &optimizer) {
  Flow flow;
  flow.add("kind", name(optimizer.kind.value)).real("lr", optimizer.lr);
  if (optimizer.kind == OptimizerKind::Sgd)
    flow.real("momentum", optimizer.momentum);
  if (optimizer.hasEps())
    flow.real("eps", optimizer.eps);
  if (optimizer.hasMoments())
    flow.real("beta1", optimizer.beta1).real("beta2", optimizer.beta2);
  if (optimizer.kind == OptimizerKind::Ftrl)
    flow.real("beta", optimizer.beta)
        .real("l1", optimizer.l1)
        .real("l2", optimizer.l2);
  else
    flow.real("weight_decay", optimizer.weightDecay);
  // Words that are rare are not printed where they say nothing.
  if (optimizer.weightDecayMode != DecayMode::L2)
    flow.add("weight_decay_mode", name(optimizer.weightDecayMode.value));
  if (optimizer.clipNorm != 0.0)
    flow.real("clip_norm", optimizer.clipNorm);
  return flow.str();
}

std::string printIds(const Ids &ids) {
  if (ids.kind != IdsKind::Dynamic)
    return name(ids.kind.value).str();
  Flow evict;
  evict.add("policy", name(ids.evictPolicy.value));
  if (ids.ttlSeconds > 0)
    evict.add("ttl", printDuration(ids.ttlSeconds));
  return Flow()
      .add("kind", "dynamic")
      .add("admit", Flow().whole("min_count", ids.admitMinCount).str())
      .add("evict", evict.str())
      .add("on_full", name(ids.onFull.value))
      .str();
}

class Printer {
public:
  Printer(const Spec &spec, llvm::raw_ostream &os) : spec(spec), os(os) {}
  void run();

private:
  void model();
  void head();
  void train();
  void serve();
  void data();
  void memory();
  void plan();

  const Spec &spec;
  llvm::raw_ostream &os;
};

void Printer::model() {
  os << "model: " << quote(*spec.model) << "\n";
  os << "seed: " << spec.seed.value << "\n";
  os << "numerics: " << name(spec.numerics.value) << "\n";
  os << "on_bad_id: " << name(spec.onBadId.value) << "\n";
  os << "on_bad_grad: " << name(spec.onBadGrad.value) << "\n";
  os << "batch: "
     << Flow()
            .whole("size", spec.batch.size)
            .whole("max_ids", spec.batch.maxIds)
            .str()
     << "\n";
  os << "tables:\n";
  for (const Table &table : spec.tables)
    os << "- "
       << Flow()
              .text_("name", *table.name)
              .whole("rows", table.rows)
              .whole("dim", table.dim)
              .add("dtype", name(table.dtype.value))
              .add("rounding", name(table.rounding.value))
              .add("ids", printIds(table.ids))
              .add("init", printInit(table.init))
              .add("optimizer", printOptimizer(table.optimizer))
              .str()
       << "\n";
  os << "features:\n";
  for (const Feature &f : spec.features) {
    Flow flow;
    flow.text_("name", *f.name)
        .text_("column", *f.column)
        .text_("table", *spec.tables[f.table].name)
        .add("type", name(f.type.value))
        .add("pooling", name(f.pooling.value));
    if (f.weights)
      flow.text_("weights", **f.weights);
    flow.whole("max_ids", f.maxIds)
        .real("mean_ids", f.meanIds)
        .add("overflow", name(f.overflow.value));
    if (f.dedup)
      flow.text_("dedup", **f.dedup);
    os << "- " << flow.str() << "\n";
  }
  if (!spec.dense.empty())
    os << "dense:\n";
  for (const DenseFeature &dense : spec.dense)
    os << "- "
       << Flow().text_("name", *dense.name).text_("column", *dense.column).str()
       << "\n";
}

void Printer::head() {
  if (!spec.head)
    return;
  const Head &head = *spec.head;
  os << "head:\n  kind: " << name(head.kind.value)
     << "\n  label: " << quote(*head.label)
     << "\n  loss: " << name(head.loss.value) << "\n";
  if (head.kind != HeadKind::Dlrm)
    return;
  auto widths = [](llvm::ArrayRef<Int> values) {
    std::string out;
    for (const Int &value : values)
      out += (out.empty() ? "" : ", ") + std::to_string(value);
    return "[" + out + "]";
  };
  if (!head.bottomMlp.empty())
    os << "  bottom_mlp: " << widths(head.bottomMlp) << "\n";
  Flow interaction;
  interaction.add("kind", name(head.interaction.value));
  if (head.interaction == InteractionKind::DcnV2)
    interaction.whole("layers", head.interactionLayers)
        .whole("rank", head.interactionRank);
  os << "  interaction: " << interaction.str() << "\n";
  os << "  top_mlp: " << widths(head.topMlp) << "\n";
  os << "  optimizer: " << printOptimizer(head.optimizer) << "\n";
}

void Printer::serve() {
  if (spec.serveDType)
    os << "serve: {dtype: " << name(spec.serveDType->value) << "}\n";
}

void Printer::train() {
  const Train &train = spec.train;
  os << "train:\n  epochs: " << train.epochs.value << "\n";
  if (!train.evalEvery->isNone())
    os << "  eval_every: " << printAmount(*train.evalEvery) << "\n";
  std::string metrics;
  for (const Value<Metric> &metric : train.metrics)
    metrics += (metrics.empty() ? "" : ", ") + name(metric.value).str();
  os << "  metrics: [" << metrics << "]\n";
  Flow checkpoint;
  if (train.checkpoint.everySteps > 0)
    checkpoint.whole("every", train.checkpoint.everySteps);
  if (train.checkpoint.everySeconds > 0)
    checkpoint.add("every", printDuration(train.checkpoint.everySeconds));
  checkpoint.whole("keep", train.checkpoint.keep)
      .real("churn", train.checkpoint.churn)
      .add("on_full", name(train.checkpoint.onFull.value).str());
  os << "  checkpoint: " << checkpoint.str() << "\n";
  const LrSchedule &lr = train.lrSchedule;
  Flow schedule;
  schedule.whole("warmup_steps", lr.warmupSteps);
  if (lr.decaySteps > 0)
    schedule.whole("decay_start", lr.decayStart)
        .whole("decay_steps", lr.decaySteps)
        .real("decay_power", lr.decayPower)
        .real("end_scale", lr.endScale);
  os << "  lr_schedule: " << schedule.str() << "\n";
  Flow stop;
  for (const StopRule &rule : train.stop)
    stop.real(name(rule.metric), rule.value);
  if (!train.stop.empty())
    os << "  stop: " << stop.str() << "\n";
}

void Printer::data() {
  if (!spec.data)
    return;
  const Data &data = *spec.data;
  os << "data:\n  path: " << oneOrList(data.paths) << "\n";
  if (data.session)
    os << "  session: " << quote(**data.session) << "\n";
  if (data.time)
    os << "  time: " << quote(**data.time) << "\n";
  os << "  list_sep: " << quote(*data.listSep) << "\n";
  os << "  on_bad_row: " << name(data.onBadRow.value) << "\n";
  if (data.shuffle)
    os << "  shuffle: {buffer: " << data.shuffle->buffer.value
       << ", seed: " << data.shuffle->seed.value << "}\n";
  if (data.eval && data.eval->paths.empty())
    os << "  eval: {last: " << printAmount(*data.eval->last) << "}\n";
  else if (data.eval)
    os << "  eval: {path: " << oneOrList(data.eval->paths) << "}\n";
}

void Printer::memory() {
  if (!spec.tiers.empty())
    os << "memory:\n  tiers:\n";
  for (const Tier &tier : spec.tiers) {
    Flow flow;
    flow.text_("name", *tier.name)
        .add("kind", name(tier.kind.value))
        .add("capacity", printSize(tier.capacity))
        .add("per", name(tier.per.value));
    if (!tier.paths.empty())
      flow.add("path", oneOrList(tier.paths));
    if (tier.driveWritesPerDay)
      flow.real("drive_writes_per_day", *tier.driveWritesPerDay)
          .add("on_wear", name(tier.onWear.value).str());
    os << "  - " << flow.str() << "\n";
  }
  os << "workers: " << spec.workers.value << "\n";
  os << "target: {device: " << name(spec.target.device.value)
     << ", arch: " << list(spec.target.arch) << "}\n";
  if (spec.machine)
    os << "machine: " << quote(**spec.machine) << "\n";
}

void Printer::plan() {
  os << "plan:\n  lookahead: ";
  if (spec.plan.lookahead)
    os << spec.plan.lookahead->value << "\n";
  else
    os << "auto\n";
  if (!spec.plan.place.empty())
    os << "  place:\n";
  for (const PlacePin &pin : spec.plan.place) {
    Flow flow;
    flow.text_("tables", *pin.tables);
    if (pin.home)
      flow.text_("home", **pin.home);
    Flow cache;
    for (const CachePin &entry : pin.cache)
      cache.add(quote(*entry.tier), printSize(entry.bytes));
    if (!pin.cache.empty())
      flow.add("cache", cache.str());
    os << "  - " << flow.str() << "\n";
  }
  if (!spec.plan.together.empty())
    os << "  together:\n";
  for (const std::vector<Str> &group : spec.plan.together)
    os << "  - " << list(group) << "\n";
}

void Printer::run() {
  os << "terrace: 1\n";
  if (!spec.nodeOnly) {
    model();
    head();
    train();
    serve();
    data();
  }
  memory();
  plan();
}

} // namespace

void printSpec(const Spec &spec, llvm::raw_ostream &os) {
  Printer(spec, os).run();
}

std::string printSpec(const Spec &spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printSpec(spec, os);
  return text;
}

} // namespace terrace::spec
