// Each rule of updates and commits, broken once.
// RUN: terrace-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%d] : !t, !uniq -> tensor<?x4xf32>
  %e = emb.expand %p by %i : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %e) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  // expected-error @below {{re-associates a sum, which emb.numerics = "strict" (the default) does not allow}}
  %r = emb.reduce %g by %i : tensor<8x4xf32>, !emb.inverse<8> -> tensor<?x4xf32>
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
module attributes {emb.numerics = "reassociate"} {
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%d] : !t, !uniq -> tensor<?x4xf32>
  %e = emb.expand %p by %i : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %e) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  // expected-error @below {{the gradient has 'tensor<?x4xf32>', but the inverse has 8 samples}}
  %r = emb.reduce %p by %i : tensor<?x4xf32>, !emb.inverse<8> -> tensor<?x4xf32>
}
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
module attributes {emb.numerics = "reassociate"} {
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%d] : !t, !uniq -> tensor<?x4xf32>
  %e = emb.expand %p by %i : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %e) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  // expected-error @below {{result must be 'tensor<?x4xf32>', not 'tensor<8x4xf32>'}}
  %r = emb.reduce %g by %i : tensor<8x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
}
}
// -----
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %t = emb.state @t : !t
  %s = emb.scalar "lr_scale" : f32
  // expected-error @below {{needs at least one feature}}
  %u = "emb.update"(%t, %s) <{inverse_index = array<i32>, pool = [], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>}> : (!t, f32) -> !t
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
  // expected-error @below {{has 1 bags, 2 poolings and 1 gradients}}
  %u = emb.update %t scale %s pool [sum, sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
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
  // expected-error @below {{has 1 bags, 1 poolings and 2 gradients}}
  %u = emb.update %t scale %s pool [sum] bags [%c] grads(%g, %g) : !t, f32, [!ids], (tensor<8x4xf32>, tensor<8x4xf32>)
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
  // expected-error @below {{inverses must be named once each, in order}}
  %u = "emb.update"(%t, %s, %c, %g) <{inverse_index = array<i32: 3>, pool = [#emb<pooling sum>], operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>}> : (!t, f32, !ids, tensor<8x4xf32>) -> !t
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
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
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  // expected-error @below {{has 1 inverses, but uses 0}}
  %u = "emb.update"(%t, %s, %c, %i, %g) <{inverse_index = array<i32: -1>, pool = [#emb<pooling sum>], operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}> : (!t, f32, !ids, !emb.inverse<8>, tensor<8x4xf32>) -> !t
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
  // expected-error @below {{has 1 features pooled by max, but 0 winners}}
  %u = emb.update %t scale %s pool [max] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
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
  // expected-error @below {{only checked ids can index a table}}
  %u = emb.update %t scale %s pool [sum] bags [%a] grads(%g) : !t, f32, [!raw], (tensor<8x4xf32>)
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
  %s = emb.scalar "lr_scale" : f32
  %g = "test.grad"() : () -> tensor<?x4xf32>
  // expected-error @below {{pooling none takes no weights}}
  %u = emb.update %t scale %s pool [none] bags [%c] grads(%g) : !t, f32, [!idsW], (tensor<?x4xf32>)
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
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
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  // expected-error @below {{`by` takes unique bags, not}}
  %u = emb.update %t scale %s pool [sum] bags [%c by %i] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  // expected-note @below {{the bags are from here}}
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%d] : !t, !uniq -> tensor<?x4xf32>
  %e = emb.expand %p by %i : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %e) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  // expected-note @below {{the inverse is from here}}
  %x, %j = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  // expected-error @below {{bags and inverse come from different dedups}}
  %u = emb.update %t scale %s pool [sum] bags [%d by %j] grads(%g) : !t, f32, [!uniq], (tensor<8x4xf32>)
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
  %h = "test.grad"() : () -> tensor<8x5xf32>
  // expected-error @below {{gradient #0 must be 'tensor<8x4xf32>', not 'tensor<8x5xf32>'}}
  %u = emb.update %t scale %s pool [sum] bags [%c] grads(%h) : !t, f32, [!ids], (tensor<8x5xf32>)
}
// -----
// Unique bags without an inverse take the gradients that emb.reduce made.
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%d] : !t, !uniq -> tensor<?x4xf32>
  %e = emb.expand %p by %i : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %e) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  // expected-error @below {{gradient #0 must be 'tensor<?x4xf32>', not 'tensor<8x4xf32>'}}
  %u = emb.update %t scale %s pool [sum] bags [%d] grads(%g) : !t, f32, [!uniq], (tensor<8x4xf32>)
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
  %w = "test.winners"() : () -> tensor<8x5xi32>
  // expected-error @below {{winners of bags #0 must be 'tensor<8x4xi32>', not 'tensor<8x5xi32>'}}
  %u = emb.update %t scale %s pool [max] bags [%c] grads(%g) winners(%w) : !t, f32, [!ids], (tensor<8x4xf32>), (tensor<8x5xi32>)
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.table @u : !t ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %v = emb.state @u : !t
  %s = emb.scalar "lr_scale" : f32
  // expected-error @below {{the ids were checked against @t, but index @u}}
  %u = emb.update %v scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
  emb.commit [@u] (%u) : !t
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.table @u : !t ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  %u = emb.update %t scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
  // expected-error @below {{has 2 tables but 1 states}}
  emb.commit [@t, @u] (%u) : !t
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.table @u : !t ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %t = emb.state @t : !t
  %n = emb.samples : index
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  %g = emb.dense @caller(%n, %p) : (index, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = emb.scalar "lr_scale" : f32
  %u = emb.update %t scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
  // expected-error @below {{the state committed to @u is one of @t}}
  emb.commit [@u] (%u) : !t
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
  // expected-error @below {{commits @t twice}}
  emb.commit [@t, @t] (%u, %u) : !t, !t
}
// -----
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %u = "test.state"() : () -> !t
  %s = emb.scalar "lr_scale" : f32
  %g = "test.g"() : () -> tensor<8x4xf32>
  %c = "test.c"() : () -> !ids
  %v = emb.update %u scale %s pool [sum] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
  // expected-error @below {{@x is not an emb.table}}
  emb.commit [@x] (%v) : !t
}
// -----
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %u = "test.state"() : () -> !emb.state<[10, 5], #emb.row<f32>>
  %s = emb.scalar "lr_scale" : f32
  %g = "test.g"() : () -> tensor<8x5xf32>
  %c = "test.c"() : () -> !ids
  %v = emb.update %u scale %s pool [sum] bags [%c] grads(%g) : !emb.state<[10, 5], #emb.row<f32>>, f32, [!ids], (tensor<8x5xf32>)
  // expected-error @below {{the state of @t is '!emb.state<[10, 4], #emb.row<f32>>', not '!emb.state<[10, 5], #emb.row<f32>>'}}
  emb.commit [@t] (%v) : !emb.state<[10, 5], #emb.row<f32>>
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
  // expected-error @below {{'average' is not a pooling}}
  %u = emb.update %t scale %s pool [average] bags [%c] grads(%g) : !t, f32, [!ids], (tensor<8x4xf32>)
}
