//===- KeyedBatch.cpp -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/KeyedBatch.h"

#include "runtime/exec/Ints.h"

#include <algorithm>

using namespace trc;

static Status bad(const std::string &what) {
  return Status(TRC_BAD_ARGUMENT, "the keyed batch: " + what);
}

Status trc::slicesOf(const trc_keyed_batch &batch, const Plan &plan,
                     trc_bags *bags) {
  if (!isWidth(batch.value_bits))
    return bad(badWidth("value_bits", batch.value_bits));
  if (!isWidth(batch.offset_bits))
    return bad(badWidth("offset_bits", batch.offset_bits));
  if (batch.samples < 0 || batch.samples > plan.batch)
    return bad(std::to_string(batch.samples) + " samples; 0 .. " +
               std::to_string(plan.batch) + " were compiled for");
  if (!batch.offsets)
    return bad("offsets is null; an array of key_count * samples + 1 is "
               "needed");
  if (batch.value_count < 0 || (batch.value_count > 0 && !batch.values))
    return bad("values is null or value_count negative");
  if (!batch.keys && batch.key_count < plan.features.size())
    return bad(std::to_string(batch.key_count) + " keys; the model has " +
               std::to_string(plan.features.size()) + " features");
  if (batch.weights &&
      std::none_of(plan.features.begin(), plan.features.end(),
                   [](const FeaturePlan &f) { return f.weighted(); }))
    return bad("no feature of model '" + plan.model +
               "' is weighted, but weights were given");
  const Ints offsets = {batch.offsets, batch.offset_bits == 64};
  const int64_t total = offsets[batch.key_count * batch.samples];
  if (offsets[0] != 0 || total != batch.value_count)
    return bad("offsets go from " + std::to_string(offsets[0]) + " to " +
               std::to_string(total) + "; 0 to the " +
               std::to_string(batch.value_count) + " values is needed");
  for (size_t f = 0; f < plan.features.size(); ++f) {
    const FeaturePlan &feature = plan.features[f];
    const int64_t key = batch.keys ? batch.keys[f] : static_cast<int64_t>(f);
    if (key < 0 || key >= batch.key_count)
      return bad("feature '" + feature.name + "' has key " +
                 std::to_string(key) + "; there are " +
                 std::to_string(batch.key_count));
    const int64_t at = key * batch.samples;
    const int64_t first = offsets[at], last = offsets[at + batch.samples];
    if (first < 0 || last < first || last > batch.value_count)
      return Status::badInput(
          "feature '" + feature.name + "': its bags go from " +
              std::to_string(first) + " to " + std::to_string(last) + " of " +
              std::to_string(batch.value_count) +
              " values; offsets are non-decreasing",
          feature.name, -1, -1, last);
    trc_bags &slice = bags[f];
    slice = {};
    slice.values = static_cast<const char *>(batch.values) +
                   (batch.values ? first * (batch.value_bits / 8) : 0);
    slice.offsets =
        static_cast<const char *>(batch.offsets) + at * (batch.offset_bits / 8);
    // Weights of a feature without are left alone: one array has them all.
    slice.weights =
        feature.weighted() && batch.weights ? batch.weights + first : nullptr;
    slice.value_count = last - first;
    slice.value_bits = batch.value_bits;
    slice.offset_bits = batch.offset_bits;
  }
  return Status();
}
