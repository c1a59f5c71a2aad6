//===- PlanOps.cpp - Syntax and accessors of plan ops -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Custom pieces of assembly and accessors. Rules are in PlanVerifiers.cpp,
// effects in PlanEffects.cpp.
//
//===----------------------------------------------------------------------===//
#include "dialects/plan/Plan.h"

using namespace mlir;
using namespace terrace::plan;

//===----------------------------------------------------------------------===//
// Pieces of assembly
//===----------------------------------------------------------------------===//

/// `%t, %f : !plan.buf`: tokens need no type.
static ParseResult
parseWaits(OpAsmParser &parser,
           SmallVectorImpl<OpAsmParser::UnresolvedOperand> &after,
           SmallVectorImpl<Type> &types) {
  do {
    if (parser.parseOperand(after.emplace_back()))
      return failure();
    types.push_back(TokenType::get(parser.getContext()));
    if (succeeded(parser.parseOptionalColon()) &&
        parser.parseType(types.back()))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  return success();
}

static void printWaits(OpAsmPrinter &printer, Operation *, OperandRange after,
                       TypeRange types) {
  llvm::interleaveComma(llvm::zip(after, types), printer, [&](auto wait) {
    auto [value, type] = wait;
    printer << value;
    if (!isa<TokenType>(type))
      printer << " : " << type;
  });
}

/// `@a` or `@a, @b`.
static ParseResult parseSymbols(OpAsmParser &parser, ArrayAttr &symbols) {
  SmallVector<Attribute> values;
  do {
    FlatSymbolRefAttr value;
    if (parser.parseAttribute(value))
      return failure();
    values.push_back(value);
  } while (succeeded(parser.parseOptionalComma()));
  symbols = parser.getBuilder().getArrayAttr(values);
  return success();
}

static void printSymbols(OpAsmPrinter &printer, Operation *,
                         ArrayAttr symbols) {
  llvm::interleaveComma(symbols, printer);
}

/// `["a", "b"], ["c"]`.
static ParseResult parseFeatureGroups(OpAsmParser &parser, ArrayAttr &groups) {
  SmallVector<Attribute> values;
  do {
    ArrayAttr value;
    if (parser.parseAttribute(value))
      return failure();
    values.push_back(value);
  } while (succeeded(parser.parseOptionalComma()));
  groups = parser.getBuilder().getArrayAttr(values);
  return success();
}

static void printFeatureGroups(OpAsmPrinter &printer, Operation *,
                               ArrayAttr groups) {
  llvm::interleaveComma(groups, printer);
}

/// `%g by %inv, %h`.
static ParseResult
parseGradsBy(OpAsmParser &parser,
             SmallVectorImpl<OpAsmParser::UnresolvedOperand> &grads,
             SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inverses,
             DenseI32ArrayAttr &inverseIndex) {
  SmallVector<int32_t> index;
  do {
    if (parser.parseOperand(grads.emplace_back()))
      return failure();
    if (failed(parser.parseOptionalKeyword("by"))) {
      index.push_back(-1);
      continue;
    }
    index.push_back(inverses.size());
    if (parser.parseOperand(inverses.emplace_back()))
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  inverseIndex = parser.getBuilder().getDenseI32ArrayAttr(index);
  return success();
}

static void printGradsBy(OpAsmPrinter &printer, Operation *, OperandRange grads,
                         OperandRange inverses, DenseI32ArrayAttr index) {
  for (auto [i, grad] : llvm::enumerate(grads)) {
    printer << (i ? ", " : "") << grad;
    if (index[i] >= 0)
      printer << " by " << inverses[index[i]];
  }
}

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Names in printed IR
//===----------------------------------------------------------------------===//

void terrace::plan::detail::nameResults(Operation *op,
                                        OpAsmSetValueNameFn set) {
  SmallVector<StringRef, 3> names;
  if (isa<IngestOp>(op))
    names = {"batch"};
  else if (isa<CheckOp>(op))
    names = {"ids"};
  else if (isa<TranslateOp>(op))
    names = {"rows"};
  else if (isa<DedupOp>(op))
    names = {"bags", "inverse"};
  else if (isa<UniqueOp>(op))
    names = {"unique", "occurrences"};
  else if (isa<TouchOp>(op))
    names = {"occurrences"};
  else if (isa<ProbeOp>(op))
    names = {"pins", "misses", "victims"};
  else if (isa<ResumeOp>(op))
    names = {"go", "grads"};
  else // what has happened: %fetch_g, %segment_update_g
    names = {op->getName().stripDialect()};
  FlatSymbolRefAttr group = cast<PlanStageOpInterface>(op).getGroupRef();
  for (auto [result, stem] : llvm::zip(op->getResults(), names))
    set(result, group ? (stem + "_" + group.getValue()).str() : stem.str());
}

void RingOp::getAsmResultNames(OpAsmSetValueNameFn set) {
  std::string name = "ring";
  if (getRole())
    name += "_" + stringifyRingRole(*getRole()).str();
  if (getGroupAttr())
    name += "_" + getGroupAttr().getValue().str();
  set(getResult(), name);
}

void PipelineOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn set) {
  for (BlockArgument carried : region.getArguments())
    set(carried, "carried");
}

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

int64_t GroupOp::getTableIndex(StringRef table) {
  for (auto [i, name] : llvm::enumerate(getTables()))
    if (cast<FlatSymbolRefAttr>(name).getValue() == table)
      return i;
  return -1;
}

PipelineOp ProgramOp::getPipeline() {
  return *getBody().front().getOps<PipelineOp>().begin();
}

YieldOp PipelineOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

Value PipelineOp::getCarried(unsigned i) { return getYield().getTokens()[i]; }

//===----------------------------------------------------------------------===//
// Pipeline
//===----------------------------------------------------------------------===//

ParseResult PipelineOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<int64_t> distances;
  auto parseCarried = [&]() -> ParseResult {
    OpAsmParser::Argument argument;
    if (parser.parseArgument(argument) || parser.parseEqual() ||
        parser.parseInteger(distances.emplace_back()))
      return failure();
    argument.type = TokenType::get(parser.getContext());
    arguments.push_back(argument);
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("carry")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseCarried))
    return failure();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  ensureTerminator(*result.regions[0], parser.getBuilder(), result.location);
  result.getOrAddProperties<Properties>().distances =
      parser.getBuilder().getDenseI64ArrayAttr(distances);
  return success();
}

void PipelineOp::print(OpAsmPrinter &printer) {
  if (!getDistances().empty()) {
    printer << " carry(";
    llvm::interleaveComma(llvm::zip(getBody().getArguments(), getDistances()),
                          printer, [&](auto carried) {
                            printer << std::get<0>(carried) << " = "
                                    << std::get<1>(carried);
                          });
    printer << ')';
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getDistancesAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/!getDistances().empty());
}

void YieldOp::build(OpBuilder &, OperationState &) {}
