//===- EmbAttrs.td - Attributes of the emb dialect ---------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows, optimizers, initialisers, and what is measured or decided of a table:
// profile, shards, placement, machine.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_EMB_ATTRS
#define TERRACE_EMB_ATTRS

include "dialects/emb/EmbDialect.td"
include "dialects/emb/EmbInterfaces.td"

class Emb_Attr<string name, string mnem, list<Trait> traits = []>
    : AttrDef<Emb_Dialect, name, traits> {
  let mnemonic = mnem;
  let genVerifyDecl = 1;
}

def Emb_RowAttr : Emb_Attr<"Row", "row"> {
  let summary = "storage of a row's weights";
  let description = [{
    The element type that a row is stored with, and the types of its scale and
    its bias where the row is quantised, which makes it one that is served and
    not trained: `#emb.row<f32>`, `#emb.row<i8, scale f16, bias f16>`. Updates
    round to nearest, or `stochastic`: `#emb.row<bf16, stochastic>`.
  }];
  let parameters = (ins "::mlir::Type":$element,
                        OptionalParameter<"::mlir::Type">:$scale,
                        DefaultValuedParameter<"bool", "false">:$stochastic,
                        OptionalParameter<"::mlir::Type">:$bias);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Bytes of the weights of one row, its scale and bias included.
    int64_t getBytes(int64_t dim) const;
    bool isQuantized() const { return bool(getScale()); }
  }];
}

//===----------------------------------------------------------------------===//
// Optimizers
//===----------------------------------------------------------------------===//

// Clipping by the norm of a row's gradient crosses its columns, whatever the
// optimizer. `decoupled`: what getDecoupledDecay returns where the optimizer
// has no such parameter, and `decay` alike.
class Emb_Optimizer<string name, string mnem, string stateFloats, bit separable,
                    string extra = "">
    : Emb_Attr<name, mnem, [Emb_OptimizerInterface]> {
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    ::llvm::StringRef getKindName() const { return "}] # mnem # [{"; }
    int64_t getStateFloats([[maybe_unused]] int64_t dim) const { return }]
    # stateFloats # [{; }
    bool isColumnSeparable() const { return }] # separable # [{ &&
      double(getClipNorm()) == 0; }
    ::llvm::SmallVector<std::pair<::llvm::StringRef, double>>
    getHyperParameters() const;
  }] # extra;
}

defvar NoDecoupled = "double getDecoupledDecay() const { return 0; }\n";
defvar NoDecay = "double getWeightDecay() const { return 0; }\n";

// The parameters that most optimizers end with.
defvar Decays = (ins F64Param<"L2", "0.0">:$weight_decay,
                     F64Param<"decay apart from the gradient", "0.0">
                       :$decoupled_decay,
                     F64Param<"largest norm of a row's gradient", "0.0">
                       :$clip_norm);

def Emb_SGDAttr : Emb_Optimizer<"SGD", "sgd", "0", 1> {
  let summary = "W -= lr * G";
  let parameters = !con((ins F64Param<"learning rate">:$lr), Decays);
}
def Emb_MomentumSGDAttr
    : Emb_Optimizer<"MomentumSGD", "momentum_sgd", "dim", 1> {
  let summary = "torch's SGD with momentum";
  let parameters = !con((ins F64Param<"learning rate">:$lr,
                             F64Param<"decay of the velocity">:$momentum),
                        Decays);
}
def Emb_AdagradAttr : Emb_Optimizer<"Adagrad", "adagrad", "dim", 1> {
  let summary = "one sum of squares per element";
  let parameters = !con((ins F64Param<"learning rate">:$lr,
                             F64Param<"epsilon">:$eps), Decays);
}
def Emb_RowwiseAdagradAttr
    : Emb_Optimizer<"RowwiseAdagrad", "rowwise_adagrad", "1", 0> {
  let summary = "one sum of mean squares per row";
  let parameters = !con((ins F64Param<"learning rate">:$lr,
                             F64Param<"epsilon">:$eps), Decays);
}
defvar Moments = (ins F64Param<"learning rate">:$lr,
                      F64Param<"decay of the first moment">:$beta1,
                      F64Param<"decay of the second moment">:$beta2,
                      F64Param<"epsilon">:$eps);
def Emb_AdamAttr : Emb_Optimizer<"Adam", "adam", "2 * dim", 1> {
  let summary = "torch's SparseAdam, with the global step as t";
  let parameters = !con(Moments, Decays);
}
def Emb_PartialRowwiseAdamAttr
    : Emb_Optimizer<"PartialRowwiseAdam", "partial_rowwise_adam", "dim + 1",
                    0> {
  let summary = "Adam with one second moment per row, as FBGEMM has it";
  let parameters = !con(Moments, Decays);
}
def Emb_LambAttr : Emb_Optimizer<"Lamb", "lamb", "2 * dim", 0, NoDecoupled> {
  let summary = "Adam whose step is as long as the row allows";
  let parameters = !con(Moments,
    (ins F64Param<"decay inside the direction", "0.0">:$weight_decay,
         F64Param<"largest norm of a row's gradient", "0.0">:$clip_norm));
}
def Emb_FtrlAttr : Emb_Optimizer<"Ftrl", "ftrl", "2 * dim", 1,
                                 !strconcat(NoDecoupled, NoDecay)> {
  let summary = "FTRL-Proximal with L1 and L2";
  let parameters = (ins F64Param<"alpha">:$lr, F64Param<"beta">:$beta,
    F64Param<"L1", "0.0">:$l1, F64Param<"L2", "0.0">:$l2,
    F64Param<"largest norm of a row's gradient", "0.0">:$clip_norm);
}

//===----------------------------------------------------------------------===//
// Initialisers
//===----------------------------------------------------------------------===//

class Emb_Init<string name, string mnem>
    : Emb_Attr<name, mnem, [Emb_InitInterface]> {
  let extraClassDeclaration = [{
    ::llvm::StringRef getKindName() const { return "}] # mnem # [{"; }
    ::llvm::SmallVector<std::pair<::llvm::StringRef, double>>
    getParameters() const;
  }];
}
def Emb_UniformAttr : Emb_Init<"Uniform", "uniform"> {
  let summary = "uniform in [low, high)";
  let parameters = (ins F64Param<"low">:$low, F64Param<"high">:$high);
  let assemblyFormat = "`<` $low `,` $high `>`";
}
def Emb_NormalAttr : Emb_Init<"Normal", "normal"> {
  let summary = "normal with mean and standard deviation";
  let parameters = (ins F64Param<"mean">:$mean, F64Param<"deviation">:$std);
  let assemblyFormat = "`<` $mean `,` $std `>`";
}
def Emb_ConstantAttr : Emb_Init<"Constant", "constant"> {
  let summary = "one value everywhere";
  let parameters = (ins F64Param<"value">:$value);
  let assemblyFormat = "`<` $value `>`";
}

//===----------------------------------------------------------------------===//
// Measured and decided
//===----------------------------------------------------------------------===//

def Emb_MachineAttr : Emb_Attr<"Machine", "machine"> {
  let summary = "the machine that a module is compiled for";
  let description = [{
    CPU name (an x86-64 level or a CPU that LLVM knows), cores, optional GPU,
    and measured figures: a dictionary from a part's name (tier kind, `cpu`,
    `link`) to a dictionary from a figure's name to an f64, for example
    `{nvme = {read_bytes_per_s = 2.0e9, read_iops = 4.0e5, latency_s = 9.0e-5}}`.
  }];
  let parameters = (ins "::mlir::StringAttr":$cpu, "int64_t":$cores,
                        OptionalParameter<"::mlir::StringAttr">:$gpu,
                        OptionalParameter<"::mlir::DictionaryAttr">:$figures);
  let assemblyFormat = [{
    `<` `cpu` $cpu `,` `cores` $cores (`gpu` $gpu^)? (`figures` $figures^)? `>`
  }];
  let extraClassDeclaration = [{
    /// The figure `name` of `part`, if it was measured.
    std::optional<double> getFigure(::llvm::StringRef part,
                                    ::llvm::StringRef name) const;
  }];
}

def Emb_ShardsAttr : Emb_Attr<"Shards", "shards"> {
  let summary = "how a table is cut, and which worker owns each piece";
  let description = [{
    `#emb.shards<table, [3]>`: worker 3 owns all of it.
    `#emb.shards<column, [0, 1], [0, 32, 64]>`: piece i has columns
    bounds[i] .. bounds[i+1]. `row` alike. `#emb.shards<replicated, [0, 1]>`.
  }];
  let parameters = (ins EnumParameter<Emb_ShardKind>:$kind,
                        I64ListParam<"owner of each piece">:$workers,
                        OptionalI64ListParam<"cut points">:$bounds);
  let assemblyFormat = "`<` $kind `,` $workers (`,` $bounds^)? `>`";
}

def Emb_PlacementAttr : Emb_Attr<"Placement", "placement"> {
  let summary = "home tier of a table, and the cache in front of it";
  let description = [{
    `home` and `cache` name `emb.tier` symbols; without `cache` the home is
    memory and rows are used in place. `retained` slots of the cache outlive
    their batch; overflow slots for pinned rows come on top (plan level).
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$home,
                        OptionalParameter<"::mlir::FlatSymbolRefAttr">:$cache,
                        I64Param<"slots of the cache", "0">:$retained,
                        OptionalParameter<"::mlir::StringAttr">:$policy);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Emb_ProfileAttr : Emb_Attr<"Profile", "profile"> {
  let summary = "measured statistics of the ids of a table or a feature";
  let description = [{
    Means are per batch of `batch` samples, over `batches` batches.
    `reuse[k]`: accesses whose last access lies between 2^(k-1) and 2^k batches
    back (k = 0: in the same batch); `cold` had none.
    `miss_ratio[k]` of accesses miss in an LRU cache of `cache_rows[k]` rows.
  }];
  let parameters = (ins
    I64Param<"batches seen", "0">:$batches,
    I64Param<"samples in a batch", "0">:$batch,
    F64Param<"ids in a batch, mean", "0.0">:$ids,
    I64Param<"ids in a batch, largest", "0">:$max_ids,
    F64Param<"unique ids in a batch, mean", "0.0">:$unique_ids,
    I64Param<"unique ids in a batch, largest", "0">:$max_unique_ids,
    F64Param<"unique bags in a batch, mean", "0.0">:$unique_bags,
    F64Param<"ids in the unique bags of a batch, mean", "0.0">:$unique_bag_ids,
    F64Param<"samples of one session, mean", "0.0">:$samples_per_session,
    I64Param<"distinct ids in all", "0">:$distinct_ids,
    I64Param<"accesses without an earlier one", "0">:$cold,
    OptionalI64ListParam<"reuse histogram">:$reuse,
    OptionalI64ListParam<"cache sizes of the miss-ratio curve">:$cache_rows,
    OptionalF64ListParam<"miss ratio at each size">:$miss_ratio);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // TERRACE_EMB_ATTRS
