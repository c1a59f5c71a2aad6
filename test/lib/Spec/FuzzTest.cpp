//===- FuzzTest.cpp - Hostile text never crashes the parser ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Deterministic mutations of good specs, and a few crafted texts. Whatever
// parses must print to a fixpoint; whatever does not must say why.
//
//===----------------------------------------------------------------------===//
#include "SpecTesting.h"

#include <random>

using namespace terrace::spec;

namespace {

void check(const std::string &text) {
  Parsed parsed = parse(text);
  if (!parsed.spec) {
    EXPECT_TRUE(parsed.diagnostics.hasErrors()) << text;
    return;
  }
  EXPECT_FALSE(parsed.diagnostics.hasErrors()) << text;
  std::string printed = printSpec(*parsed.spec);
  Diagnostics diagnostics;
  std::optional<Spec> again = parseSpecText(printed, "printed", diagnostics);
  ASSERT_TRUE(again) << diagnostics.str() << printed << "\nfrom\n" << text;
  EXPECT_EQ(printed, printSpec(*again));
  checkExecutable(*parsed.spec, diagnostics);
}

const char seedSpec[] = R"(terrace: 1
model: f
seed: 7
batch: {size: 64, max_ids: 900}
defaults: {table: {dim: 4, optimizer: {kind: adam, lr: 1e-3}}, feature: {max_ids: 3}}
templates: {big: {rows: 100, ids: hash}}
tables: [{name: t, rows: 50, init: {kind: normal, std: 0.5}}]
features:
- {name: a, table: t, pooling: mean, weights: w}
- {name: "c{i}", count: 2, table: {use: big}, max_ids: [2, 5], dedup: g}
head: {kind: fm, label: y}
train: {eval_every: 5%, checkpoint: {every: 30min}, stop: {auc: 0.8}}
data: {path: ["a*.tsv", b.tsv], list_sep: "|", eval: {last: 10%}}
memory:
  tiers:
  - {name: dram, kind: dram, capacity: 8MiB}
  - {name: disk, kind: nvme, capacity: 1GiB, path: x}
plan: {lookahead: 2, place: [{tables: "c*", home: disk, cache: {dram: 64KiB}}]}
)";

TEST(SpecFuzz, Mutations) {
  const char *const tokens[] = {
      "{",        "}",        "[",        "]",     ":",
      ",",        "-",        "\n",       "'",     "\"",
      "&x ",      "*x",       "!!t ",     "|\n",   ">\n",
      "#",        "? ",       "---\n",    "null",  "~",
      "{i}",      "0",        "-1",       "1e9",   "99999999999999999999",
      "\t",       "%",        "GiB",      "@",     "`",
      "\\",       "\\x",      "\\u",      "...\n", "%YAML 1.2\n",
      "count: 3", "use: big", "\xc3\xa9", "\xff",  "auto"};
  std::mt19937 rng(20240607);
  const std::string seed = seedSpec;
  for (int round = 0; round < 4000; ++round) {
    std::string text = seed;
    int edits = 1 + rng() % 4;
    for (int e = 0; e < edits && !text.empty(); ++e) {
      size_t at = rng() % text.size();
      switch (rng() % 6) {
      case 0: // drop
        text.erase(at, 1 + rng() % 12);
        break;
      case 1: // insert a token
        text.insert(at, tokens[rng() % std::size(tokens)]);
        break;
      case 2: // flip a byte
        text[at] = char(rng());
        break;
      case 3: // copy a piece elsewhere
        text.insert(rng() % text.size(), text.substr(at, 1 + rng() % 40));
        break;
      case 4: // cut the end
        if (rng() % 8 == 0)
          text.resize(at);
        break;
      case 5: // swap two bytes
        std::swap(text[at], text[rng() % text.size()]);
        break;
      }
    }
    SCOPED_TRACE("round " + std::to_string(round));
    check(text);
    if (HasFatalFailure())
      return;
  }
}

TEST(SpecFuzz, EveryPrefix) {
  std::string text = seedSpec;
  for (size_t n = 0; n <= text.size(); ++n)
    check(text.substr(0, n));
}

TEST(SpecFuzz, Crafted) {
  for (const std::string &text : {
           std::string(200000, '['),
           std::string(200000, '{'),
           std::string("terrace: 1\nfeatures: ") + std::string(100000, '-'),
           std::string("? ? ? ? ?"),
           std::string("- - - - - - -"),
           std::string("\"\\"),
           std::string("'"),
           std::string("a: |\n"),
           std::string("&a *a"),
           std::string("a: &a [*a, *a]\n"),
           std::string("%TAG ! x\n---\na\n"),
           std::string("\0\0", 2),
           std::string("terrace: 1\nmodel: \"") + std::string(1 << 20, 'x') +
               "\"\n",
           std::string("terrace: 1\n") + std::string(1 << 16, 'k') + ": 1\n",
           std::string("\xef\xbb\xbfterrace: 1\n"),
       })
    check(text);
}

TEST(SpecFuzz, Edits) {
  std::mt19937 rng(7);
  const char *const parts[] = {"memory", "tiers", "dram", "capacity", ".",
                               "..",     "=",     "{",    "[",        "0",
                               "plan",   "place", "*",    "features", "a",
                               "table",  "'",     "\"",   "&a",       "null"};
  for (int round = 0; round < 2000; ++round) {
    std::string edit;
    for (int i = rng() % 8; i >= 0; --i) {
      edit += parts[rng() % std::size(parts)];
      if (rng() % 3)
        edit += ".";
      if (rng() % 5 == 0)
        edit += "=";
    }
    Parsed parsed = parse(seedSpec, {edit});
    EXPECT_NE(parsed.spec.has_value(), parsed.diagnostics.hasErrors()) << edit;
  }
}

} // namespace
