// Rewrites that hold bit for bit.
// RUN: terrace-opt %s --canonicalize --split-input-file | FileCheck %s
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 2], #emb.row<f32>>
emb.table @index : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.table @hash : !t ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// The translation of an `index` table is the identity; that of a `hash` table stays.
// CHECK-LABEL: emb.step @translate
emb.step @translate batch 8 max_ids 16 worker 0 of 1 {
  %n = emb.samples : index
  %a = emb.feature "a" : !raw
  %b = emb.feature "b" : !raw
  // CHECK: %[[C0:.*]], %[[C1:.*]] = emb.check
  %ca, %cb = emb.check %a, %b in [@index, @hash] on_bad_id "error" : !raw, !raw -> !ids, !ids
  // CHECK-NOT: emb.translate {{.*}} in @index
  %ra = emb.translate %ca in @index : !ids
  // CHECK: %[[R:.*]] = emb.translate %[[C1]] in @hash
  %rb = emb.translate %cb in @hash : !ids
  %si = emb.state @index : !t
  %sh = emb.state @hash : !t
  // CHECK: emb.lookup sum %{{.*}}[%[[C0]]]
  %pa = emb.lookup sum %si[%ra] : !t, !ids -> tensor<8x2xf32>
  // CHECK: emb.lookup sum %{{.*}}[%[[R]]]
  %pb = emb.lookup sum %sh[%rb] : !t, !ids -> tensor<8x2xf32>
  // The head is outside: it stays, also without results.
  // CHECK: emb.dense @caller({{.*}}) : ({{.*}}) -> ()
  emb.dense @caller(%n, %pa, %pb) : (index, tensor<8x2xf32>, tensor<8x2xf32>) -> ()
  %ga, %gb = emb.dense @caller(%n, %pa, %pb) : (index, tensor<8x2xf32>, tensor<8x2xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>)
  %s = emb.scalar "lr_scale" : f32
  %i1 = emb.update %si scale %s pool [sum] bags [%ra] grads(%ga) : !t, f32, [!ids], (tensor<8x2xf32>)
  %h1 = emb.update %sh scale %s pool [sum] bags [%rb] grads(%gb) : !t, f32, [!ids], (tensor<8x2xf32>)
  emb.commit [@index, @hash] (%i1, %h1) : !t, !t
}

// -----

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
!t = !emb.state<[10, 2], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// Bags that nobody reads leave a dedup; what stays is used as before.
// CHECK-LABEL: emb.step @dedup
emb.step @dedup batch 8 max_ids 16 worker 0 of 1 {
  %n = emb.samples : index
  %s = emb.scalar "lr_scale" : f32
  %a = emb.feature "a" : !raw
  %b = emb.feature "b" : !raw
  // CHECK: %[[C0:.*]], %[[C1:.*]] = emb.check
  %ca, %cb = emb.check %a, %b in [@t, @t] on_bad_id "error" : !raw, !raw -> !ids, !ids
  // CHECK: %[[U:.*]], %[[I:.*]] = emb.dedup group "g" %[[C1]] :
  %ua, %ub, %inv = emb.dedup group "g" %ca, %cb : !ids, !ids -> !uniq, !uniq, !emb.inverse<8>
  %t0 = emb.state @t : !t
  // CHECK: emb.lookup sum %{{.*}}[%[[U]]]
  %p = emb.lookup sum %t0[%ub] : !t, !uniq -> tensor<?x2xf32>
  // CHECK: emb.expand %{{.*}} by %[[I]]
  %e = emb.expand %p by %inv : tensor<?x2xf32>, !emb.inverse<8> -> tensor<8x2xf32>
  %g = emb.dense @caller(%n, %e) : (index, tensor<8x2xf32>) -> tensor<8x2xf32>
  %t1 = emb.update %t0 scale %s pool [sum] bags [%ub by %inv] grads(%g) : !t, f32, [!uniq], (tensor<8x2xf32>)
  emb.commit [@t] (%t1) : !t
}
