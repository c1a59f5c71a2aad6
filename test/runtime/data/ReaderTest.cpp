//===- ReaderTest.cpp - Files, rows and batches ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DataFiles.h"
#include "runtime/core/Hash.h"

#include <cmath>

using namespace trc;
using namespace trc::data;

namespace {
using Reader = DataTest;

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}
} // namespace

TEST_F(Reader, BatchesInFileOrderWithAPartialLastOne) {
  Read r = readAll(countingOptions({write("a.tsv", counting(10))}, 4));
  EXPECT_EQ(r.ids, range(0, 10));
  EXPECT_EQ(r.sizes, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(r.error, "");
}

TEST_F(Reader, PlainGzipAndSeveralMembersAreTheSame) {
  std::string text = counting(50000);
  size_t half = text.size() / 2;
  Read plain = readAll(countingOptions({write("a.tsv", text)}, 100));
  Read packed = readAll(countingOptions({write("a.tsv.gz", gzip(text))}, 100));
  Read members = readAll(countingOptions(
      {write("b.gz", gzip(text.substr(0, half)) + gzip(text.substr(half)))},
      100));
  EXPECT_EQ(plain.ids, range(0, 50000));
  EXPECT_EQ(packed.ids, plain.ids);
  EXPECT_EQ(members.ids, plain.ids);
  EXPECT_EQ(packed.error + members.error, "");
}

TEST_F(Reader, CutOrDamagedGzipIsAnErrorAtEveryLength) {
  std::string whole = gzip(counting(200));
  for (size_t n = 2; n < whole.size(); n += 7) {
    Read r = readAll(countingOptions({write("c.gz", whole.substr(0, n))}, 8));
    EXPECT_TRUE(has(r.error, "truncated")) << n << ": " << r.error;
    EXPECT_TRUE(has(r.error, "c.gz"));
  }
  std::string wrong = whole;
  wrong[wrong.size() - 6] ^= 1; // the checksum
  Read r = readAll(countingOptions({write("d.gz", wrong)}, 8));
  EXPECT_TRUE(has(r.error, "damaged")) << r.error;
}

TEST_F(Reader, GlobsAreSortedAndEachFileHasItsHeader) {
  write("part-2.tsv", counting(3, 3));
  write("part-1.tsv", counting(3, 0));
  auto paths = expandPaths({path("part-*.tsv")});
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ(readAll(countingOptions(*paths, 4)).ids, range(0, 6));
  auto none = expandPaths({path("nothing-*.tsv")});
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(has(none.takeStatus().message(), "nothing-*.tsv"));
}

TEST_F(Reader, MissingFileAndColumnAreNamed) {
  EXPECT_TRUE(
      has(readAll(countingOptions({path("no.tsv")}, 4)).error, "no.tsv"));
  ReaderOptions o = countingOptions({write("a.tsv", "x\tz\n1\t0\n")}, 4);
  Read r = readAll(o);
  EXPECT_TRUE(has(r.error, "no column 'i'")) << r.error;
  EXPECT_TRUE(has(r.error, "the columns are: x, z")) << r.error;
  r = readAll(countingOptions({write("c.tsv", "i,y\n1,0\n")}, 4));
  EXPECT_TRUE(has(r.error, "call the file .csv")) << r.error;
  r = readAll(countingOptions({write("d.tsv", "i\ty\ti\n1\t0\t2\n")}, 4));
  EXPECT_TRUE(has(r.error, "'i' is there more than once")) << r.error;
  r = readAll(countingOptions({write("e.tsv", std::string("i\0y\n", 4))}, 4));
  EXPECT_TRUE(has(r.error, "not a text table")) << r.error;
  o.files.columns = {"i", "y"}; // no header line then
  o.files.paths = {write("b.tsv", "1\t0\n2\t1\n")};
  EXPECT_EQ(readAll(o).ids, range(1, 3));
}

TEST_F(Reader, BadRowsAreErrorsWithLineOrCountedSkips) {
  const std::pair<const char *, const char *> rows[] = {
      {"abc\t0", "'abc' is no 64-bit integer"},
      {"1.5\t0", "'1.5'"},
      {"99999999999999999999\t0", "'99999999999999999999'"},
      {"1", "the row has 1 fields, the header 2"},
      {"1\t0\t2", "the row has 3 fields"},
      {"1\t2", "the label '2' is neither 0 nor 1"},
      {"1\t", "the label '' is neither"},
      {"", "the row has 1 fields"}};
  for (auto [row, message] : rows) {
    std::string text = "i\ty\n0\t0\n" + std::string(row) + "\n1\t1\n";
    ReaderOptions o = countingOptions({write("a.tsv", text)}, 4);
    Read r = readAll(o);
    EXPECT_TRUE(has(r.error, "a.tsv:3: ")) << r.error;
    EXPECT_TRUE(has(r.error, message)) << r.error;
    o.files.skipBadRows = true;
    r = readAll(o);
    EXPECT_EQ(r.error, "");
    EXPECT_EQ(r.ids, range(0, 2));
    EXPECT_EQ(r.bad, 1);
    EXPECT_TRUE(has(r.firstBad, "a.tsv:3: ")) << r.firstBad;
  }
}

TEST_F(Reader, FullBatchesBeforeABadRowAreHandedOut) {
  std::string text = counting(10) + "x\t0\n" + "11\t0\n";
  Read r = readAll(countingOptions({write("a.tsv", text)}, 4));
  EXPECT_EQ(r.ids, range(0, 8));
  EXPECT_TRUE(has(r.error, "a.tsv:12"));
}

TEST_F(Reader, SkipMeetsTheSamePlaceWhateverTheSource) {
  std::string text = counting(1000);
  for (const std::string &file :
       {write("a.tsv", text), write("a.tsv.gz", gzip(text))})
    for (int64_t skip : {0, 1, 63, 64, 999, 1000, 1001, 1990, 2000, 2500})
      for (int64_t shuffle : {0, 50}) {
        ReaderOptions o = countingOptions({file}, 64);
        o.epochs = 2;
        o.shuffleBuffer = shuffle;
        o.shuffleSeed = 9;
        std::vector<int64_t> all = readAll(o).ids;
        ASSERT_EQ(all.size(), 2000u);
        o.skip = skip;
        std::vector<int64_t> rest = readAll(o).ids;
        int64_t from = std::min<int64_t>(skip, 2000);
        EXPECT_EQ(rest, std::vector<int64_t>(all.begin() + from, all.end()))
            << skip << " " << shuffle;
      }
}

TEST_F(Reader, SkipCountsGoodRowsOnly) {
  ReaderOptions o =
      countingOptions({write("a.tsv", "i\ty\n0\t0\nx\t0\n1\t1\n2\t0\n")}, 4);
  o.files.skipBadRows = true;
  o.skip = 2;
  EXPECT_EQ(readAll(o).ids, range(2, 3));
  auto n = countRows(o.files, o.format);
  ASSERT_TRUE(n.ok());
  EXPECT_EQ(*n, 3);
}

TEST_F(Reader, RangesSplitTheRows) {
  ReaderOptions o = countingOptions(
      {write("a.tsv", counting(20)), write("b.tsv", counting(20, 20))}, 7);
  o.last = 30;
  EXPECT_EQ(readAll(o).ids, range(0, 30));
  o.first = 30;
  o.last = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(readAll(o).ids, range(30, 40));
}

TEST_F(Reader, ShuffleIsAPermutationThatTheSeedFixes) {
  ReaderOptions o = countingOptions({write("a.tsv", counting(500))}, 10);
  o.shuffleBuffer = 100;
  std::vector<int64_t> first = readAll(o).ids, again = readAll(o).ids;
  EXPECT_EQ(first, again);
  EXPECT_NE(first, range(0, 500));
  o.shuffleSeed = 1;
  EXPECT_NE(readAll(o).ids, first);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, range(0, 500));
  o.epochs = 2; // another order in the second pass
  std::vector<int64_t> two = readAll(o).ids;
  EXPECT_NE(std::vector<int64_t>(two.begin(), two.begin() + 500),
            std::vector<int64_t>(two.begin() + 500, two.end()));
}

TEST_F(Reader, ListsWeightsStringsAndEmptyBags) {
  ReaderOptions o;
  o.files.paths = {write("a.tsv", "w\titems\tuser\ty\n"
                                  "0.5|-1e2|nan\t3|4|3\tann\t1\n"
                                  "\t\tbob\t0\n"
                                  "1\t-9223372036854775808\t\t0\n")};
  o.format.features = {{"items", "items", "w", false, false},
                       {"user", "user", "", true, false}};
  o.format.label = "y";
  o.format.listSep = "|";
  BatchReader reader(o);
  auto got = reader.next();
  ASSERT_TRUE(got.ok()) << got.takeStatus().message();
  const BatchData &b = **got;
  EXPECT_EQ(
      b.features[0].ids,
      (std::vector<int64_t>{3, 4, 3, std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(b.features[0].offsets, (std::vector<int64_t>{0, 3, 3, 4}));
  EXPECT_EQ(b.features[0].weights[1], -100.0f);
  EXPECT_TRUE(std::isnan(b.features[0].weights[2])); // the session's verdict
  EXPECT_EQ(b.features[1].ids,
            (std::vector<int64_t>{hashString("ann"), hashString("bob")}));
  EXPECT_EQ(b.features[1].offsets, (std::vector<int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(b.labels, (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(reader.origin(b, 2), path("a.tsv") + ":4");

  o.files.paths = {write("b.tsv", "w\titems\tuser\ty\n1|2\t3\tann\t1\n")};
  EXPECT_TRUE(has(readAll(o).error, "has 2 weights for the 1 ids"));
}

TEST_F(Reader, UnsignedIdsAreFineForHashTablesOnly) {
  ReaderOptions o =
      countingOptions({write("a.tsv", "i\ty\n18446744073709551615\t0\n")}, 4);
  EXPECT_TRUE(has(readAll(o).error, "18446744073709551615"));
  o.format.features[0].anyId = true;
  EXPECT_EQ(readAll(o).ids, std::vector<int64_t>{-1});
}

TEST_F(Reader, CsvQuotesCommasAndLineBreaks) {
  ReaderOptions o;
  o.files.paths = {write("a.csv", "\xef\xbb\xbfname,\"it,ems\",y\r\n"
                                  "\"a \"\"b\"\", c\",\"1,2\",1\r\n"
                                  "\"two\nlines\",3,0\r\n"
                                  "plain,4,0\r\n"
                                  "bad,x,0\r\n")};
  o.format.features = {{"it", "it,ems", "", false, false},
                       {"name", "name", "", true, false}};
  o.format.listSep = ",";
  o.format.label = "y";
  o.files.skipBadRows = true;
  BatchReader reader(o);
  auto got = reader.next();
  ASSERT_TRUE(got.ok()) << got.takeStatus().message();
  EXPECT_EQ((*got)->features[0].ids, (std::vector<int64_t>{1, 2, 3, 4}));
  // Names are lists, too: split at the commas inside the quotes.
  EXPECT_EQ((*got)->features[1].ids[0], hashString("a \"b\""));
  EXPECT_EQ((*got)->features[1].ids[2], hashString("two\nlines"));
  EXPECT_EQ(reader.origin(**got, 2), path("a.csv") + ":5");
  std::string first;
  EXPECT_EQ(reader.badRows(&first), 1);
  EXPECT_TRUE(has(first, "a.csv:6")) << first;
  o.files.paths = {write("b.csv", "name,\"it,ems\",y\n\"open,1,0\n")};
  EXPECT_TRUE(has(readAll(o).error, "never closed"));
}

TEST_F(Reader, LastLineNeedsNoLineEnd) {
  EXPECT_EQ(readAll(countingOptions({write("a.tsv", "i\ty\n7\t0")}, 4)).ids,
            std::vector<int64_t>{7});
}

TEST_F(Reader, NoRowsAndNoFileAreErrors) {
  EXPECT_TRUE(has(readAll(countingOptions({write("a.tsv", "i\ty\n")}, 4)).error,
                  "no rows"));
  EXPECT_TRUE(
      has(readAll(countingOptions({write("b.tsv", "")}, 4)).error, "empty"));
  EXPECT_TRUE(has(readAll(countingOptions({folder}, 4)).error, folder));
  auto none = expandPaths({});
  ASSERT_FALSE(none.ok());
  EXPECT_TRUE(has(none.takeStatus().message(), "data.path"));
}

TEST_F(Reader, EndsEarlyWithoutHanging) {
  for (int i = 0; i < 20; ++i) {
    ReaderOptions o = countingOptions({write("a.tsv", counting(5000))}, 1);
    BatchReader reader(o);
    auto got = reader.next();
    ASSERT_TRUE(got.ok());
    ASSERT_EQ((*got)->features[0].ids[0], 0);
  }
}
