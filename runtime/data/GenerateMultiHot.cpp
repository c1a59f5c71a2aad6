//===- GenerateMultiHot.cpp - W1 (mlperf_v2) and W5 (ssd_tier) ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// W1: 26 tables with fixed multi-hot sizes; the further ids of a bag are a
// fixed function of its first id, so equal ids give equal bags. W5: 8 tables
// larger than the memory budget under measured popularity curves.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/GenerateParts.h"

#include "runtime/core/Math.h"

#include <algorithm>
#include <memory>

namespace trc::data {

static constexpr int64_t w1Rows[26] = {
    40000000, 39060,    17295,    7424,     20265,  3,     7122, 1543, 63,
    40000000, 3067956,  405282,   10,       2209,   11938, 155,  4,    976,
    14,       40000000, 40000000, 40000000, 590152, 12973, 108,  36};
static constexpr int64_t w1Hot[26] = {3, 2,  1,   2,  6,  1, 1, 1, 1,
                                      7, 3,  8,   1,  6,  9, 5, 1, 1,
                                      1, 12, 100, 27, 10, 3, 1, 1};

void generateMultiHot(Generator &g, bool uniform) {
  const uint64_t seed = g.options.seed;
  SplitMix random(mix64(seed ^ 0x7731ull));
  const int64_t cap = g.scaled(400000, 100), batch = 2048;
  const int64_t batches = g.scaled(100, 2), samples = batch * batches;
  int64_t rows[26];
  std::vector<std::unique_ptr<ZipfSampler>> ranks(26);
  std::vector<Scatter> scatter;
  std::vector<IdCounter> firsts;
  int64_t totalRows = 0, skewed = -1;
  for (int t = 0; t < 26; ++t) {
    rows[t] = std::min(w1Rows[t], cap);
    totalRows += rows[t];
    // Zipf 1.05 on the large tables, uniform on the small ones.
    bool zipf = !uniform && w1Rows[t] > 10000;
    if (zipf) {
      ranks[static_cast<size_t>(t)] =
          std::make_unique<ZipfSampler>(rows[t], 1.05);
      skewed = skewed < 0 ? t : skewed;
    }
    scatter.emplace_back(rows[t], seed + static_cast<uint64_t>(t));
    firsts.emplace_back(rows[t]);
    g.out.field("c" + std::to_string(t));
  }
  g.out.field(std::string("label"));
  g.out.endRow();

  std::vector<int64_t> bag;
  int64_t ids = 0;
  for (int64_t s = 0; s < samples; ++s) {
    double logit = -1.1;
    for (int t = 0; t < 26; ++t) {
      size_t i = static_cast<size_t>(t);
      int64_t rank = ranks[i] ? ranks[i]->draw(random)
                              : static_cast<int64_t>(random.below(
                                    static_cast<uint64_t>(rows[t])));
      int64_t id = scatter[i](rank);
      bag.assign(1, id);
      SplitMix fixed(mix64(seed + 100 + static_cast<uint64_t>(t)) ^
                     static_cast<uint64_t>(id));
      for (int64_t k = 1; k < w1Hot[t]; ++k)
        bag.push_back(
            static_cast<int64_t>(fixed.below(static_cast<uint64_t>(rows[t]))));
      g.out.list(bag, ',');
      ids += w1Hot[t];
      firsts[i].add(id);
      firsts[i].endSample();
      if (t < 12)
        logit += 0.3 * effectOf(seed + 200 + static_cast<uint64_t>(t),
                                static_cast<uint64_t>(id));
    }
    bool label = bernoulli(random, logit);
    g.out.field(int64_t(label));
    g.endRow();
  }
  g.note("ids per sample", 214,
         static_cast<double>(ids) / static_cast<double>(samples));
  if (g.options.scale == 1)
    g.note("rows of all tables", 3321198, static_cast<double>(totalRows));
  if (!uniform) {
    size_t t = static_cast<size_t>(skewed);
    g.note("c" + std::to_string(t) + ": share of the top first id",
           ranks[t]->shareOfFirst(), firsts[t].topShare());
  }

  g.spec = "terrace: 1\nmodel: mlperf_v2\nbatch: {size: 2048}\ndefaults:\n"
           "  table: {dim: 128, optimizer: {kind: adagrad, lr: 0.005, eps: "
           "1e-8}}\nfeatures:\n";
  for (int t = 0; t < 26; ++t)
    g.spec += "- {name: c" + std::to_string(t) +
              ", table: {rows: " + std::to_string(rows[t]) +
              "}, max_ids: " + std::to_string(w1Hot[t]) + "}\n";
  int64_t bytes = totalRows * 128 * 4 * 2; // weights and Adagrad's squares
  // Staging and outputs of a batch do not shrink with the tables.
  int64_t dram = std::max<int64_t>(2048, bytes / 4 / (1 << 20) + 2048);
  g.spec += "head: {kind: logistic, label: label}\ndata: {path: " + g.dataName +
            ", eval: {last: 10%}}\nmemory:\n  tiers:\n"
            "  - {name: dram, kind: dram, capacity: " +
            std::to_string(dram) +
            "MiB}\n"
            "  - {name: disk, kind: nvme, capacity: " +
            std::to_string(bytes * 2 / (1 << 20) + 64) +
            "MiB, path: w1.store}\n";
}

namespace {
struct Curve {
  const char *name;
  double shares[4]; // of the hottest 0.01, 0.1, 1, 10 %
};
constexpr Curve curves[] = {{"kvcache", {0.412, 0.568, 0.724, 0.866}},
                            {"follower", {0.304, 0.540, 0.766, 0.890}},
                            {"leader", {0.214, 0.241, 0.327, 0.553}}};
} // namespace

bool TieredIds::known(const std::string &curve) {
  return curve == "shift" || curve == "uniform" ||
         std::any_of(std::begin(curves), std::end(curves),
                     [&](const Curve &c) { return curve == c.name; });
}

TieredIds::TieredIds(const std::string &curve, int64_t rows, int tables,
                     int64_t batch, uint64_t seed)
    : rows(rows), batch(batch), seed(seed), shift(curve == "shift") {
  for (const Curve &c : curves)
    if (curve == c.name || (shift && c.name == std::string("kvcache"))) {
      sampler.emplace_back(rows, c.shares);
      target = c.shares;
    }
  for (int t = 0; t < tables; ++t) {
    scatter.emplace_back(rows, seed + static_cast<uint64_t>(t));
    replaced.emplace_back(rows, seed + 50 + static_cast<uint64_t>(t));
  }
}

int64_t TieredIds::draw(SplitMix &random, int64_t sample, int table) {
  // Every 20 batches another tenth of the hot ids moves elsewhere.
  uint64_t tenths = shift ? static_cast<uint64_t>(sample / batch / 20) : 0;
  int64_t rank =
      sampler.empty()
          ? static_cast<int64_t>(random.below(static_cast<uint64_t>(rows)))
          : sampler.front().draw(random);
  elsewhere = tenths && mix64(static_cast<uint64_t>(rank) + seed) % 10 < tenths;
  size_t t = static_cast<size_t>(table);
  return elsewhere ? replaced[t](rank) : scatter[t](rank);
}

void generateTiered(Generator &g, const std::string &curve) {
  const uint64_t seed = g.options.seed;
  SplitMix random(mix64(seed ^ 0x7735ull));
  constexpr int tables = 8, bagSize = 10;
  const int64_t rows = g.scaled(8000000, 8000);
  // The batch shrinks slower than the tables, and not below a useful size.
  int64_t batch = 4096;
  double shrunk = g.options.scale;
  while (shrunk < 0.75 && batch > 256) {
    batch /= 2;
    shrunk *= 4;
  }
  const int64_t batches = g.options.scale >= 1 ? 200 : g.scaled(200, 24);
  bool shift = curve == "shift";
  TieredIds source(curve, rows, tables, batch, seed);
  std::vector<IdCounter> counters;
  for (int t = 0; t < tables; ++t) {
    counters.emplace_back(rows, batch);
    g.out.field("f" + std::to_string(t));
  }
  g.out.field(std::string("label"));
  g.out.endRow();

  std::vector<int64_t> bag;
  int64_t samples = batch * batches, lastMoved = 0;
  for (int64_t s = 0; s < samples; ++s) {
    double logit = -1;
    for (int t = 0; t < tables; ++t) {
      size_t i = static_cast<size_t>(t);
      bag.clear();
      for (int k = 0; k < bagSize; ++k) {
        int64_t id = source.draw(random, s, t);
        lastMoved += source.moved() && s >= samples - batch;
        bag.push_back(id);
        counters[i].add(id);
      }
      counters[i].endSample();
      g.out.list(bag, ',');
      logit += 0.4 * effectOf(seed + 300 + static_cast<uint64_t>(t),
                              static_cast<uint64_t>(bag[0]));
    }
    bool label = bernoulli(random, logit);
    g.out.field(int64_t(label));
    g.endRow();
  }
  double unique = 0;
  for (const IdCounter &c : counters)
    unique += c.distinctPerWindow();
  if (shift)
    g.note("share of the last batch's ids that moved",
           0.1 * static_cast<double>(std::min<int64_t>(10, (batches - 1) / 20)),
           static_cast<double>(lastMoved) /
               static_cast<double>(batch * tables * bagSize));
  if (!source.shares()) {
    double n = static_cast<double>(rows);
    double draws = static_cast<double>(batch * bagSize);
    g.note("unique rows per batch, independent draws",
           tables * n * (1 - math::exp(draws * math::log1p(-1 / n))), unique);
  }
  const double *shares = shift ? nullptr : source.shares();
  if (shares)
    for (int i = 0; i < 4; ++i) {
      const double fraction[] = {1e-4, 1e-3, 1e-2, 1e-1};
      const char *name[] = {"0.01 %", "0.1 %", "1 %", "10 %"};
      if (fraction[i] * static_cast<double>(rows) >= 8)
        g.note(std::string("f0: share of the hottest ") + name[i], shares[i],
               counters[0].shareOfHottestRows(fraction[i]));
    }
  if (g.options.scale == 1) {
    double known = curve == "kvcache"    ? 175e3
                   : curve == "follower" ? 188e3
                   : curve == "leader"   ? 259e3
                   : curve == "uniform"  ? 327e3
                                         : unique;
    g.note("unique rows per batch", known, unique);
  }

  int64_t dram = g.scaled(3072, 30); // MiB
  // 64 weights and a state are 260 bytes, stored at a pitch of 272.
  int64_t disk = rows * tables * 272 * 5 / 4 / (1 << 20) + 64;
  g.spec =
      "terrace: 1\nmodel: ssd_tier\nbatch: {size: " + std::to_string(batch) +
      "}\ndefaults:\n  table: {dim: 64, rows: " + std::to_string(rows) +
      ", optimizer: {kind: rowwise_adagrad, lr: 0.02, eps: 1e-8}}\n"
      "  feature: {max_ids: 10}\nfeatures:\n"
      "- {name: \"f{i}\", count: 8, table: {}}\n"
      "head: {kind: logistic, label: label}\ndata: {path: " +
      g.dataName +
      ", eval: {last: 10%}}\nmemory:\n  tiers:\n"
      "  - {name: dram, kind: dram, capacity: " +
      std::to_string(dram) +
      "MiB}\n  - {name: disk, kind: nvme, capacity: " + std::to_string(disk) +
      "MiB, path: w5.store}\n";
}

} // namespace trc::data
