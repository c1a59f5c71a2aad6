//===- Link.h - Executables and libraries, linked in process ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lld as a library: no compiler driver, linker or shell is run. Executables
// need libc's start files (package libc6-dev), the runtime's archives and the
// shared libraries of libc, libm, libstdc++, libgcc_s and zlib; every file is
// looked up here and named in the error where it is missing. Calls are
// serialised, since lld has global state. The output is replaced only by a
// complete new file.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_CODEGEN_LINK_H
#define TERRACE_CODEGEN_LINK_H

#include "Codegen/Codegen.h"

namespace terrace::codegen {

/// The runtime's archives for an executable, in link order. Searched in
/// TERRACE_RUNTIME_DIR if that is set, else in ../lib and ../lib/terrace next
/// to the running program.
llvm::Expected<std::vector<std::string>> findRuntimeArchives();

/// An executable of the objects (one of which defines main) and the archives.
llvm::Error linkExecutable(llvm::ArrayRef<ObjectCode> objects,
                           llvm::ArrayRef<std::string> runtimeArchives,
                           llvm::StringRef output);

/// A shared library that exports `terrace_artifact` and needs no other library.
llvm::Error linkLibrary(llvm::ArrayRef<ObjectCode> objects,
                        llvm::StringRef output);

/// One relocatable object of several, for a linker of the user's.
llvm::Error linkRelocatable(llvm::ArrayRef<ObjectCode> objects,
                            llvm::StringRef output, bool aarch64 = false);

} // namespace terrace::codegen

#endif // TERRACE_CODEGEN_LINK_H
