//===- Decision.cpp - A decision as YAML, and back ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Planner/Decision.h"

#include "Machine/YamlToJson.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace terrace;
using namespace terrace::planner;

std::string planner::printDecision(const Problem &problem,
                                   const Decision &decision) {
  std::string text;
  raw_string_ostream os(text);
  auto quoted = [](StringRef s) { return json::Value(s.str()); };
  os << "terrace_decision: 1\n"
     << "model: " << quoted(problem.model) << "\n"
     << "lookahead: " << decision.lookahead << "\n"
     << "policy: " << decision.policy << "\n"
     << "tables:\n";
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const TableDecision &d = decision.tables[t];
    os << "- {name: " << quoted(problem.tables[t].name)
       << ", home: " << quoted(problem.tiers[d.home].name);
    if (!d.caches.empty()) {
      os << ", cache: {";
      for (size_t c = 0; c < d.caches.size(); ++c)
        os << (c ? ", " : "") << quoted(problem.tiers[d.caches[c].tier].name)
           << ": " << d.caches[c].retained;
      os << "}";
    }
    if (problem.workers > 1)
      os << ", worker: " << d.worker;
    os << "}\n";
  }
  return text;
}

namespace {

struct Reader {
  const Problem &problem;
  std::string file, error;
  Decision decision;

  bool fail(const Twine &what) {
    if (error.empty())
      error = (file + ": " + what).str();
    return false;
  }

  bool tier(StringRef name, const Twine &where, int &out) {
    out = problem.tierIndex(name);
    return out >= 0 || fail(where + ": there is no tier '" + name + "'");
  }

  bool table(const json::Object &o, std::vector<char> &seen) {
    std::optional<StringRef> name = o.getString("name");
    if (!name)
      return fail("tables: every entry needs a name");
    std::string where = ("table '" + *name + "'").str();
    size_t t = 0;
    while (t < problem.tables.size() && problem.tables[t].name != *name)
      ++t;
    if (t == problem.tables.size())
      return fail(where + " is not a table of the model");
    if (seen[t]++)
      return fail(where + " is given twice");
    TableDecision &d = decision.tables[t];
    for (const auto &entry : o) {
      StringRef key = entry.first;
      if (key == "name")
        continue;
      if (key == "home") {
        std::optional<StringRef> home = entry.second.getAsString();
        if (!home)
          return fail(where + ": home names a tier");
        if (!tier(*home, where, d.home))
          return false;
      } else if (key == "cache") {
        const json::Object *caches = entry.second.getAsObject();
        if (!caches)
          return fail(where + ": cache is {tier: rows to retain}");
        for (const auto &cache : *caches) {
          CacheDecision c;
          if (!tier(cache.first, where, c.tier))
            return false;
          std::optional<int64_t> rows = cache.second.getAsInteger();
          if (!rows || *rows < 0)
            return fail(where + ": rows to retain are a whole number from 0");
          c.retained = std::min(*rows, problem.tables[t].rows);
          d.caches.push_back(c);
        }
        llvm::sort(d.caches, [&](const auto &a, const auto &b) {
          return std::make_pair(problem.tiers[a.tier].kind, a.tier) <
                 std::make_pair(problem.tiers[b.tier].kind, b.tier);
        });
      } else if (key == "worker") {
        std::optional<int64_t> worker = entry.second.getAsInteger();
        if (!worker || *worker < 0 || *worker >= problem.workers)
          return fail(where + ": worker must lie between 0 and " +
                      Twine(problem.workers - 1));
        d.worker = static_cast<int>(*worker);
      } else {
        return fail(where + ": unknown key '" + key + "'");
      }
    }
    if (!o.get("home"))
      return fail(where + ": home is missing");
    return true;
  }

  bool read(const json::Value &root) {
    const json::Object *o = root.getAsObject();
    if (!o || o->getInteger("terrace_decision") != 1)
      return fail("expected a decision (terrace_decision: 1)");
    decision.tables.resize(problem.tables.size());
    std::vector<char> seen(problem.tables.size(), 0);
    for (const auto &entry : *o) {
      StringRef key = entry.first;
      if (key == "terrace_decision")
        continue;
      if (key == "model") {
        std::optional<StringRef> model = entry.second.getAsString();
        if (!model || *model != problem.model)
          return fail("the decision belongs to model '" + model.value_or("?") +
                      "', not to '" + problem.model + "'");
      } else if (key == "lookahead") {
        std::optional<int64_t> d = entry.second.getAsInteger();
        if (!d || *d < 0 || *d > maxLookahead)
          return fail("lookahead must lie between 0 and " +
                      Twine(maxLookahead));
        decision.lookahead = *d;
      } else if (key == "policy") {
        std::optional<StringRef> policy = entry.second.getAsString();
        if (!policy ||
            (*policy != "lru" && *policy != "lfu" && *policy != "clock"))
          return fail("policy is lru, lfu or clock");
        decision.policy = policy->str();
      } else if (key == "tables") {
        const json::Array *list = entry.second.getAsArray();
        if (!list)
          return fail("tables is a list");
        for (const json::Value &item : *list) {
          const json::Object *t = item.getAsObject();
          if (!t)
            return fail("tables: expected a mapping");
          if (!table(*t, seen))
            return false;
        }
      } else {
        return fail("unknown key '" + key + "'");
      }
    }
    for (size_t t = 0; t < seen.size(); ++t)
      if (!seen[t])
        return fail("table '" + problem.tables[t].name + "' is missing");
    return true;
  }
};

} // namespace

Expected<Decision> planner::parseDecision(const Problem &problem,
                                          StringRef text, StringRef name) {
  Expected<json::Value> root = yamlToJson(text, name);
  if (!root)
    return root.takeError();
  Reader r{problem, name.str(), {}, {}};
  if (!r.read(*root))
    return createStringError(inconvertibleErrorCode(), "%s", r.error.c_str());
  return std::move(r.decision);
}
