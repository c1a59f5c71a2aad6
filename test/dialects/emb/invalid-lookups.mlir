// Each rule of look-ups and of the head, broken once.
// RUN: terrace-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{@x is not an emb.table}}
  %t = emb.state @x : !t
}
// -----
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{is '!emb.state<[10, 5], #emb.row<f32>>', but table @t is '!emb.state<[10, 4], #emb.row<f32>>'}}
  %t = emb.state @t : !emb.state<[10, 5], #emb.row<f32>>
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %t = emb.state @t : !t
  // expected-error @below {{only checked ids can index a table, but these are}}
  %p = emb.lookup sum %t[%a] : !t, !raw -> tensor<8x4xf32>
}
// -----
!rawW = !emb.bags<8, max 8 x i64, raw, weighted>
!idsW = !emb.bags<8, max 8 x i64, checked, weighted>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" weights "w" : !rawW
  %c = emb.check %a in [@t] on_bad_id "error" : !rawW -> !idsW
  %t = emb.state @t : !t
  // expected-error @below {{pooling max takes no weights}}
  %p, %w = emb.lookup max %t[%c] : !t, !idsW -> tensor<8x4xf32>, tensor<8x4xi32>
}
// -----
!rawW = !emb.bags<8, max 8 x i64, raw, weighted>
!idsW = !emb.bags<8, max 8 x i64, checked, weighted>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" weights "w" : !rawW
  %c = emb.check %a in [@t] on_bad_id "error" : !rawW -> !idsW
  %t = emb.state @t : !t
  // expected-error @below {{pooling none takes no weights}}
  %p = emb.lookup none %t[%c] : !t, !idsW -> tensor<?x4xf32>
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
  // expected-error @below {{are incompatible with return type(s)}}
  // expected-error @below {{failed to infer returned types}}
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x5xf32>
}
// -----
// `max` yields winners too.
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %t = emb.state @t : !t
  // expected-error @below {{are incompatible with return type(s)}}
  // expected-error @below {{failed to infer returned types}}
  %p = emb.lookup max %t[%c] : !t, !ids -> tensor<8x4xf32>
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.table @u : !t ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@u] on_bad_id "error" : !raw -> !ids
  %r = emb.translate %c in @u : !ids
  %t = emb.state @t : !t
  // expected-error @below {{the ids were checked against @u, but index @t}}
  %p = emb.lookup sum %t[%r] : !t, !ids -> tensor<8x4xf32>
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @u : !t ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@u] on_bad_id "error" : !raw -> !ids
  %u = emb.state @u : !t
  // expected-error @below {{ids of @u are of kind hash: they need an emb.translate before they are rows}}
  %p = emb.lookup sum %u[%c] : !t, !ids -> tensor<8x4xf32>
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
  // expected-error @below {{the bags have no weights}}
  %w = emb.grad_weights sum %t[%c] grad %g : !t, !ids, tensor<8x4xf32> -> tensor<?xf32>
}
// -----
!rawW = !emb.bags<8, max 8 x i64, raw, weighted>
!idsW = !emb.bags<8, max 8 x i64, checked, weighted>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" weights "w" : !rawW
  %c = emb.check %a in [@t] on_bad_id "error" : !rawW -> !idsW
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%c] : !t, !idsW -> tensor<8x4xf32>
  // expected-error @below {{pooling max takes no weights}}
  %w = emb.grad_weights max %t[%c] grad %p : !t, !idsW, tensor<8x4xf32> -> tensor<?xf32>
}
// -----
!rawW = !emb.bags<8, max 8 x i64, raw, weighted>
!idsW = !emb.bags<8, max 8 x i64, checked, weighted>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" weights "w" : !rawW
  %c = emb.check %a in [@t] on_bad_id "error" : !rawW -> !idsW
  %t = emb.state @t : !t
  %p = "test.grad"() : () -> tensor<7x4xf32>
  // expected-error @below {{the gradient must be 'tensor<8x4xf32>', not 'tensor<7x4xf32>'}}
  %w = emb.grad_weights sum %t[%c] grad %p : !t, !idsW, tensor<7x4xf32> -> tensor<?xf32>
}
// -----
!rawW = !emb.bags<8, max 8 x i64, raw, weighted>
!idsW = !emb.bags<8, max 8 x i64, checked, weighted>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" weights "w" : !rawW
  %c = emb.check %a in [@t] on_bad_id "error" : !rawW -> !idsW
  %t = emb.state @t : !t
  %p = emb.lookup sum %t[%c] : !t, !idsW -> tensor<8x4xf32>
  // expected-error @below {{the result has one value per id, tensor<?xf32>, not 'tensor<8xf32>'}}
  %w = emb.grad_weights sum %t[%c] grad %p : !t, !idsW, tensor<8x4xf32> -> tensor<8xf32>
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
  // expected-error @below {{head must be @caller, @dlrm, @fm or @logistic, not @mlp}}
  %z = emb.dense @mlp(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8xf32>
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
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  // expected-error @below {{the first operand is the number of samples, an index}}
  %z = emb.dense @fm(%p) : (tensor<8x4xf32>) -> tensor<8xf32>
}
// -----
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %n = emb.samples : index
  // expected-error @below {{needs at least one pooled output}}
  %z = emb.dense @fm(%n) : (index) -> tensor<8xf32>
}
// -----
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %n = emb.samples : index
  %p = "test.out"() : () -> tensor<8x4xi32>
  // expected-error @below {{pooled outputs are rank-2 f32 tensors, not 'tensor<8x4xi32>'}}
  %z = emb.dense @fm(%n, %p) : (index, tensor<8x4xi32>) -> tensor<8xf32>
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
  %p = emb.lookup none %t[%c] : !t, !ids -> tensor<?x4xf32>
  // expected-error @below {{head @fm takes one row per sample, not 'tensor<?x4xf32>'}}
  %z = emb.dense @fm(%n, %p) : (index, tensor<?x4xf32>) -> tensor<8xf32>
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
  %q = "test.out"() : () -> tensor<8x5xf32>
  // expected-error @below {{head @fm takes outputs of one shape, not 'tensor<8x4xf32>' and 'tensor<8x5xf32>'}}
  %z = emb.dense @fm(%n, %p, %q) : (index, tensor<8x4xf32>, tensor<8x5xf32>) -> tensor<8xf32>
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
  %y = emb.feature "y" : tensor<8xf32>
  // expected-error @below {{pooled outputs come first, then f32 columns, not 'tensor<8x4xf32>'}}
  %z = emb.dense @fm(%n, %p, %y, %p) : (index, tensor<8x4xf32>, tensor<8xf32>, tensor<8x4xf32>) -> tensor<8xf32>
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
  %y = emb.feature "y" : tensor<8xf32>
  // expected-error @below {{head @fm takes no dense columns}}
  %z = emb.dense @fm(%n, %p, %y, %y) : (index, tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
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
  // expected-error @below {{head @logistic needs results}}
  emb.dense @logistic(%n, %p) : (index, tensor<8x4xf32>) -> ()
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
  // expected-error @below {{results are gradients, one per pooled output, or one prediction per sample}}
  %z = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8xf32>
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
  // expected-error @below {{gradients of head @fm need a label}}
  %g = emb.dense @fm(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
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
  // expected-error @below {{has 1 pooled outputs but 2 gradients}}
  %g:2 = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
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
  // expected-error @below {{a gradient has the type of its output, 'tensor<8x4xf32>', not 'tensor<8x5xf32>'}}
  %g = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x5xf32>
}
