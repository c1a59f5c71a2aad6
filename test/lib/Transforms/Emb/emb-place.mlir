// RUN: terrace-opt %s --split-input-file --emb-place | FileCheck %s
// RUN: terrace-opt %s --split-input-file --emb-place --remarks-filter=emb-place -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// The decision becomes placements; nothing else changes.
// CHECK: emb.table @a {{.+}} placement #emb.placement<home = @disk, cache = @dram, retained = 64, policy = "lfu">
// CHECK: emb.table @b {{.+}} placement #emb.placement<home = @dram>
// REMARK: remark: [Passed] placement | Category:emb-place | Function=a | CacheTier=dram, Remark="home disk", RetainedRows=64
module attributes {plan.decision = #plan.decision<lookahead 2, tables [
    #plan.table<name = "a", home = "disk", cache = "dram", retained = 64, policy = "lfu">,
    #plan.table<name = "b", home = "dram">]>} {
  emb.tier @dram dram bytes 16777216
  emb.tier @disk nvme bytes 16777216 path "x"
  emb.table @a : !emb.state<[100, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.table @b : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
}

// -----

// Without a declared tier the planner took plain memory for granted.
// CHECK: emb.tier @dram dram bytes
// CHECK: emb.table @c {{.+}} placement #emb.placement<home = @dram>
module attributes {plan.decision = #plan.decision<lookahead 0, tables [#plan.table<name = "c", home = "dram">]>} {
  emb.table @c : !emb.state<[100, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
}
