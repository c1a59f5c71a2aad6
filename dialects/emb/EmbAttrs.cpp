//===- EmbAttrs.cpp - Attributes and types of the emb dialect ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Syntax, verification and helper methods.
//
//===----------------------------------------------------------------------===//
#include "dialects/emb/Emb.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <charconv>
#include <cmath>

using namespace mlir;
using namespace terrace::emb;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

FailureOr<F64> terrace::emb::parseF64(AsmParser &parser) {
  // An attribute parse takes integers, floats and hexadecimal forms alike.
  FloatAttr value;
  if (parser.parseAttribute(value, Float64Type::get(parser.getContext())))
    return failure();
  return F64(value.getValueAsDouble());
}

void terrace::emb::printF64(AsmPrinter &printer, F64 value) {
  if (!std::isfinite(value.value)) {
    printer.printFloat(APFloat(value.value)); // as the bits
    return;
  }
  // The shortest digits that read back to the same bits; MLIR's floats need a
  // point.
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, value.value);
  StringRef digits(text, end - text);
  assert(error == std::errc() && "a double has at most 24 characters");
  (void)error;
  auto [mantissa, exponent] = digits.split('e');
  printer << mantissa << (mantissa.contains('.') ? "" : ".0");
  if (!exponent.empty())
    printer << 'e' << exponent;
}

FailureOr<SmallVector<F64>> terrace::emb::parseF64List(AsmParser &parser) {
  SmallVector<F64> values;
  auto element = [&]() -> ParseResult {
    FailureOr<F64> value = parseF64(parser);
    if (failed(value))
      return failure();
    values.push_back(*value);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, element))
    return failure();
  return values;
}

void terrace::emb::printF64List(AsmPrinter &printer, ArrayRef<F64> values) {
  printer << '[';
  llvm::interleaveComma(values, printer,
                        [&](F64 value) { printF64(printer, value); });
  printer << ']';
}

FailureOr<SmallVector<int64_t>> terrace::emb::parseI64List(AsmParser &parser) {
  SmallVector<int64_t> values;
  auto element = [&]() -> ParseResult {
    return parser.parseInteger(values.emplace_back());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, element))
    return failure();
  return values;
}

void terrace::emb::printI64List(AsmPrinter &printer, ArrayRef<int64_t> values) {
  printer << '[';
  llvm::interleaveComma(values, printer);
  printer << ']';
}

//===----------------------------------------------------------------------===//
// Generated definitions
//===----------------------------------------------------------------------===//

// gcc 12 takes the generated parsers' optional results for uninitialised.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define GET_ATTRDEF_CLASSES
#include "dialects/emb/EmbAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/emb/EmbTypes.cpp.inc"

void EmbDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/emb/EmbAttrs.cpp.inc"
      >();
}

void EmbDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/emb/EmbTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Rows and optimizers
//===----------------------------------------------------------------------===//

LogicalResult RowAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              Type element, Type scale, bool stochastic,
                              Type bias) {
  if (stochastic && !element.isF16() && !element.isBF16())
    return emitError()
           << "rows of " << element
           << " are not rounded stochastically: updates are of f32, "
              "and only f16 and bf16 have fewer bits to train with";
  if (element.isF32() || element.isF16() || element.isBF16()) {
    if (scale || bias)
      return emitError() << "rows of " << element << " take no "
                         << (scale ? "scale" : "bias");
    return success();
  }
  if (element.isInteger(8) || element.isInteger(4)) {
    if (scale && bias && bias != scale)
      return emitError() << "scale and bias are of one type, not " << scale
                         << " and " << bias;
    if (scale && (scale.isF16() || scale.isF32()))
      return success();
    return emitError() << "rows of " << element
                       << " need a scale of f16 or f32";
  }
  return emitError() << "rows are stored as f32, f16, bf16, i8 or i4, not "
                     << element;
}

/// `<f32>`, `<i8, scale f16, bias f16>`, `<bf16, stochastic>`.
Attribute RowAttr::parse(AsmParser &parser, Type) {
  Type element, scale, bias;
  bool stochastic = false;
  if (parser.parseLess() || parser.parseType(element))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("stochastic"))) {
      stochastic = true;
      continue;
    }
    if (succeeded(parser.parseOptionalKeyword("bias"))) {
      if (parser.parseType(bias))
        return {};
      continue;
    }
    if (parser.parseKeyword("scale") || parser.parseType(scale))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RowAttr>(parser.getContext(), element, scale,
                                    stochastic, bias);
}

void RowAttr::print(AsmPrinter &printer) const {
  printer << '<' << getElement();
  if (getScale())
    printer << ", scale " << getScale();
  if (getBias())
    printer << ", bias " << getBias();
  if (getStochastic())
    printer << ", stochastic";
  printer << '>';
}

int64_t RowAttr::getBytes(int64_t dim) const {
  int64_t bytes = (dim * getElement().getIntOrFloatBitWidth() + 7) / 8;
  for (Type part : {getScale(), getBias()})
    bytes += part ? part.getIntOrFloatBitWidth() / 8 : 0;
  return bytes;
}

using EmitError = function_ref<InFlightDiagnostic()>;
using Named = SmallVector<std::pair<StringRef, double>>;

/// Hyper-parameters are finite and not negative.
static LogicalResult verifyParameters(EmitError emitError,
                                      const Named &parameters) {
  for (auto [name, value] : parameters)
    if (!std::isfinite(value) || value < 0)
      return emitError() << name << " must be finite and not negative, not "
                         << value;
  return success();
}

static LogicalResult verifyBelowOne(EmitError emitError, StringRef names,
                                    ArrayRef<double> values) {
  for (double value : values)
    if (!(value >= 0 && value < 1))
      return emitError() << names << " must lie in [0, 1), not " << value;
  return success();
}

LogicalResult SGDAttr::verify(EmitError emitError, F64 lr, F64 decay,
                              F64 decoupled, F64 clip) {
  return verifyParameters(emitError, {{"lr", lr},
                                      {"weight_decay", decay},
                                      {"decoupled_decay", decoupled},
                                      {"clip_norm", clip}});
}
LogicalResult MomentumSGDAttr::verify(EmitError emitError, F64 lr, F64 momentum,
                                      F64 decay, F64 decoupled, F64 clip) {
  if (failed(verifyBelowOne(emitError, "momentum", {momentum})))
    return failure();
  return SGDAttr::verify(emitError, lr, decay, decoupled, clip);
}
LogicalResult AdagradAttr::verify(EmitError emitError, F64 lr, F64 eps,
                                  F64 decay, F64 decoupled, F64 clip) {
  if (failed(verifyParameters(emitError, {{"eps", eps}})))
    return failure();
  return SGDAttr::verify(emitError, lr, decay, decoupled, clip);
}
LogicalResult RowwiseAdagradAttr::verify(EmitError emitError, F64 lr, F64 eps,
                                         F64 decay, F64 decoupled, F64 clip) {
  return AdagradAttr::verify(emitError, lr, eps, decay, decoupled, clip);
}
LogicalResult AdamAttr::verify(EmitError emitError, F64 lr, F64 beta1,
                               F64 beta2, F64 eps, F64 decay, F64 decoupled,
                               F64 clip) {
  if (failed(verifyBelowOne(emitError, "beta1 and beta2", {beta1, beta2})))
    return failure();
  return AdagradAttr::verify(emitError, lr, eps, decay, decoupled, clip);
}
LogicalResult PartialRowwiseAdamAttr::verify(EmitError emitError, F64 lr,
                                             F64 beta1, F64 beta2, F64 eps,
                                             F64 decay, F64 decoupled,
                                             F64 clip) {
  return AdamAttr::verify(emitError, lr, beta1, beta2, eps, decay, decoupled,
                          clip);
}
LogicalResult LambAttr::verify(EmitError emitError, F64 lr, F64 beta1,
                               F64 beta2, F64 eps, F64 decay, F64 clip) {
  return AdamAttr::verify(emitError, lr, beta1, beta2, eps, decay, 0.0, clip);
}
LogicalResult FtrlAttr::verify(EmitError emitError, F64 lr, F64 beta, F64 l1,
                               F64 l2, F64 clip) {
  // It divides by lr.
  if (!(lr.value > 0))
    return emitError() << "lr of ftrl must be above 0, not " << lr.value;
  return verifyParameters(emitError, {{"lr", lr},
                                      {"beta", beta},
                                      {"l1", l1},
                                      {"l2", l2},
                                      {"clip_norm", clip}});
}

/// What an artifact says of decay and clipping: keys of value 0 but
/// weight_decay are left out, so that plans without them stay as they were.
template <typename T> static Named withCommon(T attr, Named named) {
  named.push_back({"weight_decay", attr.getWeightDecay()});
  if (double decay = attr.getDecoupledDecay())
    named.push_back({"decoupled_decay", decay});
  if (double clip = attr.getClipNorm())
    named.push_back({"clip_norm", clip});
  return named;
}

Named SGDAttr::getHyperParameters() const {
  return withCommon(*this, {{"lr", getLr()}});
}
Named MomentumSGDAttr::getHyperParameters() const {
  return withCommon(*this, {{"lr", getLr()}, {"momentum", getMomentum()}});
}
Named AdagradAttr::getHyperParameters() const {
  return withCommon(*this, {{"lr", getLr()}, {"eps", getEps()}});
}
Named RowwiseAdagradAttr::getHyperParameters() const {
  return withCommon(*this, {{"lr", getLr()}, {"eps", getEps()}});
}
/// In the order that Adam's keys have in artifacts.
template <typename T> static Named momentsOf(T attr) {
  return withCommon(attr, {{"lr", attr.getLr()},
                           {"beta1", attr.getBeta1()},
                           {"beta2", attr.getBeta2()},
                           {"eps", attr.getEps()}});
}
Named AdamAttr::getHyperParameters() const { return momentsOf(*this); }
Named PartialRowwiseAdamAttr::getHyperParameters() const {
  return momentsOf(*this);
}
Named LambAttr::getHyperParameters() const { return momentsOf(*this); }
Named FtrlAttr::getHyperParameters() const {
  return withCommon(
      *this,
      {{"lr", getLr()}, {"beta", getBeta()}, {"l1", getL1()}, {"l2", getL2()}});
}

//===----------------------------------------------------------------------===//
// Initialisers
//===----------------------------------------------------------------------===//

LogicalResult UniformAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  F64 low, F64 high) {
  if (std::isfinite(low.value) && std::isfinite(high.value) && low <= high)
    return success();
  return emitError() << "uniform needs finite low <= high, not " << low.value
                     << " and " << high.value;
}
LogicalResult NormalAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 F64 mean, F64 std) {
  if (std::isfinite(mean.value) && std::isfinite(std.value) && std.value >= 0)
    return success();
  return emitError() << "normal needs a finite mean and a deviation >= 0, not "
                     << mean.value << " and " << std.value;
}
LogicalResult ConstantAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   F64 value) {
  if (std::isfinite(value.value))
    return success();
  return emitError() << "constant must be finite, not " << value.value;
}

Named UniformAttr::getParameters() const {
  return {{"low", getLow()}, {"high", getHigh()}};
}
Named NormalAttr::getParameters() const {
  return {{"mean", getMean()}, {"std", getStd()}};
}
Named ConstantAttr::getParameters() const { return {{"value", getValue()}}; }

//===----------------------------------------------------------------------===//
// Machine, shards, placement, profile
//===----------------------------------------------------------------------===//

LogicalResult MachineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  StringAttr cpu, int64_t cores, StringAttr gpu,
                                  DictionaryAttr figures) {
  if (!cpu || cpu.getValue().empty())
    return emitError() << "a machine needs the name of its cpu";
  if (cores < 1)
    return emitError() << "a machine needs at least 1 core, not " << cores;
  if (!figures)
    return success();
  for (NamedAttribute part : figures) {
    auto table = dyn_cast<DictionaryAttr>(part.getValue());
    if (!table)
      return emitError() << "figures of '" << part.getName().getValue()
                         << "' must be a dictionary, not " << part.getValue();
    for (NamedAttribute figure : table) {
      auto value = dyn_cast<FloatAttr>(figure.getValue());
      if (!value || !value.getType().isF64())
        return emitError() << "figure '" << part.getName().getValue() << "."
                           << figure.getName().getValue()
                           << "' must be an f64, not " << figure.getValue();
    }
  }
  return success();
}

std::optional<double> MachineAttr::getFigure(StringRef part,
                                             StringRef name) const {
  if (!getFigures())
    return std::nullopt;
  auto table = getFigures().getAs<DictionaryAttr>(part);
  auto figure = table ? table.getAs<FloatAttr>(name) : FloatAttr();
  return figure ? std::optional<double>(figure.getValueAsDouble())
                : std::nullopt;
}

LogicalResult ShardsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ShardKind kind, ArrayRef<int64_t> workers,
                                 ArrayRef<int64_t> bounds) {
  if (workers.empty())
    return emitError() << "shards need at least one worker";
  for (int64_t worker : workers)
    if (worker < 0)
      return emitError() << "worker " << worker << " is negative";
  if (kind == ShardKind::Table || kind == ShardKind::Replicated) {
    if (!bounds.empty())
      return emitError() << stringifyShardKind(kind) << " shards take no cuts";
    if (kind == ShardKind::Table && workers.size() != 1)
      return emitError() << "a table shard has one worker, not "
                         << workers.size();
    return success();
  }
  if (bounds.size() != workers.size() + 1)
    return emitError() << workers.size() << " pieces need "
                       << workers.size() + 1 << " cuts, not " << bounds.size();
  if (bounds.front() != 0)
    return emitError() << "the first cut must be 0, not " << bounds.front();
  for (size_t i = 1; i < bounds.size(); ++i)
    if (bounds[i] <= bounds[i - 1])
      return emitError() << "cuts must rise, but " << bounds[i] << " follows "
                         << bounds[i - 1];
  return success();
}

LogicalResult
PlacementAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      FlatSymbolRefAttr home, FlatSymbolRefAttr cache,
                      int64_t retained, StringAttr policy) {
  if (!home)
    return emitError() << "a placement needs a home tier";
  if (retained < 0)
    return emitError() << "retained must not be negative, not " << retained;
  if (!cache && (retained || policy))
    return emitError() << "retained slots and a policy belong to a cache";
  if (cache && cache == home)
    return emitError() << "cache and home are both " << home;
  return success();
}

LogicalResult
ProfileAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                    int64_t batches, int64_t batch, F64 ids, int64_t maxIds,
                    F64 uniqueIds, int64_t maxUniqueIds, F64 uniqueBags,
                    F64 uniqueBagIds, F64 samplesPerSession,
                    int64_t distinctIds, int64_t cold, ArrayRef<int64_t> reuse,
                    ArrayRef<int64_t> cacheRows, ArrayRef<F64> missRatio) {
  for (int64_t count :
       {batches, batch, maxIds, maxUniqueIds, distinctIds, cold})
    if (count < 0)
      return emitError() << "counts must not be negative, not " << count;
  for (double mean : {ids.value, uniqueIds.value, uniqueBags.value,
                      uniqueBagIds.value, samplesPerSession.value})
    if (!std::isfinite(mean) || mean < 0)
      return emitError() << "means must be finite and not negative, not "
                         << mean;
  if (cacheRows.size() != missRatio.size())
    return emitError() << "the miss-ratio curve has " << cacheRows.size()
                       << " sizes but " << missRatio.size() << " ratios";
  for (size_t i = 1; i < cacheRows.size(); ++i)
    if (cacheRows[i] <= cacheRows[i - 1])
      return emitError() << "sizes of the miss-ratio curve must rise, but "
                         << cacheRows[i] << " follows " << cacheRows[i - 1];
  for (double ratio : missRatio)
    if (!(ratio >= 0 && ratio <= 1))
      return emitError() << "a miss ratio must lie in [0, 1], not " << ratio;
  return success();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult BagsType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t batch, int64_t maxIds, Type id,
                               bool checked, bool weighted) {
  if (!ShapedType::isDynamic(batch) && batch < 1)
    return emitError() << "the batch bound must be at least 1, not " << batch;
  if (maxIds < 1)
    return emitError() << "the bound of ids must be at least 1, not " << maxIds;
  if (!id.isInteger(64))
    return emitError() << "ids are i64, not " << id;
  return success();
}

BagsType BagsType::withBatch(int64_t batch) const {
  return get(getContext(), batch, getMaxIds(), getId(), getChecked(),
             getWeighted());
}

BagsType BagsType::asChecked() const {
  return get(getContext(), getBatch(), getMaxIds(), getId(), true,
             getWeighted());
}

Type BagsType::parse(AsmParser &parser) {
  int64_t batch = ShapedType::kDynamic, maxIds = 0;
  Type id;
  StringRef state;
  bool weighted = false;
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalQuestion()) && parser.parseInteger(batch))
    return {};
  if (parser.parseComma() || parser.parseKeyword("max") ||
      parser.parseInteger(maxIds) || parser.parseKeyword("x") ||
      parser.parseType(id) || parser.parseComma() ||
      parser.parseKeyword(&state))
    return {};
  if (state != "raw" && state != "checked") {
    parser.emitError(parser.getCurrentLocation(), "ids are `raw` or `checked`, "
                                                  "not `")
        << state << "`";
    return {};
  }
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("weighted"))
      return {};
    weighted = true;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<BagsType>(parser.getContext(), batch, maxIds, id,
                                     state == "checked", weighted);
}

void BagsType::print(AsmPrinter &printer) const {
  printer << '<';
  if (hasDynamicBatch())
    printer << '?';
  else
    printer << getBatch();
  printer << ", max " << getMaxIds() << " x " << getId() << ", "
          << (getChecked() ? "checked" : "raw")
          << (getWeighted() ? ", weighted>" : ">");
}

LogicalResult InverseType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t batch) {
  if (batch >= 1)
    return success();
  return emitError() << "the batch bound must be at least 1, not " << batch;
}

LogicalResult StateType::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t rows, int64_t dim, RowAttr row) {
  if (rows < 1 || rows > (int64_t(1) << 40))
    return emitError() << "a table has 1 to 2^40 rows, not " << rows;
  if (dim < 1 || dim > 65536)
    return emitError() << "a row has 1 to 65536 columns, not " << dim;
  return success();
}
