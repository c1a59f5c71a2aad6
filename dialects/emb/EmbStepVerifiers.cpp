//===- EmbStepVerifiers.cpp - Rules of symbols and whole steps --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiers, tables and channels; what a step must hold as a whole; and that the
// programs of all workers meet in the same channels in the same order.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/Emb.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;
using namespace terrace::emb;

//===----------------------------------------------------------------------===//
// Tiers and tables
//===----------------------------------------------------------------------===//

LogicalResult TierOp::verify() {
  if (int64_t(getBytes()) < 1)
    return emitOpError("needs at least 1 byte, not ") << int64_t(getBytes());
  bool storage = getKind() == TierKind::PMem || getKind() == TierKind::NVMe;
  if (getPath() && !storage)
    return emitOpError("a tier of kind ")
           << stringifyTierKind(getKind()) << " takes no path";
  if (getWarnOfWear() && !getDriveWritesPerDay())
    return emitOpError("warn_of_wear needs drive_writes_per_day");
  if (getDriveWritesPerDay()) {
    double writes = getDriveWritesPerDay()->convertToDouble();
    if (!storage)
      return emitOpError("a tier of kind ") << stringifyTierKind(getKind())
                                            << " takes no drive_writes_per_day";
    if (!std::isfinite(writes) || writes <= 0)
      return emitOpError("drive_writes_per_day must be positive, not ")
             << writes;
  }
  return success();
}

LogicalResult TableOp::verify() {
  ShardsAttr shards = getShardsAttr();
  if (!shards || shards.getBounds().empty())
    return success();
  bool columns = shards.getKind() == ShardKind::Column;
  int64_t size = columns ? getDim() : getRows();
  if (shards.getBounds().back() != size)
    return emitOpError("shards end at ")
           << shards.getBounds().back() << ", but the table has " << size
           << (columns ? " columns" : " rows");
  if (columns && isStrict(*this) && !getOptimizer().isColumnSeparable())
    return emitOpError("optimizer ")
           << getOptimizer().getKindName()
           << " needs whole rows: column shards would re-associate its sum, "
              "which emb.numerics = \"strict\" does not allow";
  return success();
}

LogicalResult TableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  PlacementAttr placement = getPlacementAttr();
  if (!placement)
    return success();
  auto lookup = [&](FlatSymbolRefAttr name) {
    return symbols.lookupNearestSymbolFrom<TierOp>(*this, name);
  };
  TierOp home = lookup(placement.getHome());
  if (!home)
    return emitOpError("home ") << placement.getHome() << " is not an emb.tier";
  if (!placement.getCache()) {
    if (home.getKind() == TierKind::NVMe)
      return emitOpError("home ")
             << placement.getHome()
             << " is of kind nvme: its rows cannot be used in place, so that a "
                "cache is needed";
    return success();
  }
  TierOp cache = lookup(placement.getCache());
  if (!cache)
    return emitOpError("cache ")
           << placement.getCache() << " is not an emb.tier";
  if (cache.getKind() != TierKind::DRAM && cache.getKind() != TierKind::HBM)
    return emitOpError("a cache lies in hbm or dram, but ")
           << placement.getCache() << " is of kind "
           << stringifyTierKind(cache.getKind());
  return success();
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

LogicalResult ChannelOp::verify() {
  if (int64_t(getWorkers()) < 2)
    return emitOpError("joins at least 2 workers, not ")
           << int64_t(getWorkers());
  if (getItems().empty() || getItems().size() != getOwners().size())
    return emitOpError("has ") << getItems().size() << " items but "
                               << getOwners().size() << " owners";
  for (int64_t owner : getOwners())
    if (owner < 0 || owner >= int64_t(getWorkers()))
      return emitOpError("owner ")
             << owner << " is not one of " << getWorkers() << " workers";
  return success();
}

/// What one worker hands in and what an owner gets differ in samples only.
static bool sameItem(Type part, Type whole) {
  auto bags = dyn_cast<BagsType>(part);
  auto allBags = dyn_cast<BagsType>(whole);
  if (bags && allBags)
    return bags.getChecked() == allBags.getChecked() &&
           bags.getWeighted() == allBags.getWeighted() &&
           bags.getBatch() <= allBags.getBatch() &&
           bags.getMaxIds() <= allBags.getMaxIds();
  auto tensor = dyn_cast<RankedTensorType>(part);
  auto allTensor = dyn_cast<RankedTensorType>(whole);
  if (!tensor || !allTensor || tensor.getRank() != allTensor.getRank() ||
      tensor.getRank() == 0 ||
      tensor.getElementType() != allTensor.getElementType())
    return false;
  return tensor.getShape().drop_front() == allTensor.getShape().drop_front() &&
         (tensor.isDynamicDim(0) || allTensor.isDynamicDim(0) ||
          tensor.getDimSize(0) <= allTensor.getDimSize(0));
}

LogicalResult ExchangeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto channel =
      symbols.lookupNearestSymbolFrom<ChannelOp>(*this, getChannelAttr());
  if (!channel)
    return emitOpError() << getChannelAttr() << " is not an emb.channel";
  auto step = cast<StepOp>((*this)->getParentOp());
  if (step.getWorkers() != channel.getWorkers())
    return emitOpError("channel ")
           << getChannelAttr() << " joins " << channel.getWorkers()
           << " workers, but the step is one of " << step.getWorkers();
  SmallVector<unsigned> owned;
  for (auto [i, owner] : llvm::enumerate(channel.getOwners()))
    if (owner == int64_t(step.getWorker()))
      owned.push_back(i);
  bool toOwner = channel.getDirection() == Direction::ToOwner;
  TypeRange parts = toOwner ? TypeRange(getInputs().getTypes())
                            : TypeRange(getResults().getTypes());
  TypeRange wholes = toOwner ? TypeRange(getResults().getTypes())
                             : TypeRange(getInputs().getTypes());
  if (parts.size() != channel.getItems().size())
    return emitOpError("channel ")
           << getChannelAttr() << " has " << channel.getItems().size()
           << " items, but there are " << parts.size()
           << (toOwner ? " operands" : " results");
  if (wholes.size() != owned.size())
    return emitOpError("worker ")
           << step.getWorker() << " owns " << owned.size() << " items of "
           << getChannelAttr() << ", but there are " << wholes.size()
           << (toOwner ? " results" : " operands");
  for (auto [i, whole] : llvm::zip(owned, wholes))
    if (!sameItem(parts[i], whole))
      return emitOpError("item ")
             << channel.getItems()[i] << " is " << parts[i]
             << " on a worker, but " << whole << " at its owner";
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

LogicalResult StepOp::verify() {
  if (int64_t(getBatch()) < 1)
    return emitOpError("batch must be at least 1, not ") << int64_t(getBatch());
  if (int64_t(getMaxIds()) < 1)
    return emitOpError("max_ids must be at least 1, not ")
           << int64_t(getMaxIds());
  if (int64_t(getWorkers()) < 1 || int64_t(getWorker()) < 0 ||
      getWorker() >= getWorkers())
    return emitOpError("worker ") << int64_t(getWorker()) << " is not one of "
                                  << int64_t(getWorkers());
  return success();
}

LogicalResult StepOp::verifyRegions() {
  CheckOp check;
  CommitOp commit;
  llvm::StringSet<> features;
  llvm::DenseMap<Attribute, UpdateOp> updates;
  for (Operation &op : getBody().front()) {
    if (auto feature = dyn_cast<FeatureOp>(op)) {
      if (!features.insert(feature.getName()).second)
        return op.emitOpError("feature \"")
               << feature.getName() << "\" is read twice";
    } else if (auto other = dyn_cast<CheckOp>(op)) {
      if (check) {
        InFlightDiagnostic error = op.emitOpError(
            "a step gives one verdict over all its ids: a second emb.check");
        error.attachNote(check.getLoc()) << "the first is here";
        return error;
      }
      check = other;
    } else if (auto other = dyn_cast<CommitOp>(op)) {
      if (commit)
        return op.emitOpError("a step commits once, and all at once");
      commit = other;
    } else if (auto update = dyn_cast<UpdateOp>(op)) {
      FlatSymbolRefAttr table = update.getTableRef();
      if (!table)
        continue;
      auto [first, isNew] = updates.try_emplace(table, update);
      if (!isNew) {
        InFlightDiagnostic error = op.emitOpError("a second update of ")
                                   << table
                                   << ": every row meets its optimizer once a "
                                      "step, over all features";
        error.attachNote(first->second.getLoc()) << "the first is here";
        return error;
      }
    }
  }
  for (auto update : getBody().getOps<UpdateOp>()) {
    bool committed = false;
    for (Operation *user : update->getUsers()) {
      if (!isa<CommitOp>(user)) {
        InFlightDiagnostic error =
            user->emitOpError("reads a state after its update; within a step "
                              "only emb.commit may");
        error.attachNote(update.getLoc()) << "the update is here";
        return error;
      }
      committed = true;
    }
    if (!committed)
      return update.emitOpError("is not committed: the step would lose it");
  }
  if (commit)
    for (Value state : commit.getStates())
      if (!state.getDefiningOp<UpdateOp>())
        return commit.emitOpError("commits a state that has no update: ")
               << getTableOfState(state);
  return success();
}

static SmallVector<FlatSymbolRefAttr> channelsOf(StepOp step) {
  SmallVector<FlatSymbolRefAttr> channels;
  for (auto exchange : step.getBody().getOps<ExchangeOp>())
    channels.push_back(exchange.getChannelAttr());
  return channels;
}

LogicalResult StepOp::verifySymbolUses(SymbolTableCollection &) {
  SmallVector<FlatSymbolRefAttr> mine = channelsOf(*this);
  if (mine.empty())
    return success();
  for (FlatSymbolRefAttr channel : mine)
    if (llvm::count(mine, channel) > 1)
      return emitOpError("takes part in ") << channel << " twice";
  int64_t met = 1;
  for (auto other : (*this)->getBlock()->getOps<StepOp>()) {
    if (other == *this)
      continue;
    SmallVector<FlatSymbolRefAttr> theirs = channelsOf(other);
    if (llvm::none_of(theirs, [&](FlatSymbolRefAttr channel) {
          return llvm::is_contained(mine, channel);
        }))
      continue;
    ++met;
    if (other.getWorker() == getWorker())
      return emitOpError("is a program of worker ")
             << getWorker() << ", but @" << other.getSymName()
             << " uses the same channels for it";
    if (theirs != mine)
      return emitOpError("uses other channels, or another order, than @")
             << other.getSymName() << ": the workers would wait for each other";
  }
  if (met != int64_t(getWorkers()))
    return emitOpError("channel ") << mine.front() << " is used by " << met
                                   << " programs of " << getWorkers();
  return success();
}
