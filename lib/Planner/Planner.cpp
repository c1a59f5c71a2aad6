//===- Planner.cpp - Decides shards, homes, caches and lookahead ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Feasibility first, then a search over lookahead and homes; caches take what
// is left. Few tables: all homes. Many: greedy by time saved per byte at
// several shares of memory, then single moves.
//
//===----------------------------------------------------------------------===//
#include "Planner/Explain.h"
#include "Planner/Search.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <cmath>

using namespace terrace;
using namespace terrace::planner;
using llvm::Twine;

std::optional<Search::Candidate> Search::evaluate(const Homes &h,
                                                  int64_t lookahead) const {
  Candidate c;
  c.decision = decision(h, lookahead);
  c.footprint = computeFootprint(p, c.decision);
  if (overflow(c.footprint) >= 0)
    return std::nullopt;
  Decision least = c.decision;
  fillCaches(c.decision, c.footprint);
  c.footprint = computeFootprint(p, c.decision);
  // Directory entries of slots in another tier were not looked at: give rows
  // back until everything fits. With none, it did.
  while (overflow(c.footprint) >= 0) {
    for (size_t t = 0; t < p.tables.size(); ++t)
      for (size_t i = 0; i < least.tables[t].caches.size(); ++i) {
        int64_t &rows = c.decision.tables[t].caches[i].retained;
        int64_t floor = least.tables[t].caches[i].retained;
        rows = floor + (rows - floor) / 2;
      }
    c.footprint = computeFootprint(p, c.decision);
  }
  c.cost = stepCost(p, c.decision, c.footprint, loads);
  return c;
}

std::vector<Homes> Search::candidateHomes(int64_t lookahead) const {
  std::vector<Homes> result{leastHomes(lookahead)};
  std::vector<int> freeTables;
  size_t combinations = 1;
  for (size_t t = 0; t < p.tables.size(); ++t)
    if (isFree(static_cast<int>(t))) {
      freeTables.push_back(static_cast<int>(t));
      if (combinations <= 256)
        combinations *= homes[t].size();
    }
  if (freeTables.empty())
    return result;
  if (combinations <= 256) {
    for (size_t code = 0; code < combinations; ++code) {
      Homes h = result.front();
      size_t rest = code;
      for (int t : freeTables) {
        h[t] = homes[t][rest % homes[t].size()];
        rest /= homes[t].size();
      }
      result.push_back(std::move(h));
    }
    return result;
  }
  // Bytes read and written in place per stored byte.
  std::vector<int> order = freeTables;
  auto rho = [&](int t) {
    return (loads[t].gatherBytes + loads[t].updateBytes) /
           double(std::max<int64_t>(1, p.tables[t].rows *
                                           p.tables[t].slotBytes()));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return rho(a) > rho(b); });
  int steps = p.tables.size() > 256 ? 6 : 16;
  for (int i = 0; i <= steps; ++i) {
    Homes h = result.front();
    for (int t : freeTables)
      h[t] = homes[t].front();
    std::vector<double> room;
    for (const Tier &tier : p.tiers)
      room.push_back(double(tier.capacity) * (tier.perWorker ? p.workers : 1) *
                     i / steps);
    for (int t : order)
      // Fastest first.
      for (int tier : llvm::reverse(homes[t])) {
        double bytes = double(p.tables[t].rows * p.tables[t].slotBytes());
        if (tier == homes[t].front() || bytes > room[tier])
          continue;
        room[tier] -= bytes;
        h[t] = tier;
        break;
      }
    result.push_back(std::move(h));
  }
  return result;
}

namespace {

/// Of two that keep the same pace, the one that does less is better: a table
/// that fits into memory does not lie on a disk behind a cache of all its rows
/// because another table's I/O hides the cost, or because a group less leaves
/// some more rows for the cache. No prediction is better than half a percent.
bool quicker(const StepCost &a, const StepCost &b) {
  const double same = 5e-3 * b.step;
  if (std::fabs(a.step - b.step) > same)
    return a.step < b.step;
  return a.serial < b.serial * (1 - 1e-9);
}

std::string describe(const Problem &p, const Decision &d, int table) {
  const TableDecision &t = d.tables[table];
  std::string text = "home " + p.tiers[t.home].name;
  for (const CacheDecision &c : t.caches)
    text += ", cache " + p.tiers[c.tier].name;
  return text;
}

Homes homesOf(const Decision &d) {
  Homes h;
  for (const TableDecision &t : d.tables)
    h.push_back(t.home);
  return h;
}

void finish(const Search &s, Plan &plan) {
  const Problem &p = s.p;
  plan.why.assign(p.tables.size(), "");
  plan.tableRunnerUp.assign(p.tables.size(), std::nullopt);
  bool alternatives = p.tables.size() <= 64;
  Homes chosen = homesOf(plan.decision);
  for (size_t t = 0; t < p.tables.size(); ++t) {
    int table = static_cast<int>(t);
    if (!s.isFree(table)) {
      bool pinned = s.pinOf[t] >= 0;
      plan.why[t] = pinned ? "pinned" : "the only tier";
      continue;
    }
    std::string full;
    for (int tier : llvm::reverse(s.homes[t])) {
      if (tier == chosen[t])
        continue;
      bool faster = p.tiers[tier].kind < p.tiers[chosen[t]].kind;
      if (!alternatives) {
        if (faster && full.empty())
          full = p.tiers[tier].name;
        continue;
      }
      Homes h = chosen;
      h[t] = tier;
      std::optional<Search::Candidate> c =
          s.evaluate(h, plan.decision.lookahead);
      if (!c) {
        if (faster && full.empty())
          full = p.tiers[tier].name;
        continue;
      }
      std::optional<RunnerUp> &best = plan.tableRunnerUp[t];
      if (!best || c->cost.step < best->stepSeconds)
        best = RunnerUp{describe(p, c->decision, table), c->cost.step};
    }
    plan.why[t] = full.empty() ? "cost" : "capacity of " + full;
  }
  plan.binding = plan.cost.bound;
  double total = 0, largest = 0;
  for (double load : s.workerLoad) {
    total += load;
    largest = std::max(largest, load);
  }
  plan.balance = total > 0 ? largest * double(p.workers) / total : 1;
}

/// Names the pin without which there would be a plan.
void blamePin(const Problem &problem, PlanError &error) {
  if (problem.pins.size() > 16)
    return;
  auto feasibleWithout = [&](int pin, bool lookahead) {
    Problem relaxed = problem;
    if (pin >= 0)
      relaxed.pins.erase(relaxed.pins.begin() + pin);
    if (lookahead)
      relaxed.lookahead.reset();
    Search s(relaxed);
    return !s.checkPins() && !s.checkFeasible(relaxed.lookahead.value_or(0));
  };
  if (problem.lookahead && *problem.lookahead > 0 &&
      feasibleWithout(-1, true)) {
    error.lookaheadPin = true;
    error.message +=
        ("; without the pin lookahead: " + Twine(*problem.lookahead) +
         " a plan fits")
            .str();
    return;
  }
  for (size_t i = 0; i < problem.pins.size(); ++i)
    if (feasibleWithout(static_cast<int>(i), false)) {
      error.pin = static_cast<int>(i);
      error.message +=
          "; without the pin " + problem.pins[i].text + " a plan fits";
      return;
    }
}

/// Rows that a slower tier has no room for weigh on the one that overflows; the
/// cheaper cure is a larger slow tier.
void blameSlowerTier(const Problem &problem, PlanError &error) {
  if (error.tier < 0)
    return;
  auto slower = [&](const Tier &tier) {
    return tier.kind > problem.tiers[error.tier].kind && !tier.implied;
  };
  Problem roomy = problem;
  for (Tier &tier : roomy.tiers)
    if (slower(tier))
      tier.capacity = int64_t(1) << 60;
  Search s(roomy);
  int64_t lookahead = problem.lookahead.value_or(0);
  Footprint fp =
      computeFootprint(roomy, s.decision(s.leastHomes(lookahead), lookahead));
  int64_t least = fp.charged(roomy, error.tier).total();
  if (least >= error.smallest)
    return;
  for (size_t t = 0; t < problem.tiers.size(); ++t) {
    const Tier &tier = problem.tiers[t];
    int64_t needed = fp.charged(roomy, static_cast<int>(t)).total();
    if (slower(tier) && needed > tier.capacity)
      error.message += ("; " + Twine(least) + " bytes (" + formatBytes(least) +
                        ") are enough where tier '" + tier.name + "' has " +
                        Twine(needed) + " bytes (" + formatBytes(needed) + ")")
                           .str();
  }
}

} // namespace

PlanResult planner::plan(const Problem &problem) {
  Search s(problem);
  if (std::optional<PlanError> error = s.checkPins())
    return *error;
  if (std::optional<PlanError> error =
          s.checkFeasible(problem.lookahead.value_or(0))) {
    blamePin(problem, *error);
    blameSlowerTier(problem, *error);
    return *error;
  }
  std::vector<int64_t> depths;
  if (problem.lookahead)
    depths = {*problem.lookahead};
  else if (problem.tables.size() > 256)
    depths = {0, 1, 2, 4, 8};
  else
    for (int64_t d = 0; d <= maxLookahead; ++d)
      depths.push_back(d);

  std::optional<Search::Candidate> best;
  std::optional<RunnerUp> runnerUp;
  // A deeper pipeline must pay for its memory: 1 % per step of the list.
  auto beats = [](const StepCost &a, const StepCost &b) {
    return a.step < b.step * 0.99;
  };
  for (int64_t depth : depths) {
    std::optional<Search::Candidate> here;
    for (const Homes &h : s.candidateHomes(depth)) {
      std::optional<Search::Candidate> c = s.evaluate(h, depth);
      if (c && (!here || quicker(c->cost, here->cost)))
        here = std::move(c);
    }
    if (!here)
      continue;
    if (!best || beats(here->cost, best->cost)) {
      if (best)
        runnerUp =
            RunnerUp{"lookahead " + std::to_string(best->decision.lookahead),
                     best->cost.step};
      best = std::move(here);
    } else if (!runnerUp || here->cost.step < runnerUp->stepSeconds) {
      runnerUp =
          RunnerUp{"lookahead " + std::to_string(depth), here->cost.step};
    }
  }
  if (!best) {
    // The least assignment fits, so this is unreachable; say it all the same.
    PlanError e;
    e.message = "no plan was found";
    return e;
  }
  // Single moves repair what greedy missed.
  bool improved = problem.tables.size() <= 64;
  for (int round = 0; improved && round < 3; ++round) {
    improved = false;
    for (size_t t = 0; t < problem.tables.size(); ++t) {
      if (!s.isFree(static_cast<int>(t)))
        continue;
      for (int tier : s.homes[t]) {
        Homes h = homesOf(best->decision);
        if (h[t] == tier)
          continue;
        h[t] = tier;
        std::optional<Search::Candidate> c =
            s.evaluate(h, best->decision.lookahead);
        if (c && quicker(c->cost, best->cost)) {
          best = std::move(c);
          improved = true;
        }
      }
    }
  }
  Plan result;
  result.decision = std::move(best->decision);
  result.footprint = std::move(best->footprint);
  result.cost = std::move(best->cost);
  result.runnerUp = std::move(runnerUp);
  finish(s, result);
  return result;
}

PlanResult planner::planFrom(const Problem &problem, const Decision &decision) {
  Problem unpinned = problem; // the file overrides the pins
  unpinned.pins.clear();
  unpinned.lookahead.reset();
  Search s(unpinned);
  if (std::optional<PlanError> error = s.checkPins())
    return *error;
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    const TableDecision &d = decision.tables[t];
    const Tier &home = problem.tiers[d.home];
    PlanError e;
    e.table = static_cast<int>(t);
    std::string where = "table '" + problem.tables[t].name + "': ";
    if (!llvm::is_contained(s.homes[t], d.home)) {
      e.message = where + "tier '" + home.name + "' cannot be its home";
      return e;
    }
    if (d.caches.empty() && !machine::isMemory(home.kind)) {
      e.message = where + "home '" + home.name +
                  "' is a block device and needs a cache";
      return e;
    }
    for (const CacheDecision &c : d.caches)
      if (!machine::isMemory(problem.tiers[c.tier].kind) ||
          problem.tiers[c.tier].kind >= home.kind) {
        e.message = where + "cache '" + problem.tiers[c.tier].name +
                    "' is not memory that is faster than '" + home.name + "'";
        return e;
      }
  }
  Plan result;
  result.decision = decision;
  result.footprint = computeFootprint(unpinned, decision);
  if (int tier = s.overflow(result.footprint); tier >= 0)
    return overflowError(unpinned, result.footprint, tier);
  result.cost = stepCost(unpinned, decision, result.footprint, s.loads);
  std::fill(s.workerLoad.begin(), s.workerLoad.end(), 0.0);
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    s.workers[t] = decision.tables[t].worker;
    s.workerLoad[s.workers[t]] +=
        tableSeconds(problem, static_cast<int>(t), s.loads[t]);
  }
  finish(s, result);
  for (std::string &why : result.why)
    why = "given";
  return result;
}
