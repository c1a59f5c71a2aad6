// Every op, type and attribute of emb survives text and bytecode.
// RUN: terrace-opt %s | FileCheck %s
// RUN: terrace-opt %s --verify-roundtrip -o /dev/null
// RUN: terrace-opt %s --emit-bytecode -o %t.bc && terrace-opt %t.bc | FileCheck %s
// Attributes and types have an encoding; without one their text would be in the file.
// RUN: not grep -a -e "bags<" -e "adam<" -e "state<" -e "row<" -e "profile<" %t.bc
!raw = !emb.bags<8, max 32 x i64, raw>
!rawW = !emb.bags<8, max 32 x i64, raw, weighted>
!ids = !emb.bags<8, max 32 x i64, checked>
!idsW = !emb.bags<8, max 32 x i64, checked, weighted>
!uniq = !emb.bags<?, max 32 x i64, checked>
!item = !emb.state<[1000, 4], #emb.row<f32>>
!user = !emb.state<[100, 4], #emb.row<i8, scale f16, bias f16>>

// Long types are written once, under names that say their sizes.
// CHECK-DAG: !raw_8_max32 = !emb.bags<8, max 32 x i64, raw>
// CHECK-DAG: !raw_8_max32_w = !emb.bags<8, max 32 x i64, raw, weighted>
// CHECK-DAG: !ids_8_max32_w = !emb.bags<8, max 32 x i64, checked, weighted>
// CHECK-DAG: !unique_max32 = !emb.bags<?, max 32 x i64, checked>
// CHECK-DAG: !state_1000x4xf32 = !emb.state<[1000, 4], #emb.row<f32>>
// CHECK-DAG: !state_100x3xf16 = !emb.state<[100, 3], #emb.row<f16>>
// CHECK-DAG: !state_100x3xbf16 = !emb.state<[100, 3], #emb.row<bf16, stochastic>>
// CHECK-DAG: !state_100x4xi8 = !emb.state<[100, 4], #emb.row<i8, scale f16, bias f16>>
// CHECK: module attributes {
// CHECK-SAME: emb.machine = #emb.machine<cpu "x86-64-v3", cores 2 gpu "sm_90" figures {nvme = {latency_s = 9.000000e-05 : f64}}>
// CHECK-SAME: emb.model = "m", emb.numerics = "reassociate", emb.on_bad_grad = "skip", emb.on_bad_id = "drop", emb.seed = 7 : i64
module attributes {emb.machine = #emb.machine<cpu "x86-64-v3", cores 2 gpu "sm_90" figures {nvme = {latency_s = 9.0e-5 : f64}}>,
                   emb.model = "m", emb.numerics = "reassociate", emb.on_bad_grad = "skip", emb.on_bad_id = "drop", emb.seed = 7 : i64} {
  // CHECK: emb.tier @hbm hbm bytes 1024 per_worker
  emb.tier @hbm hbm bytes 1024 per_worker
  emb.tier @dram dram bytes 4096
  // CHECK: emb.tier @disk nvme bytes 65536 path "a", "b" drive_writes_per_day 5.000000e-01 warn_of_wear
  emb.tier @disk nvme bytes 65536 path "a", "b" drive_writes_per_day 0.5 warn_of_wear

  // Doubles print as the shortest text that reads back to the same bits.
  // CHECK: emb.table @item : !state_1000x4xf32 ids index
  // CHECK-SAME: optimizer #emb.adam<lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-08, weight_decay = 0.01>
  // CHECK-SAME: init #emb.uniform<-0.01, 0.01>
  // CHECK-SAME: placement #emb.placement<home = @disk, cache = @dram, retained = 16, policy = "lru">
  // CHECK-SAME: shards #emb.shards<row, [0, 1], [0, 10, 1000]>
  // CHECK-SAME: profile #emb.profile<batches = 3, batch = 8, ids = 7.5, max_ids = 8, unique_ids = 4.25, reuse = [1, 2], cache_rows = [1, 2], miss_ratio = [0.9, 0.1]>
  emb.table @item : !item ids index optimizer #emb.adam<lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.01> init #emb.uniform<-0.01, 0.01>
    placement #emb.placement<home = @disk, cache = @dram, retained = 16, policy = "lru"> shards #emb.shards<row, [0, 1], [0, 10, 1000]>
    profile #emb.profile<batches = 3, batch = 8, ids = 7.5, max_ids = 8, unique_ids = 4.25, reuse = [1, 2], cache_rows = [1, 2], miss_ratio = [0.9, 0.1]>
  // CHECK: emb.table @user : !state_100x4xi8 ids hash optimizer #emb.sgd<lr = 0.1> init #emb.normal<0.0, 0.5>
  emb.table @user : !user ids hash optimizer #emb.sgd<lr = 0.1> init #emb.normal<0.0, 0.5>
  // CHECK: emb.table @shop {{.*}} ids dynamic optimizer #emb.adagrad<lr = 0.1, eps = 1.0e-08> init #emb.constant<1.0>
  emb.table @shop : !item ids dynamic optimizer #emb.adagrad<lr = 0.1, eps = 1.0e-8> init #emb.constant<1.0>
  // CHECK: emb.table @m {{.*}} optimizer #emb.momentum_sgd<lr = 0.1, momentum = 0.9, weight_decay = 0.5>
  emb.table @m : !item ids index optimizer #emb.momentum_sgd<lr = 0.1, momentum = 0.9, weight_decay = 0.5> init #emb.constant<1.0>
  // CHECK: emb.table @p {{.*}} optimizer #emb.partial_rowwise_adam<lr = 0.1, beta1 = 0.9, beta2 = 0.5, eps = 0.0, decoupled_decay = 0.5, clip_norm = 2.0>
  emb.table @p : !item ids index optimizer #emb.partial_rowwise_adam<lr = 0.1, beta1 = 0.9, beta2 = 0.5, eps = 0.0, clip_norm = 2.0, decoupled_decay = 0.5> init #emb.constant<1.0>
  // CHECK: emb.table @l {{.*}} optimizer #emb.lamb<lr = 0.1, beta1 = 0.9, beta2 = 0.5, eps = 0.0, weight_decay = 0.25>
  emb.table @l : !item ids index optimizer #emb.lamb<lr = 0.1, beta1 = 0.9, beta2 = 0.5, eps = 0.0, weight_decay = 0.25> init #emb.constant<1.0>
  // CHECK: emb.table @n : !state_100x3xf16 ids
  emb.table @n : !emb.state<[100, 3], #emb.row<f16>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<1.0>
  // CHECK: emb.table @h : !state_100x3xbf16 ids
  emb.table @h : !emb.state<[100, 3], #emb.row<bf16, stochastic>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<1.0>
  // CHECK: emb.table @f {{.*}} optimizer #emb.ftrl<lr = 0.1, beta = 1.0, l1 = 0.5, clip_norm = 1.0>
  emb.table @f : !item ids index optimizer #emb.ftrl<lr = 0.1, beta = 1.0, l1 = 0.5, l2 = 0.0, clip_norm = 1.0> init #emb.constant<1.0>

  // CHECK: emb.step @train batch 8 max_ids 96 worker 0 of 1 {
  emb.step @train batch 8 max_ids 96 worker 0 of 1 {
    // CHECK: %lr_scale = emb.scalar "lr_scale" : f32
    %s = emb.scalar "lr_scale" : f32
    // CHECK: emb.samples : index
    %n = emb.samples : index
    %y = emb.feature "label" : tensor<8xf32>
    // CHECK: emb.feature "a" index 0 column "c" max_per_bag 4 mean_ids 1.500000e+00 overflow keep_last dedup "g" string_ids profile(#emb.profile<samples_per_session = 2.0>) : !raw_8_max32
    %a = emb.feature "a" index 0 column "c" max_per_bag 4 mean_ids 1.5 overflow keep_last dedup "g" string_ids profile(#emb.profile<samples_per_session = 2.0>) : !raw
    %b = emb.feature "b" : !raw
    // CHECK: %raw_w = emb.feature "w" weights "q" : !raw_8_max32_w
    %w = emb.feature "w" weights "q" : !rawW
    // CHECK: emb.check {{.*}} in [@item, @item, @user] on_bad_id "drop"
    %ca, %cb, %cw = emb.check %a, %b, %w in [@item, @item, @user] on_bad_id "drop" : !raw, !raw, !rawW -> !ids, !ids, !idsW
    // CHECK: emb.translate {{.*}} in @user : !ids_8_max32_w
    %rw = emb.translate %cw in @user : !idsW
    // CHECK: emb.dedup group "g" {{.*}} -> !unique_max32, !unique_max32, !emb.inverse<8>
    %da, %db, %inv = emb.dedup group "g" %ca, %cb : !ids, !ids -> !uniq, !uniq, !emb.inverse<8>
    // CHECK: emb.unique {{.*}} in @item : {{.*}} -> tensor<?xi64>, tensor<?xi32>
    %rows, %index = emb.unique %da, %db in @item : !uniq, !uniq -> tensor<?xi64>, tensor<?xi32>
    %item0 = emb.state @item : !item
    // CHECK: emb.state @user : !state_100x4xi8
    %user0 = emb.state @user : !user
    // CHECK: %pooled_a, %winner_a = emb.lookup max %state_item[%unique_a] : {{.*}} -> tensor<?x4xf32>, tensor<?x4xi32>
    %pa, %win = emb.lookup max %item0[%da] : !item, !uniq -> tensor<?x4xf32>, tensor<?x4xi32>
    // CHECK: emb.lookup none
    %pb = emb.lookup none %item0[%db] : !item, !uniq -> tensor<?x4xf32>
    // CHECK: emb.lookup weighted_mean
    %pw = emb.lookup weighted_mean %user0[%rw] : !user, !idsW -> tensor<8x4xf32>
    %ea = emb.expand %pa by %inv : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
    %ewin = emb.expand %win by %inv : tensor<?x4xi32>, !emb.inverse<8> -> tensor<8x4xi32>
    // CHECK: emb.expand {{.*}} by {{.*}} of {{.*}} : tensor<?x4xf32>, !emb.inverse<8>, !unique_max32 -> tensor<?x4xf32>
    %eb = emb.expand %pb by %inv of %db : tensor<?x4xf32>, !emb.inverse<8>, !uniq -> tensor<?x4xf32>
    // CHECK: emb.dense @caller(
    %ga, %gb, %gw = emb.dense @caller(%n, %ea, %eb, %pw) : (index, tensor<8x4xf32>, tensor<?x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<?x4xf32>, tensor<8x4xf32>)
    // CHECK: emb.grad_weights weighted_mean {{.*}} grad {{.*}} -> tensor<?xf32>
    %dw = emb.grad_weights weighted_mean %user0[%rw] grad %gw : !user, !idsW, tensor<8x4xf32> -> tensor<?xf32>
    // The inverse's type is written where the gradient does not give it.
    // CHECK: emb.update {{.*}} pool [max, none] bags [%{{.*}} by %{{.*}}, %{{.*}} by %{{.*}}] grads({{.*}}) winners({{.*}}) : {{.*}}, f32, [!unique_max32, !unique_max32 by !emb.inverse<8>], (tensor<8x4xf32>, tensor<?x4xf32>), (tensor<8x4xi32>)
    %item1 = emb.update %item0 scale %s pool [max, none] bags [%da by %inv, %db by %inv] grads(%ga, %gb) winners(%ewin) : !item, f32, [!uniq, !uniq by !emb.inverse<8>], (tensor<8x4xf32>, tensor<?x4xf32>), (tensor<8x4xi32>)
    %user1 = emb.update %user0 scale %s pool [weighted_mean] bags [%rw] grads(%gw) : !user, f32, [!idsW], (tensor<8x4xf32>)
    // CHECK: emb.commit [@item, @user](
    emb.commit [@item, @user] (%item1, %user1) : !item, !user
  }

  // A forward-only step has no update; under `reassociate` gradients may shrink first.
  // CHECK: emb.step @eval
  emb.step @eval batch 8 max_ids 32 worker 0 of 1 {
    %n = emb.samples : index
    %a = emb.feature "a" : !raw
    %c = emb.check %a in [@item] on_bad_id "drop" : !raw -> !ids
    %d, %inv = emb.dedup %c : !ids -> !uniq, !emb.inverse<8>
    %t = emb.state @item : !item
    %p = emb.lookup sqrtn %t[%d] : !item, !uniq -> tensor<?x4xf32>
    %e = emb.expand %p by %inv : tensor<?x4xf32>, !emb.inverse<8> -> tensor<8x4xf32>
    // CHECK: emb.reduce {{.*}} by {{.*}} : tensor<8x4xf32>, !emb.inverse<8> -> tensor<?x4xf32>
    %r = emb.reduce %e by %inv : tensor<8x4xf32>, !emb.inverse<8> -> tensor<?x4xf32>
    // CHECK: emb.dense @fm({{.*}}) : (index, tensor<8x4xf32>) -> tensor<8xf32>
    %z = emb.dense @fm(%n, %e) : (index, tensor<8x4xf32>) -> tensor<8xf32>
  }
}
