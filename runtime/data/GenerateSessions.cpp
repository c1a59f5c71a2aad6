//===- GenerateSessions.cpp - W3 (session_recd) ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// User features that stay the same over the samples of a session, histories
// that shift by a few entries, items that are new for every sample. In time
// order sessions stand together (w3), or many run at once (w3-shuffled), which
// destroys what bag-level deduplication lives on.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/GenerateParts.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace trc::data {

namespace {

// KuaiRand-Pure: the user id, then 30 side features; table 31 is the pair of
// columns 16 and 21 as one key.
constexpr int64_t userRows[32] = {
    27285, 9,  1,  2, 2,   2562, 8, 2210, 9, 1391, 7, 2813, 8, 2, 7, 50,
    1471,  16, 34, 3, 118, 454,  7, 5,    5, 3,    3, 3,    3, 3, 3, 20607};
constexpr int64_t flagTuples = 56; // of the last six side features
constexpr int histories = 4, items = 8;

struct Session {
  int64_t id = 0, left = 0;
  int64_t user[32];
  bool varies[32];
  std::vector<int64_t> history[histories];
};

class Source {
public:
  Source(Generator &g)
      : g(g), seed(g.options.seed), random(mix64(seed ^ 0x7733ull)),
        historyRows(g.scaled(200000, 1000)), itemRows(g.scaled(500000, 1000)),
        userRank(userRows[0], 0.6), itemRank(itemRows, 0.9),
        historyRank(historyRows, 0.8), itemId(itemRows, seed + 1),
        historyId(historyRows, seed + 2) {
    // 56 different tuples of six values of 0..2 (729 there are).
    std::unordered_set<int64_t> used;
    while (flags.size() < flagTuples) {
      int64_t code = static_cast<int64_t>(random.below(729));
      if (used.insert(code).second)
        flags.push_back(code);
    }
  }

  Session start(int64_t id);
  void step(Session &s);
  void write(const Session &s);

  Generator &g;
  const uint64_t seed;
  SplitMix random;
  const int64_t historyRows, itemRows;
  ZipfSampler userRank, itemRank, historyRank;
  Scatter itemId, historyId;
  std::vector<int64_t> flags;

private:
  int64_t valueOf(int64_t user, int column) const {
    SplitMix r(mix64(seed + 10 + static_cast<uint64_t>(column)) ^
               static_cast<uint64_t>(user));
    return static_cast<int64_t>(
        r.below(static_cast<uint64_t>(userRows[column])));
  }
};

Session Source::start(int64_t id) {
  Session s;
  s.id = id;
  s.left = std::min<int64_t>(200, geometric(random, 16));
  int64_t user = userRank.draw(random);
  s.user[0] = user;
  for (int c = 1; c < 25; ++c)
    s.user[c] = valueOf(user, c);
  int64_t code = flags[mix64(static_cast<uint64_t>(user) + seed) % flagTuples];
  for (int c = 25; c < 31; ++c, code /= 3)
    s.user[c] = code % 3;
  // The pair is the key; its two columns follow from it.
  int64_t pair = valueOf(user, 31);
  s.user[31] = pair;
  s.user[16] = static_cast<int64_t>(mix64(static_cast<uint64_t>(pair)) % 1471);
  s.user[21] =
      static_cast<int64_t>(mix64(static_cast<uint64_t>(pair) + 7) % 454);
  for (int c = 0; c < 32; ++c)
    s.varies[c] =
        c > 0 && c < 25 && c != 16 && c != 21 && random.unit() >= 0.97;
  for (auto &h : s.history)
    for (uint64_t n = 20 + random.below(181); n > 0; --n)
      h.push_back(historyId(historyRank.draw(random)));
  return s;
}

void Source::step(Session &s) {
  --s.left;
  for (int c = 0; c < 32; ++c)
    if (s.varies[c])
      s.user[c] = static_cast<int64_t>(
          random.below(static_cast<uint64_t>(userRows[c])));
  for (auto &h : s.history) {
    size_t shift = random.below(3);
    h.erase(h.begin(), h.begin() + static_cast<int64_t>(shift));
    for (size_t i = 0; i < shift; ++i)
      h.push_back(historyId(historyRank.draw(random)));
  }
}

void Source::write(const Session &s) {
  g.out.field(s.id);
  for (int64_t v : s.user)
    g.out.field(v);
  for (const auto &h : s.history)
    g.out.list(h, ',');
  double logit =
      -1 + 0.8 * effectOf(seed + 3, static_cast<uint64_t>(s.user[0]));
  for (int i = 0; i < items; ++i) {
    int64_t id = i < 2 ? itemId(itemRank.draw(random))
                       : static_cast<int64_t>(random.below(uint64_t{10} << i));
    g.out.field(id);
    logit += 0.5 * effectOf(seed + 4 + static_cast<uint64_t>(i),
                            static_cast<uint64_t>(id));
  }
  bool label = bernoulli(random, logit);
  g.out.field(int64_t(label));
  g.endRow();
}

std::string specOf(const Source &source, const std::string &dataName) {
  std::string spec =
      "terrace: 1\nmodel: session_recd\nbatch: {size: 2048}\ndefaults:\n"
      "  table: {dim: 64, optimizer: {kind: rowwise_adagrad, lr: 0.02, eps: "
      "1e-8}}\nfeatures:\n";
  for (int c = 0; c < 32; ++c)
    spec += "- {name: u" + std::to_string(c) +
            ", table: {rows: " + std::to_string(userRows[c]) +
            "}, dedup: " + (c >= 25 && c < 31 ? "flags" : "user") + "}\n";
  for (int h = 0; h < histories; ++h)
    spec += "- {name: h" + std::to_string(h) +
            ", table: {rows: " + std::to_string(source.historyRows) +
            "}, pooling: mean, max_ids: 200, mean_ids: 110, dedup: history" +
            "}\n";
  for (int i = 0; i < items; ++i)
    spec += "- {name: i" + std::to_string(i) + ", table: {rows: " +
            std::to_string(i < 2 ? source.itemRows : int64_t(10) << i) + "}}\n";
  return spec + "head: {kind: fm, label: label}\ndata: {path: " + dataName +
         ", session: session, eval: {last: 10%}}\nmemory:\n  tiers:\n"
         "  - {name: dram, kind: dram, capacity: 4GiB}\n"
         "  - {name: disk, kind: nvme, capacity: 8GiB, path: w3.store}\n";
}

} // namespace

void generateSessions(Generator &g, bool shuffled) {
  Source source(g);
  const int64_t sessions = g.scaled(60000, 300);
  g.out.field(std::string("session"));
  for (int c = 0; c < 32; ++c)
    g.out.field("u" + std::to_string(c));
  for (int h = 0; h < histories; ++h)
    g.out.field("h" + std::to_string(h));
  for (int i = 0; i < items; ++i)
    g.out.field("i" + std::to_string(i));
  g.out.field(std::string("label"));
  g.out.endRow();

  // Sessions at once: with 14,000 of them a session has 1.15 samples in a
  // batch of 2048.
  const size_t atOnce =
      shuffled ? static_cast<size_t>(std::min<int64_t>(14000, sessions)) : 1;
  std::vector<Session> open;
  int64_t started = 0, columns = 0, varied = 0;
  int64_t historyIds = 0;
  int64_t inBatch = 0, fullSessions = 0, fullSamples = 0;
  std::unordered_set<int64_t> batchSessions;
  while (started < sessions || !open.empty()) {
    while (started < sessions && open.size() < atOnce)
      open.push_back(source.start(started++));
    size_t pick = source.random.below(open.size());
    Session &s = open[pick];
    source.write(s);
    for (const auto &h : s.history)
      historyIds += static_cast<int64_t>(h.size());
    batchSessions.insert(s.id);
    if (++inBatch == 2048) {
      fullSamples += inBatch;
      fullSessions += static_cast<int64_t>(batchSessions.size());
      batchSessions.clear();
      inBatch = 0;
    }
    source.step(s);
    if (s.left <= 0) {
      for (int c = 1; c < 25; ++c) {
        if (c == 16 || c == 21)
          continue; // they follow from the pair
        ++columns;
        varied += s.varies[c];
      }
      std::swap(s, open.back());
      open.pop_back();
    }
  }
  double rows = static_cast<double>(g.out.rows());
  g.note("sessions", 60000 * g.options.scale, static_cast<double>(sessions));
  g.note("samples per session", 16, rows / static_cast<double>(sessions));
  g.note("samples per session in a batch of 2048",
         shuffled && sessions >= 14000 ? 1.15
         : shuffled                    ? 0
                                       : 15,
         fullSessions ? static_cast<double>(fullSamples) /
                            static_cast<double>(fullSessions)
                      : 0);
  g.note("a user feature is constant in its session", 0.97,
         1 - static_cast<double>(varied) /
                 static_cast<double>(std::max<int64_t>(1, columns)));
  g.note("ids of a history", 110,
         static_cast<double>(historyIds) / (rows * histories));
  g.spec = specOf(source, g.dataName);
}

} // namespace trc::data
