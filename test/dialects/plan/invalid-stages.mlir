// Each rule of single stages, broken once.
// RUN: terrace-opt %s --split-input-file --verify-diagnostics
plan.lane @host cpu
plan.lane @io io depth 8
plan.lane @other cpu
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{a schedule is a lane and the batches ahead}}
    %b = "plan.ingest"(%r0) <{lane = @host}> : (!plan.ring) -> !plan.buf
  }
}
// -----
plan.lane @host cpu
plan.lane @io io depth 8
plan.lane @other cpu
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{runs at least 0 batches ahead, not -1}}
    %b = plan.ingest into %r0 at(@host, -1)
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{@host is not a plan.lane}}
    %b = plan.ingest into %r0 at(@host, 0)
  }
}
// -----
plan.lane @host cpu
plan.lane @io io depth 8
plan.lane @other cpu
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{cannot run on lane @io of kind io}}
    %b = plan.ingest into %r0 at(@io, 0)
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
    %p, %m, %v = plan.probe @g %u into %r2
    // expected-error @below {{cannot run on lane @host of kind cpu}}
    %f = plan.fetch @g %m into %r3 at(@host, 0)
    %s = plan.fill @g %p from %f
    %done = plan.unpin @g %s
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram role pooled bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{writes a ring of role ingest, but this one has role pooled}}
    %b = plan.ingest into %r0
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @h [@w] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram group @h bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{writes a ring of group @h, but works on @g}}
    %u, %x = plan.unique @g %b max 8 into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram group @g bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{writes a ring of group @g}}
    %b = plan.ingest into %r0
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{feature "a" stands twice}}
    %b = plan.ingest features [#plan.feature<name = "a", table = @t>, #plan.feature<name = "a", table = @t>] into %r0
  }
}
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{@x is not an emb.table}}
    %b = plan.ingest features [#plan.feature<name = "a", table = @x>] into %r0
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{on_bad_id must be "error" or "drop", not "skip"}}
    %c = plan.check %b on_bad_id "skip"
  }
}
// -----
module attributes {emb.on_bad_id = "drop"} {
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{on_bad_id is "error", but the module's is "drop"}}
    %c = plan.check %b on_bad_id "error"
  }
}
}
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{@x is not an emb.table}}
    %c = plan.translate %b in [@x]
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{a group is a list of features, not []}}
    %d, %i = plan.dedup %b [] into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{features are named by strings, not 1 : i64}}
    %d, %i = plan.dedup %b [1] into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{feature "a" is in two groups}}
    %d, %i = plan.dedup %b ["a"], ["a"] into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{has 1 groups but 2 names}}
    %d, %i = plan.dedup %b ["a"] names ["g", "h"] into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    // expected-error @below {{needs at least one buffer of ids}}
    %u, %x = "plan.unique"(%r0) <{group = @g, max = 8 : i64, operandSegmentSizes = array<i32: 0, 1, 0>}> : (!plan.ring) -> (!plan.buf, !plan.buf)
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{@g is not a plan.group}}
    %u, %x = plan.unique @g %b max 8 into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{max must be at least 1, not 0}}
    %u, %x = plan.unique @g %b max 0 into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{unique must lie in 1 .. max = 8, not 9}}
    %u, %x = plan.unique @g %b max 8 unique 9 into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @h [@w] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest features [#plan.feature<name = "a", table = @t>, #plan.feature<name = "w", table = @w, pooling = mean>] into %r0
    // expected-error @below {{feature "z" is not one that plan.ingest declares}}
    %u, %x = plan.unique @g %b features ["z"] max 8 into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @h [@w] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest features [#plan.feature<name = "a", table = @t>, #plan.feature<name = "w", table = @w, pooling = mean>] into %r0
    // expected-error @below {{feature "w" reads @w, which is not in group @g}}
    %u, %x = plan.unique @g %b features ["w"] max 8 into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{unique rows must come from plan.unique}}
    %p, %m, %v = plan.probe @g %b into %r1
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.group @h [@w] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{works on @h, but unique rows of @g}}
    %p, %m, %v = plan.probe @h %u into %r2
  }
}
// -----
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  %r3 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{group @g has no cache: its rows do not move}}
    %p, %m, %v = plan.probe @g %u into %r2
    %f = plan.fetch @g %m into %r3
    %s = plan.fill @g %p from %f
    %done = plan.unpin @g %s
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
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{group @g has a cache: needs the `rows` that plan.fill made ready}}
    %o = plan.gather_pool @g [%x] with @k into %r2
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
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{group @g has a cache: needs the `rows` that plan.fill made ready}}
    %t = plan.preserve @g [%x]
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{needs the occurrences of plan.unique, its second result}}
    %o = plan.gather_pool @g [%u] with @k into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{occurrences must come from plan.unique}}
    %o = plan.gather_pool @g [%b] with @k into %r1
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{@q is not a plan.kernel}}
    %o = plan.gather_pool @g [%x] with @q into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{needs a kernel of kind gather_pool, but @u is a segment_update}}
    %o = plan.gather_pool @g [%x] with @u into %r2
  }
}
// -----
plan.kernel @k gather_pool <5 x f32>
plan.kernel @u segment_update <5 x f32>
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{kernel @k is for 5 x 'f32', but the group's rows are 4 x 'f32'}}
    %o = plan.gather_pool @g [%x] with @k into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{has 1 features but 2 kernels: one for all, or one for each}}
    %o = plan.gather_pool @g [%x] with @k, @k features ["a"] into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @u segment_update <4 x f32>
emb.tier @dram dram bytes 64
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest features [#plan.feature<name = "a", table = @t>, #plan.feature<name = "w", table = @t, pooling = mean>] into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{feature "w" pools by mean without weights, but kernel @k by sum without weights}}
    %o = plan.gather_pool @g [%x] with @k, @k features ["a", "w"] into %r2
  }
}
// -----
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
    // expected-error @below {{needs gradients}}
    %t = "plan.segment_update"(%x) <{group = @g, kernel = @u, inverse_index = array<i32>, operandSegmentSizes = array<i32: 0, 1, 0, 0, 0>}> : (!plan.buf) -> !plan.token
  }
}
// -----
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
    // expected-error @below {{has 1 gradients, but 0 places of inverses}}
    %t = "plan.segment_update"(%x, %b) <{group = @g, kernel = @u, inverse_index = array<i32>, operandSegmentSizes = array<i32: 0, 1, 1, 0, 0>}> : (!plan.buf, !plan.buf) -> !plan.token
  }
}
// -----
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
    // expected-error @below {{inverses must be named once each, in order}}
    %t = "plan.segment_update"(%x, %b) <{group = @g, kernel = @u, inverse_index = array<i32: 3>, operandSegmentSizes = array<i32: 0, 1, 1, 0, 0>}> : (!plan.buf, !plan.buf) -> !plan.token
  }
}
// -----
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
    // expected-error @below {{has 1 inverses, but uses 0}}
    %t = "plan.segment_update"(%x, %b, %b) <{group = @g, kernel = @u, inverse_index = array<i32: -1>, operandSegmentSizes = array<i32: 0, 1, 1, 1, 0>}> : (!plan.buf, !plan.buf, !plan.buf) -> !plan.token
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{needs at least one pooled output}}
    %e = "plan.expand"(%b, %r1) <{operandSegmentSizes = array<i32: 0, 1, 1, 0>}> : (!plan.buf, !plan.ring) -> !plan.buf
  }
}
// -----
emb.tier @dram dram bytes 64
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{@c is not an emb.channel}}
    %e = plan.exchange @c(%b) into %r1 -> !plan.buf
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @d gather_pool <4 x f32, direct>
emb.tier @dram dram bytes 64
emb.tier @disk nvme bytes 64 path "x"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @c [@u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @disk cache @dram retained 0
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{reads rows by id, but kernel @k does not}}
    %o = plan.gather_pool @g direct [%x] with @k into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @d gather_pool <4 x f32, direct>
emb.tier @dram dram bytes 64
emb.tier @disk nvme bytes 64 path "x"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @c [@u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @disk cache @dram retained 0
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @g %b max 8 into %r1
    // expected-error @below {{reads rows by their slots, but kernel @d reads them by id}}
    %o = plan.gather_pool @g [%x] with @d into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @d gather_pool <4 x f32, direct>
emb.tier @dram dram bytes 64
emb.tier @disk nvme bytes 64 path "x"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @c [@u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @disk cache @dram retained 0
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %x = plan.touch @g %b
    // expected-error @below {{takes ids of plan.touch, which are no places of unique rows: needs `direct`}}
    %o = plan.gather_pool @g [%x] with @k into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @d gather_pool <4 x f32, direct>
emb.tier @dram dram bytes 64
emb.tier @disk nvme bytes 64 path "x"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @c [@u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @disk cache @dram retained 0
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    // expected-error @below {{group @c has a cache: its rows get their value in plan.fill}}
    %x = plan.touch @c %b
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @d gather_pool <4 x f32, direct>
emb.tier @dram dram bytes 64
emb.tier @disk nvme bytes 64 path "x"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @c [@u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @disk cache @dram retained 0
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %u, %x = plan.unique @c %b max 8 into %r1
    // expected-error @below {{is direct, but group @c has a cache: its rows lie in slots, not by their ids}}
    %o = plan.gather_pool @c direct [%x] with @d into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @d gather_pool <4 x f32, direct>
emb.tier @dram dram bytes 64
emb.tier @disk nvme bytes 64 path "x"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @c [@u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @disk cache @dram retained 0
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest features [#plan.feature<name = "a", table = @t, dedup = "d">] into %r0
    %u, %x = plan.unique @g %b features ["a"] max 8 into %r1
    // expected-error @below {{feature "a" is pooled per unique bag of "d", whose ids stand apart: it cannot be direct}}
    %o = plan.gather_pool @g direct [%x] with @d features ["a"] into %r2
  }
}
// -----
plan.kernel @k gather_pool <4 x f32>
plan.kernel @d gather_pool <4 x f32, direct>
emb.tier @dram dram bytes 64
emb.tier @disk nvme bytes 64 path "x"
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
plan.group @c [@u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @disk cache @dram retained 0
plan.program @p worker 0 of 1 {
  %r0 = plan.ring @dram bytes 1 depth 1
  %r1 = plan.ring @dram bytes 1 depth 1
  %r2 = plan.ring @dram bytes 1 depth 1
  plan.pipeline {
    %b = plan.ingest into %r0
    %x = plan.touch @g %b
    // expected-error @below {{occurrences must come from plan.unique}}
    %t = plan.segment_update @g [%x] with @k grads(%b)
  }
}
