// Each rule of a whole step, broken once.
// RUN: terrace-opt %s --split-input-file --verify-diagnostics
// expected-error @below {{batch must be at least 1, not 0}}
emb.step @s batch 0 max_ids 8 worker 0 of 1 {
}
// -----
// expected-error @below {{max_ids must be at least 1, not 0}}
emb.step @s batch 8 max_ids 0 worker 0 of 1 {
}
// -----
// expected-error @below {{worker 1 is not one of 1}}
emb.step @s batch 8 max_ids 8 worker 1 of 1 {
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-error @below {{feature "a" is read twice}}
  %b = emb.feature "a" : !raw
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-note @below {{the first is here}}
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  // expected-error @below {{a step gives one verdict over all its ids: a second emb.check}}
  %d = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  %u = emb.update %t scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
  emb.commit [@t] (%u) : !t
  // expected-error @below {{a step commits once, and all at once}}
  emb.commit [@t] (%u) : !t
}
// -----
// One row, one optimizer step, however many features share the table.
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  // expected-note @below {{the first is here}}
  %u = emb.update %t scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
  // expected-error @below {{a second update of @t: every row meets its optimizer once a step}}
  %v = emb.update %t scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
  emb.commit [@t] (%u) : !t
}
// -----
// No look-up can see this step's update.
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  // expected-note @below {{the update is here}}
  %u = emb.update %t scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
  // expected-error @below {{reads a state after its update; within a step only emb.commit may}}
  %q = emb.lookup sum %u[%c] : !t, !ids -> tensor<8x4xf32>
  emb.commit [@t] (%u) : !t
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  // expected-error @below {{is not committed: the step would lose it}}
  %u = emb.update %t scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
}
// -----
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %t = emb.state @t : !t
  // expected-error @below {{commits a state that has no update: @t}}
  emb.commit [@t] (%t) : !t
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
module attributes {emb.on_bad_id = "drop"} {
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-error @below {{on_bad_id is "error", but the module's is "drop"}}
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
}
}
// -----
// A step sees nothing but its symbols.
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// expected-error @below {{expects parent op 'emb.step'}}
%t = emb.state @t : !t
