// RUN: terrace-opt %s --split-input-file --plan-direct-lookup | FileCheck %s
// RUN: terrace-opt %s --split-input-file --plan-direct-lookup --remarks-filter=plan-direct-lookup -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: terrace-opt %s --split-input-file --plan-direct-lookup --plan-direct-lookup | FileCheck %s
// RUN: terrace-opt %s --split-input-file --plan-direct-lookup --plan-schedule-prefetch --plan-allocate --plan-verify -o /dev/null

// A step that trains: rows in memory are read by id, and unique rows stay for the update. What has a cache, or a feature that is
// pooled per unique bag, is left as it is. Kernels that nobody names any more are gone; one that others name stays.

// REMARK: remark: [Passed] DirectLookup | {{.*}}Remark="g4: look-ups read rows by id; unique rows serve updates only"
// REMARK: remark: [Missed] DirectLookup | {{.*}}Remark="g2: look-ups go through unique rows: feature 'fb' is pooled per unique bag"
// REMARK: remark: [Missed] DirectLookup | {{.*}}Remark="g8: look-ups go through unique rows: rows lie in slots of a cache"

// CHECK-NOT: @gather_pool_4_mean gather_pool
// CHECK: plan.kernel @gather_pool_4_mean_direct gather_pool <4 x f32, mean, direct>
// CHECK: plan.kernel @gather_pool_2_sum gather_pool <2 x f32>
// CHECK-LABEL: plan.program @train
// CHECK: role unique group @g4
// CHECK: plan.ingest features [#plan.feature<name = "fa", table = @a, pooling = mean, kernel = @gather_pool_4_mean_direct>, #plan.feature<name = "fb", table = @b, dedup = "d", kernel = @gather_pool_2_sum>, #plan.feature<name = "fc", table = @c, kernel = @gather_pool_8_sum>]
// CHECK: %{{.*}}, %[[OA:.*]] = plan.unique @g4
// CHECK: plan.gather_pool @g4 direct[%[[OA]]] with @gather_pool_4_mean_direct features ["fa"]
// CHECK: plan.gather_pool @g2[
// CHECK: plan.gather_pool @g8 rows
// CHECK: plan.segment_update @g4[%[[OA]]]
!a = !emb.state<[40, 4], #emb.row<f32>>
!b = !emb.state<[9, 2], #emb.row<f32>>
!c = !emb.state<[9, 8], #emb.row<f32>>
emb.tier @dram dram bytes 1000000
emb.tier @disk nvme bytes 1000000 path "x.store"
emb.table @a : !a ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @dram>
emb.table @b : !b ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @dram>
emb.table @c : !c ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @disk, cache = @dram, retained = 1, policy = "lru">
plan.lane @host cpu
plan.lane @io io depth 128
plan.lane @copy cpu
plan.lane @work cpu
plan.lane @caller caller
plan.group @g4 [@a] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @dram rows 40 bases [0] occurrences 8 unique 8 update @segment_update_4_sgd
plan.group @g2 [@b] #plan.record<2 x f32, state 0, header 8, slot 8, store 16> home @dram rows 9 bases [0] occurrences 8 unique 8 update @segment_update_2_sgd
plan.group @g8 [@c] #plan.record<8 x f32, state 0, header 8, slot 32, store 48> home @disk cache @dram retained 1 policy "lru" rows 9 bases [0] occurrences 8 unique 8 miss 8 update @segment_update_8_sgd
plan.kernel @gather_pool_4_mean gather_pool <4 x f32, mean>
plan.kernel @gather_pool_2_sum gather_pool <2 x f32>
plan.kernel @gather_pool_8_sum gather_pool <8 x f32>
plan.kernel @segment_update_4_sgd segment_update <4 x f32>
plan.kernel @segment_update_2_sgd segment_update <2 x f32>
plan.kernel @segment_update_8_sgd segment_update <8 x f32>
plan.program @train worker 0 of 1 batch 8 max_ids 24 {
  %ring_ingest = plan.ring @dram role ingest bytes 512 depth 1
  %ring_dedup = plan.ring @dram role dedup bytes 448 depth 1
  %ring_unique_g4 = plan.ring @dram role unique group @g4 bytes 448 depth 1
  %ring_pooled_g4 = plan.ring @dram role pooled group @g4 bytes 128 depth 1
  %ring_unique_g2 = plan.ring @dram role unique group @g2 bytes 448 depth 1
  %ring_pooled_g2 = plan.ring @dram role pooled group @g2 bytes 128 depth 1
  %ring_unique_g8 = plan.ring @dram role unique group @g8 bytes 448 depth 1
  %ring_probe_g8 = plan.ring @dram role probe group @g8 bytes 448 depth 1
  %ring_staging_g8 = plan.ring @dram role staging group @g8 bytes 256 depth 1
  %ring_writebuf_g8 = plan.ring @dram role writebuf group @g8 bytes 384 depth 1
  %ring_pooled_g8 = plan.ring @dram role pooled group @g8 bytes 256 depth 1
  %ring_expanded = plan.ring @dram role expanded bytes 128 depth 1
  %ring_grads = plan.ring @dram role grads bytes 512 depth 1
  plan.pipeline carry(%carried = 1) {
    %batch = plan.ingest features [#plan.feature<name = "fa", table = @a, pooling = mean, kernel = @gather_pool_4_mean>, #plan.feature<name = "fb", table = @b, dedup = "d", kernel = @gather_pool_2_sum>, #plan.feature<name = "fc", table = @c, kernel = @gather_pool_8_sum>] into %ring_ingest
    %ids = plan.check %batch on_bad_id "error"
    %bags, %inverse = plan.dedup %ids ["fb"] names ["d"] into %ring_dedup
    %unique_g4, %occurrences_g4 = plan.unique @g4 %ids features ["fa"] max 8 unique 8 into %ring_unique_g4
    %unique_g2, %occurrences_g2 = plan.unique @g2 %bags, %inverse features ["fb"] max 8 unique 8 into %ring_unique_g2
    %unique_g8, %occurrences_g8 = plan.unique @g8 %ids features ["fc"] max 8 unique 8 into %ring_unique_g8
    %pins, %misses, %victims = plan.probe @g8 %unique_g8 into %ring_probe_g8
    %spill = plan.spill @g8 %victims into %ring_writebuf_g8
    %store = plan.store @g8 %spill after(%carried)
    %fetch = plan.fetch @g8 %misses into %ring_staging_g8 after(%carried)
    %fill = plan.fill @g8 %pins from %fetch
    %pa = plan.gather_pool @g4[%occurrences_g4] with @gather_pool_4_mean features ["fa"] into %ring_pooled_g4
    %pb = plan.gather_pool @g2[%occurrences_g2] with @gather_pool_2_sum features ["fb"] into %ring_pooled_g2
    %pc = plan.gather_pool @g8 rows %fill[%occurrences_g8] with @gather_pool_8_sum features ["fc"] into %ring_pooled_g8
    %expand = plan.expand %pb by %inverse features ["fb"] into %ring_expanded
    %handoff = plan.handoff(%pa, %expand, %pc)
    %go, %grads:3 = plan.resume into %ring_grads after(%handoff) -> !plan.buf, !plan.buf, !plan.buf
    %preserve_g4 = plan.preserve @g4[%occurrences_g4] after(%go)
    %preserve_g2 = plan.preserve @g2[%occurrences_g2] after(%go)
    %preserve_g8 = plan.preserve @g8 rows %fill[%occurrences_g8] after(%go)
    %ua = plan.segment_update @g4[%occurrences_g4] with @segment_update_4_sgd features ["fa"] grads(%grads#0) after(%preserve_g4)
    %ub = plan.segment_update @g2[%occurrences_g2] with @segment_update_2_sgd features ["fb"] grads(%grads#1 by %inverse) after(%preserve_g2)
    %uc = plan.segment_update @g8 rows %fill[%occurrences_g8] with @segment_update_8_sgd features ["fc"] grads(%grads#2) after(%preserve_g8)
    %unpin = plan.unpin @g8 %fill after(%uc)
    plan.yield %store : !plan.token
  }
}

// -----

// Nothing is updated: no unique rows, and no ring for them. Two features of one group with a kernel each.

// REMARK: Remark="g4: look-ups read rows by id; no unique rows are made"

// CHECK-LABEL: plan.program @serve
// CHECK-NOT: role unique
// CHECK: %[[C:.*]] = plan.check
// CHECK: %[[X:.*]] = plan.touch @g4 %[[C]] features ["fa", "fb"]
// CHECK-NEXT: plan.gather_pool @g4 direct[%[[X]]] with @gather_pool_4_sum_direct, @gather_pool_4_mean_weighted_direct features ["fa", "fb"]
!a = !emb.state<[40, 4], #emb.row<f32>>
emb.tier @dram dram bytes 1000000
emb.table @a : !a ids index optimizer #emb.sgd<lr = 0.0> init #emb.constant<0.0> placement #emb.placement<home = @dram>
plan.lane @host cpu
plan.lane @io io depth 128
plan.lane @copy cpu
plan.lane @work cpu
plan.lane @caller caller
plan.group @g4 [@a] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @dram rows 40 bases [0] occurrences 16 unique 16
plan.kernel @gather_pool_4_sum gather_pool <4 x f32>
plan.kernel @gather_pool_4_mean_weighted gather_pool <4 x f32, mean, weighted>
plan.program @serve worker 0 of 1 batch 8 max_ids 16 {
  %ring_ingest = plan.ring @dram role ingest bytes 512 depth 1
  %ring_unique_g4 = plan.ring @dram role unique group @g4 bytes 448 depth 1
  %ring_pooled_g4 = plan.ring @dram role pooled group @g4 bytes 256 depth 1
  plan.pipeline {
    %batch = plan.ingest features [#plan.feature<name = "fa", table = @a, kernel = @gather_pool_4_sum>, #plan.feature<name = "fb", table = @a, pooling = mean, weights = "w", kernel = @gather_pool_4_mean_weighted, output = 1>] into %ring_ingest
    %ids = plan.check %batch on_bad_id "error"
    %unique_g4, %occurrences_g4 = plan.unique @g4 %ids features ["fa", "fb"] max 16 unique 16 into %ring_unique_g4
    %p = plan.gather_pool @g4[%occurrences_g4] with @gather_pool_4_sum, @gather_pool_4_mean_weighted features ["fa", "fb"] into %ring_pooled_g4
    %handoff = plan.handoff(%p, %p)
    %go = plan.resume after(%handoff)
  }
}
