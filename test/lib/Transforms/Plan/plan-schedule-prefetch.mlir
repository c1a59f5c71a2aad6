// RUN: terrace-opt %s --plan-schedule-prefetch=lookahead=2 | FileCheck %s
// RUN: terrace-opt %s --plan-schedule-prefetch=lookahead=0 | FileCheck %s --check-prefix=NONE
// RUN: terrace-opt %s --plan-schedule-prefetch=lookahead=1 | FileCheck %s --check-prefix=ONE
// RUN: terrace-opt %s --plan-schedule-prefetch=lookahead=8 | FileCheck %s --check-prefix=MOST
// RUN: terrace-opt %s --plan-schedule-prefetch | FileCheck %s --check-prefix=AUTO
// RUN: terrace-opt %s --plan-schedule-prefetch=lookahead=2 --remarks-filter=plan-schedule-prefetch -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Attributes only: lanes, batches ahead, ring depths; slots are what was retained plus what batches in flight pin. The fill
// runs one batch ahead where that does not cost the fetch its time.

// REMARK: remark: [Passed] Slots | {{.*}}Function=g4 | Remark="group g4: 35 slots, of which 2 batches in flight may pin 32", slots=35, smallest=32
// REMARK: remark: [Passed] Lookahead | {{.*}}Function=train | Remark="lookahead 2 (option): the fetch of batch t + 2 hides behind 1 batches of compute"

// CHECK: plan.group @g4 {{.*}} retained 3 slots 35
// CHECK: plan.program @train {{.*}} lookahead 2
// CHECK: role ingest {{.*}} depth 4
// CHECK: role unique group @g4 {{.*}} depth 3
// CHECK: role probe group @g4 {{.*}} depth 3
// CHECK: role staging group @g4 {{.*}} depth 2
// CHECK: role writebuf group @g4 {{.*}} depth 2
// CHECK: role pooled group @g4 {{.*}} depth 1
// CHECK: plan.ingest {{.*}} at(@host, 3)
// CHECK: plan.check {{.*}} at(@host, 3)
// CHECK: plan.unique @g4 {{.*}} at(@host, 2)
// CHECK: plan.probe @g4 {{.*}} at(@host, 2)
// CHECK: plan.spill @g4 {{.*}} at(@copy, 2)
// CHECK: plan.store @g4 {{.*}} at(@io, 2)
// CHECK: plan.fetch @g4 {{.*}} at(@io, 2)
// CHECK: plan.fill @g4 {{.*}} at(@copy, 1)
// CHECK: plan.gather_pool @g4 {{.*}} at(@work, 0)
// CHECK: plan.handoff{{.*}} at(@caller, 0)
// CHECK: plan.segment_update @g4 {{.*}} at(@work, 0)
// CHECK: plan.unpin @g4 {{.*}} at(@host, 0)

// NONE: slots 19
// NONE: lookahead 0
// NONE-NOT: depth {{[2-9]}}
// NONE: plan.probe {{.*}} at(@host, 0)

// ONE: slots 19
// ONE: plan.fill {{.*}} at(@copy, 0)

// The table's rows cap the slots.
// MOST: slots 40
// MOST: role ingest {{.*}} depth 10

// Nobody has decided: by prediction.
// AUTO: lookahead {{[2-8]}}
// AUTO: plan.fetch @g4 {{.*}} at(@io, {{[2-8]}})
!state_40x4xf32 = !emb.state<[40, 4], #emb.row<f32>>
!state_9x4xf32 = !emb.state<[9, 4], #emb.row<f32>>
module {
  emb.tier @dram dram bytes 1000000
  emb.tier @disk nvme bytes 1000000 path "x.store"
  emb.table @a : !state_40x4xf32 ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 1.0e-08> init #emb.constant<0.0> placement #emb.placement<home = @disk, cache = @dram, retained = 3, policy = "lru">
  emb.table @b : !state_9x4xf32 ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @dram>
  plan.lane @host cpu
  plan.lane @io io depth 128
  plan.lane @copy cpu
  plan.lane @work cpu
  plan.lane @caller caller
  plan.group @g4 [@a] #plan.record<4 x f32, state 4, header 8, slot 20, store 32> home @disk cache @dram retained 3 policy "lru" rows 40 bases [0] occurrences 16 unique 16 miss 16 update @segment_update_4_rowwise_adagrad
  plan.group @g4_1 [@b] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @dram rows 9 bases [0] occurrences 8 unique 8 update @segment_update_4_sgd
  plan.kernel @gather_pool_4_sum gather_pool <4 x f32>
  plan.kernel @segment_update_4_rowwise_adagrad segment_update <4 x f32, rowwise_adagrad>
  plan.kernel @segment_update_4_sgd segment_update <4 x f32>
  plan.program @train worker 0 of 1 batch 8 max_ids 24 {
    %ring_ingest = plan.ring @dram role ingest bytes 512 depth 1
    %ring_unique_g4 = plan.ring @dram role unique group @g4 bytes 512 depth 1
    %ring_probe_g4 = plan.ring @dram role probe group @g4 bytes 512 depth 1
    %ring_staging_g4 = plan.ring @dram role staging group @g4 bytes 320 depth 1
    %ring_writebuf_g4 = plan.ring @dram role writebuf group @g4 bytes 512 depth 1
    %ring_pooled_g4 = plan.ring @dram role pooled group @g4 bytes 128 depth 1
    %ring_unique_g4_1 = plan.ring @dram role unique group @g4_1 bytes 448 depth 1
    %ring_pooled_g4_1 = plan.ring @dram role pooled group @g4_1 bytes 128 depth 1
    %ring_grads = plan.ring @dram role grads bytes 448 depth 1
    plan.pipeline carry(%carried = 1) {
      %batch = plan.ingest features [#plan.feature<name = "fa", table = @a, max_ids = 2, kernel = @gather_pool_4_sum>, #plan.feature<name = "fb", table = @b, kernel = @gather_pool_4_sum>] into %ring_ingest
      %ids = plan.check %batch on_bad_id "drop"
      %rows = plan.translate %ids in [@b]
      %unique_g4, %occurrences_g4 = plan.unique @g4 %rows features ["fa"] max 16 unique 16 into %ring_unique_g4
      %unique_g4_1, %occurrences_g4_1 = plan.unique @g4_1 %rows features ["fb"] max 8 unique 8 into %ring_unique_g4_1
      %pins_g4, %misses_g4, %victims_g4 = plan.probe @g4 %unique_g4 into %ring_probe_g4
      %spill_g4 = plan.spill @g4 %victims_g4 into %ring_writebuf_g4
      %store_g4 = plan.store @g4 %spill_g4 after(%carried)
      %fetch_g4 = plan.fetch @g4 %misses_g4 into %ring_staging_g4 after(%carried)
      %fill_g4 = plan.fill @g4 %pins_g4 from %fetch_g4
      %gather_pool_g4 = plan.gather_pool @g4 rows %fill_g4[%occurrences_g4] with @gather_pool_4_sum features ["fa"] into %ring_pooled_g4
      %gather_pool_g4_1 = plan.gather_pool @g4_1[%occurrences_g4_1] with @gather_pool_4_sum features ["fb"] into %ring_pooled_g4_1
      %call:2 = plan.call @fm(%batch, %gather_pool_g4, %gather_pool_g4_1) into %ring_grads -> !plan.buf, !plan.buf
      %handoff = plan.handoff(%call#0)
      %go = plan.resume after(%handoff)
      %preserve_g4 = plan.preserve @g4 rows %fill_g4[%occurrences_g4] after(%go)
      %preserve_g4_1 = plan.preserve @g4_1[%occurrences_g4_1] after(%go)
      %segment_update_g4 = plan.segment_update @g4 rows %fill_g4[%occurrences_g4] with @segment_update_4_rowwise_adagrad features ["fa"] grads(%call#0) after(%preserve_g4)
      %segment_update_g4_1 = plan.segment_update @g4_1[%occurrences_g4_1] with @segment_update_4_sgd features ["fb"] grads(%call#1) after(%preserve_g4_1)
      %unpin_g4 = plan.unpin @g4 %fill_g4 after(%segment_update_g4)
      plan.yield %store_g4 : !plan.token
    }
  }
}
