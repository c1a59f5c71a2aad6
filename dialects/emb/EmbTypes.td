//===- EmbTypes.td - Types of the emb dialect --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Jagged ids, the inverse of a deduplication, and table states. No type names
// a symbol: symbol-dce would delete a table that only a type mentions.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_EMB_TYPES
#define TERRACE_EMB_TYPES

include "dialects/emb/EmbAttrs.td"

class Emb_Type<string name, string mnem> : TypeDef<Emb_Dialect, name> {
  let mnemonic = mnem;
  let genVerifyDecl = 1;
}

def Emb_BagsType : Emb_Type<"Bags", "bags"> {
  let summary = "jagged ids: one bag per sample";
  let description = [{
    `!emb.bags<2048, max 40960 x i64, raw>`: at most 2048 bags (`?`: the unique
    bags of a dedup, whose number is known at run time; never more than the
    batch) with at most 40960 ids in all. `raw` ids come from outside; `checked`
    ids passed `emb.check`. `weighted` bags carry one f32 weight per id.
  }];
  let parameters = (ins "int64_t":$batch, "int64_t":$max_ids,
                        "::mlir::Type":$id, "bool":$checked, "bool":$weighted);
  let hasCustomAssemblyFormat = 1;
  let builders = [TypeBuilder<(ins "int64_t":$batch, "int64_t":$maxIds,
                                   "bool":$checked,
                                   CArg<"bool", "false">:$weighted), [{
    return $_get($_ctxt, batch, maxIds, ::mlir::IntegerType::get($_ctxt, 64),
                 checked, weighted);
  }]>];
  let extraClassDeclaration = [{
    bool hasDynamicBatch() const {
      return ::mlir::ShapedType::isDynamic(getBatch());
    }
    /// The same bags with another batch bound.
    BagsType withBatch(int64_t batch) const;
    /// The same bags after `emb.check`.
    BagsType asChecked() const;
  }];
}

def Emb_InverseType : Emb_Type<"Inverse", "inverse"> {
  let summary = "for each sample the unique bag that it has";
  let parameters = (ins "int64_t":$batch);
  let assemblyFormat = "`<` $batch `>`";
}

def Emb_StateType : Emb_Type<"State", "state"> {
  let summary = "a table's rows and optimizer state at one moment";
  let parameters = (ins "int64_t":$rows, "int64_t":$dim,
                        "::terrace::emb::RowAttr":$row);
  let assemblyFormat = "`<` `[` $rows `,` $dim `]` `,` qualified($row) `>`";
}

// Gradients and pooled rows: [bags or ids, columns].
def Emb_Gradient : TensorRankOf<[F32], [2]>;

#endif // TERRACE_EMB_TYPES
