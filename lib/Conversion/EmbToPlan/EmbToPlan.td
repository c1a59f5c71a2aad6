//===- EmbToPlan.td - From emb to plan ---------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CONVERSION_EMBTOPLAN
#define TERRACE_CONVERSION_EMBTOPLAN

include "mlir/Pass/PassBase.td"

def EmbToPlan : Pass<"emb-to-plan", "::mlir::ModuleOp"> {
  let summary = "Rewrites the training step as a plan program";
  let description = [{
    Makes explicit how rows move: per table a group, unique rows, and where the
    home is not memory a probe, spill, store, fetch, fill and unpin; rings for
    all that a batch leaves behind; the order across batches as carries. Tables
    whose home is memory get unique, gather_pool, preserve and segment_update
    only. Ids of `index` tables need no translation.

    Must run after `emb-place`, since every table needs its home. Should be
    followed by `plan-group`. Steps are consumed; tables and tiers stay. Beside
    a step that trains the forward-only step has no program of its own: the
    runtime evaluates by releasing batches of the training program. Alone, as
    `--serve` imports it, it becomes a program that moves rows in only: without
    spill, store, preserve and segment_update, and without the rings of what
    they write.

    Refuses, at the op: tables without a home, homes outside memory without a
    cache, two caches, quantised rows in a step that trains, dynamic ids, steps
    of several workers.
  }];
  let dependentDialects = ["::terrace::plan::PlanDialect"];
}

#endif // TERRACE_CONVERSION_EMBTOPLAN
