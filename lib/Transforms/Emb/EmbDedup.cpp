//===- EmbDedup.cpp - Pools equal bags once -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes decide, per sample of the batch: what the look-up no longer reads
// against what hashing, the inverse and the expansion move.
//
//===----------------------------------------------------------------------===//
#include "Transforms/Emb/EmbPasses.h"
#include "Transforms/Emb/ModuleProblem.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

namespace terrace {
#define GEN_PASS_DEF_EMBDEDUP
#include "Transforms/Emb/EmbPasses.h.inc"
} // namespace terrace

using namespace mlir;
using namespace terrace;

namespace {

/// One feature of a group: its rows' bags and all that reads them.
struct Member {
  emb::FeatureOp feature;
  Value bags; // checked and translated
  emb::LookupOp lookup;
  emb::UpdateOp update; // null in a forward-only step
  unsigned updateIndex = 0;
};

class EmbDedupPass : public terrace::impl::EmbDedupBase<EmbDedupPass> {
public:
  using EmbDedupBase::EmbDedupBase;
  void runOnOperation() override;

private:
  void runOnStep(emb::StepOp step);
  bool pays(StringRef group, MutableArrayRef<Member> members, Location loc);
  void rewrite(StringRef group, MutableArrayRef<Member> members,
               ArrayRef<Member *> everyMember, emb::StepOp step);
};

/// The one look-up and the one update of bags; null members where another op
/// reads them, since it would see bags that are not there any more.
std::optional<Member> memberOf(emb::LookupOp lookup) {
  Member m;
  m.lookup = lookup;
  m.bags = lookup.getBags();
  m.feature = featureOfBags(m.bags);
  if (!m.feature || !m.feature.getDedup() ||
      cast<emb::BagsType>(m.bags.getType()).hasDynamicBatch())
    return std::nullopt;
  for (OpOperand &use : m.bags.getUses()) {
    if (use.getOwner() == lookup.getOperation())
      continue;
    auto update = dyn_cast<emb::UpdateOp>(use.getOwner());
    if (!update || m.update)
      return std::nullopt;
    m.update = update;
    for (auto [i, bags] : llvm::enumerate(update.getBags()))
      if (bags == m.bags)
        m.updateIndex = i;
    if (update.getInverseOf(m.updateIndex))
      return std::nullopt;
  }
  return m;
}

bool EmbDedupPass::pays(StringRef group, MutableArrayRef<Member> members,
                        Location loc) {
  using namespace remark;
  SmallVector<emb::FeatureOp> features;
  for (const Member &m : members)
    features.push_back(m.feature);
  bool measured;
  double factor =
      expectedDedupFactor(getOperation(), group, features, measured);
  double saved = 0, moved = 4; // the inverse
  for (Member &m : members) {
    double ids = m.feature.getMeanIds()
                     ? m.feature.getMeanIds()->convertToDouble()
                     : double(m.feature.getMaxPerBag().value_or(1));
    auto state = cast<emb::StateType>(m.lookup.getState().getType());
    double row = double(state.getRow().getBytes(state.getDim()));
    double out = double(state.getDim()) * 4 *
                 (m.lookup.getPooling() == emb::Pooling::None ? ids : 1);
    saved += (1 - 1 / factor) * ids * (row + 8);
    moved += ids * 8 + 2 * out / factor; // hash; unique outputs, out and in
  }
  bool yes = factor >= minFactor && saved > moved;
  auto opts = RemarkOpts::name("dedup").category("emb-dedup").function(group);
  auto r = yes ? passed(loc, opts) : missed(loc, opts);
  r << add("group {0}: bags of {1} features {2}", group, members.size(),
           yes ? "pooled once per unique bag" : "left as they are")
    << metric("SamplesPerUniqueBag", llvm::formatv("{0:f2}", factor).str())
    << metric("SavedBytesPerSample", std::llround(saved))
    << metric("MovedBytesPerSample", std::llround(moved))
    << reason("{0} factor; the least that counts is {1:f2}",
              measured ? "measured" : "assumed", double(minFactor));
  return yes;
}

void EmbDedupPass::rewrite(StringRef group, MutableArrayRef<Member> members,
                           ArrayRef<Member *> everyMember, emb::StepOp step) {
  // After the last definition of the group's bags; look-ups come later.
  Operation *last = members.front().bags.getDefiningOp();
  SmallVector<Value> bags;
  for (Member &m : members) {
    Operation *def = m.bags.getDefiningOp();
    if (last->isBeforeInBlock(def))
      last = def;
    bags.push_back(m.bags);
  }
  OpBuilder b(&getContext());
  b.setInsertionPointAfter(last);
  auto dedup = emb::DedupOp::create(b, members.front().feature.getLoc(), bags,
                                    b.getStringAttr(group));
  Value inverse = dedup.getInverse();
  bool reduces = !emb::isStrict(step);
  for (auto [i, m] : llvm::enumerate(members)) {
    Value unique = dedup.getUnique()[i];
    emb::Pooling pooling = m.lookup.getPooling();
    bool perId = pooling == emb::Pooling::None;
    b.setInsertionPoint(m.lookup);
    auto lookup =
        emb::LookupOp::create(b, m.lookup.getLoc(), m.lookup.getPoolingAttr(),
                              m.lookup.getState(), unique);
    Value expanded = emb::ExpandOp::create(
        b, m.lookup.getLoc(), m.lookup.getPooled().getType(),
        lookup.getPooled(), inverse, perId ? unique : Value());
    m.lookup.getPooled().replaceAllUsesWith(expanded);
    if (m.update) {
      // Bags become unique ones. Gradients stay per sample and are read by the
      // inverse, or are added up first where re-association is allowed.
      emb::UpdateOp old = m.update;
      SmallVector<emb::Pooling> pool;
      SmallVector<Value> newBags, inverses, grads, winners;
      for (unsigned k = 0, e = old.getBags().size(); k < e; ++k) {
        bool mine = k == m.updateIndex;
        pool.push_back(old.getPooling(k));
        newBags.push_back(mine ? unique : old.getBags()[k]);
        inverses.push_back(old.getInverseOf(k));
        Value grad = old.getGrads()[k];
        if (mine) {
          b.setInsertionPoint(old);
          if (reduces && !perId && pooling != emb::Pooling::Max)
            grad = emb::ReduceOp::create(
                b, old.getLoc(), lookup.getPooled().getType(), grad, inverse);
          else
            inverses.back() = inverse;
        }
        grads.push_back(grad);
        if (Value winner = old.getWinnerOf(k))
          winners.push_back(mine ? lookup.getWinner() : winner);
      }
      b.setInsertionPoint(old);
      auto update =
          emb::UpdateOp::create(b, old.getLoc(), old.getState(), old.getScale(),
                                pool, newBags, inverses, grads, winners);
      old.replaceAllUsesWith(update.getResult());
      // A table's one update is shared by groups.
      for (Member *other : everyMember)
        if (other->update == old)
          other->update = update;
      old.erase();
      m.update = update;
    }
    m.lookup.erase();
  }
}

void EmbDedupPass::runOnStep(emb::StepOp step) {
  llvm::MapVector<StringRef, SmallVector<Member>> groups;
  llvm::SmallSet<StringRef, 4> refused;
  for (auto lookup : step.getBody().front().getOps<emb::LookupOp>()) {
    emb::FeatureOp feature = featureOfBags(lookup.getBags());
    if (!feature || !feature.getDedup())
      continue;
    StringRef group = *feature.getDedup();
    if (std::optional<Member> m = memberOf(lookup)) {
      groups[group].push_back(*m);
      continue;
    }
    if (lookup.getBags().getDefiningOp<emb::DedupOp>() ||
        !refused.insert(group).second)
      continue;
    remark::failed(
        lookup.getLoc(),
        remark::RemarkOpts::name("dedup").category("emb-dedup").function(group))
        << remark::reason("the bags of feature {0} have other readers",
                          feature.getName());
  }
  SmallVector<Member *> everyMember;
  for (auto &entry : groups)
    for (Member &member : entry.second)
      everyMember.push_back(&member);
  for (auto &[group, members] : groups) {
    if (refused.contains(group))
      continue;
    if (pays(group, members, members.front().feature.getLoc()))
      rewrite(group, members, everyMember, step);
  }
}

void EmbDedupPass::runOnOperation() {
  for (auto step : getOperation().getOps<emb::StepOp>())
    runOnStep(step);
}

} // namespace
