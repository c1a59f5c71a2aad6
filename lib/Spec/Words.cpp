//===- Words.cpp - The words of the spec and did-you-mean -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One list per enumeration and the tables of other names.
//
//===----------------------------------------------------------------------===//
#include "Spec/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace terrace::spec {

#define TERRACE_WORDS(E, ...)                                                  \
  template <> llvm::ArrayRef<llvm::StringRef> words<E>() {                     \
    static const llvm::StringRef list[] = {__VA_ARGS__};                       \
    return list;                                                               \
  }                                                                            \
  llvm::StringRef name(E value) { return words<E>()[size_t(value)]; }

TERRACE_WORDS(Numerics, "strict", "reassociate")
TERRACE_WORDS(OnBadId, "error", "drop")
TERRACE_WORDS(OnBadGrad, "error", "skip")
TERRACE_WORDS(OnBadRow, "error", "skip")
TERRACE_WORDS(OnStoreFull, "error", "drop_oldest")
TERRACE_WORDS(OnWear, "error", "warn")
TERRACE_WORDS(DType, "f32", "f16", "bf16", "int8", "int4")
TERRACE_WORDS(Rounding, "nearest", "stochastic")
TERRACE_WORDS(InitKind, "uniform", "normal", "constant")
TERRACE_WORDS(OptimizerKind, "sgd", "adagrad", "rowwise_adagrad", "adam",
              "partial_rowwise_adam", "lamb", "ftrl")
TERRACE_WORDS(DecayMode, "l2", "decoupled")
TERRACE_WORDS(IdsKind, "index", "hash", "dynamic")
TERRACE_WORDS(EvictPolicy, "lru", "lfu")
TERRACE_WORDS(OnFull, "error", "evict")
TERRACE_WORDS(Pooling, "sum", "mean", "weighted_mean", "sqrtn", "max", "none")
TERRACE_WORDS(Overflow, "error", "keep_first", "keep_last")
TERRACE_WORDS(IdType, "int", "string")
TERRACE_WORDS(HeadKind, "logistic", "fm", "dlrm")
TERRACE_WORDS(Loss, "bce")
TERRACE_WORDS(InteractionKind, "dot", "dcn_v2")
TERRACE_WORDS(Metric, "auc", "logloss", "ne")
TERRACE_WORDS(TierKind, "hbm", "dram", "pmem", "nvme")
TERRACE_WORDS(TierScope, "node", "worker")
TERRACE_WORDS(Device, "cpu", "gpu")
#undef TERRACE_WORDS

namespace {
struct OtherName {
  llvm::StringRef name, ours;
};
// Normalised: lower case, no '_' and '-'. Names of TorchRec, FBGEMM, torch,
// TensorFlow, HugeCTR and of daily speech.
constexpr OtherName otherNames[] = {{"numembeddings", "rows"},
                                    {"numrows", "rows"},
                                    {"vocabsize", "rows"},
                                    {"vocabularysize", "rows"},
                                    {"cardinality", "rows"},
                                    {"hashsize", "rows"},
                                    {"numbuckets", "rows"},
                                    {"inputdim", "rows"},
                                    {"capacity", "rows"},
                                    {"embeddingdim", "dim"},
                                    {"embeddingsize", "dim"},
                                    {"outputdim", "dim"},
                                    {"embeddingvecsize", "dim"},
                                    {"dims", "dim"},
                                    {"width", "dim"},
                                    {"datatype", "dtype"},
                                    {"weightsprecision", "dtype"},
                                    {"precision", "dtype"},
                                    {"stochasticrounding", "rounding"},
                                    {"roundingmode", "rounding"},
                                    {"isweighted", "weights"},
                                    {"weighted", "weights"},
                                    {"weight", "weights"},
                                    {"persampleweights", "weights"},
                                    {"poolingtype", "pooling"},
                                    {"poolingmode", "pooling"},
                                    {"combiner", "pooling"},
                                    {"mode", "pooling"},
                                    {"poolingfactor", "mean_ids"},
                                    {"meanpooling", "mean_ids"},
                                    {"maxlength", "max_ids"},
                                    {"maxlen", "max_ids"},
                                    {"hotness", "max_ids"},
                                    {"multihot", "max_ids"},
                                    {"maxhotness", "max_ids"},
                                    {"embeddingname", "table"},
                                    {"embedding", "table"},
                                    {"tablename", "table"},
                                    {"embeddingtables", "tables"},
                                    {"embeddings", "tables"},
                                    {"sparsefeatures", "features"},
                                    {"slots", "features"},
                                    {"featurenames", "features"},
                                    {"densefeatures", "dense"},
                                    {"initializer", "init"},
                                    {"initfn", "init"},
                                    {"optim", "optimizer"},
                                    {"optimiser", "optimizer"},
                                    {"learningrate", "lr"},
                                    {"epsilon", "eps"},
                                    {"l2", "weight_decay"},
                                    {"wd", "weight_decay"},
                                    {"decaymode", "weight_decay_mode"},
                                    {"alpha", "lr"},
                                    {"l1regularization", "l1"},
                                    {"l1regularizationstrength", "l1"},
                                    {"lambda1", "l1"},
                                    {"l2regularization", "l2"},
                                    {"l2regularizationstrength", "l2"},
                                    {"lambda2", "l2"},
                                    {"clip", "clip_norm"},
                                    {"clipping", "clip_norm"},
                                    {"gradientclipping", "clip_norm"},
                                    {"gradclip", "clip_norm"},
                                    {"gradclipping", "clip_norm"},
                                    {"maxgradient", "clip_norm"},
                                    {"maxgradnorm", "clip_norm"},
                                    {"maxnorm", "clip_norm"},
                                    {"repeat", "count"},
                                    {"numcopies", "count"},
                                    {"stddev", "std"},
                                    {"sigma", "std"},
                                    {"min", "low"},
                                    {"max", "high"},
                                    {"batchsize", "size"},
                                    {"prefetch", "lookahead"},
                                    {"prefetchdepth", "lookahead"},
                                    {"prefetchdistance", "lookahead"},
                                    {"pipelinedepth", "lookahead"},
                                    {"placement", "place"},
                                    {"numworkers", "workers"},
                                    {"worldsize", "workers"},
                                    {"ranks", "workers"},
                                    {"gpus", "workers"},
                                    {"dwpd", "drive_writes_per_day"},
                                    {"size", "capacity"},
                                    {"bytes", "capacity"},
                                    {"budget", "capacity"},
                                    {"paths", "path"},
                                    {"files", "path"},
                                    {"file", "path"},
                                    {"dir", "path"},
                                    {"directory", "path"},
                                    {"delimiter", "list_sep"},
                                    {"separator", "list_sep"},
                                    {"sessionid", "session"},
                                    {"timestamp", "time"},
                                    {"target", "label"},
                                    {"labels", "label"},
                                    {"nepochs", "epochs"},
                                    {"numepochs", "epochs"},
                                    {"evalinterval", "eval_every"},
                                    {"evalsteps", "eval_every"},
                                    {"interval", "every"},
                                    {"keeplast", "keep"},
                                    {"warmup", "warmup_steps"},
                                    {"scheduler", "lr_schedule"},
                                    {"lrscheduler", "lr_schedule"},
                                    {"template", "use"},
                                    {"version", "terrace"},
                                    {"idmapping", "ids"},
                                    {"name", "model"},
                                    {"valid", "eval"},
                                    {"validation", "eval"},
                                    {"test", "eval"},
                                    // values
                                    {"exactrowwiseadagrad", "rowwise_adagrad"},
                                    {"exactrowwise", "rowwise_adagrad"},
                                    {"rowwise", "rowwise_adagrad"},
                                    {"exactadagrad", "adagrad"},
                                    {"exactsgd", "sgd"},
                                    {"sparseadam", "adam"},
                                    {"lazyadam", "adam"},
                                    {"partialrowwise", "partial_rowwise_adam"},
                                    {"rowwiseadam", "partial_rowwise_adam"},
                                    {"momentum", "sgd"},
                                    {"momentumsgd", "sgd"},
                                    {"ftrlproximal", "ftrl"},
                                    {"followtheregularizedleader", "ftrl"},
                                    {"decouple", "decoupled"},
                                    {"adamw", "decoupled"},
                                    {"float", "f32"},
                                    {"float32", "f32"},
                                    {"fp32", "f32"},
                                    {"single", "f32"},
                                    {"float16", "f16"},
                                    {"fp16", "f16"},
                                    {"half", "f16"},
                                    {"roundtonearest", "nearest"},
                                    {"rne", "nearest"},
                                    {"sr", "stochastic"},
                                    {"bfloat16", "bf16"},
                                    {"i8", "int8"},
                                    {"i4", "int4"},
                                    {"avg", "mean"},
                                    {"average", "mean"},
                                    {"add", "sum"},
                                    {"concat", "none"},
                                    {"sequence", "none"},
                                    {"ssd", "nvme"},
                                    {"disk", "nvme"},
                                    {"flash", "nvme"},
                                    {"ram", "dram"},
                                    {"memory", "dram"},
                                    {"ddr", "dram"},
                                    {"cpumem", "dram"},
                                    {"vram", "hbm"},
                                    {"gpumem", "hbm"},
                                    {"devicemem", "hbm"},
                                    {"optane", "pmem"},
                                    {"scm", "pmem"},
                                    {"cxl", "pmem"},
                                    {"cuda", "gpu"},
                                    {"nvidia", "gpu"},
                                    {"x86", "cpu"},
                                    {"host", "cpu"},
                                    {"str", "string"},
                                    {"text", "string"},
                                    {"integer", "int"},
                                    {"int64", "int"},
                                    {"identity", "index"},
                                    {"direct", "index"},
                                    {"hashing", "hash"},
                                    {"hashed", "hash"},
                                    {"vocabulary", "dynamic"},
                                    {"zch", "dynamic"},
                                    {"truncate", "keep_first"},
                                    {"skip", "drop"},
                                    {"drop", "skip"},
                                    {"zeros", "constant"},
                                    {"gaussian", "normal"},
                                    {"gauss", "normal"},
                                    {"bcewithlogits", "bce"},
                                    {"binarycrossentropy", "bce"},
                                    {"crossentropy", "bce"},
                                    {"logistic", "bce"},
                                    {"factorizationmachine", "fm"},
                                    {"lr", "logistic"},
                                    {"logisticregression", "logistic"},
                                    {"linear", "logistic"},
                                    {"dcnv2", "dcn_v2"},
                                    {"dcn", "dcn_v2"},
                                    {"cross", "dcn_v2"},
                                    {"normalizedentropy", "ne"},
                                    {"auroc", "auc"},
                                    {"rocauc", "auc"},
                                    {"loss", "logloss"},
                                    {"bceloss", "logloss"},
                                    {"fast", "reassociate"},
                                    {"exact", "strict"},
                                    {"rank", "worker"},
                                    {"host", "node"},
                                    {"machine", "node"}};

// Keys that are right, but elsewhere.
constexpr OtherName places[] = {
    {"lr", "optimizer: {lr: ...}"},
    {"learning_rate", "optimizer: {lr: ...}"},
    {"eps", "optimizer: {eps: ...}"},
    {"beta1", "optimizer: {beta1: ...}"},
    {"beta2", "optimizer: {beta2: ...}"},
    {"momentum", "optimizer: {momentum: ...}"},
    {"weight_decay", "optimizer: {weight_decay: ...}"},
    {"weight_decay_mode", "optimizer: {weight_decay_mode: ...}"},
    {"clip_norm", "optimizer: {clip_norm: ...}"},
    {"rows", "table: {rows: ...}"},
    {"num_embeddings", "table: {rows: ...}"},
    {"dim", "table: {dim: ...}"},
    {"embedding_dim", "table: {dim: ...}"},
    {"dtype", "table: {dtype: ...}"},
    {"rounding", "table: {rounding: ...}"},
    {"data_type", "table: {dtype: ...}"},
    {"ids", "table: {ids: ...}"},
    {"init", "table: {init: ...}"},
    {"optimizer", "table: {optimizer: ...}"},
    {"pooling", "features: (pooling belongs to a feature)"},
    {"weights", "features: (weights belong to a feature)"},
    {"is_weighted", "features: (weights: COLUMN belongs to a feature)"},
    {"dedup", "features: (dedup belongs to a feature)"},
    {"feature_names", "features: [{name: ..., table: ...}]"},
    {"batch_size", "batch: {size: ...}"},
    {"max_ids", "batch: {max_ids: ...} or features: {max_ids: ...}"},
    {"label", "head: {label: ...}"},
    {"loss", "head: {loss: ...}"},
    {"epochs", "train: {epochs: ...}"},
    {"eval_every", "train: {eval_every: ...}"},
    {"metrics", "train: {metrics: ...}"},
    {"checkpoint", "train: {checkpoint: ...}"},
    {"lr_schedule", "train: {lr_schedule: ...}"},
    {"stop", "train: {stop: ...}"},
    {"path", "data: {path: ...}"},
    {"session", "data: {session: ...}"},
    {"list_sep", "data: {list_sep: ...}"},
    {"shuffle", "data: {shuffle: ...}"},
    {"eval", "data: {eval: ...}"},
    {"on_bad_row", "data: {on_bad_row: ...}"},
    {"tiers", "memory: {tiers: ...}"},
    {"capacity", "memory: {tiers: [{capacity: ...}]}"},
    {"lookahead", "plan: {lookahead: ...}"},
    {"prefetch", "plan: {lookahead: ...}"},
    {"place", "plan: {place: ...}"},
    {"together", "plan: {together: ...}"},
    {"home", "plan: {place: [{tables: ..., home: ...}]}"},
    {"cache", "plan: {place: [{tables: ..., cache: ...}]}"},
    {"arch", "target: {arch: ...}"},
    {"device", "target: {device: ...}"},
    {"admit", "ids: {admit: ...}"},
    {"evict", "ids: {evict: ...}"},
    {"ttl", "ids: {evict: {ttl: ...}}"},
    {"on_full", "ids: {on_full: ...}"},
    {"min_count", "ids: {admit: {min_count: ...}}"}};

std::string normalised(llvm::StringRef word) {
  std::string out;
  for (char c : word)
    if (c != '_' && c != '-' && c != ' ' && c != '.')
      out += llvm::toLower(c);
  return out;
}
} // namespace

std::string didYouMean(llvm::StringRef word,
                       llvm::ArrayRef<llvm::StringRef> allowed) {
  auto quote = [](llvm::StringRef text) {
    return ("; did you mean '" + text + "'?").str();
  };
  // A hostile word may be a megabyte; edit distance is quadratic.
  if (word.empty() || word.size() > 64)
    return "";
  std::string plain = normalised(word);
  for (llvm::StringRef candidate : allowed)
    if (normalised(candidate) == plain)
      return quote(candidate);
  for (const OtherName &other : otherNames)
    if (other.name == plain && llvm::is_contained(allowed, other.ours))
      return quote(other.ours);
  // Swapped letters of a short word, as in dmi.
  auto letters = [](std::string text) {
    llvm::sort(text);
    return text;
  };
  for (llvm::StringRef candidate : allowed)
    if (candidate.size() == word.size() && word.size() <= 4 &&
        letters(normalised(candidate)) == letters(plain))
      return quote(candidate);
  llvm::StringRef best;
  unsigned limit = word.size() <= 3 ? 1 : word.size() <= 7 ? 2 : 3;
  for (llvm::StringRef candidate : allowed) {
    if (candidate.size() > 64)
      continue;
    unsigned distance = candidate.edit_distance(word, true, limit);
    if (distance <= limit && distance < candidate.size()) {
      limit = distance ? distance - 1 : 0;
      best = candidate;
      if (!distance)
        break;
    }
    if (best.data() && limit == 0)
      break;
  }
  return best.empty() ? "" : quote(best);
}

std::string keyHint(llvm::StringRef key,
                    llvm::ArrayRef<llvm::StringRef> allowed) {
  std::string hint = didYouMean(key, allowed);
  if (!hint.empty())
    return hint;
  std::string plain = normalised(key);
  for (const OtherName &place : places)
    if (normalised(place.name) == plain)
      return ("; it belongs in " + place.ours).str();
  return "";
}

std::string listOf(llvm::ArrayRef<llvm::StringRef> words) {
  const size_t most = 24;
  std::string out = llvm::join(words.take_front(most), ", ");
  if (words.size() > most)
    out += ", ... (" + std::to_string(words.size()) + " in all)";
  return out;
}

} // namespace terrace::spec
