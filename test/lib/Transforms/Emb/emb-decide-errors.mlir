// RUN: terrace-opt %s --split-input-file --emb-decide --verify-diagnostics

!raw = !emb.bags<64, max 64 x i64, raw>
!ids = !emb.bags<64, max 64 x i64, checked>
!t = !emb.state<[1000, 16], #emb.row<f32>>

module attributes {emb.pins = {lookahead = 0 : i64}} {
  // expected-error@+1 {{tier 'dram' has 1000 bytes; the smallest capacity that fits is 357476 bytes (349.1 KiB: rings 24.0 KiB, slots 4.2 KiB, index 320.8 KiB)}}
  emb.tier @dram dram bytes 1000
  emb.tier @disk nvme bytes 1073741824 path "x.store"
  emb.table @t : !t ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 1.0e-8> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
    %f = emb.feature "f" index 0 : !raw
    %c = emb.check %f in [@t] on_bad_id "error" : !raw -> !ids
  }
}

// -----

!raw = !emb.bags<64, max 64 x i64, raw>
!ids = !emb.bags<64, max 64 x i64, checked>
!t = !emb.state<[1000000, 16], #emb.row<f32>>

// A pin that is in the way is named, at its own place.
// expected-error@+1 {{without the pin {tables: "t", home: dram} a plan fits}}
module attributes {emb.pins = {place = [{tables = "t", home = "dram"}]}} {
  emb.tier @dram dram bytes 16777216
  emb.tier @disk nvme bytes 1073741824 path "x.store"
  emb.table @t : !t ids index optimizer #emb.rowwise_adagrad<lr = 0.1, eps = 1.0e-8> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
    %f = emb.feature "f" index 0 : !raw
    %c = emb.check %f in [@t] on_bad_id "error" : !raw -> !ids
  }
}

// -----

// expected-error@+1 {{no table matches 'x*'}}
module attributes {emb.pins = {place = [{tables = "x*", home = "dram"}]}} {
  emb.tier @dram dram bytes 16777216
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{there is no tier 'tape'}}
module attributes {emb.pins = {place = [{tables = "t", home = "tape"}]}} {
  emb.tier @dram dram bytes 16777216
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{lookahead 11: it must lie between 0 and 8}}
module attributes {emb.pins = {lookahead = 11 : i64}} {
  emb.tier @dram dram bytes 16777216
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{the module has no emb.table: nothing to plan}}
module {
}

// -----

module {
  // expected-error@+1 {{no tier of kind dram: batches, staging and outputs need one}}
  emb.tier @disk nvme bytes 16777216 path "x"
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// Two caches above one home can be planned, not compiled.
module attributes {emb.pins = {device = "gpu", place = [{tables = "t", home = "disk", cache = [["hbm", 4096 : i64], ["dram", 4096 : i64]]}]}} {
  emb.tier @hbm hbm bytes 16777216
  emb.tier @dram dram bytes 16777216
  emb.tier @disk nvme bytes 16777216 path "x"
  // expected-error@+1 {{table 't': two caches above one home (hbm, dram) cannot be compiled yet; pin one of them}}
  emb.table @t : !emb.state<[100000, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{workers must be 1 or more, not 0}}
module attributes {emb.pins = {workers = 0 : i64}} {
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{emb.pins: every place needs `tables`}}
module attributes {emb.pins = {place = [{home = "dram"}]}} {
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{cache is a list of [tier, bytes]}}
module attributes {emb.pins = {place = [{tables = "t", cache = ["dram"]}]}} {
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{together: there is no table "u"}}
module attributes {emb.pins = {together = [["t", "u"]]}} {
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// Pins are attributes that anybody may write.
// expected-error@+1 {{together is a list of lists of tables, not of "t"}}
module attributes {emb.pins = {together = ["t"]}} {
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{together: there is no table 1 : i64}}
module attributes {emb.pins = {together = [[1 : i64]]}} {
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
  }
}

// -----

// expected-error@+1 {{the module has no emb.step: nothing to plan}}
module {
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
}

// -----

!raw = !emb.bags<64, max 64 x i64, raw>
!ids = !emb.bags<64, max 64 x i64, checked>

// Bags of a block argument or another op have no bounds that memory could be planned from.
module {
  emb.table @t : !emb.state<[10, 4], #emb.row<f32>> ids index optimizer #emb.sgd<lr = 0.1> init #emb.constant<0.0>
  emb.step @train batch 64 max_ids 64 worker 0 of 1 {
    %f = builtin.unrealized_conversion_cast to !raw
    // expected-error@+1 {{operand #0 does not come from an emb.feature}}
    %c = emb.check %f in [@t] on_bad_id "error" : !raw -> !ids
  }
}
