//===- EmbTypeInference.cpp - Result types of emb ops -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One place for verifier and builders: ODS gives builders without result types
// from these, and the interface's verifier compares with them.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/Emb.h"

using namespace mlir;
using namespace terrace::emb;

using Types = SmallVectorImpl<Type>;

LogicalResult CheckOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        CheckOp::Adaptor op, Types &types) {
  for (Type type : op.getBags().getTypes())
    types.push_back(cast<BagsType>(type).asChecked());
  return success();
}

LogicalResult DedupOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> loc,
                                        DedupOp::Adaptor op, Types &types) {
  if (op.getBags().empty())
    return emitOptionalError(loc, "'emb.dedup' op needs at least one operand");
  auto first = cast<BagsType>(op.getBags().front().getType());
  if (first.hasDynamicBatch())
    return emitOptionalError(loc,
                             "'emb.dedup' op takes the bags of a batch, "
                             "not unique bags: ",
                             first);
  for (Type type : op.getBags().getTypes())
    types.push_back(cast<BagsType>(type).withBatch(ShapedType::kDynamic));
  types.push_back(InverseType::get(context, first.getBatch()));
  return success();
}

LogicalResult LookupOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location>,
                                         LookupOp::Adaptor op, Types &types) {
  auto bags = cast<BagsType>(op.getBags().getType());
  auto state = cast<StateType>(op.getState().getType());
  // `none` has a row per id, and only a bound of ids is known.
  int64_t rows =
      op.getPooling() == Pooling::None ? ShapedType::kDynamic : bags.getBatch();
  SmallVector<int64_t> shape{rows, state.getDim()};
  types.push_back(RankedTensorType::get(shape, Float32Type::get(context)));
  if (op.getPooling() == Pooling::Max)
    types.push_back(
        RankedTensorType::get(shape, IntegerType::get(context, 32)));
  return success();
}
