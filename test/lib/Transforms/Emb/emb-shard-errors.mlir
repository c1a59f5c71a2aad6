// RUN: terrace-opt %s --split-input-file --emb-shard --verify-diagnostics

// expected-error@+1 {{emb-shard needs plan.decision: run emb-decide first}}
module {
}

// -----

module attributes {plan.decision = #plan.decision<lookahead 0, tables [#plan.table<name = "a", home = "dram", shards = <row, [0, 1], [0, 50, 100]>>]>} {
  // expected-error@+1 {{only table-wise shards can be made, not #emb.shards<row, [0, 1], [0, 50, 100]>}}
  emb.table @a : !emb.state<[100, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
}
