// The design's example of this level: parses, verifies and survives text and bytecode.
// RUN: terrace-opt %s --verify-roundtrip | FileCheck %s
// RUN: terrace-opt %s --emit-bytecode -o %t.bc && terrace-opt %t.bc | FileCheck %s
// CHECK: emb.commit [@item, @user](%updated_item, %updated_user)
// One training step of a two-table model: `item` (two features, one dedup group) and `visitor`.
// B is a bound: a last, partial batch has fewer samples (`emb.samples`).
!raw    = !emb.bags<2048, max 40960 x i64, raw>
!ids    = !emb.bags<2048, max 40960 x i64, checked>
!uniq   = !emb.bags<?, max 40960 x i64, checked>       // unique bags of a group
!raw1   = !emb.bags<2048, max 2048 x i64, raw>
!id1    = !emb.bags<2048, max 2048 x i64, checked>
!item_t = !emb.state<[40000000, 64], #emb.row<f32>>
!user_t = !emb.state<[3000000, 32], #emb.row<f32>>
module attributes {emb.machine = #emb.machine<cpu "x86-64-v3", cores 2>} {
  emb.tier @dram dram bytes 2147483648
  emb.tier @nvme nvme bytes 68719476736 path "item.store"
  emb.table @item : !item_t ids index optimizer #emb.rowwise_adagrad<lr = 2.0e-2, eps = 1.0e-8> init #emb.uniform<-0.01, 0.01>
  emb.table @user : !user_t ids hash  optimizer #emb.adam<lr = 1.0e-3, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8> init #emb.uniform<-0.01, 0.01>
  emb.step @train batch 2048 max_ids 83968 worker 0 of 1 {
    %s    = emb.scalar "lr_scale" : f32                 // schedule and set_lr multiply each table's lr
    %n    = emb.samples : index
    %y    = emb.feature "label" : tensor<2048xf32>
    %raw0 = emb.feature "clicked" : !raw
    %raw1 = emb.feature "cart"    : !raw
    %raw2 = emb.feature "visitor" : !raw1
    // one verdict per step; only checked ids can index a table
    %c0, %c1, %c2 = emb.check %raw0, %raw1, %raw2 in [@item, @item, @user] on_bad_id "error" : !raw, !raw, !raw1 -> !ids, !ids, !id1
    %r2   = emb.translate %c2 in @user : !id1           // hash -> row; identity for `index` is not emitted
    %d0, %d1, %inv = emb.dedup %c0, %c1 : !ids, !ids -> !uniq, !uniq, !emb.inverse<2048>
    // states are values: no lookup can see this step's update
    %item0 = emb.state @item : !item_t
    %user0 = emb.state @user : !user_t
    %p0 = emb.lookup sum  %item0[%d0] : !item_t, !uniq -> tensor<?x64xf32>
    %p1 = emb.lookup mean %item0[%d1] : !item_t, !uniq -> tensor<?x64xf32>
    %p2 = emb.lookup sum  %user0[%r2] : !user_t, !id1 -> tensor<2048x32xf32>
    %e0 = emb.expand %p0 by %inv : tensor<?x64xf32>, !emb.inverse<2048> -> tensor<2048x64xf32>
    %e1 = emb.expand %p1 by %inv : tensor<?x64xf32>, !emb.inverse<2048> -> tensor<2048x64xf32>
    %g0, %g1, %g2 = emb.dense @logistic(%n, %e0, %e1, %p2, %y) : (index, tensor<2048x64xf32>, tensor<2048x64xf32>, tensor<2048x32xf32>, tensor<2048xf32>) -> (tensor<2048x64xf32>, tensor<2048x64xf32>, tensor<2048x32xf32>)
    // every row meets its optimizer once; operand order, then sample, then position is summation order.
    // `by %inv` keeps sample order, so `strict` may dedup; under `reassociate` an `emb.reduce` shrinks the gradients first.
    %item1 = emb.update %item0 scale %s pool [sum, mean] bags [%d0 by %inv, %d1 by %inv] grads(%g0, %g1) : !item_t, f32, [!uniq, !uniq], (tensor<2048x64xf32>, tensor<2048x64xf32>)
    %user1 = emb.update %user0 scale %s pool [sum] bags [%r2] grads(%g2) : !user_t, f32, [!id1], (tensor<2048x32xf32>)
    emb.commit [@item, @user] (%item1, %user1) : !item_t, !user_t
  }
}
