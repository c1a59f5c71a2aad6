//===- PlanOps.td - The stages of a pipeline ---------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One op per stage of docs/artifact.md. Each may carry after(...) and
// at(@lane, ahead), and states its effects (PlanEffects.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_PLAN_OPS
#define TERRACE_PLAN_OPS

include "dialects/plan/PlanSymbolOps.td"

// A stage: operands and attributes in `ops` (waits and schedule are added
// here), its syntax in `format`, the kinds of lanes that can run it in `lanes`.
class Plan_StageOp<string mnem, dag ops, string format, string lanes,
                   string group = "{}", string ring = "{}",
                   string features = "{}", list<Trait> traits = []>
    : Plan_Op<mnem, !listconcat([
        HasParent<"::terrace::plan::PipelineOp">, Plan_StageInterface,
        DeclareOpInterfaceMethods<Plan_EffectsInterface>,
        OpAsmOpInterface, MemoryEffectsOpInterface, SymbolUserOpInterface], traits)> {
  let arguments = !con(ops, (ins Variadic<Plan_Ready>:$after,
                                 OptionalAttr<FlatSymbolRefAttr>:$lane,
                                 OptionalAttr<I64Attr>:$ahead));
  code tail = [{ (`after` `(` custom<Waits>($after, type($after))^ `)`)?
                 (`at` `(` $lane^ `,` $ahead `)`)? attr-dict }];
  let assemblyFormat = format # tail;
  let extraClassDeclaration = [{
    int64_t getAheadOr0() { return getAhead() ? *getAhead() : 0; }
    void setSchedule(::mlir::FlatSymbolRefAttr lane, int64_t ahead) {
      setLaneAttr(lane);
      setAheadAttr(lane ? ::mlir::Builder(getContext()).getI64IntegerAttr(ahead)
                        : ::mlir::IntegerAttr());
    }
    ::mlir::OperandRange getAfterOperands() { return getAfter(); }
    ::mlir::MutableOperandRange getAfterOperandsMutable() {
      return getAfterMutable();
    }
    bool canRunOn(::terrace::plan::LaneKind kind) {
      using K = ::terrace::plan::LaneKind;
      return ::llvm::is_contained({}] # lanes # [{}, kind);
    }
    void getEffects(::llvm::SmallVectorImpl<::mlir::SideEffects::EffectInstance<
                        ::mlir::MemoryEffects::Effect>> &effects) {
      ::terrace::plan::detail::getMemoryEffects(getOperation(), effects);
    }
    ::llvm::LogicalResult
    verifySymbolUses(::mlir::SymbolTableCollection &symbols) {
      return ::terrace::plan::detail::verifyStageSymbols(getOperation(), symbols);
    }
    void getAsmResultNames(::mlir::OpAsmSetValueNameFn set) {
      ::terrace::plan::detail::nameResults(getOperation(), set);
    }
    ::mlir::FlatSymbolRefAttr getGroupRef() { return }] # group # [{; }
    ::mlir::Value getRingOperand() { return }] # ring # [{; }
    ::mlir::ArrayAttr getFeatureNames() { return }] # features # [{; }
  }];
}

defvar Host = "K::CPU";
defvar Compute = "K::CPU, K::Stream";
defvar Async = "K::IO";
defvar Trainer = "K::Caller";
defvar OfGroup = "getGroupAttr()";
defvar IntoRing = "getRing()";
defvar OfFeatures = "getFeaturesAttr()";

//===----------------------------------------------------------------------===//
// Ids
//===----------------------------------------------------------------------===//

def Plan_FeatureArrayAttr
    : TypedArrayAttrBase<Plan_FeatureAttr, "array of #plan.feature">;

def Plan_IngestOp : Plan_StageOp<"ingest",
    (ins OptionalAttr<Plan_FeatureArrayAttr>:$features, Plan_RingType:$ring),
    "(`features` $features^)? `into` $ring", Host, "{}", IntoRing> {
  let summary = "copies a batch: offsets, ids, weights, labels";
  let description = [{
    `features`: all features of the model in the spec's order; the feature
    indices of the artifact are positions in it.
  }];
  let results = (outs Plan_BufType:$batch);
}

def Plan_CheckOp : Plan_StageOp<"check",
    (ins Plan_BufType:$batch, StrAttr:$on_bad_id),
    "$batch `on_bad_id` $on_bad_id", Host> {
  let summary = "one verdict over a batch; overflow and drop";
  let results = (outs Plan_BufType:$ids);
}

def Plan_TranslateOp : Plan_StageOp<"translate",
    (ins Plan_BufType:$ids, FlatSymbolRefArrayAttr:$tables),
    "$ids `in` $tables", Host> {
  let summary = "ids of these tables become rows, in place";
  let results = (outs Plan_BufType:$rows);
}

def Plan_DedupOp : Plan_StageOp<"dedup",
    (ins Plan_BufType:$ids, ArrayAttr:$groups, OptionalAttr<StrArrayAttr>:$names,
         Plan_RingType:$ring),
    "$ids custom<FeatureGroups>($groups) (`names` $names^)? `into` $ring",
    Host, "{}", IntoRing> {
  let summary = "unique bags and an inverse for each group of features";
  let description = [{
    ```mlir
    %d, %inv = plan.dedup %ids ["clicked", "cart"], ["shop"] into %ring
    ```
  }];
  let results = (outs Plan_BufType:$unique, Plan_BufType:$inverse);
}

def Plan_UniqueOp : Plan_StageOp<"unique",
    (ins FlatSymbolRefAttr:$group, Variadic<Plan_BufType>:$ids, I64Attr:$max,
         OptionalAttr<I64Attr>:$max_unique,
         OptionalAttr<StrArrayAttr>:$features, Plan_RingType:$ring),
    [{$group $ids (`features` $features^)? `max` $max (`unique` $max_unique^)?
      `into` $ring}],
    Host, OfGroup, IntoRing, OfFeatures, [AttrSizedOperandSegments]> {
  let summary = "unique rows of a group, and what the update needs";
  let description = [{
    `max`: most occurrences of a batch; `unique`: most unique rows. Yields the
    unique rows, and the occurrences (index of the unique row of each, segments,
    coefficients). Rows of a group without a cache get their initial value here.
  }];
  let results = (outs Plan_BufType:$unique, Plan_BufType:$occurrences);
}

def Plan_TouchOp : Plan_StageOp<"touch",
    (ins FlatSymbolRefAttr:$group, Plan_BufType:$ids,
         OptionalAttr<StrArrayAttr>:$features),
    "$group $ids (`features` $features^)?", Host, OfGroup, "{}", OfFeatures> {
  let summary = "rows of a group without a cache get their initial value";
  let description = [{
    Stands for plan.unique where no row is updated and look-ups read rows by id:
    yields the ids as occurrences, of which every row now has a value.
  }];
  let results = (outs Plan_BufType:$occurrences);
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

def Plan_ProbeOp : Plan_StageOp<"probe",
    (ins FlatSymbolRefAttr:$group, Plan_BufType:$unique, Plan_RingType:$ring),
    "$group $unique `into` $ring", Host, OfGroup, IntoRing> {
  let summary = "pins a batch's rows, chooses slots and victims";
  let results = (outs Plan_PinsType:$pins, Plan_MissesType:$misses,
                      Plan_VictimsType:$victims);
}

def Plan_SpillOp : Plan_StageOp<"spill",
    (ins FlatSymbolRefAttr:$group, Plan_VictimsType:$victims,
         Plan_RingType:$ring),
    "$group $victims `into` $ring", Compute, OfGroup, IntoRing> {
  let summary = "copies dirty victims into the write buffer";
  let description = [{Afterwards the directory points into the write buffer.}];
  let results = (outs Plan_BufType:$records);
}

def Plan_StoreOp : Plan_StageOp<"store",
    (ins FlatSymbolRefAttr:$group, Plan_BufType:$records),
    "$group $records", Async, OfGroup> {
  let summary = "writes records home";
  let description = [{
    The token: queued, and readable from the write buffer. The device's
    completion only frees the ring's slot.
  }];
  let results = (outs Plan_TokenType:$queued);
}

def Plan_FetchOp : Plan_StageOp<"fetch",
    (ins FlatSymbolRefAttr:$group, Plan_MissesType:$misses, Plan_RingType:$ring),
    "$group $misses `into` $ring", Async, OfGroup, IntoRing> {
  let summary = "reads missing rows from home or from the write buffer";
  let results = (outs Plan_BufType:$staged);
}

def Plan_FillOp : Plan_StageOp<"fill",
    (ins FlatSymbolRefAttr:$group, Plan_PinsType:$pins, Plan_BufType:$staged),
    "$group $pins `from` $staged", Compute, OfGroup> {
  let summary = "puts missing rows into their slots";
  let description = [{Rows never written get their initial value.}];
  let results = (outs Plan_RowsType:$rows);
}

def Plan_UnpinOp : Plan_StageOp<"unpin",
    (ins FlatSymbolRefAttr:$group, Plan_RowsType:$rows),
    "$group $rows", Host, OfGroup> {
  let summary = "lets a batch's rows go";
  let results = (outs Plan_TokenType:$released);
}

def Plan_PreserveOp : Plan_StageOp<"preserve",
    (ins FlatSymbolRefAttr:$group, Optional<Plan_RowsType>:$rows,
         Plan_BufType:$occurrences),
    "$group (`rows` $rows^)? `[` $occurrences `]`", Compute, OfGroup, "{}",
    "{}", [AttrSizedOperandSegments]> {
  let summary = "stores the rows that a pending checkpoint needs, before their update";
  let description = [{
    A checkpoint takes the value that every row has between two steps, while
    training goes on: rows of this batch that it has not stored yet are copied
    and queued here, which waits where the store's write buffer is full. Nothing
    to do where no checkpoint is pending.

    The trainer may cut until its word to go on, so this must run after
    plan.resume, and before the rows' plan.segment_update.
  }];
  let results = (outs Plan_TokenType:$preserved);
}

def Plan_CopyOp : Plan_StageOp<"copy",
    (ins Plan_BufType:$source, Plan_RingType:$ring), "$source `into` $ring",
    Compute, "{}", IntoRing> {
  let summary = "copies a buffer into a ring of another tier";
  let results = (outs Plan_BufType:$result);
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

def Plan_GatherPoolOp : Plan_StageOp<"gather_pool",
    (ins FlatSymbolRefAttr:$group, Optional<Plan_RowsType>:$rows,
         Plan_BufType:$occurrences, FlatSymbolRefArrayAttr:$kernels,
         OptionalAttr<StrArrayAttr>:$features, UnitAttr:$direct,
         Plan_RingType:$ring),
    [{$group (`rows` $rows^)? (`direct` $direct^)? `[` $occurrences `]`
      `with` custom<Symbols>($kernels) (`features` $features^)? `into` $ring}],
    Compute, OfGroup, IntoRing, OfFeatures, [AttrSizedOperandSegments]> {
  let summary = "pools rows for the features of a group";
  let description = [{
    One kernel for all features, or one per feature in `features`. `rows` is
    absent where the group has no cache: rows are used in place. `direct`: read
    by id, not by the place among the unique rows; these then serve the updates
    alone, and batches that are only looked up do without.
  }];
  let results = (outs Plan_BufType:$pooled);
}

def Plan_ExpandOp : Plan_StageOp<"expand",
    (ins Variadic<Plan_BufType>:$pooled, Plan_BufType:$inverse,
         OptionalAttr<StrArrayAttr>:$features, Plan_RingType:$ring),
    "$pooled `by` $inverse (`features` $features^)? `into` $ring", Compute,
    "{}", IntoRing, OfFeatures, [AttrSizedOperandSegments]> {
  let summary = "one output per unique bag becomes one per sample";
  let results = (outs Plan_BufType:$expanded);
}

def Plan_ReduceOp : Plan_StageOp<"reduce",
    (ins Plan_BufType:$grads, Plan_BufType:$inverse, Plan_RingType:$ring),
    "$grads `by` $inverse `into` $ring", Compute, "{}", IntoRing> {
  let summary = "adds the gradients of samples that share a bag: re-associates";
  let results = (outs Plan_BufType:$reduced);
}

def Plan_SegmentUpdateOp : Plan_StageOp<"segment_update",
    (ins FlatSymbolRefAttr:$group, Optional<Plan_RowsType>:$rows,
         Plan_BufType:$occurrences, FlatSymbolRefAttr:$kernel,
         Variadic<Plan_BufType>:$grads, Variadic<Plan_BufType>:$inverses,
         DenseI32ArrayAttr:$inverse_index, OptionalAttr<StrArrayAttr>:$features),
    [{$group (`rows` $rows^)? `[` $occurrences `]` `with` $kernel
      (`features` $features^)?
      `grads` `(` custom<GradsBy>($grads, $inverses, $inverse_index) `)`}],
    Compute, OfGroup, "{}", OfFeatures, [AttrSizedOperandSegments]> {
  let summary = "sums gradients per row and applies the optimizer, in place";
  let results = (outs Plan_TokenType:$updated);
}

//===----------------------------------------------------------------------===//
// The head, the trainer, other workers
//===----------------------------------------------------------------------===//

class Plan_WithResults<string mnem, dag ops, string format, string arrow,
                       string lanes, string ring, list<Trait> traits = []>
    : Plan_StageOp<mnem, ops, format, lanes, "{}", ring, "{}", traits> {
  let assemblyFormat = format # tail # arrow;
}

def Plan_CallOp : Plan_WithResults<"call",
    (ins SymbolNameAttr:$kind, Variadic<Plan_BufType>:$inputs,
         Plan_RingType:$ring),
    "$kind `(` $inputs `)` `into` $ring", "(`->` type($results)^)?", Compute,
    IntoRing, [AttrSizedOperandSegments]> {
  let summary = "the head: predictions and gradients";
  let description = [{
    Inputs: the batch (for its labels), then outputs in feature order. Results:
    one buffer of gradients per output.
  }];
  let results = (outs Variadic<Plan_BufType>:$results);
}

def Plan_HandoffOp : Plan_StageOp<"handoff",
    (ins Variadic<Plan_BufType>:$outputs), "`(` $outputs `)`", Trainer, "{}",
    "{}", "{}", [AttrSizedOperandSegments]> {
  let summary = "outputs or predictions go to the trainer (trc_forward)";
  let results = (outs Plan_TokenType:$handed);
}

def Plan_ResumeOp : Plan_WithResults<"resume",
    (ins Optional<Plan_RingType>:$ring), "(`into` $ring^)?",
    "(`->` type($grads)^)?", Trainer, IntoRing, [AttrSizedOperandSegments]> {
  let summary = "the trainer's gradients, or its word to go on (trc_backward)";
  let description = [{
    Without a ring it is only the word to go on: the head's gradients stand.
  }];
  let results = (outs Plan_TokenType:$go, Variadic<Plan_BufType>:$grads);
}

def Plan_ExchangeOp : Plan_WithResults<"exchange",
    (ins FlatSymbolRefAttr:$channel, Variadic<Plan_BufType>:$inputs,
         Plan_RingType:$ring),
    "$channel `(` $inputs `)` `into` $ring", "(`->` type($results)^)?",
    "K::CPU, K::Stream, K::IO", IntoRing, [AttrSizedOperandSegments]> {
  let summary = "this worker's part in an emb.channel";
  let results = (outs Variadic<Plan_BufType>:$results);
}

#endif // TERRACE_PLAN_OPS
