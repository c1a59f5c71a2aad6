//===- Backend.h - From a planned module to code ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Artifact, kernels, objects and links: what `--emit=artifact` and the kinds
// after it need beyond the front end.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_DRIVER_BACKEND_H
#define TERRACE_DRIVER_BACKEND_H

#include "Driver/Frontend.h"

#include "Codegen/Codegen.h"

namespace terrace::driver {

class Backend {
public:
  Backend(Frontend &frontend, const CompileOptions &options,
          CompileResult &result)
      : frontend(frontend), options(options), result(result) {}

  /// Refuses early what cannot be executed, and chooses the CPU images.
  bool check();
  /// Emits, after the front end's passes.
  bool run();

private:
  bool chooseImages();
  bool emitLlvm();
  bool emitBinary(const std::string &plan);
  bool link(llvm::ArrayRef<codegen::ObjectCode> objects);
  bool failed(llvm::Error error, Outcome outcome);

  Frontend &frontend;
  const CompileOptions &options;
  CompileResult &result;
  std::vector<codegen::Image> images;
  std::vector<codegen::KernelConfig> configs;
};

} // namespace terrace::driver

#endif // TERRACE_DRIVER_BACKEND_H
