//===- EmbBytecode.h - Registers the binary encoding ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the dialect's own initialisation only.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DIALECTS_EMB_EMBBYTECODE_H
#define TERRACE_DIALECTS_EMB_EMBBYTECODE_H

namespace terrace::emb {
class EmbDialect;
void registerBytecode(EmbDialect *dialect);
} // namespace terrace::emb

#endif // TERRACE_DIALECTS_EMB_EMBBYTECODE_H
