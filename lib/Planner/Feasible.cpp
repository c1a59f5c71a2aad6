//===- Feasible.cpp - Pins, and the least that a plan needs ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// leastHomes() does not look at the capacity of the ring tier, and plan() fails
// exactly where its result does not fit: so the number in the error is the
// smallest capacity that passes.
//
//===----------------------------------------------------------------------===//
#include "Planner/Explain.h"
#include "Planner/Search.h"

#include "llvm/ADT/Twine.h"

#include <algorithm>

using namespace terrace;
using namespace terrace::planner;
using llvm::Twine;
using machine::TierKind;

Search::Search(const Problem &problem) : p(problem) {
  loads = tableLoads(p);
  pinOf.assign(p.tables.size(), -1);
  for (size_t i = 0; i < p.pins.size(); ++i)
    for (int t : p.pins[i].tables)
      pinOf[t] = static_cast<int>(i);

  // Slowest first; among equals the one declared first.
  std::vector<int> tiers;
  for (size_t i = 0; i < p.tiers.size(); ++i)
    if (p.tiers[i].kind != TierKind::HBM || p.gpu)
      tiers.push_back(static_cast<int>(i));
  std::stable_sort(tiers.begin(), tiers.end(), [&](int a, int b) {
    return p.tiers[a].kind > p.tiers[b].kind;
  });
  homes.resize(p.tables.size());
  retainedPins.resize(p.tables.size());
  for (size_t t = 0; t < p.tables.size(); ++t) {
    const Pin *pin = pinOf[t] >= 0 ? &p.pins[pinOf[t]] : nullptr;
    if (pin && pin->home >= 0) {
      homes[t] = {pin->home};
      continue;
    }
    for (int tier : tiers) {
      // A pinned cache asks for a home behind it.
      bool behind = true;
      if (pin)
        for (const CachePin &c : pin->caches)
          behind &= p.tiers[tier].kind > p.tiers[c.tier].kind;
      if (!behind)
        continue;
      // Rows on a block device need a cache, and a cache needs a tier.
      if (!machine::isMemory(p.tiers[tier].kind) && cacheTier() < 0 &&
          !(pin && !pin->caches.empty()))
        continue;
      homes[t].push_back(tier);
    }
  }
  for (const Pin &pin : p.pins) {
    for (size_t c = 0; c < pin.caches.size(); ++c) {
      std::vector<int64_t> rowBytes, rows;
      std::vector<double> weights;
      for (int t : pin.tables) {
        rowBytes.push_back(p.tables[t].slotBytes());
        rows.push_back(p.tables[t].rows);
        weights.push_back(
            std::max(1.0, loads[t].unique * double(rowBytes.back())));
      }
      std::vector<int64_t> split =
          splitRetained(pin.caches[c].bytes, rowBytes, rows, weights);
      for (size_t i = 0; i < pin.tables.size(); ++i)
        retainedPins[pin.tables[i]].push_back(split[i]);
    }
  }
  workers = assignWorkers(p, loads, homes, workerLoad);
}

int Search::cacheTier() const {
  int dram = -1;
  for (size_t i = 0; i < p.tiers.size(); ++i) {
    if (p.gpu && p.tiers[i].kind == TierKind::HBM)
      return static_cast<int>(i);
    if (dram < 0 && p.tiers[i].kind == TierKind::DRAM)
      dram = static_cast<int>(i);
  }
  return dram;
}

std::optional<PlanError> Search::checkPins() const {
  if (p.ringTier() < 0) {
    PlanError e;
    e.message = "no tier of kind dram: batches, staging and outputs need one";
    return e;
  }
  if (p.lookahead && (*p.lookahead < 0 || *p.lookahead > maxLookahead)) {
    PlanError e;
    e.lookaheadPin = true;
    e.message = ("lookahead " + Twine(*p.lookahead) +
                 ": it must lie between 0 and " + Twine(maxLookahead))
                    .str();
    return e;
  }
  for (size_t i = 0; i < p.pins.size(); ++i) {
    const Pin &pin = p.pins[i];
    auto fail = [&](const Twine &message) {
      PlanError e;
      e.pin = static_cast<int>(i);
      e.message = ("pin " + pin.text + ": " + message).str();
      return e;
    };
    if (pin.home >= 0) {
      const Tier &home = p.tiers[pin.home];
      if (home.kind == TierKind::HBM && !p.gpu)
        return fail("home '" + home.name +
                    "' is hbm, and the target has no GPU");
      for (const CachePin &c : pin.caches)
        if (p.tiers[c.tier].kind >= home.kind)
          return fail("cache '" + p.tiers[c.tier].name +
                      "' is not faster than the home '" + home.name + "'");
    }
    for (size_t c = 0; c < pin.caches.size(); ++c) {
      const Tier &tier = p.tiers[pin.caches[c].tier];
      if (!machine::isMemory(tier.kind))
        return fail("cache '" + tier.name +
                    "' is a block device; a cache lies in memory");
      if (tier.kind == TierKind::HBM && !p.gpu)
        return fail("cache '" + tier.name +
                    "' is hbm, and the target has no GPU");
      if (c > 0 && p.tiers[pin.caches[c - 1].tier].kind >= tier.kind)
        return fail("caches must go from fast to slow");
    }
    for (int t : pin.tables)
      if (homes[t].empty())
        return fail("no tier is left that table '" + p.tables[t].name +
                    "' could have as its home");
  }
  for (size_t t = 0; t < p.tables.size(); ++t)
    if (homes[t].empty()) {
      PlanError e;
      e.table = static_cast<int>(t);
      e.message = "no tier can be the home of table '" + p.tables[t].name + "'";
      return e;
    }
  return std::nullopt;
}

Decision Search::decision(const Homes &h, int64_t lookahead) const {
  Decision d;
  d.lookahead = lookahead;
  d.tables.resize(p.tables.size());
  for (size_t t = 0; t < p.tables.size(); ++t) {
    TableDecision &td = d.tables[t];
    td.worker = workers[t];
    td.home = h[t];
    const Pin *pin = pinOf[t] >= 0 ? &p.pins[pinOf[t]] : nullptr;
    if (pin && !pin->caches.empty()) {
      for (size_t c = 0; c < pin->caches.size(); ++c)
        td.caches.push_back({pin->caches[c].tier, retainedPins[t][c]});
    } else if (!machine::isMemory(p.tiers[h[t]].kind)) {
      td.caches.push_back({cacheTier(), 0});
    }
  }
  return d;
}

int Search::overflow(const Footprint &fp) const {
  int worst = -1;
  for (size_t t = 0; t < p.tiers.size(); ++t)
    if (!p.tiers[t].implied &&
        fp.charged(p, static_cast<int>(t)).total() > p.tiers[t].capacity &&
        (worst < 0 || p.tiers[t].kind > p.tiers[worst].kind))
      worst = static_cast<int>(t);
  return worst;
}

Homes Search::leastHomes(int64_t lookahead) const {
  int ring = p.ringTier();
  Homes h;
  std::vector<int> choice; // free tables that may live in the ring tier
  for (size_t t = 0; t < p.tables.size(); ++t) {
    h.push_back(homes[t].front());
    if (isFree(static_cast<int>(t)) && llvm::is_contained(homes[t], ring))
      choice.push_back(static_cast<int>(t));
  }
  auto need = [&](const Homes &candidate) {
    return computeFootprint(p, decision(candidate, lookahead))
        .charged(p, ring)
        .total();
  };
  int64_t best = need(h);
  auto consider = [&](Homes candidate) {
    int64_t bytes = need(candidate);
    if (bytes >= best)
      return false;
    best = bytes;
    h = std::move(candidate);
    return true;
  };
  if (choice.size() <= 8) {
    // `consider` changes `h`. NOLINTNEXTLINE(*-unnecessary-copy-initialization)
    const Homes start = h;
    for (unsigned mask = 1; mask < (1u << choice.size()); ++mask) {
      Homes candidate = start;
      for (size_t i = 0; i < choice.size(); ++i)
        if (mask >> i & 1)
          candidate[choice[i]] = ring;
      consider(std::move(candidate));
    }
  } else {
    // A table that a batch may touch whole is cheaper without a cache: all such
    // tables at once, then one by one.
    std::vector<int64_t> bound(p.tables.size(), 0);
    for (const Feature &f : p.features)
      bound[f.table] += std::min(p.batch * f.maxIds, p.maxIds);
    Homes small = h;
    for (int t : choice) {
      const Table &table = p.tables[t];
      int64_t unique = std::min(table.rows, bound[t]);
      int64_t batches = std::max<int64_t>(1, lookahead);
      int64_t cached =
          std::min(table.rows, batches * unique) * table.slotBytes() +
          4 * table.rows + unique * (table.slotBytes() + table.storeBytes());
      if (table.rows * table.slotBytes() <= cached)
        small[t] = ring;
    }
    consider(std::move(small));
    if (choice.size() <= 64)
      for (bool again = true; again;) {
        again = false;
        for (int t : choice) {
          Homes candidate = h;
          candidate[t] = h[t] == ring ? homes[t].front() : ring;
          again |= consider(std::move(candidate));
        }
      }
  }
  // Slower tiers that overflow hand tables on to the next faster one: the
  // smallest table that is enough, else the largest there is.
  for (size_t moves = 0; moves < p.tables.size() * p.tiers.size(); ++moves) {
    Footprint fp = computeFootprint(p, decision(h, lookahead));
    int tier = -1;
    for (size_t t = 0; t < p.tiers.size(); ++t)
      if (!p.tiers[t].implied && static_cast<int>(t) != ring &&
          fp.charged(p, static_cast<int>(t)).total() > p.tiers[t].capacity &&
          (tier < 0 || p.tiers[t].kind > p.tiers[tier].kind))
        tier = static_cast<int>(t);
    if (tier < 0)
      break;
    int64_t excess = fp.charged(p, tier).total() - p.tiers[tier].capacity;
    int pick = -1;
    auto bytesOf = [&](int t) {
      return int64_t(p.storeSpace * double(p.tables[t].rows) *
                     double(p.tables[t].storeBytes()));
    };
    for (size_t t = 0; t < p.tables.size(); ++t) {
      if (h[t] != tier || homes[t].back() == tier)
        continue;
      int64_t mine = bytesOf(static_cast<int>(t));
      int64_t theirs = pick >= 0 ? bytesOf(pick) : 0;
      bool enough = mine >= excess, theirEnough = theirs >= excess;
      if (pick < 0 || (enough && (!theirEnough || mine < theirs)) ||
          (!enough && !theirEnough && mine > theirs))
        pick = static_cast<int>(t);
    }
    if (pick < 0)
      break;
    h[pick] = *(llvm::find(homes[pick], tier) + 1);
  }
  return h;
}

namespace {

std::string partsText(const TierUse &use) {
  std::string text;
  auto part = [&](const char *name, int64_t bytes) {
    if (bytes == 0)
      return;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " +
            formatBytes(bytes);
  };
  part("rings", use.rings);
  part("slots", use.slots);
  part("index", use.index);
  part("rows", use.rows);
  return text;
}

} // namespace

PlanError planner::overflowError(const Problem &p, const Footprint &fp,
                                 int tier) {
  TierUse use = fp.charged(p, tier);
  PlanError e;
  e.tier = tier;
  e.smallest = use.total();
  e.message =
      ("tier '" + p.tiers[tier].name + "' has " +
       Twine(p.tiers[tier].capacity) +
       " bytes; the smallest capacity that fits is " + Twine(use.total()) +
       " bytes (" + formatBytes(use.total()) + ": " + partsText(use) +
       (p.tiers[tier].perWorker ? ", per worker)" : ")"))
          .str();
  return e;
}

std::optional<PlanError> Search::checkFeasible(int64_t lookahead) const {
  Footprint fp =
      computeFootprint(p, decision(leastHomes(lookahead), lookahead));
  int tier = overflow(fp);
  if (tier < 0)
    return std::nullopt;
  return overflowError(p, fp, tier);
}
