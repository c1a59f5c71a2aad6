//===- PlanEnums.td - Enums of the plan dialect ------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Apart from the dialect, so that they are generated without those of emb.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_PLAN_ENUMS
#define TERRACE_PLAN_ENUMS

include "mlir/IR/EnumAttr.td"

class Plan_Enum<string name, string summary, list<EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::terrace::plan";
}

def Plan_LaneKind : Plan_Enum<"LaneKind", "how a lane runs its ops", [
  I32EnumCase<"CPU", 0, "cpu">, I32EnumCase<"Stream", 1, "stream">,
  I32EnumCase<"IO", 2, "io">, I32EnumCase<"Caller", 3, "caller">]>;

def Plan_KernelKind : Plan_Enum<"KernelKind", "what a kernel does", [
  I32EnumCase<"GatherPool", 0, "gather_pool">,
  I32EnumCase<"SegmentUpdate", 1, "segment_update">]>;

def Plan_OptimizerKind : Plan_Enum<"OptimizerKind", "optimizer of a kernel", [
  I32EnumCase<"SGD", 0, "sgd">, I32EnumCase<"Adagrad", 1, "adagrad">,
  I32EnumCase<"RowwiseAdagrad", 2, "rowwise_adagrad">,
  I32EnumCase<"Adam", 3, "adam">,
  I32EnumCase<"MomentumSGD", 4, "momentum_sgd">,
  I32EnumCase<"PartialRowwiseAdam", 5, "partial_rowwise_adam">,
  I32EnumCase<"Lamb", 6, "lamb">, I32EnumCase<"Ftrl", 7, "ftrl">]>;

// The roles of docs/artifact.md; runtime/core/RingLayout.h has their layout.
def Plan_RingRole : Plan_Enum<"RingRole", "what a ring holds", [
  I32EnumCase<"Ingest", 0, "ingest">, I32EnumCase<"Dedup", 1, "dedup">,
  I32EnumCase<"Unique", 2, "unique">, I32EnumCase<"Probe", 3, "probe">,
  I32EnumCase<"Staging", 4, "staging">, I32EnumCase<"WriteBuf", 5, "writebuf">,
  I32EnumCase<"Pooled", 6, "pooled">, I32EnumCase<"Expanded", 7, "expanded">,
  I32EnumCase<"Grads", 8, "grads">, I32EnumCase<"Exchange", 9, "exchange">,
  I32EnumCase<"Copy", 10, "copy">]>;

#endif // TERRACE_PLAN_ENUMS
