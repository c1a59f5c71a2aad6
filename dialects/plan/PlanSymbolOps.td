//===- PlanSymbolOps.td - Lanes, groups, kernels, programs -*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The symbols of a module, rings, and the pipeline.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_PLAN_SYMBOL_OPS
#define TERRACE_PLAN_SYMBOL_OPS

include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/plan/PlanAttrs.td"
include "dialects/plan/PlanInterfaces.td"

class Plan_Op<string mnem, list<Trait> traits = []>
    : Op<Plan_Dialect, mnem, traits>;

defvar PlanSymbolUser = DeclareOpInterfaceMethods<SymbolUserOpInterface>;

def Plan_LaneOp : Plan_Op<"lane", [Symbol]> {
  let summary = "a queue of stages";
  let description = [{
    `cpu` and `stream` run in order; `io` completes out of order, with at most
    `depth` requests in flight; `caller` runs in the trainer's threads.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_LaneKindAttr:$kind,
                       OptionalAttr<I64Attr>:$depth);
  let assemblyFormat = "$sym_name `` $kind (`depth` $depth^)? attr-dict";
  let hasVerifier = 1;
}

def Plan_GroupOp : Plan_Op<"group", [Symbol, PlanSymbolUser]> {
  let summary = "shards of one record class: one directory, one cache, one kernel set";
  let description = [{
    `bases[i]`: first row of table i in the group; `rows`: rows of all.
    `home`: tier; with `cache` rows are used in slots of that tier, else in place.
    `retained` slots outlive their batch; `slots` = retained + overflow for rows
    pinned in flight. `occurrences`, `unique`, `miss`: bounds per batch.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       FlatSymbolRefArrayAttr:$tables, Plan_RecordAttr:$record,
                       FlatSymbolRefAttr:$home,
                       OptionalAttr<FlatSymbolRefAttr>:$cache,
                       OptionalAttr<I64Attr>:$retained,
                       OptionalAttr<I64Attr>:$slots,
                       OptionalAttr<StrAttr>:$policy,
                       OptionalAttr<I64Attr>:$rows,
                       OptionalAttr<DenseI64ArrayAttr>:$bases,
                       OptionalAttr<I64Attr>:$max_occurrences,
                       OptionalAttr<I64Attr>:$max_unique,
                       OptionalAttr<I64Attr>:$max_miss,
                       OptionalAttr<FlatSymbolRefAttr>:$update_kernel);
  let assemblyFormat = [{
    $sym_name $tables qualified($record) `home` $home (`cache` $cache^)?
    (`retained` $retained^)? (`slots` $slots^)? (`policy` $policy^)?
    (`rows` $rows^)? (`bases` $bases^)? (`occurrences` $max_occurrences^)?
    (`unique` $max_unique^)? (`miss` $max_miss^)?
    (`update` $update_kernel^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Rows are cached: the group has a directory, pins and movements.
    bool isCached() { return bool(getCacheAttr()); }
    /// Index of a table in the group, -1 where it is not in it.
    int64_t getTableIndex(::llvm::StringRef table);
    /// First row of table `i`, 0 where `bases` is absent.
    int64_t getBase(unsigned i) { return getBases() ? (*getBases())[i] : 0; }
  }];
  let hasVerifier = 1;
}

def Plan_KernelOp : Plan_Op<"kernel", [Symbol]> {
  let summary = "a kernel, keyed by its configuration";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_KernelKindAttr:$kind,
                       Plan_KernelConfigAttr:$config);
  let assemblyFormat = "$sym_name `` $kind $config attr-dict";
  let extraClassDeclaration = [{
    /// The kernel's name in artifacts (docs/artifact.md).
    std::string getKernelName() { return getConfig().getKernelName(getKind()); }
  }];
  let hasVerifier = 1;
}

def Plan_ProgramOp : Plan_Op<"program", [Symbol, IsolatedFromAbove,
    SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "rings and pipeline of one worker";
  let description = [{
    `arena`: bytes that hold every ring, once `plan-allocate` gave offsets.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$worker,
                       I64Attr:$workers, OptionalAttr<I64Attr>:$batch,
                       OptionalAttr<I64Attr>:$max_ids,
                       OptionalAttr<I64Attr>:$lookahead,
                       OptionalAttr<I64Attr>:$arena);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `worker` $worker `of` $workers (`batch` $batch^)?
    (`max_ids` $max_ids^)? (`lookahead` $lookahead^)? (`arena` $arena^)?
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// The pipeline; the verifier sees to it that there is exactly one.
    ::terrace::plan::PipelineOp getPipeline();
  }];
  let hasRegionVerifier = 1;
  let hasVerifier = 1;
}

def Plan_RingOp : Plan_Op<"ring", [HasParent<"::terrace::plan::ProgramOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    PlanSymbolUser, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "storage for `depth` batches; batch t uses slot t % depth";
  let description = [{
    `bytes`: of one slot. `offset`: in the program's arena (`plan-allocate`).
    `chunks`: the slot holds that part of a batch at a time (only `fetch`).
  }];
  let arguments = (ins FlatSymbolRefAttr:$tier, OptionalAttr<Plan_RingRoleAttr>:$role,
                       OptionalAttr<FlatSymbolRefAttr>:$group, I64Attr:$bytes,
                       I64Attr:$depth, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<I64Attr>:$chunks);
  let results = (outs Plan_RingType:$result);
  let assemblyFormat = [{
    $tier (`role` `` $role^)? (`group` $group^)? `bytes` $bytes `depth` $depth
    (`offset` $offset^)? (`chunks` $chunks^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_PipelineOp : Plan_Op<"pipeline", [
    HasParent<"::terrace::plan::ProgramOp">, SingleBlock, RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    SingleBlockImplicitTerminator<"::terrace::plan::YieldOp">]> {
  let summary = "one batch in program order";
  let description = [{
    `carry(%token = distance)`: the value that the batch `distance` before
    yielded; batches before the first have yielded it.
  }];
  let arguments = (ins DenseI64ArrayAttr:$distances);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    YieldOp getYield();
    /// The value of this batch that batch t + distance gets as argument `i`.
    ::mlir::Value getCarried(unsigned i);
  }];
  let hasRegionVerifier = 1;
  let hasVerifier = 1;
}

def Plan_YieldOp : Plan_Op<"yield", [HasParent<"::terrace::plan::PipelineOp">,
    Terminator, Pure]> {
  let summary = "what later batches wait for";
  let arguments = (ins Variadic<Plan_TokenType>:$tokens);
  let assemblyFormat = "attr-dict ($tokens^ `:` type($tokens))?";
  let builders = [OpBuilder<(ins)>];
}

#endif // TERRACE_PLAN_SYMBOL_OPS
