//===- Executable.cpp - What a spec asks for that cannot run yet ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Called by the stages that need it: a spec may be parsed, printed, explained
// and diffed though it cannot be executed here.
//
//===----------------------------------------------------------------------===//
#include "Spec/Fields.h"
#include "Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <set>

namespace terrace::spec {

namespace {

/// Where a message points: the value, or what holds it if it is a default.
Loc at(Loc value, Loc holder) { return value.isValid() ? value : holder; }

class Check {
public:
  Check(const Spec &spec, Diagnostics &diagnostics)
      : spec(spec), diagnostics(diagnostics) {}
  void plannable();
  void executable();

private:
  void sizes();
  void table(const Table &table);
  void quantized(const Table &table, const std::string &path);
  /// One message for one place in the file, though `count` made many tables.
  void error(Loc loc, const llvm::Twine &message) {
    if (!loc.isValid() || seen.insert({loc.file, loc.line, loc.column}).second)
      diagnostics.error(loc, message);
  }

  const Spec &spec;
  Diagnostics &diagnostics;
  std::set<std::tuple<unsigned, unsigned, unsigned>> seen;
};

/// Each number is within its range; here is what their products take. The
/// planner computes with 64 bits, and with factors for the space of stores and
/// for batches in flight: together they stay below 2^63.
void Check::sizes() {
  const double most = 0x1p53; // 8 PiB
  // A record with three states of the optimizer, and what is kept about it.
  auto rowBytes = [](const Table &t) { return 16.0 * double(t.dim) + 64; };
  double all = 0;
  for (const Table &t : spec.tables) {
    all += double(t.rows) * rowBytes(t);
    if (all > most) {
      error(at(t.rows.loc, t.loc),
            "tables." + *t.name +
                ".rows: up to this table the rows and their "
                "optimizer state may take more than 8 PiB, which is the most; "
                "lower rows or dim (or count)");
      break;
    }
  }
  all = 0;
  for (const Feature &f : spec.features) {
    const Table &table = spec.tables[f.table];
    double ids = std::min(double(spec.batch.size) * double(f.maxIds),
                          double(spec.batch.maxIds));
    all +=
        ids * rowBytes(table) + double(spec.batch.size) * 8 * double(table.dim);
    if (all > most) {
      error(at(f.maxIds.loc, f.loc),
            "features." + *f.name +
                ".max_ids: up to this feature the rows of "
                "one batch may take more than 8 PiB, which is the most; lower "
                "max_ids or batch.size, or give batch.max_ids");
      break;
    }
  }
}

void Check::plannable() {
  // Without `memory` one tier without bound is implied.
  if (spec.nodeOnly)
    error({0, 1, 1}, "this file describes a node, not a model: compile a model "
                     "with --node FILE");
  sizes();
}

void Check::table(const Table &t) {
  std::string path = "table '" + *t.name + "'";
  if (t.dtype == DType::Int8 || t.dtype == DType::Int4)
    quantized(t, path);
  if (t.ids.kind == IdsKind::Dynamic)
    error(at(t.ids.kind.loc, t.loc),
          path + ": ids 'dynamic' cannot be compiled yet (runs today: index, "
                 "hash)");
  if (t.dim > 2048)
    error(at(t.dim.loc, t.loc), path + ": dim " + llvm::Twine(t.dim.value) +
                                    " cannot be compiled yet (runs today: 1 to "
                                    "2048)");
  // The index holds 32-bit locations.
  if (t.rows > 0xFFFF0000LL)
    error(at(t.rows.loc, t.loc),
          path + ": " + llvm::Twine(t.rows.value) +
              " rows cannot be compiled yet (runs today: "
              "up to 4294901760)");
}

void Check::quantized(const Table &t, const std::string &path) {
  std::string dtype = "dtype '" + name(t.dtype.value).str() + "'";
  if (!spec.serving)
    return error(at(t.dtype.loc, t.loc),
                 path + ": " + dtype +
                     " is for serving only: compile with --serve, and train "
                     "with f32, f16 or bf16 (serve: {dtype: " +
                     name(t.dtype.value) + "} leaves the table as it trains)");
  // Rows that were never trained are quantised too, with a bias in f16.
  constexpr double most = 65504;
  double far = 0;
  switch (t.init.kind.value) {
  case InitKind::Uniform:
    far = std::max(std::fabs(t.init.low), std::fabs(t.init.high));
    break;
  case InitKind::Normal: // of 32 random bits; no further than this
    far = std::fabs(t.init.mean) + 7 * t.init.std;
    break;
  case InitKind::Constant:
    far = std::fabs(t.init.value);
    break;
  }
  if (far > most)
    error(at(t.init.kind.loc, t.loc),
          path + ": " + dtype + " keeps a row's smallest value in f16, but " +
              "init reaches beyond " + llvm::Twine(int64_t(most)));
}

void Check::executable() {
  plannable();
  for (const Table &t : spec.tables)
    table(t);
  if (spec.head && spec.head->kind == HeadKind::Dlrm)
    error(spec.head->kind.loc,
          "head 'dlrm' cannot be compiled yet (runs today: logistic, fm; or no "
          "head, for a library)");
  if (!spec.head && !spec.dense.empty())
    error(spec.dense.front().loc,
          "dense features cannot be compiled yet without a head that reads "
          "them; a trainer passes its own");
  // Without dedup groups nothing re-associates, and the plan is strict's.
  if (!spec.serving && spec.numerics == Numerics::Reassociate &&
      !spec.dedupGroups().empty())
    error(spec.numerics.loc,
          "numerics 'reassociate' with dedup groups needs partial sums of "
          "gradients, which cannot be compiled yet (runs today: strict, or no "
          "'dedup')");
  if (spec.workers > 1)
    error(spec.workers.loc,
          "workers: " + llvm::Twine(spec.workers.value) +
              " needs the distributed exchange, which cannot be compiled yet "
              "(runs today: 1)");
  if (spec.target.device == Device::Gpu)
    error(spec.target.device.loc, "target device 'gpu' cannot be compiled yet "
                                  "(runs today: cpu)");
  for (const Tier &tier : spec.tiers) {
    if (tier.kind == TierKind::Hbm && spec.target.device != Device::Gpu)
      error(tier.kind.loc,
            "tier '" + *tier.name + "': hbm needs target: {device: gpu}");
  }
  // No fault, but nobody should rely on what nothing reads yet.
  if (spec.data && spec.data->time)
    diagnostics.warning(spec.data->time->loc,
                        "data.time is for dynamic ids, which cannot be "
                        "compiled yet: nothing reads this column");
  for (const PlacePin &pin : spec.plan.place)
    if (pin.cache.size() > 1)
      error(pin.cache[1].tier.loc,
            "two caches above one home cannot be compiled yet; pin one");
  // Offsets and positions are 32 bits wide; the runtime's bound leaves a bit.
  if (spec.batch.maxIds > (int64_t(1) << 30))
    error(at(spec.batch.maxIds.loc, {0, 1, 1}),
          "batch.max_ids: " + llvm::Twine(spec.batch.maxIds.value) +
              (spec.batch.maxIds.isDefault()
                   ? ", the sum of all features' bounds, is too large; give "
                     "batch.max_ids"
                   : " is too large") +
              " (at most 1073741824)");
}

} // namespace

Spec forServing(const Spec &spec) {
  Spec served = spec;
  served.serving = true;
  // Stores hold converted rows, and no checkpoint.
  served.train.checkpoint.keep.value = 1;
  served.train.checkpoint.churn.value = 0;
  for (Table &table : served.tables) {
    if (spec.serveDType)
      table.dtype = *spec.serveDType;
    table.rounding = Rounding::Nearest;
    // The one that keeps no state; nothing is updated.
    table.optimizer = Optimizer();
    table.optimizer.kind = OptimizerKind::Sgd;
  }
  return served;
}

bool checkPlannable(const Spec &spec, Diagnostics &diagnostics) {
  size_t before = diagnostics.errors();
  Check(spec, diagnostics).plannable();
  return diagnostics.errors() == before;
}

bool checkExecutable(const Spec &spec, Diagnostics &diagnostics) {
  size_t before = diagnostics.errors();
  Check(spec, diagnostics).executable();
  return diagnostics.errors() == before;
}

} // namespace terrace::spec
