//===- EmbFolders.cpp - Canonical forms of emb ops --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Only rewrites that hold bit for bit under `strict`. Look-up and expansion are
// not swapped here: that is emb-dedup's decision, made with numbers.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/Emb.h"

using namespace mlir;
using namespace terrace::emb;

LogicalResult TranslateOp::canonicalize(TranslateOp op,
                                        PatternRewriter &rewriter) {
  auto table =
      SymbolTable::lookupNearestSymbolFrom<TableOp>(op, op.getTableAttr());
  if (!table)
    return rewriter.notifyMatchFailure(op, "the table is not in sight");
  if (table.getIds() != IdKind::Index)
    return rewriter.notifyMatchFailure(op, "ids of the table are not rows");
  rewriter.replaceOp(op, op.getBags());
  return success();
}

namespace {
/// Bags that stand twice, or whose unique bags nobody reads, leave a dedup. The
/// unique bags may become fewer; each sample still finds its own.
struct DropFromDedup : OpRewritePattern<DedupOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DedupOp op,
                                PatternRewriter &rewriter) const override {
    llvm::MapVector<Value, unsigned> kept;
    for (auto [bags, unique] : llvm::zip(op.getBags(), op.getUnique()))
      if (!unique.use_empty())
        kept.try_emplace(bags, kept.size());
    if (kept.size() == op.getBags().size())
      return rewriter.notifyMatchFailure(op, "all bags are needed");
    if (kept.empty())
      return rewriter.notifyMatchFailure(op, "only the inverse is read");
    SmallVector<Value> bags;
    for (auto [value, index] : kept)
      bags.push_back(value);
    auto fewer =
        DedupOp::create(rewriter, op.getLoc(), bags, op.getGroupAttr());
    for (auto [value, unique] : llvm::zip(op.getBags(), op.getUnique()))
      if (!unique.use_empty())
        rewriter.replaceAllUsesWith(unique, fewer.getUnique()[kept[value]]);
    rewriter.replaceAllUsesWith(op.getInverse(), fewer.getInverse());
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void DedupOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<DropFromDedup>(context);
}
