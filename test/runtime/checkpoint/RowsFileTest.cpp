//===- RowsFileTest.cpp - Logical rows in one file ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is written comes back; every flipped bit and every cut is found.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/RowsFile.h"
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

using namespace trc;

namespace {

using Rows = std::map<std::pair<uint32_t, uint64_t>, std::string>;

Result<Rows> readBack(const std::string &path, uint64_t bytes, uint64_t chunks,
                      uint32_t seal = 0) {
  Rows rows;
  Status s = readRows(path, bytes, chunks, seal, [&](const RowsChunk &c) {
    for (uint32_t i = 0; i < c.count; ++i)
      rows[{c.table, c.rows[i]}] =
          std::string(c.records + size_t(i) * c.recordBytes, c.recordBytes);
    return Status();
  });
  if (!s.ok())
    return s;
  return rows;
}

} // namespace

TEST(RowsFile, ComesBack) {
  toy::Folder folder;
  std::string path = folder / "rows.bin";
  Rows expect;
  SplitMix random(3);
  auto writer = RowsWriter::create(path, {8, 4000});
  ASSERT_TRUE(writer.ok());
  for (int i = 0; i < 3000; ++i) {
    uint32_t table = i >= 1000;
    std::string record(table ? 4000 : 8, 0);
    for (char &c : record)
      c = static_cast<char>(random.next());
    uint64_t row = static_cast<uint64_t>(i) << 30;
    ASSERT_TRUE((*writer)->add(table, row, record.data()).ok());
    expect[{table, row}] = record;
  }
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_EQ(3000u, (*writer)->rows());
  EXPECT_GT((*writer)->chunks(), 2u);
  auto got = readBack(path, (*writer)->bytes(), (*writer)->chunks());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(expect, *got);
}

TEST(RowsFile, DamageIsFound) {
  toy::Folder folder;
  std::string path = folder / "rows.bin";
  auto writer = RowsWriter::create(path, {4, 4});
  ASSERT_TRUE(writer.ok());
  for (uint64_t row = 0; row < 5; ++row)
    ASSERT_TRUE((*writer)->add(row >= 3, row, "abcd").ok());
  ASSERT_TRUE((*writer)->finish().ok());
  uint64_t bytes = (*writer)->bytes(), chunks = (*writer)->chunks();
  std::string text = *readFile(path);
  ASSERT_EQ(bytes, text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ 16);
    ASSERT_TRUE(writeFile(path, bad.data(), bad.size()).ok());
    auto got = readBack(path, bytes, chunks);
    ASSERT_FALSE(got.ok()) << at;
    EXPECT_EQ(TRC_CORRUPT, got.takeStatus().code());
  }
  for (size_t size = 0; size < text.size(); ++size) {
    ASSERT_TRUE(writeFile(path, text.data(), size).ok());
    EXPECT_EQ(TRC_CORRUPT, readBack(path, bytes, chunks).takeStatus().code());
  }
}
