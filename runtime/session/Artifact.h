//===- Artifact.h - Loading a compiled model --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes an artifact from a shared library or from the program itself, and
// chooses the CPU image.
//
//===----------------------------------------------------------------------===//
#ifndef TERRACE_RUNTIME_SESSION_ARTIFACT_H
#define TERRACE_RUNTIME_SESSION_ARTIFACT_H

#include "runtime/core/Status.h"
#include "terrace-rt/artifact.h"

#include <memory>
#include <string>

namespace trc {

class LoadedArtifact {
public:
  /// `path` (a shared library) or `linked`, exactly one.
  static Result<std::unique_ptr<LoadedArtifact>>
  load(const char *path, const trc_artifact *linked);
  ~LoadedArtifact();

  const trc_artifact &get() const { return *artifact; }

  /// The image to run: `forced` ("x86-64-v3", "x86-64-v4") or the best one
  /// that was built and that this CPU runs.
  Result<int> chooseCpu(const char *forced) const;

private:
  LoadedArtifact() = default;
  bool built(int cpu) const;

  const trc_artifact *artifact = nullptr;
  void *library = nullptr;
};

} // namespace trc

#endif // TERRACE_RUNTIME_SESSION_ARTIFACT_H
