// Every op, type and attribute of plan survives text and bytecode.
// RUN: terrace-opt %s | FileCheck %s
// RUN: terrace-opt %s --verify-roundtrip -o /dev/null
// RUN: terrace-opt %s --emit-bytecode -o %t.bc && terrace-opt %t.bc | FileCheck %s
// Attributes have an encoding; without one their text would be in the file.
// RUN: not grep -a -e "record<" -e "feature<" -e "decision<" -e "kernel_config<" %t.bc

// CHECK: plan.decision = #plan.decision<lookahead 2, tables [#plan.table<name = "item", home = "disk", cache = "dram", retained = 16, policy = "lru", shards = <table, [0]>>, #plan.table<name = "user", home = "dram">]>
module attributes {plan.decision = #plan.decision<lookahead 2, tables [
    #plan.table<name = "item", home = "disk", cache = "dram", retained = 16, policy = "lru", shards = <table, [0]>>,
    #plan.table<name = "user", home = "dram">]>} {
  // CHECK: plan.lane @host cpu
  plan.lane @host cpu
  // CHECK: plan.lane @io io depth 128
  plan.lane @io io depth 128
  // CHECK: plan.lane @work stream
  plan.lane @work stream
  // CHECK: plan.lane @caller caller
  plan.lane @caller caller
  emb.tier @dram dram bytes 65536
  emb.tier @disk nvme bytes 65536 path "item.store"
  emb.table @item : !emb.state<[100, 4], #emb.row<f32>> ids index optimizer #emb.adam<lr = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.5> init #emb.constant<0.0>
  emb.table @user : !emb.state<[10, 4], #emb.row<f32>> ids hash optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.channel @ids to_owner items ["x"] owners [0] workers 2
  // CHECK: plan.group @g [@item] #plan.record<4 x f32, state 32, header 8, slot 48, store 64> home @disk cache @dram retained 16 slots 64 policy "lru" rows 100 bases [0] occurrences 32 unique 30 miss 20 update @up
  plan.group @g [@item] #plan.record<4 x f32, state 32, header 8, slot 48, store 64> home @disk cache @dram retained 16 slots 64 policy "lru" rows 100 bases [0] occurrences 32 unique 30 miss 20 update @up
  // CHECK: plan.group @m [@user] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @dram
  plan.group @m [@user] #plan.record<4 x f32, state 0, header 8, slot 16, store 32> home @dram
  // CHECK: plan.kernel @sum gather_pool <4 x f32>
  plan.kernel @sum gather_pool <4 x f32>
  // CHECK: plan.kernel @mean gather_pool <4 x f32, mean, weighted>
  plan.kernel @mean gather_pool <4 x f32, mean, weighted>
  // CHECK: plan.kernel @byid gather_pool <4 x f32, direct>
  plan.kernel @byid gather_pool <4 x f32, direct>
  // CHECK: plan.kernel @up segment_update <4 x f32, adam, decay>
  plan.kernel @up segment_update <4 x f32, adam, decay>
  plan.kernel @sgd segment_update <4 x f32>

  // CHECK: plan.program @train worker 0 of 1 batch 8 max_ids 64 lookahead 2 arena 1048576 {
  plan.program @train worker 0 of 1 batch 8 max_ids 64 lookahead 2 arena 1048576 {
    // CHECK: plan.ring @dram role ingest bytes 1024 depth 4 offset 64
    %in = plan.ring @dram role ingest bytes 1024 depth 4 offset 64
    %dd = plan.ring @dram role dedup bytes 64 depth 3
    %ug = plan.ring @dram role unique group @g bytes 64 depth 3
    %um = plan.ring @dram role unique group @m bytes 64 depth 3
    %pl = plan.ring @dram role probe bytes 64 depth 3
    // CHECK: %ring_staging_g = plan.ring @dram role staging group @g bytes 64 depth 3 chunks 4
    %st = plan.ring @dram role staging group @g bytes 64 depth 3 chunks 4
    %wb = plan.ring @dram role writebuf bytes 64 depth 2
    %pg = plan.ring @dram role pooled bytes 64 depth 1
    %pm = plan.ring @dram role pooled bytes 64 depth 1
    %pd = plan.ring @dram role pooled bytes 64 depth 1
    %pt = plan.ring @dram role pooled bytes 64 depth 1
    %ex = plan.ring @dram role expanded bytes 64 depth 1
    %gr = plan.ring @dram role grads bytes 64 depth 1
    %rd = plan.ring @dram role grads bytes 64 depth 1
    %cp = plan.ring @dram role copy bytes 64 depth 1
    %xr = plan.ring @dram role exchange bytes 64 depth 1
    // CHECK: plan.pipeline carry(%[[STORED:.*]] = 1, %{{.*}} = 3) {
    plan.pipeline carry(%stored = 1, %old = 3) {
      // CHECK: plan.ingest features [#plan.feature<name = "a", table = @item, max_ids = 4, column = "c", overflow = keep_last, string_ids = true, dedup = "g", kernel = @sum>,
      // CHECK-SAME: #plan.feature<name = "b", table = @item, pooling = mean, weights = "w", kernel = @mean, output = 1>,
      // CHECK-SAME: #plan.feature<name = "u", table = @user>] into %{{.*}} at(@host, 3)
      %b = plan.ingest features [#plan.feature<name = "a", table = @item, max_ids = 4, column = "c", overflow = keep_last, string_ids = true, dedup = "g", kernel = @sum>,
        #plan.feature<name = "b", table = @item, pooling = mean, weights = "w", kernel = @mean, output = 1>, #plan.feature<name = "u", table = @user>] into %in at(@host, 3)
      // CHECK: plan.check %{{.*}} on_bad_id "error" at(@host, 3)
      %c = plan.check %b on_bad_id "error" at(@host, 3)
      // CHECK: plan.translate %{{.*}} in [@user] at(@host, 3)
      %r = plan.translate %c in [@user] at(@host, 3)
      // CHECK: plan.exchange @ids(%{{.*}}) into %{{.*}} at(@io, 2) -> !plan.buf
      %x = plan.exchange @ids(%r) into %xr at(@io, 2) -> !plan.buf
      // CHECK: plan.dedup %{{.*}} ["a"], ["b"] names ["g", "h"] into %{{.*}} at(@host, 2)
      %d, %inv = plan.dedup %x ["a"], ["b"] names ["g", "h"] into %dd at(@host, 2)
      // CHECK: plan.unique @g %{{.*}}, %{{.*}} features ["a", "b"] max 32 unique 30 into %{{.*}} at(@host, 2)
      %ur, %uo = plan.unique @g %d, %x features ["a", "b"] max 32 unique 30 into %ug at(@host, 2)
      %mr, %mo = plan.unique @m %x max 8 into %um at(@host, 2)
      // CHECK: plan.probe @g %{{.*}} into %{{.*}} at(@host, 2)
      %pins, %miss, %vict = plan.probe @g %ur into %pl at(@host, 2)
      // CHECK: plan.spill @g %{{.*}} into %{{.*}} at(@work, 2)
      %out = plan.spill @g %vict into %wb at(@work, 2)
      // CHECK: plan.store @g %{{.*}} at(@io, 2)
      %put = plan.store @g %out at(@io, 2)
      // Tokens need no type in `after`, other values do.
      // CHECK: plan.fetch @g %{{.*}} into %{{.*}} after(%[[STORED]], %{{.*}} : !plan.buf) at(@io, 2)
      %got = plan.fetch @g %miss into %st after(%stored, %out : !plan.buf) at(@io, 2)
      // CHECK: %fill_g = plan.fill @g %pins_g from %fetch_g at(@work, 0)
      %rows = plan.fill @g %pins from %got at(@work, 0)
      // CHECK: plan.gather_pool @g rows %{{.*}}[%{{.*}}] with @sum, @mean features ["a", "b"] into %{{.*}} at(@work, 0)
      %f = plan.gather_pool @g rows %rows[%uo] with @sum, @mean features ["a", "b"] into %pg at(@work, 0)
      // CHECK: plan.gather_pool @m[%{{.*}}] with @sum into
      %m = plan.gather_pool @m [%mo] with @sum into %pm at(@work, 0)
      // CHECK: plan.gather_pool @m direct[%{{.*}}] with @byid into
      %md = plan.gather_pool @m direct [%mo] with @byid into %pd at(@work, 0)
      // CHECK: %[[TOUCHED:.*]] = plan.touch @m %{{.*}} features ["u"] at(@host, 2)
      %mt = plan.touch @m %x features ["u"] at(@host, 2)
      // CHECK: plan.gather_pool @m direct[%[[TOUCHED]]] with @byid features ["u"] into
      %mu = plan.gather_pool @m direct [%mt] with @byid features ["u"] into %pt at(@work, 0)
      // CHECK: plan.expand %{{.*}} by %{{.*}} features ["a", "b"] into
      %e = plan.expand %f by %inv features ["a", "b"] into %ex at(@work, 0)
      // CHECK: plan.copy %{{.*}} into
      %cc = plan.copy %e into %cp
      // CHECK: plan.call @fm(%{{.*}}, %{{.*}}, %{{.*}}) into %{{.*}} at(@work, 0) -> !plan.buf, !plan.buf
      %g0, %g1 = plan.call @fm(%b, %cc, %m) into %gr at(@work, 0) -> !plan.buf, !plan.buf
      // CHECK: plan.handoff(%{{.*}}) at(@caller, 0)
      %h = plan.handoff(%g0) at(@caller, 0)
      // CHECK: plan.resume after(%{{.*}}) at(@caller, 0)
      %go = plan.resume after(%h) at(@caller, 0)
      // CHECK: plan.reduce %{{.*}} by %{{.*}} into
      %s = plan.reduce %g0 by %inv into %rd after(%go) at(@work, 0)
      // CHECK: plan.preserve @g rows %{{.*}}[%{{.*}}] after(%{{.*}}) at(@work, 0)
      %kept = plan.preserve @g rows %rows[%uo] after(%go) at(@work, 0)
      // CHECK: plan.preserve @m[%{{.*}}] after
      %keptm = plan.preserve @m [%mo] after(%go) at(@work, 0)
      // CHECK: plan.segment_update @g rows %{{.*}}[%{{.*}}] with @up features ["a", "b"] grads(%{{.*}}, %{{.*}} by %{{.*}}) after(%{{.*}}) at(@work, 0)
      %t = plan.segment_update @g rows %rows[%uo] with @up features ["a", "b"] grads(%s, %g1 by %inv) after(%kept) at(@work, 0)
      // CHECK: plan.segment_update @m[%{{.*}}] with @sgd grads(%{{.*}}) after
      %tm = plan.segment_update @m [%mo] with @sgd grads(%g1) after(%keptm) at(@work, 0)
      // CHECK: plan.unpin @g %{{.*}} after(%{{.*}}) at(@host, 0)
      %done = plan.unpin @g %rows after(%t) at(@host, 0)
      // CHECK: plan.yield %{{.*}}, %{{.*}} : !plan.token, !plan.token
      plan.yield %put, %tm : !plan.token, !plan.token
    }
  }
  // Unscheduled and without carries; a trainer's gradients come through plan.resume.
  // CHECK: plan.program @library
  plan.program @library worker 0 of 1 {
    %in = plan.ring @dram bytes 1 depth 1
    %gr = plan.ring @dram bytes 1 depth 1
    // CHECK: plan.pipeline {
    // CHECK-NOT: plan.yield
    plan.pipeline {
      %b = plan.ingest into %in
      %h = plan.handoff(%b)
      // CHECK: plan.resume into %{{.*}} after(%{{.*}}) -> !plan.buf, !plan.buf
      %go, %g:2 = plan.resume into %gr after(%h) -> !plan.buf, !plan.buf
    }
  }
}
