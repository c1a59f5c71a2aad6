//===- ProgramModel.cpp - A plan program as plain numbers -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resolves names once. Ring roles and poolings have the same order on both
// sides of RingLayout.h; static_asserts keep it so.
//
//===----------------------------------------------------------------------===//
#include "Transforms/Plan/ProgramModel.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace terrace;

static_assert(int(plan::RingRole::Ingest) == int(trc::RingRole::ingest) &&
              int(plan::RingRole::WriteBuf) == int(trc::RingRole::writebuf) &&
              int(plan::RingRole::Grads) == int(trc::RingRole::grads));
static_assert(int(emb::Pooling::Sum) == int(trc::Pooling::sum) &&
              int(emb::Pooling::WeightedMean) ==
                  int(trc::Pooling::weightedMean) &&
              int(emb::Pooling::None) == int(trc::Pooling::none));

FailureOr<ProgramModel> ProgramModel::of(plan::ProgramOp program) {
  ProgramModel m;
  m.program = program;
  m.module = program->getParentOfType<ModuleOp>();
  llvm::StringMap<int> tableIndex, dedupIndex;
  for (auto table : m.module.getOps<emb::TableOp>()) {
    tableIndex[table.getSymName()] = int(m.tables.size());
    m.tables.push_back(table);
  }
  llvm::append_range(m.tiers, m.module.getOps<emb::TierOp>());
  m.tableGroup.assign(m.tables.size(), -1);
  m.tableBase.assign(m.tables.size(), 0);
  for (auto group : m.module.getOps<plan::GroupOp>()) {
    for (auto [i, name] :
         llvm::enumerate(group.getTables().getAsRange<FlatSymbolRefAttr>())) {
      auto found = tableIndex.find(name.getValue());
      if (found == tableIndex.end())
        return group.emitError("names table '")
               << name.getValue() << "', which the module does not have";
      m.tableGroup[found->second] = int(m.groups.size());
      m.tableBase[found->second] = group.getBase(i);
    }
    m.groups.push_back(group);
  }

  for (Operation &op : program.getPipeline().getBody().front()) {
    if (auto ingest = dyn_cast<plan::IngestOp>(op))
      m.ingest = ingest;
    else if (auto dedup = dyn_cast<plan::DedupOp>(op))
      m.dedup = dedup;
    else if (isa<plan::CallOp>(op))
      m.head = true;
    else if (isa<plan::SegmentUpdateOp>(op))
      m.trains = true;
  }
  if (!m.ingest || !m.ingest.getFeatures())
    return program.emitError("has no plan.ingest that names the features");
  if (m.dedup && m.dedup.getNames())
    for (auto [i, name] :
         llvm::enumerate(m.dedup.getNames()->getAsRange<StringAttr>()))
      dedupIndex[name.getValue()] = int(i);

  m.shape.batch = int64_t(program.getBatch().value_or(0));
  m.shape.maxIds = int64_t(program.getMaxIds().value_or(0));
  m.shape.head = m.head;
  m.shape.serve = !m.trains;
  m.shape.dedupGroups = m.dedup ? int(m.dedup.getGroups().size()) : 0;
  for (auto feature : m.ingest.getFeatures()->getAsRange<plan::FeatureAttr>()) {
    auto table = tableIndex.find(feature.getTable().getValue());
    if (table == tableIndex.end() || m.tableGroup[table->second] < 0)
      return m.ingest.emitError("feature '")
             << feature.getName().getValue() << "' reads table '"
             << feature.getTable().getValue() << "', which is in no group";
    int dedup = -1;
    if (feature.getDedup()) {
      auto found = dedupIndex.find(feature.getDedup().getValue());
      if (found == dedupIndex.end())
        return m.ingest.emitError("feature '")
               << feature.getName().getValue() << "' is in dedup group '"
               << feature.getDedup().getValue() << "', which no op names";
      dedup = found->second;
    }
    trc::FeatureShape s;
    s.maxIds = feature.getMaxIds();
    s.dim = m.tables[table->second].getDim();
    s.weighted = bool(feature.getWeights());
    s.keepLast = feature.getOverflow() == emb::Overflow::KeepLast;
    s.pooling = trc::Pooling(int(feature.getPooling()));
    s.group = m.tableGroup[table->second];
    s.dedup = dedup;
    m.shape.features.push_back(s);
    m.features.push_back(feature);
    m.featureTable.push_back(table->second);
    m.featureDedup.push_back(dedup);
  }
  for (plan::GroupOp group : m.groups) {
    trc::GroupShape s;
    plan::RecordAttr record = group.getRecord();
    s.maxOccurrences = int64_t(group.getMaxOccurrences().value_or(0));
    s.maxUnique = int64_t(group.getMaxUnique().value_or(0));
    s.maxMiss = int64_t(group.getMaxMiss().value_or(0));
    s.slotBytes = record.getSlotBytes();
    s.cached = group.isCached();
    s.storeBytes = s.cached ? record.getStoreBytes() : 0;
    s.dim = record.getDim();
    m.shape.groups.push_back(s);
  }
  return m;
}

int ProgramModel::group(StringRef name) const {
  for (auto [i, group] : llvm::enumerate(groups))
    if (plan::GroupOp(group).getSymName() == name)
      return int(i);
  return -1;
}

int ProgramModel::tier(StringRef name) const {
  for (auto [i, tier] : llvm::enumerate(tiers))
    if (emb::TierOp(tier).getSymName() == name)
      return int(i);
  return -1;
}

int64_t ProgramModel::ringBytes(plan::RingOp ring) const {
  if (!ring.getRole() || int(*ring.getRole()) > int(plan::RingRole::Grads))
    return int64_t(ring.getBytes());
  int index = ring.getGroup() ? group(*ring.getGroup()) : -1;
  // A ring of no bytes would be no ring: one cache line at least.
  return std::max<int64_t>(
      64, trc::ringBytes(shape, trc::RingRole(int(*ring.getRole())), index));
}

planner::StoreShape ProgramModel::storeOf(plan::GroupOp group) const {
  planner::StoreShape store;
  store.rows = int64_t(group.getRows().value_or(0));
  store.storeBytes = group.getRecord().getStoreBytes();
  store.retained = emb::storeRetainedOf(module);
  store.setSpace(emb::storeSpaceOf(module), !group.isCached());
  plan::ProgramOp own = program;
  for (auto lane : own.getBody().front().getOps<plan::LaneOp>())
    if (lane.getKind() == plan::LaneKind::IO && lane.getDepth())
      store.depth = int64_t(std::min<uint64_t>(*lane.getDepth(), 4096));
  if (group.isCached())
    if (int home = tier(group.getHome()); home >= 0) {
      emb::TierOp op(tiers[home]);
      if (auto paths = op.getPath())
        store.extents = static_cast<int>(paths->size());
      store.mapped = op.getKind() == emb::TierKind::PMem;
    }
  return store;
}

SmallVector<TierUse> ProgramModel::tierUse() const {
  SmallVector<TierUse> use(tiers.size());
  int ringTier = -1;
  plan::ProgramOp op = program;
  for (auto [i, tier] : llvm::enumerate(tiers))
    use[i].tier = tier;
  for (auto ring : op.getBody().front().getOps<plan::RingOp>())
    ringTier = ringTier < 0 ? tier(ring.getTier()) : ringTier;
  if (ringTier >= 0)
    use[ringTier].rings = int64_t(op.getArena().value_or(0));
  for (auto [g, groupRef] : llvm::enumerate(groups)) {
    plan::GroupOp group = groupRef;
    int64_t rows = int64_t(group.getRows().value_or(0));
    int home = tier(group.getHome());
    planner::StoreShape store = storeOf(group);
    if (home >= 0)
      use[home].rows += group.isCached()
                            ? store.bytes()
                            : rows * group.getRecord().getSlotBytes();
    if (!group.isCached()) {
      if (home >= 0)
        use[home].index += planner::memoryHomeIndexBytes(store);
      continue;
    }
    int64_t slots = int64_t(group.getSlots().value_or(0));
    if (int cache = tier(*group.getCache()); cache >= 0)
      use[cache].slots += slots * group.getRecord().getSlotBytes();
    int64_t writeSlots = 1;
    for (auto ring : op.getBody().front().getOps<plan::RingOp>())
      if (ring.getRole() == plan::RingRole::WriteBuf && ring.getGroup() &&
          *ring.getGroup() == group.getSymName())
        writeSlots = int64_t(ring.getDepth());
    // The host walks the directory, wherever the slots lie.
    if (ringTier >= 0)
      use[ringTier].index += planner::indexBytes(
          store, slots, shape.groups[g].maxMiss, writeSlots);
  }
  return use;
}

LogicalResult terrace::sizeRings(plan::ProgramOp program) {
  FailureOr<ProgramModel> model = ProgramModel::of(program);
  if (failed(model))
    return failure();
  for (auto ring : program.getBody().front().getOps<plan::RingOp>())
    ring.setBytes(model->ringBytes(ring));
  return success();
}

GroupBounds terrace::boundsOf(const ProgramModel &model, plan::GroupOp group) {
  GroupBounds bounds;
  int index = model.group(group.getSymName());
  SmallVector<int64_t> perTable(model.tables.size(), 0);
  for (size_t f = 0; f < model.features.size(); ++f) {
    int64_t &ids = perTable[model.featureTable[f]];
    ids = std::min(ids + model.shape.featureIds(f), model.shape.maxIds);
  }
  for (size_t t = 0; t < model.tables.size(); ++t) {
    if (model.tableGroup[t] != index)
      continue;
    bounds.occurrences =
        std::min(bounds.occurrences + perTable[t], model.shape.maxIds);
    emb::TableOp table = model.tables[t];
    bounds.unique += std::min(perTable[t], table.getRows());
  }
  bounds.unique = std::min(bounds.unique, bounds.occurrences);
  return bounds;
}
