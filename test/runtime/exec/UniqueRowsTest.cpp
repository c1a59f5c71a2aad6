//===- UniqueRowsTest.cpp - Distinct rows against a map -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers in order of first appearance, over several tables and calls, whether
// a table has as many places as rows or is hashed; nothing behind the places.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/UniqueRows.h"
#include "runtime/core/Hash.h"

#include <gtest/gtest.h>

#include <unordered_map>
#include <vector>

using namespace trc;

namespace {

struct Table {
  uint64_t rows;
  std::vector<int64_t> ids;
};

void check(const std::vector<Table> &tables, size_t callsOfATable) {
  size_t all = 0, placesNeeded = 0;
  for (const Table &t : tables) {
    all += t.ids.size();
    placesNeeded += RowNumbers::placesFor(t.ids.size(), t.rows);
  }
  EXPECT_LE(placesNeeded, 2 * all);
  constexpr uint32_t guard = 0x12345678;
  std::vector<uint32_t> places(placesNeeded + 1, guard), rows(all + 1),
      x(all + 1, guard), wantX, wantRows;
  uint32_t known = 0;
  uint32_t *out = x.data();
  size_t at = 0;
  uint64_t base = 0;
  for (const Table &t : tables) {
    RowNumbers numbers(&places[at], t.ids.size(), t.rows);
    std::unordered_map<int64_t, uint32_t> map;
    for (size_t call = 0; call < callsOfATable; ++call) {
      size_t begin = t.ids.size() * call / callsOfATable;
      size_t end = t.ids.size() * (call + 1) / callsOfATable;
      known = numbers.number(t.ids.data() + begin,
                             static_cast<int64_t>(end - begin), base,
                             rows.data(), known, out);
      out += end - begin;
    }
    for (int64_t id : t.ids) {
      auto [found, fresh] =
          map.try_emplace(id, static_cast<uint32_t>(wantRows.size()));
      if (fresh)
        wantRows.push_back(
            static_cast<uint32_t>(base + static_cast<uint64_t>(id)));
      wantX.push_back(found->second);
    }
    at += RowNumbers::placesFor(t.ids.size(), t.rows);
    base += t.rows;
  }
  EXPECT_EQ(known, wantRows.size());
  rows.resize(known);
  EXPECT_EQ(rows, wantRows);
  EXPECT_EQ(x.back(), guard);
  x.pop_back();
  EXPECT_EQ(x, wantX);
  EXPECT_EQ(places.back(), guard);
}

std::vector<int64_t> draw(SplitMix &random, size_t n, uint64_t rows) {
  std::vector<int64_t> ids;
  for (size_t j = 0; j < n; ++j) // some are hot
    ids.push_back(static_cast<int64_t>(
        random.below(random.below(3) ? rows : rows / 16 + 1)));
  return ids;
}

} // namespace

TEST(UniqueRows, NumbersByFirstAppearance) {
  SplitMix random(11);
  for (size_t n : {0, 1, 2, 11, 12, 13, 100, 5000})
    for (uint64_t rows : {1ull, 2ull, 7ull, 50ull, 10001ull, 4000000000ull}) {
      SCOPED_TRACE(std::to_string(n) + " ids of " + std::to_string(rows));
      for (size_t calls : {1, 3})
        check({{rows, draw(random, n, rows)}}, calls);
    }
}

TEST(UniqueRows, TablesKeepToThemselves) {
  SplitMix random(12);
  for (int i = 0; i < 50; ++i) {
    std::vector<Table> tables;
    for (size_t t = 0; t < 5; ++t) {
      uint64_t rows = 1 + random.below(random.below(2) ? 20 : 100000);
      tables.push_back({rows, draw(random, random.below(400), rows)});
    }
    check(tables, 1 + random.below(4));
  }
}

// Every id new: as many rows as half the places of a hashed table.
TEST(UniqueRows, NothingTwice) {
  Table table{1000000, {}};
  for (int64_t id = 0; id < 3000; ++id)
    table.ids.push_back(id * 331);
  check({table}, 1);
}

// Rows that share a place are told apart, also around the end.
TEST(UniqueRows, CollidingRows) {
  SplitMix random(13);
  for (int i = 0; i < 200; ++i) {
    Table table{1000, draw(random, 3, 1000)};
    table.ids.insert(table.ids.end(), table.ids.begin(), table.ids.end());
    check({table}, 2);
  }
}
