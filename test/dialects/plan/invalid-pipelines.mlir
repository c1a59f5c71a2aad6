// Each rule of a whole pipeline, broken once.
// RUN: terrace-opt %s --split-input-file --verify-diagnostics
plan.program @p worker 0 of 1 {
  // expected-error @below {{a value is carried at least 1 batch, not 0}}
  plan.pipeline carry(%c = 0) {
    plan.yield %c : !plan.token
  }
}
// -----
plan.program @p worker 0 of 1 {
  // expected-error @below {{has 0 carried values but 1 distances}}
  "plan.pipeline"() <{distances = array<i64: 1>}> ({
    plan.yield
  }) : () -> ()
}
// -----
plan.program @p worker 0 of 1 {
  // expected-error @below {{carries tokens, not '!plan.buf'}}
  "plan.pipeline"() <{distances = array<i64: 1>}> ({
  ^bb0(%c: !plan.buf):
    plan.yield
  }) : () -> ()
}
// -----
plan.program @p worker 0 of 1 {
  // expected-error @below {{carries 1 values, but yields 0}}
  plan.pipeline carry(%c = 1) {
    plan.yield
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{is not a stage: a pipeline holds stages only}}
    %c = arith.constant 0 : index
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-note @below {{the first is here}}
    %b = plan.ingest into %r0
    // expected-error @below {{writes a ring that another stage writes}}
    %d, %i = plan.dedup %b ["a"] into %r0
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  // expected-error @below {{a batch is ingested, checked, handed off and resumed at most once each}}
  plan.pipeline {
    %b = plan.ingest into %r0
    %c = plan.ingest into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{needs a plan.handoff before it}}
    %g = plan.resume
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-note @below {{the first is here}}
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{a pipeline has one for group @g}}
    %v, %y = plan.unique @g %b max 8 into %r2
  }
}
// -----
// One update per group and batch: every row meets its optimizer once.
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-note @below {{the first is here}}
    %t = plan.segment_update @g[%x] with @u grads(%b)
    // expected-error @below {{a pipeline has one for group @g}}
    %w = plan.segment_update @g[%x] with @u grads(%b)
  }
}
// -----
// One probe, fetch, fill and unpin per pin set.
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{pins rows of @g, but there is no plan.fetch for those that miss}}
    %p, %m, %v = plan.probe @g %u into %r2
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{pins rows of @g, but there is no plan.fill to make them ready}}
    %p, %m, %v = plan.probe @g %u into %r2
    %f = plan.fetch @g %m into %r3
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{pins rows of @g, but there is no plan.unpin to let them go}}
    %p, %m, %v = plan.probe @g %u into %r2
    %f = plan.fetch @g %m into %r3
    %s = plan.fill @g %p from %f
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    %p, %m, %v = plan.probe @g %u into %r2
    %f = plan.fetch @g %m into %r3
    // expected-note @below {{the first is here}}
    %s = plan.fill @g %p from %f
    // expected-error @below {{a pipeline has one for group @g}}
    %z = plan.fill @g %p from %f
    %done = plan.unpin @g %s
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    %p, %m, %v = plan.probe @g %u into %r2
    %f = plan.fetch @g %m into %r3
    %s = plan.fill @g %p from %f
    // expected-note @below {{the first is here}}
    %done = plan.unpin @g %s
    // expected-error @below {{a pipeline has one for group @g}}
    %again = plan.unpin @g %s
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{pins rows of @g, but there is no plan.spill and plan.store: updates of its victims would be lost}}
    %p, %m, %v = plan.probe @g %u into %r2
    %f = plan.fetch @g %m into %r3
    %s = plan.fill @g %p from %f
    %t = plan.segment_update @g rows %s[%x] with @u grads(%b)
    %done = plan.unpin @g %s
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  %r4 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{pins rows of @g, but there is no plan.store for what plan.spill copies out}}
    %p, %m, %v = plan.probe @g %u into %r2
    %f = plan.fetch @g %m into %r3
    %s = plan.fill @g %p from %f
    %o = plan.spill @g %v into %r4
    %done = plan.unpin @g %s
  }
}
// -----
plan.lane @host cpu
plan.lane @io io depth 8
plan.lane @other cpu
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    %p, %m, %v = plan.probe @g %u into %r2 at(@host, 1)
    %f = plan.fetch @g %m into %r3
    %s = plan.fill @g %p from %f
    // expected-error @below {{runs on @other, but plan.probe of the group on @host: both edit the directory and need one lane}}
    %done = plan.unpin @g %s at(@other, 0)
  }
}
// -----
// Complete.
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  %r4 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    %p, %m, %v = plan.probe @g %u into %r2
    %f = plan.fetch @g %m into %r3
    %s = plan.fill @g %p from %f
    %o = plan.spill @g %v into %r4
    %w = plan.store @g %o
    %t = plan.segment_update @g rows %s[%x] with @u grads(%b)
    %done = plan.unpin @g %s after(%t)
  }
}
