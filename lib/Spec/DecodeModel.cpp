//===- DecodeModel.cpp - Tables, features and head of a spec --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lays `defaults` and `templates` under tables and features, repeats items
// with `count`, and makes the tables that features declare inline.
//
//===----------------------------------------------------------------------===//
#include "Spec/Decode.h"
#include "Spec/Edit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

namespace terrace::spec {

namespace {

using Keys = llvm::ArrayRef<llvm::StringRef>;
constexpr llvm::StringRef tableKeys[] = {
    "name", "rows",      "dim", "dtype", "rounding",
    "init", "optimizer", "ids", "use",   "count"};
// An inline table is repeated with its feature.
constexpr llvm::StringRef inlineKeys[] = {"name",      "rows",     "dim",
                                          "dtype",     "rounding", "init",
                                          "optimizer", "ids",      "use"};
constexpr llvm::StringRef featureKeys[] = {
    "name",    "column",   "table",    "type",  "pooling", "weights",
    "max_ids", "mean_ids", "overflow", "dedup", "count",   "use"};
constexpr llvm::StringRef tableDefaults[] = {
    "rows", "dim", "dtype", "rounding", "init", "optimizer", "ids"};
constexpr llvm::StringRef featureDefaults[] = {
    "column",  "table",    "type",     "pooling", "weights",
    "max_ids", "mean_ids", "overflow", "dedup"};

// As the IR and the artifact have it.
constexpr int64_t maxRows = int64_t(1) << 40;
constexpr int64_t maxIdsOfBag = int64_t(1) << 31;

class ModelDecoder {
public:
  ModelDecoder(Reading &reading, const Yaml &root, Spec &spec)
      : reading(reading), root(root), spec(spec) {}
  void run();

private:
  void globals();
  void collectTemplates();
  void tables();
  void features();
  void denseFeatures();
  void head();

  Yaml resolve(const Yaml &node, llvm::StringRef defaultsKey, Keys allowed,
               llvm::StringRef what);
  void decodeTable(const Yaml &resolved, llvm::StringRef path, Table &table);
  void decodeFeature(const Fields &fields, Feature &feature);
  void addTable(const Yaml &node, const Yaml &resolved, llvm::StringRef path,
                Str name);
  void featureTable(const Fields &fields, Feature &feature);
  std::vector<Yaml> expand(llvm::StringRef key, std::vector<unsigned> &copies);

  Reading &reading;
  const Yaml &root;
  Spec &spec;
  const Yaml *defaults = nullptr;
  const Yaml *templates = nullptr;
  llvm::StringMap<unsigned> tableIndex;
};

/// "features.user" where the item has a name, else "features[3]".
std::string itemPath(llvm::StringRef list, const Yaml &item, size_t index) {
  const Yaml *name = item.find("name");
  if (name && name->isScalar() && !name->text.empty() &&
      name->text.size() <= 64)
    return (list + "." + name->text).str();
  return (list + "[" + llvm::Twine(index) + "]").str();
}

void ModelDecoder::globals() {
  if (const Yaml *node = root.find("model"); node && !node->isNull())
    readName(reading, *node, "model", spec.model);
  if (const Yaml *node = root.find("seed"); node && !node->isNull())
    readUnsigned(reading, *node, "seed", spec.seed);
  auto word = [&](llvm::StringRef key, auto &out) {
    if (const Yaml *node = root.find(key); node && !node->isNull())
      readEnum(reading, *node, key, out);
  };
  word("numerics", spec.numerics);
  word("on_bad_id", spec.onBadId);
  word("on_bad_grad", spec.onBadGrad);
  if (const Yaml *node = root.find("batch"); node && !node->isNull()) {
    Fields fields(reading, *node, "batch", {"size", "max_ids"});
    fields.integer("size", 1, int64_t(1) << 24, spec.batch.size);
    fields.integer("max_ids", 1, int64_t(1) << 62, spec.batch.maxIds);
  }
}

void ModelDecoder::collectTemplates() {
  if (const Yaml *node = root.find("defaults"); node && !node->isNull()) {
    Fields fields(reading, *node, "defaults", {"table", "feature"});
    defaults = node;
    if (const Yaml *table = fields.get("table")) {
      Fields check(reading, *table, "defaults.table", tableDefaults);
      Table unused;
      decodeTable(*table, "defaults.table", unused);
    }
    if (const Yaml *feature = fields.get("feature")) {
      Fields check(reading, *feature, "defaults.feature", featureDefaults);
      Feature unused;
      decodeFeature(check, unused);
    }
  }
  const Yaml *node = root.find("templates");
  if (!node || node->isNull())
    return;
  if (!node->isMap()) {
    reading.error(node->loc, "templates: expected a map from a template's name "
                             "to its keys, found " +
                                 kindName(*node));
    return;
  }
  templates = node;
  std::vector<llvm::StringRef> both(std::begin(tableDefaults),
                                    std::end(tableDefaults));
  llvm::append_range(both, featureDefaults);
  for (const YamlEntry &entry : node->entries) {
    std::string path = "templates." + entry.key;
    Fields fields(reading, entry.value, path, both);
    if (!fields.isMap())
      continue;
    // Unused templates are checked as well.
    Table table;
    decodeTable(entry.value, path, table);
    Feature feature;
    decodeFeature(fields, feature);
  }
}

/// Defaults below the template below the item itself.
Yaml ModelDecoder::resolve(const Yaml &node, llvm::StringRef defaultsKey,
                           Keys allowed, llvm::StringRef what) {
  Yaml result = Yaml::map(node.loc);
  bool refused = false; // what an unknown template would give is not missing
  if (defaults)
    if (const Yaml *below = defaults->find(defaultsKey);
        below && below->isMap())
      result = overlay(result, *below);
  if (const Yaml *use = node.find("use"); use && !use->isNull()) {
    const Yaml *found =
        templates && use->isScalar() ? templates->find(use->text) : nullptr;
    if (!found) {
      refused = true;
      std::vector<llvm::StringRef> names;
      if (templates)
        for (const YamlEntry &entry : templates->entries)
          names.push_back(entry.key);
      std::string text = use->isScalar() ? use->text : kindName(*use).str();
      reading.error(
          use->loc,
          "use: no template '" + text + "'" + didYouMean(text, names) +
              (names.empty() ? " (there are no templates)"
                             : " (templates: " + listOf(names) + ")"));
    } else if (found->isMap()) {
      for (const YamlEntry &entry : found->entries)
        if (!llvm::is_contained(allowed, entry.key) &&
            (llvm::is_contained(tableDefaults, entry.key) ||
             llvm::is_contained(featureDefaults, entry.key)))
          reading.error(entry.keyLoc, "templates." + use->text + "." +
                                          entry.key + ": not a key of a " +
                                          what + ", which uses this template");
      result = overlay(result, *found);
    }
  }
  Yaml own = node;
  own.erase("use");
  result = overlay(result, own);
  result.loc = node.loc;
  result.refused = refused;
  return result;
}

void ModelDecoder::decodeTable(const Yaml &node, llvm::StringRef path,
                               Table &table) {
  if (!node.isMap())
    return;
  Reading &r = reading;
  auto at = [&](llvm::StringRef key) {
    const Yaml *value = node.find(key);
    return value && !value->isNull() ? value : nullptr;
  };
  auto sub = [&](llvm::StringRef key) { return (path + "." + key).str(); };
  if (const Yaml *v = at("rows"))
    readInteger(r, *v, sub("rows"), 1, maxRows, table.rows);
  if (const Yaml *v = at("dim"))
    readInteger(r, *v, sub("dim"), 1, 65536, table.dim);
  if (const Yaml *v = at("dtype"))
    readEnum(r, *v, sub("dtype"), table.dtype);
  if (const Yaml *v = at("rounding"))
    readEnum(r, *v, sub("rounding"), table.rounding);
  if (const Yaml *v = at("init")) {
    Yaml map = asKindMap(*v);
    decodeInit(Fields(r, map, sub("init"),
                      {"kind", "low", "high", "mean", "std", "value"}),
               table.init);
  }
  if (const Yaml *v = at("optimizer"))
    decodeOptimizer(*v, r, sub("optimizer"), table.optimizer);
  if (const Yaml *v = at("ids")) {
    Yaml map = asKindMap(*v);
    Fields ids(r, map, sub("ids"), {"kind", "admit", "evict", "on_full"});
    ids.word("kind", table.ids.kind);
    if (table.ids.kind.value != IdsKind::Dynamic)
      ids.refuse({"admit", "evict", "on_full"}, "only with kind: dynamic");
    if (const Yaml *admit = ids.get("admit"))
      Fields(r, *admit, ids.path("admit"), {"min_count"})
          .integer("min_count", 1, 1 << 30, table.ids.admitMinCount);
    if (const Yaml *evict = ids.get("evict")) {
      Fields fields(r, *evict, ids.path("evict"), {"policy", "ttl"});
      fields.word("policy", table.ids.evictPolicy);
      if (const Yaml *ttl = fields.get("ttl"))
        readDuration(r, *ttl, fields.path("ttl"), table.ids.ttlSeconds);
    }
    ids.word("on_full", table.ids.onFull);
  }
}

/// Everything but name and table.
void ModelDecoder::decodeFeature(const Fields &fields, Feature &feature) {
  fields.string("column", feature.column);
  fields.word("type", feature.type);
  fields.word("pooling", feature.pooling);
  fields.string("weights", feature.weights);
  fields.integer("max_ids", 1, maxIdsOfBag, feature.maxIds);
  fields.real("mean_ids", {0.0, double(maxIdsOfBag)}, feature.meanIds);
  fields.word("overflow", feature.overflow);
  fields.string("dedup", feature.dedup);
}

void ModelDecoder::addTable(const Yaml &node, const Yaml &resolved,
                            llvm::StringRef path, Str name) {
  Table table;
  table.loc = node.loc;
  table.name = std::move(name);
  decodeTable(resolved, path, table);
  // Templates give one without the other; a table is the place to compare.
  if (table.rounding == Rounding::Stochastic && table.dtype != DType::F16 &&
      table.dtype != DType::BF16)
    reading.error(table.rounding.loc,
                  path + ".rounding: only with dtype: f16 or bf16, not " +
                      spec::name(table.dtype.value));
  // With all keys known already, only what is missing is new here.
  std::vector<llvm::StringRef> missing;
  for (llvm::StringRef key : {"rows", "dim"})
    if (const Yaml *v = resolved.find(key); !v || (v->isNull() && !v->refused))
      missing.push_back(key);
  if (!missing.empty() && !resolved.refused)
    reading.error(node.loc,
                  path + ": missing " +
                      (missing.size() == 1 ? "key '" : "keys '") +
                      llvm::join(missing, "', '") +
                      "' (here, in its template or in defaults.table)");
  if (!table.name->empty()) {
    auto [found, isNew] =
        tableIndex.try_emplace(*table.name, spec.tables.size());
    if (!isNew)
      reading.error(
          table.name.loc.isValid() ? table.name.loc : table.loc,
          path + ": table '" + *table.name +
              "' is declared twice; the first is at " +
              reading.diagnostics.format(spec.tables[found->second].loc) +
              " (to share it, declare it in 'tables' and name it)");
  }
  spec.tables.push_back(std::move(table));
}

std::vector<Yaml> ModelDecoder::expand(llvm::StringRef key,
                                       std::vector<unsigned> &copies) {
  std::vector<Yaml> out;
  const Yaml *list = root.find(key);
  if (!list || list->isNull())
    return out;
  if (!list->isList()) {
    reading.error(list->loc,
                  key + ": expected a list of maps, found " + kindName(*list));
    return out;
  }
  for (const Yaml &item : list->items)
    expandCount(item, out, copies, reading.diagnostics);
  return out;
}

void ModelDecoder::tables() {
  std::vector<unsigned> copies;
  std::vector<Yaml> items = expand("tables", copies);
  for (auto [i, item] : llvm::enumerate(items)) {
    reading.copy = copies[i];
    std::string path = itemPath("tables", item, i);
    Fields fields(reading, item, path, tableKeys);
    if (!fields.isMap())
      continue;
    Str name;
    if (fields.require({"name"}))
      readName(reading, *fields.get("name"), fields.path("name"), name);
    addTable(item, resolve(item, "table", tableKeys, "table"), path,
             std::move(name));
  }
  reading.copy = 0;
}

void ModelDecoder::featureTable(const Fields &fields, Feature &feature) {
  const Yaml *node = fields.get("table");
  if (!node)
    return;
  feature.tableLoc = node->loc;
  if (node->isScalar()) {
    auto found = tableIndex.find(node->text);
    if (found != tableIndex.end()) {
      feature.table = found->second;
      return;
    }
    std::vector<llvm::StringRef> names;
    for (const Table &table : spec.tables)
      if (!table.name->empty())
        names.push_back(*table.name);
    fields.error("table",
                 "no table '" + node->text + "'" +
                     didYouMean(node->text, names) +
                     (names.empty() ? " (there are no tables; declare one "
                                      "inline: {rows: ..., dim: ...})"
                                    : " (tables: " + listOf(names) + ")"));
    return;
  }
  Fields table(reading, *node, fields.path("table"), inlineKeys);
  if (!table.isMap())
    return;
  Str name = feature.name;
  name.loc = {};
  if (const Yaml *own = table.get("name"))
    readName(reading, *own, table.path("name"), name);
  feature.table = spec.tables.size();
  addTable(*node, resolve(*node, "table", inlineKeys, "table"),
           fields.path("table"), std::move(name));
}

void ModelDecoder::features() {
  std::vector<unsigned> copies;
  std::vector<Yaml> items = expand("features", copies);
  llvm::StringMap<Loc> seen;
  if (!spec.nodeOnly && items.empty() && !reading.diagnostics.hasErrors())
    reading.error(root.loc, "missing key 'features': a model has at least one");
  // Two passes: a feature may name the inline table of a later one.
  std::vector<Yaml> resolved;
  std::vector<std::string> paths;
  for (auto [i, item] : llvm::enumerate(items)) {
    reading.copy = copies[i];
    paths.push_back(itemPath("features", item, i));
    Fields own(reading, item, paths.back(), featureKeys);
    resolved.push_back(own.isMap()
                           ? resolve(item, "feature", featureKeys, "feature")
                           : Yaml());
  }
  for (bool inlinePass : {true, false})
    for (auto [i, item] : llvm::enumerate(resolved)) {
      if (!item.isMap())
        continue;
      reading.copy = copies[i];
      const Yaml *table = item.find("table");
      if (inlinePass) {
        Feature feature;
        Fields fields(reading, item, paths[i], featureKeys);
        feature.loc = item.loc;
        fields.require({"name", "table"});
        if (const Yaml *name = fields.get("name")) {
          readName(reading, *name, fields.path("name"), feature.name);
          auto [found, isNew] = seen.try_emplace(name->text, name->loc);
          if (!isNew)
            fields.error("name", "feature '" + name->text +
                                     "' is declared twice; the first is at " +
                                     reading.diagnostics.format(found->second));
        }
        feature.column = {*feature.name, {}};
        decodeFeature(fields, feature);
        if (!fields.get("mean_ids"))
          feature.meanIds = double(feature.maxIds.value);
        if (table && !table->isScalar())
          featureTable(fields, feature);
        spec.features.push_back(std::move(feature));
      } else if (table && table->isScalar()) {
        // Parallel to `resolved` but for items that are no maps.
        size_t index =
            llvm::count_if(llvm::ArrayRef(resolved).take_front(i),
                           [](const Yaml &other) { return other.isMap(); });
        Fields fields(reading, item, paths[i], featureKeys);
        featureTable(fields, spec.features[index]);
      }
    }
  reading.copy = 0;
}

void ModelDecoder::denseFeatures() {
  std::vector<unsigned> copies;
  std::vector<Yaml> items = expand("dense", copies);
  llvm::StringMap<Loc> seen;
  for (auto [i, item] : llvm::enumerate(items)) {
    reading.copy = copies[i];
    Fields fields(reading, item, itemPath("dense", item, i),
                  {"name", "column", "count"});
    DenseFeature dense;
    dense.loc = item.loc;
    if (!fields.isMap() || !fields.require({"name"}))
      continue;
    readName(reading, *fields.get("name"), fields.path("name"), dense.name);
    if (!seen.try_emplace(*dense.name, dense.loc).second)
      fields.error("name",
                   "dense feature '" + *dense.name + "' is declared twice");
    dense.column = {*dense.name, {}};
    fields.string("column", dense.column);
    spec.dense.push_back(std::move(dense));
  }
  reading.copy = 0;
}

void ModelDecoder::head() {
  const Yaml *node = root.find("head");
  if (!node || node->isNull())
    return;
  Fields fields(reading, *node, "head",
                {"kind", "label", "loss", "bottom_mlp", "interaction",
                 "top_mlp", "optimizer"});
  Head head;
  head.loc = node->loc;
  if (!fields.isMap() || !fields.require({"kind", "label"}))
    return;
  fields.word("kind", head.kind);
  fields.string("label", head.label);
  fields.word("loss", head.loss);
  if (head.kind.value != HeadKind::Dlrm) {
    if (head.kind.loc.isValid())
      fields.refuse({"bottom_mlp", "interaction", "top_mlp", "optimizer"},
                    "only with kind: dlrm (the bias of '" +
                        name(head.kind.value) +
                        "' is trained by Adagrad with lr 0.1)");
    spec.head = std::move(head);
    return;
  }
  auto widths = [&](llvm::StringRef key, std::vector<Int> &out) {
    const Yaml *list = fields.get(key);
    if (!list)
      return;
    if (!list->isList() || list->items.empty() || list->items.size() > 64) {
      fields.error(key, "expected a list of 1 to 64 layer widths");
      return;
    }
    for (const Yaml &item : list->items) {
      out.emplace_back();
      readInteger(reading, item, fields.path(key), 1, 1 << 20, out.back());
    }
  };
  fields.require({"top_mlp"});
  widths("bottom_mlp", head.bottomMlp);
  widths("top_mlp", head.topMlp);
  if (const Yaml *inter = fields.get("interaction")) {
    Yaml map = asKindMap(*inter);
    Fields sub(reading, map, "head.interaction", {"kind", "layers", "rank"});
    sub.word("kind", head.interaction);
    if (head.interaction.value != InteractionKind::DcnV2)
      sub.refuse({"layers", "rank"}, "only with kind: dcn_v2");
    sub.integer("layers", 1, 64, head.interactionLayers);
    sub.integer("rank", 1, 1 << 20, head.interactionRank);
  }
  head.optimizer.kind = OptimizerKind::Adagrad;
  head.optimizer.lr = 0.01;
  if (const Yaml *optimizer = fields.get("optimizer"))
    decodeOptimizer(*optimizer, reading, "head.optimizer", head.optimizer);
  spec.head = std::move(head);
}

void ModelDecoder::run() {
  globals();
  collectTemplates();
  tables();
  features();
  denseFeatures();
  head();
}

} // namespace

Yaml asKindMap(const Yaml &node) {
  if (!node.isScalar())
    return node;
  Yaml map = Yaml::map(node.loc);
  map.set("kind", node.loc, node);
  return map;
}

void decodeInit(const Fields &fields, Init &init) {
  fields.word("kind", init.kind);
  struct Entry {
    llvm::StringRef key;
    InitKind kind;
    Real *value;
  } entries[] = {{"low", InitKind::Uniform, &init.low},
                 {"high", InitKind::Uniform, &init.high},
                 {"mean", InitKind::Normal, &init.mean},
                 {"std", InitKind::Normal, &init.std},
                 {"value", InitKind::Constant, &init.value}};
  for (const Entry &entry : entries) {
    Range range;
    if (entry.key == "std")
      range.low = 0;
    fields.real(entry.key, range, *entry.value);
    if (entry.kind != init.kind.value)
      fields.refuse({entry.key}, "only with kind: " + name(entry.kind));
  }
  if (init.kind.value == InitKind::Uniform && init.low.value > init.high.value)
    fields.error(init.low.loc.isValid() ? "low" : "high",
                 "low " + printReal(init.low) + " is above high " +
                     printReal(init.high));
  else if (init.kind.value == InitKind::Uniform &&
           !std::isfinite(float(init.high.value) - float(init.low.value)))
    fields.error(init.low.loc.isValid() ? "low" : "high",
                 "from low " + printReal(init.low) + " to high " +
                     printReal(init.high) + " is more than f32 holds");
}

void decodeOptimizer(const Yaml &node, Reading &reading, llvm::StringRef path,
                     Optimizer &optimizer) {
  Yaml map = asKindMap(node);
  Fields fields(reading, map, path,
                {"kind", "lr", "eps", "beta1", "beta2", "momentum", "beta",
                 "l1", "l2", "weight_decay", "weight_decay_mode", "clip_norm"});
  OptimizerKind before = optimizer.kind;
  fields.word("kind", optimizer.kind);
  OptimizerKind kind = optimizer.kind;
  if (kind != before) // torch's own default; 0.02 would diverge
    optimizer.lr = optimizer.hasMoments() ? 0.001 : 0.02;
  fields.real("lr", {0.0}, optimizer.lr);
  fields.real("eps", {0.0}, optimizer.eps);
  fields.real("beta1", {0.0, 1.0, false, true}, optimizer.beta1);
  fields.real("beta2", {0.0, 1.0, false, true}, optimizer.beta2);
  fields.real("momentum", {0.0, 1.0, false, true}, optimizer.momentum);
  fields.real("beta", {0.0}, optimizer.beta);
  fields.real("l1", {0.0}, optimizer.l1);
  fields.real("l2", {0.0}, optimizer.l2);
  fields.real("weight_decay", {0.0}, optimizer.weightDecay);
  fields.word("weight_decay_mode", optimizer.weightDecayMode);
  fields.real("clip_norm", {0.0}, optimizer.clipNorm);
  if (!optimizer.hasEps())
    fields.refuse({"eps"}, "'" + name(kind) + "' has no eps");
  if (kind != OptimizerKind::Sgd)
    fields.refuse({"momentum"}, "only with kind: sgd");
  if (!optimizer.hasMoments())
    fields.refuse({"beta1", "beta2"},
                  "only with kind: adam, partial_rowwise_adam or lamb");
  if (kind != OptimizerKind::Ftrl) {
    fields.refuse({"beta"}, "only with kind: ftrl");
    fields.refuse({"l1"}, "only with kind: ftrl");
    fields.refuse({"l2"}, "only with kind: ftrl (elsewhere: weight_decay)");
  } else {
    fields.refuse({"weight_decay", "weight_decay_mode"},
                  "'ftrl' has no weight decay; give l2");
    if (optimizer.lr == 0.0)
      fields.error("lr", "'ftrl' divides by lr: it must be above 0");
  }
  if (kind == OptimizerKind::Lamb)
    fields.refuse({"weight_decay_mode"},
                  "'lamb' adds weight_decay to its direction; there is no "
                  "other mode");
}

void decodeModel(Reading &reading, const Yaml &root, Spec &spec) {
  ModelDecoder(reading, root, spec).run();
}

} // namespace terrace::spec
