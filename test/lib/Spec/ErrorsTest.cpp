//===- ErrorsTest.cpp - Every error of the spec, with its place -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One row per kind of error: text, then what the message must hold. `m.yaml:`
// is implied; a row's line and column are part of it.
//
//===----------------------------------------------------------------------===//
#include "SpecTesting.h"

using namespace terrace::spec;

namespace {

struct Case {
  const char *name;
  std::string text;
  std::vector<std::string> expected;
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

class SpecError : public ::testing::TestWithParam<Case> {};

TEST_P(SpecError, IsLocatedAndSaysWhatToDo) {
  Parsed parsed = parse(GetParam().text);
  EXPECT_FALSE(parsed.spec);
  for (const std::string &part : GetParam().expected)
    EXPECT_NE(parsed.errors().find(part), std::string::npos)
        << "missing: " << part << "\nin: " << parsed.errors();
  // One line each, none repeated.
  EXPECT_EQ(size_t(llvm::StringRef(parsed.errors()).count('\n')),
            parsed.diagnostics.list().size());
}

std::string table(const char *keys) {
  return std::string(
             "terrace: 1\nfeatures:\n- {name: a, table: {rows: 10, dim: "
             "4, ") +
         keys + "}}\n";
}
std::string feature(const char *keys) {
  return std::string(
             "terrace: 1\nfeatures:\n- {name: a, table: {rows: 10, dim: "
             "4}, ") +
         keys + "}\n";
}

const Case cases[] = {
    // The text as such.
    {"Empty", "", {"m.yaml:1:1: error: the file is empty"}},
    {"NotAMap", "- a\n- b\n", {"a spec is a map of keys, not a list"}},
    {"Syntax", "terrace: 1\nfeatures: [a, {b\n", {"m.yaml:", "error: YAML: "}},
    {"Anchor",
     withLines("templates: {x: &big {rows: 1}}\n"),
     {"m.yaml:4:", "anchor '&big'", "'templates' with {use: NAME}"}},
    {"Alias",
     "terrace: 1\nfeatures:\n- {name: a, table: *big}\n",
     {"m.yaml:3:20: error: aliases", "'defaults'"}},
    {"Tag", withLines("seed: !!int 5\n"), {"tag '!!int'"}},
    {"TwoDocuments", withLines("---\nseed: 1\n"), {"a second document"}},
    {"RepeatedKey",
     withLines("seed: 1\nseed: 2\n"),
     {"m.yaml:5:1: error: key 'seed' is given twice; the first is at "
      "m.yaml:4:7"}},
    {"KeyIsAList", withLines("[a, b]: 1\n"), {"a key must be a word"}},
    {"LabelIsAFeature",
     withLines("head: {kind: fm, label: a}\n"),
     {"m.yaml:4:25: error: head.label: 'a' is the name of a feature",
      "'column'"}},
    {"InitRange",
     table("init: {kind: uniform, low: -3e38, high: 3e38}"),
     {"m.yaml:3:", "is more than f32 holds"}},
    {"TierPathTwiceInOtherWords",
     withLines("memory:\n  tiers:\n  - {name: d, kind: dram, capacity: 1GiB}\n"
               "  - {name: x, kind: nvme, capacity: 1GiB, path: r.store}\n"
               "  - {name: y, kind: nvme, capacity: 1GiB, path: "
               "./x/../r.store}\n"),
     {"m.yaml:8:49: error: memory.tiers.y.path: './x/../r.store' is used "
      "twice"}},
    {"TierPathOfTheState",
     withLines("memory:\n  tiers:\n  - {name: d, kind: dram, capacity: 1GiB}\n"
               "  - {name: x, kind: nvme, capacity: 1GiB, path: closed-1.blob}\n"
               "  - {name: y, kind: nvme, capacity: 1GiB, path: ./closed.json}\n"
               "  - {name: z, kind: nvme, capacity: 1GiB, path: "
               "checkpoints/a}\n"),
     {"m.yaml:7:49: error: memory.tiers.x.path: 'closed-1.blob' is a name",
      "m.yaml:8:49: error: memory.tiers.y.path", "m.yaml:9:49: error",
      "as in rows.store"}},
    {"TooDeep",
     withLines("seed: " + std::string(100, '[') + std::string(100, ']') + "\n"),
     {"nested more than 32 levels deep"}},
    {"NotUtf8",
     withLines("model: \xff\xfe\n"),
     {"m.yaml:4:8: error: the file "
      "is not UTF-8"}},
    // Top level.
    {"NoVersion",
     "features:\n- {name: a, table: {rows: 10, dim: 4}}\n",
     {"m.yaml:1:1: error: missing key 'terrace'"}},
    {"OtherVersion",
     "terrace: 2\nfeatures:\n- {name: a, table: {rows: 10, dim: 4}}\n",
     {"m.yaml:1:10: error: terrace: this compiler reads version 1"}},
    {"NoFeatures", "terrace: 1\nmodel: a\n", {"missing key 'features'"}},
    {"UnknownTopKey",
     withLines("featurs: 1\n"),
     {"m.yaml:4:1: error: unknown key 'featurs'; did you mean 'features'?",
      "(allowed: terrace, model,"}},
    {"KeyElsewhere",
     withLines("label: click\n"),
     {"unknown key 'label'; it belongs in head: {label: ...}"}},
    {"BadWord",
     withLines("numerics: fast\n"),
     {"m.yaml:4:11: error: numerics: 'fast' is not known; did you mean "
      "'reassociate'? (allowed: strict, reassociate)"}},
    {"OnBadId",
     withLines("on_bad_id: skip\n"),
     {"did you mean 'drop'? (allowed: error, drop)"}},
    {"OnBadGrad", withLines("on_bad_grad: drop\n"), {"(allowed: error, skip)"}},
    {"Seed", withLines("seed: -1\n"), {"0 to 2^64 - 1, found '-1'"}},
    {"BatchSize",
     withLines("batch: {size: 0}\n"),
     {"batch.size: expected a "
      "whole number, 1 to "}},
    {"BatchIsNoMap",
     withLines("batch: 2048\n"),
     {"batch: expected a map with "
      "the keys size, max_ids"}},
    {"MaxIdsBelowOneBag",
     feature("max_ids: 50") + "batch: {max_ids: 20}\n",
     {"batch.max_ids: 20 is below the max_ids of one feature, which is 50"}},
    {"ModelName", withLines("model: a/b\n"), {"model: expected a name"}},
    // Numbers.
    {"Real",
     table("optimizer: {lr: fast}"),
     {"expected a number, at least 0, "
      "found 'fast'"}},
    {"NegativeReal", table("optimizer: {lr: -1}"), {"found '-1'"}},
    {"Infinite", table("optimizer: {lr: inf}"), {"found 'inf'"}},
    {"Exponent",
     "terrace: 1\nfeatures:\n- {name: a, table: {rows: 1e6, dim: 4}}\n",
     {"m.yaml:3:27: error: features.a.table.rows: expected a whole number "
      "(write 1000000), found '1e6'"}},
    {"Separators",
     "terrace: 1\nfeatures:\n- {name: a, table: {rows: 1_000, dim: 4}}\n",
     {"without separators (write 1000), found '1_000'"}},
    {"Letter",
     "terrace: 1\nfeatures:\n- {name: a, table: {rows: 10O, dim: 4}}\n",
     {"found '10O'"}},
    {"UnitOfACount",
     "terrace: 1\nfeatures:\n- {name: a, table: {rows: 2.5M, dim: 4}}\n",
     {"a whole number without a unit (write 2500000), found '2.5M'"}},
    {"ListForOne",
     "terrace: 1\nfeatures:\n- {name: a, table: {rows: [1, 2], dim: 4}}\n",
     {"found a list"}},
    // Tables.
    {"OtherSystemsNames",
     "terrace: 1\nfeatures:\n- {name: a, table: {num_embeddings: 10, "
     "embedding_dim: 4, data_type: fp16}}\n",
     {"unknown key 'num_embeddings'; did you mean 'rows'?",
      "unknown key 'embedding_dim'; did you mean 'dim'?",
      "unknown key 'data_type'; did you mean 'dtype'?",
      "missing keys 'rows', 'dim'"}},
    {"ExactRowWise",
     table("optimizer: exact_row_wise_adagrad"),
     {"'exact_row_wise_adagrad' is not known; did you mean "
      "'rowwise_adagrad'?"}},
    {"DType",
     table("dtype: float32"),
     {"did you mean 'f32'? (allowed: f32, "
      "f16, bf16, int8, int4)"}},
    {"LrInTable",
     table("lr: 0.1"),
     {"unknown key 'lr'; it belongs in optimizer: {lr: ...}"}},
    {"Dim",
     "terrace: 1\nfeatures:\n- {name: a, table: {rows: 1, dim: 0}}\n",
     {"1 to 65536, found '0'"}},
    {"MomentumOfAdam",
     table("optimizer: {kind: adam, momentum: 0.9}"),
     {"momentum: only with kind: sgd"}},
    {"RoundingOfF32",
     table("rounding: stochastic"),
     {"rounding: only with dtype: f16 or bf16, not f32"}},
    {"StochasticRounding",
     table("dtype: bf16, stochastic_rounding: 1"),
     {"unknown key 'stochastic_rounding'; did you mean 'rounding'?"}},
    {"KeysOfFtrl",
     table("optimizer: {kind: ftrl, lr: 0, weight_decay: 0.1, eps: 1}"),
     {"lr: 'ftrl' divides by lr", "'ftrl' has no weight decay; give l2",
      "'ftrl' has no eps"}},
    {"L2OfAdam",
     table("optimizer: {kind: adam, l2: 0.1, beta: 1}"),
     {"l2: only with kind: ftrl (elsewhere: weight_decay)",
      "beta: only with kind: ftrl"}},
    {"ModeOfLamb",
     table("optimizer: {kind: lamb, weight_decay_mode: l2}"),
     {"'lamb' adds weight_decay to its direction"}},
    {"MaxGradNorm",
     table("optimizer: {kind: adam, max_grad_norm: 1}"),
     {"unknown key 'max_grad_norm'; did you mean 'clip_norm'?"}},
    {"AdamW",
     table("optimizer: {kind: adam, weight_decay_mode: decouple}"),
     {"did you mean 'decoupled'? (allowed: l2, decoupled)"}},
    {"RowwiseAdam",
     table("optimizer: rowwise_adam"),
     {"did you mean 'partial_rowwise_adam'?"}},
    {"BetaOfSgd",
     table("optimizer: {kind: sgd, beta1: 0.9, eps: 1}"),
     {"beta1: only with kind: adam", "'sgd' has no eps"}},
    {"Beta",
     table("optimizer: {kind: adam, beta1: 1}"),
     {"below 1, found '1'"}},
    {"InitKeys",
     table("init: {kind: uniform, std: 1}"),
     {"std: only with kind: normal"}},
    {"InitOrder",
     table("init: {low: 1, high: -1}"),
     {"low 1 is above high -1"}},
    {"IdsKeys",
     table("ids: {kind: hash, on_full: evict}"),
     {"on_full: only with kind: dynamic"}},
    {"Ttl",
     table("ids: {kind: dynamic, evict: {ttl: 30m}}"),
     {"unknown unit of time 'm'", "did you mean 'min'?"}},
    {"TtlUnitless",
     table("ids: {kind: dynamic, evict: {ttl: 30}}"),
     {"a unit is needed"}},
    {"TwoTables",
     "terrace: 1\ntables:\n- {name: t, rows: 1, dim: 1}\n- {name: t, rows: 1, "
     "dim: 1}\nfeatures: [{name: a, table: t}]\n",
     {"m.yaml:4:10: error: tables.t: table 't' is declared twice; the first is "
      "at m.yaml:3:3"}},
    {"UnreadTable",
     withLines("tables: [{name: t, rows: 1, dim: 1}]\n"),
     {"tables.t: no feature reads this table"}},
    // Features.
    {"IsWeighted",
     feature("is_weighted: true"),
     {"unknown key 'is_weighted'; did you mean 'weights'?"}},
    {"Pooling",
     feature("pooling: avg"),
     {"did you mean 'mean'? (allowed: sum, "
      "mean, weighted_mean, sqrtn, max, "
      "none)"}},
    {"RowsInFeature",
     "terrace: 1\nfeatures:\n- {name: a, rows: 10, dim: 4}\n",
     {"unknown key 'rows'; it belongs in table: {rows: ...}",
      "missing key 'table'"}},
    {"NoSuchTable",
     "terrace: 1\ntables: [{name: item, rows: 1, dim: 1}]\nfeatures:\n- {name: "
     "a, table: itme}\n- {name: b, table: item}\n",
     {"m.yaml:4:20: error: features.a.table: no table 'itme'; did you mean "
      "'item'? (tables: item)"}},
    {"TwoFeatures",
     "terrace: 1\ntables: [{name: t, rows: 1, dim: 1}]\nfeatures:\n- {name: a, "
     "table: t}\n- {name: a, table: t}\n",
     {"m.yaml:5:10: error: features.a.name: feature 'a' is declared twice; the "
      "first is at m.yaml:4:10"}},
    {"WeightsOfMax",
     feature("pooling: max, weights: w"),
     {"pooling 'max' takes no weights"}},
    {"MeanAboveMax",
     feature("max_ids: 2, mean_ids: 3"),
     {"mean_ids: 3 is above max_ids, which is 2"}},
    {"StringsNeedHash", feature("type: string"), {"give the table ids: hash"}},
    {"ColumnTypes",
     "terrace: 1\ndefaults: {table: {ids: hash, rows: 9, dim: "
     "1}}\nfeatures:\n- "
     "{name: a, table: {}, column: c}\n- {name: b, table: {}, column: c, type: "
     "string}\n",
     {"column 'c' is 'int' for feature 'a' and 'string' here"}},
    {"FeatureName",
     "terrace: 1\nfeatures:\n- {name: 'a b', table: {rows: 1, dim: 1}}\n",
     {"features.a b.name: expected a name: letters"}},
    {"BraceWithoutCount",
     "terrace: 1\nfeatures:\n- {name: 'c{i}', table: {rows: 1, dim: 1}}\n",
     {"{i} is replaced only beside 'count'"}},
    // Templates, defaults, count.
    {"NoTemplate",
     "terrace: 1\ntemplates: {huge: {rows: 1, dim: 1}}\nfeatures:\n- {name: a, "
     "table: {use: hug}}\n",
     {"m.yaml:4:26: error: use: no template 'hug'; did you mean 'huge'?"}},
    {"TemplateKey",
     withLines("templates: {huge: {row: 1}}\n"),
     {"templates.huge: unknown key 'row'; did you mean 'rows'?"}},
    {"TemplateOfTheOtherKind",
     "terrace: 1\ntemplates: {t: {rows: 1, dim: 1, pooling: "
     "sum}}\nfeatures:\n- "
     "{name: a, table: {use: t}}\n",
     {"templates.t.pooling: not a key of a table"}},
    {"UnusedTemplateIsChecked",
     withLines("templates: {t: {rows: many}}\n"),
     {"templates.t.rows: expected a whole number"}},
    {"DefaultsKey",
     withLines("defaults: {tables: {dim: 1}}\n"),
     {"defaults: unknown key 'tables'; did you mean 'table'?"}},
    {"CountIsNoNumber",
     "terrace: 1\nfeatures:\n- {name: 'a{i}', count: x, table: {rows: 1, dim: "
     "1}}\n",
     {"count: expected a whole number"}},
    {"CountTooLarge",
     "terrace: 1\nfeatures:\n- {name: 'a{i}', count: 999999999, table: {rows: "
     "1, dim: 1}}\n",
     {"1 to 100000"}},
    {"CountAndList",
     "terrace: 1\nfeatures:\n- {name: 'a{i}', count: 3, table: {rows: [1, 2], "
     "dim: 1}}\n",
     {"m.yaml:3:42: error: a list beside 'count'", "expected 3 values, found "
                                                   "2"}},
    // Head.
    {"HeadKind",
     withLines("head: {kind: xgboost, label: y}\n"),
     {"(allowed: logistic, fm, dlrm)"}},
    {"HeadLabel",
     withLines("head: {kind: fm}\n"),
     {"head: missing key 'label'"}},
    {"HeadDims",
     "terrace: 1\nfeatures:\n- {name: a, table: {rows: 1, dim: 4}}\n- {name: "
     "b, "
     "table: {rows: 1, dim: 8}}\nhead: {kind: fm, label: y}\n",
     {"m.yaml:4:35: error: head 'fm' needs one dim for all features: 'a' has "
      "4, 'b' has 8"}},
    {"HeadOfNone",
     feature("pooling: none") + "head: {kind: logistic, label: y}\n",
     {"'none' is for models without a head"}},
    {"HeadKeys",
     withLines("head: {kind: fm, label: y, top_mlp: [1]}\n"),
     {"head.top_mlp: only with kind: dlrm"}},
    {"HeadDense",
     withLines("head: {kind: fm, label: y}\ndense: [{name: d}]\n"),
     {"reads no dense features"}},
    {"DlrmTop",
     withLines("head: {kind: dlrm, label: y, top_mlp: [4, 2]}\n"),
     {"the last layer has width 1, found 2"}},
    {"DlrmBottom",
     withLines("head: {kind: dlrm, label: y, bottom_mlp: [5], top_mlp: [1]}\n"),
     {"the features' dim, which is 4, found 5"}},
    // Train and data.
    {"EvalEvery",
     withLines("train: {eval_every: 200%}\n"),
     {"train.eval_every: expected a whole number of steps above 0, or a "
      "share"}},
    {"Metric",
     withLines("train: {metrics: [rmse]}\n"),
     {"(allowed: auc, logloss, ne)"}},
    {"MetricTwice",
     withLines("train: {metrics: [auc, auc]}\n"),
     {"'auc' is given twice"}},
    {"CheckpointEvery",
     withLines("train: {checkpoint: {every: 5parsec}}\n"),
     {"unknown unit of time 'parsec'"}},
    {"Schedule",
     withLines("train: {lr_schedule: {end_scale: 0.5}}\n"),
     {"means nothing without decay_steps"}},
    {"Stop", withLines("train: {stop: {auc: 1.5}}\n"), {"at most 1"}},
    {"DataPath",
     withLines("data: {session: s}\n"),
     {"data: missing key 'path'"}},
    {"ListSep",
     withLines("data: {path: x, list_sep: ab}\n"),
     {"expected one character"}},
    {"EvalBoth",
     withLines("data: {path: x, eval: {last: 5, path: y}}\n"),
     {"data.eval: expected either 'last'"}},
    {"EvalAll",
     withLines("data: {path: x, eval: {last: 100%}}\n"),
     {"leaves no row to train on"}},
    {"Shuffle",
     withLines("data: {path: x, shuffle: {seed: 1}}\n"),
     {"missing key 'buffer'"}},
    // Memory, target, plan.
    {"TierKeys",
     withLines("memory: {tiers: [{name: d, size: 1GiB}]}\n"),
     {"unknown key 'size'; did you mean 'capacity'?",
      "missing keys 'kind', 'capacity'"}},
    {"TierKind",
     withLines("memory: {tiers: [{name: d, kind: ssd, capacity: 1GiB}]}\n"),
     {"'ssd' is not known; did you mean 'nvme'?"}},
    {"TierPath",
     withLines("memory: {tiers: [{name: d, kind: nvme, capacity: 1GiB}]}\n"),
     {"missing key 'path'"}},
    {"TierPathOfMemory",
     withLines(
         "memory: {tiers: [{name: d, kind: dram, capacity: 1GiB, path: x}]}\n"),
     {"'dram' is memory and has no path"}},
    {"TierTwice",
     withLines("memory: {tiers: [{name: d, kind: dram, capacity: 1GiB}, {name: "
               "d, kind: dram, capacity: 1GiB}]}\n"),
     {"'d' is declared twice"}},
    {"SizeUnit",
     withLines("memory: {tiers: [{name: d, kind: dram, capacity: 2G}]}\n"),
     {"m.yaml:4:50: error: memory.tiers.d.capacity: unknown unit of size 'G' "
      "in '2G'; did you mean 'GiB' (powers of 1024) or 'GB' (powers of "
      "1000)?"}},
    {"SizeFraction",
     withLines("memory: {tiers: [{name: d, kind: dram, capacity: 0.3B}]}\n"),
     {"a whole number of bytes above 0"}},
    {"SizeHuge",
     withLines(
         "memory: {tiers: [{name: d, kind: dram, capacity: 9999999PiB}]}\n"),
     {"found '9999999PiB'"}},
    {"Workers", withLines("workers: none\n"), {"workers: expected"}},
    {"Arch",
     withLines("target: {arch: x86-64-v2}\n"),
     {"(allowed: x86-64-v3, x86-64-v4)"}},
    {"ArchOfGpu",
     withLines("target: {arch: sm_90}\n"),
     {"it needs device: gpu"}},
    {"GpuArch",
     withLines("target: {device: gpu, arch: sm_50}\n"),
     {"sm_75 and later"}},
    {"GpuNoArch", withLines("target: {device: gpu}\n"), {"missing key 'arch'"}},
    {"Lookahead",
     withLines("plan: {lookahead: 9}\n"),
     {"expected auto or a whole number, 0 to 8, found '9'"}},
    {"PinGlob",
     withLines("memory: {tiers: [{name: d, kind: dram, capacity: 1GiB}]}\n"
               "plan: {place: [{tables: 'b*', home: d}]}\n"),
     {"plan.place 'b*': no table matches", "(tables: a)"}},
    {"PinTier",
     withLines("memory: {tiers: [{name: dram, kind: dram, capacity: 1GiB}]}\n"
               "plan: {place: [{tables: a, home: drma}]}\n"),
     {"no tier 'drma'; did you mean 'dram'?"}},
    {"PinCacheSlower",
     withLines("memory: {tiers: [{name: d, kind: dram, capacity: 1GiB}, {name: "
               "n, kind: nvme, capacity: 1GiB, path: x}]}\n"
               "plan: {place: [{tables: a, home: d, cache: {n: 1KiB}}]}\n"),
     {"is nvme, the slowest kind"}},
    {"PinNothing",
     withLines("plan: {place: [{tables: a}]}\n"),
     {"pins nothing"}},
    {"Together",
     withLines("plan: {together: [[a, b]]}\n"),
     {"plan.together: no table 'b'"}},
    {"TogetherShape",
     withLines("plan: {together: [a]}\n"),
     {"expected a list of lists of table names"}},
};

INSTANTIATE_TEST_SUITE_P(Each, SpecError, ::testing::ValuesIn(cases),
                         [](const ::testing::TestParamInfo<Case> &info) {
                           return std::string(info.param.name);
                         });

TEST(SpecErrors, AllOfAFileInOneGo) {
  Parsed parsed = parse(R"(terrace: 1
seed: x
features:
- {name: a, table: {rows: 10, dmi: 4}}
- {name: b, pooling: avg}
head: {kind: fm, lable: y}
memory: {tiers: [{name: d, kind: dram, capacity: 1GIB}]}
plan: {lookahed: 2}
)");
  EXPECT_FALSE(parsed.spec);
  std::vector<unsigned> lines;
  std::string text = parsed.errors();
  for (const Diagnostic &d : parsed.diagnostics.list())
    lines.push_back(d.loc.line);
  for (unsigned line : {2u, 4u, 5u, 6u, 7u, 8u})
    EXPECT_NE(std::find(lines.begin(), lines.end(), line), lines.end())
        << line << "\n"
        << text;
  // In the order of the file.
  EXPECT_LT(text.find("m.yaml:2:"), text.find("m.yaml:4:"));
  EXPECT_LT(text.find("m.yaml:7:"), text.find("m.yaml:8:"));
}

TEST(SpecErrors, CopiesOfCountReportOnce) {
  Parsed parsed = parse(R"(terrace: 1
features:
- {name: "a{i}", count: 700, table: {rows: 10, dim: zero}, poling: sum}
)");
  EXPECT_EQ(parsed.diagnostics.list().size(), 2u) << parsed.errors();
}

TEST(SpecErrors, UnreadableFile) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parseSpec({"/nonexistent/m.yaml", "", {}}, diagnostics));
  EXPECT_EQ(diagnostics.str(), "/nonexistent/m.yaml: error: cannot read the "
                               "file: No such file or directory\n");
}

TEST(SpecErrors, JsonHasTheSamePlaces) {
  Parsed parsed = parse(withLines("seed: x\n"));
  std::string text;
  llvm::raw_string_ostream os(text);
  os << parsed.diagnostics.toJson();
  EXPECT_NE(text.find("\"line\":4"), std::string::npos) << text;
  EXPECT_NE(text.find("\"column\":7"), std::string::npos) << text;
  EXPECT_NE(text.find("\"severity\":\"error\""), std::string::npos) << text;
}

} // namespace
