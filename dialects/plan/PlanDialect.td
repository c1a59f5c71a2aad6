//===- PlanDialect.td - The plan dialect -------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect object, its types and its enum attributes.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_PLAN_DIALECT
#define TERRACE_PLAN_DIALECT

include "dialects/emb/EmbTypes.td"
include "dialects/plan/PlanEnums.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let summary = "Where and when: movements of rows, stages, storage, order.";
  let description = [{
    A pipeline's body is one batch in program order. Order comes from operands,
    order across batches from `carry`, storage from rings.
  }];
  let cppNamespace = "::terrace::plan";
  let dependentDialects = ["::terrace::emb::EmbDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    /// The planner's decision, an attribute of a module.
    static constexpr ::llvm::StringLiteral kDecision = "plan.decision";

    void registerAttributes();
    void registerTypes();
  }];
}

def Plan_LaneKindAttr : EnumAttr<Plan_Dialect, Plan_LaneKind, "lane_kind">;
def Plan_KernelKindAttr : EnumAttr<Plan_Dialect, Plan_KernelKind, "kernel_kind">;
def Plan_RingRoleAttr : EnumAttr<Plan_Dialect, Plan_RingRole, "ring_role">;

//===----------------------------------------------------------------------===//
// Types. A value stands for data that is ready, so every value is also a token.
//===----------------------------------------------------------------------===//

class Plan_Type<string name, string mnem, string what>
    : TypeDef<Plan_Dialect, name> {
  let mnemonic = mnem;
  let summary = what;
}

def Plan_RingType : Plan_Type<"Ring", "ring", "storage of `depth` batches">;
def Plan_BufType : Plan_Type<"Buf", "buf", "a batch's contents of a ring slot">;
def Plan_TokenType : Plan_Type<"Token", "token", "something has happened">;
def Plan_PinsType : Plan_Type<"Pins", "pins", "a batch's rows, pinned in slots, some not there yet">;
def Plan_MissesType : Plan_Type<"Misses", "misses", "the pinned rows that are not there yet">;
def Plan_VictimsType : Plan_Type<"Victims", "victims", "the rows that gave up their slots">;
def Plan_RowsType : Plan_Type<"Rows", "rows", "a batch's rows, all there">;

// What an op may wait for.
def Plan_Ready : AnyTypeOf<[Plan_BufType, Plan_TokenType, Plan_PinsType,
                            Plan_MissesType, Plan_VictimsType, Plan_RowsType]>;

#endif // TERRACE_PLAN_DIALECT
