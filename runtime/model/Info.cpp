//===- Info.cpp - What this model is
//---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The facts of the compiled-in plan, and how far the state has come where
// there is one.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Verbs.h"

#include <set>
#include <sys/stat.h>

namespace trc::model {

using nlohmann::json;

static double real(const json &j, const char *key) {
  auto it = j.find(key);
  return it != j.end() && it->is_number() ? it->get<double>() : 0.0;
}

int runInfo(Run &run) {
  const json &plan = run.config.plan;
  std::set<std::string> kernels;
  for (const json &f : plan.at("features"))
    kernels.insert(f.at("gather").get<std::string>());
  for (const json &g : plan.at("groups"))
    if (std::string update = g.at("update"); !update.empty())
      kernels.insert(update);
  double parameters = 0;
  for (const json &t : plan.at("tables"))
    parameters += real(t, "rows") * real(t, "dim");

  json fields = {{"model", run.config.model},
                 {"hash", plan.value("hash", "")},
                 {"terrace", plan.value("terrace", "")},
                 {"head", run.config.hasHead() ? plan.at("head").at("kind")
                                               : json(nullptr)},
                 {"batch", plan.at("batch")},
                 {"max_ids", plan.at("max_ids")},
                 {"serve", run.config.serve()},
                 {"numerics", plan.value("numerics", "")},
                 {"lookahead", plan.at("lookahead")},
                 {"tables", plan.at("tables").size()},
                 {"features", plan.at("features").size()},
                 {"groups", plan.at("groups").size()},
                 {"kernels", kernels.size()},
                 {"kernel_names", kernels},
                 {"parameters", parameters},
                 {"bound", plan.value("bound", json::array())},
                 {"process_bytes", plan.value("process_bytes", 0)}};
  std::string text =
      run.config.model + "  (plan " + plan.value("hash", "?") + ", terrace " +
      plan.value("terrace", "?") + ")\n" + "head       " +
      (run.config.hasHead() ? plan.at("head").at("kind").get<std::string>() +
                                  ", label '" + run.config.label + "'"
                            : std::string("none: a library for a trainer")) +
      (run.config.serve() ? "\nserves     does not train" : "") +
      "\nbatch      " + std::to_string(plan.at("batch").get<int64_t>()) +
      " samples, at most " + std::to_string(plan.at("max_ids").get<int64_t>()) +
      " ids, lookahead " + std::to_string(plan.at("lookahead").get<int64_t>()) +
      "\ntables     " + std::to_string(plan.at("tables").size()) + " with " +
      shortCount(parameters) + " parameters, read by " +
      std::to_string(plan.at("features").size()) + " features; " +
      std::to_string(kernels.size()) + " kernels\n";
  for (const json &g : plan.at("groups"))
    text += "group      " + g.at("name").get<std::string>() + ": " +
            shortCount(real(g, "rows")) + " rows of " +
            std::to_string(g.at("dim").get<int64_t>()) + ", home " +
            g.at("home").get<std::string>() +
            (g.contains("cache") && g.at("cache").is_string()
                 ? ", cache " + g.at("cache").get<std::string>() + " with " +
                       shortCount(real(g, "slots")) + " slots"
                 : std::string()) +
            "\n";
  for (const json &b : plan.value("bound", json::array()))
    text += "bound      " + b.at("tier").get<std::string>() + ": " +
            shortBytes(real(b, "bytes")) + " of " +
            shortBytes(real(b, "capacity")) + "\n";

  // A state is opened only where there is one: info makes nothing.
  std::string state = run.stateDir();
  fields["state"] = state;
  fields["step"] = 0;
  fields["samples"] = 0;
  struct stat st;
  if (::stat(state.c_str(), &st) != 0) {
    text += "state      none at " + state;
    fields["state_exists"] = false;
  } else {
    Session::Open how;
    how.artifact = run.artifact;
    how.options = &run.options;
    how.mode = TRC_EVAL;
    how.stateDir = state;
    auto session = Session::open(how);
    if (!session.ok())
      return run.report->failure(session.takeStatus());
    trc_model_info info = (*session)->info();
    text += "state      " + state + ": step " + std::to_string(info.step) +
            ", " + std::to_string(info.samples) + " samples";
    fields["state_exists"] = true;
    fields["step"] = info.step;
    fields["samples"] = info.samples;
    if (Status closed = (*session)->close(); !closed.ok())
      return run.report->failure(closed);
  }
  run.report->event("info", text, fields);
  return 0;
}

} // namespace trc::model
