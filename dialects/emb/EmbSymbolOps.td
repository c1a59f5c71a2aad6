//===- EmbSymbolOps.td - Tiers, tables, channels, steps ----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The symbols of a module.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_EMB_SYMBOL_OPS
#define TERRACE_EMB_SYMBOL_OPS

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/emb/EmbTypes.td"

class Emb_Op<string mnem, list<Trait> traits = []>
    : Op<Emb_Dialect, mnem, traits>;
class Emb_SymbolOp<string mnem, list<Trait> traits = []>
    : Emb_Op<mnem, !listconcat([Symbol], traits)>;

def Emb_TierOp : Emb_SymbolOp<"tier"> {
  let summary = "a memory tier that rows may live in";
  let description = [{
    `bytes` is the capacity that a plan may use, per node, or for each worker
    (`per_worker`). `path`: files, folders or devices of a tier that is not
    plain memory, striped in this order. More than `drive_writes_per_day` full
    writes a day are an error of the planner, or a warning (`warn_of_wear`).
    ```mlir
    emb.tier @nvme nvme bytes 68719476736 path "item.store"
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Emb_TierKindAttr:$kind,
                       I64Attr:$bytes, OptionalAttr<StrArrayAttr>:$path,
                       UnitAttr:$per_worker,
                       OptionalAttr<F64Attr>:$drive_writes_per_day,
                       UnitAttr:$warn_of_wear);
  let assemblyFormat = [{
    $sym_name `` $kind `bytes` $bytes (`path` custom<Strings>($path)^)?
    (`per_worker` $per_worker^)?
    (`drive_writes_per_day` $drive_writes_per_day^)?
    (`warn_of_wear` $warn_of_wear^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Rows are used in place: no cache and no pins in front of it.
    bool isMemory() { return getKind() == TierKind::DRAM; }
  }];
  let hasVerifier = 1;
}

def Emb_TableOp : Emb_SymbolOp<"table", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an embedding table";
  let description = [{
    Rows, columns and row storage stand in the state type. `ids` says how an id
    becomes a row; it belongs to the table, since features that share the table
    must share the mapping. `profile` is measured, `shards` and `placement` are
    decided (`emb-shard`, `emb-place`).
    ```mlir
    emb.table @item : !emb.state<[4000, 64], #emb.row<f32>> ids index
      optimizer #emb.sgd<lr = 0.1> init #emb.uniform<-0.01, 0.01>
      placement #emb.placement<home = @nvme, cache = @dram, retained = 512>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<Emb_StateType>:$state, Emb_IdKindAttr:$ids,
                       Emb_OptimizerInterface:$optimizer, Emb_InitInterface:$init,
                       OptionalAttr<Emb_PlacementAttr>:$placement,
                       OptionalAttr<Emb_ShardsAttr>:$shards,
                       OptionalAttr<Emb_ProfileAttr>:$profile);
  let assemblyFormat = [{
    $sym_name `:` $state `ids` `` $ids `optimizer` $optimizer `init` $init
    (`placement` qualified($placement)^)? (`shards` qualified($shards)^)?
    (`profile` qualified($profile)^)? attr-dict
  }];
  let extraClassDeclaration = [{
    StateType getStateType() { return ::llvm::cast<StateType>(getState()); }
    int64_t getRows() { return getStateType().getRows(); }
    int64_t getDim() { return getStateType().getDim(); }
  }];
  let hasVerifier = 1;
}

def Emb_ChannelOp : Emb_SymbolOp<"channel"> {
  let summary = "a collective that the programs of all workers take part in";
  let description = [{
    Item i belongs to worker `owners[i]`. `to_owner`: every worker hands in its
    samples of every item, and the owner gets them all, in worker order, which
    is sample order. `from_owner`: the owner hands in all samples, and every
    worker gets its own. Both keep the order of samples, so `strict` allows them.
    ```mlir
    emb.channel @ids to_owner items ["stock", "country"] owners [0, 1] workers 2
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Emb_DirectionAttr:$direction,
                       StrArrayAttr:$items, DenseI64ArrayAttr:$owners,
                       I64Attr:$workers);
  let assemblyFormat = [{
    $sym_name `` $direction `items` $items `owners` $owners `workers` $workers
    attr-dict
  }];
  let hasVerifier = 1;
}

def Emb_StepOp : Emb_SymbolOp<"step", [
    IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one step of one worker";
  let description = [{
    `batch`: most samples of a step; `max_ids`: most ids of all features of a
    step. A step without `emb.update` is a forward-only step.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$batch,
                       I64Attr:$max_ids, I64Attr:$worker, I64Attr:$workers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `batch` $batch `max_ids` $max_ids `worker` $worker `of` $workers
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let hasVerifier = 1;
}

#endif // TERRACE_EMB_SYMBOL_OPS
