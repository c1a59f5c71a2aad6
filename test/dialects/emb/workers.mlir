// Two workers' programs meet in the same channels in the same order.
// RUN: terrace-opt %s --verify-roundtrip | FileCheck %s
!raw = !emb.bags<4, max 8 x i64, raw>
!part = !emb.bags<4, max 8 x i64, checked>
!whole = !emb.bags<8, max 16 x i64, checked>
!t = !emb.state<[10, 2], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// CHECK: emb.channel @ids to_owner items ["a"] owners [1] workers 2
emb.channel @ids to_owner items ["a"] owners [1] workers 2
// CHECK: emb.channel @out from_owner items ["a"] owners [1] workers 2
emb.channel @out from_owner items ["a"] owners [1] workers 2
// CHECK: emb.step @w0 batch 8 max_ids 16 worker 0 of 2
emb.step @w0 batch 8 max_ids 16 worker 0 of 2 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !part
  // CHECK: emb.exchange @ids(%{{.*}}) : (!ids_4_max8) -> ()
  emb.exchange @ids(%c) : (!part) -> ()
  // CHECK: emb.exchange @out() : () -> tensor<4x2xf32>
  %p = emb.exchange @out() : () -> tensor<4x2xf32>
}
emb.step @w1 batch 8 max_ids 16 worker 1 of 2 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !part
  %all = emb.exchange @ids(%c) : (!part) -> !whole
  %s = emb.state @t : !t
  %p = emb.lookup sum %s[%all] : !t, !whole -> tensor<8x2xf32>
  %mine = emb.exchange @out(%p) : (tensor<8x2xf32>) -> tensor<4x2xf32>
}
