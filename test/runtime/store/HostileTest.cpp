//===- HostileTest.cpp - Damaged, foreign and forged files ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every byte of a superblock and of an index file counts; forged index files
// with the right checks are refused by what their numbers say.
//
//===----------------------------------------------------------------------===//

#include "runtime/store/IndexFile.h"
#include "runtime/store/StoreLayout.h"
#include "test/runtime/io/CrashDevice.h"
#include "test/runtime/store/StoreFixture.h"

#include <algorithm>
#include <fstream>
#include <numeric>

using namespace trc;

namespace {

std::string fileBytes(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
void setBytes(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Hostile, EveryByteOfASuperblockCounts) {
  CrashDevice device;
  StoreFixture f;
  f.options.extents = {{"a", 4096}, {"b", 0}};
  f.fit();
  auto code = [&] {
    return RowStore::open(device, f.options).takeStatus().code();
  };
  ASSERT_EQ(code(), TRC_OK);
  f.options.create = false;
  EXPECT_EQ(code(), TRC_OK);
  for (uint64_t at = 0; at < 56; ++at) {
    std::string good = device.bytes("a", 4096 + at, 1);
    for (int bit = 0; bit < 8; bit += 7) {
      device.poke("a", 4096 + at,
                  std::string(1, static_cast<char>(good[0] ^ (1 << bit))));
      EXPECT_EQ(code(), TRC_CORRUPT) << at;
    }
    device.poke("a", 4096 + at, good);
  }
  EXPECT_EQ(code(), TRC_OK);
  device.truncate("b", 4096);
  EXPECT_EQ(code(), TRC_CORRUPT);
}

TEST(Hostile, ForeignFilesAreRefused) {
  CrashDevice device;
  StoreFixture f;
  f.options.extents = {{"a", 0}, {"b", 0}};
  f.fit();
  auto status = [&](const RowStoreOptions &o) {
    return RowStore::open(device, o).takeStatus();
  };
  ASSERT_TRUE(status(f.options).ok());
  // Another state is not written over; the same may be made anew.
  RowStoreOptions o = f.options;
  o.key = 43;
  Status s = status(o);
  EXPECT_EQ(s.code(), TRC_MISMATCH);
  EXPECT_NE(s.message().find("belongs to another state"), std::string::npos)
      << s.message();
  EXPECT_TRUE(status(f.options).ok());
  o.create = false;
  EXPECT_EQ(status(o).code(), TRC_MISMATCH);
  o = f.options;
  o.create = false;
  std::swap(o.extents[0], o.extents[1]);
  s = status(o);
  EXPECT_EQ(s.code(), TRC_MISMATCH);
  EXPECT_NE(s.message().find("is file 2 of 2"), std::string::npos)
      << s.message();
  o = f.options;
  o.create = false;
  o.rows = 999;
  s = status(o);
  EXPECT_EQ(s.code(), TRC_MISMATCH);
  EXPECT_NE(s.message().find("has 1000 rows"), std::string::npos)
      << s.message();
  o = f.options;
  o.create = false;
  o.payloadBytes = 64; // the same pitch
  EXPECT_EQ(status(o).code(), TRC_MISMATCH);
  o = f.options;
  o.create = false;
  o.extents[0].base = 4096;
  s = status(o);
  EXPECT_EQ(s.code(), TRC_CORRUPT);
  // A file of something else.
  ASSERT_TRUE(device.openFile("c", 1 << 20, true).ok());
  device.poke("c", 0, std::string(8192, 'z'));
  o = f.options;
  o.create = false;
  o.extents = {{"c", 0}};
  o.geometry = storeGeometry(1000, 80, 2.5);
  EXPECT_EQ(status(o).code(), TRC_CORRUPT);
}

class HostileIndex : public testing::Test {
protected:
  void SetUp() override {
    f.options.rows = 300;
    f.fit();
    f.open();
    std::vector<uint32_t> rows(300);
    std::iota(rows.begin(), rows.end(), 0);
    ASSERT_TRUE(f.write(rows, 1).ok());
    ASSERT_TRUE(f.checkpoint(1, image).ok());
    ASSERT_TRUE(f.write({4, 7}, 2).ok());
    ASSERT_TRUE(f.checkpoint(2, image).ok());
    ASSERT_EQ(image.files.size(), 2u);
    f.reopen();
  }
  /// A store refuses, and is as before.
  trc_status adopt(const Image &i) {
    Status s = f.store->adopt(i, true);
    if (!s.ok()) {
      EXPECT_EQ(f.store->writtenCount(), 0u);
      EXPECT_FALSE(f.store->written(4));
      EXPECT_EQ(f.store->space().freeSegments, f.store->space().segments);
      last = s.message();
    }
    return s.code();
  }
  IndexHeader header(IndexKind kind, uint64_t id) {
    IndexHeader h{};
    h.kind = static_cast<uint32_t>(kind);
    h.key = f.options.key;
    h.segmentBytes = f.options.geometry.segmentBytes;
    h.segments = f.options.geometry.segments;
    h.rows = f.options.rows;
    h.storeBytes = f.options.storeBytes;
    h.payloadBytes = f.options.payloadBytes;
    h.id = h.base = h.previous = id;
    return h;
  }
  /// A base of checkpoint 2 with these words.
  Image forge(IndexHeader h, const std::vector<uint32_t> &rows,
              const std::vector<uint32_t> &late,
              const std::vector<uint32_t> &segments) {
    auto w = IndexWriter::create(f.folder.path.string(), "forged", h);
    EXPECT_TRUE(w.ok());
    EXPECT_TRUE((*w)->append(IndexRows, rows.data(), rows.size()).ok());
    EXPECT_TRUE((*w)->append(IndexLate, late.data(), late.size()).ok());
    EXPECT_TRUE(
        (*w)->append(IndexSegments, segments.data(), segments.size()).ok());
    EXPECT_TRUE((*w)->finish().ok());
    return {2, {"forged"}};
  }

  StoreFixture f;
  Image image;
  std::string last;
};

TEST_F(HostileIndex, EveryByteAndEveryLengthCounts) {
  for (const std::string &name : image.files) {
    std::string path = f.path(name.c_str()), good = fileBytes(path);
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] ^= 1 << at % 8;
      setBytes(path, bad);
      trc_status code = adopt(image);
      ASSERT_TRUE(code == TRC_CORRUPT || code == TRC_MISMATCH) << at;
      ASSERT_NE(last.find(name), std::string::npos) << last;
    }
    for (size_t n = 0; n < good.size(); n += 1 + n / 100) {
      setBytes(path, good.substr(0, n));
      ASSERT_EQ(adopt(image), TRC_CORRUPT) << n;
    }
    setBytes(path, good + "x");
    EXPECT_EQ(adopt(image), TRC_CORRUPT);
    setBytes(path, good);
  }
  ASSERT_EQ(adopt(image), TRC_OK) << last;
  f.expect({4, 7}, 2);
}

TEST_F(HostileIndex, FilesThatDoNotBelongTogether) {
  EXPECT_EQ(adopt({2, {"g16-base-1"}}), TRC_CORRUPT);
  EXPECT_EQ(adopt({2, {"g16-delta-2"}}), TRC_CORRUPT);
  EXPECT_EQ(adopt({2, {"g16-delta-2", "g16-base-1"}}), TRC_CORRUPT);
  EXPECT_EQ(adopt({2, {"g16-base-1", "g16-base-1"}}), TRC_CORRUPT);
  EXPECT_EQ(adopt({3, image.files}), TRC_CORRUPT);
  EXPECT_EQ(adopt({2, {}}), TRC_CORRUPT);
  EXPECT_EQ(adopt({2, {"g16-base-1", "g16-delta-3"}}), TRC_NOT_FOUND);
  EXPECT_EQ(adopt(image), TRC_OK);
}

TEST_F(HostileIndex, ForgedNumbers) {
  IndexHeader h = header(IndexKind::Base, 2);
  uint32_t places = static_cast<uint32_t>(
      h.segments * f.options.geometry.recordsPerSegment(h.storeBytes));
  std::vector<uint32_t> all;
  for (uint32_t s = 0; s < h.segments; ++s)
    all.insert(all.end(), {s, 7});
  auto code = [&](const std::vector<uint32_t> &rows,
                  const std::vector<uint32_t> &late = {}) {
    return adopt(forge(h, rows, late, all));
  };
  EXPECT_EQ(code({0, 0, 300, 1}), TRC_CORRUPT); // no such row
  EXPECT_EQ(code({0, 0, UINT32_MAX, 1}), TRC_CORRUPT);
  EXPECT_EQ(code({0, places}), TRC_CORRUPT); // no such place
  EXPECT_EQ(code({0, UINT32_MAX}), TRC_CORRUPT);
  EXPECT_EQ(code({5, 0, 4, 1}), TRC_CORRUPT); // out of order
  EXPECT_EQ(code({4, 9, 5, 9}), TRC_CORRUPT); // one place for two
  EXPECT_EQ(code({4, 9}, {5, 9}), TRC_CORRUPT);
  EXPECT_EQ(code({4, 9}, {7, places}), TRC_CORRUPT);
  EXPECT_EQ(adopt(forge(h, {4, 9}, {}, {})), TRC_CORRUPT); // no generation
  EXPECT_EQ(adopt(forge(h, {4, 9}, {}, {0, 7, 0, 8})), TRC_CORRUPT);
  EXPECT_EQ(adopt(forge(h, {4, 9}, {}, {h.segments, 7})), TRC_CORRUPT);
  h.dense = 1;
  EXPECT_EQ(code({1, 2, 3, 0}), TRC_CORRUPT); // not every row
  std::vector<uint32_t> dense(300, 0);
  dense[7] = places + 1;
  EXPECT_EQ(code(dense), TRC_CORRUPT);
  h.kind = 2; // an entry for every row is for a base
  dense[7] = 0;
  EXPECT_EQ(code(dense), TRC_CORRUPT);
  EXPECT_NE(last.find("only a base"), std::string::npos) << last;
  h.dense = 0;
  h.kind = 4;
  EXPECT_EQ(code({4, 9}), TRC_CORRUPT);
  h.kind = 1;
  // Moves that lead nowhere.
  {
    auto w = IndexWriter::create(f.folder.path.string(), "g16-moves-1",
                                 header(IndexKind::Moves, 1));
    ASSERT_TRUE(w.ok());
    uint32_t move[] = {4, 9, 7, places, 7};
    ASSERT_TRUE((*w)->append(IndexRows, move, 5).ok());
    ASSERT_TRUE((*w)->finish().ok());
  }
  f.open(); // looks at the moves once
  h.id = h.base = h.previous = 1;
  Image first = forge(h, {4, 9}, {}, all);
  first.id = 1;
  EXPECT_EQ(adopt(first), TRC_CORRUPT);
  EXPECT_NE(last.find("g16-moves-1"), std::string::npos) << last;
}

/// A place of another life of its segment is no harm: the row fails its check.
TEST_F(HostileIndex, WrongGenerationFailsTheRows) {
  ASSERT_EQ(adopt(forge(header(IndexKind::Base, 2), {4, 4, 7, 7}, {}, {0, 99})),
            TRC_OK);
  std::vector<char> out;
  EXPECT_EQ(f.read({4}, out).code(), TRC_CORRUPT);
}

/// Enough rows for several threads and several parts of the marks, each row far
/// from its neighbours' places.
TEST(HostileLarge, EveryPlaceHasOneRow) {
  StoreFixture f;
  f.payload(8);
  f.options.rows = 3000000;
  f.fit(storeFill(1, 0.5));
  f.open();
  StoreLayout layout(f.options.geometry, f.options.storeBytes, {0});
  IndexHeader h{};
  h.kind = static_cast<uint32_t>(IndexKind::Base);
  h.key = f.options.key;
  h.segmentBytes = f.options.geometry.segmentBytes;
  h.segments = f.options.geometry.segments;
  h.rows = f.options.rows;
  h.storeBytes = f.options.storeBytes;
  h.payloadBytes = f.options.payloadBytes;
  h.id = h.base = h.previous = 1;
  h.dense = 1;
  std::vector<uint32_t> rows(h.rows), segments;
  for (uint64_t r = 0; r < h.rows; ++r)
    rows[r] = static_cast<uint32_t>(r * 1000003 % h.rows * 2 + 1);
  for (uint32_t s = 0; s < h.segments; ++s)
    segments.insert(segments.end(), {s, s + 9});
  auto adopt = [&](bool current) {
    auto w = IndexWriter::create(f.folder.path.string(), "forged", h);
    EXPECT_TRUE(w.ok());
    EXPECT_TRUE((*w)->append(IndexRows, rows.data(), rows.size()).ok());
    EXPECT_TRUE(
        (*w)->append(IndexSegments, segments.data(), segments.size()).ok());
    EXPECT_TRUE((*w)->finish().ok());
    return f.store->adopt({1, {"forged"}}, current);
  };
  auto refused = [&](uint32_t place, uint32_t row) {
    for (bool current : {true, false}) {
      Status s = adopt(current);
      EXPECT_EQ(s.code(), TRC_CORRUPT);
      EXPECT_NE(s.message().find("place " + std::to_string(place) +
                                 " for row " + std::to_string(row) + ","),
                std::string::npos)
          << s.message();
      EXPECT_EQ(f.store->writtenCount(), 0u);
      EXPECT_EQ(f.store->nextWritten(0), h.rows);
      EXPECT_EQ(f.store->space().freeSegments, h.segments);
    }
  };
  // The same place for two rows, near the ends and in the middle.
  for (auto [a, b] : {std::pair(3u, 2999999u), std::pair(0u, 1u),
                      std::pair(1400000u, 1400001u)}) {
    uint32_t right = rows[b];
    rows[b] = rows[a];
    refused(rows[a] - 1, b);
    rows[b] = right;
  }
  // A segment that has no life.
  uint32_t last = *std::max_element(rows.begin(), rows.end()) - 1;
  uint32_t segment = layout.segmentOf(last) - 1,
           place = layout.place(segment, 0);
  while (place % 2)
    ++place;
  std::vector<uint32_t> all = segments;
  segments.erase(segments.begin() + 2 * segment,
                 segments.begin() + 2 * segment + 2);
  refused(place,
          static_cast<uint32_t>(std::find(rows.begin(), rows.end(), place + 1) -
                                rows.begin()));
  segments = all;
  // Rows that were never written are no rows with a place.
  rows[7] = rows[2000000] = 0;
  ASSERT_EQ(adopt(true).code(), TRC_OK);
  EXPECT_EQ(f.store->writtenCount(), h.rows - 2);
  EXPECT_FALSE(f.store->written(7));
  EXPECT_TRUE(f.store->written(8));
  RowStore::Space space = f.store->space();
  EXPECT_EQ(space.retained, 0u);
  EXPECT_EQ(space.current, (h.rows - 2) * uint64_t(h.storeBytes));
  // A later checkpoint that has another life for a segment.
  segments[1] += 1;
  h.id = h.base = h.previous = 2;
  auto w = IndexWriter::create(f.folder.path.string(), "other", h);
  ASSERT_TRUE(w.ok());
  ASSERT_TRUE((*w)->append(IndexRows, rows.data(), rows.size()).ok());
  ASSERT_TRUE(
      (*w)->append(IndexSegments, segments.data(), segments.size()).ok());
  ASSERT_TRUE((*w)->finish().ok());
  Status s = f.store->adopt({2, {"other"}}, false);
  EXPECT_EQ(s.code(), TRC_CORRUPT);
  EXPECT_NE(s.message().find("place 0 for row 0,"), std::string::npos)
      << s.message();
}

} // namespace
