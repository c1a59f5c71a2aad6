//===- ModelMain.h - main() of every emitted executable ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ./model train|eval|predict|verify|bench|info: the compiler links this and
// the artifact into one program. A client of the public C ABI.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_MODEL_MODELMAIN_H
#define TERRACE_RUNTIME_MODEL_MODELMAIN_H

#include "terrace-rt/artifact.h"

#ifdef __cplusplus
extern "C"
#endif
    int trc_model_main(int argc, char **argv, const trc_artifact *artifact);

#endif // TERRACE_RUNTIME_MODEL_MODELMAIN_H
