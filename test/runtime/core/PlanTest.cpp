//===- PlanTest.cpp - Parsed plans, ring layouts, statuses ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays of a ring slot never overlap and stay inside it, whatever the shape;
// a plan that was cut or mangled anywhere is a status and not a crash.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Plan.h"
#include "runtime/core/Hash.h"
#include "runtime/core/RingLayout.h"
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace trc;

namespace {

/// Spans of one slot.
struct Spans {
  int64_t bytes;
  std::vector<std::pair<int64_t, int64_t>> all;
  void add(int64_t at, int64_t size) {
    if (at >= 0 && size > 0)
      all.emplace_back(at, at + size);
  }
  void check() {
    std::sort(all.begin(), all.end());
    int64_t end = 0;
    for (auto [low, high] : all) {
      EXPECT_EQ(0, low % 64);
      EXPECT_GE(low, end);
      end = high;
    }
    EXPECT_LE(end, bytes);
  }
};

ModelShape randomShape(SplitMix &r) {
  ModelShape m;
  m.batch = 1 + static_cast<int64_t>(r.below(200));
  m.head = r.below(2);
  m.dedupGroups = static_cast<int>(r.below(3));
  int groups = 1 + static_cast<int>(r.below(3));
  int64_t ids = 0;
  for (uint64_t f = 0, n = 1 + r.below(6); f < n; ++f) {
    FeatureShape s;
    s.maxIds = 1 + static_cast<int64_t>(r.below(9));
    s.group = static_cast<int>(r.below(static_cast<uint64_t>(groups)));
    s.pooling = static_cast<Pooling>(r.below(6));
    s.weighted = r.below(2);
    s.keepLast = r.below(2);
    s.dedup =
        static_cast<int>(r.below(static_cast<uint64_t>(m.dedupGroups) + 1)) - 1;
    s.dim = 1 + s.group * 7;
    ids += m.batch * s.maxIds;
    m.features.push_back(s);
  }
  m.maxIds = r.below(2) ? ids : ids / 2 + 1;
  for (int g = 0; g < groups; ++g) {
    GroupShape s;
    s.dim = 1 + g * 7;
    s.maxOccurrences = m.maxIds;
    s.maxUnique = s.maxMiss =
        1 + static_cast<int64_t>(r.below(static_cast<uint64_t>(m.maxIds)));
    s.slotBytes = s.dim * 4 + 4;
    s.storeBytes = (s.slotBytes + 8 + 15) / 16 * 16;
    s.cached = true;
    m.groups.push_back(s);
  }
  return m;
}

} // namespace

TEST(RingLayout, ArraysDoNotOverlap) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    SplitMix r(seed);
    ModelShape m = randomShape(r);
    int64_t n = static_cast<int64_t>(m.features.size());
    IngestLayout in(m);
    Spans s{in.bytes, {}};
    s.add(in.header, sizeof(IngestHeader));
    s.add(in.base, (n + 1) * 8);
    for (int64_t f = 0; f < n; ++f)
      s.add(in.offsets + f * in.offsetsPitch, (m.batch + 1) * 4);
    for (int64_t at : in.skippedAt)
      s.add(at, m.batch * 4);
    s.add(in.ids, m.maxIds * 8);
    s.add(in.weights, m.anyWeighted() ? m.maxIds * 4 : 0);
    s.add(in.labels, m.head ? m.batch * 4 : 0);
    s.check();

    DedupLayout d(m);
    s = {d.bytes, {}};
    for (const DedupLayout::Group &g : d.groups) {
      s.add(g.count, 8);
      s.add(g.inverse, m.batch * 4);
      s.add(g.first, m.batch * 4);
      s.add(g.hashes, m.batch * 8);
      s.add(g.table, g.tableEntries * 4);
    }
    for (size_t f = 0; f < m.features.size(); ++f) {
      s.add(d.offsetsAt[f], (m.batch + 1) * 4);
      s.add(d.weightsAt[f], m.featureIds(f) * 4);
    }
    s.check();

    GradsLayout grads(m);
    s = {grads.bytes, {}};
    s.add(grads.predictions, m.head ? m.batch * 4 : 0);
    s.add(grads.logits, m.head ? m.batch * 4 : 0);
    s.add(grads.dlogits, m.head ? m.batch * 4 : 0);
    for (size_t g = 0; g < m.groups.size(); ++g)
      s.add(grads.groupAt[g], grads.groupRows[g] * m.groups[g].dim * 4);
    for (size_t f = 0; f < m.features.size(); ++f)
      s.add(grads.bagAt[f], m.batch * m.features[f].dim * 4);
    s.check();

    for (int g = 0; g < static_cast<int>(m.groups.size()); ++g) {
      const GroupShape &group = m.groups[g];
      UniqueLayout u(m, g);
      s = {u.bytes, {}};
      s.add(u.header, sizeof(UniqueHeader));
      s.add(u.rows, group.maxUnique * 4);
      s.add(u.xBase, (n + 1) * 8);
      s.add(u.x, group.maxOccurrences * 4);
      s.add(u.seg, (group.maxUnique + 2) * 4);
      s.add(u.occ, group.maxOccurrences * 4);
      s.add(u.coef, group.maxOccurrences * 4);
      s.check();
      EXPECT_GE(u.table, u.seg);
      EXPECT_GT(u.seg, u.rows); // what one row too many overwrites
      EXPECT_LE(u.table + u.tableEntries * 4, u.bytes);
      EXPECT_GE(u.tableEntries, 2 * group.maxOccurrences);
      ProbeLayout p(m, g);
      s = {p.bytes, {}};
      s.add(p.slots, group.maxUnique * 4);
      s.add(p.missRow, group.maxMiss * 4);
      s.add(p.missSlot, group.maxMiss * 4);
      s.add(p.missPlace, group.maxMiss * 8);
      s.add(p.victimRow, group.maxMiss * 4);
      s.add(p.victimSlot, group.maxMiss * 4);
      s.check();
    }
    for (int role = 0; role <= static_cast<int>(RingRole::grads); ++role) {
      RingRole parsed = RingRole::grads;
      ASSERT_TRUE(
          parseRingRole(ringRoleName(static_cast<RingRole>(role)), parsed));
      EXPECT_EQ(role, static_cast<int>(parsed));
      EXPECT_EQ(0, ringBytes(m, parsed, 0) % 64);
    }
  }
}

TEST(Plan, MangledTextIsAStatus) {
  toy::Model model;
  model.tables = {{"a", 20, 4, toy::adam()}, {"b", 9, 2, toy::sgd(0.1, 0.5)}};
  model.features = {{"x", 0, "max", 2, false, "error", true}, {"y", 1}};
  model.cached = {true, false};
  std::string text = toy::makePlan(model).dump();
  Result<Plan> whole = parsePlan(text.data(), text.size());
  ASSERT_TRUE(whole.ok()) << whole.takeStatus().message();
  EXPECT_EQ(2u, whole->groups.size());
  for (size_t n = 0; n < text.size(); n += 7)
    EXPECT_EQ(TRC_MISMATCH, parsePlan(text.data(), n).takeStatus().code());
  // Any number replaced by a hostile one parses or is refused.
  SplitMix r(1);
  const char *hostile[] = {"-1",   "99999999", "1e300",
                           "null", "\"x\"",    "9223372036854775807"};
  for (int i = 0; i < 3000; ++i) {
    size_t at = r.below(text.size());
    while (at < text.size() && !std::isdigit(text[at]))
      ++at;
    size_t end = at;
    while (end < text.size() && std::isdigit(text[end]))
      ++end;
    if (at == text.size())
      continue;
    std::string bad =
        text.substr(0, at) + hostile[r.below(6)] + text.substr(end);
    Result<Plan> parsed = parsePlan(bad.data(), bad.size());
    if (!parsed.ok()) {
      Status s = parsed.takeStatus();
      EXPECT_EQ(TRC_MISMATCH, s.code());
      EXPECT_FALSE(s.message().empty());
    }
  }
}

TEST(Status, FillsOnlyWhatTheCallerHas) {
  Status s =
      Status::badInput(std::string(5000, 'm'), std::string(500, 'f'), 1, 2, 3);
  trc_error full;
  std::memset(&full, 0x5a, sizeof(full));
  full.struct_size = sizeof(full);
  EXPECT_EQ(TRC_BAD_INPUT, s.fill(&full));
  EXPECT_EQ(sizeof(full.message) - 1, std::strlen(full.message));
  EXPECT_EQ(sizeof(full.feature) - 1, std::strlen(full.feature));
  EXPECT_EQ(3, full.value);
  // An older caller's struct ends before the message.
  std::memset(&full, 0x5a, sizeof(full));
  full.struct_size = offsetof(trc_error, message);
  EXPECT_EQ(TRC_BAD_INPUT, s.fill(&full));
  EXPECT_EQ(1, full.sample);
  EXPECT_EQ(0x5a, full.message[0]);
  EXPECT_EQ(TRC_BAD_INPUT, s.fill(nullptr));
  EXPECT_STREQ("bad input", trc_status_name(TRC_BAD_INPUT));
  EXPECT_STREQ("unknown status", trc_status_name(static_cast<trc_status>(99)));
}
