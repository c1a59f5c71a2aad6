//===- KeyedTest.cpp - Batches and outputs in one array each --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// trc_submit_keyed and one tensor for all features give, bit for bit, what bags
// and tensors by feature give; what is wrong with them is a status.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/exec/ToyModel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

using namespace toy;
using trc::SplitMix;

namespace {

Model model() {
  Model m;
  m.tables = {{"a", 50, 4, sgd()}, {"b", 30, 2, adagrad()}};
  m.features = {{"x", 0, "sum", 5},
                {"w", 0, "weighted_mean", 3, true, "keep_last"},
                {"y", 1, "max", 4, false, "keep_first"}};
  m.cached = {true, false};
  m.retained = 8;
  return m;
}

/// A batch's bags one key after the other, in the order `keys` gives them; one
/// more key that no feature has stands first.
class Keyed {
public:
  Keyed(const Batch &batch, bool wide) : samples(batch.samples), wide(wide) {
    const size_t count = batch.features.size();
    offsets.push_back(0);
    for (int64_t s = 0; s < samples; ++s)
      add({7, 8}, {});
    for (size_t f = count; f-- > 0;) { // the last feature first
      const Batch::Bags &bags = batch.features[f];
      for (int64_t s = 0; s < samples; ++s) {
        auto part = [&](auto &all) {
          return std::vector<typename std::decay_t<decltype(all)>::value_type>(
              all.begin() + bags.offsets[size_t(s)],
              all.begin() + bags.offsets[size_t(s) + 1]);
        };
        add(part(bags.ids),
            bags.weights.empty() ? std::vector<float>() : part(bags.weights));
      }
    }
    keys.resize(count);
    for (size_t f = 0; f < count; ++f)
      keys[f] = static_cast<int32_t>(count - f);
  }

  trc_keyed_batch abi() {
    shortIds.assign(ids.begin(), ids.end());
    shortOffsets.assign(offsets.begin(), offsets.end());
    trc_keyed_batch b = {};
    b.struct_size = sizeof(b);
    b.key_count = static_cast<uint32_t>(keys.size()) + 1;
    b.keys = keys.data();
    b.values = wide ? static_cast<const void *>(ids.data()) : shortIds.data();
    b.offsets =
        wide ? static_cast<const void *>(offsets.data()) : shortOffsets.data();
    b.weights = weights.data();
    b.value_count = static_cast<int64_t>(ids.size());
    b.value_bits = b.offset_bits = wide ? 64 : 32;
    b.samples = samples;
    return b;
  }

  std::vector<int64_t> ids, offsets;
  std::vector<float> weights;
  std::vector<int32_t> keys;

private:
  void add(const std::vector<int64_t> &bag, std::vector<float> w) {
    w.resize(bag.size(), -1.0f); // nobody reads it
    ids.insert(ids.end(), bag.begin(), bag.end());
    weights.insert(weights.end(), w.begin(), w.end());
    offsets.push_back(static_cast<int64_t>(ids.size()));
  }
  int64_t samples;
  bool wide;
  std::vector<int32_t> shortIds, shortOffsets;
};

class KeyedTest : public ::testing::Test {
protected:
  Folder folder;
};

} // namespace

TEST_F(KeyedTest, SameBitsAsByFeature) {
  Model m = model();
  Artifact artifact(m);
  for (bool wide : {false, true}) {
    Session plain, keyed;
    std::string name = wide ? "64" : "32";
    ASSERT_EQ(TRC_OK, plain.open(artifact, folder / ("p" + name)))
        << plain.error.message;
    ASSERT_EQ(TRC_OK, keyed.open(artifact, folder / ("k" + name)));
    SplitMix random(5);
    for (int step = 0; step < 12; ++step) {
      int64_t samples = step == 3 ? 0 : 1 + int64_t(random.below(16));
      Batch batch = randomBatch(m, random, samples);
      trc_ticket t = 0, k = 0;
      ASSERT_EQ(TRC_OK, plain.submit(batch, t)) << plain.error.message;
      Keyed joined(batch, wide);
      trc_keyed_batch abi = joined.abi();
      ASSERT_EQ(TRC_OK, trc_submit_keyed(keyed.get(), &abi, &k, &keyed.error))
          << keyed.error.message;
      ASSERT_EQ(TRC_OK, plain.forward(t));
      Tensor whole(samples, 4 + 4 + 2);
      DLTensor *out = &whole.view;
      ASSERT_EQ(TRC_OK, trc_forward(keyed.get(), k, &out, 1, &keyed.error))
          << keyed.error.message;
      auto grads = gradientsFor(plain);
      Tensor gradient(samples, 4 + 4 + 2);
      int64_t first = 0;
      for (size_t f = 0; f < 3; ++f) {
        int64_t dim = f == 2 ? 2 : 4;
        for (int64_t s = 0; s < samples; ++s) {
          ASSERT_EQ(0, std::memcmp(&whole.values[size_t(s * 10 + first)],
                                   &plain.outputs[f]->values[size_t(s * dim)],
                                   size_t(dim) * 4))
              << "feature " << f << ", sample " << s;
          std::memcpy(&gradient.values[size_t(s * 10 + first)],
                      &grads[f][size_t(s * dim)], size_t(dim) * 4);
        }
        first += dim;
      }
      const DLTensor *in = &gradient.view;
      ASSERT_EQ(TRC_OK, plain.backward(t, grads)) << plain.error.message;
      ASSERT_EQ(TRC_OK,
                trc_backward(keyed.get(), k, &in, 1, nullptr, &keyed.error))
          << keyed.error.message;
    }
    EXPECT_EQ(plain.dump("a", 50, 4, {}), keyed.dump("a", 50, 4, {}));
    EXPECT_EQ(plain.dump("b", 30, 2, {2}), keyed.dump("b", 30, 2, {2}));
  }
}

TEST_F(KeyedTest, WhatIsWrongIsSaid) {
  Model m = model();
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  SplitMix random(7);
  Batch batch = randomBatch(m, random, 4);
  struct Case {
    const char *says;
    trc_status status;
    void (*spoil)(Keyed &keyed, trc_keyed_batch &abi);
  };
  const Case cases[] = {
      {"value_bits is 16", TRC_BAD_ARGUMENT,
       [](Keyed &, trc_keyed_batch &b) { b.value_bits = 16; }},
      {"offset_bits is 0", TRC_BAD_ARGUMENT,
       [](Keyed &, trc_keyed_batch &b) { b.offset_bits = 0; }},
      {"17 samples; 0 .. 16", TRC_BAD_ARGUMENT,
       [](Keyed &, trc_keyed_batch &b) { b.samples = 17; }},
      {"-1 samples", TRC_BAD_ARGUMENT,
       [](Keyed &, trc_keyed_batch &b) { b.samples = -1; }},
      {"offsets is null", TRC_BAD_ARGUMENT,
       [](Keyed &, trc_keyed_batch &b) { b.offsets = nullptr; }},
      {"values is null", TRC_BAD_ARGUMENT,
       [](Keyed &, trc_keyed_batch &b) { b.values = nullptr; }},
      {"2 keys; the model has 3 features", TRC_BAD_ARGUMENT,
       [](Keyed &, trc_keyed_batch &b) {
         b.keys = nullptr;
         b.key_count = 2;
       }},
      {"feature 'w' has key 9; there are 4", TRC_BAD_ARGUMENT,
       [](Keyed &k, trc_keyed_batch &) { k.keys[1] = 9; }},
      {"has key -1", TRC_BAD_ARGUMENT,
       [](Keyed &k, trc_keyed_batch &) { k.keys[0] = -1; }},
      {"0 to the", TRC_BAD_ARGUMENT,
       [](Keyed &, trc_keyed_batch &b) { b.value_count += 1; }},
      {"offsets go from 3", TRC_BAD_ARGUMENT,
       [](Keyed &k, trc_keyed_batch &) { k.offsets[0] = 3; }},
      {"'w': is weighted, but weights is null", TRC_BAD_ARGUMENT,
       nullptr}, // no weights
      {"non-decreasing", TRC_BAD_INPUT,
       [](Keyed &k, trc_keyed_batch &) { k.offsets[4] = INT64_MIN; }},
      {"is below the one before it", TRC_BAD_INPUT,
       [](Keyed &k, trc_keyed_batch &) { k.offsets[5] = INT64_MIN; }},
      {"ends behind the feature's bags, which end at offset", TRC_BAD_INPUT,
       [](Keyed &k, trc_keyed_batch &) { k.offsets[6] = INT64_MAX; }},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(c.says);
    Keyed keyed(batch, /*wide=*/true);
    trc_keyed_batch abi = keyed.abi();
    if (c.spoil)
      c.spoil(keyed, abi);
    else
      abi.weights = nullptr;
    trc_ticket t = 0;
    EXPECT_EQ(c.status, trc_submit_keyed(s.get(), &abi, &t, &s.error));
    EXPECT_NE(std::string(s.error.message).find(c.says), std::string::npos)
        << s.error.message;
    EXPECT_EQ(0u, t);
  }
  Keyed keyed(batch, true);
  trc_keyed_batch abi = keyed.abi();
  trc_ticket t = 0;
  abi.struct_size = 8;
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_submit_keyed(s.get(), &abi, &t, &s.error));
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_submit_keyed(s.get(), nullptr, &t, &s.error));
  abi.struct_size = sizeof(abi);
  ASSERT_EQ(TRC_OK, trc_submit_keyed(s.get(), &abi, &t, &s.error));
  // Nothing of the above ended the ticket or changed the rows.
  Tensor narrow(4, 9), whole(4, 10);
  DLTensor *out = &narrow.view;
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_forward(s.get(), t, &out, 1, &s.error));
  EXPECT_NE(std::string(s.error.message).find("[4, 10] is needed"),
            std::string::npos)
      << s.error.message;
  out = &whole.view;
  ASSERT_EQ(TRC_OK, trc_forward(s.get(), t, &out, 1, &s.error));
  whole.values[9] = std::numeric_limits<float>::infinity();
  const DLTensor *in = &whole.view;
  EXPECT_EQ(TRC_BAD_INPUT, trc_backward(s.get(), t, &in, 1, nullptr, &s.error));
  EXPECT_NE(
      std::string(s.error.message).find("feature 'y', sample 0, column 1"),
      std::string::npos)
      << s.error.message;
}

// Offsets and their bounds are those of the array, in every feature of it.
TEST_F(KeyedTest, ErrorsNameOffsetsOfTheArray) {
  Model m = model();
  m.features[1] = {"w", 0, "sum", 3, false, "keep_last"};
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  // Bags of one id each: feature f has offsets 2 f .. 2 f + 2.
  std::vector<int64_t> ids(6, 1), offsets = {0, 1, 2, 3, 4, 5, 6};
  for (int64_t f = 0; f < 3; ++f) {
    trc_keyed_batch b = {};
    b.struct_size = sizeof(b);
    b.key_count = 3;
    b.values = ids.data();
    b.value_count = 6;
    b.value_bits = b.offset_bits = 64;
    b.samples = 2;
    std::vector<int64_t> wrong = offsets;
    size_t middle = static_cast<size_t>(2 * f + 1);
    wrong[middle] += 2; // behind the end of the feature, not of the array
    b.offsets = wrong.data();
    trc_ticket t = 0;
    EXPECT_EQ(TRC_BAD_INPUT, trc_submit_keyed(s.get(), &b, &t, &s.error));
    std::string says = "offset " + std::to_string(wrong[middle]) +
                       " ends behind the feature's bags, which end at offset " +
                       std::to_string(2 * f + 2);
    EXPECT_NE(std::string::npos, std::string(s.error.message).find(says))
        << s.error.message;
    EXPECT_EQ(wrong[middle], s.error.value);
    EXPECT_EQ(0, s.error.sample);
    // As by feature: what nobody would use is refused.
    b.offsets = offsets.data();
    std::vector<float> weights(6, 1);
    b.weights = weights.data();
    EXPECT_EQ(TRC_BAD_ARGUMENT, trc_submit_keyed(s.get(), &b, &t, &s.error));
    EXPECT_NE(nullptr, std::strstr(s.error.message, "no feature of model"))
        << s.error.message;
    EXPECT_EQ(0u, t);
  }
}

TEST_F(KeyedTest, OneTensorNeedsPooledFeatures) {
  Model m = model();
  m.features[2].pooling = "none";
  Artifact artifact(m);
  Session s;
  ASSERT_EQ(TRC_OK, s.open(artifact, folder / "s"));
  SplitMix random(7);
  Batch batch = randomBatch(m, random, 4);
  trc_ticket t = 0;
  ASSERT_EQ(TRC_OK, s.submit(batch, t));
  Tensor whole(4, 10);
  DLTensor *out = &whole.view;
  EXPECT_EQ(TRC_BAD_ARGUMENT, trc_forward(s.get(), t, &out, 1, &s.error));
  EXPECT_NE(std::string(s.error.message).find("'y' is not pooled"),
            std::string::npos)
      << s.error.message;
}
