// RUN: terrace-opt %s --split-input-file --plan-schedule-prefetch --verify-diagnostics

// A lookahead outside what the executor runs.
emb.tier @dram dram bytes 64
plan.lane @host cpu
// expected-error @below {{lookahead 9 (program) is outside 0 .. 8}}
plan.program @p worker 0 of 1 batch 8 max_ids 8 lookahead 9 {
  %r = plan.ring @dram role ingest bytes 64 depth 1
  plan.pipeline {
    %b = plan.ingest into %r
  }
}

// -----

// Lanes go by name.
emb.tier @dram dram bytes 64
plan.lane @somewhere cpu
// expected-error @below {{needs the lanes host, io, copy, work and caller that emb-to-plan makes}}
plan.program @p worker 0 of 1 batch 8 max_ids 8 lookahead 1 {
  %r = plan.ring @dram role ingest bytes 64 depth 1
  plan.pipeline {
    %b = plan.ingest into %r
  }
}
