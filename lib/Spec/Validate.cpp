//===- Validate.cpp - What must hold between the values of a spec ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cross checks, and the defaults that depend on other values. What is merely
// not built yet is no fault of the spec: see Executable.cpp.
//
//===----------------------------------------------------------------------===//
#include "Spec/Decode.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/Path.h"

namespace terrace::spec {

namespace {

class Validator {
public:
  Validator(Reading &reading, Spec &spec) : reading(reading), spec(spec) {}
  void run();

private:
  void features();
  void feature(const Feature &feature);
  void batch();
  void head();
  void tiers();
  void target();
  void place();
  void pin(const PlacePin &pin);
  const Tier *findTier(const Str &name, const llvm::Twine &path);

  const Table *tableOf(const Feature &feature) const {
    return feature.table < spec.tables.size() ? &spec.tables[feature.table]
                                              : nullptr;
  }
  /// Copies made by `count` share locations: say it once.
  void error(Loc loc, const llvm::Twine &message) {
    if (!loc.isValid() || !reading.diagnostics.hasErrorAt(loc))
      reading.error(loc, message);
  }

  Reading &reading;
  Spec &spec;
};

void Validator::feature(const Feature &f) {
  std::string path = "features." + *f.name;
  if (f.weights && (f.pooling == Pooling::Max || f.pooling == Pooling::None))
    error(f.weights->loc, path + ".weights: pooling '" + name(f.pooling.value) +
                              "' takes no weights (allowed: sum, mean, "
                              "weighted_mean, sqrtn)");
  if (f.meanIds > double(f.maxIds))
    error(f.meanIds.loc.isValid() ? f.meanIds.loc : f.loc,
          path + ".mean_ids: " + printReal(f.meanIds) +
              " is above max_ids, which is " + llvm::Twine(f.maxIds.value));
  const Table *table = tableOf(f);
  if (table && f.type == IdType::String && table->ids.kind == IdsKind::Index)
    error(f.type.loc.isValid() ? f.type.loc : f.loc,
          path + ".type: strings hash to 64-bit ids, but table '" +
              *table->name +
              "' has ids: index; give the table ids: hash (or dynamic)");
}

void Validator::features() {
  // A column is read once, so its readers must agree on what it holds.
  llvm::StringMap<const Feature *> columns;
  for (const Feature &f : spec.features) {
    feature(f);
    auto [found, isNew] = columns.try_emplace(*f.column, &f);
    if (!isNew && found->second->type.value != f.type.value)
      error(f.type.loc.isValid() ? f.type.loc : f.loc,
            "features." + *f.name + ".type: column '" + *f.column + "' is '" +
                name(found->second->type.value) + "' for feature '" +
                *found->second->name + "' and '" + name(f.type.value) +
                "' here");
  }
  std::vector<bool> used(spec.tables.size(), false);
  for (const Feature &f : spec.features)
    if (f.table < used.size())
      used[f.table] = true;
  for (auto [i, table] : llvm::enumerate(spec.tables))
    // Of two tables with one name, the second has its error already.
    if (!used[i] && !table.name->empty() &&
        spec.tableIndex(*table.name) == int(i))
      error(table.loc, "tables." + *table.name +
                           ": no feature reads this table; add one or remove "
                           "it");
}

void Validator::batch() {
  // Saturates: what does not fit is judged where it matters.
  const int64_t most = int64_t(1) << 62;
  int64_t perSample = 0, largest = 0;
  for (const Feature &f : spec.features) {
    perSample += f.maxIds; // <= 100000 * 2^31
    largest = std::max(largest, f.maxIds.value);
  }
  int64_t size = spec.batch.size;
  int64_t all =
      perSample > most / std::max<int64_t>(size, 1) ? most : perSample * size;
  if (!spec.batch.maxIds.loc.isValid())
    spec.batch.maxIds = std::max<int64_t>(all, 1);
  else if (spec.batch.maxIds < largest)
    error(spec.batch.maxIds.loc,
          "batch.max_ids: " + llvm::Twine(spec.batch.maxIds.value) +
              " is below the max_ids of one feature, which is " +
              llvm::Twine(largest) + ": no such bag could be trained");
}

void Validator::head() {
  if (!spec.head)
    return;
  const Head &head = *spec.head;
  for (const Feature &f : spec.features)
    if (*f.name == *head.label)
      error(head.label.loc, "head.label: '" + *head.label +
                                "' is the name of a feature; give that feature "
                                "another name, and its column with 'column'");
  for (const Feature &f : spec.features)
    if (f.pooling == Pooling::None)
      error(f.pooling.loc.isValid() ? f.pooling.loc : f.loc,
            "features." + *f.name +
                ".pooling: a head takes one vector for each sample; 'none' is "
                "for models without a head");
  if (head.kind != HeadKind::Dlrm && !spec.dense.empty())
    error(spec.dense.front().loc, "dense: head '" + name(head.kind.value) +
                                      "' reads no dense features (dlrm does)");
  if (head.kind == HeadKind::Logistic)
    return;
  const Feature *first = nullptr;
  int64_t dim = 0;
  for (const Feature &f : spec.features) {
    const Table *table = tableOf(f);
    if (!table || table->dim == 0)
      continue;
    if (!first) {
      first = &f;
      dim = table->dim;
    } else if (table->dim != dim) {
      error(table->dim.loc.isValid() ? table->dim.loc : table->loc,
            "head '" + name(head.kind.value) +
                "' needs one dim for all features: '" + *first->name +
                "' has " + llvm::Twine(dim) + ", '" + *f.name + "' has " +
                llvm::Twine(table->dim.value));
      break;
    }
  }
  if (head.kind != HeadKind::Dlrm)
    return;
  if (!head.topMlp.empty() && head.topMlp.back() != 1)
    error(head.topMlp.back().loc,
          "head.top_mlp: the last layer has width 1, found " +
              llvm::Twine(head.topMlp.back().value));
  if (!spec.dense.empty() && head.bottomMlp.empty())
    error(head.loc, "head: missing key 'bottom_mlp', which takes the dense "
                    "features");
  if (!head.bottomMlp.empty() && dim && head.bottomMlp.back() != dim)
    error(head.bottomMlp.back().loc,
          "head.bottom_mlp: the last layer has the features' dim, which is " +
              llvm::Twine(dim) + ", found " +
              llvm::Twine(head.bottomMlp.back().value));
}

/// Whether a path below the state's folder is one that the runtime writes and
/// removes there.
static bool isStatesOwn(llvm::StringRef path) {
  llvm::StringRef first = path.split('/').first;
  return first == "checkpoints" || path.starts_with("manifest.json") ||
         path.starts_with("closed.json") || first.starts_with("closed-") ||
         first.starts_with("index-") || first.starts_with("dram.store");
}

void Validator::tiers() {
  llvm::StringMap<const Tier *> names;
  llvm::StringMap<const Tier *> paths;
  for (const Tier &tier : spec.tiers) {
    if (!tier.name->empty() && !names.try_emplace(*tier.name, &tier).second)
      error(tier.name.loc,
            "memory.tiers: '" + *tier.name +
                "' is declared twice; the first is at " +
                reading.diagnostics.format(names[*tier.name]->name.loc));
    for (const Str &path : tier.paths) {
      // One file, however it is spelled.
      llvm::SmallString<128> plain{llvm::StringRef(*path)};
      llvm::sys::path::remove_dots(plain, /*remove_dot_dot=*/true);
      if (!paths.try_emplace(plain, &tier).second)
        error(path.loc, "memory.tiers." + *tier.name + ".path: '" + *path +
                            "' is used twice");
      else if (isStatesOwn(plain))
        error(path.loc, "memory.tiers." + *tier.name + ".path: '" + *path +
                            "' is a name that the state's folder uses itself; "
                            "use another, as in rows.store");
    }
  }
}

void Validator::target() {
  Target &target = spec.target;
  static const llvm::StringRef cpus[] = {"x86-64-v3", "x86-64-v4"};
  bool gpu = target.device == Device::Gpu;
  if (target.arch.empty() && !gpu)
    target.arch = {Str(std::string("x86-64-v3")),
                   Str(std::string("x86-64-v4"))};
  if (target.arch.empty())
    error(target.device.loc, "target: missing key 'arch' (as in sm_90)");
  for (const Str &arch : target.arch) {
    llvm::StringRef number = *arch;
    unsigned sm = 0;
    bool isSm = number.consume_front("sm_") &&
                (number.consume_back("a"), true) &&
                !number.getAsInteger(10, sm) && sm >= 75;
    if (gpu && !isSm)
      error(arch.loc, "target.arch: '" + *arch +
                          "' is not a GPU that is known (allowed: sm_75 and "
                          "later)");
    if (!gpu && !llvm::is_contained(cpus, *arch))
      error(arch.loc, "target.arch: '" + *arch + "' is not known" +
                          (isSm ? std::string("; it needs device: gpu")
                                : didYouMean(*arch, cpus)) +
                          " (allowed: x86-64-v3, x86-64-v4)");
  }
}

const Tier *Validator::findTier(const Str &name, const llvm::Twine &path) {
  if (const Tier *tier = spec.tier(*name))
    return tier;
  std::vector<llvm::StringRef> names;
  for (const Tier &tier : spec.tiers)
    if (!tier.name->empty())
      names.push_back(*tier.name);
  error(name.loc, path + ": no tier '" + *name + "'" +
                      didYouMean(*name, names) +
                      (names.empty() ? " (memory.tiers declares none)"
                                     : " (tiers: " + listOf(names) + ")"));
  return nullptr;
}

void Validator::pin(const PlacePin &pin) {
  std::string path = "plan.place '" + *pin.tables + "'";
  auto glob = llvm::GlobPattern::create(*pin.tables);
  if (!glob) {
    error(pin.tables.loc, path + ": " + llvm::toString(glob.takeError()));
    return;
  }
  if (!spec.nodeOnly && !pin.tables->empty() &&
      llvm::none_of(spec.tables,
                    [&](const Table &t) { return glob->match(*t.name); })) {
    std::vector<llvm::StringRef> names;
    for (const Table &table : spec.tables)
      names.push_back(*table.name);
    error(pin.tables.loc, path + ": no table matches" +
                              didYouMean(*pin.tables, names) +
                              " (tables: " + listOf(names) + ")");
  }
  const Tier *home = pin.home ? findTier(*pin.home, path + ".home") : nullptr;
  for (const CachePin &cache : pin.cache) {
    const Tier *tier = findTier(cache.tier, path + ".cache");
    if (!tier)
      continue;
    if (tier->kind == TierKind::Nvme)
      error(cache.tier.loc, path + ".cache: '" + *tier->name +
                                "' is nvme, the slowest kind; a cache is "
                                "faster than the home");
    else if (home && tier->kind.value >= home->kind.value)
      error(cache.tier.loc,
            path + ".cache: '" + *tier->name + "' (" + name(tier->kind.value) +
                ") is not faster than the home '" + *home->name + "' (" +
                name(home->kind.value) + ")");
    // A cache larger than its tier is the planner's to refuse: it names the
    // smallest capacity that fits, with rings and directory.
  }
}

void Validator::place() {
  for (const PlacePin &p : spec.plan.place)
    pin(p);
  llvm::StringMap<Loc> seen;
  for (const std::vector<Str> &group : spec.plan.together)
    for (const Str &table : group) {
      if (!spec.nodeOnly && spec.tableIndex(*table) < 0) {
        std::vector<llvm::StringRef> names;
        for (const Table &t : spec.tables)
          names.push_back(*t.name);
        error(table.loc, "plan.together: no table '" + *table + "'" +
                             didYouMean(*table, names) +
                             " (tables: " + listOf(names) + ")");
      }
      if (!seen.try_emplace(*table, table.loc).second)
        error(table.loc, "plan.together: '" + *table + "' is named twice");
    }
}

void Validator::run() {
  features();
  batch();
  head();
  tiers();
  target();
  place();
}

} // namespace

void validate(Reading &reading, Spec &spec) { Validator(reading, spec).run(); }

} // namespace terrace::spec
