//===- EmbVerifiers.cpp - Rules of the ops of a step ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each rule names the operand and both values, and each has a case in
// test/dialects/emb/invalid*.mlir. Rules of symbols and whole steps are in
// EmbStepVerifiers.cpp.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/Emb.h"

#include <cmath>

using namespace mlir;
using namespace terrace::emb;

//===----------------------------------------------------------------------===//
// Shared rules
//===----------------------------------------------------------------------===//

static bool takesWeights(Pooling pooling) {
  return pooling != Pooling::Max && pooling != Pooling::None;
}

static LogicalResult verifyChecked(Operation *op, Value bags) {
  if (cast<BagsType>(bags.getType()).getChecked())
    return success();
  return op->emitOpError("only checked ids can index a table, but these are ")
         << bags.getType();
}

static LogicalResult verifyPooling(Operation *op, Pooling pooling,
                                   BagsType bags) {
  if (!bags.getWeighted() || takesWeights(pooling))
    return success();
  return op->emitOpError("pooling ")
         << stringifyPooling(pooling) << " takes no weights, but the bags are "
         << bags;
}

static FailureOr<TableOp> lookupTable(Operation *op, FlatSymbolRefAttr name,
                                      SymbolTableCollection &symbols) {
  if (auto table = symbols.lookupNearestSymbolFrom<TableOp>(op, name))
    return table;
  return op->emitOpError() << name << " is not an emb.table";
}

/// The bags must have been checked against `table`, and be rows of it.
static LogicalResult verifyRowsOf(Operation *op, Value bags,
                                  FlatSymbolRefAttr table,
                                  SymbolTableCollection &symbols) {
  FailureOr<TableOp> found = lookupTable(op, table, symbols);
  if (failed(found))
    return failure();
  bool translated = false;
  FlatSymbolRefAttr checked = getTableOfBags(bags, &translated);
  if (!checked)
    return success();
  if (checked != table)
    return op->emitOpError("the ids were checked against ")
           << checked << ", but index " << table;
  if (found->getIds() != IdKind::Index && !translated)
    return op->emitOpError("ids of ")
           << table << " are of kind " << stringifyIdKind(found->getIds())
           << ": they need an emb.translate before they are rows";
  return success();
}

/// Gradients of bags pooled by `pooling` into rows of `dim` columns.
static LogicalResult verifyGradient(Operation *op, StringRef what, Type type,
                                    Pooling pooling, int64_t batch,
                                    int64_t dim) {
  auto tensor = cast<RankedTensorType>(type);
  if (pooling == Pooling::None)
    batch = ShapedType::kDynamic;
  SmallVector<int64_t> shape{batch, dim};
  if (tensor.getShape() == ArrayRef<int64_t>(shape))
    return success();
  return op->emitOpError() << what << " must be "
                           << RankedTensorType::get(shape,
                                                    tensor.getElementType())
                           << ", not " << tensor;
}

static LogicalResult verifySameDedup(Operation *op, Value bags, Value inverse) {
  auto from = bags.getDefiningOp<DedupOp>();
  auto by = inverse.getDefiningOp<DedupOp>();
  // A translate between dedup and use keeps the bags.
  Value source = bags;
  while (auto translate = source.getDefiningOp<TranslateOp>()) {
    source = translate.getBags();
    from = source.getDefiningOp<DedupOp>();
  }
  if (!from || !by || from == by)
    return success();
  InFlightDiagnostic error =
      op->emitOpError("bags and inverse come from different dedups");
  error.attachNote(from.getLoc()) << "the bags are from here";
  error.attachNote(by.getLoc()) << "the inverse is from here";
  return error;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

LogicalResult ScalarOp::verify() {
  if (getName() == "lr_scale" || getName() == "grad_scale")
    return success();
  return emitOpError("scalar must be \"lr_scale\" or \"grad_scale\", not \"")
         << getName() << "\"";
}

LogicalResult FeatureOp::verify() {
  if (getName().empty())
    return emitOpError("needs a name");
  auto step = cast<StepOp>((*this)->getParentOp());
  int64_t whole = step.getBatch();
  int64_t share =
      llvm::divideCeil(whole, std::max<int64_t>(1, step.getWorkers()));
  auto verifyBatch = [&](int64_t batch) -> LogicalResult {
    if (batch == whole || batch == share)
      return success();
    if (whole == share)
      return emitOpError("feature \"")
             << getName() << "\" has the batch bound " << batch
             << ", but the step's is " << whole;
    return emitOpError("feature \"") << getName() << "\" has the batch bound "
                                     << batch << ", but the step's is " << whole
                                     << " and a worker's share " << share;
  };
  if (auto column = dyn_cast<RankedTensorType>(getType())) {
    if (column.getRank() != 1)
      return emitOpError("a dense column has rank 1, not ") << column;
    if (getWeights() || getMaxPerBag() || getOverflow() || getDedup() ||
        getMeanIds() || getStringIds() || getProfile())
      return emitOpError("a dense column takes no attributes of bags");
    return verifyBatch(column.getDimSize(0));
  }
  auto bags = cast<BagsType>(getType());
  if (bags.getChecked())
    return emitOpError("ids from outside are raw, not ") << bags;
  if (bags.getWeighted() != getWeights().has_value())
    return emitOpError("needs `weights` exactly where its bags are weighted: ")
           << bags;
  if (getIndex() && int64_t(*getIndex()) < 0)
    return emitOpError("index must not be negative, not ")
           << int64_t(*getIndex());
  if (getMaxPerBag() && int64_t(*getMaxPerBag()) < 1)
    return emitOpError("max_per_bag must be at least 1, not ")
           << int64_t(*getMaxPerBag());
  if (getMeanIds()) {
    double mean = getMeanIds()->convertToDouble();
    if (!std::isfinite(mean) || mean < 0)
      return emitOpError("mean_ids must be finite and not negative, not ")
             << mean;
  }
  return verifyBatch(bags.getBatch());
}

//===----------------------------------------------------------------------===//
// Ids
//===----------------------------------------------------------------------===//

LogicalResult CheckOp::verify() {
  if (getTables().size() != getBags().size())
    return emitOpError("has ") << getBags().size() << " bags but "
                               << getTables().size() << " tables";
  for (Value bags : getBags())
    if (cast<BagsType>(bags.getType()).getChecked())
      return emitOpError("ids are checked once, but these already are: ")
             << bags.getType();
  if (getOnBadId() != "error" && getOnBadId() != "drop")
    return emitOpError("on_bad_id must be \"error\" or \"drop\", not \"")
           << getOnBadId() << "\"";
  auto module = (*this)->getParentOfType<ModuleOp>();
  auto model = module ? module->getAttrOfType<StringAttr>(EmbDialect::kOnBadId)
                      : StringAttr();
  if (model && model.getValue() != getOnBadId())
    return emitOpError("on_bad_id is \"")
           << getOnBadId() << "\", but the module's is " << model;
  return success();
}

LogicalResult CheckOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto table : getTables().getAsRange<FlatSymbolRefAttr>())
    if (failed(lookupTable(*this, table, symbols)))
      return failure();
  return success();
}

LogicalResult TranslateOp::verify() {
  if (failed(verifyChecked(*this, getBags())))
    return failure();
  bool translated = false;
  getTableOfBags(getBags(), &translated);
  if (translated)
    return emitOpError("the ids are rows already: they were translated before");
  return success();
}

LogicalResult TranslateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(lookupTable(*this, getTableAttr(), symbols)))
    return failure();
  FlatSymbolRefAttr checked = getTableOfBags(getBags());
  if (!checked || checked == getTableAttr())
    return success();
  return emitOpError("the ids were checked against ")
         << checked << ", but are translated in " << getTableAttr();
}

LogicalResult DedupOp::verify() {
  auto first = cast<BagsType>(getBags().front().getType());
  for (Value bags : getBags()) {
    if (failed(verifyChecked(*this, bags)))
      return failure();
    int64_t batch = cast<BagsType>(bags.getType()).getBatch();
    if (batch != first.getBatch())
      return emitOpError("all bags must have the same batch bound, not ")
             << first << " and " << bags.getType();
  }
  return success();
}

LogicalResult ExpandOp::verify() {
  auto from = cast<RankedTensorType>(getPooled().getType());
  auto to = cast<RankedTensorType>(getType());
  if (from.getRank() != 2 || !from.isDynamicDim(0))
    return emitOpError("takes a row per unique bag, tensor<?x...>, not ")
           << from;
  int64_t batch = cast<InverseType>(getInverse().getType()).getBatch();
  if (Value bags = getBags()) {
    if (!cast<BagsType>(bags.getType()).hasDynamicBatch())
      return emitOpError("`of` takes unique bags, not ") << bags.getType();
    if (failed(verifySameDedup(*this, bags, getInverse())))
      return failure();
    batch = ShapedType::kDynamic;
  }
  auto expected =
      RankedTensorType::get({batch, from.getDimSize(1)}, from.getElementType());
  if (to != expected)
    return emitOpError("result must be ") << expected << ", not " << to;
  return success();
}

LogicalResult UniqueOp::verify() {
  if (getBags().empty())
    return emitOpError("needs at least one operand");
  for (Value bags : getBags())
    if (failed(verifyChecked(*this, bags)))
      return failure();
  for (Value result : getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    if (type.getRank() != 1 || !type.isDynamicDim(0))
      return emitOpError("results are lists, tensor<?x...>, not ") << type;
  }
  return success();
}

LogicalResult UniqueOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (Value bags : getBags())
    if (failed(verifyRowsOf(*this, bags, getTableAttr(), symbols)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// States and look-ups
//===----------------------------------------------------------------------===//

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<TableOp> table = lookupTable(*this, getTableAttr(), symbols);
  if (failed(table))
    return failure();
  if (table->getStateType() != getType())
    return emitOpError("is ") << getType() << ", but table " << getTableAttr()
                              << " is " << table->getStateType();
  return success();
}

LogicalResult LookupOp::verify() {
  if (failed(verifyChecked(*this, getBags())))
    return failure();
  return verifyPooling(*this, getPooling(),
                       cast<BagsType>(getBags().getType()));
}

LogicalResult LookupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FlatSymbolRefAttr table = getTableRef();
  return table ? verifyRowsOf(*this, getBags(), table, symbols) : success();
}

LogicalResult GradWeightsOp::verify() {
  auto bags = cast<BagsType>(getBags().getType());
  if (failed(verifyChecked(*this, getBags())))
    return failure();
  if (!bags.getWeighted())
    return emitOpError("the bags have no weights: ") << bags;
  if (failed(verifyPooling(*this, getPooling(), bags)))
    return failure();
  int64_t dim = cast<StateType>(getState().getType()).getDim();
  if (failed(verifyGradient(*this, "the gradient", getGrad().getType(),
                            getPooling(), bags.getBatch(), dim)))
    return failure();
  auto result = cast<RankedTensorType>(getType());
  if (result.getRank() != 1 || !result.isDynamicDim(0))
    return emitOpError("the result has one value per id, tensor<?xf32>, not ")
           << result;
  return success();
}

LogicalResult GradWeightsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FlatSymbolRefAttr table = getTableOfState(getState());
  return table ? verifyRowsOf(*this, getBags(), table, symbols) : success();
}

//===----------------------------------------------------------------------===//
// The head
//===----------------------------------------------------------------------===//

LogicalResult DenseOp::verify() {
  static constexpr StringLiteral kinds[] = {"caller", "dlrm", "fm", "logistic"};
  if (!llvm::is_contained(kinds, getKind()))
    return emitOpError("head must be @caller, @dlrm, @fm or @logistic, not @")
           << getKind();
  if (getInputs().empty() || !getInputs().front().getType().isIndex())
    return emitOpError("the first operand is the number of samples, an index");
  OperandRange pooled = getPooled();
  if (pooled.empty())
    return emitOpError("needs at least one pooled output");
  for (Value value : pooled) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() != 2 || !type.getElementType().isF32())
      return emitOpError("pooled outputs are rank-2 f32 tensors, not ")
             << value.getType();
    if (!isCaller() && type.isDynamicDim(0))
      return emitOpError("head @")
             << getKind() << " takes one row per sample, not " << type;
    auto first = cast<RankedTensorType>(pooled.front().getType());
    if (getKind() == "fm" && type != first)
      return emitOpError("head @fm takes outputs of one shape, not ")
             << first << " and " << type;
  }
  for (Value value : getInputs().drop_front(1 + pooled.size()))
    if (auto type = dyn_cast<RankedTensorType>(value.getType());
        !type || type.getRank() != 1 || !type.getElementType().isF32())
      return emitOpError("pooled outputs come first, then f32 columns, not ")
             << value.getType();
  if (getKind() != "dlrm" && !getColumns().empty())
    return emitOpError("head @") << getKind() << " takes no dense columns";
  if (getResults().empty())
    return isCaller() ? success()
                      : emitOpError("head @") << getKind() << " needs results";
  if (!hasGradients()) {
    if (isCaller() || getNumResults() != 1)
      return emitOpError("results are gradients, one per pooled output, or one "
                         "prediction per sample");
    return success();
  }
  if (!isCaller() && !getLabel())
    return emitOpError("gradients of head @") << getKind() << " need a label";
  if (getNumResults() != pooled.size())
    return emitOpError("has ") << pooled.size() << " pooled outputs but "
                               << getNumResults() << " gradients";
  for (auto [output, grad] : llvm::zip(pooled, getResults()))
    if (output.getType() != grad.getType())
      return emitOpError("a gradient has the type of its output, ")
             << output.getType() << ", not " << grad.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  if (isStrict(*this))
    return emitOpError("re-associates a sum, which emb.numerics = \"strict\" "
                       "(the default) does not allow");
  auto from = cast<RankedTensorType>(getGrad().getType());
  int64_t batch = cast<InverseType>(getInverse().getType()).getBatch();
  if (from.getDimSize(0) != batch)
    return emitOpError("the gradient has ")
           << from << ", but the inverse has " << batch << " samples";
  auto expected = RankedTensorType::get(
      {ShapedType::kDynamic, from.getDimSize(1)}, from.getElementType());
  if (getType() != expected)
    return emitOpError("result must be ") << expected << ", not " << getType();
  return success();
}

LogicalResult UpdateOp::verify() {
  size_t count = getBags().size();
  if (count == 0)
    return emitOpError("needs at least one feature");
  if (getPool().size() != count || getGrads().size() != count ||
      getInverseIndex().size() != count)
    return emitOpError("has ")
           << count << " bags, " << getPool().size() << " poolings and "
           << getGrads().size() << " gradients";
  int32_t next = 0;
  for (int32_t index : getInverseIndex()) {
    if (index == -1)
      continue;
    if (index != next++)
      return emitOpError("inverses must be named once each, in order");
  }
  if (size_t(next) != getInverses().size())
    return emitOpError("has ")
           << getInverses().size() << " inverses, but uses " << next;
  size_t maxes = 0;
  for (unsigned i = 0; i < count; ++i)
    maxes += getPooling(i) == Pooling::Max;
  if (getWinners().size() != maxes)
    return emitOpError("has ") << maxes << " features pooled by max, but "
                               << getWinners().size() << " winners";
  int64_t dim = cast<StateType>(getState().getType()).getDim();
  for (unsigned i = 0; i < count; ++i) {
    auto bags = cast<BagsType>(getBags()[i].getType());
    if (failed(verifyChecked(*this, getBags()[i])) ||
        failed(verifyPooling(*this, getPooling(i), bags)))
      return failure();
    int64_t batch = bags.getBatch();
    if (Value inverse = getInverseOf(i)) {
      if (!bags.hasDynamicBatch())
        return emitOpError("`by` takes unique bags, not ") << bags;
      if (failed(verifySameDedup(*this, getBags()[i], inverse)))
        return failure();
      batch = cast<InverseType>(inverse.getType()).getBatch();
    }
    if (failed(verifyGradient(*this, "gradient #" + std::to_string(i),
                              getGrads()[i].getType(), getPooling(i), batch,
                              dim)))
      return failure();
    // Winners stand per bag, so per unique bag too, or expanded with the
    // output.
    Value winner = getWinnerOf(i);
    if (winner && bags.hasDynamicBatch() &&
        cast<RankedTensorType>(winner.getType()).isDynamicDim(0))
      batch = bags.getBatch();
    if (winner)
      if (failed(verifyGradient(*this, "winners of bags #" + std::to_string(i),
                                winner.getType(), getPooling(i), batch, dim)))
        return failure();
  }
  return success();
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FlatSymbolRefAttr table = getTableRef();
  if (!table)
    return success();
  for (Value bags : getBags())
    if (failed(verifyRowsOf(*this, bags, table, symbols)))
      return failure();
  return success();
}

LogicalResult CommitOp::verify() {
  if (getTables().size() != getStates().size())
    return emitOpError("has ") << getTables().size() << " tables but "
                               << getStates().size() << " states";
  for (auto [name, state] : llvm::zip(getTables(), getStates())) {
    FlatSymbolRefAttr table = getTableOfState(state);
    if (table && table != name)
      return emitOpError("the state committed to ")
             << name << " is one of " << table;
    if (llvm::count(getTables(), name) > 1)
      return emitOpError("commits ") << name << " twice";
  }
  return success();
}

LogicalResult CommitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto [name, state] :
       llvm::zip(getTables().getAsRange<FlatSymbolRefAttr>(), getStates())) {
    FailureOr<TableOp> table = lookupTable(*this, name, symbols);
    if (failed(table))
      return failure();
    if (table->getStateType() != state.getType())
      return emitOpError("the state of ")
             << name << " is " << table->getStateType() << ", not "
             << state.getType();
  }
  return success();
}
