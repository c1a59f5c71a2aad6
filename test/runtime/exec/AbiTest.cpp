//===- AbiTest.cpp - Bad input and wrong calls through the C ABI ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every kind of bad input names its place and leaves the tables as they were;
// calls out of order are statuses.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Element.h"
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace toy;
using trc::Element;
using trc::SplitMix;

namespace {

Model weighted() {
  Model m;
  m.tables = {{"a", 20, 4, sgd()}, {"h", 30, 4, sgd(), true}};
  m.features = {{"x", 0, "sum", 3},
                {"w", 0, "weighted_mean", 3, true},
                {"h", 1, "sum", 2}};
  m.batch = 4;
  m.cached = {true, false};
  return m;
}

/// Three samples that are fine.
Batch good() {
  Batch b;
  b.samples = 3;
  b.features.resize(3);
  for (int s = 0; s < 3; ++s) {
    b.features[0].add({1, 2});
    b.features[1].add({3, 4}, true, {0.5f, 1.5f});
    b.features[2].add({-7});
  }
  return b;
}

struct Bad {
  const char *name;
  std::function<void(Batch &)> spoil;
  const char *feature;
  int64_t sample, position, value;
};

int64_t bits(float x) {
  uint32_t b;
  std::memcpy(&b, &x, 4);
  return b;
}

std::vector<Bad> badTable() {
  float nan = std::numeric_limits<float>::quiet_NaN();
  float inf = std::numeric_limits<float>::infinity();
  return {
      {"negative id", [](Batch &b) { b.features[0].ids[3] = -1; }, "x", 1, 1,
       -1},
      {"id = rows", [](Batch &b) { b.features[0].ids[4] = 20; }, "x", 2, 0, 20},
      {"huge id", [](Batch &b) { b.features[1].ids[0] = 1ll << 62; }, "w", 0, 0,
       1ll << 62},
      {"offset starts late", [](Batch &b) { b.features[0].offsets[0] = 1; },
       "x", 0, -1, 1},
      {"offset decreases", [](Batch &b) { b.features[0].offsets[2] = 1; }, "x",
       1, -1, 1},
      {"offset past the end", [](Batch &b) { b.features[0].offsets[3] = 7; },
       "x", 2, -1, 7},
      {"offsets end early", [](Batch &b) { b.features[0].offsets[3] = 5; }, "x",
       3, -1, 5},
      {"bag too long",
       [](Batch &b) {
         b.features[2].ids = {1, 2, 3, 4, 5};
         b.features[2].offsets = {0, 1, 2, 5};
       },
       "h", 2, 2, 5},
      {"NaN weight", [nan](Batch &b) { b.features[1].weights[3] = nan; }, "w",
       1, 1, bits(nan)},
      {"infinite weight", [inf](Batch &b) { b.features[1].weights[0] = inf; },
       "w", 0, 0, bits(inf)},
      {"weights sum to 0",
       [](Batch &b) {
         b.features[1].weights[2] = 1;
         b.features[1].weights[3] = -1;
       },
       "w", 1, 0, 0},
  };
}

class AbiTest : public ::testing::Test {
protected:
  Folder folder;
};

} // namespace

TEST_F(AbiTest, BadInputNamesItsPlaceAndAppliesNothing) {
  Model m = weighted();
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s")) << s.error.message;
  auto train = [&](Batch batch) {
    trc_ticket ticket = 0;
    ASSERT_EQ(TRC_OK, s.submit(batch, ticket)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.forward(ticket)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.backward(ticket, gradientsFor(s)));
  };
  train(good());
  auto before = s.dump("a", 20, 4, {});
  for (const Bad &bad : badTable()) {
    SCOPED_TRACE(bad.name);
    Batch b = good();
    bad.spoil(b);
    Batch copy = b;
    // A good batch on each side: it must not suffer.
    trc_ticket first = 0, ticket = 0, last = 0;
    Batch g1 = good(), g2 = good();
    ASSERT_EQ(TRC_OK, s.submit(g1, first));
    trc_status status = s.submit(b, ticket);
    trc_error found = s.error;
    ASSERT_EQ(TRC_OK, s.submit(g2, last)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.forward(first)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.release(first));
    if (status == TRC_OK) {
      status = s.forward(ticket);
      found = s.error;
    } else {
      EXPECT_EQ(0u, ticket);
    }
    EXPECT_EQ(TRC_BAD_INPUT, status);
    EXPECT_STREQ(bad.feature, found.feature);
    EXPECT_EQ(bad.sample, found.sample);
    EXPECT_EQ(bad.position, found.position);
    EXPECT_EQ(bad.value, found.value);
    EXPECT_NE(nullptr, std::strstr(found.message, bad.feature));
    // The caller's buffers are as they were.
    for (size_t f = 0; f < 3; ++f) {
      EXPECT_EQ(copy.features[f].ids, b.features[f].ids);
      EXPECT_EQ(copy.features[f].offsets, b.features[f].offsets);
    }
    ASSERT_EQ(TRC_OK, s.forward(last)) << s.error.message;
    ASSERT_EQ(TRC_OK, s.release(last));
    EXPECT_EQ(before, s.dump("a", 20, 4, {}));
  }
  EXPECT_EQ(1, s.info().step);
  EXPECT_EQ(TRC_OK, s.close());
}

TEST_F(AbiTest, WeightsThatNothingCanBeDividedBy) {
  Model m;
  m.tables = {{"a", 20, 4, sgd()}};
  m.features = {{"w", 0, "weighted_mean", 3, true}, {"q", 0, "sqrtn", 3, true}};
  m.batch = 4;
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s")) << s.error.message;
  const float inf = std::numeric_limits<float>::infinity();
  struct Case {
    std::vector<float> mean, root;
    const char *feature; // null: fine
    float divisor;
  };
  for (const Case &c :
       std::vector<Case>{{{1, 2}, {1, 2}, nullptr, 0},
                         {{1, -1}, {1, -1}, "w", 0},
                         {{3e38f, 3e38f}, {1, 1}, "w", inf},
                         {{1, 0}, {0, 0}, "q", 0},
                         {{1, 0}, {1e-30f, 0}, "q", 0}, // the square underflows
                         {{1, 0}, {-1e30f, 0}, "q", inf},
                         {{}, {}, nullptr, 0}}) {
    Batch b;
    b.samples = 2;
    b.features.resize(2);
    std::vector<int64_t> ids;
    for (size_t i = 0; i < c.mean.size(); ++i)
      ids.push_back(static_cast<int64_t>(i) + 3);
    b.features[0].add({7}, true, {1});
    b.features[1].add({7}, true, {1});
    b.features[0].add(ids, true, c.mean);
    b.features[1].add(ids, true, c.root);
    trc_ticket t = 0;
    ASSERT_EQ(TRC_OK, s.submit(b, t)) << s.error.message;
    trc_status status = s.forward(t);
    if (!c.feature) {
      EXPECT_EQ(TRC_OK, status) << s.error.message;
      EXPECT_EQ(TRC_OK, s.release(t));
      continue;
    }
    EXPECT_EQ(TRC_BAD_INPUT, status);
    EXPECT_STREQ(c.feature, s.error.feature) << s.error.message;
    EXPECT_EQ(1, s.error.sample);
    EXPECT_EQ(bits(c.divisor), s.error.value);
  }
  EXPECT_EQ(0, s.info().step);
}

TEST_F(AbiTest, DropSkipsBadIdsAndCounts) {
  Model m = weighted();
  m.dropBadIds = true;
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  Batch all = good(), some = good();
  all.features[0].ids = {1, 99, -5, 2, 1, 2};
  some.features[0].ids = {1, 2, 1, 2};
  some.features[0].offsets = {0, 1, 2, 4};
  trc_ticket a = 0, b = 0;
  ASSERT_EQ(TRC_OK, s.submit(all, a));
  ASSERT_EQ(TRC_OK, s.forward(a)) << s.error.message;
  std::vector<float> dropped = s.outputs[0]->values;
  ASSERT_EQ(TRC_OK, s.release(a));
  ASSERT_EQ(TRC_OK, s.submit(some, b));
  ASSERT_EQ(TRC_OK, s.forward(b));
  EXPECT_EQ(dropped, s.outputs[0]->values);
  EXPECT_EQ(2u, s.stats()["dropped_ids"].get<uint64_t>());
}

TEST_F(AbiTest, BadGradientsAreFoundBeforeTheStep) {
  for (bool skip : {false, true}) {
    Model m = weighted();
    m.skipBadGrads = skip;
    Artifact artifact(m);
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, folder / (skip ? "t" : "s")));
    Batch b = good();
    trc_ticket ticket = 0;
    auto before = s.dump("a", 20, 4, {});
    ASSERT_EQ(TRC_OK, s.submit(b, ticket));
    ASSERT_EQ(TRC_OK, s.forward(ticket));
    auto grads = gradientsFor(s);
    grads[1][6] = std::numeric_limits<float>::infinity(); // sample 1, column 2
    trc_status status = s.backward(ticket, grads);
    if (skip) {
      EXPECT_EQ(TRC_OK, status);
      EXPECT_EQ(1u, s.stats()["skipped_gradients"].get<uint64_t>());
    } else {
      EXPECT_EQ(TRC_BAD_INPUT, status);
      EXPECT_STREQ("w", s.error.feature);
      EXPECT_EQ(1, s.error.sample);
      EXPECT_EQ(2, s.error.position);
    }
    EXPECT_EQ(before, s.dump("a", 20, 4, {}));
    EXPECT_EQ(0, s.info().step);
    EXPECT_EQ(TRC_OUT_OF_ORDER, s.backward(ticket, grads)); // it is over
  }
}

TEST_F(AbiTest, OrderOfCalls) {
  Artifact artifact(weighted());
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  EXPECT_EQ(TRC_OUT_OF_ORDER, s.forward(0));
  EXPECT_EQ(TRC_OUT_OF_ORDER, s.forward(1));
  Batch a = good(), b = good();
  trc_ticket ta = 0, tb = 0;
  ASSERT_EQ(TRC_OK, s.submit(a, ta));
  ASSERT_EQ(TRC_OK, s.submit(b, tb));
  EXPECT_EQ(TRC_OUT_OF_ORDER, s.forward(tb));
  EXPECT_EQ(TRC_OUT_OF_ORDER, s.release(tb));
  std::vector<std::vector<float>> none(3);
  EXPECT_EQ(TRC_OUT_OF_ORDER, s.backward(ta, none)); // no forward yet
  ASSERT_EQ(TRC_OK, s.forward(ta));
  EXPECT_EQ(TRC_OUT_OF_ORDER, s.forward(ta));
  int64_t row = 0;
  float out[4];
  EXPECT_EQ(TRC_OUT_OF_ORDER,
            trc_read_rows(s.get(), "a", &row, 1, out, &s.error));
  EXPECT_EQ(TRC_OUT_OF_ORDER, trc_checkpoint(s.get(), nullptr, 0, 1, &s.error));
  EXPECT_EQ(TRC_BAD_ARGUMENT, s.backward(ta, {})); // wrong count; still open
  ASSERT_EQ(TRC_OK, s.backward(ta, gradientsFor(s))) << s.error.message;
  EXPECT_EQ(TRC_OUT_OF_ORDER, s.release(ta));
  ASSERT_EQ(TRC_OK, s.release(tb)); // without forward
  EXPECT_EQ(TRC_OK, trc_read_rows(s.get(), "a", &row, 1, out, &s.error));
  EXPECT_EQ(TRC_NOT_FOUND, trc_read_rows(s.get(), "b", &row, 1, out, &s.error));
  row = 20;
  EXPECT_EQ(TRC_NOT_FOUND, trc_read_rows(s.get(), "a", &row, 1, out, &s.error));
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_submit(s.get(), nullptr, &ta, &s.error));
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_describe(nullptr, nullptr, &s.error));
}

/// Against the derivative in f64, of each pooling that takes weights.
TEST_F(AbiTest, GradientsOfWeights) {
  for (const char *pooling : {"sum", "mean", "weighted_mean", "sqrtn"})
    for (bool dedup : {false, true}) {
      SCOPED_TRACE(std::string(pooling) + (dedup ? ", dedup" : ""));
      Model model = weighted();
      model.features[1].pooling = pooling;
      model.features[1].dedup = dedup;
      Artifact artifact(model);
      Session s;
      ASSERT_EQ(TRC_OK,
                s.open(artifact, folder / (pooling + std::to_string(dedup))));
      std::vector<float> rows = s.dump("a", 20, 4, {})[0];
      Batch b = good();
      const float scale = 2;
      trc_ticket t = 0;
      ASSERT_EQ(TRC_OK, s.submit(b, t));
      ASSERT_EQ(TRC_OK, s.forward(t));
      auto grads = gradientsFor(s);
      std::vector<float> got(6, -1);
      float *none[3] = {got.data(), nullptr, nullptr};
      EXPECT_EQ(TRC_BAD_ARGUMENT, s.backward(t, grads, scale, none));
      EXPECT_NE(std::string(s.error.message).find("'x', which has no weights"),
                std::string::npos)
          << s.error.message;
      float *to[3] = {nullptr, got.data(), nullptr};
      ASSERT_EQ(TRC_OK, s.backward(t, grads, scale, to)) << s.error.message;
      // The gradient times the output of a bag whose weights are w.
      auto loss = [&](int sample, double w0, double w1) {
        double sum = 0, root = std::sqrt(w0 * w0 + w1 * w1);
        double by = *pooling == 'm'     ? 2
                    : *pooling == 'w'   ? w0 + w1
                    : pooling[1] == 'q' ? root
                                        : 1;
        for (int c = 0; c < 4; ++c)
          sum += double(scale) * grads[1][size_t(sample * 4 + c)] *
                 (w0 * rows[3 * 4 + size_t(c)] + w1 * rows[4 * 4 + size_t(c)]) /
                 by;
        return sum;
      };
      for (int sample = 0; sample < 3; ++sample) {
        const double h = 1e-5, w[2] = {0.5, 1.5};
        double d0 =
            (loss(sample, w[0] + h, w[1]) - loss(sample, w[0] - h, w[1])) /
            (2 * h);
        double d1 =
            (loss(sample, w[0], w[1] + h) - loss(sample, w[0], w[1] - h)) /
            (2 * h);
        EXPECT_NEAR(got[size_t(sample * 2)], d0, 1e-6);
        EXPECT_NEAR(got[size_t(sample * 2 + 1)], d1, 1e-6);
      }
      ASSERT_EQ(TRC_OK, s.close());
    }
}

// Flags of tomorrow are refused, and older callers' structs have none.
TEST_F(AbiTest, FlagsOfABatch) {
  Artifact artifact(weighted());
  Session session;
  ASSERT_EQ(TRC_OK, session.open(artifact, folder / "s"));
  Batch batch = good();
  trc_batch abi = *batch.abi();
  trc_ticket ticket = 0;
  for (auto [flags, reserved] : {std::pair<uint32_t, uint32_t>{2, 0}, {0, 1}}) {
    abi.flags = flags;
    abi.reserved = reserved;
    EXPECT_EQ(TRC_BAD_ARGUMENT,
              trc_submit(session.get(), &abi, &ticket, &session.error));
    EXPECT_NE(std::string(session.error.message).find("flags"),
              std::string::npos)
        << session.error.message;
  }
  abi.struct_size = offsetof(trc_batch, flags);
  ASSERT_EQ(TRC_OK, trc_submit(session.get(), &abi, &ticket, &session.error))
      << session.error.message;
  ASSERT_EQ(TRC_OK, trc_release(session.get(), ticket, &session.error));
}

TEST_F(AbiTest, TooManyBatchesWouldBlock) {
  Artifact artifact(weighted());
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  std::vector<trc_ticket> open;
  trc_status status = TRC_OK;
  while (status == TRC_OK && open.size() < 100) {
    Batch b = good();
    trc_ticket t = 0;
    status = s.submit(b, t);
    if (status == TRC_OK)
      open.push_back(t);
  }
  EXPECT_EQ(TRC_WOULD_BLOCK, status);
  EXPECT_EQ(4u, open.size()); // the depth of the ingest ring
  for (trc_ticket t : open) {
    ASSERT_EQ(TRC_OK, s.forward(t));
    ASSERT_EQ(TRC_OK, s.backward(t, gradientsFor(s)));
  }
  EXPECT_EQ(4, s.info().step);
}

TEST_F(AbiTest, OptionsOutOfRangeAreRefused) {
  Artifact artifact(weighted());
  Session s;
  EXPECT_EQ(TRC_BAD_ARGUMENT, s.open(artifact, folder / "s", TRC_TRAIN, 0xfe));
  EXPECT_EQ(TRC_BAD_ARGUMENT, s.open(artifact, folder / "s", TRC_TRAIN, 0,
                                     nullptr, nullptr, 4000000000u));
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  for (double scale : {1e300, -1e300, std::nan("")})
    EXPECT_EQ(TRC_BAD_ARGUMENT, trc_set_lr(s.get(), scale, nullptr)) << scale;
  EXPECT_EQ(TRC_OK, trc_set_lr(s.get(), 0, nullptr));
}

TEST_F(AbiTest, CancelWakesAWaitingCall) {
  Artifact artifact(weighted());
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  Batch b = good();
  trc_ticket t = 0;
  ASSERT_EQ(TRC_OK, s.submit(b, t));
  std::thread other([&] { (void)trc_cancel(s.get()); });
  trc_status status = s.forward(t);
  EXPECT_TRUE(status == TRC_OK || status == TRC_CANCELLED);
  other.join();
  EXPECT_EQ(TRC_CANCELLED, s.submit(b, t));
  EXPECT_EQ(TRC_OK, s.close()) << s.error.message;
}

class AbiThreads : public AbiTest,
                   public ::testing::WithParamInterface<int64_t> {};

// Without lookahead the producer drains while the trainer ends its tickets.
TEST_P(AbiThreads, ProducerAndTrainer) {
  Model m = weighted();
  m.lookahead = GetParam();
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  constexpr trc_ticket count = 300;
  std::atomic<trc_ticket> handed{0};
  std::thread producer([&] {
    for (trc_ticket i = 0; i < count;) {
      Batch b = good();
      trc_ticket t = 0;
      trc_status status = trc_submit(s.get(), b.abi(), &t, nullptr);
      if (status == TRC_WOULD_BLOCK) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(TRC_OK, status);
      handed = t;
      ++i;
    }
  });
  for (trc_ticket t = 1; t <= count && !HasFatalFailure(); ++t) {
    while (handed < t && !HasFatalFailure())
      std::this_thread::yield();
    Tensor x(3, 4), w(3, 4), h(3, 4);
    DLTensor *out[] = {&x.view, &w.view, &h.view};
    const DLTensor *grads[] = {&x.view, &w.view, &h.view};
    ASSERT_EQ(TRC_OK, trc_forward(s.get(), t, out, 3, nullptr));
    ASSERT_EQ(TRC_OK, trc_backward(s.get(), t, grads, 3, nullptr, nullptr));
    (void)s.stats();
  }
  producer.join();
  EXPECT_EQ(static_cast<int64_t>(count), s.info().step);
}

INSTANTIATE_TEST_SUITE_P(Lookaheads, AbiThreads, ::testing::Values(0, 1, 3, 8));

TEST_F(AbiTest, TensorsOfTheWrongShapeOrType) {
  Artifact artifact(weighted());
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  Batch b = good();
  trc_ticket t = 0;
  ASSERT_EQ(TRC_OK, s.submit(b, t));
  Tensor x(3, 4), w(3, 4), h(3, 4), wrong(2, 4);
  DLTensor *out[] = {&x.view, &wrong.view, &h.view};
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_forward(s.get(), t, out, 3, &s.error));
  EXPECT_NE(nullptr, std::strstr(s.error.message, "[3, 4] is needed"))
      << s.error.message;
  out[1] = &w.view;
  w.view.dtype.bits = 64;
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_forward(s.get(), t, out, 3, &s.error));
  w.view.dtype.bits = 32;
  w.view.device.device_type = kDLCUDA;
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_forward(s.get(), t, out, 3, &s.error));
  w.view.device.device_type = kDLCPU;
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_forward(s.get(), t, out, 2, &s.error));
  // Strides: a column-major output.
  int64_t strides[2] = {1, 3};
  x.view.strides = strides;
  EXPECT_EQ(TRC_OK, trc_forward(s.get(), t, out, 3, &s.error));
  EXPECT_EQ(TRC_OK, trc_release(s.get(), t, &s.error));
  ASSERT_EQ(TRC_OK, s.submit(b, t));
  ASSERT_EQ(TRC_OK, s.forward(t));
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c)
      EXPECT_EQ(s.outputs[0]->values[r * 4 + c], x.values[c * 3 + r]);
}

/// A tensor of f16 or bf16.
struct HalfTensor {
  Element element;
  std::vector<uint16_t> bits;
  int64_t shape[2], strides[2];
  DLTensor view = {};
  HalfTensor(Element element, int64_t rows, int64_t dim)
      : element(element), bits(static_cast<size_t>(rows * dim)),
        shape{rows, dim}, strides{dim, 1} {
    uint8_t code = element == Element::f16 ? kDLFloat : kDLBfloat;
    view.data = bits.data();
    view.device = {kDLCPU, 0};
    view.ndim = 2;
    view.dtype = {code, 16, 1};
    view.shape = shape;
    view.strides = strides;
  }
  HalfTensor(const HalfTensor &) = delete;
  uint16_t rounded(float x) const {
    return element == Element::f16 ? trc::f16FromF32(x) : trc::bf16FromF32(x);
  }
  float wide(size_t i) const {
    return element == Element::f16 ? trc::f32FromF16(bits[i])
                                   : trc::f32FromBF16(bits[i]);
  }
};

// Outputs are rounded to the type of the caller's tensor, and a step with
// gradients in such a type is the step with their values.
TEST_F(AbiTest, TensorsOfHalfTheSize) {
  Artifact artifact(weighted());
  Session s, twin;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  ASSERT_EQ(TRC_OK, twin.open(artifact, folder / "t"));
  SplitMix random(11);
  for (int step = 0; step < 6; ++step) {
    Batch b = good();
    trc_ticket t = 0, u = 0;
    ASSERT_EQ(TRC_OK, s.submit(b, t));
    ASSERT_EQ(TRC_OK, twin.submit(b, u));
    ASSERT_EQ(TRC_OK, twin.forward(u));
    HalfTensor x(Element::f16, 3, 4), w(Element::bf16, 3, 4);
    Tensor h(3, 4);
    if (step % 2) { // column by column
      x.strides[0] = w.strides[0] = 1;
      x.strides[1] = w.strides[1] = 3;
    }
    auto at = [&](const HalfTensor &of, size_t r, size_t c) {
      return r * static_cast<size_t>(of.strides[0]) +
             c * static_cast<size_t>(of.strides[1]);
    };
    DLTensor *out[] = {&x.view, &w.view, &h.view};
    ASSERT_EQ(TRC_OK, trc_forward(s.get(), t, out, 3, &s.error))
        << s.error.message;
    std::vector<std::vector<float>> grads(3, std::vector<float>(12));
    for (size_t r = 0; r < 3; ++r)
      for (size_t c = 0; c < 4; ++c) {
        size_t i = r * 4 + c;
        EXPECT_EQ(x.bits[at(x, r, c)], x.rounded(twin.outputs[0]->values[i]));
        EXPECT_EQ(w.bits[at(w, r, c)], w.rounded(twin.outputs[1]->values[i]));
        EXPECT_EQ(h.values[i], twin.outputs[2]->values[i]);
        for (HalfTensor *g : {&x, &w})
          g->bits[at(*g, r, c)] =
              g->rounded(static_cast<float>(random.below(1000)) / 500 - 1);
        grads[0][i] = x.wide(at(x, r, c));
        grads[1][i] = w.wide(at(w, r, c));
        grads[2][i] = h.values[i];
      }
    const DLTensor *in[] = {&x.view, &w.view, &h.view};
    ASSERT_EQ(TRC_OK, trc_backward(s.get(), t, in, 3, nullptr, &s.error))
        << s.error.message;
    ASSERT_EQ(TRC_OK, twin.backward(u, grads));
  }
  EXPECT_EQ(twin.dump("a", 20, 4, {}), s.dump("a", 20, 4, {}));
  EXPECT_EQ(twin.dump("h", 30, 4, {}), s.dump("h", 30, 4, {}));

  // Infinity of the caller's type is infinity.
  Batch b = good();
  trc_ticket t = 0;
  ASSERT_EQ(TRC_OK, s.submit(b, t));
  ASSERT_EQ(TRC_OK, s.forward(t));
  HalfTensor x(Element::f16, 3, 4);
  Tensor w(3, 4), h(3, 4);
  x.bits[6] = 0x7c00;
  const DLTensor *in[] = {&x.view, &w.view, &h.view};
  EXPECT_EQ(TRC_BAD_INPUT, trc_backward(s.get(), t, in, 3, nullptr, &s.error));
  EXPECT_STREQ("x", s.error.feature);
  EXPECT_EQ(2, s.error.position);
}

// Predictions and logits; an output that nothing is written to is an error.
TEST_F(AbiTest, AHeadHasTwoOutputs) {
  Model m;
  m.tables = {{"a", 20, 4, sgd()}};
  m.features = {{"x", 0, "sum", 3}};
  m.head = "fm";
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s")) << s.error.message;
  SplitMix random(3);
  Batch b = randomBatch(m, random, 2);
  trc_ticket t = 0;
  ASSERT_EQ(TRC_OK, s.submit(b, t)) << s.error.message;
  Tensor one(2, -1), two(2, -1), three(2, -1);
  DLTensor *out[3] = {&one.view, &two.view, &three.view};
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_forward(s.get(), t, out, 3, &s.error));
  EXPECT_NE(nullptr, std::strstr(s.error.message, "3 outputs"));
  EXPECT_EQ(TRC_OK, trc_forward(s.get(), t, out, 2, &s.error))
      << s.error.message;
}

TEST_F(AbiTest, WriteRowsThenReadThem) {
  for (bool cached : {false, true}) {
    Model m = weighted();
    m.tables[0].optimizer = adagrad();
    m.cached = {cached};
    Artifact artifact(m);
    std::string state = folder / (cached ? "c" : "m");
    std::vector<float> values(8), read(8), sums(4), after(4);
    for (int i = 0; i < 8; ++i)
      values[i] = static_cast<float>(i);
    int64_t rows[] = {1, 19}; // one that was trained, one that never was
    {
      Session s;
      ASSERT_EQ(TRC_OK, s.open(artifact, state));
      Batch b = good();
      trc_ticket t = 0;
      ASSERT_EQ(TRC_OK, s.submit(b, t));
      ASSERT_EQ(TRC_OK, s.forward(t));
      ASSERT_EQ(TRC_OK, s.backward(t, gradientsFor(s)));
      ASSERT_EQ(TRC_OK, trc_read_state(s.get(), "a", 0, rows, 1, sums.data(),
                                       &s.error));
      ASSERT_EQ(TRC_OK,
                trc_write_rows(s.get(), "a", rows, 2, values.data(), &s.error))
          << s.error.message;
      ASSERT_EQ(TRC_OK,
                trc_read_rows(s.get(), "a", rows, 2, read.data(), &s.error));
      EXPECT_EQ(values, read);
      ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
    }
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
    ASSERT_EQ(TRC_OK,
              trc_read_rows(s.get(), "a", rows, 2, read.data(), &s.error));
    EXPECT_EQ(values, read);
    ASSERT_EQ(TRC_OK,
              trc_read_state(s.get(), "a", 0, rows, 1, after.data(), &s.error));
    EXPECT_EQ(sums, after);
    EXPECT_NE(0.0f, sums[0]);
  }
}

TEST_F(AbiTest, WriteStateThenReadIt) {
  for (bool cached : {false, true}) {
    Model m = weighted();
    m.tables[0].optimizer = adagrad();
    m.cached = {cached};
    Artifact artifact(m);
    std::string state = folder / (cached ? "c" : "m");
    std::vector<float> sums = {1, 2, 3, 4, 5, 6, 7, 0}, read(8), rowsBefore(8),
                       rowsAfter(8);
    int64_t rows[] = {1, 19}; // one that was trained, one that never was
    {
      Session s;
      ASSERT_EQ(TRC_OK, s.open(artifact, state));
      Batch b = good();
      trc_ticket t = 0;
      ASSERT_EQ(TRC_OK, s.submit(b, t));
      EXPECT_EQ(TRC_OUT_OF_ORDER, trc_write_state(s.get(), "a", 0, rows, 2,
                                                  sums.data(), &s.error));
      ASSERT_EQ(TRC_OK, s.forward(t));
      ASSERT_EQ(TRC_OK, s.backward(t, gradientsFor(s)));
      ASSERT_EQ(TRC_OK, trc_read_rows(s.get(), "a", rows, 2, rowsBefore.data(),
                                      &s.error));
      ASSERT_EQ(TRC_OK, trc_write_state(s.get(), "a", 0, rows, 2, sums.data(),
                                        &s.error))
          << s.error.message;
      std::vector<float> bad = sums;
      bad[6] = -1;
      EXPECT_EQ(TRC_BAD_INPUT, trc_write_state(s.get(), "a", 0, rows, 2,
                                               bad.data(), &s.error));
      EXPECT_NE(nullptr, std::strstr(s.error.message, "row 19"))
          << s.error.message;
      bad[6] = std::nanf("");
      EXPECT_EQ(TRC_BAD_INPUT, trc_write_state(s.get(), "a", 0, rows, 2,
                                               bad.data(), &s.error));
      EXPECT_EQ(TRC_NOT_FOUND, trc_write_state(s.get(), "a", 1, rows, 2,
                                               sums.data(), &s.error));
      EXPECT_EQ(TRC_BAD_ARGUMENT,
                trc_write_state(s.get(), "a", 0, rows, 2, nullptr, &s.error));
      ASSERT_EQ(TRC_OK, s.close()) << s.error.message;
    }
    Session s;
    ASSERT_EQ(TRC_OK, s.open(artifact, state)) << s.error.message;
    ASSERT_EQ(TRC_OK,
              trc_read_state(s.get(), "a", 0, rows, 2, read.data(), &s.error));
    EXPECT_EQ(sums, read);
    ASSERT_EQ(TRC_OK,
              trc_read_rows(s.get(), "a", rows, 2, rowsAfter.data(), &s.error));
    EXPECT_EQ(rowsBefore, rowsAfter);
  }
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(AbiTest, AForkedChildIsTurnedAway) {
  Artifact artifact(weighted());
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  pid_t child = ::fork();
  if (child == 0) {
    trc_model_info info = {};
    info.struct_size = sizeof(info);
    bool ok = trc_describe(s.get(), &info, nullptr) == TRC_FORKED &&
              trc_close(s.get(), nullptr) == TRC_FORKED;
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  EXPECT_EQ(TRC_OK, s.close());
}
#endif

TEST_F(AbiTest, DamagedPlansAreRefused) {
  json plan = makePlan(weighted());
  auto refused = [&](const json &p, const char *expect) {
    Artifact artifact(p);
    Session s;
    EXPECT_EQ(TRC_MISMATCH, s.open(artifact, folder / "s"));
    EXPECT_NE(nullptr, std::strstr(s.error.message, expect)) << s.error.message;
  };
  json p = plan;
  p["format"] = 2;
  refused(p, "format");
  p = plan;
  p["rings"][0]["bytes"] = 64;
  refused(p, "this runtime needs");
  p = plan;
  p["groups"][0]["slots"] = 1;
  refused(p, "slots cannot pin");
  p = plan;
  p["ops"][3]["op"] = "fly";
  refused(p, "fly");
  p = plan;
  p["ops"][2]["waits"][0]["op"] = 99;
  refused(p, "outside");
  p = plan;
  p.erase("tables");
  refused(p, "tables");
  p = plan;
  p["groups"][1]["update"] = "segment_update_5_sgd";
  refused(p, "no kernel");
}
