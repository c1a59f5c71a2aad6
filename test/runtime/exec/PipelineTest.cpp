//===- PipelineTest.cpp - Plans against the reference, bit for bit --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever the home, cache size, lookahead and number of threads: outputs and
// tables equal those of the naive interpreter.
//
//===----------------------------------------------------------------------===//
#include "runtime/reference/Interpreter.h"
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>

using namespace toy;
using trc::SplitMix;

namespace {

::testing::AssertionResult sameBits(const std::vector<float> &a,
                                    const std::vector<float> &b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure()
           << a.size() << " values against " << b.size();
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], 4) && !(a[i] != a[i] && b[i] != b[i]))
      return ::testing::AssertionFailure()
             << "value " << i << ": " << a[i] << " against " << b[i];
  return ::testing::AssertionSuccess();
}

void compareTables(Session &session,
                   const trc::reference::Interpreter &reference) {
  for (size_t t = 0; t < reference.definition().tables.size(); ++t) {
    const auto &def = reference.definition().tables[t];
    auto dump = session.dump(def.name, def.rows, def.dim, def.stateWidths());
    for (int64_t row = 0; row < def.rows; ++row) {
      std::vector<float> record = reference.table(t).record(row), got;
      size_t s = 0;
      for (const auto &part : dump) {
        int64_t width = s == 0 ? def.dim : def.stateWidths()[s - 1];
        got.insert(got.end(), part.begin() + row * width,
                   part.begin() + (row + 1) * width);
        ++s;
      }
      ASSERT_TRUE(sameBits(got, record))
          << "table " << def.name << ", row " << row << " of " << def.rows
          << ", stats " << session.stats().dump();
    }
  }
}

/// Trains `steps` batches, submitting as far ahead as there is room.
void run(const Model &model, int steps, uint64_t seed, uint32_t threads = 2,
         int mostAhead = 100) {
  Folder folder;
  Artifact artifact(model);
  if (std::getenv("TERRACE_TEST_SHOW"))
    std::fprintf(stderr, "%s\n", artifact.text().c_str());
  auto made = trc::reference::Interpreter::create(artifact.text());
  ASSERT_TRUE(made.ok()) << made.takeStatus().message();
  trc::reference::Interpreter &reference = **made;
  Session session;
  ASSERT_EQ(TRC_OK, session.open(artifact, folder / "s", TRC_TRAIN, 0, nullptr,
                                 nullptr, threads))
      << session.error.message;
  SplitMix random(seed);
  std::deque<std::pair<trc_ticket, Batch>> flying;
  int made_ = 0, done = 0;
  std::unique_ptr<Batch> next;
  while (done < steps) {
    while (made_ < steps && static_cast<int>(flying.size()) <= mostAhead) {
      if (!next)
        next = std::make_unique<Batch>(randomBatch(
            model, random,
            random.below(4)
                ? model.batch
                : 1 + static_cast<int64_t>(random.below(model.batch))));
      // Some of those that are released say so beforehand.
      next->forwardOnly = made_ % 5 == 3 && made_ % 2;
      trc_ticket ticket = 0;
      trc_status status = session.submit(*next, ticket);
      if (status == TRC_WOULD_BLOCK) {
        ASSERT_FALSE(flying.empty());
        break;
      }
      ASSERT_EQ(TRC_OK, status) << session.error.message;
      flying.emplace_back(ticket, std::move(*next));
      next.reset();
      ++made_;
    }
    auto &[ticket, batch] = flying.front();
    ASSERT_TRUE(reference.forward(*batch.abi()).ok());
    bool head = !model.head.empty();
    if (!head)
      for (size_t f = 0; f < model.features.size(); ++f)
        session.setRemaining(
            ticket, f,
            static_cast<int64_t>(reference.output(f).values.size()) /
                std::max<int64_t>(1, reference.output(f).dim));
    ASSERT_EQ(TRC_OK, session.forward(ticket)) << session.error.message;
    double lr = 1.0 / (1 + done % 3);
    if (head)
      ASSERT_TRUE(
          sameBits(session.outputs[0]->values, reference.probabilities()));
    else
      for (size_t f = 0; f < model.features.size(); ++f)
        ASSERT_TRUE(
            sameBits(session.outputs[f]->values, reference.output(f).values))
            << "feature " << f << ", step " << done;
    bool apply = done % 5 != 3;
    if (apply) {
      ASSERT_EQ(TRC_OK, trc_set_lr(session.get(), lr, nullptr));
      if (head) {
        ASSERT_EQ(TRC_OK, session.backwardHead(ticket))
            << session.error.message;
        ASSERT_TRUE(reference.backward(nullptr, 1, lr).ok());
      } else {
        auto gradients = gradientsFor(session);
        std::vector<trc::reference::Matrix> matrices;
        for (size_t f = 0; f < gradients.size(); ++f) {
          matrices.push_back(reference.output(f));
          matrices.back().values = gradients[f];
        }
        float scale = done % 2 ? 1.0f : 0.5f;
        ASSERT_EQ(TRC_OK, session.backward(ticket, gradients, scale))
            << session.error.message;
        ASSERT_TRUE(reference.backward(&matrices, scale, lr).ok());
      }
    } else {
      ASSERT_EQ(TRC_OK, session.release(ticket));
    }
    flying.pop_front();
    ++done;
  }
  compareTables(session, reference);
  if (!model.head.empty()) {
    json stats = session.stats();
    ASSERT_TRUE(stats.is_object()) << session.error.message;
    EXPECT_EQ(stats["head"]["bias"].get<float>(), reference.head().bias);
  }
  EXPECT_EQ(session.info().step, reference.step());
  EXPECT_EQ(TRC_OK, session.close()) << session.error.message;
}

Model small() {
  Model m;
  m.tables = {{"a", 60, 4, rowwiseAdagrad()}, {"b", 40, 4, rowwiseAdagrad()}};
  m.features = {{"x", 0, "sum", 3}, {"y", 1, "mean", 2}, {"z", 0, "sum", 1}};
  return m;
}

/// A random model: shapes, poolings, optimizers, homes.
Model randomModel(SplitMix &r) {
  Model m;
  const int64_t dims[] = {1, 2, 4, 9, 16, 33};
  const char *poolings[] = {"sum",   "mean", "weighted_mean",
                            "sqrtn", "max",  "none"};
  json optimizers[] = {rowwiseAdagrad(), sgd(), sgd(0.1, 0.01), adagrad(),
                       adam()};
  bool head = r.below(3) == 0;
  int64_t headDim = dims[r.below(6)];
  size_t tables = 1 + r.below(4);
  for (size_t t = 0; t < tables; ++t) {
    Table table{"t" + std::to_string(t), 8 + static_cast<int64_t>(r.below(120)),
                head ? headDim : dims[r.below(6)], optimizers[r.below(5)],
                r.below(4) == 0};
    if (r.below(4) == 0)
      table.init = {{"kind", "normal"}, {"mean", 0.1}, {"std", 0.2}};
    m.tables.push_back(table);
  }
  size_t features = tables + r.below(3);
  for (size_t f = 0; f < features; ++f) {
    Feature x;
    x.name = "f" + std::to_string(f);
    x.table = static_cast<int>(f < tables ? f : r.below(tables));
    x.pooling = poolings[r.below(head ? 5 : 6)];
    x.maxIds = 1 + static_cast<int64_t>(r.below(5));
    x.weighted = x.pooling != "max" && x.pooling != "none" && r.below(2);
    const char *overflow[] = {"error", "keep_first", "keep_last"};
    x.overflow = overflow[r.below(3)];
    x.dedup = r.below(3) == 0;
    m.features.push_back(x);
  }
  if (head)
    m.head = r.below(2) ? "fm" : "logistic";
  m.batch = 1 + static_cast<int64_t>(r.below(24));
  m.lookahead = static_cast<int64_t>(r.below(9));
  m.cached = {r.below(3) != 0, r.below(2) == 0};
  m.retained = static_cast<int64_t>(r.below(20));
  m.spareSlots = static_cast<int64_t>(r.below(2));
  m.direct = r.below(2);
  const char *policies[] = {"lru", "clock", "lfu"};
  m.policy = policies[r.below(3)];
  if (r.below(3) == 0)
    m.paths = {"one.store", "two.store"};
  return m;
}

} // namespace

TEST(Pipeline, MemoryHome) { run(small(), 20, 1); }

TEST(Pipeline, MemoryHomeByIdAtEveryLookahead) {
  for (int64_t d = 0; d <= 8; ++d) {
    SCOPED_TRACE(d);
    Model m = small();
    m.direct = true;
    m.lookahead = d;
    run(m, 25, 200 + static_cast<uint64_t>(d));
  }
}

// A trainer that mostly evaluates: rows get their value without unique rows,
// and are not the state's for that.
TEST(Pipeline, WhatIsOnlyLookedUpIsNotUpdated) {
  Model m = small();
  m.direct = true;
  Folder folder;
  Artifact artifact(m);
  auto made = trc::reference::Interpreter::create(artifact.text());
  ASSERT_TRUE(made.ok());
  Session session;
  ASSERT_EQ(TRC_OK, session.open(artifact, folder / "s"))
      << session.error.message;
  SplitMix random(3);
  for (int i = 0; i < 30; ++i) {
    Batch batch = randomBatch(m, random, m.batch);
    batch.forwardOnly = true;
    trc_ticket ticket = 0;
    ASSERT_EQ(TRC_OK, session.submit(batch, ticket));
    ASSERT_TRUE((*made)->forward(*batch.abi()).ok());
    ASSERT_EQ(TRC_OK, session.forward(ticket)) << session.error.message;
    for (size_t f = 0; f < m.features.size(); ++f)
      ASSERT_TRUE(
          sameBits(session.outputs[f]->values, (*made)->output(f).values));
    EXPECT_EQ(TRC_BAD_ARGUMENT,
              session.backward(ticket, gradientsFor(session)));
    EXPECT_NE(std::string(session.error.message).find("TRC_BATCH_FORWARD_ONLY"),
              std::string::npos)
        << session.error.message;
    ASSERT_EQ(TRC_OK, session.release(ticket));
  }
  EXPECT_EQ(session.info().step, 0);
  compareTables(session, **made);
}

TEST(Pipeline, CachedHomeAtEveryLookahead) {
  for (int64_t d = 0; d <= 8; ++d) {
    SCOPED_TRACE(d);
    Model m = small();
    m.cached = {true};
    m.lookahead = d;
    run(m, 25, 100 + static_cast<uint64_t>(d));
  }
}

TEST(Pipeline, CachedHomeOnPersistentMemory) {
  Model m = small();
  m.cached = {true, false};
  m.homeKind = "pmem";
  run(m, 25, 9);
  if (::testing::Test::HasFatalFailure())
    return;
  Folder folder;
  Artifact artifact(m);
  Session session;
  ASSERT_EQ(TRC_OK, session.open(artifact, folder / "s", TRC_TRAIN, 0, nullptr,
                                 nullptr, 2))
      << session.error.message;
  auto stats = session.stats();
  bool found = false;
  for (const auto &device : stats["devices"])
    found |= device.get<std::string>().rfind("persistent memory", 0) == 0;
  EXPECT_TRUE(found) << stats["devices"].dump();
  ASSERT_EQ(stats["device_io"].size(), stats["devices"].size());
  for (const auto &io : stats["device_io"])
    EXPECT_TRUE(io["reads"]["p99_us"].is_number() &&
                io["writes"]["count"].is_number());
}

TEST(Pipeline, TrainerThatNeverLooksAhead) {
  Model m = small();
  m.cached = {true, false};
  m.lookahead = 3;
  for (int ahead = 0; ahead < 4; ++ahead)
    run(m, 12, 7, 1, ahead);
}

TEST(Pipeline, HeadOverCachedTables) {
  for (const char *head : {"fm", "logistic"}) {
    Model m = small();
    m.head = head;
    m.cached = {true};
    run(m, 20, 5);
  }
}

TEST(Pipeline, RandomModelsEqualTheReference) {
  // TERRACE_TEST_RUNS makes it longer, TERRACE_TEST_SEED repeats one.
  const char *runs = std::getenv("TERRACE_TEST_RUNS");
  const char *only = std::getenv("TERRACE_TEST_SEED");
  int count = runs ? std::atoi(runs) : 60;
  for (int i = 0; i < count; ++i) {
    uint64_t seed = only ? std::strtoull(only, nullptr, 10)
                         : 1000 + static_cast<uint64_t>(i);
    SCOPED_TRACE("TERRACE_TEST_SEED=" + std::to_string(seed));
    SplitMix r(seed);
    Model m = randomModel(r);
    int ahead = r.below(3) ? 100 : static_cast<int>(r.below(4));
    run(m, 12, seed, 1 + static_cast<uint32_t>(r.below(3)), ahead);
    if (HasFailure() || only)
      break;
  }
}
