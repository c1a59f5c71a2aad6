//===- EmbPasses.td - Passes on emb ------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In pipeline order. lib/Pipelines is the only place that combines them.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TRANSFORMS_EMB_PASSES
#define TERRACE_TRANSFORMS_EMB_PASSES

include "mlir/Pass/PassBase.td"

def EmbDedup : Pass<"emb-dedup", "::mlir::ModuleOp"> {
  let summary = "Pools equal bags of a group once, where RecD's factor pays";
  let description = [{
    Looks for features that name one `dedup` group, whose bags repeat together
    from sample to sample. Where the expected samples per unique bag (measured
    unique bags of the group, else RecD's 1 / (1 - d (S-1) / S) with S = 16 and
    d = 0.9) make it pay in bytes, their bags become unique bags and an inverse,
    rows are pooled once per unique bag, and outputs are expanded.

    Exact under `strict`: the update still adds gradients by sample
    (`by %inverse`). Under `reassociate`, gradients of one unique bag are added
    first (`emb.reduce`), except for `none` and `max`, whose positions are the
    sample's own.

    Runs on imported steps, before `emb-decide`. A group that would not pay, or
    has fewer samples than two a bag, stays as it is, with a remark.

    ```mlir
    %p = emb.lookup sum %t[%c0] ...
    // becomes
    %d, %inv = emb.dedup group "basket" %c0 ...
    %u = emb.lookup sum %t[%d] ...
    %p = emb.expand %u by %inv ...
    ```
  }];
  let options = [
    Option<"minFactor", "min-factor", "double", "1.5",
           "Samples per unique bag below which a group is left alone">
  ];
}

def EmbDecide : Pass<"emb-decide", "::mlir::ModuleOp"> {
  let summary = "Decides workers, homes, caches and lookahead jointly";
  let description = [{
    Asks lib/Planner and writes `plan.decision` and `emb.machine` on the module.
    The user's pins (`emb.pins`) are obeyed, or named in the error. The only
    pass that opens a machine file. No plan is an error at the tier or pin that
    is in the way, with the smallest capacity that fits.

    Must run after `emb-dedup`, on one unsharded step; should be followed by
    `emb-shard` and `emb-place`.
  }];
  let dependentDialects = ["::terrace::plan::PlanDialect"];
  let options = [
    Option<"planFile", "plan", "std::string", "",
           "Take this decision (YAML) instead of searching">
  ];
}

def EmbShard : Pass<"emb-shard", "::mlir::ModuleOp"> {
  let summary = "Gives tables their workers and steps their programs";
  let description = [{
    With one worker nothing changes. With more, every step becomes one program
    per worker: each reads and checks its own samples, hands the ids of every
    feature to the worker that owns its table, gets pooled outputs of its own
    samples back, and hands the gradients to the owners, who update. The three
    exchanges are joined by channels, which keep the order of samples.

    Must run after `emb-decide`.
  }];
  let dependentDialects = ["::terrace::plan::PlanDialect"];
}

def EmbPlace : Pass<"emb-place", "::mlir::ModuleOp"> {
  let summary = "Writes each table's home, cache and retained rows";
  let description = [{
    Materialises `plan.decision` as `placement` of the tables and as the
    lookahead that the schedule starts from. Must run after `emb-decide`. Where
    no tier was declared, declares the one that the planner assumed.
  }];
  let dependentDialects = ["::terrace::plan::PlanDialect"];
}

#endif // TERRACE_TRANSFORMS_EMB_PASSES
