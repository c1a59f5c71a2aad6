// Each rule of lanes, kernels, groups, rings and programs, broken once.
// RUN: terrace-opt %s --split-input-file --verify-diagnostics
// expected-error @below {{a lane of kind cpu takes no depth}}
plan.lane @l cpu depth 4
// -----
// expected-error @below {{depth must be at least 1, not 0}}
plan.lane @l io depth 0
// -----
// expected-error @below {{a gather_pool takes no optimizer, no decay, no clipping and no rounding}}
plan.kernel @k gather_pool <4 x f32, adam>
// -----
// expected-error @below {{a segment_update takes no pooling and no weights, and is never direct}}
plan.kernel @k segment_update <4 x f32, mean>
// -----
// expected-error @below {{needs at least one table}}
plan.group @g [] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// -----
// expected-error @below {{has @t twice}}
plan.group @g [@t, @t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// -----
// expected-error @below {{retained, slots, policy and miss belong to a cache}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram slots 4
// -----
// expected-error @below {{cache and home are both @dram}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram cache @dram
// -----
// expected-error @below {{slots must be at least 1, not 0}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram slots 0
// -----
// expected-error @below {{slots = 3 are fewer than retained = 4}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram retained 4 slots 3
// -----
// expected-error @below {{unique = 9 is more than occurrences = 8}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram occurrences 8 unique 9
// -----
// expected-error @below {{unique = 9 is more than rows = 8}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram rows 8 unique 9
// -----
// expected-error @below {{miss = 9 is more than unique = 8}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram unique 8 miss 9
// -----
// expected-error @below {{has 1 tables but 2 bases}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram bases [0, 1]
// -----
// expected-error @below {{the first base must be 0, not 1}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram bases [1]
// -----
// expected-error @below {{bases must rise, but 0 follows 0}}
plan.group @g [@t, @u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram bases [0, 0]
// -----
// expected-error @below {{home @dram is not an emb.tier}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// -----
emb.tier @nvme nvme bytes 64 path "f"
// expected-error @below {{home @nvme is of kind nvme: its rows cannot be used in place}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme
// -----
emb.tier @nvme nvme bytes 64 path "f"
// expected-error @below {{cache @dram is not an emb.tier}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
// -----
emb.tier @nvme nvme bytes 64 path "f"
emb.tier @dram nvme bytes 64 path "g"
// expected-error @below {{a cache lies in hbm or dram, but @dram is of kind nvme}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @nvme cache @dram
// -----
// A plan may stand apart from its model, but not next to half of it.
emb.tier @dram dram bytes 64
emb.table @u : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// expected-error @below {{@t is not an emb.table}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 5], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// expected-error @below {{its records are 4 x 'f32', but table @t has rows of 5 x 'f32'}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.adagrad<lr = 0.1, eps = 0.0> init #emb.constant<0.0>
// expected-error @below {{its records hold 0 bytes of optimizer state, but table @t needs 16}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.table @u : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.2> init #emb.constant<0.0>
// expected-error @below {{its tables share one kernel set, but @u has #emb.sgd<lr = 0.2> and @t has #emb.sgd<lr = 0.1>}}
plan.group @g [@t, @u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.table @u : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// expected-error @below {{rows of @t end at 10, but the next table begins at 9}}
plan.group @g [@t, @u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram bases [0, 9]
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
emb.table @u : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// expected-error @below {{rows of @u end at 20, but the group has 19}}
plan.group @g [@t, @u] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram rows 19 bases [0, 10]
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// expected-error @below {{@t is in group @g already}}
plan.group @h [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
// expected-error @below {{@k is not a plan.kernel}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram update @k
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
plan.kernel @k gather_pool <4 x f32>
// expected-error @below {{needs a kernel of kind segment_update, but @k is a gather_pool}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram update @k
// -----
emb.tier @dram dram bytes 64
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
plan.kernel @k segment_update <5 x f32>
// expected-error @below {{kernel @k is for 5 x 'f32', but the group's rows are 4 x 'f32'}}
plan.group @g [@t] #plan.record<4 x f32, state 0, header 8, slot 16, store 24> home @dram update @k
// -----
// expected-error @below {{worker 1 is not one of 1}}
plan.program @p worker 1 of 1 {
  plan.pipeline {
  }
}
// -----
// expected-error @below {{batch must be at least 1, not 0}}
plan.program @p worker 0 of 1 batch 0 {
  plan.pipeline {
  }
}
// -----
// expected-error @below {{has one pipeline, not 0}}
plan.program @p worker 0 of 1 {
}
// -----
// expected-error @below {{has one pipeline, not 2}}
plan.program @p worker 0 of 1 {
  plan.pipeline {
  }
  plan.pipeline {
  }
}
// -----
plan.program @p worker 0 of 1 {
  // expected-error @below {{does not belong into a program}}
%c = arith.constant 0 : index
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 {
  // expected-error @below {{bytes must be at least 1, not 0}}
%r = plan.ring @dram bytes 0 depth 1
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 {
  // expected-error @below {{depth must be at least 1, not 0}}
%r = plan.ring @dram bytes 1 depth 0
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 {
  // expected-error @below {{offset must be at least 0, not -1}}
%r = plan.ring @dram bytes 1 depth 1 offset -1
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 {
  // expected-error @below {{chunks must be at least 1, not 0}}
%r = plan.ring @dram bytes 1 depth 1 chunks 0
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 {
  // expected-error @below {{only a staging ring takes chunks, not role pooled}}
%r = plan.ring @dram role pooled bytes 1 depth 1 chunks 2
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 arena 64 {
  // expected-error @below {{ends at byte 65, but the arena has 64}}
%r = plan.ring @dram bytes 32 depth 2 offset 1
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 {
  // expected-error @below {{@x is not an emb.tier}}
%r = plan.ring @x bytes 1 depth 1
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 {
  // expected-error @below {{a ring lies in memory, but @nvme is of kind nvme}}
%r = plan.ring @nvme bytes 1 depth 1
  plan.pipeline {
  }
}
// -----
emb.tier @dram dram bytes 64
emb.tier @nvme nvme bytes 64 path "f"
plan.program @p worker 0 of 1 {
  // expected-error @below {{@g is not a plan.group}}
%r = plan.ring @dram group @g bytes 1 depth 1
  plan.pipeline {
  }
}
