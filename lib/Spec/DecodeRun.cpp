//===- DecodeRun.cpp - Training, data, memory and pins of a spec ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys that say how a model is run: `train` and `data` are settable at run
// time, the others describe a node and may live in a file of their own.
//
//===----------------------------------------------------------------------===//
#include "Spec/Decode.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace terrace::spec {

namespace {

/// The value of a top-level key, or null.
const Yaml *topKey(const Yaml &root, llvm::StringRef key) {
  const Yaml *node = root.find(key);
  return node && !node->isNull() ? node : nullptr;
}

void decodeTrain(Reading &reading, const Yaml &node, Train &train) {
  Fields fields(
      reading, node, "train",
      {"epochs", "eval_every", "metrics", "checkpoint", "lr_schedule", "stop"});
  fields.integer("epochs", 1, 1 << 30, train.epochs);
  if (const Yaml *every = fields.get("eval_every"))
    readAmount(reading, *every, "train.eval_every", "steps", train.evalEvery);
  if (const Yaml *metrics = fields.get("metrics")) {
    std::vector<Value<Metric>> list;
    auto one = [&](const Yaml &item) {
      Value<Metric> metric;
      if (!readEnum(reading, item, "train.metrics", metric))
        return;
      if (llvm::any_of(list, [&](const Value<Metric> &m) {
            return m.value == metric.value;
          }))
        reading.error(item.loc, "train.metrics: '" + name(metric.value) +
                                    "' is given twice");
      list.push_back(metric);
    };
    if (metrics->isList())
      for (const Yaml &item : metrics->items)
        one(item);
    else
      one(*metrics);
    train.metrics = std::move(list);
  }
  if (const Yaml *checkpoint = fields.get("checkpoint")) {
    Fields sub(reading, *checkpoint, "train.checkpoint",
               {"every", "keep", "churn", "on_full"});
    sub.integer("keep", 1, 1000000, train.checkpoint.keep);
    sub.real("churn", {0.0, 1.0}, train.checkpoint.churn);
    sub.word("on_full", train.checkpoint.onFull);
    if (const Yaml *every = sub.get("every")) {
      int64_t steps;
      if (every->isScalar() &&
          !llvm::StringRef(every->text).getAsInteger(10, steps))
        readInteger(reading, *every, "train.checkpoint.every", 1,
                    int64_t(1) << 48, train.checkpoint.everySteps);
      else
        readDuration(reading, *every, "train.checkpoint.every",
                     train.checkpoint.everySeconds, "a number of steps, or ");
    }
  }
  if (const Yaml *schedule = fields.get("lr_schedule")) {
    Fields sub(reading, *schedule, "train.lr_schedule",
               {"warmup_steps", "decay_start", "decay_steps", "decay_power",
                "end_scale"});
    LrSchedule &lr = train.lrSchedule;
    const int64_t most = int64_t(1) << 48;
    sub.integer("warmup_steps", 0, most, lr.warmupSteps);
    sub.integer("decay_start", 0, most, lr.decayStart);
    sub.integer("decay_steps", 0, most, lr.decaySteps);
    sub.real("decay_power", {0.0, 100.0}, lr.decayPower);
    sub.real("end_scale", {0.0, 1.0}, lr.endScale);
    if (lr.decaySteps == 0)
      sub.refuse({"decay_start", "decay_power", "end_scale"},
                 "means nothing without decay_steps");
  }
  if (const Yaml *stop = fields.get("stop")) {
    Fields sub(reading, *stop, "train.stop", words<Metric>());
    for (auto [i, metric] : llvm::enumerate(words<Metric>())) {
      StopRule rule{Metric(i), {}};
      Range range{0.0};
      if (rule.metric == Metric::Auc)
        range.high = 1;
      if (const Yaml *value = sub.get(metric))
        if (readReal(reading, *value, sub.path(metric), range, rule.value))
          train.stop.push_back(rule);
    }
  }
}

void decodeData(Reading &reading, const Yaml &node, Spec &spec) {
  Fields fields(
      reading, node, "data",
      {"path", "session", "time", "list_sep", "on_bad_row", "shuffle", "eval"});
  Data data;
  data.loc = node.loc;
  if (!fields.isMap())
    return;
  fields.require({"path"});
  fields.strings("path", data.paths);
  fields.string("session", data.session);
  fields.string("time", data.time);
  if (const Yaml *sep = fields.get("list_sep")) {
    llvm::StringRef text = sep->text;
    if (!sep->isScalar() || text.size() != 1 || text == "\t" || text == "\n" ||
        text == "\"" || text == "-" || text == "." || llvm::isAlnum(text[0]))
      fields.error("list_sep", "expected one character that is part of no "
                               "number and no line, as in \",\" or \"|\"");
    else
      data.listSep = {sep->text, sep->loc};
  }
  fields.word("on_bad_row", data.onBadRow);
  if (const Yaml *shuffle = fields.get("shuffle")) {
    Fields sub(reading, *shuffle, "data.shuffle", {"buffer", "seed"});
    Shuffle value;
    if (sub.isMap() && sub.require({"buffer"})) {
      sub.integer("buffer", 1, int64_t(1) << 40, value.buffer);
      if (const Yaml *seed = sub.get("seed"))
        readUnsigned(reading, *seed, "data.shuffle.seed", value.seed);
      data.shuffle = value;
    }
  }
  if (const Yaml *eval = fields.get("eval")) {
    Fields sub(reading, *eval, "data.eval", {"last", "path"});
    DataEval value;
    const Yaml *last = sub.get("last"), *path = sub.get("path");
    if (sub.isMap() && !last == !path)
      reading.error(eval->loc,
                    "data.eval: expected either 'last' (rows at the end of the "
                    "data, or a share such as 10%) or 'path' (files)");
    if (last &&
        readAmount(reading, *last, "data.eval.last", "rows", value.last)) {
      if (value.last->percent == 100)
        sub.error("last", "100% leaves no row to train on");
    }
    sub.strings("path", value.paths);
    if (sub.isMap())
      data.eval = std::move(value);
  }
  spec.data = std::move(data);
}

void decodeTier(Reading &reading, const Yaml &item, size_t index, Spec &spec) {
  std::string path = "memory.tiers[" + std::to_string(index) + "]";
  if (const Yaml *name = item.find("name"); name && name->isScalar())
    path = "memory.tiers." + name->text.substr(0, 64);
  Fields fields(reading, item, path,
                {"name", "kind", "capacity", "per", "path",
                 "drive_writes_per_day", "on_wear"});
  Tier tier;
  tier.loc = item.loc;
  if (!fields.isMap())
    return;
  fields.require({"name", "kind", "capacity"});
  if (const Yaml *name = fields.get("name"))
    readName(reading, *name, fields.path("name"), tier.name);
  fields.word("kind", tier.kind);
  if (const Yaml *capacity = fields.get("capacity"))
    readSize(reading, *capacity, fields.path("capacity"), tier.capacity);
  fields.word("per", tier.per);
  fields.strings("path", tier.paths);
  if (const Yaml *writes = fields.get("drive_writes_per_day")) {
    Real value;
    if (readReal(reading, *writes, fields.path("drive_writes_per_day"),
                 {0.0, 1000.0, true}, value))
      tier.driveWritesPerDay = value;
  }
  fields.word("on_wear", tier.onWear);
  if (!tier.driveWritesPerDay)
    fields.refuse({"on_wear"}, "only with drive_writes_per_day");
  if (tier.kind.loc.isValid()) {
    bool onDevice = tier.kind == TierKind::Nvme || tier.kind == TierKind::Pmem;
    if (onDevice && !fields.get("path"))
      reading.error(item.loc, path +
                                  ": missing key 'path' (a file, a folder's "
                                  "file or a block device for '" +
                                  name(tier.kind.value) + "')");
    if (!onDevice)
      fields.refuse({"path"}, "'" + name(tier.kind.value) +
                                  "' is memory and has no path");
    if (tier.kind != TierKind::Nvme)
      fields.refuse({"drive_writes_per_day"}, "only with kind: nvme");
  }
  spec.tiers.push_back(std::move(tier));
}

void decodePin(Reading &reading, const Yaml &item, size_t index, Pins &pins) {
  std::string path = "plan.place[" + std::to_string(index) + "]";
  Fields fields(reading, item, path, {"tables", "home", "cache"});
  PlacePin pin;
  pin.loc = item.loc;
  if (!fields.isMap())
    return;
  fields.require({"tables"});
  fields.string("tables", pin.tables);
  fields.string("home", pin.home);
  if (const Yaml *cache = fields.get("cache")) {
    if (!cache->isMap())
      fields.error("cache", "expected a map from a tier to a size, as in "
                            "{dram: 64MiB}");
    for (const YamlEntry &entry : cache->entries) {
      CachePin value;
      value.tier = {entry.key, entry.keyLoc};
      if (entry.value.isNull())
        reading.error(entry.keyLoc, path + ".cache." + entry.key +
                                        ": expected a size such as 64MiB");
      // A cache of nothing keeps only the rows that batches in flight pin.
      else if (readSize(reading, entry.value, path + ".cache." + entry.key,
                        value.bytes, /*zeroAllowed=*/true))
        pin.cache.push_back(std::move(value));
    }
  }
  if (!fields.get("home") && !fields.get("cache"))
    reading.error(item.loc, path + ": pins nothing; give 'home' or 'cache'");
  pins.place.push_back(std::move(pin));
}

void decodePlan(Reading &reading, const Yaml &node, Pins &pins) {
  Fields fields(reading, node, "plan", {"lookahead", "place", "together"});
  if (const Yaml *ahead = fields.get("lookahead")) {
    pins.lookaheadLoc = ahead->loc;
    Int value;
    if (ahead->isScalar() && ahead->text == "auto")
      pins.lookahead.reset();
    else if (int64_t n; !ahead->isScalar() ||
                        llvm::StringRef(ahead->text).getAsInteger(10, n) ||
                        n < 0 || n > 8)
      fields.error("lookahead",
                   "expected auto or a whole number, 0 to 8" +
                       (ahead->isScalar() ? ", found '" + ahead->text + "'"
                                          : std::string()));
    else if (readInteger(reading, *ahead, "plan.lookahead", 0, 8, value))
      pins.lookahead = value;
  }
  if (const Yaml *place = fields.get("place")) {
    if (!place->isList())
      fields.error("place", "expected a list of maps: [{tables: GLOB, home: "
                            "TIER, cache: {TIER: SIZE}}]");
    for (auto [i, item] : llvm::enumerate(place->items))
      decodePin(reading, item, i, pins);
  }
  if (const Yaml *together = fields.get("together")) {
    const char *expected = "expected a list of lists of table names";
    if (!together->isList())
      fields.error("together", expected);
    for (const Yaml &item : together->items) {
      std::vector<Str> group;
      if (!item.isList())
        reading.error(item.loc, llvm::Twine("plan.together: ") + expected);
      else if (item.items.size() < 2)
        reading.error(item.loc,
                      "plan.together: a group has at least two tables");
      else if (readStrings(reading, item, "plan.together", group))
        pins.together.push_back(std::move(group));
    }
  }
}

} // namespace

void decodeRun(Reading &reading, const Yaml &root, Spec &spec) {
  if (const Yaml *train = topKey(root, "train"))
    decodeTrain(reading, *train, spec.train);
  if (const Yaml *serve = topKey(root, "serve")) {
    Fields fields(reading, *serve, "serve", {"dtype"});
    Value<DType> dtype;
    fields.word("dtype", dtype);
    if (fields.get("dtype"))
      spec.serveDType = dtype;
  }
  if (const Yaml *data = topKey(root, "data"))
    decodeData(reading, *data, spec);
}

void decodeNode(Reading &reading, const Yaml &root, Spec &spec) {
  if (const Yaml *memory = topKey(root, "memory")) {
    Fields fields(reading, *memory, "memory", {"tiers"});
    fields.require({"tiers"});
    if (const Yaml *tiers = fields.get("tiers")) {
      if (!tiers->isList())
        fields.error("tiers", "expected a list of tiers: [{name: dram, kind: "
                              "dram, capacity: 2GiB}, ...]");
      for (auto [i, item] : llvm::enumerate(tiers->items))
        decodeTier(reading, item, i, spec);
    }
  }
  if (const Yaml *workers = topKey(root, "workers"))
    readInteger(reading, *workers, "workers", 1, 65536, spec.workers);
  if (const Yaml *target = topKey(root, "target")) {
    Fields fields(reading, *target, "target", {"device", "arch"});
    fields.word("device", spec.target.device);
    fields.strings("arch", spec.target.arch);
  }
  if (const Yaml *machine = topKey(root, "machine")) {
    Str file;
    if (readString(reading, *machine, "machine", file))
      spec.machine = std::move(file);
  }
  if (const Yaml *plan = topKey(root, "plan"))
    decodePlan(reading, *plan, spec.plan);
}

} // namespace terrace::spec
