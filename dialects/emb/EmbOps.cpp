//===- EmbOps.cpp - Syntax and accessors of emb ops -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Custom pieces of assembly, builders and accessors. Rules are in
// EmbVerifiers.cpp.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/Emb.h"

using namespace mlir;
using namespace terrace::emb;

//===----------------------------------------------------------------------===//
// Pieces of assembly
//===----------------------------------------------------------------------===//

/// `"a"` or `"a", "b"`.
static ParseResult parseStrings(OpAsmParser &parser, ArrayAttr &strings) {
  SmallVector<Attribute> values;
  do {
    StringAttr value;
    if (parser.parseAttribute(value))
      return failure();
    values.push_back(value);
  } while (succeeded(parser.parseOptionalComma()));
  strings = parser.getBuilder().getArrayAttr(values);
  return success();
}

static void printStrings(OpAsmPrinter &printer, Operation *,
                         ArrayAttr strings) {
  llvm::interleaveComma(strings, printer);
}

/// The last type is the inverse's.
static ParseResult parseDedupTypes(OpAsmParser &parser,
                                   SmallVectorImpl<Type> &unique,
                                   Type &inverse) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseTypeList(unique))
    return failure();
  if (unique.size() < 2)
    return parser.emitError(loc, "expected unique bags and an inverse");
  inverse = unique.pop_back_val();
  return success();
}

static void printDedupTypes(OpAsmPrinter &printer, Operation *,
                            TypeRange unique, Type inverse) {
  llvm::interleaveComma(unique, printer);
  printer << ", " << inverse;
}

#define GET_OP_CLASSES
#include "dialects/emb/EmbOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

using MemoryEffect = SideEffects::EffectInstance<MemoryEffects::Effect>;

void CheckOp::getEffects(SmallVectorImpl<MemoryEffect> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), VerdictResource::get());
}
void DenseOp::getEffects(SmallVectorImpl<MemoryEffect> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), HeadResource::get());
}
void CommitOp::getEffects(SmallVectorImpl<MemoryEffect> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), TablesResource::get());
}
void ExchangeOp::getEffects(SmallVectorImpl<MemoryEffect> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), ChannelResource::get());
}

//===----------------------------------------------------------------------===//
// Tables of values
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr terrace::emb::getTableOfState(Value state) {
  while (Operation *op = state.getDefiningOp()) {
    if (auto read = dyn_cast<StateOp>(op))
      return read.getTableAttr();
    auto update = dyn_cast<UpdateOp>(op);
    if (!update)
      break;
    state = update.getState();
  }
  return {};
}

FlatSymbolRefAttr LookupOp::getTableRef() {
  return getTableOfState(getState());
}

FlatSymbolRefAttr terrace::emb::getTableOfBags(Value bags, bool *translated) {
  if (translated)
    *translated = false;
  while (Operation *op = bags.getDefiningOp()) {
    if (auto translate = dyn_cast<TranslateOp>(op)) {
      if (translated)
        *translated = true;
      bags = translate.getBags();
    } else if (auto dedup = dyn_cast<DedupOp>(op)) {
      bags = dedup.getBags()[cast<OpResult>(bags).getResultNumber()];
    } else if (auto check = dyn_cast<CheckOp>(op)) {
      unsigned i = cast<OpResult>(bags).getResultNumber();
      return i < check.getTables().size()
                 ? cast<FlatSymbolRefAttr>(check.getTables()[i])
                 : FlatSymbolRefAttr();
    } else {
      break;
    }
  }
  return {};
}

FeatureOp terrace::emb::getFeatureOfBags(Value bags) {
  while (Operation *op = bags.getDefiningOp()) {
    if (auto feature = dyn_cast<FeatureOp>(op))
      return feature;
    if (auto translate = dyn_cast<TranslateOp>(op))
      bags = translate.getBags();
    else if (auto dedup = dyn_cast<DedupOp>(op))
      bags = dedup.getBags()[cast<OpResult>(bags).getResultNumber()];
    else if (auto check = dyn_cast<CheckOp>(op))
      bags = check.getBags()[cast<OpResult>(bags).getResultNumber()];
    else
      break;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Dense
//===----------------------------------------------------------------------===//

static bool isColumn(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 1;
}

OperandRange DenseOp::getPooled() {
  OperandRange inputs = getInputs().drop_front();
  size_t pooled = 0;
  while (pooled < inputs.size() && !isColumn(inputs[pooled]))
    ++pooled;
  return inputs.take_front(pooled);
}

OperandRange DenseOp::getColumns() {
  OperandRange columns = getInputs().drop_front(1 + getPooled().size());
  return getLabel() ? columns.drop_back() : columns;
}

Value DenseOp::getLabel() {
  if (isCaller() || getInputs().size() < 2 || !isColumn(getInputs().back()))
    return {};
  return getInputs().back();
}

bool DenseOp::hasGradients() {
  if (getNumResults() == 0)
    return false;
  return cast<RankedTensorType>(getResult(0).getType()).getRank() == 2;
}

//===----------------------------------------------------------------------===//
// Update
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr UpdateOp::getTableRef() {
  return getTableOfState(getState());
}

Value UpdateOp::getInverseOf(unsigned i) {
  if (i >= getInverseIndex().size())
    return {};
  int32_t index = getInverseIndex()[i];
  return index < 0 || size_t(index) >= getInverses().size()
             ? Value()
             : getInverses()[index];
}

Value UpdateOp::getWinnerOf(unsigned i) {
  if (getPooling(i) != Pooling::Max)
    return {};
  unsigned index = 0;
  for (unsigned k = 0; k < i; ++k)
    index += getPooling(k) == Pooling::Max;
  return index < getWinners().size() ? getWinners()[index] : Value();
}

void UpdateOp::build(OpBuilder &builder, OperationState &result, Value state,
                     Value scale, ArrayRef<Pooling> pool, ValueRange bags,
                     ArrayRef<Value> inverseOf, ValueRange grads,
                     ValueRange winners) {
  SmallVector<Attribute> poolings;
  for (Pooling pooling : pool)
    poolings.push_back(PoolingAttr::get(builder.getContext(), pooling));
  SmallVector<Value> inverses;
  SmallVector<int32_t> index;
  for (Value inverse : inverseOf) {
    index.push_back(inverse ? int32_t(inverses.size()) : -1);
    if (inverse)
      inverses.push_back(inverse);
  }
  build(builder, result, state.getType(), state, scale,
        builder.getArrayAttr(poolings), bags, inverses,
        builder.getDenseI32ArrayAttr(index), grads, winners);
}

/// The inverse's type where the text does not give it: it has the batch of the
/// gradient.
static Type inferInverse(Type grad) {
  auto tensor = dyn_cast<RankedTensorType>(grad);
  if (!tensor || tensor.getRank() == 0 || tensor.isDynamicDim(0) ||
      tensor.getDimSize(0) < 1)
    return {};
  return InverseType::get(grad.getContext(), tensor.getDimSize(0));
}

ParseResult UpdateOp::parse(OpAsmParser &parser, OperationState &result) {
  using Operand = OpAsmParser::UnresolvedOperand;
  Operand state, scale;
  SmallVector<Attribute> pool;
  SmallVector<Operand> bags, inverses, grads, winners;
  SmallVector<int32_t> index;
  SMLoc loc = parser.getCurrentLocation();
  auto parsePooling = [&]() -> ParseResult {
    StringRef keyword;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<Pooling> pooling = symbolizePooling(keyword);
    if (!pooling)
      return parser.emitError(at, "'") << keyword << "' is not a pooling";
    pool.push_back(PoolingAttr::get(parser.getContext(), *pooling));
    return success();
  };
  auto parseBags = [&]() -> ParseResult {
    if (parser.parseOperand(bags.emplace_back()))
      return failure();
    if (failed(parser.parseOptionalKeyword("by"))) {
      index.push_back(-1);
      return success();
    }
    index.push_back(inverses.size());
    return parser.parseOperand(inverses.emplace_back());
  };
  auto square = AsmParser::Delimiter::Square;
  auto paren = AsmParser::Delimiter::Paren;
  if (parser.parseOperand(state) || parser.parseKeyword("scale") ||
      parser.parseOperand(scale) || parser.parseKeyword("pool") ||
      parser.parseCommaSeparatedList(square, parsePooling) ||
      parser.parseKeyword("bags") ||
      parser.parseCommaSeparatedList(square, parseBags) ||
      parser.parseKeyword("grads") || parser.parseOperandList(grads, paren))
    return failure();
  bool hasWinners = succeeded(parser.parseOptionalKeyword("winners"));
  if (hasWinners && parser.parseOperandList(winners, paren))
    return failure();

  Type stateType, scaleType;
  SmallVector<Type> bagTypes, inverseTypes, gradTypes, winnerTypes;
  auto parseBagType = [&]() -> ParseResult {
    size_t i = bagTypes.size();
    if (parser.parseType(bagTypes.emplace_back()))
      return failure();
    if (i >= index.size() || index[i] < 0)
      return success();
    inverseTypes.emplace_back();
    if (succeeded(parser.parseOptionalKeyword("by")))
      return parser.parseType(inverseTypes.back());
    return success();
  };
  auto parseInto = [&](SmallVectorImpl<Type> &types) {
    return parser.parseCommaSeparatedList(
        paren, [&]() { return parser.parseType(types.emplace_back()); });
  };
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(stateType) || parser.parseComma() ||
      parser.parseType(scaleType) || parser.parseComma() ||
      parser.parseCommaSeparatedList(square, parseBagType) ||
      parser.parseComma() || parseInto(gradTypes))
    return failure();
  if (hasWinners && (parser.parseComma() || parseInto(winnerTypes)))
    return failure();
  for (size_t i = 0; i < index.size() && i < gradTypes.size(); ++i) {
    if (index[i] < 0 || size_t(index[i]) >= inverseTypes.size() ||
        inverseTypes[index[i]])
      continue;
    inverseTypes[index[i]] = inferInverse(gradTypes[i]);
  }
  for (Type &type : inverseTypes)
    if (!type)
      return parser.emitError(
          loc,
          "write the inverse's type: `by !emb.inverse<N>` after the bags'");

  if (parser.resolveOperand(state, stateType, result.operands) ||
      parser.resolveOperand(scale, scaleType, result.operands) ||
      parser.resolveOperands(bags, bagTypes, loc, result.operands) ||
      parser.resolveOperands(inverses, inverseTypes, loc, result.operands) ||
      parser.resolveOperands(grads, gradTypes, loc, result.operands) ||
      parser.resolveOperands(winners, winnerTypes, loc, result.operands))
    return failure();
  auto &properties = result.getOrAddProperties<Properties>();
  properties.pool = parser.getBuilder().getArrayAttr(pool);
  properties.inverse_index = parser.getBuilder().getDenseI32ArrayAttr(index);
  int32_t segments[] = {1,
                        1,
                        int32_t(bags.size()),
                        int32_t(inverses.size()),
                        int32_t(grads.size()),
                        int32_t(winners.size())};
  llvm::copy(segments, properties.operandSegmentSizes.begin());
  result.addTypes(stateType);
  return success();
}

void UpdateOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getState() << " scale " << getScale() << " pool [";
  llvm::interleaveComma(getPool(), printer, [&](Attribute pooling) {
    printer << stringifyPooling(cast<PoolingAttr>(pooling).getValue());
  });
  printer << "] bags [";
  for (unsigned i = 0, e = getBags().size(); i < e; ++i) {
    printer << (i ? ", " : "") << getBags()[i];
    if (Value inverse = getInverseOf(i))
      printer << " by " << inverse;
  }
  printer << "] grads(" << getGrads() << ")";
  if (!getWinners().empty())
    printer << " winners(" << getWinners() << ")";
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getPoolAttrName(), getInverseIndexAttrName(), "operandSegmentSizes"});
  printer << " : " << getState().getType() << ", " << getScale().getType()
          << ", [";
  for (unsigned i = 0, e = getBags().size(); i < e; ++i) {
    printer << (i ? ", " : "") << getBags()[i].getType();
    Value inverse = getInverseOf(i);
    if (inverse && (i >= getGrads().size() ||
                    inferInverse(getGrads()[i].getType()) != inverse.getType()))
      printer << " by " << inverse.getType();
  }
  printer << "], (" << getGrads().getTypes() << ")";
  if (!getWinners().empty())
    printer << ", (" << getWinners().getTypes() << ")";
}
