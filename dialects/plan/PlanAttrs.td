//===- PlanAttrs.td - Attributes of the plan dialect -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Record classes, kernel configurations, features as the artifact names them,
// and the planner's decision.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_PLAN_ATTRS
#define TERRACE_PLAN_ATTRS

include "dialects/plan/PlanDialect.td"

class Plan_Attr<string name, string mnem, list<Trait> traits = []>
    : AttrDef<Plan_Dialect, name, traits> {
  let mnemonic = mnem;
  let genVerifyDecl = 1;
}

def Plan_RecordAttr : Plan_Attr<"Record", "record"> {
  let summary = "the record class of a group";
  let description = [{
    `#plan.record<64 x f32, state 4, header 8, slot 260, store 272>`: columns and
    element type; bytes of optimizer state; bytes of a header in the store;
    pitch of a slot in a cache (or of a row in place); pitch in the home store.
  }];
  let parameters = (ins "int64_t":$dim, "::mlir::Type":$element,
                        "int64_t":$state_bytes, "int64_t":$header_bytes,
                        "int64_t":$slot_bytes, "int64_t":$store_bytes);
  let assemblyFormat = [{
    `<` $dim `x` $element `,` `state` $state_bytes `,` `header` $header_bytes `,`
        `slot` $slot_bytes `,` `store` $store_bytes `>`
  }];
  let extraClassDeclaration = [{
    /// Bytes of the weights of one row; whole numbers stand behind a scale and
    /// a bias of f16.
    int64_t getWeightsBytes() const {
      return getWeightsBytes(getDim(), getElement());
    }
    static int64_t getWeightsBytes(int64_t dim, ::mlir::Type element) {
      return (dim * element.getIntOrFloatBitWidth() + 7) / 8 +
             (element.isInteger() ? 4 : 0);
    }
  }];
}

def Plan_KernelConfigAttr : Plan_Attr<"KernelConfig", "kernel_config"> {
  let summary = "the configuration that a kernel is generated for";
  let description = [{
    `<64 x f32>`, `<64 x f32, mean, weighted>`,
    `<64 x f32, adam, decay, decoupled, clip>`, `<64 x bf16, sgd, stochastic>`,
    `<64 x f32, direct>`. The element is what rows are stored as; a direct
    gather_pool takes rows, not places of unique rows.
  }];
  let parameters = (ins "int64_t":$dim, "::mlir::Type":$element,
    DefaultValuedParameter<"::terrace::emb::Pooling",
      "::terrace::emb::Pooling::Sum", "of a gather_pool">:$pooling,
    DefaultValuedParameter<"bool", "false", "gather_pool takes weights">:$weighted,
    DefaultValuedParameter<"::terrace::plan::OptimizerKind",
      "::terrace::plan::OptimizerKind::SGD", "of a segment_update">:$optimizer,
    DefaultValuedParameter<"bool", "false", "with weight decay">:$decay,
    DefaultValuedParameter<"bool", "false", "with decoupled decay">:$decoupled,
    DefaultValuedParameter<"bool", "false", "clips the gradient">:$clip,
    DefaultValuedParameter<"bool", "false", "rounds at random">:$stochastic,
    DefaultValuedParameter<"bool", "false", "gather_pool by id">:$direct);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The kernel's name in artifacts (docs/artifact.md).
    std::string getKernelName(::terrace::plan::KernelKind kind) const;
  }];
}

def Plan_FeatureAttr : Plan_Attr<"Feature", "feature"> {
  let summary = "a feature as the artifact describes it";
  let description = [{
    In the order of the spec. `kernel` names the `plan.kernel` that pools it,
    `output` its column block in the pooled outputs of its group, `dedup` the
    group of a `plan.dedup` that it is pooled in (absent where it is not).
  }];
  let parameters = (ins "::mlir::StringAttr":$name,
    "::mlir::FlatSymbolRefAttr":$table,
    DefaultValuedParameter<"::terrace::emb::Pooling",
      "::terrace::emb::Pooling::Sum">:$pooling,
    I64Param<"most ids of a bag", "1">:$max_ids,
    OptionalParameter<"::mlir::StringAttr">:$column,
    OptionalParameter<"::mlir::StringAttr">:$weights,
    DefaultValuedParameter<"::terrace::emb::Overflow",
      "::terrace::emb::Overflow::Error">:$overflow,
    DefaultValuedParameter<"bool", "false">:$string_ids,
    OptionalParameter<"::mlir::StringAttr">:$dedup,
    OptionalParameter<"::mlir::FlatSymbolRefAttr">:$kernel,
    I64Param<"column block", "0">:$output);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    ::llvm::StringRef getColumnName() const {
      return getColumn() ? getColumn().getValue() : getName().getValue();
    }
  }];
}

def Plan_TableDecisionAttr : Plan_Attr<"TableDecision", "table"> {
  let summary = "what the planner decided for one table";
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::StringAttr":$home,
    OptionalParameter<"::mlir::StringAttr">:$cache,
    I64Param<"slots that outlive their batch", "0">:$retained,
    OptionalParameter<"::mlir::StringAttr">:$policy,
    OptionalParameter<"::terrace::emb::ShardsAttr">:$shards);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Plan_DecisionAttr : Plan_Attr<"Decision", "decision"> {
  let summary = "the planner's decision, on the module";
  let description = [{
    ```mlir
    #plan.decision<lookahead 2, tables [
      #plan.table<name = "item", home = "nvme", cache = "dram", retained = 512>]>
    ```
  }];
  let parameters = (ins "int64_t":$lookahead,
      ArrayRefParameter<"::terrace::plan::TableDecisionAttr">:$tables);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The decision for a table, null where there is none.
    TableDecisionAttr getTable(::llvm::StringRef name) const;
  }];
}

#endif // TERRACE_PLAN_ATTRS
