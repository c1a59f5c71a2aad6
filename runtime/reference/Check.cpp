//===- Check.cpp - The verdict on a batch's bags
//---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bad-input contract: structure first, then per feature and sample the
// overflow policy, the ids and the weights. Nothing is applied on an error.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/FloatBits.h"
#include "runtime/reference/Interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace trc::reference {

static int64_t integerAt(const void *data, int32_t bits, int64_t i) {
  return bits == 32 ? static_cast<const int32_t *>(data)[i]
                    : static_cast<const int64_t *>(data)[i];
}

Status Interpreter::takeFeature(const Op &op, const trc_batch &batch) {
  const FeatureDef &f = program.features[static_cast<size_t>(op.feature)];
  const trc_bags &in = batch.features[op.feature];
  Bags &out = values[static_cast<size_t>(op.results[0])].bags;
  out = Bags();
  out.feature = op.feature;
  int64_t before = 0;
  for (int64_t s = 0; s <= batch.samples; ++s) {
    int64_t at = integerAt(in.offsets, in.offset_bits, s);
    bool wrong = s == 0 ? at != 0 : at < before;
    wrong |= at > in.value_count;
    wrong |= s == batch.samples && at != in.value_count;
    if (wrong)
      return Status::badInput("feature '" + f.name + "': bad offset " +
                                  std::to_string(at) + " at sample " +
                                  std::to_string(s),
                              f.name, s, -1, at);
    out.offsets.push_back(at);
    before = at;
  }
  for (int64_t i = 0; i < in.value_count; ++i)
    out.ids.push_back(integerAt(in.values, in.value_bits, i));
  if (f.weighted)
    out.weights.assign(in.weights, in.weights + in.value_count);
  return Status();
}

Status Interpreter::checkBags(const FeatureDef &f, const TableDef &table,
                              const Bags &in, Bags &out,
                              int64_t &droppedHere) const {
  out = Bags();
  out.feature = in.feature;
  out.offsets.push_back(0);
  for (int64_t s = 0; s < in.count(); ++s) {
    int64_t first = in.offsets[static_cast<size_t>(s)];
    int64_t begin = first, end = in.offsets[static_cast<size_t>(s) + 1];
    if (end - begin > f.maxIds) {
      if (f.overflow == FeatureDef::Overflow::Error)
        return Status::badInput(
            "feature '" + f.name + "', sample " + std::to_string(s) + ": " +
                std::to_string(end - begin) + " ids; max_ids is " +
                std::to_string(f.maxIds),
            f.name, s, f.maxIds, in.ids[static_cast<size_t>(begin + f.maxIds)]);
      if (f.overflow == FeatureDef::Overflow::KeepFirst)
        end = begin + f.maxIds;
      else
        begin = end - f.maxIds;
    }
    float sum = 0, squares = 0;
    for (int64_t i = begin; i < end; ++i) {
      size_t at = static_cast<size_t>(i);
      int64_t id = in.ids[at];
      if (!table.hash && (id < 0 || id >= table.rows)) {
        if (!program.dropBadIds)
          return Status::badInput("feature '" + f.name + "', sample " +
                                      std::to_string(s) + ": id " +
                                      std::to_string(id) + " is outside 0 .. " +
                                      std::to_string(table.rows - 1),
                                  f.name, s, i - first, id);
        ++droppedHere;
        continue;
      }
      if (f.weighted && !std::isfinite(in.weights[at]))
        return Status::badInput("feature '" + f.name + "', sample " +
                                    std::to_string(s) +
                                    ": the weight is not finite",
                                f.name, s, i - first, bitsOf(in.weights[at]));
      out.ids.push_back(id);
      if (f.weighted) {
        out.weights.push_back(in.weights[at]);
        sum = sum + in.weights[at];
        squares = std::fma(in.weights[at], in.weights[at], squares);
      }
    }
    int64_t kept = static_cast<int64_t>(out.ids.size());
    bool mean = f.pooling == Pool::WeightedMean;
    float divisor = mean ? sum : squares;
    if ((mean || f.pooling == Pool::Sqrtn) && f.weighted &&
        kept > out.offsets.back() && (divisor == 0 || !std::isfinite(divisor)))
      return Status::badInput("feature '" + f.name + "', sample " +
                                  std::to_string(s) +
                                  ": the weights of the bag, which are divided "
                                  "by, sum to 0 or out of range",
                              f.name, s, 0, bitsOf(divisor));
    out.offsets.push_back(kept);
  }
  return Status();
}

Status Interpreter::check(const Op &op) {
  int64_t droppedHere = 0, total = 0;
  for (size_t a = 0; a < op.args.size(); ++a) {
    const Bags &in = values[static_cast<size_t>(op.args[a])].bags;
    Bags &out = values[static_cast<size_t>(op.results[a])].bags;
    TRC_RETURN_IF_ERROR(
        checkBags(program.features[static_cast<size_t>(in.feature)],
                  program.tables[static_cast<size_t>(op.tables[a])], in, out,
                  droppedHere));
    // Cut ids do not count, dropped ones do: they took space in the batch.
    for (int64_t s = 0; s < in.count(); ++s)
      total +=
          std::min(in.offsets[static_cast<size_t>(s) + 1] -
                       in.offsets[static_cast<size_t>(s)],
                   program.features[static_cast<size_t>(in.feature)].maxIds);
  }
  if (total > program.maxIds)
    return Status::badInput("the batch has " + std::to_string(total) +
                                " ids; batch.max_ids is " +
                                std::to_string(program.maxIds),
                            "", -1, -1, total);
  dropped += droppedHere;
  return Status();
}

} // namespace trc::reference
