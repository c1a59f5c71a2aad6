// The design's example of this level: parses, verifies and survives text and bytecode.
// RUN: terrace-opt %s --verify-roundtrip | FileCheck %s
// RUN: terrace-opt %s --emit-bytecode -o %t.bc && terrace-opt %t.bc | FileCheck %s
// CHECK: plan.unpin @g64 %fill_g64 after(%segment_update_g64) at(@host, 0)
// The same step, planned: `item` on NVMe behind a DRAM cache with lookahead 2, `user` resident.
module {
  plan.lane @host cpu                  // id bookkeeping, in batch order
  plan.lane @io   io depth 128         // completes out of order
  plan.lane @copy cpu                  // `stream` on a GPU; the schedule is unchanged
  plan.lane @work cpu                  // `stream` on a GPU
  emb.tier @dram dram bytes 2147483648
  emb.tier @nvme nvme bytes 68719476736 path "item.store"
  // retained: what the user asked to keep; slots: retained + overflow for the rows pinned in flight
  plan.group @g64 [@item] #plan.record<64 x f32, state 4, header 8, slot 260, store 272> home @nvme cache @dram retained 622592 slots 786432 policy "lfu"
  plan.group @g32 [@user] #plan.record<32 x f32, state 256, header 8, slot 384, store 400> home @dram
  plan.kernel @gp_64_f32 gather_pool <64 x f32>
  plan.kernel @gp_32_f32 gather_pool <32 x f32>
  plan.kernel @rwadagrad_64_f32 segment_update <64 x f32>
  plan.kernel @adam_32_f32 segment_update <32 x f32>
  plan.program @train worker 0 of 1 {
    %in   = plan.ring @dram bytes 733184   depth 4 offset 0
    %dd   = plan.ring @dram bytes 737280   depth 3 offset 2932736
    %x64r = plan.ring @dram bytes 1310720  depth 3 offset 5144576
    %x32r = plan.ring @dram bytes 32768    depth 3 offset 9076736
    %pl   = plan.ring @dram bytes 1310720  depth 3 offset 9175040
    %st   = plan.ring @dram bytes 41943040 depth 3 offset 13107200   // raw reads: the device blocks of the missing rows
    %wb   = plan.ring @dram bytes 22282240 depth 2 offset 138936320  // write buffer: records on their way out
    %p64  = plan.ring @dram bytes 1048576  depth 1 offset 183500800
    %e64  = plan.ring @dram bytes 1048576  depth 1 offset 184549376
    %p32  = plan.ring @dram bytes 262144   depth 1 offset 185597952
    %gr   = plan.ring @dram bytes 1310720  depth 1 offset 185860096
    plan.pipeline carry(%stored = 1) {
      %b         = plan.ingest into %in                            at(@host, 3)
      %ids       = plan.check %b on_bad_id "error"                 at(@host, 3)
      %d, %inv   = plan.dedup %ids ["clicked", "cart"] into %dd    at(@host, 2)
      %u64, %x64 = plan.unique @g64 %d max 81920 into %x64r        at(@host, 2)
      %u32, %x32 = plan.unique @g32 %ids max 2048 into %x32r       at(@host, 2)
      %pins, %miss, %vict = plan.probe @g64 %u64 into %pl          at(@host, 2)
      %out       = plan.spill @g64 %vict into %wb                  at(@copy, 2)   // the directory now points into the write buffer
      %put       = plan.store @g64 %out                            at(@io, 2)     // token: queued, rows readable from %wb; device completion only frees the ring slot
      %got       = plan.fetch @g64 %miss into %st after(%stored)   at(@io, 2)
      %rows      = plan.fill @g64 %pins from %got                  at(@copy, 0)
      %f64       = plan.gather_pool @g64 rows %rows[%x64] with @gp_64_f32 into %p64  at(@work, 0)
      %a64       = plan.expand %f64 by %inv into %e64              at(@work, 0)
      %a32       = plan.gather_pool @g32 [%x32] with @gp_32_f32 into %p32  at(@work, 0)
      %g64, %g32 = plan.call @logistic(%b, %a64, %a32) into %gr    at(@work, 0) -> !plan.buf, !plan.buf
      %t64       = plan.segment_update @g64 rows %rows[%x64] with @rwadagrad_64_f32 grads(%g64 by %inv)  at(@work, 0)
      %t32       = plan.segment_update @g32 [%x32] with @adam_32_f32 grads(%g32)  at(@work, 0)
      plan.unpin @g64 %rows after(%t64)                            at(@host, 0)
      plan.yield %put : !plan.token
    }
  }
}
