// What a plan cannot express or run is refused where it stands.
// RUN: terrace-opt %s --split-input-file --emb-to-plan --verify-diagnostics

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!a = !emb.state<[40, 4], #emb.row<f32>>
emb.tier @dram dram bytes 1000000
emb.tier @disk nvme bytes 1000000 path "x.store"
// expected-error @below {{table 'a' has no home; run emb-place first}}
emb.table @a : !a ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @train batch 8 max_ids 8 worker 0 of 1 {
  %s = emb.scalar "lr_scale" : f32
  %n = emb.samples : index
  %y = emb.feature "label" : tensor<8xf32>
  %r0 = emb.feature "fa" index 0 : !raw
  %c0 = emb.check %r0 in [@a] on_bad_id "error" : !raw -> !ids
  %sa = emb.state @a : !a
  %p0 = emb.lookup sum %sa[%c0] : !a, !ids -> tensor<8x4xf32>
  %g = emb.dense @fm(%n, %p0, %y) : (index, tensor<8x4xf32>, tensor<8xf32>) -> tensor<8x4xf32>
  %ua = emb.update %sa scale %s pool [sum] bags [%c0] grads(%g) : !a, f32, [!ids], (tensor<8x4xf32>)
  emb.commit [@a] (%ua) : !a
}

// -----

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!a = !emb.state<[40, 4], #emb.row<i8, scale f16>>
emb.tier @dram dram bytes 1000000
emb.tier @disk nvme bytes 1000000 path "x.store"
// expected-error @below {{table 'a' stores rows as 'i8', which are for serving only: a step that trains needs f32, f16 or bf16}}
emb.table @a : !a ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @dram>
emb.step @train batch 8 max_ids 8 worker 0 of 1 {
  %s = emb.scalar "lr_scale" : f32
  %n = emb.samples : index
  %y = emb.feature "label" : tensor<8xf32>
  %r0 = emb.feature "fa" index 0 : !raw
  %c0 = emb.check %r0 in [@a] on_bad_id "error" : !raw -> !ids
  %sa = emb.state @a : !a
  %p0 = emb.lookup sum %sa[%c0] : !a, !ids -> tensor<8x4xf32>
  %g = emb.dense @fm(%n, %p0, %y) : (index, tensor<8x4xf32>, tensor<8xf32>) -> tensor<8x4xf32>
  %ua = emb.update %sa scale %s pool [sum] bags [%c0] grads(%g) : !a, f32, [!ids], (tensor<8x4xf32>)
  emb.commit [@a] (%ua) : !a
}

// -----

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!a = !emb.state<[40, 4], #emb.row<f32>>
emb.tier @dram dram bytes 1000000
emb.tier @disk nvme bytes 1000000 path "x.store"
// expected-error @below {{table 'a' has dynamic ids, which have no runtime yet; use index or hash}}
emb.table @a : !a ids dynamic optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @dram>
emb.step @train batch 8 max_ids 8 worker 0 of 1 {
  %s = emb.scalar "lr_scale" : f32
  %n = emb.samples : index
  %y = emb.feature "label" : tensor<8xf32>
  %r0 = emb.feature "fa" index 0 : !raw
  %c0 = emb.check %r0 in [@a] on_bad_id "error" : !raw -> !ids
  %t0 = emb.translate %c0 in @a : !ids
  %sa = emb.state @a : !a
  %p0 = emb.lookup sum %sa[%t0] : !a, !ids -> tensor<8x4xf32>
  %g = emb.dense @fm(%n, %p0, %y) : (index, tensor<8x4xf32>, tensor<8xf32>) -> tensor<8x4xf32>
  %ua = emb.update %sa scale %s pool [sum] bags [%t0] grads(%g) : !a, f32, [!ids], (tensor<8x4xf32>)
  emb.commit [@a] (%ua) : !a
}

// -----

!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!a = !emb.state<[40, 4], #emb.row<f32>>
emb.tier @dram dram bytes 1000000
emb.tier @disk nvme bytes 1000000 path "x.store"
emb.table @a : !a ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @dram>
// expected-error @below {{worker 0 of 2: a step of several workers needs the distributed exchange}}
emb.step @train batch 8 max_ids 8 worker 0 of 2 {
  %s = emb.scalar "lr_scale" : f32
  %n = emb.samples : index
  %y = emb.feature "label" : tensor<8xf32>
  %r0 = emb.feature "fa" index 0 : !raw
  %c0 = emb.check %r0 in [@a] on_bad_id "error" : !raw -> !ids
  %sa = emb.state @a : !a
  %p0 = emb.lookup sum %sa[%c0] : !a, !ids -> tensor<8x4xf32>
  %g = emb.dense @fm(%n, %p0, %y) : (index, tensor<8x4xf32>, tensor<8xf32>) -> tensor<8x4xf32>
  %ua = emb.update %sa scale %s pool [sum] bags [%c0] grads(%g) : !a, f32, [!ids], (tensor<8x4xf32>)
  emb.commit [@a] (%ua) : !a
}

// -----

// expected-error @below {{has no step; a plan program needs one}}
module {}
