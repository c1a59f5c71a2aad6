//===- PlanPasses.td - Passes on plan ----------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In pipeline order. lib/Pipelines is the only place that combines them.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_TRANSFORMS_PLAN_PASSES
#define TERRACE_TRANSFORMS_PLAN_PASSES

include "mlir/Pass/PassBase.td"

def PlanGroup : Pass<"plan-group", "::mlir::ModuleOp"> {
  let summary = "Merges groups of one record class, home, cache and policy";
  let description = [{
    Looks for groups whose rows have one format and one optimizer with all its
    parameters (a kernel call has one set of scalars), one home, one cache and
    one policy, and makes one group of them: one directory, one cache, one set
    of ops. A group's rows stay below 2^31, since the directory names them with
    32 bits; more rows open another group.

    Must run after `emb-to-plan`, before any op is scheduled. Groups are named
    after their dimension: `g16`, `g16_1`, ...
  }];
}

def PlanDirectLookup : Pass<"plan-direct-lookup", "::mlir::ModuleOp"> {
  let summary = "Look-ups of rows in memory read them by id";
  let description = [{
    Looks for groups without a cache none of whose features is pooled per unique
    bag: their rows lie one after the other, so an id is a place. plan.gather_pool
    becomes `direct`, with kernels to match, and looks at no unique rows: those
    serve the updates alone, and a batch that is only looked up does without.
    Where nothing is updated, plan.unique and its ring give way to plan.touch,
    which is left with giving rows their initial value.

    Must run after `plan-group`, before any op is scheduled. Says of every group
    what was done, or what stands against it.
  }];
}

def PlanSchedulePrefetch : Pass<"plan-schedule-prefetch", "::mlir::ModuleOp"> {
  let summary = "Gives each op its lane and batches ahead, each ring its depth";
  let description = [{
    Takes the lookahead of the option, else of the program, else of the module's
    decision, else the smallest that is predicted to be about as fast as any,
    with batches as large as their bounds. Edits attributes only; sizes the slots of groups that
    have none: retained rows plus the rows that batches in flight pin.

    Should be followed by `plan-allocate` and `plan-verify`. Refuses a lookahead
    above 8 and programs whose lanes lack a name that the schedule needs.
  }];
  let options = [
    Option<"lookahead", "lookahead", "int64_t", "-1",
           "Batches ahead of the probe, 0 to 8; -1: as decided">
  ];
}

def PlanAllocate : Pass<"plan-allocate", "::mlir::ModuleOp"> {
  let summary = "Sizes rings, packs them into one arena, bounds every tier";
  let description = [{
    Ring slots get the bytes of runtime/core/RingLayout.h. Rings live as long as
    the program, so their offsets are a packing, in order, each from a page
    border. Then adds up what each tier holds (rings, slots, index, rows) and
    refuses a program over a tier's bytes, naming the smallest that fit.

    Must run after `plan-schedule-prefetch`, which decides depths and slots.
  }];
}

def PlanVerify : Pass<"plan-verify", "::mlir::ModuleOp"> {
  let summary = "Proves the order of every conflict that the ops' effects declare";
  let description = [{
    Builds lib/Schedule's graph of each program from operands, carries, lanes
    and rings, and reports what HappensBefore cannot prove, at the op, with the
    shortest interleaving that breaks it. The IR stays as it is.
  }];
}

#endif // TERRACE_TRANSFORMS_PLAN_PASSES
