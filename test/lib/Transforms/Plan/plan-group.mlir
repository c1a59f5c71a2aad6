// RUN: terrace-opt %s --plan-group | FileCheck %s
// RUN: terrace-opt %s --plan-group --remarks-filter=plan-group -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Tables a and b have one record class, c has another learning rate. The group's rows lie one table after the other; its
// bounds add up; features, kernels and gradients stand in the order of the spec, not of the tables; carries and rings of
// merged groups become one.

// REMARK: remark: [Passed] Group | Category:plan-group | Function=g4 | Remark="g4: 2 tables, 45 rows; a batch has up to 16 ids and 13 unique rows"
// REMARK: remark: [Passed] Groups | {{.*}}Remark="3 shards in 2 groups"

// CHECK: plan.group @g4 [@a, @b] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @disk cache @dram retained 5 policy "lru" rows 45 bases [0, 40] occurrences 16 unique 13 miss 13 update @segment_update_4_sgd
// CHECK: plan.group @g4_1 [@c] {{.*}} retained 1 policy "lru" rows 5
// CHECK-NOT: plan.group
// CHECK-LABEL: plan.program @train
// CHECK: role unique group @g4 bytes
// CHECK: role writebuf group @g4 bytes 448
// CHECK-NOT: role unique group @g4 bytes
// CHECK: role unique group @g4_1
// CHECK: plan.pipeline carry(%[[C0:.*]] = 1, %[[C1:.*]] = 1)
// CHECK: name = "fa", table = @a, {{.*}} output = 1>
// CHECK: %[[U:.*]], %[[INV:.*]] = plan.dedup
// CHECK: %[[UG:.*]], %[[OG:.*]] = plan.unique @g4 %[[U]], %[[INV]] features ["fb", "fa"] max 16 unique 13
// CHECK: plan.unique @g4_1 %{{.*}} features ["fc"] max 8 unique 5
// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = plan.probe @g4 %[[UG]]
// CHECK: plan.probe @g4_1
// CHECK-NOT: plan.probe
// CHECK: %[[S0:.*]] = plan.store @g4 %{{.*}} after(%[[C0]])
// CHECK: %[[S1:.*]] = plan.store @g4_1 %{{.*}} after(%[[C1]])
// CHECK: %[[P:.*]] = plan.gather_pool @g4 {{.*}} with @gather_pool_4_sum, @gather_pool_4_mean features ["fb", "fa"]
// CHECK: plan.expand %[[P]] by %[[INV]] features ["fb", "fa"]
// CHECK: %{{.*}}, %[[G:.*]]:3 = plan.resume
// CHECK: %[[K:.*]] = plan.preserve @g4 rows %{{.*}}[%[[OG]]]
// CHECK: plan.preserve @g4_1
// CHECK-NOT: plan.preserve
// CHECK: plan.segment_update @g4 {{.*}} features ["fb", "fa"] grads(%[[G]]#0 by %[[INV]], %[[G]]#1 by %[[INV]]) after(%[[K]])
// CHECK: plan.yield %[[S0]], %[[S1]]
!state_40x4xf32 = !emb.state<[40, 4], #emb.row<f32>>
!state_5x4xf32 = !emb.state<[5, 4], #emb.row<f32>>
module {
  emb.tier @dram dram bytes 1000000
  emb.tier @disk nvme bytes 1000000 path "x.store"
  emb.table @a : !state_40x4xf32 ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @disk, cache = @dram, retained = 3, policy = "lru">
  emb.table @b : !state_5x4xf32 ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @disk, cache = @dram, retained = 2, policy = "lru">
  emb.table @c : !state_5x4xf32 ids index optimizer #emb.sgd<lr = 0.2> init #emb.constant<0.0> placement #emb.placement<home = @disk, cache = @dram, retained = 1, policy = "lru">
  plan.lane @host cpu
  plan.lane @io io depth 128
  plan.lane @copy cpu
  plan.lane @work cpu
  plan.lane @caller caller
  plan.group @t_a [@a] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @disk cache @dram retained 3 policy "lru" rows 40 bases [0] occurrences 8 unique 8 miss 8 update @segment_update_4_sgd
  plan.group @t_b [@b] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @disk cache @dram retained 2 policy "lru" rows 5 bases [0] occurrences 8 unique 5 miss 5 update @segment_update_4_sgd
  plan.group @t_c [@c] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @disk cache @dram retained 1 policy "lru" rows 5 bases [0] occurrences 8 unique 5 miss 5 update @segment_update_4_sgd
  plan.kernel @gather_pool_4_sum gather_pool <4 x f32>
  plan.kernel @gather_pool_4_mean gather_pool <4 x f32, mean>
  plan.kernel @segment_update_4_sgd segment_update <4 x f32>
  plan.program @train worker 0 of 1 batch 8 max_ids 24 {
    %ring_ingest = plan.ring @dram role ingest bytes 512 depth 1
    %ring_dedup = plan.ring @dram role dedup bytes 448 depth 1
    %ring_unique_t_a = plan.ring @dram role unique group @t_a bytes 448 depth 1
    %ring_probe_t_a = plan.ring @dram role probe group @t_a bytes 448 depth 1
    %ring_staging_t_a = plan.ring @dram role staging group @t_a bytes 128 depth 1
    %ring_writebuf_t_a = plan.ring @dram role writebuf group @t_a bytes 256 depth 1
    %ring_pooled_t_a = plan.ring @dram role pooled group @t_a bytes 128 depth 1
    %ring_unique_t_b = plan.ring @dram role unique group @t_b bytes 448 depth 1
    %ring_probe_t_b = plan.ring @dram role probe group @t_b bytes 448 depth 1
    %ring_staging_t_b = plan.ring @dram role staging group @t_b bytes 128 depth 1
    %ring_writebuf_t_b = plan.ring @dram role writebuf group @t_b bytes 192 depth 1
    %ring_pooled_t_b = plan.ring @dram role pooled group @t_b bytes 128 depth 1
    %ring_unique_t_c = plan.ring @dram role unique group @t_c bytes 448 depth 1
    %ring_probe_t_c = plan.ring @dram role probe group @t_c bytes 448 depth 1
    %ring_staging_t_c = plan.ring @dram role staging group @t_c bytes 128 depth 1
    %ring_writebuf_t_c = plan.ring @dram role writebuf group @t_c bytes 192 depth 1
    %ring_pooled_t_c = plan.ring @dram role pooled group @t_c bytes 128 depth 1
    %ring_expanded = plan.ring @dram role expanded bytes 256 depth 1
    %ring_grads = plan.ring @dram role grads bytes 384 depth 1
    plan.pipeline carry(%carried = 1, %carried_0 = 1, %carried_1 = 1) {
      %batch = plan.ingest features [#plan.feature<name = "fb", table = @b, dedup = "d", kernel = @gather_pool_4_sum>, #plan.feature<name = "fa", table = @a, pooling = mean, dedup = "d", kernel = @gather_pool_4_mean>, #plan.feature<name = "fc", table = @c, kernel = @gather_pool_4_sum>] into %ring_ingest
      %ids = plan.check %batch on_bad_id "error"
      %bags, %inverse = plan.dedup %ids ["fb", "fa"] names ["d"] into %ring_dedup
      %unique_t_a, %occurrences_t_a = plan.unique @t_a %bags, %inverse features ["fa"] max 8 unique 8 into %ring_unique_t_a
      %unique_t_b, %occurrences_t_b = plan.unique @t_b %bags, %inverse features ["fb"] max 8 unique 5 into %ring_unique_t_b
      %unique_t_c, %occurrences_t_c = plan.unique @t_c %ids features ["fc"] max 8 unique 5 into %ring_unique_t_c
      %pins_t_a, %misses_t_a, %victims_t_a = plan.probe @t_a %unique_t_a into %ring_probe_t_a
      %pins_t_b, %misses_t_b, %victims_t_b = plan.probe @t_b %unique_t_b into %ring_probe_t_b
      %pins_t_c, %misses_t_c, %victims_t_c = plan.probe @t_c %unique_t_c into %ring_probe_t_c
      %spill_t_a = plan.spill @t_a %victims_t_a into %ring_writebuf_t_a
      %spill_t_b = plan.spill @t_b %victims_t_b into %ring_writebuf_t_b
      %spill_t_c = plan.spill @t_c %victims_t_c into %ring_writebuf_t_c
      %store_t_a = plan.store @t_a %spill_t_a after(%carried)
      %store_t_b = plan.store @t_b %spill_t_b after(%carried_0)
      %store_t_c = plan.store @t_c %spill_t_c after(%carried_1)
      %fetch_t_a = plan.fetch @t_a %misses_t_a into %ring_staging_t_a after(%carried)
      %fetch_t_b = plan.fetch @t_b %misses_t_b into %ring_staging_t_b after(%carried_0)
      %fetch_t_c = plan.fetch @t_c %misses_t_c into %ring_staging_t_c after(%carried_1)
      %fill_t_a = plan.fill @t_a %pins_t_a from %fetch_t_a
      %fill_t_b = plan.fill @t_b %pins_t_b from %fetch_t_b
      %fill_t_c = plan.fill @t_c %pins_t_c from %fetch_t_c
      %gather_pool_t_a = plan.gather_pool @t_a rows %fill_t_a[%occurrences_t_a] with @gather_pool_4_mean features ["fa"] into %ring_pooled_t_a
      %gather_pool_t_b = plan.gather_pool @t_b rows %fill_t_b[%occurrences_t_b] with @gather_pool_4_sum features ["fb"] into %ring_pooled_t_b
      %gather_pool_t_c = plan.gather_pool @t_c rows %fill_t_c[%occurrences_t_c] with @gather_pool_4_sum features ["fc"] into %ring_pooled_t_c
      %expand = plan.expand %gather_pool_t_b, %gather_pool_t_a by %inverse features ["fb", "fa"] into %ring_expanded
      %handoff = plan.handoff(%expand, %expand, %gather_pool_t_c)
      %go, %grads:3 = plan.resume into %ring_grads after(%handoff) -> !plan.buf, !plan.buf, !plan.buf
      %preserve_t_a = plan.preserve @t_a rows %fill_t_a[%occurrences_t_a] after(%go)
      %preserve_t_b = plan.preserve @t_b rows %fill_t_b[%occurrences_t_b] after(%go)
      %preserve_t_c = plan.preserve @t_c rows %fill_t_c[%occurrences_t_c] after(%go)
      %segment_update_t_a = plan.segment_update @t_a rows %fill_t_a[%occurrences_t_a] with @segment_update_4_sgd features ["fa"] grads(%grads#1 by %inverse) after(%preserve_t_a)
      %segment_update_t_b = plan.segment_update @t_b rows %fill_t_b[%occurrences_t_b] with @segment_update_4_sgd features ["fb"] grads(%grads#0 by %inverse) after(%preserve_t_b)
      %segment_update_t_c = plan.segment_update @t_c rows %fill_t_c[%occurrences_t_c] with @segment_update_4_sgd features ["fc"] grads(%grads#2) after(%preserve_t_c)
      %unpin_t_a = plan.unpin @t_a %fill_t_a after(%segment_update_t_a)
      %unpin_t_b = plan.unpin @t_b %fill_t_b after(%segment_update_t_b)
      %unpin_t_c = plan.unpin @t_c %fill_t_c after(%segment_update_t_c)
      plan.yield %store_t_a, %store_t_b, %store_t_c : !plan.token, !plan.token, !plan.token
    }
  }
}
