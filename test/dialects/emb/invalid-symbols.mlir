// Each rule of tiers, tables and channels, broken once.
// RUN: terrace-opt %s --split-input-file --verify-diagnostics
// expected-error @below {{needs at least 1 byte, not 0}}
emb.tier @t dram bytes 0
// -----
// expected-error @below {{a tier of kind dram takes no path}}
emb.tier @t dram bytes 1 path "a"
// -----
// expected-error @below {{a tier of kind hbm takes no drive_writes_per_day}}
emb.tier @t hbm bytes 1 drive_writes_per_day 1.0
// -----
// expected-error @below {{warn_of_wear needs drive_writes_per_day}}
emb.tier @t nvme bytes 1 path "a" warn_of_wear
// -----
// expected-error @below {{drive_writes_per_day must be positive, not -1}}
emb.tier @t nvme bytes 1 path "a" drive_writes_per_day -1.0
// -----
// expected-error @below {{shards end at 9, but the table has 10 rows}}
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> shards #emb.shards<row, [0, 1], [0, 5, 9]>
// -----
// expected-error @below {{shards end at 3, but the table has 4 columns}}
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> shards #emb.shards<column, [0], [0, 3]>
// -----
// Row-wise Adagrad sums over all columns: `strict` refuses to cut them.
// expected-error @below {{optimizer rowwise_adagrad needs whole rows: column shards would re-associate its sum}}
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 0.0> init #emb.constant<0.0> shards #emb.shards<column, [0, 1], [0, 2, 4]>
// -----
// The norm of a gradient that is clipped is such a sum too.
// expected-error @below {{optimizer sgd needs whole rows: column shards would re-associate its sum}}
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1, clip_norm = 1.0> init #emb.constant<0.0> shards #emb.shards<column, [0, 1], [0, 2, 4]>
// -----
// expected-error @below {{home @nvme is not an emb.tier}}
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @nvme>
// -----
emb.tier @nvme nvme bytes 1 path "a"
// expected-error @below {{home @nvme is of kind nvme: its rows cannot be used in place}}
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @nvme>
// -----
emb.tier @nvme nvme bytes 1 path "a"
// expected-error @below {{cache @dram is not an emb.tier}}
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @nvme, cache = @dram>
// -----
emb.tier @nvme nvme bytes 1 path "a"
emb.tier @slow nvme bytes 1 path "b"
// expected-error @below {{a cache lies in hbm or dram, but @slow is of kind nvme}}
emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0> placement #emb.placement<home = @nvme, cache = @slow>
// -----
// expected-error @below {{joins at least 2 workers, not 1}}
emb.channel @c to_owner items ["a"] owners [0] workers 1
// -----
// expected-error @below {{has 1 items but 2 owners}}
emb.channel @c to_owner items ["a"] owners [0, 1] workers 2
// -----
// expected-error @below {{owner 2 is not one of 2 workers}}
emb.channel @c to_owner items ["a"] owners [2] workers 2
// -----
emb.channel @c to_owner items ["a"] owners [0] workers 2
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  %b = emb.exchange @d(%a) : (tensor<4xf32>) -> tensor<8xf32>
}
emb.step @r batch 8 max_ids 8 worker 1 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  // expected-error @below {{@d is not an emb.channel}}
  emb.exchange @d(%a) : (tensor<4xf32>) -> ()
}
// -----
emb.channel @c to_owner items ["a"] owners [0] workers 2
emb.step @s batch 8 max_ids 8 worker 0 of 1 {
  %a = emb.feature "a" : tensor<8xf32>
  // expected-error @below {{channel @c joins 2 workers, but the step is one of 1}}
  %b = emb.exchange @c(%a) : (tensor<8xf32>) -> tensor<8xf32>
}
// -----
emb.channel @c to_owner items ["a", "b"] owners [0, 1] workers 2
// expected-error @below {{channel @c is used by 1 programs of 2}}
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  %b = emb.exchange @c(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
}
// -----
emb.channel @c to_owner items ["a", "b"] owners [0, 1] workers 2
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  %b = emb.exchange @c(%a) : (tensor<4xf32>) -> tensor<8xf32>
}
emb.step @r batch 8 max_ids 8 worker 1 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  // expected-error @below {{channel @c has 2 items, but there are 1 operands}}
  %b = emb.exchange @c(%a) : (tensor<4xf32>) -> tensor<8xf32>
}
// -----
emb.channel @c from_owner items ["a", "b"] owners [0, 1] workers 2
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %b:2 = emb.exchange @c() : () -> (tensor<4xf32>, tensor<4xf32>)
}
emb.step @r batch 8 max_ids 8 worker 1 of 2 {
  // expected-error @below {{worker 1 owns 1 items of @c, but there are 0 operands}}
  %b:2 = emb.exchange @c() : () -> (tensor<4xf32>, tensor<4xf32>)
}
// -----
emb.channel @c to_owner items ["a"] owners [0] workers 2
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  // expected-error @below {{item "a" is 'tensor<4xf32>' on a worker, but 'tensor<8x1xf32>' at its owner}}
  %b = emb.exchange @c(%a) : (tensor<4xf32>) -> tensor<8x1xf32>
}
emb.step @r batch 8 max_ids 8 worker 1 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  emb.exchange @c(%a) : (tensor<4xf32>) -> ()
}
// -----
emb.channel @c to_owner items ["a"] owners [0] workers 2
// expected-error @below {{takes part in @c twice}}
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  %b = emb.exchange @c(%a) : (tensor<4xf32>) -> tensor<8xf32>
  %d = emb.exchange @c(%a) : (tensor<4xf32>) -> tensor<8xf32>
}
// -----
emb.channel @c to_owner items ["a"] owners [0] workers 2
// expected-error @below {{is a program of worker 0, but @r uses the same channels for it}}
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  %b = emb.exchange @c(%a) : (tensor<4xf32>) -> tensor<8xf32>
}
emb.step @r batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  %b = emb.exchange @c(%a) : (tensor<4xf32>) -> tensor<8xf32>
}
// -----
// Another order of the same collectives: each worker would wait for the other.
emb.channel @c to_owner items ["a"] owners [0] workers 2
emb.channel @d to_owner items ["a"] owners [0] workers 2
// expected-error @below {{uses other channels, or another order, than @r}}
emb.step @s batch 8 max_ids 8 worker 0 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  %b = emb.exchange @c(%a) : (tensor<4xf32>) -> tensor<8xf32>
  %d = emb.exchange @d(%a) : (tensor<4xf32>) -> tensor<8xf32>
}
emb.step @r batch 8 max_ids 8 worker 1 of 2 {
  %a = emb.feature "a" : tensor<4xf32>
  emb.exchange @d(%a) : (tensor<4xf32>) -> ()
  emb.exchange @c(%a) : (tensor<4xf32>) -> ()
}
