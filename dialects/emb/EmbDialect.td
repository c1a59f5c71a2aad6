//===- EmbDialect.td - The emb dialect and its enums -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect object, the enums of both levels and the parameter classes that
// its attributes share.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_EMB_DIALECT
#define TERRACE_EMB_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Emb_Dialect : Dialect {
  let name = "emb";
  let summary = "What an embedding step computes: tables, bags, pooling, updates.";
  let description = [{
    Value semantics, no location and no time. States of tables are SSA values,
    so that no look-up can see the update of its own step.
  }];
  let cppNamespace = "::terrace::emb";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    // Names of the attributes that the dialect defines on a module.
    static constexpr ::llvm::StringLiteral kMachine = "emb.machine";
    static constexpr ::llvm::StringLiteral kNumerics = "emb.numerics";
    static constexpr ::llvm::StringLiteral kSeed = "emb.seed";
    static constexpr ::llvm::StringLiteral kOnBadId = "emb.on_bad_id";
    static constexpr ::llvm::StringLiteral kOnBadGrad = "emb.on_bad_grad";
    /// f64: what a store of rows has room for, as a multiple of the rows.
    static constexpr ::llvm::StringLiteral kStoreSpace = "emb.store_space";
    /// i64: checkpoints that stores retain at once.
    static constexpr ::llvm::StringLiteral kStoreRetained =
        "emb.store_retained";
    static constexpr ::llvm::StringLiteral kModel = "emb.model";
    // What the user pinned, for emb-decide: a dictionary (lib/Import).
    static constexpr ::llvm::StringLiteral kPins = "emb.pins";

    void registerAttributes();
    void registerTypes();
  }];
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Emb_Enum<string name, string summary, list<EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::terrace::emb";
}

def Emb_Pooling : Emb_Enum<"Pooling", "how the rows of a bag become one row", [
  I32EnumCase<"Sum", 0, "sum">, I32EnumCase<"Mean", 1, "mean">,
  I32EnumCase<"WeightedMean", 2, "weighted_mean">,
  I32EnumCase<"Sqrtn", 3, "sqrtn">, I32EnumCase<"Max", 4, "max">,
  I32EnumCase<"None", 5, "none">]>;

def Emb_IdKind : Emb_Enum<"IdKind", "how an id becomes a row", [
  I32EnumCase<"Index", 0, "index">, I32EnumCase<"Hash", 1, "hash">,
  I32EnumCase<"Dynamic", 2, "dynamic">]>;

def Emb_TierKind : Emb_Enum<"TierKind", "kind of a memory tier", [
  I32EnumCase<"HBM", 0, "hbm">, I32EnumCase<"DRAM", 1, "dram">,
  I32EnumCase<"PMem", 2, "pmem">, I32EnumCase<"NVMe", 3, "nvme">]>;

def Emb_Overflow : Emb_Enum<"Overflow", "what a bag longer than its bound means", [
  I32EnumCase<"Error", 0, "error">, I32EnumCase<"KeepFirst", 1, "keep_first">,
  I32EnumCase<"KeepLast", 2, "keep_last">]>;

def Emb_ShardKind : Emb_Enum<"ShardKind", "how a table is cut", [
  I32EnumCase<"Table", 0, "table">, I32EnumCase<"Column", 1, "column">,
  I32EnumCase<"Row", 2, "row">, I32EnumCase<"Replicated", 3, "replicated">]>;

def Emb_Direction : Emb_Enum<"Direction", "which way a channel carries its items", [
  I32EnumCase<"ToOwner", 0, "to_owner">,
  I32EnumCase<"FromOwner", 1, "from_owner">]>;

def Emb_PoolingAttr : EnumAttr<Emb_Dialect, Emb_Pooling, "pooling">;
def Emb_IdKindAttr : EnumAttr<Emb_Dialect, Emb_IdKind, "id_kind">;
def Emb_TierKindAttr : EnumAttr<Emb_Dialect, Emb_TierKind, "tier_kind">;
def Emb_OverflowAttr : EnumAttr<Emb_Dialect, Emb_Overflow, "overflow">;
def Emb_DirectionAttr : EnumAttr<Emb_Dialect, Emb_Direction, "direction">;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

// A double, exact in text, hash and comparison. The accessor gives a double.
class F64Param<string desc, string default = "">
    : AttrOrTypeParameter<"::terrace::emb::F64", desc, "double"> {
  let parser = "::terrace::emb::parseF64($_parser)";
  let printer = "::terrace::emb::printF64($_printer, $_self)";
  let defaultValue = !if(!empty(default), "",
                         "::terrace::emb::F64(" # default # ")");
  let comparator = "::terrace::emb::F64($_lhs) == ::terrace::emb::F64($_rhs)";
}

class F64ListParam<string desc>
    : ArrayRefParameter<"::terrace::emb::F64", desc> {
  let parser = "::terrace::emb::parseF64List($_parser)";
  let printer = "::terrace::emb::printF64List($_printer, $_self)";
}
class OptionalF64ListParam<string desc>
    : OptionalArrayRefParameter<"::terrace::emb::F64", desc> {
  let parser = "::terrace::emb::parseF64List($_parser)";
  let printer = "::terrace::emb::printF64List($_printer, $_self)";
}
class I64ListParam<string desc> : ArrayRefParameter<"int64_t", desc> {
  let parser = "::terrace::emb::parseI64List($_parser)";
  let printer = "::terrace::emb::printI64List($_printer, $_self)";
}
class OptionalI64ListParam<string desc>
    : OptionalArrayRefParameter<"int64_t", desc> {
  let parser = "::terrace::emb::parseI64List($_parser)";
  let printer = "::terrace::emb::printI64List($_printer, $_self)";
}
class I64Param<string desc, string default>
    : DefaultValuedParameter<"int64_t", default, desc>;

#endif // TERRACE_EMB_DIALECT
