//===- PlanAttrs.cpp - Attributes and types of plan -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Syntax, verification and helper methods.
//
//===----------------------------------------------------------------------===//
#include "dialects/plan/Plan.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace terrace;
using namespace terrace::plan;

// gcc 12 takes the generated parsers' optional results for uninitialised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/plan/PlanTypes.cpp.inc"

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/plan/PlanAttrs.cpp.inc"
      >();
}

void PlanDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/plan/PlanTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

LogicalResult RecordAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t dim, Type element, int64_t state,
                                 int64_t header, int64_t slot, int64_t store) {
  if (dim < 1)
    return emitError() << "a record has at least 1 column, not " << dim;
  if (!element.isIntOrFloat())
    return emitError() << "a record's columns are numbers, not " << element;
  if (state < 0 || header < 0)
    return emitError() << "state and header must not be negative, not " << state
                       << " and " << header;
  // State is f32 and begins at a multiple of 4 bytes.
  int64_t weights = (getWeightsBytes(dim, element) + 3) / 4 * 4;
  if (slot < weights + state)
    return emitError() << "a slot of " << slot << " bytes cannot hold "
                       << weights << " bytes of weights and " << state
                       << " of state";
  if (store < header + weights + state)
    return emitError() << "a stored record of " << store
                       << " bytes cannot hold " << header
                       << " bytes of header, " << weights << " of weights and "
                       << state << " of state";
  return success();
}

//===----------------------------------------------------------------------===//
// Kernel configurations
//===----------------------------------------------------------------------===//

LogicalResult
KernelConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         int64_t dim, Type element, emb::Pooling pooling,
                         bool weighted, OptimizerKind, bool, bool, bool, bool,
                         bool) {
  if (dim < 1)
    return emitError() << "a kernel has at least 1 column, not " << dim;
  if (!element.isIntOrFloat())
    return emitError() << "a kernel's columns are numbers, not " << element;
  if (weighted &&
      (pooling == emb::Pooling::Max || pooling == emb::Pooling::None))
    return emitError() << "pooling " << emb::stringifyPooling(pooling)
                       << " takes no weights";
  return success();
}

std::string KernelConfigAttr::getKernelName(KernelKind kind) const {
  std::string name =
      stringifyKernelKind(kind).str() + "_" + std::to_string(getDim()) + "_";
  if (!getElement().isF32())
    llvm::raw_string_ostream(name) << getElement() << '_';
  if (kind == KernelKind::GatherPool) {
    name += emb::stringifyPooling(getPooling());
    if (getWeighted())
      name += "_weighted";
    return getDirect() ? name + "_direct" : name;
  }
  name += stringifyOptimizerKind(getOptimizer());
  if (getDecay())
    name += "_decay";
  if (getDecoupled())
    name += "_decoupled";
  if (getClip())
    name += "_clip";
  return getStochastic() ? name + "_stochastic" : name;
}

/// `<64 x f32, mean, weighted>` or `<64 x f32, adam, decay>`.
Attribute KernelConfigAttr::parse(AsmParser &parser, Type) {
  int64_t dim = 0;
  Type element;
  auto pooling = emb::Pooling::Sum;
  auto optimizer = OptimizerKind::SGD;
  bool weighted = false, decay = false, decoupled = false, clip = false,
       stochastic = false, direct = false;
  if (parser.parseLess() || parser.parseInteger(dim) ||
      parser.parseKeyword("x") || parser.parseType(element))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return {};
    if (word == "weighted")
      weighted = true;
    else if (word == "decay")
      decay = true;
    else if (word == "decoupled")
      decoupled = true;
    else if (word == "clip")
      clip = true;
    else if (word == "stochastic")
      stochastic = true;
    else if (word == "direct")
      direct = true;
    else if (std::optional<emb::Pooling> p = emb::symbolizePooling(word))
      pooling = *p;
    else if (std::optional<OptimizerKind> o = symbolizeOptimizerKind(word))
      optimizer = *o;
    else
      return parser.emitError(loc, "'")
                 << word
                 << "' is neither a pooling nor an optimizer, `weighted`, "
                    "`decay`, `decoupled`, `clip`, `stochastic` or `direct`",
             Attribute();
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<KernelConfigAttr>(
      parser.getContext(), dim, element, pooling, weighted, optimizer, decay,
      decoupled, clip, stochastic, direct);
}

void KernelConfigAttr::print(AsmPrinter &printer) const {
  printer << '<' << getDim() << " x " << getElement();
  if (getPooling() != emb::Pooling::Sum)
    printer << ", " << emb::stringifyPooling(getPooling());
  if (getWeighted())
    printer << ", weighted";
  if (getOptimizer() != OptimizerKind::SGD)
    printer << ", " << stringifyOptimizerKind(getOptimizer());
  if (getDecay())
    printer << ", decay";
  if (getDecoupled())
    printer << ", decoupled";
  if (getClip())
    printer << ", clip";
  if (getStochastic())
    printer << ", stochastic";
  if (getDirect())
    printer << ", direct";
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Features and decisions
//===----------------------------------------------------------------------===//

LogicalResult FeatureAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  StringAttr name, FlatSymbolRefAttr table,
                                  emb::Pooling pooling, int64_t maxIds,
                                  StringAttr, StringAttr weights, emb::Overflow,
                                  bool, StringAttr, FlatSymbolRefAttr,
                                  int64_t output) {
  if (!name || name.getValue().empty())
    return emitError() << "a feature needs a name";
  if (!table)
    return emitError() << "feature " << name << " needs a table";
  if (maxIds < 1)
    return emitError() << "feature " << name
                       << " needs max_ids of at least 1, not " << maxIds;
  if (output < 0)
    return emitError() << "feature " << name << " has the negative output "
                       << output;
  if (weights &&
      (pooling == emb::Pooling::Max || pooling == emb::Pooling::None))
    return emitError() << "feature " << name << ": pooling "
                       << emb::stringifyPooling(pooling) << " takes no weights";
  return success();
}

LogicalResult
TableDecisionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          StringAttr name, StringAttr home, StringAttr cache,
                          int64_t retained, StringAttr policy,
                          emb::ShardsAttr) {
  if (!name || name.getValue().empty() || !home || home.getValue().empty())
    return emitError() << "a table's decision needs its name and home";
  if (retained < 0)
    return emitError() << "table " << name
                       << ": retained must not be negative, not " << retained;
  if (!cache && (retained || policy))
    return emitError() << "table " << name
                       << ": retained slots and a policy belong to a cache";
  if (cache == home)
    return emitError() << "table " << name << ": cache and home are both "
                       << home;
  return success();
}

LogicalResult DecisionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t lookahead,
                                   ArrayRef<TableDecisionAttr> tables) {
  if (lookahead < 0)
    return emitError() << "lookahead must not be negative, not " << lookahead;
  llvm::StringSet<> names;
  for (TableDecisionAttr table : tables)
    if (!names.insert(table.getName().getValue()).second)
      return emitError() << "table " << table.getName() << " is decided twice";
  return success();
}

TableDecisionAttr DecisionAttr::getTable(StringRef name) const {
  for (TableDecisionAttr table : getTables())
    if (table.getName().getValue() == name)
      return table;
  return {};
}

Attribute DecisionAttr::parse(AsmParser &parser, Type) {
  int64_t lookahead = 0;
  SmallVector<TableDecisionAttr> tables;
  if (parser.parseLess() || parser.parseKeyword("lookahead") ||
      parser.parseInteger(lookahead) || parser.parseComma() ||
      parser.parseKeyword("tables") ||
      parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square,
          [&]() { return parser.parseAttribute(tables.emplace_back()); }) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<DecisionAttr>(parser.getContext(), lookahead,
                                         tables);
}

void DecisionAttr::print(AsmPrinter &printer) const {
  printer << "<lookahead " << getLookahead() << ", tables [";
  llvm::interleaveComma(getTables(), printer, [&](TableDecisionAttr table) {
    printer << Attribute(table);
  });
  printer << "]>";
}
