// Each rule of the attributes of plan, broken once.
// RUN: terrace-opt %s --split-input-file --verify-diagnostics
// expected-error @below {{unknown attribute 'plan.decison'}}
module attributes {plan.decison = 1} {}
// -----
// expected-error @below {{attribute 'plan.decision' must be #plan.decision<...>, not 1 : i64}}
module attributes {plan.decision = 1} {}
// -----
// expected-error @below {{attribute 'plan.decision' belongs on a module}}
func.func private @f() attributes {plan.decision = #plan.decision<lookahead 0, tables []>}
// -----
// expected-error @below {{a record has at least 1 column, not 0}}
module attributes {x = #plan.record<0 x f32, state 0, header 8, slot 16, store 24>} {}
// -----
// expected-error @below {{a record's columns are numbers, not '!emb.inverse<1>'}}
module attributes {x = #plan.record<4 x !emb.inverse<1>, state 0, header 8, slot 16, store 24>} {}
// -----
// expected-error @below {{state and header must not be negative, not -1 and 8}}
module attributes {x = #plan.record<4 x f32, state -1, header 8, slot 16, store 24>} {}
// -----
// expected-error @below {{a slot of 16 bytes cannot hold 16 bytes of weights and 4 of state}}
module attributes {x = #plan.record<4 x f32, state 4, header 8, slot 16, store 24>} {}
// -----
// expected-error @below {{a stored record of 24 bytes cannot hold 12 bytes of header, 16 of weights and 0 of state}}
module attributes {x = #plan.record<4 x f32, state 0, header 12, slot 16, store 24>} {}
// -----
// expected-error @below {{a kernel has at least 1 column, not 0}}
module attributes {x = #plan.kernel_config<0 x f32>} {}
// -----
// expected-error @below {{a kernel's columns are numbers, not '!emb.inverse<1>'}}
module attributes {x = #plan.kernel_config<1 x !emb.inverse<1>>} {}
// -----
// expected-error @below {{pooling max takes no weights}}
module attributes {x = #plan.kernel_config<1 x f32, max, weighted>} {}
// -----
// expected-error @below {{'fast' is neither a pooling nor an optimizer}}
module attributes {x = #plan.kernel_config<1 x f32, fast>} {}
// -----
// expected-error @below {{a feature needs a name}}
module attributes {x = #plan.feature<name = "", table = @t>} {}
// -----
// expected-error @below {{feature "a" needs max_ids of at least 1, not 0}}
module attributes {x = #plan.feature<name = "a", table = @t, max_ids = 0>} {}
// -----
// expected-error @below {{feature "a" has the negative output -1}}
module attributes {x = #plan.feature<name = "a", table = @t, output = -1>} {}
// -----
// expected-error @below {{feature "a": pooling none takes no weights}}
module attributes {x = #plan.feature<name = "a", table = @t, pooling = none, weights = "w">} {}
// -----
// expected-error @below {{a table's decision needs its name and home}}
module attributes {x = #plan.table<name = "", home = "a">} {}
// -----
// expected-error @below {{table "t": retained must not be negative, not -1}}
module attributes {x = #plan.table<name = "t", home = "a", cache = "b", retained = -1>} {}
// -----
// expected-error @below {{table "t": retained slots and a policy belong to a cache}}
module attributes {x = #plan.table<name = "t", home = "a", retained = 1>} {}
// -----
// expected-error @below {{table "t": cache and home are both "a"}}
module attributes {x = #plan.table<name = "t", home = "a", cache = "a">} {}
// -----
// expected-error @below {{lookahead must not be negative, not -1}}
module attributes {x = #plan.decision<lookahead -1, tables []>} {}
// -----
// expected-error @below {{table "t" is decided twice}}
module attributes {x = #plan.decision<lookahead 0, tables [#plan.table<name = "t", home = "a">, #plan.table<name = "t", home = "a">]>} {}
