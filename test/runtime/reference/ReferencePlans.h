//===- ReferencePlans.h - Small plans for the reference's tests -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the part of an artifact's JSON that the interpreter reads, as the
// import would flatten it, from a list of tables and features.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TEST_RUNTIME_REFERENCE_REFERENCEPLANS_H
#define TERRACE_TEST_RUNTIME_REFERENCE_REFERENCEPLANS_H

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace trc::reference {

using nlohmann::json;

inline json tablePlan(const std::string &name, int64_t rows, int64_t dim,
                      json optimizer, json init, const char *ids = "index") {
  return {{"name", name}, {"rows", rows},  {"dim", dim},
          {"ids", ids},   {"init", init},  {"init_key", "1234"},
          {"group", 0},   {"row_base", 0}, {"optimizer", optimizer}};
}

inline json featurePlan(const std::string &name, int table,
                        const std::string &pooling, int64_t maxIds,
                        bool weighted = false, const char *overflow = "error") {
  json f = {{"name", name},         {"column", name},     {"type", "int"},
            {"table", table},       {"pooling", pooling}, {"max_ids", maxIds},
            {"overflow", overflow}, {"dedup", -1},        {"weights", nullptr}};
  if (weighted)
    f["weights"] = name + "_w";
  return f;
}

/// head: "fm", "logistic" or "" for a library. dedup: members of one group.
inline json makePlan(std::vector<json> tables, std::vector<json> features,
                     const std::string &head, int64_t batch,
                     const std::vector<size_t> &dedup = {}) {
  json plan = {{"batch", batch},       {"max_ids", 1 << 20},
               {"on_bad_id", "error"}, {"on_bad_grad", "error"},
               {"tables", tables},     {"features", features},
               {"head", nullptr}};
  json ops = json::array();
  auto v = [](const char *prefix, size_t i) {
    return "%" + std::string(prefix) + std::to_string(i);
  };
  json raw, checked, checkTables;
  for (size_t f = 0; f < features.size(); ++f) {
    ops.push_back({{"op", "feature"}, {"result", v("raw", f)}, {"feature", f}});
    raw.push_back(v("raw", f));
    checked.push_back(v("c", f));
    checkTables.push_back(features[f]["table"]);
  }
  if (!head.empty())
    ops.push_back({{"op", "label"}, {"result", "%y"}});
  ops.push_back({{"op", "check"},
                 {"args", raw},
                 {"results", checked},
                 {"tables", checkTables}});
  std::vector<std::string> bags(features.size());
  for (size_t f = 0; f < features.size(); ++f) {
    bags[f] = v("c", f);
    if (tables[features[f]["table"]]["ids"] != "hash")
      continue;
    bags[f] = v("r", f);
    ops.push_back({{"op", "translate"},
                   {"arg", v("c", f)},
                   {"result", bags[f]},
                   {"table", features[f]["table"]}});
  }
  json inverse(nullptr);
  if (!dedup.empty()) {
    json args, results;
    for (size_t f : dedup) {
      args.push_back(bags[f]);
      bags[f] = v("d", f);
      results.push_back(bags[f]);
    }
    ops.push_back({{"op", "dedup"},
                   {"args", args},
                   {"results", results},
                   {"inverse", "%inv"}});
  }
  auto deduped = [&](size_t f) {
    return std::find(dedup.begin(), dedup.end(), f) != dedup.end();
  };
  for (size_t t = 0; t < tables.size(); ++t)
    ops.push_back({{"op", "state"}, {"result", v("t", t)}, {"table", t}});
  json pooled, grads;
  for (size_t f = 0; f < features.size(); ++f) {
    json op = {{"op", "lookup"},
               {"pooling", features[f]["pooling"]},
               {"state", v("t", features[f]["table"])},
               {"bags", bags[f]},
               {"result", v("p", f)}};
    if (features[f]["pooling"] == "max")
      op["winner"] = v("w", f);
    ops.push_back(op);
    pooled.push_back(v("p", f));
    grads.push_back(v("g", f));
    if (deduped(f)) {
      ops.push_back({{"op", "expand"},
                     {"arg", v("p", f)},
                     {"inverse", "%inv"},
                     {"result", v("e", f)}});
      pooled.back() = v("e", f);
    }
  }
  json dense = {{"op", "dense"},
                {"kind", head.empty() ? "caller" : head},
                {"args", pooled},
                {"results", grads}};
  if (!head.empty()) {
    dense["label"] = "%y";
    plan["head"] = {{"kind", head}, {"label", "y"}};
  }
  ops.push_back(dense);
  json committed, states;
  for (size_t t = 0; t < tables.size(); ++t) {
    json pool = json::array(), b = pool, inv = pool, g = pool, w = pool;
    for (size_t f = 0; f < features.size(); ++f) {
      if (features[f]["table"] != t)
        continue;
      pool.push_back(features[f]["pooling"]);
      b.push_back(bags[f]);
      inv.push_back(deduped(f) ? json("%inv") : json(nullptr));
      g.push_back(v("g", f));
      w.push_back(features[f]["pooling"] == "max" ? json(v("w", f))
                                                  : json(nullptr));
    }
    ops.push_back({{"op", "update"},
                   {"table", t},
                   {"state", v("t", t)},
                   {"pool", pool},
                   {"bags", b},
                   {"inverse", inv},
                   {"grads", g},
                   {"winners", w},
                   {"result", v("u", t)}});
    committed.push_back(t);
    states.push_back(v("u", t));
  }
  ops.push_back({{"op", "commit"}, {"tables", committed}, {"states", states}});
  plan["reference"] = {{"ops", ops}};
  return plan;
}

} // namespace trc::reference

#endif // TERRACE_TEST_RUNTIME_REFERENCE_REFERENCEPLANS_H
