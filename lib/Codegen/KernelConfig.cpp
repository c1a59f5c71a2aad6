//===- KernelConfig.cpp - Names of kernel configurations --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// name() and parse() are exact inverses, so that the plan's JSON alone is
// enough to generate its kernels.
//
//===----------------------------------------------------------------------===//
#include "Codegen/KernelConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace terrace::codegen;
using llvm::StringRef;

static constexpr StringRef poolings[] = {"sum",   "mean", "weighted_mean",
                                         "sqrtn", "max",  "none"};
static constexpr StringRef optimizers[] = {
    "sgd",  "adagrad",      "rowwise_adagrad",
    "adam", "momentum_sgd", "partial_rowwise_adam",
    "lamb", "ftrl"};

static constexpr StringRef elements[] = {"f32", "f16", "bf16", "i8", "i4"};

StringRef terrace::codegen::toString(Element element) {
  return elements[static_cast<int>(element)];
}
StringRef terrace::codegen::toString(Pooling pooling) {
  return poolings[static_cast<int>(pooling)];
}
StringRef terrace::codegen::toString(Optimizer optimizer) {
  return optimizers[static_cast<int>(optimizer)];
}

std::string KernelConfig::name() const {
  const bool gather = kind == KernelKind::GatherPool;
  std::string name = gather ? "gather_pool_" : "segment_update_";
  name += std::to_string(dim) + "_";
  if (element != Element::F32)
    name += (toString(element) + "_").str();
  name += gather ? toString(pooling) : toString(optimizer);
  auto add = [&](bool is, const char *word) { name += is ? word : ""; };
  add(gather && weighted, "_weighted");
  add(gather && direct, "_direct");
  add(!gather && decay, "_decay");
  add(!gather && decoupled, "_decoupled");
  add(!gather && clip, "_clip");
  add(!gather && stochastic, "_stochastic");
  return name;
}

template <size_t n>
static int indexOf(const StringRef (&words)[n], StringRef word) {
  const StringRef *it = llvm::find(words, word);
  return it == std::end(words) ? -1 : static_cast<int>(it - words);
}

llvm::Expected<KernelConfig> KernelConfig::parse(StringRef name) {
  auto bad = [&](const llvm::Twine &why) {
    return llvm::createStringError("kernel name '" + name + "': " + why);
  };
  KernelConfig config;
  StringRef rest = name;
  if (rest.consume_front("segment_update_"))
    config.kind = KernelKind::SegmentUpdate;
  else if (!rest.consume_front("gather_pool_"))
    return bad("it starts with neither gather_pool_ nor segment_update_");

  auto [digits, word] = rest.split('_');
  // No sign, blank or leading zero: one configuration has one name.
  if (!llvm::all_of(digits, llvm::isDigit) || digits.starts_with("0") ||
      digits.getAsInteger(10, config.dim))
    return bad("'" + digits + "' is not a dimension");
  for (Element e : {Element::F16, Element::BF16, Element::I8, Element::I4})
    if (word.starts_with((toString(e) + "_").str())) {
      word = word.drop_front(toString(e).size() + 1);
      config.element = e;
      break;
    }
  if (config.kind == KernelKind::GatherPool) {
    config.direct = word.consume_back("_direct");
    config.weighted = word.consume_back("_weighted");
    int i = indexOf(poolings, word);
    if (i < 0)
      return bad("'" + word +
                 "' is not one of sum, mean, weighted_mean, "
                 "sqrtn, max, none");
    config.pooling = static_cast<Pooling>(i);
  } else {
    config.stochastic = word.consume_back("_stochastic");
    config.clip = word.consume_back("_clip");
    config.decoupled = word.consume_back("_decoupled");
    config.decay = word.consume_back("_decay");
    int i = indexOf(optimizers, word);
    if (i < 0)
      return bad("'" + word + "' is not one of " +
                 llvm::join(llvm::ArrayRef(optimizers), ", "));
    config.optimizer = static_cast<Optimizer>(i);
  }
  if (llvm::Error error = config.verify())
    return error;
  return config;
}

llvm::Error KernelConfig::verify() const {
  if (dim < 1 || dim > maxDim)
    return llvm::createStringError("kernel " + name() + ": dimension " +
                                   llvm::Twine(dim) + " is outside 1.." +
                                   llvm::Twine(maxDim));
  if (kind == KernelKind::GatherPool && weighted &&
      (pooling == Pooling::Max || pooling == Pooling::None))
    return llvm::createStringError("kernel " + name() + ": pooling " +
                                   toString(pooling) + " takes no weights");
  if (kind == KernelKind::SegmentUpdate && isQuantized())
    return llvm::createStringError("kernel " + name() + ": rows of " +
                                   toString(element) + " are never updated");
  if (stochastic && element == Element::F32)
    return llvm::createStringError("kernel " + name() +
                                   ": f32 is never rounded");
  if (kind == KernelKind::SegmentUpdate &&
      ((optimizer == Optimizer::Ftrl && (decay || decoupled)) ||
       (optimizer == Optimizer::Lamb && decoupled)))
    return llvm::createStringError("kernel " + name() + ": " +
                                   toString(optimizer) +
                                   " takes no such decay");
  return llvm::Error::success();
}

int64_t KernelConfig::stateFloats() const {
  if (kind == KernelKind::GatherPool)
    return 0;
  switch (optimizer) {
  case Optimizer::Sgd:
    return 0;
  case Optimizer::Adagrad:
  case Optimizer::MomentumSgd:
    return dim;
  case Optimizer::RowwiseAdagrad:
    return 1;
  case Optimizer::PartialRowwiseAdam:
    return dim + 1;
  case Optimizer::Adam:
  case Optimizer::Lamb:
  case Optimizer::Ftrl:
    return 2 * dim;
  }
  llvm_unreachable("covered switch");
}

bool KernelConfig::isColumnwise() const {
  return optimizer != Optimizer::RowwiseAdagrad &&
         optimizer != Optimizer::PartialRowwiseAdam &&
         optimizer != Optimizer::Lamb;
}
