// RUN: terrace-opt %s --split-input-file --emb-decide | FileCheck %s
// RUN: terrace-opt %s --split-input-file --emb-decide --remarks-filter=emb-decide -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!raw = !emb.bags<64, max 64 x i64, raw>
!ids = !emb.bags<64, max 64 x i64, checked>
!small = !emb.state<[1000, 16], #emb.row<f32>>
!large = !emb.state<[4000000, 16], #emb.row<f32>>

// What fits lives in memory; what does not gets a home behind a cache, and the
// rest of the budget.
// CHECK: emb.machine = #emb.machine<cpu "x86-64-v3", cores 2
// CHECK-SAME: plan.decision = #plan.decision<lookahead {{[0-8]}}, tables [
// CHECK-SAME: #plan.table<name = "small", home = "dram">
// CHECK-SAME: #plan.table<name = "large", home = "disk", cache = "dram", retained = {{[1-9][0-9]*}}, policy = "lfu">
// REMARK: remark: [Passed] home | Category:emb-decide | Function=small | {{.*}}Remark="table small lives in dram"
// REMARK: remark: [Passed] home | Category:emb-decide | Function=large | CacheTier=dram, MissesPerStep={{[1-9][0-9]*}}, Reason="capacity of dram", Remark="table large lives in disk", RetainedRows={{[1-9][0-9]*}}
// REMARK: remark: [Passed] lookahead | Category:emb-decide | {{.*}}RunnerUp="lookahead {{[0-8]}}", RunnerUpMicros=
// REMARK: remark: [Analysis] bound | Category:emb-decide | Function=dram | Capacity=67108864, Index={{[1-9][0-9]*}}, Remark="tier dram holds at most {{[0-9]+}} bytes", Rings={{[1-9][0-9]*}}, Rows=68000, Slots={{[1-9][0-9]*}}
module {
  emb.tier @dram dram bytes 67108864
  emb.tier @disk nvme bytes 1073741824 path "x.store"
  emb.table @small : !small ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 1.0e-8> init #emb.constant<0.0>
  emb.table @large : !large ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 1.0e-8> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 128 worker 0 of 1 {
    %n = emb.samples : index
    %f = emb.feature "f" index 0 : !raw
    %g = emb.feature "g" index 1 : !raw
    %c:2 = emb.check %f, %g in [@small, @large] on_bad_id "error" : !raw, !raw -> !ids, !ids
    %s = emb.state @small : !small
    %l = emb.state @large : !large
    %p = emb.lookup sum %s[%c#0] : !small, !ids -> tensor<64x16xf32>
    %q = emb.lookup sum %l[%c#1] : !large, !ids -> tensor<64x16xf32>
    emb.dense @caller(%n, %p, %q) : (index, tensor<64x16xf32>, tensor<64x16xf32>) -> ()
  }
}

// -----

!raw = !emb.bags<64, max 64 x i64, raw>
!ids = !emb.bags<64, max 64 x i64, checked>
!t = !emb.state<[1000, 16], #emb.row<f32>>

// Pins are obeyed: 6,800 bytes of cache are 100 rows of 68.
// CHECK: plan.decision = #plan.decision<lookahead 3, tables [#plan.table<name = "t", home = "disk", cache = "dram", retained = 100, policy = "lfu">]>
// REMARK: remark: [Passed] home | Category:emb-decide | Function=t | {{.*}}Reason=pinned
module attributes {emb.pins = {lookahead = 3 : i64, place = [{tables = "*", home = "disk", cache = [["dram", 6800 : i64]]}]}} {
  emb.tier @dram dram bytes 67108864
  emb.tier @disk nvme bytes 1073741824 path "x.store"
  emb.table @t : !t ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 1.0e-8> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
    %f = emb.feature "f" index 0 : !raw
    %c = emb.check %f in [@t] on_bad_id "error" : !raw -> !ids
  }
}

// -----

!raw = !emb.bags<64, max 64 x i64, raw>
!ids = !emb.bags<64, max 64 x i64, checked>
!t = !emb.state<[1000, 16], #emb.row<f32>>

// Two workers: the dearer table apart from the two cheap ones; `together` wins
// over balance.
// CHECK: plan.decision = {{.+}}name = "a", home = "dram", shards = <table, [0]>>, #plan.table<name = "b", home = "dram", shards = <table, [1]>>, #plan.table<name = "c", home = "dram", shards = <table, [1]>>
// REMARK: remark: [Analysis] balance | Category:emb-decide | {{.+}}2 workers, largest load 1.
module attributes {emb.pins = {workers = 2 : i64, together = [["b", "c"]]}} {
  emb.table @a : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.table @b : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.table @c : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 320 worker 0 of 1 {
    %f = emb.feature "f" index 0 max_per_bag 3 : !emb.bags<64, max 192 x i64, raw>
    %g = emb.feature "g" index 1 : !raw
    %h = emb.feature "h" index 2 : !raw
    %c:3 = emb.check %f, %g, %h in [@a, @b, @c] on_bad_id "error" : !emb.bags<64, max 192 x i64, raw>, !raw, !raw -> !emb.bags<64, max 192 x i64, checked>, !ids, !ids
  }
}
