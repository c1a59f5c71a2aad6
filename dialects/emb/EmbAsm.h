//===- EmbAsm.h - Registers names of printed IR -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the dialect's own initialisation only.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DIALECTS_EMB_EMBASM_H
#define TERRACE_DIALECTS_EMB_EMBASM_H

namespace terrace::emb {
class EmbDialect;
void registerAsm(EmbDialect *dialect);
} // namespace terrace::emb

#endif // TERRACE_DIALECTS_EMB_EMBASM_H
