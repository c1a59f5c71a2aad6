//===- Decode.h - From the spec's tree to its structs -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Internal to lib/Spec. Decoding reads one value at a time and never gives up;
// validation then checks what holds between values.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_SPEC_DECODE_H
#define TERRACE_SPEC_DECODE_H

#include "Spec/Fields.h"
#include "Spec/Spec.h"
#include "Spec/Yaml.h"

namespace terrace::spec {

/// model, seed, batch, tables, features, dense, head: what is computed.
void decodeModel(Reading &reading, const Yaml &root, Spec &spec);
/// train, data: settable at run time.
void decodeRun(Reading &reading, const Yaml &root, Spec &spec);
/// memory, workers, target, machine, plan: may live in a node file.
void decodeNode(Reading &reading, const Yaml &root, Spec &spec);

void decodeInit(const Fields &fields, Init &init);
void decodeOptimizer(const Yaml &node, Reading &reading, llvm::StringRef path,
                     Optimizer &optimizer);

/// {kind: word} written as a word, or the map itself.
Yaml asKindMap(const Yaml &node);

/// Checks across values. A value that was refused before (0 rows, ...) is
/// passed over: it has its error.
void validate(Reading &reading, Spec &spec);

} // namespace terrace::spec

#endif // TERRACE_SPEC_DECODE_H
