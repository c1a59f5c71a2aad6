// RUN: terrace-opt %s --split-input-file --emb-place --verify-diagnostics

// expected-error@+1 {{emb-place needs plan.decision: run emb-decide first}}
module {
}

// -----

module attributes {plan.decision = #plan.decision<lookahead 0, tables [#plan.table<name = "c", home = "dram">]>} {
  emb.tier @dram dram bytes 16777216
  // expected-error@+1 {{plan.decision says nothing about table 'd'; run emb-decide again}}
  emb.table @d : !emb.state<[100, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
}

// -----

module attributes {plan.decision = #plan.decision<lookahead 0, tables [#plan.table<name = "c", home = "tape">]>} {
  emb.tier @dram dram bytes 16777216
  // expected-error@+1 {{plan.decision puts table 'c' in tier 'tape', and the module has no such tier}}
  emb.table @c : !emb.state<[100, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
}
