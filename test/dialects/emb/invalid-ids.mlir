// Each rule of inputs and ids, broken once.
// RUN: terrace-opt %s --split-input-file --verify-diagnostics
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{scalar must be "lr_scale" or "grad_scale", not "lr"}}
  %s = emb.scalar "lr" : f32
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{needs a name}}
  %a = emb.feature "" : !raw
}
// -----
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  // expected-error @below {{feature "a" has the batch bound 7, but the step's is 8 and a worker's share 4}}
  %a = emb.feature "a" : tensor<7xf32>
}
// -----
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{feature "a" has the batch bound 4, but the step's is 8}}
  %a = emb.feature "a" : tensor<4xf32>
}
// -----
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{a dense column has rank 1, not 'tensor<8x1xf32>'}}
  %a = emb.feature "a" : tensor<8x1xf32>
}
// -----
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{a dense column takes no attributes of bags}}
  %a = emb.feature "a" weights "w" : tensor<8xf32>
}
// -----
!ids = !emb.bags<8, max 8 x i64, checked>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{ids from outside are raw, not '!emb.bags<8, max 8 x i64, checked>'}}
  %a = emb.feature "a" : !ids
}
// -----
!rawW = !emb.bags<8, max 8 x i64, raw, weighted>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{needs `weights` exactly where its bags are weighted}}
  %a = emb.feature "a" : !rawW
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{needs `weights` exactly where its bags are weighted}}
  %a = emb.feature "a" weights "w" : !raw
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{index must not be negative, not -1}}
  %a = emb.feature "a" index -1 : !raw
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{max_per_bag must be at least 1, not 0}}
  %a = emb.feature "a" max_per_bag 0 : !raw
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{mean_ids must be finite and not negative, not -1}}
  %a = emb.feature "a" mean_ids -1.0 : !raw
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-error @below {{has 1 bags but 2 tables}}
  %c = emb.check %a in [@t, @t] on_bad_id "error" : !raw -> !ids
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  // expected-error @below {{ids are checked once, but these already are}}
  %e = emb.check %c in [@t] on_bad_id "error" : !ids -> !ids
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-error @below {{on_bad_id must be "error" or "drop", not "skip"}}
  %c = emb.check %a in [@t] on_bad_id "skip" : !raw -> !ids
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-error @below {{@x is not an emb.table}}
  %c = emb.check %a in [@x] on_bad_id "error" : !raw -> !ids
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-error @below {{are incompatible with return type(s)}}
  // expected-error @below {{failed to infer returned types}}
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !raw
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-error @below {{only checked ids can index a table, but these are '!emb.bags<8, max 8 x i64, raw>'}}
  %r = emb.translate %a in @t : !raw
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  // expected-error @below {{@x is not an emb.table}}
  %r = emb.translate %c in @x : !ids
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
  // expected-error @below {{the ids were checked against @t, but are translated in @u}}
  %r = emb.translate %c in @u : !ids
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  %r = emb.translate %c in @t : !ids
  // expected-error @below {{the ids are rows already}}
  %q = emb.translate %r in @t : !ids
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  // expected-error @below {{only checked ids can index a table}}
  %d, %i = emb.dedup %a : !raw -> !emb.bags<?, max 8 x i64, raw>, !emb.inverse<8>
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
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  // expected-error @below {{takes the bags of a batch, not unique bags}}
  // expected-error @below {{failed to infer returned types}}
  %e, %j = emb.dedup %d : !uniq -> !uniq, !emb.inverse<8>
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!uniq = !emb.bags<?, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : !raw
    %f = emb.feature "f" : !emb.bags<4, max 8 x i64, raw>
  %c, %g = emb.check %a, %f in [@t, @t] on_bad_id "error" : !raw, !emb.bags<4, max 8 x i64, raw> -> !ids, !emb.bags<4, max 8 x i64, checked>
  // expected-error @below {{all bags must have the same batch bound}}
  %d:2, %i = emb.dedup %c, %g : !ids, !emb.bags<4, max 8 x i64, checked> -> !uniq, !uniq, !emb.inverse<8>
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
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %p = emb.lookup sum %t[%c] : !t, !ids -> tensor<8x4xf32>
  // expected-error @below {{takes a row per unique bag, tensor<?x...>, not 'tensor<8x4xf32>'}}
  %e = emb.expand %p by %i : tensor<8x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
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
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %p = emb.lookup sum %t[%d] : !t, !uniq -> tensor<?x4xf32>
  // expected-error @below {{result must be 'tensor<8x4xf32>', not 'tensor<7x4xf32>'}}
  %e = emb.expand %p by %i : tensor<?x4xf32>, !emb.inverse<8> -> tensor<7x4xf32>
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
  %d, %i = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %p = emb.lookup none %t[%d] : !t, !uniq -> tensor<?x4xf32>
  // expected-error @below {{`of` takes unique bags, not '!emb.bags<8, max 8 x i64, checked>'}}
  %e = emb.expand %p by %i of %c : tensor<?x4xf32>, !emb.inverse<8>, !ids -> tensor<?x4xf32>
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
  // expected-note @below {{the inverse is from here}}
  %e, %j = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
  %t = emb.state @t : !t
  %p = emb.lookup none %t[%d] : !t, !uniq -> tensor<?x4xf32>
  // expected-error @below {{bags and inverse come from different dedups}}
  %x = emb.expand %p by %j of %d : tensor<?x4xf32>, !emb.inverse<8>, !uniq -> tensor<?x4xf32>
}
// -----
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  // expected-error @below {{needs at least one operand}}
  %r, %x = "emb.unique"() {table = @t} : () -> (tensor<?xi64>, tensor<?xi32>)
}
// -----
!raw = !emb.bags<8, max 8 x i64, raw>
!ids = !emb.bags<8, max 8 x i64, checked>
!t = !emb.state<[10, 4], #emb.row<f32>>
emb.table @t : !t ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : !raw
  %c = emb.check %a in [@t] on_bad_id "error" : !raw -> !ids
  // expected-error @below {{results are lists, tensor<?x...>, not 'tensor<8xi64>'}}
  %r, %x = emb.unique %c in @t : !ids -> tensor<8xi64>, tensor<?xi32>
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
  // expected-error @below {{the ids were checked against @t, but index @u}}
  %r, %x = emb.unique %c in @u : !ids -> tensor<?xi64>, tensor<?xi32>
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
  // expected-error @below {{expected unique bags and an inverse}}
  %d, %i = emb.dedup %c : !ids -> !uniq
}
