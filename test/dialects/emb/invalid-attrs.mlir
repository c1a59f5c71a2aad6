// Each rule of the attributes and types of emb, broken once.
// RUN: terrace-opt %s --split-input-file --verify-diagnostics
// expected-error @below {{attribute 'emb.machine' must be #emb.machine<...>, not 3 : i64}}
module attributes {emb.machine = 3 : i64} {}
// -----
// expected-error @below {{attribute 'emb.numerics' must be "strict" or "reassociate", not "fast"}}
module attributes {emb.numerics = "fast"} {}
// -----
// expected-error @below {{attribute 'emb.on_bad_id' must be "error" or "drop", not "skip"}}
module attributes {emb.on_bad_id = "skip"} {}
// -----
// expected-error @below {{attribute 'emb.on_bad_grad' must be "error" or "skip", not 1 : i64}}
module attributes {emb.on_bad_grad = 1 : i64} {}
// -----
// expected-error @below {{attribute 'emb.seed' must be an i64, not "7"}}
module attributes {emb.seed = "7"} {}
// -----
// expected-error @below {{attribute 'emb.model' must be a string, not 1 : i64}}
module attributes {emb.model = 1 : i64} {}
// -----
// expected-error @below {{unknown attribute 'emb.modle'}}
module attributes {emb.modle = "m"} {}
// -----
// expected-error @below {{attribute 'emb.seed' belongs on a module}}
func.func private @f() attributes {emb.seed = 1 : i64}
// -----
// expected-error @below {{a machine needs at least 1 core, not 0}}
module attributes {emb.machine = #emb.machine<cpu "x86-64-v3", cores 0>} {}
// -----
// expected-error @below {{a machine needs the name of its cpu}}
module attributes {emb.machine = #emb.machine<cpu "", cores 1>} {}
// -----
// expected-error @below {{figures of 'nvme' must be a dictionary, not 1.000000e+00 : f64}}
module attributes {emb.machine = #emb.machine<cpu "x", cores 1 figures {nvme = 1.0}>} {}
// -----
// expected-error @below {{figure 'nvme.iops' must be an f64, not 5 : i64}}
module attributes {emb.machine = #emb.machine<cpu "x", cores 1 figures {nvme = {iops = 5 : i64}}>} {}
// -----
// expected-error @below {{rows of 'f32' take no scale}}
module attributes {x = #emb.row<f32, scale f16>} {}
// -----
// expected-error @below {{rows of 'f32' are not rounded stochastically}}
module attributes {x = #emb.row<f32, stochastic>} {}
// -----
// expected-error @below {{rows of 'i8' are not rounded stochastically}}
module attributes {x = #emb.row<i8, scale f16, stochastic>} {}
// -----
// expected-error @below {{scale and bias are of one type, not 'f16' and 'f32'}}
module attributes {x = #emb.row<i8, scale f16, bias f32>} {}
// -----
// expected-error @below {{rows of 'f16' take no bias}}
module attributes {x = #emb.row<f16, bias f16>} {}
// -----
// expected-error @below {{rows of 'i8' need a scale of f16 or f32}}
module attributes {x = #emb.row<i8>} {}
// -----
// expected-error @below {{rows are stored as f32, f16, bf16, i8 or i4, not 'f64'}}
module attributes {x = #emb.row<f64>} {}
// -----
// expected-error @below {{lr must be finite and not negative, not -1}}
module attributes {x = #emb.sgd<lr = -1.0>} {}
// -----
// expected-error @below {{eps must be finite and not negative, not -1}}
module attributes {x = #emb.adagrad<lr = 1.0, eps = -1.0>} {}
// -----
// expected-error @below {{weight_decay must be finite and not negative, not -1}}
module attributes {x = #emb.rowwise_adagrad<lr = 1.0, eps = 0.0, weight_decay = -1.0>} {}
// -----
// expected-error @below {{beta1 and beta2 must lie in [0, 1), not 1}}
module attributes {x = #emb.adam<lr = 1.0, beta1 = 0.9, beta2 = 1.0, eps = 0.0>} {}
// -----
// expected-error @below {{decoupled_decay must be finite and not negative, not -1}}
module attributes {x = #emb.adam<lr = 1.0, beta1 = 0.9, beta2 = 0.9, eps = 0.0, decoupled_decay = -1.0>} {}
// -----
// expected-error @below {{clip_norm must be finite and not negative, not -2}}
module attributes {x = #emb.lamb<lr = 1.0, beta1 = 0.9, beta2 = 0.9, eps = 0.0, clip_norm = -2.0>} {}
// -----
// expected-error @below {{momentum must lie in [0, 1), not 1}}
module attributes {x = #emb.momentum_sgd<lr = 1.0, momentum = 1.0>} {}
// -----
// expected-error @below {{beta1 and beta2 must lie in [0, 1), not -1}}
module attributes {x = #emb.partial_rowwise_adam<lr = 1.0, beta1 = -1.0, beta2 = 0.9, eps = 0.0>} {}
// -----
// expected-error @below {{lr of ftrl must be above 0, not 0}}
module attributes {x = #emb.ftrl<lr = 0.0, beta = 1.0>} {}
// -----
// expected-error @below {{l1 must be finite and not negative, not -1}}
module attributes {x = #emb.ftrl<lr = 0.1, beta = 1.0, l1 = -1.0>} {}
// -----
// expected-error @below {{uniform needs finite low <= high, not 1}}
module attributes {x = #emb.uniform<1.0, 0.0>} {}
// -----
// expected-error @below {{normal needs a finite mean and a deviation >= 0, not 0}}
module attributes {x = #emb.normal<0.0, -1.0>} {}
// -----
// expected-error @below {{constant must be finite, not INF}}
module attributes {x = #emb.constant<0x7FF0000000000000>} {}
// -----
// expected-error @below {{shards need at least one worker}}
module attributes {x = #emb.shards<replicated, []>} {}
// -----
// expected-error @below {{worker -1 is negative}}
module attributes {x = #emb.shards<table, [-1]>} {}
// -----
// expected-error @below {{a table shard has one worker, not 2}}
module attributes {x = #emb.shards<table, [0, 1]>} {}
// -----
// expected-error @below {{table shards take no cuts}}
module attributes {x = #emb.shards<table, [0], [0, 1]>} {}
// -----
// expected-error @below {{2 pieces need 3 cuts, not 2}}
module attributes {x = #emb.shards<row, [0, 1], [0, 1]>} {}
// -----
// expected-error @below {{the first cut must be 0, not 1}}
module attributes {x = #emb.shards<row, [0], [1, 2]>} {}
// -----
// expected-error @below {{cuts must rise, but 2 follows 2}}
module attributes {x = #emb.shards<column, [0, 1], [0, 2, 2]>} {}
// -----
// expected-error @below {{retained must not be negative, not -1}}
module attributes {x = #emb.placement<home = @a, cache = @b, retained = -1>} {}
// -----
// expected-error @below {{retained slots and a policy belong to a cache}}
module attributes {x = #emb.placement<home = @a, policy = "lru">} {}
// -----
// expected-error @below {{cache and home are both @a}}
module attributes {x = #emb.placement<home = @a, cache = @a>} {}
// -----
// expected-error @below {{counts must not be negative, not -1}}
module attributes {x = #emb.profile<batches = -1>} {}
// -----
// expected-error @below {{means must be finite and not negative, not -1}}
module attributes {x = #emb.profile<ids = -1.0>} {}
// -----
// expected-error @below {{the miss-ratio curve has 2 sizes but 1 ratios}}
module attributes {x = #emb.profile<cache_rows = [1, 2], miss_ratio = [0.5]>} {}
// -----
// expected-error @below {{sizes of the miss-ratio curve must rise, but 1 follows 2}}
module attributes {x = #emb.profile<cache_rows = [2, 1], miss_ratio = [0.5, 0.5]>} {}
// -----
// expected-error @below {{a miss ratio must lie in [0, 1], not 2}}
module attributes {x = #emb.profile<cache_rows = [2], miss_ratio = [2.0]>} {}
// -----
// expected-error @below {{the batch bound must be at least 1, not 0}}
module attributes {x = !emb.bags<0, max 1 x i64, raw>} {}
// -----
// expected-error @below {{the bound of ids must be at least 1, not 0}}
module attributes {x = !emb.bags<1, max 0 x i64, raw>} {}
// -----
// expected-error @below {{ids are i64, not 'i32'}}
module attributes {x = !emb.bags<1, max 1 x i32, raw>} {}
// -----
// expected-error @below {{ids are `raw` or `checked`, not `cooked`}}
module attributes {x = !emb.bags<1, max 1 x i64, cooked>} {}
// -----
// expected-error @below {{the batch bound must be at least 1, not 0}}
module attributes {x = !emb.inverse<0>} {}
// -----
// expected-error @below {{a table has 1 to 2^40 rows, not 0}}
module attributes {x = !emb.state<[0, 1], #emb.row<f32>>} {}
// -----
// expected-error @below {{a row has 1 to 65536 columns, not 0}}
module attributes {x = !emb.state<[1, 0], #emb.row<f32>>} {}
