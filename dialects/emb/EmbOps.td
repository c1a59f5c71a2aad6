//===- EmbOps.td - The ops of a step -----------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs, ids, look-ups, the boundary to the head, and updates. All are pure
// but check (its verdict), dense (the head), commit and exchange.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_EMB_OPS
#define TERRACE_EMB_OPS

include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "dialects/emb/EmbSymbolOps.td"

// An op of a step's body.
class Emb_StepBodyOp<string mnem, list<Trait> traits = []>
    : Emb_Op<mnem, !listconcat([HasParent<"::terrace::emb::StepOp">], traits)>;

// Results are printed under telling names (EmbAsm.cpp).
defvar Named = DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

// Effects on the world outside of the step, each on a resource of its own
// (EmbEffects in Emb.h), so that they neither die nor block pure ops.
defvar OutsideEffects = DeclareOpInterfaceMethods<MemoryEffectsOpInterface>;
defvar SymbolUser = DeclareOpInterfaceMethods<SymbolUserOpInterface>;
def Emb_PoolingArrayAttr
    : TypedArrayAttrBase<Emb_PoolingAttr, "array of poolings">;
// Id lists and positions.
def Emb_RowIds : RankedTensorOf<[I64]>;
def Emb_Positions : RankedTensorOf<[I32]>;

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

def Emb_ScalarOp : Emb_StepBodyOp<"scalar", [Named, Pure]> {
  let summary = "a scalar that the caller sets for each step";
  let description = [{
    `lr_scale` multiplies each table's learning rate, `grad_scale` the gradients
    that the head or the caller returns.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs F32:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Emb_SamplesOp : Emb_StepBodyOp<"samples", [Named, Pure]> {
  let summary = "samples of this step: at most the step's batch";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Emb_FeatureOp : Emb_StepBodyOp<"feature", [Named, Pure]> {
  let summary = "a column of the batch";
  let description = [{
    Raw bags (`raw`, weighted if `weights` names a column), or a dense f32
    column such as the label. `index`: position in the spec's `features`;
    `column` and `weights`: columns of the data (default: the feature's name);
    `max_per_bag`, `overflow`: the bound of a bag; `mean_ids`: expected ids of
    one bag; `dedup`: group of features whose bags repeat together.
    ```mlir
    %0 = emb.feature "cart" index 3 weights "qty" max_per_bag 50
         overflow keep_last dedup "visit" : !emb.bags<8, max 400 x i64, raw, weighted>
    ```
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$index,
                       OptionalAttr<StrAttr>:$column,
                       OptionalAttr<StrAttr>:$weights,
                       OptionalAttr<I64Attr>:$max_per_bag,
                       OptionalAttr<F64Attr>:$mean_ids,
                       OptionalAttr<Emb_OverflowAttr>:$overflow,
                       OptionalAttr<StrAttr>:$dedup, UnitAttr:$string_ids,
                       OptionalAttr<Emb_ProfileAttr>:$profile);
  let results = (outs AnyTypeOf<[Emb_BagsType, RankedTensorOf<[F32]>]>:$result);
  let assemblyFormat = [{
    $name (`index` $index^)? (`column` $column^)? (`weights` $weights^)?
    (`max_per_bag` $max_per_bag^)? (`mean_ids` $mean_ids^)?
    (`overflow` `` $overflow^)? (`dedup` $dedup^)? (`string_ids` $string_ids^)?
    (`profile` `(` qualified($profile)^ `)`)? attr-dict `:` type($result)
  }];
  let extraClassDeclaration = [{
    bool isBags() { return ::llvm::isa<BagsType>(getType()); }
    /// The column that ids or values come from.
    ::llvm::StringRef getColumnName() {
      return getColumn() ? *getColumn() : getName();
    }
    Overflow getOverflowPolicy() {
      return getOverflow() ? *getOverflow() : Overflow::Error;
    }
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Ids
//===----------------------------------------------------------------------===//

def Emb_CheckOp : Emb_StepBodyOp<"check", [Named, OutsideEffects, SymbolUser,
    InferTypeOpAdaptor]> {
  let summary = "one verdict over all ids of a step";
  let description = [{
    Bags i are checked against table i. `error`: the step is refused whole.
    `drop`: bad ids leave their bags and are counted. Exactly one per step, so
    that a bad id anywhere stops every update.
  }];
  let arguments = (ins Variadic<Emb_BagsType>:$bags,
                       FlatSymbolRefArrayAttr:$tables, StrAttr:$on_bad_id);
  let results = (outs Variadic<Emb_BagsType>:$results);
  let assemblyFormat = [{
    $bags `in` $tables `on_bad_id` $on_bad_id attr-dict
    `:` type($bags) `->` type($results)
  }];
  let extraClassDeclaration = [{
    bool dropsBadIds() { return getOnBadId() == "drop"; }
    ::llvm::StringRef getTable(unsigned i) {
      return ::llvm::cast<::mlir::FlatSymbolRefAttr>(getTables()[i]).getValue();
    }
  }];
  let hasVerifier = 1;
}

def Emb_TranslateOp : Emb_StepBodyOp<"translate", [Named, Pure, SymbolUser,
    AllTypesMatch<["bags", "result"]>]> {
  let summary = "ids become rows of a table";
  let description = [{
    The table's `ids` say how. For `index` it is the identity and folds away
    once the table is known (`emb-canonicalize` patterns).
  }];
  let arguments = (ins Emb_BagsType:$bags, FlatSymbolRefAttr:$table);
  let results = (outs Emb_BagsType:$result);
  let assemblyFormat = "$bags `in` $table attr-dict `:` qualified(type($bags))";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Emb_DedupOp : Emb_StepBodyOp<"dedup", [Named, Pure,
    InferTypeOpAdaptor]> {
  let summary = "bags of a group become unique bags and an inverse";
  let description = [{
    Samples are equal when all bags of the group (ids, weights, order) are.
    Unique bags stand in order of first occurrence; `inverse[sample]` is the
    unique bag of a sample.
  }];
  let arguments = (ins Variadic<Emb_BagsType>:$bags,
                       OptionalAttr<StrAttr>:$group);
  let results = (outs Variadic<Emb_BagsType>:$unique, Emb_InverseType:$inverse);
  let assemblyFormat = [{
    (`group` $group^)? $bags attr-dict `:` type($bags) `->`
    custom<DedupTypes>(type($unique), type($inverse))
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Emb_ExpandOp : Emb_StepBodyOp<"expand", [Named, Pure]> {
  let summary = "one row per unique bag becomes one row per sample";
  let description = [{
    `of` names the unique bags where the rows stand per id (pooling `none`).
  }];
  let arguments = (ins AnyRankedTensor:$pooled, Emb_InverseType:$inverse,
                       Optional<Emb_BagsType>:$bags);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $pooled `by` $inverse (`of` $bags^)? attr-dict
    `:` type($pooled) `,` qualified(type($inverse)) (`,` qualified(type($bags))^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def Emb_UniqueOp : Emb_StepBodyOp<"unique", [Pure, SymbolUser]> {
  let summary = "the rows of a table that a step touches, each once";
  let description = [{
    `rows`: unique rows in order of first occurrence, over the bags in operand
    order; `index`: for each occurrence, in the same order, its place in `rows`.
  }];
  let arguments = (ins Variadic<Emb_BagsType>:$bags, FlatSymbolRefAttr:$table);
  let results = (outs Emb_RowIds:$rows, Emb_Positions:$index);
  let assemblyFormat = [{
    $bags `in` $table attr-dict `:` type($bags) `->` type($rows) `,` type($index)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// States and look-ups
//===----------------------------------------------------------------------===//

def Emb_StateOp : Emb_StepBodyOp<"state", [Named, Pure, SymbolUser]> {
  let summary = "the state of a table before this step's update";
  let arguments = (ins FlatSymbolRefAttr:$table);
  let results = (outs Emb_StateType:$result);
  let assemblyFormat = "$table attr-dict `:` qualified(type($result))";
}

def Emb_LookupOp : Emb_StepBodyOp<"lookup", [Named, Pure, SymbolUser,
    InferTypeOpAdaptor]> {
  let summary = "gathers and pools rows";
  let description = [{
    `max` also yields the winner: the position inside the bag that gave each
    column (ties: the first; -1 for an empty bag). `none` yields a row per id.
  }];
  let arguments = (ins Emb_PoolingAttr:$pooling, Emb_StateType:$state,
                       Emb_BagsType:$bags);
  let results = (outs AnyRankedTensor:$pooled,
                      Optional<Emb_Positions>:$winner);
  let assemblyFormat = [{
    `` $pooling $state `[` $bags `]` attr-dict `:` qualified(type($state)) `,` qualified(type($bags))
    `->` type(results)
  }];
  let extraClassDeclaration = [{
    /// The `emb.table` that the state comes from, null where it is not visible.
    ::mlir::FlatSymbolRefAttr getTableRef();
  }];
  let hasVerifier = 1;
}

def Emb_GradWeightsOp : Emb_StepBodyOp<"grad_weights", [Pure, SymbolUser]> {
  let summary = "gradients of the weights of bags, one per id";
  let arguments = (ins Emb_PoolingAttr:$pooling, Emb_StateType:$state,
                       Emb_BagsType:$bags, Emb_Gradient:$grad);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = [{
    `` $pooling $state `[` $bags `]` `grad` $grad attr-dict
    `:` qualified(type($state)) `,` qualified(type($bags)) `,` type($grad) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// The head
//===----------------------------------------------------------------------===//

def Emb_DenseOp : Emb_StepBodyOp<"dense", [Named, OutsideEffects]> {
  let summary = "the boundary to the head, or to the trainer";
  let description = [{
    Operands: samples, pooled outputs in feature order, dense columns (`dlrm`
    only), then the label (not for `caller`). Results: one gradient per pooled
    output; or, in a forward-only step, one prediction per sample, or nothing
    (`caller`).
  }];
  let arguments = (ins SymbolNameAttr:$kind, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<RankedTensorOf<[F32]>>:$results);
  let assemblyFormat = [{
    $kind `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)
  }];
  let extraClassDeclaration = [{
    bool isCaller() { return getKind() == "caller"; }
    ::mlir::Value getSamples() { return getInputs().front(); }
    /// The pooled outputs, in feature order.
    ::mlir::OperandRange getPooled();
    /// The dense columns, without the label.
    ::mlir::OperandRange getColumns();
    /// The label, null where there is none.
    ::mlir::Value getLabel();
    /// Whether the results are gradients (a training step).
    bool hasGradients();
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

def Emb_ReduceOp : Emb_StepBodyOp<"reduce", [Named, Pure]> {
  let summary = "adds the gradients of samples that share a bag: re-associates";
  let description = [{
    The only op of the level that changes the order of a sum; refused under
    `emb.numerics = "strict"`.
  }];
  let arguments = (ins Emb_Gradient:$grad, Emb_InverseType:$inverse);
  let results = (outs Emb_Gradient:$result);
  let assemblyFormat = [{
    $grad `by` $inverse attr-dict `:` type($grad) `,` qualified(type($inverse))
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def Emb_UpdateOp : Emb_StepBodyOp<"update", [Named, Pure, SymbolUser,
    AttrSizedOperandSegments,
    AllTypesMatch<["state", "result"]>]> {
  let summary = "every row that the step touched meets its optimizer once";
  let description = [{
    One per table and step, over all features that read the table. Contributions
    are added in operand order (feature), then sample, then position. `[%b by
    %inv]`: the bags are unique ones and the gradient stands per sample, so
    sample order is kept. `winners`: for each `max` in pool order.
    ```mlir
    %1 = emb.update %0 scale %s pool [sum, max] bags [%b by %inv, %c]
         grads(%g, %h) winners(%w) : ...
    ```
  }];
  let arguments = (ins Emb_StateType:$state, F32:$scale,
                       Emb_PoolingArrayAttr:$pool,
                       Variadic<Emb_BagsType>:$bags,
                       Variadic<Emb_InverseType>:$inverses,
                       DenseI32ArrayAttr:$inverse_index,
                       Variadic<Emb_Gradient>:$grads,
                       Variadic<Emb_Positions>:$winners);
  let results = (outs Emb_StateType:$result);
  let hasCustomAssemblyFormat = 1;
  let builders = [OpBuilder<(ins
    "::mlir::Value":$state, "::mlir::Value":$scale,
    "::llvm::ArrayRef<Pooling>":$pool, "::mlir::ValueRange":$bags,
    "::llvm::ArrayRef<::mlir::Value>":$inverseOf, "::mlir::ValueRange":$grads,
    CArg<"::mlir::ValueRange", "{}">:$winners)>];
  let extraClassDeclaration = [{
    Pooling getPooling(unsigned i) {
      return ::llvm::cast<PoolingAttr>(getPool()[i]).getValue();
    }
    /// The inverse that bags `i` are expanded by, or null.
    ::mlir::Value getInverseOf(unsigned i);
    /// The winners of bags `i`, null unless they are pooled by `max`.
    ::mlir::Value getWinnerOf(unsigned i);
    /// The `emb.table` that the state comes from, null where it is not visible.
    ::mlir::FlatSymbolRefAttr getTableRef();
  }];
  let hasVerifier = 1;
}

def Emb_CommitOp : Emb_StepBodyOp<"commit", [OutsideEffects, SymbolUser]> {
  let summary = "makes the step's updates the tables' states, all at once";
  let arguments = (ins FlatSymbolRefArrayAttr:$tables,
                       Variadic<Emb_StateType>:$states);
  let assemblyFormat = [{
    $tables `(` $states `)` attr-dict `:` type($states)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Workers
//===----------------------------------------------------------------------===//

def Emb_ExchangeOp : Emb_StepBodyOp<"exchange", [OutsideEffects, SymbolUser]> {
  let summary = "this worker's part in a channel";
  let description = [{
    `to_owner`: one operand per item, results for the items that this worker
    owns. `from_owner`: operands for the owned items, one result per item. All
    workers name a channel once and all channels in the same order.
  }];
  let arguments = (ins FlatSymbolRefAttr:$channel, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $channel `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)
  }];
}

#endif // TERRACE_EMB_OPS
