// RUN: terrace-opt %s --split-input-file --emb-to-plan | FileCheck %s
// RUN: terrace-opt %s --split-input-file --emb-to-plan --remarks-filter=emb-to-plan -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// A tiered table moves its rows: probe, spill, store, fetch, fill, unpin, with the store of the batch before carried. A
// table in memory has none of these; its hashed ids are translated. The head's gradients go by the caller's word.

// REMARK: remark: [Passed] Program | Category:emb-to-plan | {{.*}}2 features of 2 tables; rows of 1 tables move between home and slots

// CHECK-DAG: plan.lane @host cpu
// CHECK-DAG: plan.lane @io io depth 128
// CHECK-DAG: plan.lane @caller caller
// CHECK: plan.group @t_a [@a] #plan.record<4 x f32, state 4, header 8, slot 20, store 32> home @disk cache @dram retained 3 policy "lru" rows 40 bases [0] occurrences 16 unique 16 miss 16 update @segment_update_4_rowwise_adagrad
// CHECK: plan.group @t_b [@b] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @dram rows 9 bases [0] occurrences 8 unique 8 update @segment_update_4_sgd
// CHECK-DAG: plan.kernel @gather_pool_4_sum gather_pool <4 x f32>
// CHECK-DAG: plan.kernel @segment_update_4_sgd segment_update <4 x f32>
// CHECK-NOT: emb.step
// CHECK-LABEL: plan.program @train worker 0 of 1 batch 8 max_ids 24
// CHECK-DAG: %[[IN:.*]] = plan.ring @dram role ingest
// CHECK-DAG: %[[WB:.*]] = plan.ring @dram role writebuf group @t_a
// CHECK-NOT: role probe group @t_b
// CHECK: plan.pipeline carry(%[[STORED:.*]] = 1) {
// CHECK: %[[B:.*]] = plan.ingest features [#plan.feature<name = "fa", table = @a, max_ids = 2, kernel = @gather_pool_4_sum>, #plan.feature<name = "fb", table = @b, kernel = @gather_pool_4_sum>] into %[[IN]]
// CHECK: %[[C:.*]] = plan.check %[[B]] on_bad_id "drop"
// CHECK: %[[T:.*]] = plan.translate %[[C]] in [@b]
// CHECK: %[[UA:.*]], %[[OA:.*]] = plan.unique @t_a %[[T]] features ["fa"] max 16 unique 16
// CHECK: %[[UB:.*]], %[[OB:.*]] = plan.unique @t_b %[[T]] features ["fb"] max 8 unique 8
// CHECK: %[[PINS:.*]], %[[MISS:.*]], %[[VICT:.*]] = plan.probe @t_a %[[UA]]
// CHECK: %[[REC:.*]] = plan.spill @t_a %[[VICT]] into %[[WB]]
// CHECK: %[[PUT:.*]] = plan.store @t_a %[[REC]] after(%[[STORED]])
// CHECK: %[[GOT:.*]] = plan.fetch @t_a %[[MISS]] into %{{.*}} after(%[[STORED]])
// CHECK: %[[ROWS:.*]] = plan.fill @t_a %[[PINS]] from %[[GOT]]
// CHECK: %[[PA:.*]] = plan.gather_pool @t_a rows %[[ROWS]][%[[OA]]] with @gather_pool_4_sum
// CHECK: %[[PB:.*]] = plan.gather_pool @t_b[%[[OB]]] with @gather_pool_4_sum
// CHECK: %[[G:.*]]:2 = plan.call @fm(%[[B]], %[[PA]], %[[PB]])
// CHECK: %[[H:.*]] = plan.handoff(%[[G]]#0)
// CHECK: %[[GO:.*]] = plan.resume after(%[[H]])
// CHECK: %[[KA:.*]] = plan.preserve @t_a rows %[[ROWS]][%[[OA]]] after(%[[GO]])
// CHECK: %[[DONE:.*]] = plan.segment_update @t_a rows %[[ROWS]][%[[OA]]] with @segment_update_4_rowwise_adagrad features ["fa"] grads(%[[G]]#0) after(%[[KA]])
// CHECK: %[[KB:.*]] = plan.preserve @t_b[%[[OB]]] after(%[[GO]])
// CHECK: plan.segment_update @t_b[%[[OB]]] with @segment_update_4_sgd features ["fb"] grads(%[[G]]#1) after(%[[KB]])
// CHECK: plan.unpin @t_a %[[ROWS]] after(%[[DONE]])
// CHECK: plan.yield %[[PUT]]
!raw2 = !emb.bags<8, max 16 x i64, raw>
!ids2 = !emb.bags<8, max 16 x i64, checked>
!raw1 = !emb.bags<8, max 8 x i64, raw>
!ids1 = !emb.bags<8, max 8 x i64, checked>
!a = !emb.state<[40, 4], #emb.row<f32>>
!b = !emb.state<[9, 4], #emb.row<f32>>
emb.tier @dram dram bytes 1000000
emb.tier @disk nvme bytes 1000000 path "x.store"
emb.table @a : !a ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 1.0e-8> init #emb.constant<0.0> placement #emb.placement<home = @disk, cache = @dram, retained = 3, policy = "lru">
emb.table @b : !b ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @dram>
emb.step @train batch 8 max_ids 24 worker 0 of 1 {
  %s = emb.scalar "lr_scale" : f32
  %n = emb.samples : index
  %y = emb.feature "label" : tensor<8xf32>
  %r0 = emb.feature "fa" index 0 max_per_bag 2 : !raw2
  %r1 = emb.feature "fb" index 1 : !raw1
  %c0, %c1 = emb.check %r0, %r1 in [@a, @b] on_bad_id "drop" : !raw2, !raw1 -> !ids2, !ids1
  %t1 = emb.translate %c1 in @b : !ids1
  %sa = emb.state @a : !a
  %sb = emb.state @b : !b
  %p0 = emb.lookup sum %sa[%c0] : !a, !ids2 -> tensor<8x4xf32>
  %p1 = emb.lookup sum %sb[%t1] : !b, !ids1 -> tensor<8x4xf32>
  %g:2 = emb.dense @fm(%n, %p0, %p1, %y) : (index, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %ua = emb.update %sa scale %s pool [sum] bags [%c0] grads(%g#0) : !a, f32, [!ids2], (tensor<8x4xf32>)
  %ub = emb.update %sb scale %s pool [sum] bags [%t1] grads(%g#1) : !b, f32, [!ids1], (tensor<8x4xf32>)
  emb.commit [@a, @b] (%ua, %ub) : !a, !b
}
emb.step @eval batch 8 max_ids 24 worker 0 of 1 {
  %r0 = emb.feature "fa" index 0 max_per_bag 2 : !raw2
}

// -----

// Deduplicated bags: pooled once, expanded by the inverse, and the update takes the gradients of samples by it. Without a
// head the trainer gets the outputs and gives the gradients.

// CHECK-LABEL: plan.program @train
// CHECK: %[[U:.*]], %[[INV:.*]] = plan.dedup %[[IDS:.*]] ["fa"] names ["d"]
// CHECK: plan.unique @t_a %[[U]], %[[INV]] features ["fa"]
// CHECK: %[[P:.*]] = plan.gather_pool @t_a
// CHECK: %[[E:.*]] = plan.expand %[[P]] by %[[INV]] features ["fa"]
// CHECK-NOT: plan.call
// CHECK: %[[H:.*]] = plan.handoff(%[[E]])
// CHECK: %[[GO:.*]], %[[G:.*]] = plan.resume into %{{.*}} after(%[[H]])
// CHECK: %[[KEPT:.*]] = plan.preserve @t_a{{.*}} after(%[[GO]])
// CHECK: plan.segment_update @t_a{{.*}} grads(%[[G]] by %[[INV]]) after(%[[KEPT]])
!raw2 = !emb.bags<8, max 16 x i64, raw>
!ids2 = !emb.bags<8, max 16 x i64, checked>
!uniq = !emb.bags<?, max 16 x i64, checked>
!a = !emb.state<[40, 4], #emb.row<f32>>
emb.tier @dram dram bytes 1000000
emb.table @a : !a ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @dram>
emb.step @train batch 8 max_ids 16 worker 0 of 1 {
  %s = emb.scalar "lr_scale" : f32
  %n = emb.samples : index
  %r0 = emb.feature "fa" index 0 max_per_bag 2 dedup "d" : !raw2
  %c0 = emb.check %r0 in [@a] on_bad_id "error" : !raw2 -> !ids2
  %d0, %inv = emb.dedup group "d" %c0 : !ids2 -> !uniq, !emb.inverse<8>
  %sa = emb.state @a : !a
  %u0 = emb.lookup sum %sa[%d0] : !a, !uniq -> tensor<?x4xf32>
  %p0 = emb.expand %u0 by %inv : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %p0) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %ua = emb.update %sa scale %s pool [sum] bags [%d0 by %inv] grads(%g) : !a, f32, [!uniq], (tensor<8x4xf32>)
  emb.commit [@a] (%ua) : !a
}

// -----

// Rows of 2-byte weights: 3 of them, two bytes of padding, then the state in f32.
// CHECK-DAG: plan.group @t_a [@a] #plan.record<3 x bf16, state 4, header 8, slot 12, store 32>
// CHECK-DAG: plan.kernel @gather_pool_3_bf16_sum gather_pool <3 x bf16>
// CHECK-DAG: plan.kernel @segment_update_3_bf16_rowwise_adagrad_decoupled_clip_stochastic segment_update <3 x bf16, rowwise_adagrad, decoupled, clip, stochastic>
!raw3 = !emb.bags<8, max 8 x i64, raw>
!ids3 = !emb.bags<8, max 8 x i64, checked>
!a3 = !emb.state<[40, 3], #emb.row<bf16, stochastic>>
emb.tier @dram dram bytes 1000000
emb.table @a : !a3 ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 0.0, decoupled_decay = 0.5, clip_norm = 1.0> init #emb.constant<0.0> placement #emb.placement<home = @dram>
emb.step @train batch 8 max_ids 8 worker 0 of 1 {
  %s = emb.scalar "lr_scale" : f32
  %n = emb.samples : index
  %r0 = emb.feature "fa" index 0 : !raw3
  %c0 = emb.check %r0 in [@a] on_bad_id "error" : !raw3 -> !ids3
  %sa = emb.state @a : !a3
  %p0 = emb.lookup sum %sa[%c0] : !a3, !ids3 -> tensor<8x3xf32>
  %g = emb.dense @caller(%n, %p0) : (index, tensor<8x3xf32>) -> tensor<8x3xf32>
  %ua = emb.update %sa scale %s pool [sum] bags [%c0] grads(%g) : !a3, f32, [!ids3], (tensor<8x3xf32>)
  emb.commit [@a] (%ua) : !a3
}

// -----

// A model that serves: rows come in and are never stored, so that there is no spill, no store, no update, and no ring of what
// they would write; the head's predictions need one. The slots hold quantised rows without optimizer state.

// CHECK: plan.group @t_a [@a] #plan.record<5 x i4, state 0, header 8, slot 8, store 16> home @disk cache @dram retained 3 policy "lru" rows 40 bases [0] occurrences 8 unique 8 miss 8{{$}}
// CHECK: plan.kernel @gather_pool_5_i4_sum gather_pool <5 x i4>
// CHECK-NOT: preserve
// CHECK-NOT: segment_update
// CHECK-LABEL: plan.program @serve worker 0 of 1 batch 8 max_ids 8
// CHECK-NOT: role writebuf
// CHECK: role grads
// CHECK: plan.pipeline {
// CHECK: %[[PINS:.*]], %[[MISS:.*]], %{{.*}} = plan.probe @t_a
// CHECK-NEXT: %[[GOT:.*]] = plan.fetch @t_a %[[MISS]]
// CHECK-NEXT: %[[ROWS:.*]] = plan.fill @t_a %[[PINS]] from %[[GOT]]
// CHECK-NEXT: %[[P:.*]] = plan.gather_pool @t_a rows %[[ROWS]]
// CHECK-NEXT: %[[Y:.*]] = plan.call @fm(%{{.*}}, %[[P]])
// CHECK-NEXT: %[[H:.*]] = plan.handoff(%[[Y]])
// CHECK-NEXT: %[[GO:.*]] = plan.resume after(%[[H]])
// CHECK-NEXT: plan.unpin @t_a %[[ROWS]] after(%[[GO]])
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!a = !emb.state<[40, 5], #emb.row<i4, scale f16, bias f16>>
emb.tier @dram dram bytes 1000000
emb.tier @disk nvme bytes 1000000 path "x.store"
emb.table @a : !a ids index optimizer #emb.sgd<lr = 0.0> init #emb.constant<0.0> placement #emb.placement<home = @disk, cache = @dram, retained = 3, policy = "lru">
emb.step @serve batch 8 max_ids 8 worker 0 of 1 {
  %n = emb.samples : index
  %y = emb.feature "label" : tensor<8xf32>
  %r0 = emb.feature "fa" index 0 : !raw
  %c0 = emb.check %r0 in [@a] on_bad_id "error" : !raw -> !ids
  %sa = emb.state @a : !a
  %p0 = emb.lookup sum %sa[%c0] : !a, !ids -> tensor<8x5xf32>
  %p = emb.dense @fm(%n, %p0, %y) : (index, tensor<8x5xf32>, tensor<8xf32>) -> tensor<8xf32>
}
