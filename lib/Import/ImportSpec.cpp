//===- ImportSpec.cpp - Spec to emb module --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plain transcription, in the order of the spec. Index ids are rows already,
// so only other tables get an emb.translate.
//
//===----------------------------------------------------------------------===//
#include "Import/ImportSpec.h"
#include "runtime/store/StoreGeometry.h"

#include "dialects/emb/Emb.h"

using namespace mlir;
using namespace terrace;

namespace {

class Importer {
public:
  Importer(MLIRContext *context, const spec::Spec &spec,
           const ImportOptions &options)
      : context(context), builder(context), spec(spec), options(options) {}

  OwningOpRef<ModuleOp> run();

private:
  Location loc(spec::Loc where) const;
  StringAttr str(llvm::StringRef text) const {
    return builder.getStringAttr(text);
  }
  NamedAttribute named(llvm::StringRef name, Attribute value) const {
    return builder.getNamedAttr(name, value);
  }

  void moduleAttributes(ModuleOp module);
  DictionaryAttr pins() const;
  void tier(const spec::Tier &tier);
  LogicalResult table(const spec::Table &table);
  emb::RowAttr row(const spec::Table &table) const;
  Attribute optimizer(const spec::Table &table);
  Attribute init(const spec::Init &init) const;
  emb::ProfileAttr profile(const profile::Stats *stats) const;
  emb::StateType stateType(const spec::Table &table) const;

  int64_t featureIds(const spec::Feature &f) const {
    return std::min(spec.batch.size.value * f.maxIds.value,
                    spec.batch.maxIds.value);
  }
  Value feature(const spec::Feature &f, int64_t index);
  void step(llvm::StringRef name, bool train);

  MLIRContext *context;
  mutable OpBuilder builder;
  const spec::Spec &spec;
  const ImportOptions &options;
};

emb::Pooling toEmb(spec::Pooling pooling) {
  switch (pooling) {
  case spec::Pooling::Sum:
    return emb::Pooling::Sum;
  case spec::Pooling::Mean:
    return emb::Pooling::Mean;
  case spec::Pooling::WeightedMean:
    return emb::Pooling::WeightedMean;
  case spec::Pooling::Sqrtn:
    return emb::Pooling::Sqrtn;
  case spec::Pooling::Max:
    return emb::Pooling::Max;
  case spec::Pooling::None:
    return emb::Pooling::None;
  }
  return emb::Pooling::Sum;
}

Location Importer::loc(spec::Loc where) const {
  if (!where.isValid() || where.file >= spec.sources.size())
    return UnknownLoc::get(context);
  const spec::Source &source = spec.sources[where.file];
  if (source.isOption)
    return NameLoc::get(str(source.name));
  return FileLineColLoc::get(context, source.name, where.line, where.column);
}

DictionaryAttr Importer::pins() const {
  SmallVector<NamedAttribute> entries;
  const spec::Pins &plan = spec.plan;
  auto i64 = [&](int64_t v) { return builder.getI64IntegerAttr(v); };
  if (plan.lookahead) {
    entries.push_back(named("lookahead", i64(plan.lookahead->value)));
    entries.push_back(named("lookahead_loc", loc(plan.lookaheadLoc)));
  }
  SmallVector<Attribute> place;
  for (const spec::PlacePin &pin : plan.place) {
    SmallVector<NamedAttribute> fields{named("tables", str(*pin.tables)),
                                       named("loc", loc(pin.loc))};
    if (pin.home)
      fields.push_back(named("home", str(pin.home->value)));
    if (!pin.cache.empty()) {
      SmallVector<Attribute> caches;
      for (const spec::CachePin &cache : pin.cache)
        caches.push_back(builder.getArrayAttr(
            {str(cache.tier.value), i64(cache.bytes.value)}));
      fields.push_back(named("cache", builder.getArrayAttr(caches)));
    }
    place.push_back(builder.getDictionaryAttr(fields));
  }
  if (!place.empty())
    entries.push_back(named("place", builder.getArrayAttr(place)));
  SmallVector<Attribute> together;
  for (const auto &set : plan.together) {
    SmallVector<Attribute> names;
    for (const spec::Str &name : set)
      names.push_back(str(name.value));
    together.push_back(builder.getArrayAttr(names));
  }
  if (!together.empty())
    entries.push_back(named("together", builder.getArrayAttr(together)));
  if (spec.workers.value != 1)
    entries.push_back(named("workers", i64(spec.workers.value)));
  if (spec.target.device.value == spec::Device::Gpu)
    entries.push_back(named("device", str("gpu")));
  if (spec.machine) {
    entries.push_back(named("machine", str(spec::machinePath(spec))));
    entries.push_back(named("machine_loc", loc(spec.machine->loc)));
  }
  if (options.profile && !options.profile->origin.empty()) {
    entries.push_back(named("profile", str(options.profile->origin)));
    // Groups of features have no op of their own that could carry theirs.
    SmallVector<NamedAttribute> groups;
    for (const std::string &name : spec.dedupGroups())
      if (emb::ProfileAttr p = profile(options.profile->group(name)))
        groups.push_back(named(name, p));
    if (!groups.empty())
      entries.push_back(
          named("dedup_profile", builder.getDictionaryAttr(groups)));
  }
  return builder.getDictionaryAttr(entries);
}

void Importer::moduleAttributes(ModuleOp module) {
  using Dialect = emb::EmbDialect;
  module->setAttr(Dialect::kModel, str(*spec.model));
  module->setAttr(Dialect::kSeed, builder.getI64IntegerAttr(
                                      static_cast<int64_t>(spec.seed.value)));
  module->setAttr(Dialect::kNumerics, str(spec::name(spec.numerics.value)));
  module->setAttr(Dialect::kOnBadId, str(spec::name(spec.onBadId.value)));
  module->setAttr(Dialect::kOnBadGrad, str(spec::name(spec.onBadGrad.value)));
  const spec::Checkpoint &checkpoint = spec.train.checkpoint;
  // More than this is no plan for a disk, and the runtime's limit.
  uint32_t keep =
      static_cast<uint32_t>(std::min<int64_t>(*checkpoint.keep, 100));
  module->setAttr(Dialect::kStoreSpace, builder.getF64FloatAttr(trc::storeFill(
                                            keep, *checkpoint.churn)));
  module->setAttr(Dialect::kStoreRetained, builder.getI64IntegerAttr(keep));
  if (DictionaryAttr all = pins(); !all.empty())
    module->setAttr(Dialect::kPins, all);
}

void Importer::tier(const spec::Tier &tier) {
  static const emb::TierKind kinds[] = {emb::TierKind::HBM, emb::TierKind::DRAM,
                                        emb::TierKind::PMem,
                                        emb::TierKind::NVMe};
  SmallVector<Attribute> paths;
  for (const spec::Str &path : tier.paths)
    paths.push_back(str(path.value));
  FloatAttr writes;
  if (tier.driveWritesPerDay)
    writes = builder.getF64FloatAttr(tier.driveWritesPerDay->value);
  emb::TierOp::create(builder, loc(tier.loc), *tier.name,
                      kinds[static_cast<int>(tier.kind.value)],
                      tier.capacity.value,
                      paths.empty() ? ArrayAttr() : builder.getArrayAttr(paths),
                      tier.per.value == spec::TierScope::Worker, writes,
                      writes && tier.onWear.value == spec::OnWear::Warn);
}

emb::RowAttr Importer::row(const spec::Table &table) const {
  Type f16 = builder.getF16Type();
  const bool stochastic = table.rounding == spec::Rounding::Stochastic;
  switch (table.dtype.value) {
  case spec::DType::F32:
    return emb::RowAttr::get(context, builder.getF32Type(), Type(), false, {});
  case spec::DType::F16:
    return emb::RowAttr::get(context, f16, Type(), stochastic, {});
  case spec::DType::BF16:
    return emb::RowAttr::get(context, builder.getBF16Type(), Type(), stochastic,
                             {});
  case spec::DType::Int8:
    return emb::RowAttr::get(context, builder.getI8Type(), f16, false, f16);
  case spec::DType::Int4:
    return emb::RowAttr::get(context, builder.getIntegerType(4), f16, false,
                             f16);
  }
  return {};
}

Attribute Importer::optimizer(const spec::Table &table) {
  const spec::Optimizer &o = table.optimizer;
  double lr = o.lr.value, eps = o.eps.value, clip = o.clipNorm.value;
  double beta1 = o.beta1.value, beta2 = o.beta2.value;
  const bool apart = o.weightDecayMode == spec::DecayMode::Decoupled;
  double decay = apart ? 0.0 : o.weightDecay.value;
  double decoupled = apart ? o.weightDecay.value : 0.0;
  switch (o.kind.value) {
  case spec::OptimizerKind::Sgd:
    if (o.momentum.value != 0)
      return emb::MomentumSGDAttr::get(context, lr, o.momentum.value, decay,
                                       decoupled, clip);
    return emb::SGDAttr::get(context, lr, decay, decoupled, clip);
  case spec::OptimizerKind::Adagrad:
    return emb::AdagradAttr::get(context, lr, eps, decay, decoupled, clip);
  case spec::OptimizerKind::RowwiseAdagrad:
    return emb::RowwiseAdagradAttr::get(context, lr, eps, decay, decoupled,
                                        clip);
  case spec::OptimizerKind::Adam:
    return emb::AdamAttr::get(context, lr, beta1, beta2, eps, decay, decoupled,
                              clip);
  case spec::OptimizerKind::PartialRowwiseAdam:
    return emb::PartialRowwiseAdamAttr::get(context, lr, beta1, beta2, eps,
                                            decay, decoupled, clip);
  case spec::OptimizerKind::Lamb:
    return emb::LambAttr::get(context, lr, beta1, beta2, eps, decay, clip);
  case spec::OptimizerKind::Ftrl:
    return emb::FtrlAttr::get(context, lr, o.beta.value, o.l1.value, o.l2.value,
                              clip);
  }
  return {};
}

Attribute Importer::init(const spec::Init &init) const {
  switch (init.kind.value) {
  case spec::InitKind::Uniform:
    return emb::UniformAttr::get(context, init.low.value, init.high.value);
  case spec::InitKind::Normal:
    return emb::NormalAttr::get(context, init.mean.value, init.std.value);
  case spec::InitKind::Constant:
    return emb::ConstantAttr::get(context, init.value.value);
  }
  return {};
}

emb::ProfileAttr Importer::profile(const profile::Stats *s) const {
  if (!s)
    return {};
  SmallVector<int64_t> rows;
  SmallVector<emb::F64> ratio;
  for (auto [cacheRows, miss] : s->missCurve) {
    rows.push_back(cacheRows);
    ratio.push_back(miss);
  }
  double bags = s->uniqueBags;
  // Not counted but modelled: the factor of sessions, as unique bags.
  if (bags == 0 && s->samplesPerSession > 0 && s->batch > 0)
    bags = double(s->batch) /
           profile::dedupFactor(s->samplesPerSession, s->unchanged);
  return emb::ProfileAttr::get(context, s->batches, s->batch, s->ids, s->maxIds,
                               s->uniqueIds, s->maxUniqueIds, bags,
                               s->uniqueBagIds, s->samplesPerSession,
                               s->distinctIds, s->cold, s->reuse, rows, ratio);
}

emb::StateType Importer::stateType(const spec::Table &table) const {
  return emb::StateType::get(context, table.rows.value, table.dim.value,
                             row(table));
}

LogicalResult Importer::table(const spec::Table &table) {
  static const emb::IdKind kinds[] = {emb::IdKind::Index, emb::IdKind::Hash,
                                      emb::IdKind::Dynamic};
  Attribute opt = optimizer(table);
  if (!opt)
    return failure();
  const profile::Stats *stats =
      options.profile ? options.profile->table(*table.name) : nullptr;
  emb::TableOp::create(builder, loc(table.loc), *table.name, stateType(table),
                       kinds[static_cast<int>(table.ids.kind.value)],
                       cast<emb::OptimizerAttrInterface>(opt),
                       cast<emb::InitAttrInterface>(init(table.init)),
                       emb::PlacementAttr(), emb::ShardsAttr(), profile(stats));
  return success();
}

Value Importer::feature(const spec::Feature &f, int64_t index) {
  static const emb::Overflow overflows[] = {
      emb::Overflow::Error, emb::Overflow::KeepFirst, emb::Overflow::KeepLast};
  auto type = emb::BagsType::get(context, spec.batch.size.value, featureIds(f),
                                 /*checked=*/false, f.weights.has_value());
  emb::OverflowAttr overflow;
  if (f.overflow.value != spec::Overflow::Error)
    overflow = emb::OverflowAttr::get(
        context, overflows[static_cast<int>(f.overflow.value)]);
  const profile::Stats *stats =
      options.profile ? options.profile->feature(*f.name) : nullptr;
  return emb::FeatureOp::create(
      builder, loc(f.loc), type, str(*f.name), builder.getI64IntegerAttr(index),
      *f.column == *f.name ? StringAttr() : str(*f.column),
      f.weights ? str(f.weights->value) : StringAttr(),
      builder.getI64IntegerAttr(f.maxIds.value),
      builder.getF64FloatAttr(f.meanIds.value), overflow,
      f.dedup ? str(f.dedup->value) : StringAttr(),
      f.type.value == spec::IdType::String ? builder.getUnitAttr() : UnitAttr(),
      profile(stats));
}

void Importer::step(llvm::StringRef name, bool train) {
  OpBuilder::InsertionGuard guard(builder);
  Location here = UnknownLoc::get(context);
  auto step = emb::StepOp::create(builder, here, name, spec.batch.size.value,
                                  spec.batch.maxIds.value, 0, 1);
  builder.setInsertionPointToStart(&step.getBody().emplaceBlock());
  size_t n = spec.features.size();
  Type f32 = builder.getF32Type();

  Value scale;
  if (train)
    scale = emb::ScalarOp::create(builder, here, f32, str("lr_scale"));
  Value samples = emb::SamplesOp::create(builder, here, builder.getIndexType());
  Value label;
  if (spec.head) {
    auto type = RankedTensorType::get({spec.batch.size.value}, f32);
    label = emb::FeatureOp::create(
        builder, loc(spec.head->label.loc), type, str(*spec.head->label),
        IntegerAttr(), StringAttr(), StringAttr(), IntegerAttr(), FloatAttr(),
        emb::OverflowAttr(), StringAttr(), UnitAttr(), emb::ProfileAttr());
  }
  SmallVector<Value> bags;
  SmallVector<Attribute> tables;
  for (size_t i = 0; i < n; ++i) {
    bags.push_back(feature(spec.features[i], static_cast<int64_t>(i)));
    tables.push_back(FlatSymbolRefAttr::get(
        context, *spec.tables[spec.features[i].table].name));
  }
  auto check =
      emb::CheckOp::create(builder, here, bags, builder.getArrayAttr(tables),
                           str(spec::name(spec.onBadId.value)));
  bags.assign(check.getResults().begin(), check.getResults().end());
  for (size_t i = 0; i < n; ++i) {
    const spec::Feature &f = spec.features[i];
    if (spec.tables[f.table].ids.kind.value != spec::IdsKind::Index)
      bags[i] =
          emb::TranslateOp::create(builder, loc(f.loc), bags[i].getType(),
                                   bags[i], cast<FlatSymbolRefAttr>(tables[i]));
  }
  std::vector<Value> states(spec.tables.size());
  for (const spec::Feature &f : spec.features)
    if (!states[f.table]) {
      const spec::Table &t = spec.tables[f.table];
      states[f.table] =
          emb::StateOp::create(builder, loc(t.loc), stateType(t),
                               FlatSymbolRefAttr::get(context, *t.name));
    }
  SmallVector<Value> inputs{samples};
  SmallVector<Type> gradients;
  SmallVector<Value> winners(n);
  for (size_t i = 0; i < n; ++i) {
    const spec::Feature &f = spec.features[i];
    auto lookup = emb::LookupOp::create(
        builder, loc(f.loc),
        emb::PoolingAttr::get(context, toEmb(f.pooling.value)), states[f.table],
        bags[i]);
    inputs.push_back(lookup.getPooled());
    gradients.push_back(lookup.getPooled().getType());
    winners[i] = lookup.getWinner();
  }
  Location headLoc = spec.head ? loc(spec.head->loc) : here;
  llvm::StringRef kind =
      spec.head ? spec::name(spec.head->kind.value) : "caller";
  if (label)
    inputs.push_back(label);
  if (!train) {
    SmallVector<Type> predictions;
    if (label)
      predictions.push_back(label.getType());
    emb::DenseOp::create(builder, headLoc, predictions, str(kind), inputs);
    return;
  }
  auto dense =
      emb::DenseOp::create(builder, headLoc, gradients, str(kind), inputs);
  SmallVector<Attribute> updated;
  SmallVector<Value> newStates;
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    if (!states[t])
      continue;
    SmallVector<emb::Pooling> pool;
    SmallVector<Value> tableBags, inverses, grads, tableWinners;
    for (size_t i = 0; i < n; ++i) {
      const spec::Feature &f = spec.features[i];
      if (f.table != t)
        continue;
      pool.push_back(toEmb(f.pooling.value));
      tableBags.push_back(bags[i]);
      inverses.push_back(Value());
      grads.push_back(dense.getResult(i));
      if (winners[i])
        tableWinners.push_back(winners[i]);
    }
    updated.push_back(FlatSymbolRefAttr::get(context, *spec.tables[t].name));
    newStates.push_back(emb::UpdateOp::create(builder, loc(spec.tables[t].loc),
                                              states[t], scale, pool, tableBags,
                                              inverses, grads, tableWinners));
  }
  emb::CommitOp::create(builder, here, builder.getArrayAttr(updated),
                        newStates);
}

OwningOpRef<ModuleOp> Importer::run() {
  context->loadDialect<emb::EmbDialect>();
  Location top = spec.sources.empty()
                     ? Location(UnknownLoc::get(context))
                     : FileLineColLoc::get(context, spec.sources[0].name, 1, 1);
  OwningOpRef<ModuleOp> module = ModuleOp::create(top);
  builder.setInsertionPointToStart(module->getBody());
  moduleAttributes(*module);
  for (const spec::Tier &t : spec.tiers)
    tier(t);
  bool ok = true;
  for (const spec::Table &t : spec.tables)
    ok &= succeeded(table(t));
  if (!ok)
    return nullptr;
  if (spec.serving) {
    step("serve", /*train=*/false);
    return module;
  }
  step("train", /*train=*/true);
  step("eval", /*train=*/false);
  return module;
}

} // namespace

OwningOpRef<ModuleOp> terrace::importSpec(MLIRContext &context,
                                          const spec::Spec &spec,
                                          const ImportOptions &options) {
  return Importer(&context, spec, options).run();
}
