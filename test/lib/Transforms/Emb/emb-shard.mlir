// RUN: terrace-opt %s --split-input-file --emb-shard | FileCheck %s
// RUN: terrace-opt %s --split-input-file --emb-shard --remarks-filter=emb-shard -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[100, 4], #emb.row<f32>>

// Own samples at both ends, all samples of the owned tables in between.
// REMARK: remark: [Passed] shard | Category:emb-shard | Function=train | Channels=3, Remark="2 programs, 2 features exchanged"
// CHECK: emb.table @a {{.+}} shards #emb.shards<table, [0]>
// CHECK: emb.table @b {{.+}} shards #emb.shards<table, [1]>
// CHECK: emb.channel @train_ids to_owner items ["f", "g"] owners [0, 1] workers 2
// CHECK: emb.channel @train_outputs from_owner items ["f", "g"] owners [0, 1] workers 2
// CHECK: emb.channel @train_grads to_owner items ["f", "g"] owners [0, 1] workers 2
// CHECK: emb.step @train_w0 batch 8 max_ids 16 worker 0 of 2
// CHECK: %[[Y:.+]] = emb.feature "y" : tensor<4xf32>
// CHECK: %[[C0:.+]], %[[C1:.+]] = emb.check {{.+}} : !raw_4_max4, !raw_4_max4 ->
// CHECK: %[[MINE:.+]] = emb.exchange @train_ids(%[[C0]], %[[C1]]) : {{.+}} -> !ids_8_max8
// CHECK: emb.state @a
// CHECK-NOT: emb.state @b
// CHECK: %[[P:.+]] = emb.lookup sum %{{.+}}[%[[MINE]]] : {{.+}} -> tensor<8x4xf32>
// CHECK: %[[O:.+]]:2 = emb.exchange @train_outputs(%[[P]]) : (tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK: %[[G:.+]]:2 = emb.dense @fm(%{{.+}}, %[[O]]#0, %[[O]]#1, %[[Y]])
// CHECK: %[[GM:.+]] = emb.exchange @train_grads(%[[G]]#0, %[[G]]#1) : {{.+}} -> tensor<8x4xf32>
// CHECK: %[[NEW:.+]] = emb.update {{.+}} bags [%[[MINE]]] grads(%[[GM]])
// CHECK: emb.commit [@a](%[[NEW]])
// CHECK: emb.step @train_w1 batch 8 max_ids 16 worker 1 of 2
// CHECK: emb.state @b
// CHECK: emb.commit [@b]
// CHECK-NOT: emb.step @train batch
module attributes {emb.pins = {workers = 2 : i64}, plan.decision = #plan.decision<lookahead 0, tables [
    #plan.table<name = "a", home = "dram", shards = <table, [0]>>,
    #plan.table<name = "b", home = "dram", shards = <table, [1]>>]>} {
  emb.table @a : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.table @b : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 8 max_ids 16 worker 0 of 1 {
    %s = emb.scalar "lr_scale" : f32
    %n = emb.samples : index
    %y = emb.feature "y" : tensor<8xf32>
    %f = emb.feature "f" index 0 : !raw
    %g = emb.feature "g" index 1 : !raw
    %c:2 = emb.check %f, %g in [@a, @b] on_bad_id "error" : !raw, !raw -> !ids, !ids
    %sa = emb.state @a : !t
    %sb = emb.state @b : !t
    %p = emb.lookup sum %sa[%c#0] : !t, !ids -> tensor<8x4xf32>
    %q = emb.lookup sum %sb[%c#1] : !t, !ids -> tensor<8x4xf32>
    %d:2 = emb.dense @fm(%n, %p, %q, %y) : (index, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    %ua = emb.update %sa scale %s pool [sum] bags [%c#0] grads(%d#0) : !t, f32, [!ids], (tensor<8x4xf32>)
    %ub = emb.update %sb scale %s pool [sum] bags [%c#1] grads(%d#1) : !t, f32, [!ids], (tensor<8x4xf32>)
    emb.commit [@a, @b](%ua, %ub) : !t, !t
  }
}

// -----

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[100, 4], #emb.row<f32>>

// One worker: the step stays as it is.
// CHECK-NOT: emb.channel
// CHECK: emb.step @train batch 8 max_ids 8 worker 0 of 1
// CHECK-NOT: emb.exchange
module attributes {plan.decision = #plan.decision<lookahead 0, tables [#plan.table<name = "a", home = "dram">]>} {
  emb.table @a : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 8 max_ids 8 worker 0 of 1 {
    %f = emb.feature "f" index 0 : !raw
    %c = emb.check %f in [@a] on_bad_id "error" : !raw -> !ids
  }
}
