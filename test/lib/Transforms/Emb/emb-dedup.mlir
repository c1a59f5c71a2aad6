// RUN: terrace-opt %s --split-input-file --emb-dedup | FileCheck %s
// RUN: terrace-opt %s --split-input-file --emb-dedup --remarks-filter=emb-dedup -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: terrace-opt %s --split-input-file --emb-dedup=min-factor=100 | FileCheck %s --check-prefix=HIGH
// HIGH-NOT: emb.dedup

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[100, 16], #emb.row<f32>>

// Under strict the forward pass is shared and the update stays by sample.
// REMARK: remark: [Passed] dedup | Category:emb-dedup | Function=g | MovedBytesPerSample={{[0-9]+}}, Reason="assumed factor; the least that counts is 1.50", Remark="group g: bags of 2 features pooled once per unique bag", SamplesPerUniqueBag=6.40, SavedBytesPerSample={{[0-9]+}}
// CHECK-LABEL: emb.step @strict
module {
  emb.table @a : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.table @b : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @strict batch 8 max_ids 24 worker 0 of 1 {
    %s = emb.scalar "lr_scale" : f32
    %n = emb.samples : index
    %f = emb.feature "f" index 0 dedup "g" : !raw
    %h = emb.feature "h" index 1 : !raw
    %k = emb.feature "k" index 2 dedup "g" : !raw
    // CHECK: %[[C0:.+]], %[[C1:.+]], %[[C2:.+]] = emb.check
    %c:3 = emb.check %f, %h, %k in [@a, @a, @b] on_bad_id "error" : !raw, !raw, !raw -> !ids, !ids, !ids
    // CHECK: %[[U0:.+]], %[[U1:.+]], %[[INV:.+]] = emb.dedup group "g" %[[C0]], %[[C2]]
    %sa = emb.state @a : !t
    %sb = emb.state @b : !t
    // CHECK: %[[P:.+]] = emb.lookup sum %{{.+}}[%[[U0]]] : {{.+}} -> tensor<?x16xf32>
    // CHECK: %[[E:.+]] = emb.expand %[[P]] by %[[INV]] : {{.+}} -> tensor<8x16xf32>
    %p = emb.lookup sum %sa[%c#0] : !t, !ids -> tensor<8x16xf32>
    // A feature without a group is left alone.
    // CHECK: %[[Q:.+]] = emb.lookup mean %{{.+}}[%[[C1]]]
    %q = emb.lookup mean %sa[%c#1] : !t, !ids -> tensor<8x16xf32>
    // CHECK: %[[R:.+]], %[[W:.+]] = emb.lookup max %{{.+}}[%[[U1]]]
    // CHECK: %[[ER:.+]] = emb.expand %[[R]] by %[[INV]]
    %r, %w = emb.lookup max %sb[%c#2] : !t, !ids -> tensor<8x16xf32>, tensor<8x16xi32>
    // CHECK: %[[G:.+]]:3 = emb.dense @caller(%{{.+}}, %[[E]], %[[Q]], %[[ER]])
    %g:3 = emb.dense @caller(%n, %p, %q, %r) : (index, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
    // CHECK: emb.update {{.+}} pool [sum, mean] bags [%[[U0]] by %[[INV]], %[[C1]]] grads(%[[G]]#0, %[[G]]#1)
    %ua = emb.update %sa scale %s pool [sum, mean] bags [%c#0, %c#1] grads(%g#0, %g#1) : !t, f32, [!ids, !ids], (tensor<8x16xf32>, tensor<8x16xf32>)
    // Winners stand per unique bag.
    // CHECK: emb.update {{.+}} pool [max] bags [%[[U1]] by %[[INV]]] grads(%[[G]]#2) winners(%[[W]])
    %ub = emb.update %sb scale %s pool [max] bags [%c#2] grads(%g#2) winners(%w) : !t, f32, [!ids], (tensor<8x16xf32>), (tensor<8x16xi32>)
    emb.commit [@a, @b](%ua, %ub) : !t, !t
  }
}

// -----

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[100, 16], #emb.row<f32>>

// Under reassociate the gradients of a unique bag are added first.
// CHECK-LABEL: emb.step @reassociate
module attributes {emb.numerics = "reassociate"} {
  emb.table @a : !t ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @reassociate batch 8 max_ids 8 worker 0 of 1 {
    %s = emb.scalar "lr_scale" : f32
    %n = emb.samples : index
    %f = emb.feature "f" index 0 dedup "g" : !raw
    %c = emb.check %f in [@a] on_bad_id "error" : !raw -> !ids
    // CHECK: %[[R:.+]] = emb.translate
    // CHECK: %[[U:.+]], %[[INV:.+]] = emb.dedup group "g" %[[R]]
    %r = emb.translate %c in @a : !ids
    %sa = emb.state @a : !t
    %p = emb.lookup sum %sa[%r] : !t, !ids -> tensor<8x16xf32>
    // CHECK: %[[G:.+]] = emb.dense
    %g = emb.dense @caller(%n, %p) : (index, tensor<8x16xf32>) -> tensor<8x16xf32>
    // CHECK: %[[RED:.+]] = emb.reduce %[[G]] by %[[INV]] : {{.+}} -> tensor<?x16xf32>
    // CHECK: emb.update {{.+}} bags [%[[U]]] grads(%[[RED]])
    %ua = emb.update %sa scale %s pool [sum] bags [%r] grads(%g) : !t, f32, [!ids], (tensor<8x16xf32>)
    emb.commit [@a](%ua) : !t
  }
}

// -----

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[100, 16], #emb.row<f32>>

// Bags that were measured to differ stay as they are.
// REMARK: remark: [Missed] dedup | Category:emb-dedup | Function=g | {{.+}}Reason="measured factor; {{.+}}SamplesPerUniqueBag=1.14
// CHECK-LABEL: emb.step @differ
// CHECK-NOT: emb.dedup
// CHECK-NOT: emb.expand
module {
  emb.table @a : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @differ batch 8 max_ids 8 worker 0 of 1 {
    %n = emb.samples : index
    %f = emb.feature "f" index 0 dedup "g" profile(#emb.profile<batches = 10, batch = 8, ids = 8.0, unique_bags = 7.0>) : !raw
    %c = emb.check %f in [@a] on_bad_id "error" : !raw -> !ids
    %sa = emb.state @a : !t
    %p = emb.lookup sum %sa[%c] : !t, !ids -> tensor<8x16xf32>
    emb.dense @caller(%n, %p) : (index, tensor<8x16xf32>) -> ()
  }
}

// -----

!raw = !emb.bags<8, max 32 x i64, raw>
!ids = !emb.bags<8, max 32 x i64, checked>
!t = !emb.state<[100, 16], #emb.row<f32>>

// Pooling none: rows stand per id, so the expansion names the bags.
// CHECK-LABEL: emb.step @none
module {
  emb.table @a : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @none batch 8 max_ids 32 worker 0 of 1 {
    %s = emb.scalar "lr_scale" : f32
    %n = emb.samples : index
    %f = emb.feature "f" index 0 max_per_bag 4 dedup "g" profile(#emb.profile<batches = 10, batch = 8, unique_bags = 1.0>) : !raw
    %c = emb.check %f in [@a] on_bad_id "error" : !raw -> !ids
    // CHECK: %[[U:.+]], %[[INV:.+]] = emb.dedup
    %sa = emb.state @a : !t
    // CHECK: emb.expand %{{.+}} by %[[INV]] of %[[U]]
    %p = emb.lookup none %sa[%c] : !t, !ids -> tensor<?x16xf32>
    %g = emb.dense @caller(%n, %p) : (index, tensor<?x16xf32>) -> tensor<?x16xf32>
    // CHECK: emb.update {{.+}} pool [none] bags [%[[U]] by %[[INV]]]
    %ua = emb.update %sa scale %s pool [none] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<?x16xf32>)
    emb.commit [@a](%ua) : !t
  }
}
