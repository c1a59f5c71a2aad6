//===- Diff.cpp - What changes between two specs or decisions -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First the keys that differ, read off the canonical text of both, then what
// the planner makes of them, table by table.
//
//===----------------------------------------------------------------------===//
#include "Driver/Explain.h"
#include "Driver/Frontend.h"

#include "Planner/Explain.h"
#include "Spec/Yaml.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

namespace terrace::driver {

namespace {

using spec::Yaml;

/// Every value by its dotted key, in the order of the file. An item of a list
/// goes by its name; `items` holds the keys of the items themselves.
struct Flat {
  std::vector<std::pair<std::string, std::string>> values;
  llvm::StringMap<std::string> byKey;
  std::vector<std::string> items;
  void add(const std::string &key, std::string value) {
    byKey[key] = value;
    values.emplace_back(key, std::move(value));
  }
};

llvm::StringRef itemName(const Yaml &item) {
  for (llvm::StringRef key : {"name", "tables"})
    if (const Yaml *name = item.find(key))
      return name->text;
  return "";
}

std::string oneLine(const Yaml &node) {
  if (!node.isList())
    return node.text;
  std::string text;
  for (const Yaml &item : node.items)
    text += (text.empty() ? "" : ", ") + oneLine(item);
  return "[" + text + "]";
}

void flatten(const Yaml &node, const std::string &key, Flat &flat) {
  if (node.isMap()) {
    for (const spec::YamlEntry &entry : node.entries)
      flatten(entry.value, key.empty() ? entry.key : key + "." + entry.key,
              flat);
    return;
  }
  if (node.isList() && !node.items.empty() && node.items[0].isMap()) {
    for (const Yaml &item : node.items) {
      std::string path = key + "." + itemName(item).str();
      flat.items.push_back(path);
      flatten(item, path, flat);
    }
    return;
  }
  flat.add(key, oneLine(node));
}

struct Change {
  std::string key;
  std::string before, after; ///< empty: not there
};

/// "{rows: 10, dim: 4}" of an item, without its name.
std::string summary(const Flat &flat, const std::string &item) {
  std::string text;
  for (const auto &[key, value] : flat.values) {
    llvm::StringRef rest = key;
    if (!rest.consume_front(item + ".") || rest == "name" || rest == "tables")
      continue;
    text += (text.empty() ? "" : ", ") + rest.str() + ": " + value;
  }
  return "{" + text + "}";
}

/// Items that came or went are one change each, not one for every key.
std::vector<Change> compare(const Flat &before, const Flat &after) {
  std::vector<Change> changes;
  auto itemChanges = [&](const Flat &a, const Flat &b, bool gone,
                         llvm::StringMap<bool> &covered) {
    llvm::StringMap<bool> there;
    for (const std::string &item : b.items)
      there[item] = true;
    for (const std::string &item : a.items)
      if (!there.count(item)) {
        covered[item] = true;
        std::string text = summary(a, item);
        changes.push_back({item, gone ? text : "", gone ? "" : text});
      }
  };
  llvm::StringMap<bool> covered;
  itemChanges(before, after, true, covered);
  itemChanges(after, before, false, covered);
  auto isCovered = [&](llvm::StringRef key) {
    for (size_t dot = key.find('.'); dot != llvm::StringRef::npos;
         dot = key.find('.', dot + 1))
      if (covered.count(key.take_front(dot)))
        return true;
    return false;
  };
  for (const auto &[key, value] : before.values) {
    std::string there = after.byKey.lookup(key);
    if (there != value && !isCovered(key))
      changes.push_back({key, value, there});
  }
  for (const auto &[key, value] : after.values)
    if (!before.byKey.count(key) && !isCovered(key))
      changes.push_back({key, "", value});
  return changes;
}

void printChanges(llvm::ArrayRef<Change> changes, llvm::raw_ostream &os) {
  for (const Change &change : changes) {
    if (change.before.empty())
      os << "+ " << change.key;
    else if (change.after.empty())
      os << "- " << change.key;
    else
      os << "~ " << change.key;
    if (change.before.empty() || change.after.empty())
      os << ": " << change.before << change.after << "\n";
    else
      os << ": " << change.before << " -> " << change.after << "\n";
  }
}

llvm::json::Array changesJson(llvm::ArrayRef<Change> changes) {
  llvm::json::Array array;
  auto value = [](const std::string &text) {
    return text.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(text);
  };
  for (const Change &change : changes)
    array.push_back(llvm::json::Object{{"key", change.key},
                                       {"before", value(change.before)},
                                       {"after", value(change.after)}});
  return array;
}

/// One side: its spec as flat text, and its plan if there is one.
struct Side {
  Flat flat;
  std::optional<ModuleProblem> problem;
  std::optional<planner::Plan> plan;
  CompileResult result;
  bool parsed = false;

  bool read(const CompileOptions &options) {
    Frontend frontend(options, result);
    if (!frontend.parse())
      return false;
    parsed = true;
    Yaml tree;
    spec::Diagnostics own;
    spec::parseYaml(spec::printSpec(frontend.spec()), own.addSource("spec"),
                    tree, own);
    flatten(tree, "", flat);
    if (!frontend.spec().nodeOnly && frontend.importModule())
      frontend.plan(problem, plan);
    return true;
  }
  int table(llvm::StringRef name) const {
    for (size_t t = 0; t < problem->problem.tables.size(); ++t)
      if (problem->problem.tables[t].name == name)
        return t;
    return -1;
  }
  /// "disk", or "disk behind 1024 rows in dram".
  std::string place(int table) const {
    const planner::TableDecision &d = plan->decision.tables[table];
    const auto &tiers = problem->problem.tiers;
    std::string text = tiers[d.home].name;
    for (const planner::CacheDecision &cache : d.caches)
      text += llvm::formatv(" behind {0} rows in {1}", cache.retained,
                            tiers[cache.tier].name)
                  .str();
    return text;
  }
  double bytesPerStep(int table) const {
    const planner::TableTraffic &t = plan->cost.tables[table];
    return t.fetchBytes + t.storeBytes;
  }
};

std::string signedBytes(double bytes) {
  int64_t whole = int64_t(bytes < 0 ? -bytes : bytes);
  return (bytes < 0 ? "-" : "+") + planner::formatBytes(whole);
}

void comparePlans(const Side &a, const Side &b, llvm::raw_ostream &os,
                  llvm::json::Object &json) {
  llvm::json::Array tables;
  unsigned same = 0;
  for (size_t t = 0; t < b.problem->problem.tables.size(); ++t) {
    const std::string &name = b.problem->problem.tables[t].name;
    int old = a.table(name);
    if (old < 0)
      continue;
    std::string before = a.place(old), after = b.place(t);
    double delta = b.bytesPerStep(t) - a.bytesPerStep(old);
    if (before == after && std::abs(delta) < 1) {
      ++same;
      continue;
    }
    os << "table " << name << ": "
       << (before == after ? before : before + " -> " + after);
    if (std::abs(delta) >= 1)
      os << ", " << signedBytes(delta) << "/step";
    os << "\n";
    tables.push_back(
        llvm::json::Object{{"table", name},
                           {"before", before},
                           {"after", after},
                           {"bytes_per_step_before", a.bytesPerStep(old)},
                           {"bytes_per_step_after", b.bytesPerStep(t)}});
  }
  if (same)
    os << same << (same == 1 ? " table stays" : " tables stay")
       << " as it was\n";
  int64_t aheadA = a.plan->decision.lookahead,
          aheadB = b.plan->decision.lookahead;
  if (aheadA != aheadB)
    os << "lookahead: " << aheadA << " -> " << aheadB << "\n";
  os << "step: " << planner::formatSeconds(a.plan->cost.step) << " -> "
     << planner::formatSeconds(b.plan->cost.step) << " (bound by "
     << a.plan->cost.bound << " -> " << b.plan->cost.bound << ")\n";
  auto used = [](const Side &side, size_t tier) {
    return side.plan->footprint.charged(side.problem->problem, tier).total();
  };
  llvm::json::Array tiers;
  for (size_t t = 0; t < b.problem->problem.tiers.size(); ++t) {
    const planner::Tier &tier = b.problem->problem.tiers[t];
    int old = a.problem->problem.tierIndex(tier.name);
    int64_t before = old < 0 ? 0 : used(a, old), after = used(b, t);
    if (before != after)
      os << "tier " << tier.name << ": " << planner::formatBytes(before)
         << " -> " << planner::formatBytes(after) << "\n";
    tiers.push_back(llvm::json::Object{
        {"tier", tier.name}, {"bytes_before", before}, {"bytes_after", after}});
  }
  json["tables"] = std::move(tables);
  json["tiers"] = std::move(tiers);
  json["lookahead"] = llvm::json::Array{aheadA, aheadB};
  json["step_seconds"] =
      llvm::json::Array{a.plan->cost.step, b.plan->cost.step};
}

/// The tree of a decision file; none if the file is something else.
std::optional<Flat> readDecision(const std::string &file, ExplainResult &out) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer) {
    out.diagnostics.environmentError(file + ": " + buffer.getError().message());
    out.outcome = Outcome::Environment;
    return std::nullopt;
  }
  llvm::StringRef text = (*buffer)->getBuffer();
  if (!text.contains("terrace_decision"))
    return std::nullopt;
  Yaml tree;
  if (!spec::parseYaml(text, out.diagnostics.addSource(file), tree,
                       out.diagnostics)) {
    out.outcome = Outcome::Error;
    return std::nullopt;
  }
  if (!tree.find("terrace_decision"))
    return std::nullopt;
  Flat flat;
  flatten(tree, "", flat);
  return flat;
}

} // namespace

ExplainResult diff(const CompileOptions &before, const CompileOptions &after) {
  ExplainResult out;
  llvm::raw_string_ostream os(out.text);
  llvm::json::Object json;

  std::optional<Flat> oldDecision, newDecision;
  oldDecision = readDecision(before.input.modelFile, out);
  if (out.outcome == Outcome::Ok)
    newDecision = readDecision(after.input.modelFile, out);
  if (out.outcome != Outcome::Ok)
    return out;
  if (oldDecision || newDecision) {
    if (!oldDecision || !newDecision) {
      out.diagnostics.error("a decision can be compared with a decision only");
      out.outcome = Outcome::Error;
      return out;
    }
    std::vector<Change> changes = compare(*oldDecision, *newDecision);
    printChanges(changes, os);
    if (changes.empty())
      os << "the decisions are equal\n";
    json["decision"] = changesJson(changes);
    out.json = std::move(json);
    return out;
  }

  Side a, b;
  bool good = a.read(before);
  good &= b.read(after);
  if (!good) {
    // Both sides' errors, since both are the user's to repair.
    Side &bad = a.parsed ? b : a;
    out.outcome = bad.result.outcome;
    out.diagnostics = std::move(bad.result.diagnostics);
    return out;
  }
  std::vector<Change> changes = compare(a.flat, b.flat);
  printChanges(changes, os);
  if (changes.empty())
    os << "the specs are equal\n";
  json["spec"] = changesJson(changes);
  for (const auto &[side, label] : {std::pair(&a, "before"), {&b, "after"}})
    if (!side->plan && side->result.diagnostics.hasErrors()) {
      std::string why = llvm::StringRef(side->result.diagnostics.str())
                            .split('\n')
                            .first.str();
      os << label << ": no plan: " << why << "\n";
      json[std::string("no_plan_") + label] = why;
    }
  if (a.plan && b.plan)
    comparePlans(a, b, os, json);
  out.json = std::move(json);
  return out;
}

} // namespace terrace::driver
