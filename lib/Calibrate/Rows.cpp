//===- Rows.cpp - What rows cost, by their size ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each size of row is one model; footprints are parts of its table. Figures
// are of one core while all of them work, so a kernel's seconds are multiplied
// by the cores that its loop keeps busy.
//
//===----------------------------------------------------------------------===//
#include "Calibrate/Rows.h"
#include "Calibrate/Calibrate.h"
#include "CostModel/CostModel.h"

#include "runtime/core/Hash.h"

#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <numeric>

using namespace llvm;

namespace terrace::calibrate {

static Bags bagsOf(std::vector<int64_t> ids, int64_t bag) {
  Bags bags;
  for (int64_t at = 0; at < int64_t(ids.size()); at += bag)
    bags.offsets.push_back(at);
  bags.offsets.push_back(int64_t(ids.size()));
  bags.ids = std::move(ids);
  return bags;
}

std::vector<Batch> uniformBatches(int batches, int64_t ids, int64_t bag,
                                  int64_t rows, uint64_t seed) {
  trc::SplitMix random(seed);
  std::vector<Batch> all;
  for (int b = 0; b < batches; ++b) {
    std::vector<int64_t> list(static_cast<size_t>(ids));
    for (int64_t &id : list)
      id = int64_t(random.below(uint64_t(rows)));
    all.push_back({bagsOf(std::move(list), bag)});
  }
  return all;
}

std::vector<Batch> distinctBatches(int batches, int64_t ids, int64_t bag,
                                   int64_t rows, uint64_t seed) {
  trc::SplitMix random(seed);
  ids = std::min(ids, rows);
  std::vector<Batch> all;
  std::vector<bool> taken;
  int64_t free = 0;
  for (int b = 0; b < batches; ++b) {
    // Draws that hit a taken row are repeated: less than every other one.
    if (free < 2 * ids) {
      taken.assign(size_t(rows), false);
      free = rows;
    }
    std::vector<int64_t> list;
    if (2 * ids > rows) {
      list.resize(size_t(rows));
      std::iota(list.begin(), list.end(), int64_t(0));
      for (size_t i = list.size(); i > 1; --i)
        std::swap(list[i - 1], list[size_t(random.below(i))]);
      list.resize(size_t(ids));
    }
    while (int64_t(list.size()) < ids) {
      int64_t row = int64_t(random.below(uint64_t(rows)));
      if (taken[size_t(row)])
        continue;
      taken[size_t(row)] = true;
      list.push_back(row);
    }
    free -= ids;
    all.push_back({bagsOf(std::move(list), bag)});
  }
  return all;
}

double uniqueIn(const Batch &batch) {
  double total = 0;
  for (const Bags &bags : batch) {
    std::vector<int64_t> ids = bags.ids;
    std::sort(ids.begin(), ids.end());
    total += double(std::unique(ids.begin(), ids.end()) - ids.begin());
  }
  return total;
}

namespace {

std::string nameOf(const Twine &text) { return text.str(); }

struct Sizes {
  std::vector<int64_t> dims;
  std::vector<double> footprints, batches;
  int64_t mostRows;
  int least, most;
  double seconds; // of one point
};

Sizes sizesFor(bool quick) {
  if (quick)
    return {{16, 64, 256},
            {1.0 * kMiB, 16.0 * kMiB, 128.0 * kMiB},
            {1.0 * kMiB, 16.0 * kMiB, 96.0 * kMiB},
            1 << 20,
            3,
            7,
            0.12};
  return {{4, 16, 32, 64, 128, 256, 512, 1024},
          {0.5 * kMiB, 4.0 * kMiB, 16.0 * kMiB, 64.0 * kMiB, 256.0 * kMiB},
          {0.5 * kMiB, 4.0 * kMiB, 16.0 * kMiB, 48.0 * kMiB, 128.0 * kMiB},
          4 << 20,
          5,
          9,
          0.2};
}

/// Slope and start of the line through points, neither below 0.
std::pair<double, double> fitLine(const std::vector<double> &x,
                                  const std::vector<double> &y) {
  double n = double(x.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sx += x[i];
    sy += y[i];
    sxx += x[i] * x[i];
    sxy += x[i] * y[i];
  }
  double d = n * sxx - sx * sx;
  double slope = d > 0 ? std::max(0.0, (n * sxy - sx * sy) / d) : 0;
  double start = std::max(0.0, (sy - slope * sx) / n);
  if (start == 0 && sxx > 0)
    slope = std::max(0.0, sxy / sxx);
  return {slope, start};
}

/// Surfaces refuse figures of 0: what cost nothing measurable costs this much.
double some(double ns) { return std::max(ns, 0.01); }

} // namespace

Error measureRows(const Part &part, machine::CpuModel &cpu) {
  const Sizes sizes = sizesFor(part.options.quick);
  double cores = double(cpu.cores);
  machine::Surface gather, update, gradient;
  gather.y = sizes.footprints;
  update.y = sizes.batches;
  // Gradients of long bags lie close together, those of bags of one do not.
  gradient.y = {32.0 * kMiB / kBag, 32.0 * kMiB};
  std::vector<double> bagBytes, bagCosts, handoffs;
  int64_t idle = 0;

  for (int64_t dim : sizes.dims) {
    bool skipped =
        part.late() && gather.x.size() >= 2 && dim != sizes.dims.back();
    if (Error e = part.begin(Twine("rows of ") + Twine(dim) + " columns" +
                             (skipped ? ", skipped: the machine is busy" : "")))
      return e;
    if (skipped)
      continue;
    int64_t slot = slotBytes(dim, 1), ones = shortBags(dim);
    int64_t most = std::max(ones, idsOf(sizes.batches.back(), slot));
    TrialSpec spec;
    spec.dim = dim;
    // A few million of the smallest rows are as good as more, and made sooner.
    spec.rows = std::max(
        most, std::min<int64_t>(sizes.mostRows,
                                int64_t(sizes.footprints.back()) / slot));
    spec.bag = kBag;
    spec.ids = most;
    spec.samples = std::max(ones, most / kBag + 1);
    Expected<std::unique_ptr<Trial>> opened =
        Trial::open(spec, part.scratch, nameOf("rows" + Twine(dim)));
    if (!opened)
      return opened.takeError();
    Trial &trial = **opened;
    if (Error e = trial.touchAll())
      return e;
    auto measure = [&](const std::vector<Batch> &batches) {
      return trial.median(batches, part.late() ? 3 : sizes.least, sizes.most,
                          part.late() ? 0 : sizes.seconds);
    };

    // A bag's own cost, where the rows are near.
    int64_t few = std::max<int64_t>(64, int64_t(sizes.footprints[0]) / slot);
    double bags = std::ceil(double(ones) / kBag);
    Expected<StepTimes> single = measure(uniformBatches(3, ones, 1, few, 1));
    if (!single)
      return single.takeError();
    Expected<StepTimes> longs = measure(uniformBatches(3, ones, kBag, few, 1));
    if (!longs)
      return longs.takeError();
    double singleNs = single->at("gather_pool") * 1e9 *
                      planner::kernelCores(cores, double(ones), dim);
    double longNs =
        longs->at("gather_pool") * 1e9 * planner::kernelCores(cores, bags, dim);
    double bagNs = std::max(0.0, (singleNs - longNs) / (double(ones) - bags));
    bagBytes.push_back(double(dim) * 4);
    bagCosts.push_back(bagNs);

    bags = std::ceil(double(most) / kBag);
    for (double footprint : sizes.footprints) {
      int64_t rows =
          std::min(spec.rows, std::max<int64_t>(64, int64_t(footprint) / slot));
      Expected<StepTimes> t = measure(uniformBatches(4, most, kBag, rows, 2));
      if (!t)
        return t.takeError();
      double ns =
          t->at("gather_pool") * 1e9 * planner::kernelCores(cores, bags, dim);
      gather.values.push_back(some((ns - bags * bagNs) / double(most)));
    }
    gather.x.push_back(double(dim) * 4);

    for (double bytes : sizes.batches) {
      int64_t ids = std::min(most, idsOf(bytes, slot));
      Expected<StepTimes> t =
          measure(distinctBatches(4, ids, kBag, spec.rows, 3));
      if (!t)
        return t.takeError();
      update.values.push_back(
          some(t->at("segment_update") * 1e9 *
               planner::kernelCores(cores, double(ids), dim) / double(ids)));
    }
    update.x.push_back(double(slot));

    // Rows with many contributions; what the rows themselves cost is known.
    int64_t popular = std::max<int64_t>(16, ones / 32);
    for (int64_t bag : {kBag, int64_t(1)}) {
      std::vector<Batch> batches = uniformBatches(3, ones, bag, popular, 4);
      Expected<StepTimes> t = measure(batches);
      if (!t)
        return t.takeError();
      double unique = uniqueIn(batches[0]);
      double ns = t->at("segment_update") * 1e9 *
                  planner::kernelCores(cores, unique, dim);
      machine::Surface known = update;
      known.values.resize(known.x.size() * known.y.size());
      double rows = unique * known.at(double(slot), unique * double(slot));
      gradient.values.push_back(some((ns - rows) / (double(ones) - unique)));
      if (bag == 1)
        handoffs.push_back(2 * double(ones) * double(dim) * 4 /
                           std::max(t->rest, 1e-6) / 1e9);
    }
    gradient.x.push_back(double(dim) * 4);

    if (idle++ == 0) {
      // A step with next to nothing in it: what the lanes cost each other.
      std::vector<double> waits;
      std::vector<Batch> tiny = uniformBatches(1, kBag, kBag, 64, 5);
      for (int i = 0; i < 5; ++i) {
        Expected<std::pair<double, double>> t = trial.run(tiny[0], 100);
        if (!t)
          return t.takeError();
        waits.push_back(t->second);
      }
      std::sort(waits.begin(), waits.end());
      cpu.stepUs = waits[waits.size() / 2] * 1e6;
    }
  }
  std::sort(handoffs.begin(), handoffs.end());
  cpu.handoffGBps = handoffs[handoffs.size() / 2];
  auto [perByte, start] = fitLine(bagBytes, bagCosts);
  cpu.bagNs = start;
  cpu.bagGBps = perByte > 0 ? 1 / perByte : 0;
  cpu.gather = std::move(gather);
  cpu.gradient = std::move(gradient);
  cpu.update["rowwise_adagrad"] = std::move(update);
  return Error::success();
}

Error measureOptimizers(const Part &part, machine::CpuModel &cpu) {
  bool quick = part.options.quick;
  struct Kind {
    const char *name;
    int64_t perColumn, perRow; // floats of state
  };
  const Kind kinds[] = {
      {"sgd", 0, 0},  {"momentum_sgd", 1, 0},         {"adagrad", 1, 0},
      {"adam", 2, 0}, {"partial_rowwise_adam", 1, 1}, {"lamb", 2, 0},
      {"ftrl", 2, 0}};
  std::vector<int64_t> dims =
      quick ? std::vector<int64_t>{64} : std::vector<int64_t>{16, 128};
  std::vector<double> sizes = {1.0 * kMiB, (quick ? 32.0 : 64.0) * kMiB};
  if (Error e = part.begin("optimizers"))
    return e;
  for (const Kind &kind : kinds) {
    machine::Surface update;
    update.y = sizes;
    for (int64_t dim : dims) {
      if (part.late() && dim != dims.back())
        continue;
      int64_t slot = slotBytes(dim, kind.perColumn * dim + kind.perRow);
      TrialSpec spec;
      spec.dim = dim;
      spec.rows = 5 * int64_t(sizes.back()) / slot / 4;
      spec.bag = kBag;
      spec.ids = idsOf(sizes.back(), slot);
      spec.samples = spec.ids / kBag + 1;
      spec.optimizer = kind.name;
      Expected<std::unique_ptr<Trial>> trial = Trial::open(
          spec, part.scratch, nameOf(Twine(kind.name) + Twine(dim)));
      if (!trial)
        return trial.takeError();
      if (Error e = (*trial)->touchAll())
        return e;
      for (double bytes : sizes) {
        int64_t ids = std::min(spec.ids, int64_t(bytes) / slot);
        Expected<StepTimes> t =
            (*trial)->median(distinctBatches(2, ids, kBag, spec.rows, 3), 3, 7,
                             part.late() ? 0 : 0.08);
        if (!t)
          return t.takeError();
        update.values.push_back(
            some(t->at("segment_update") * 1e9 *
                 planner::kernelCores(double(cpu.cores), double(ids), dim) /
                 double(ids)));
      }
      update.x.push_back(double(slot));
    }
    cpu.update[kind.name] = std::move(update);
  }
  return Error::success();
}

} // namespace terrace::calibrate
