//===- Ids.cpp - What ids cost before any row is touched ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ingest and check, unique and segments, bag-level dedup; and the head, the
// last stage that knows no rows.
//
//===----------------------------------------------------------------------===//
#include "Calibrate/Calibrate.h"
#include "Calibrate/Rows.h"

#include "runtime/core/Hash.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace llvm;

namespace terrace::calibrate {

/// `ids` occurrences of exactly `unique` rows out of `rows`, in no order.
static Batch mixedBatch(int64_t ids, int64_t unique, int64_t rows,
                        uint64_t seed) {
  Batch batch = distinctBatches(1, unique, kBag, rows, seed)[0];
  std::vector<int64_t> &list = batch[0].ids;
  trc::SplitMix random(seed);
  while (int64_t(list.size()) < ids)
    list.push_back(list[size_t(random.below(uint64_t(unique)))]);
  for (size_t i = list.size(); i > 1; --i)
    std::swap(list[i - 1], list[size_t(random.below(i))]);
  std::vector<int64_t> &offsets = batch[0].offsets;
  offsets.clear();
  for (int64_t at = 0; at < ids; at += kBag)
    offsets.push_back(at);
  offsets.push_back(ids);
  return batch;
}

static Error measureUnique(const Part &part, machine::CpuModel &cpu) {
  bool quick = part.options.quick;
  const int64_t most = quick ? 512 << 10 : 1 << 20, ones = 128 << 10;
  TrialSpec spec;
  spec.dim = 4;
  spec.rows = 2 * most;
  spec.bag = kBag;
  spec.ids = most;
  spec.samples = std::max(ones, most / kBag + 1);
  Expected<std::unique_ptr<Trial>> opened =
      Trial::open(spec, part.scratch, "ids");
  if (!opened)
    return opened.takeError();
  Trial &trial = **opened;
  if (Error e = trial.touchAll())
    return e;

  double ingest[2];
  for (int64_t bag : {int64_t(1), kBag}) {
    Expected<StepTimes> t =
        trial.median(uniformBatches(2, ones, bag, spec.rows, 1), 5, 9, 0.2);
    if (!t)
      return t.takeError();
    ingest[bag == 1] = t->ingest + t->at("check") + t->at("translate");
  }
  double ids = double(ones), bags = std::ceil(ids / kBag);
  cpu.ingestNsPerBag =
      std::max(0.0, (ingest[1] - ingest[0]) / (ids - bags)) * 1e9;
  cpu.ingestNsPerId =
      std::max(0.01, (ingest[0] * 1e9 - bags * cpu.ingestNsPerBag) / ids);

  machine::Surface unique;
  unique.y = {0.05, 0.3, 1.0};
  unique.x = quick
                 ? std::vector<double>{2048, 32768, double(most)}
                 : std::vector<double>{1024, 8192, 65536, 262144, double(most)};
  for (double size : unique.x)
    for (double distinct : unique.y) {
      std::vector<Batch> batches;
      int64_t rows = std::max<int64_t>(1, int64_t(size * distinct));
      for (uint64_t seed = 1; seed <= 3; ++seed)
        batches.push_back(mixedBatch(int64_t(size), rows, spec.rows, seed));
      Expected<StepTimes> t =
          trial.median(batches, quick || part.late() ? 3 : 5, 9,
                       part.late() ? 0
                       : quick     ? 0.05
                                   : 0.15);
      if (!t)
        return t.takeError();
      unique.values.push_back(std::max(0.01, t->at("unique") * 1e9 / size));
    }
  cpu.unique = std::move(unique);
  return Error::success();
}

static Error measureDedup(const Part &part, machine::CpuModel &cpu) {
  TrialSpec spec;
  spec.dim = 16;
  spec.rows = 16384;
  spec.features = 4;
  spec.bag = kBag;
  spec.samples = 2048;
  spec.ids = spec.samples * kBag * spec.features;
  spec.dedup = true;
  Expected<std::unique_ptr<Trial>> trial =
      Trial::open(spec, part.scratch, "dedup");
  if (!trial)
    return trial.takeError();
  if (Error e = (*trial)->touchAll())
    return e;
  // Every other sample repeats all bags of the one before it.
  std::vector<Batch> batches;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    Batch batch;
    for (int64_t f = 0; f < spec.features; ++f) {
      Bags bags = uniformBatches(1, spec.samples * kBag, kBag, spec.rows,
                                 seed * 8 + uint64_t(f))[0][0];
      for (int64_t s = 1; s < spec.samples; s += 2)
        std::copy_n(bags.ids.begin() + (s - 1) * kBag, kBag,
                    bags.ids.begin() + s * kBag);
      batch.push_back(std::move(bags));
    }
    batches.push_back(std::move(batch));
  }
  Expected<StepTimes> t = (*trial)->median(batches, 5, 9, 0.2);
  if (!t)
    return t.takeError();
  cpu.dedupNsPerId = std::max(0.01, t->at("dedup") * 1e9 / double(spec.ids));
  return Error::success();
}

static Error measureHead(const Part &part, machine::CpuModel &cpu) {
  TrialSpec spec;
  spec.dim = 16;
  spec.rows = 16384;
  spec.features = 8;
  spec.samples = 4096;
  spec.ids = spec.samples * spec.features;
  spec.head = true;
  Expected<std::unique_ptr<Trial>> trial =
      Trial::open(spec, part.scratch, "head");
  if (!trial)
    return trial.takeError();
  if (Error e = (*trial)->touchAll())
    return e;
  Batch batch;
  for (int64_t f = 0; f < spec.features; ++f)
    batch.push_back(
        uniformBatches(1, spec.samples, 1, spec.rows, uint64_t(f) + 1)[0][0]);
  Expected<StepTimes> t = (*trial)->median({batch}, 5, 15, 0.2);
  if (!t)
    return t.takeError();
  // As the cost model counts: eight operations a column.
  double operations =
      8 * double(spec.samples) * double(spec.features) * double(spec.dim);
  cpu.flopsG = operations / std::max(t->at("call"), 1e-7) / 1e9;
  return Error::success();
}

Error measureIds(const Part &part, machine::CpuModel &cpu) {
  if (Error e = part.begin("ids"))
    return e;
  if (Error e = measureUnique(part, cpu))
    return e;
  if (Error e = part.begin("dedup and head"))
    return e;
  if (Error e = measureDedup(part, cpu))
    return e;
  return measureHead(part, cpu);
}

Error measureCache(const Part &part, machine::CpuModel &cpu) {
  if (Error e = part.begin("rows behind a cache"))
    return e;
  const int64_t ids = 8192, rows = 8 * ids;
  std::vector<double> bytes, copies, hits, misses;
  for (int64_t dim : {int64_t(16), int64_t(128)}) {
    int64_t slot = slotBytes(dim, 1);
    TrialSpec spec;
    spec.dim = dim;
    spec.rows = rows;
    spec.bag = kBag;
    spec.samples = spec.ids = ids;
    spec.store = part.scratch + "/cache" + std::to_string(dim) + ".store";
    spec.cacheBytes = 2 * ids * slot;
    spec.storeBytes = 8 * rows * slot + 256 * kMiB;
    Expected<std::unique_ptr<Trial>> trial =
        Trial::open(spec, part.scratch, "cache" + std::to_string(dim));
    if (!trial)
      return trial.takeError();
    if (Error e = (*trial)->touchAll())
      return e;
    double seconds = part.late() ? 0.2 : part.options.quick ? 0.4 : 1.5;
    Expected<StepTimes> warm =
        (*trial)->median(distinctBatches(1, ids, kBag, rows, 1), 3, 9, seconds);
    if (!warm)
      return warm.takeError();
    double hit = (warm->at("probe") + warm->at("unpin")) * 1e9 / double(ids);
    hits.push_back(hit);
    // Eight batches take turns, of which the cache holds two.
    Expected<StepTimes> cold =
        (*trial)->median(distinctBatches(8, ids, kBag, rows, 2), 3, 9, seconds);
    if (!cold)
      return cold.takeError();
    misses.push_back(
        (cold->at("probe") + cold->at("unpin")) * 1e9 / double(ids) - hit);
    copies.push_back((cold->at("spill") + cold->at("fill")) * 1e9 /
                     double(2 * ids));
    bytes.push_back(double(slot));
  }
  cpu.probeNsPerRow = std::max(0.01, (hits[0] + hits[1]) / 2);
  cpu.probeNsPerMiss = std::max(0.01, (misses[0] + misses[1]) / 2);
  double perByte =
      std::max(1e-3, (copies[1] - copies[0]) / (bytes[1] - bytes[0]));
  cpu.copyGBps = 1 / perByte;
  cpu.copyNsPerRow = std::max(0.01, copies[0] - bytes[0] * perByte);
  return Error::success();
}

} // namespace terrace::calibrate
