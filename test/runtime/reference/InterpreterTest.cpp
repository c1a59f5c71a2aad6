//===- InterpreterTest.cpp - The reference on hand-computed cases ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/reference/Interpreter.h"
#include "ReferencePlans.h"
#include "runtime/core/Hash.h"
#include "runtime/data/BatchReader.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace trc;
using namespace trc::reference;

namespace {

const json sgd = {{"kind", "sgd"}, {"lr", 1.0}};
const json zeros = {{"kind", "constant"}, {"value", 0}};

data::BatchData::Bags bags(std::vector<std::vector<int64_t>> ids,
                           std::vector<float> weights = {}) {
  data::BatchData::Bags b;
  b.offsets = {0};
  for (const auto &bag : ids) {
    b.ids.insert(b.ids.end(), bag.begin(), bag.end());
    b.offsets.push_back(static_cast<int64_t>(b.ids.size()));
  }
  b.weighted = !weights.empty();
  b.weights = std::move(weights);
  return b;
}

data::BatchData batchOf(std::vector<data::BatchData::Bags> features,
                        std::vector<float> labels = {}) {
  data::BatchData b;
  b.samples = static_cast<int64_t>(features[0].offsets.size()) - 1;
  b.features = std::move(features);
  b.labels = std::move(labels);
  return b;
}

std::unique_ptr<Interpreter> make(const json &plan) {
  auto m = Interpreter::create(plan.dump());
  EXPECT_TRUE(m.ok()) << m.takeStatus().message();
  return m.ok() ? std::move(*m) : nullptr;
}

void forward(Interpreter &m, data::BatchData batch) {
  Status s = m.forward(batch.view(true));
  ASSERT_TRUE(s.ok()) << s.message();
}

Matrix matrix(int64_t dim, std::vector<float> values) {
  Matrix m;
  m.dim = dim;
  m.values = std::move(values);
  return m;
}

void backward(Interpreter &m, std::vector<Matrix> grads, float scale = 1,
              double lr = 1) {
  Status s = m.backward(&grads, scale, lr);
  ASSERT_TRUE(s.ok()) << s.message();
}

/// A one-table library whose rows are given by one SGD step: row r, column c
/// becomes values[r][c].
std::unique_ptr<Interpreter>
library(const std::string &pooling, int64_t maxIds, bool weighted,
        const std::vector<std::vector<float>> &values, json optimizer = sgd) {
  int64_t rows = static_cast<int64_t>(values.size());
  int64_t dim = static_cast<int64_t>(values[0].size());
  std::vector<json> features = {featurePlan("f", 0, pooling, maxIds, weighted),
                                featurePlan("writer", 0, "sum", 1)};
  auto m = make(makePlan({tablePlan("t", rows, dim, optimizer, zeros)},
                         features, "", 16));
  std::vector<std::vector<int64_t>> ids, empty;
  std::vector<float> grads;
  for (int64_t r = 0; r < rows; ++r) {
    ids.push_back({r});
    empty.push_back({});
    for (float x : values[static_cast<size_t>(r)])
      grads.push_back(-x);
  }
  forward(*m, batchOf({bags(empty), bags(ids)}));
  int64_t n = pooling == "none" ? 0 : rows;
  backward(*m, {matrix(dim, std::vector<float>(size_t(n * dim), 0)),
                matrix(dim, grads)});
  return m;
}

const std::vector<std::vector<float>> table = {
    {1, -2}, {0.5f, 3}, {-4, 0.25f}, {2, 3}};

} // namespace

TEST(ReferencePooling, Sum) {
  auto m = library("sum", 4, false, table);
  forward(*m, batchOf({bags({{0, 1, 0}, {}, {2}, {3, 3}}),
                       bags({{}, {}, {}, {}})}));
  EXPECT_EQ(m->output(0).values,
            (std::vector<float>{2.5f, -1, 0, 0, -4, 0.25f, 4, 6}));
  std::vector<float> g = {1, 2, 9, 9, 3, 4, 5, 6};
  backward(*m, {matrix(2, g), matrix(2, std::vector<float>(8, 0))});
  EXPECT_EQ(m->table(0).record(0), (std::vector<float>{1 - 2, -2 - 4}));
  EXPECT_EQ(m->table(0).record(1), (std::vector<float>{0.5f - 1, 3 - 2}));
  EXPECT_EQ(m->table(0).record(3), (std::vector<float>{2 - 10, 3 - 12}));
}

TEST(ReferencePooling, WeightedSumWithNegativeWeights) {
  auto m = library("sum", 4, true, table);
  forward(*m, batchOf({bags({{0, 1}, {2}, {}, {}}, {2, -0.5f, 3}),
                       bags({{}, {}, {}, {}})}));
  EXPECT_EQ(m->output(0).values,
            (std::vector<float>{1.75f, -5.5f, -12, 0.75f, 0, 0, 0, 0}));
  std::vector<float> g = {1, 1, 1, 1, 0, 0, 0, 0};
  backward(*m, {matrix(2, g), matrix(2, std::vector<float>(8, 0))});
  EXPECT_EQ(m->table(0).record(0), (std::vector<float>{-1, -4}));
  EXPECT_EQ(m->table(0).record(1), (std::vector<float>{1, 3.5f}));
  EXPECT_EQ(m->table(0).record(2), (std::vector<float>{-7, -2.75f}));
}

TEST(ReferencePooling, MeanDividesByTheCount) {
  for (bool weighted : {false, true}) {
    auto m = library("mean", 4, weighted, table);
    std::vector<float> w =
        weighted ? std::vector<float>{1, 2} : std::vector<float>{};
    forward(*m,
            batchOf({bags({{0, 1}, {}, {}, {}}, w), bags({{}, {}, {}, {}})}));
    float second = weighted ? 2 : 1;
    EXPECT_EQ(m->output(0).values[0], (1 + second * 0.5f) / 2);
    std::vector<float> g = {8, 0, 0, 0, 0, 0, 0, 0};
    backward(*m, {matrix(2, g), matrix(2, std::vector<float>(8, 0))});
    EXPECT_EQ(m->table(0).record(0)[0], 1 - 4.0f);
    EXPECT_EQ(m->table(0).record(1)[0], 0.5f - 4 * second);
  }
}

TEST(ReferencePooling, WeightedMeanDividesByTheWeights) {
  auto m = library("weighted_mean", 4, true, table);
  forward(*m, batchOf({bags({{0, 1}, {}, {}, {}}, {1, 3}),
                       bags({{}, {}, {}, {}})}));
  EXPECT_EQ(m->output(0).values[0], (1 + 1.5f) / 4);
  std::vector<float> g = {4, 0, 0, 0, 0, 0, 0, 0};
  backward(*m, {matrix(2, g), matrix(2, std::vector<float>(8, 0))});
  EXPECT_EQ(m->table(0).record(1)[0], 0.5f - 3);
  data::BatchData zero =
      batchOf({bags({{}, {0, 1}, {}, {}}, {1, -1}), bags({{}, {}, {}, {}})});
  Status s = m->forward(zero.view(true));
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.get()->sample, 1);
}

TEST(ReferencePooling, SqrtnDividesByTheRoot) {
  auto m = library("sqrtn", 4, false, table);
  forward(*m,
          batchOf({bags({{3, 3, 3, 3}, {}, {}, {}}), bags({{}, {}, {}, {}})}));
  EXPECT_EQ(m->output(0).values[0], 4.0f); // 8 / sqrt(4)
  auto w = library("sqrtn", 4, true, table);
  forward(*w, batchOf({bags({{3, 0}, {}, {}, {}}, {3, -4}),
                       bags({{}, {}, {}, {}})}));
  EXPECT_EQ(w->output(0).values[0], (6.0f - 4.0f) / 5.0f);
}

TEST(ReferencePooling, MaxGivesTheGradientToTheFirstWinner) {
  auto m = library("max", 4, false, table);
  // Columns: row 3 wins column 0 (2), row 1 column 1 (3, before row 3's 3).
  forward(*m,
          batchOf({bags({{0, 1, 3}, {2}, {}, {}}), bags({{}, {}, {}, {}})}));
  EXPECT_EQ(m->output(0).values,
            (std::vector<float>{2, 3, -4, 0.25f, 0, 0, 0, 0}));
  std::vector<float> g = {1, 1, 1, 1, 9, 9, 9, 9};
  backward(*m, {matrix(2, g), matrix(2, std::vector<float>(8, 0))});
  EXPECT_EQ(m->table(0).record(0), (std::vector<float>{1, -2}));
  EXPECT_EQ(m->table(0).record(1), (std::vector<float>{0.5f, 2}));
  EXPECT_EQ(m->table(0).record(3), (std::vector<float>{1, 3}));
}

TEST(ReferencePooling, NoneYieldsARowPerId) {
  auto m = library("none", 4, false, table);
  forward(*m, batchOf({bags({{3, 0}, {}, {3}, {}}), bags({{}, {}, {}, {}})}));
  EXPECT_EQ(m->output(0).values, (std::vector<float>{2, 3, 1, -2, 2, 3}));
  backward(
      *m, {matrix(2, {1, 0, 0, 1, 2, 0}), matrix(2, std::vector<float>(8, 0))});
  EXPECT_EQ(m->table(0).record(3), (std::vector<float>{2 - 3, 3}));
  EXPECT_EQ(m->table(0).record(0), (std::vector<float>{1, -3}));
}

TEST(ReferenceDedup, EqualsTheStepWithoutIt) {
  json init = {{"kind", "uniform"}, {"low", -1}, {"high", 1}};
  json adagrad = {{"kind", "adagrad"}, {"lr", 0.1}, {"eps", 1e-8}};
  for (const char *pooling : {"sum", "mean", "sqrtn", "max", "none"}) {
    bool weighted = std::string(pooling) == "sum";
    std::vector<json> tables = {tablePlan("t", 6, 3, adagrad, init)};
    std::vector<json> features = {featurePlan("a", 0, pooling, 4, weighted),
                                  featurePlan("b", 0, "mean", 4),
                                  featurePlan("c", 0, "sum", 4)};
    auto plain = make(makePlan(tables, features, "", 32));
    auto deduped = make(makePlan(tables, features, "", 32, {0, 1}));
    SplitMix r(4);
    for (int step = 0; step < 5; ++step) {
      std::vector<std::vector<int64_t>> ids[3];
      std::vector<float> weights;
      for (int s = 0; s < 32; ++s)
        for (auto &f : ids) {
          f.emplace_back();
          for (uint64_t i = r.below(3); i > 0; --i)
            f.back().push_back(static_cast<int64_t>(r.below(3)));
        }
      for (const auto &bag : ids[0])
        for (size_t i = 0; i < bag.size(); ++i)
          weights.push_back(r.below(2) ? 1.0f : 0.5f);
      data::BatchData::Bags first =
          bags(ids[0], weighted ? weights : std::vector<float>());
      first.weighted = weighted;
      data::BatchData b = batchOf({first, bags(ids[1]), bags(ids[2])});
      forward(*plain, b);
      forward(*deduped, b);
      std::vector<Matrix> grads;
      for (size_t f = 0; f < 3; ++f) {
        ASSERT_EQ(plain->output(f).values, deduped->output(f).values);
        grads.push_back(matrix(3, plain->output(f).values));
        for (float &x : grads.back().values)
          x = static_cast<float>(r.unit() - 0.5);
      }
      backward(*plain, grads);
      backward(*deduped, grads);
      for (int64_t row = 0; row < 6; ++row)
        ASSERT_EQ(plain->table(0).record(row), deduped->table(0).record(row))
            << pooling << " step " << step << " row " << row;
    }
  }
}

TEST(ReferenceOptimizer, HandComputedSteps) {
  std::vector<std::vector<float>> two = {{0, 0}};
  auto step = [&](json optimizer, float g0, float g1, double lr) {
    auto m = make(makePlan({tablePlan("t", 1, 2, optimizer, zeros)},
                           {featurePlan("f", 0, "sum", 1)}, "", 4));
    forward(*m, batchOf({bags({{0}})}));
    backward(*m, {matrix(2, {g0, g1})}, 1, lr);
    return m->table(0).record(0);
  };
  EXPECT_EQ(step({{"kind", "sgd"}, {"lr", 0.5}}, 1, -2, 0.5),
            (std::vector<float>{-0.25f, 0.5f}));
  std::vector<float> ada =
      step({{"kind", "adagrad"}, {"lr", 0.5}, {"eps", 0.5}}, 3, -4, 1);
  EXPECT_EQ(ada,
            (std::vector<float>{-0.5f * (3 / 3.5f), 0.5f * (4 / 4.5f), 9, 16}));
  std::vector<float> row =
      step({{"kind", "rowwise_adagrad"}, {"lr", 0.5}, {"eps", 0.0}}, 1, -7, 1);
  EXPECT_EQ(row, (std::vector<float>{-0.1f, 0.7f, 25})); // mean 25, root 5
  std::vector<float> adam = step({{"kind", "adam"},
                                  {"lr", 0.25},
                                  {"eps", 0.0},
                                  {"beta1", 0.5},
                                  {"beta2", 0.75}},
                                 2, -4, 1);
  // m = g/2, v = g^2/4, s = lr sqrt(1/4)/(1/2) = lr: one step of lr.
  EXPECT_EQ(adam, (std::vector<float>{-0.25f, 0.25f, 1, -2, 1, 4}));
}

TEST(ReferenceOptimizer, HandComputedStepsOfTheRest) {
  using Floats = std::vector<float>;
  auto step = [&](json optimizer, float g0, float g1, double lrScale = 1,
                  double initial = 0) {
    optimizer["weight_decay"] = optimizer.value("weight_decay", 0.0);
    auto m =
        make(makePlan({tablePlan("t", 1, 2, optimizer,
                                 {{"kind", "constant"}, {"value", initial}})},
                      {featurePlan("f", 0, "sum", 1)}, "", 4));
    forward(*m, batchOf({bags({{0}})}));
    backward(*m, {matrix(2, {g0, g1})}, 1, lrScale);
    return m->table(0).record(0);
  };
  EXPECT_EQ(step({{"kind", "momentum_sgd"}, {"lr", 0.5}, {"momentum", 0.5}}, 1,
                 -2, 0.5),
            (Floats{-0.25f, 0.5f, 1, -2}));
  // The norm is 10, twice as long as it may be.
  EXPECT_EQ(step({{"kind", "sgd"}, {"lr", 1.0}, {"clip_norm", 5.0}}, 6, -8),
            (Floats{-3, 4}));
  EXPECT_EQ(step({{"kind", "sgd"}, {"lr", 1.0}, {"clip_norm", 10.0}}, 6, -8),
            (Floats{-6, 8}));
  // 2 * (1 - 0.5 * 0.5 * 0.5) - 0.25 * 1: the schedule scales the decay too.
  EXPECT_EQ(step({{"kind", "sgd"}, {"lr", 0.5}, {"decoupled_decay", 0.5}}, 1, 0,
                 0.5, 2),
            (Floats{1.5f, 1.75f}));
  json moments = {{"lr", 0.25}, {"eps", 0.0}, {"beta1", 0.5}, {"beta2", 0.75}};
  // m = g/2, v = 25/4, both as large as their bias corrections make them g, 25.
  moments["kind"] = "partial_rowwise_adam";
  EXPECT_EQ(step(moments, 5, -5), (Floats{-0.25f, 0.25f, 2.5f, -2.5f, 6.25f}));
  // Directions of 1 and -1; a row of zeros takes them as they are.
  moments["kind"] = "lamb";
  EXPECT_EQ(step(moments, 2, -4), (Floats{-0.25f, 0.25f, 1, -2, 1, 4}));
  // The row is three times as long as the direction.
  EXPECT_EQ(step(moments, 2, -4, 1, 3), (Floats{2.25f, 3.75f, 1, -2, 1, 4}));
  json ftrl = {
      {"kind", "ftrl"}, {"lr", 0.5}, {"beta", 1.0}, {"l1", 1.0}, {"l2", 2.0}};
  // z = g; |z| below l1 is 0; (beta + root) / lr + l2 = 10.
  EXPECT_EQ(step(ftrl, 3, -0.5f), (Floats{-0.2f, 0, 3, -0.5f, 9, 0.25f}));
  EXPECT_EQ(step(ftrl, 3, -3, 0.5), (Floats{-0.05f, 0.05f, 1.5f, -1.5f, 9, 9}));
  // A column without gradient keeps its initial weight.
  EXPECT_EQ(step(ftrl, 0, 0, 1, 0.5), (Floats{0.5f, 0.5f, 0, 0, 0, 0}));
}

TEST(ReferenceOptimizer, WeightDecayAndGradScale) {
  json o = {{"kind", "sgd"}, {"lr", 1.0}, {"weight_decay", 0.5}};
  auto m = make(
      makePlan({tablePlan("t", 2, 1, o, {{"kind", "constant"}, {"value", 2}})},
               {featurePlan("f", 0, "sum", 1)}, "", 4));
  forward(*m, batchOf({bags({{0}})}));
  backward(*m, {matrix(1, {8})}, 0.25f);
  EXPECT_EQ(m->table(0).record(0)[0], 2 - (0.25f * 8 + 0.5f * 2));
  EXPECT_EQ(m->table(0).record(1)[0], 2); // without an id: no decay
  EXPECT_EQ(m->table(0).touched(), std::vector<int64_t>{0});
}

TEST(ReferenceOptimizer, RowsumIsTheTreeOfDocsNumerics) {
  const int64_t dim = 70;
  json o = {{"kind", "rowwise_adagrad"}, {"lr", 0.1}, {"eps", 1e-8}};
  auto m = make(makePlan({tablePlan("t", 1, dim, o, zeros)},
                         {featurePlan("f", 0, "sum", 1)}, "", 4));
  std::vector<float> g;
  SplitMix r(8);
  for (int64_t c = 0; c < dim; ++c)
    g.push_back(static_cast<float>(r.unit()));
  forward(*m, batchOf({bags({{0}})}));
  backward(*m, {matrix(dim, g)});
  float lane[32];
  for (size_t l = 0; l < 32; ++l) {
    lane[l] = g[l] * g[l];
    lane[l] = std::fma(g[l + 32], g[l + 32], lane[l]);
    if (l + 64 < static_cast<size_t>(dim))
      lane[l] = std::fma(g[l + 64], g[l + 64], lane[l]);
  }
  for (size_t w : {16, 8, 4, 2, 1})
    for (size_t l = 0; l < w; ++l)
      lane[l] += lane[l + w];
  EXPECT_EQ(m->table(0).record(0)[dim], lane[0] / 70.0f);
}

TEST(ReferenceUpdate, SharedTableMeetsItsOptimizerOnce) {
  json o = {{"kind", "adagrad"}, {"lr", 1.0}, {"eps", 0.0}};
  auto m = make(makePlan(
      {tablePlan("t", 3, 1, o, zeros)},
      {featurePlan("a", 0, "sum", 2), featurePlan("b", 0, "sum", 2)}, "", 4));
  forward(*m, batchOf({bags({{0, 0}, {1}}), bags({{0}, {0}})}));
  backward(*m, {matrix(1, {1, 2}), matrix(1, {3, 4})});
  EXPECT_EQ(m->table(0).record(0)[1], 81.0f); // (1 + 1 + 3 + 4)^2
  EXPECT_EQ(m->table(0).record(1)[1], 4.0f);
}

TEST(ReferenceCheck, BadInputChangesNothing) {
  auto m = library("sum", 2, true, table);
  auto expect = [&](data::BatchData::Bags f, int64_t sample, int64_t position,
                    int64_t value) {
    f.weighted = true;
    if (f.weights.empty())
      f.weights.assign(f.ids.size(), 1.0f);
    data::BatchData b = batchOf({f, bags({{}, {}})});
    Status s = m->forward(b.view(true));
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.code(), TRC_BAD_INPUT);
    EXPECT_EQ(s.get()->sample, sample) << s.message();
    EXPECT_EQ(s.get()->position, position) << s.message();
    EXPECT_EQ(s.get()->value, value) << s.message();
    EXPECT_EQ(s.get()->feature, "f");
  };
  expect(bags({{0}, {1, 4}}), 1, 1, 4);
  expect(bags({{-1}, {}}), 0, 0, -1);
  expect(bags({{0}, {0, 1, 2}}), 1, 2, 2); // max_ids 2
  expect(bags({{}, {0}}, {NAN}), 1, 0, 0x7fc00000);
  data::BatchData::Bags f = bags({{0}, {1}});
  f.offsets = {0, 3, 2};
  expect(f, 1, -1, 3);
  f.offsets = {1, 1, 2};
  expect(f, 0, -1, 1);
  f.offsets = {0, 1, 1};
  expect(f, 2, -1, 1);
  EXPECT_EQ(m->step(), 1);
}

TEST(ReferenceCheck, DropAndOverflow) {
  json plan = makePlan({tablePlan("t", 10, 1, sgd, zeros)},
                       {featurePlan("first", 0, "none", 2, false, "keep_first"),
                        featurePlan("last", 0, "none", 2, false, "keep_last"),
                        featurePlan("m", 0, "mean", 3)},
                       "", 4);
  plan["on_bad_id"] = "drop";
  auto m = make(plan);
  // Overflow comes first, then bad ids go.
  forward(*m, batchOf({bags({{1, 99, 3}}), bags({{1, 99, 3}}),
                       bags({{5, -1, 5}})}));
  EXPECT_EQ(m->output(0).values.size(), 1u);
  EXPECT_EQ(m->output(1).values.size(), 1u);
  EXPECT_EQ(m->droppedIds(), 3);
  backward(*m, {matrix(1, {1}), matrix(1, {2}), matrix(1, {8})});
  EXPECT_EQ(m->table(0).touched(), (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(m->table(0).record(1)[0], -1.0f);
  EXPECT_EQ(m->table(0).record(3)[0], -2.0f);
  EXPECT_EQ(m->table(0).record(5)[0], -8.0f); // 2 x 8 / 2: dropped leave n
}

TEST(ReferenceCheck, BadGradientsAreAnErrorOrSkipped) {
  for (bool skip : {false, true}) {
    json plan = makePlan({tablePlan("t", 2, 1, sgd, zeros)},
                         {featurePlan("f", 0, "sum", 1)}, "", 4);
    plan["on_bad_grad"] = skip ? "skip" : "error";
    auto m = make(plan);
    forward(*m, batchOf({bags({{0}, {1}})}));
    std::vector<Matrix> g = {matrix(1, {1, INFINITY})};
    Status s = m->backward(&g, 1, 1);
    EXPECT_EQ(s.ok(), skip);
    EXPECT_EQ(m->skippedSteps(), skip ? 1 : 0);
    EXPECT_EQ(m->step(), 0);
    EXPECT_TRUE(m->table(0).touched().empty());
  }
}

TEST(ReferenceHash, TranslatesIds) {
  auto m = make(makePlan({tablePlan("t", 5, 1, sgd, zeros, "hash")},
                         {featurePlan("f", 0, "sum", 1)}, "", 4));
  forward(*m, batchOf({bags({{-17}})}));
  backward(*m, {matrix(1, {1})});
  EXPECT_EQ(m->table(0).touched(), std::vector<int64_t>{hashRow(-17, 5)});
}

TEST(ReferenceHead, LogisticStepByHand) {
  auto m = make(makePlan({tablePlan("t", 4, 1, sgd, zeros)},
                         {featurePlan("f", 0, "sum", 1)}, "logistic", 4));
  forward(*m, batchOf({bags({{0}, {1}})}, {1, 0}));
  EXPECT_EQ(m->probabilities(), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_DOUBLE_EQ(m->loss(), std::log(2.0));
  Status s = m->backward(nullptr, 1, 1);
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(m->table(0).record(0)[0], 0.25f); // dz = (0.5 - 1) / 2
  EXPECT_EQ(m->table(0).record(1)[0], -0.25f);
  EXPECT_EQ(m->head().bias, 0.0f); // the two cancel
  EXPECT_EQ(m->step(), 1);
  data::BatchData unlabelled = batchOf({bags({{0}})});
  ASSERT_TRUE(m->forward(unlabelled.view(true)).ok());
  EXPECT_FALSE(m->backward(nullptr, 1, 1).ok());
}

TEST(ReferenceProgram, BrokenProgramsAreErrors) {
  json good = makePlan({tablePlan("t", 2, 1, sgd, zeros)},
                       {featurePlan("f", 0, "sum", 1)}, "", 4);
  auto refused = [](json plan, const char *word) {
    auto m = Interpreter::create(plan.dump());
    ASSERT_FALSE(m.ok());
    std::string text = m.takeStatus().message();
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  json plan = good;
  plan.erase("reference");
  refused(plan, "reference");
  plan = good;
  plan["reference"]["ops"][0]["op"] = "transmogrify";
  refused(plan, "transmogrify");
  plan = good;
  plan["reference"]["ops"][1]["args"][0] = "%nowhere";
  refused(plan, "%nowhere");
  plan = good;
  plan["tables"][0]["optimizer"]["kind"] = "lion";
  refused(plan, "lion");
  EXPECT_FALSE(Interpreter::create("{").ok());
}
